"""``python -m triton_metal``: runs programs with ``import triton`` meaning triton_metal, and commands for an installation.

    python -m triton_metal PROGRAM.py [args]
    python -m triton_metal -m MODULE [args]
    python -m triton_metal -c TEXT [args]
    python -m triton_metal cost --chip "M3 Max" PROGRAM.py [args]
    python -m triton_metal doctor [options]
    python -m triton_metal report PROGRAM.py [args] -o FOLDER
    python -m triton_metal shim install|uninstall|status
    python -m triton_metal tune-ops [--family NAME]
    python -m triton_metal tutorial [--step N]

A file with the name of a command, such as ``doctor``, runs as ``./doctor``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __version__
from .as_triton import program, shim, streams

_COMMANDS = ("cost", "doctor", "report", "shim", "tune-ops", "tutorial")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a program or a command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and (
        arguments[0] in ("-m", "-c", "-")
        or (arguments[0][:1] != "-" and arguments[0] not in _COMMANDS)
    ):
        program.run(arguments)
        return 0
    command = f" {arguments[0]}" if arguments and arguments[0] in _COMMANDS else ""
    name = f"python -m triton_metal{command}"
    return streams.guarded(name, lambda: _run_command(arguments))


def _run_command(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m triton_metal",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [-h] [--version] (PROGRAM.py | -m MODULE | -c TEXT | cost | doctor | report | shim | tune-ops | tutorial) ...",
    )
    parser.add_argument("--version", action="version", version=f"triton_metal {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    names = commands.add_parser(
        "shim",
        help="install or remove the distribution `triton` that pip and other packages find",
        description=shim.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shim.add_arguments(names)
    from . import doctor  # a program's start does without them
    from .cost import command as cost
    from .report import command as report
    from .tuning import ops_command as tables
    from .tutorial import command as tutorial

    costs = commands.add_parser(
        "cost",
        help="run a program and print what its launches cost at least on a chip",
        description=cost.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cost.add_arguments(costs)
    checks = commands.add_parser(
        "doctor",
        help="check the installation: what is found, what works, what to do",
        description=doctor.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_arguments(checks)
    pages = commands.add_parser(
        "report",
        help="run a program and write a page about each kernel that it launches",
        description=report.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_arguments(pages)
    made = commands.add_parser(
        "tune-ops",
        help="make the tables of configurations that triton_metal.ops takes by default",
        description=tables.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tables.add_arguments(made)
    lessons = commands.add_parser(
        "tutorial",
        help="learn to write kernels, step by step at the terminal",
        description=tutorial.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tutorial.add_arguments(lessons)
    for name, command in commands.choices.items():
        command.prog = f"python -m triton_metal {name}"
    words, program_words = _apart(list(arguments))
    options = parser.parse_args(words)
    if options.command is None:
        parser.error("a program or a command is needed")
    if program_words:
        options.program += program_words
    known = {
        "cost": cost,
        "doctor": doctor,
        "report": report,
        "shim": shim,
        "tune-ops": tables,
        "tutorial": tutorial,
    }
    return known[options.command].main(options)


def _apart(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The words, without those from -m or -c on of a command that runs a program: argparse takes these for options."""
    if arguments[:1] in (["cost"], ["report"]):
        for place, word in enumerate(arguments):
            if word in ("-m", "-c"):
                return arguments[:place], arguments[place:]
    return arguments, []


if __name__ == "__main__":
    sys.exit(main())
