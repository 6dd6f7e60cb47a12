"""Pages about the kernels that a program launches.

    python -m triton_metal report PROGRAM.py [args] -o FOLDER
    python -m triton_metal report --chip M1 --chip "M3 Max 30 cores" -o FOLDER -m MODULE [args]

The program runs on the host device. The first launch of each compiled kernel in its main thread becomes a page of the
folder, which is created if it is missing and there is a page. ``-o`` and ``--chip`` may stand after the program's name, too; what follows ``--`` is
the program's.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..as_triton import program
from ..cost import Chip
from ..devices.selection import device
from ..errors import LaunchValueError
from . import Recorded, Recording, chips_of, page_of, recording
from .output import write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    _add_options(parser)
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="PROGRAM.py | -m MODULE | -c TEXT"
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FOLDER", help="where the pages go")
    parser.add_argument(
        "--chip",
        action="append",
        metavar="NAME",
        help='such as "M3 Max" or "M3 Max 30 cores" (default: M1); may be given several times',
    )


def main(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    given, after = _split(options.program)
    folder = after.output or options.output
    try:
        if not given:
            raise LaunchValueError("a program is needed")
        if not folder:
            raise LaunchValueError("a folder for the pages is needed: -o FOLDER")
        chips = chips_of([*(options.chip or []), *(after.chip or [])] or ["M1"])
        _check_folder(Path(folder))
        place = Path(folder).absolute()  # the program may change the current folder
    except LaunchValueError as error:
        return _fail(error)
    with device("host"), recording() as found:
        try:
            status = program.run_for_command(given)
        except program.NoProgram as end:
            return program.exit_status(end)
        except BaseException:
            # What was launched before is worth its pages.
            _write_pages(found, place, folder, chips)
            raise
    if not found.recorded:
        return _fail(_nothing(found), status or 1)
    return status if _write_pages(found, place, folder, chips) else 2


def _nothing(found: Recording) -> str:
    if why := _left_out(found):
        return f"there is no page: {why}"
    return "the program launched no kernel"


def _left_out(found: Recording) -> str:
    """What has no page, and why; an empty text if there is nothing."""
    texts = []
    if count := found.left_out:
        which = (
            "1 launch was in a function" if count == 1 else f"{count} launches were in functions"
        )
        texts.append(f"{which} that MLX traces, without values to count with")
    if count := found.elsewhere:
        which = "1 launch was" if count == 1 else f"{count} launches were"
        texts.append(f"{which} not in the program's main thread")
    return "; ".join(texts)


def _fail(message: object, status: int = 2) -> int:
    print(f"python -m triton_metal report: {message}", file=sys.stderr)
    return status


def _write_pages(found: Recording, folder: Path, shown: str, chips: Sequence[Chip]) -> bool:
    """Writes the pages of all kernels, and names each one below ``shown``. Returns whether all could be written."""
    try:
        if found.recorded:
            _make_folder(folder)
    except LaunchValueError as error:
        _fail(error)
        return False
    names = _names(found.recorded)
    for name, recorded, times in zip(names, found.recorded, found.launches, strict=True):
        try:
            write(folder / name, page_of(recorded, chips))
        except LaunchValueError as error:
            _fail(error)
            return False
        print(f"{Path(shown) / name}: {recorded.kernel.name}, {times} launch{'es' * (times != 1)}")
    if why := _left_out(found):
        print(f"without a page: {why}")
    return True


def _split(words: Sequence[str]) -> tuple[list[str], argparse.Namespace]:
    """The program with its arguments, and the options of this command among these."""
    words = list(words)
    end = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        prog="python -m triton_metal report", add_help=False, allow_abbrev=False
    )
    _add_options(parser)
    # The program's own name, and what -m and -c take, are not options.
    start = 2 if words[:1] in (["-m"], ["-c"]) else 1
    after, rest = parser.parse_known_args(words[start:end])
    return [*words[:start], *rest, *words[end + 1 :]], after


def _check_folder(folder: Path) -> None:
    """Raises LaunchValueError if a folder cannot be created or written to, before a program runs for long."""
    try:
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        problem = None if there.is_dir() else errno.EEXIST if there == folder else errno.ENOTDIR
    except (OSError, ValueError) as error:
        raise _cannot_create(folder, error) from error
    if problem is not None:
        raise _cannot_create(folder, OSError(problem, os.strerror(problem)))
    if not os.access(there, os.W_OK | os.X_OK):
        raise LaunchValueError(f"the folder '{there}' cannot be written to")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_create(folder, error) from error


def _cannot_create(folder: Path, error: OSError | ValueError) -> LaunchValueError:
    reason = error.strerror if isinstance(error, OSError) else error
    return LaunchValueError(f"the folder '{folder}' cannot be created: {reason}")


def _names(every: Sequence[Recorded]) -> list[str]:
    """A file's name for each kernel: the kernel's, with a number where several have it."""
    names: list[str] = []
    for recorded in every:
        name = re.sub(r"[^\w.-]", "_", recorded.kernel.name)
        number, free = 2, f"{name}.html"
        while free.lower() in (known.lower() for known in names):
            number, free = number + 1, f"{name}-{number}.html"
        names.append(free)
    return names
