"""What the commands of this package print: the files that they have written, or why there are none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .. import files


def write_files(texts: Mapping[Path, str]) -> None:
    """Writes files, all or none; symbolic links stay. Raises ValueError where one cannot be written."""
    try:
        files.replace_all({files.target_of(path): text.encode() for path, text in texts.items()})
    except OSError as error:
        path = error.filename or next(iter(texts))
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from None


def print_written(
    program: str, write: Callable[[], Iterable[Path]], *refusals: type[Exception]
) -> int:
    """Writes files and prints their names, or the message of a refusal. The result is the exit status."""
    try:
        paths = write()
    except refusals as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    print("\n".join(map(str, paths)))
    return 0
