"""``python -m triton_metal doctor``: lists the devices, checks them, and says what to do.

Small kernels run on every available device and are compared with NumPy. Every example also runs, with timings, on a
Mac and with ``--full`` or ``--report``. ``--quirks`` looks for the known defects of Apple's compiler and GPUs instead.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from .. import files
from ..errors import TritonError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=Path,
        help="run every example too, and write all findings to FILE (Markdown, or JSON if its name ends in .json)",
    )
    parser.add_argument(
        "--full", action="store_true", help="run every example too, which a Mac does anyway"
    )
    parser.add_argument(
        "--quick", action="store_true", help="run the small kernels alone, on a Mac as well"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME",
        help="with --full or --report: only examples whose name has this in it; with --quirks: one row of the known defects",
    )
    parser.add_argument(
        "--quirks",
        action="store_true",
        help="look for the known defects of Apple's Metal compiler and GPUs; takes some two minutes",
    )
    parser.add_argument(
        "--save",
        action="store_true",
        help="with --quirks: remember the cures that this Mac needs, for all kernels from now on",
    )


def main(options: argparse.Namespace) -> int:
    """Runs the command. The exit status is 0 if every available device works."""
    from . import text
    from .report import gather, without_owner

    if options.save and not options.quirks:
        print("doctor: --save belongs to --quirks", file=sys.stderr)
        return 2

    if options.quick and (options.full or (options.quirks and options.report is None)):
        other = "--full" if options.full else "--quirks"
        print(
            f"doctor: --quick runs the small kernels alone: leave out {other} or --quick",
            file=sys.stderr,
        )
        return 2

    if options.report is not None and (problem := _no_report(options.report)):
        print(f"doctor: {problem}", file=sys.stderr)
        return 2
    if options.quirks and options.report is None:
        return quirks_main(options)
    full = options.full or options.report is not None or sys.platform == "darwin"
    full = full and not options.quick
    only = "" if options.quirks else options.only
    if only and (problem := _problem_of(options, full)):
        print(f"doctor: {problem}", file=sys.stderr)
        return 2
    report = gather(full, only, None if options.json else _tell())
    problem = None
    if options.report is not None:
        # A report of some examples is not about the machine.
        if options.quirks or not options.only:
            report["quirks"] = survey_quirks(options)
            report["ok"] = report["ok"] and report["quirks"]["ok"]
        shareable = without_owner(report)
        content = (
            json.dumps(shareable, indent=2) + "\n"
            if options.report.suffix == ".json"
            else text.markdown(shareable)
        )
        try:
            files.write(options.report, content.encode())
        except OSError as error:
            problem = f"{options.report} cannot be written ({error.strerror})"
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        text.show(report)
        if options.report is not None and problem is None:
            print(f"The report is in {options.report}.")
    if problem is not None:
        print(f"doctor: {problem}", file=sys.stderr)
        return 2
    return 0 if report["ok"] else 1


def _no_report(path: Path) -> str | None:
    """Why a report cannot be written, as far as that is known before; None if nothing is against it."""
    parent = path.absolute().parent
    if not parent.is_dir():
        return f"{parent} is not a folder: --report needs a file in an existing folder"
    if path.is_dir():
        return f"{path} is a folder: --report needs the name of a file"
    return None


def _problem_of(options: argparse.Namespace, full: bool) -> str | None:
    """What is wrong with the name of examples."""
    from .report import example_names

    if not full:
        return (
            "--only chooses examples, and --quick runs none"
            if options.quick
            else "--only belongs to --full, --report or --quirks"
        )
    names = example_names()
    if not names or any(options.only in name for name in names):
        return None
    return f"--only {options.only} names no example; the examples are {', '.join(names)}"


def survey_quirks(options: argparse.Namespace) -> dict[str, Any]:
    """Looks for the known defects, with a progress line on a terminal."""
    from .quirks import survey

    def told(line: str) -> None:
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    shows = sys.stderr.isatty() and not options.json
    only = options.only if options.quirks else ""
    found = survey.gather(only, told if shows else None)
    if shows:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if options.save:
        found["saved"] = survey.save(found)
    return found


def quirks_main(options: argparse.Namespace) -> int:
    """``doctor --quirks``. The exit status is 1 only if a form that the compiler prints is wrong."""
    from .quirks import survey, table

    probes, questions = survey.select(options.only)
    if not probes and not questions:
        rows = ", ".join(str(probe.row) for probe in survey.select("")[0])
        print(f"doctor: --only {options.only} names no probe; the rows are {rows}", file=sys.stderr)
        return 2
    found = survey_quirks(options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        table.show(found)
    return 0 if found["ok"] else 1


def _tell() -> Any:
    """Shows what runs, only on a terminal."""
    if not sys.stderr.isatty():
        return None
    from .text import label

    def told(device: str, record: dict[str, Any]) -> None:
        print(f"\r\033[K{device}: {label(record)}", end="", file=sys.stderr, flush=True)
        print("\r\033[K", end="", file=sys.stderr)

    return told


def worker() -> None:
    """The command of a worker process: ``probe DEVICE``, ``self-test DEVICE ONLY`` or ``examples``."""
    from . import run

    # Records have the standard output to themselves, whatever libraries print.
    records = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def write(record: dict[str, Any]) -> None:
        print(json.dumps(record), file=records, flush=True)

    command, *rest = sys.argv[1:]
    try:
        if command == "probe":
            run.probe(rest[0], write)
        elif command == "examples":
            run.example_names(write)
        else:
            run.self_test(rest[0], rest[1] if rest[1:] else "", write)
    except (TritonError, ImportError) as error:
        write({"kind": "process", "name": command, "ok": False, "error": str(error)})
    write({"kind": "end"})
