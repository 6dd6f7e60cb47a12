"""Files that other processes may read while they are written."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from .errors import LaunchTypeError, LaunchValueError


def named(path: Any, function: str, example: str) -> Path:
    """The path of a file that a user names. Raises LaunchTypeError if it is no name, LaunchValueError if it is empty."""
    if not isinstance(path, (str, os.PathLike)):
        raise LaunchTypeError(
            f"[{function}] path must be the name of a file such as '{example}' but is {path!r}."
        )
    if not os.fspath(path):
        raise LaunchValueError(f"[{function}] path is empty: name a file such as '{example}'.")
    return Path(path)


def replace(path: Path, content: bytes) -> None:
    """Writes a file in one step: other processes see what was there, or the new content. Raises OSError, and leaves nothing
    behind then. Who may read it follows from the process's umask, as with any new file.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write(path: Path, content: bytes) -> None:
    """Writes what a user has named, as `replace` does. Raises OSError.

    A symbolic link stays, and its target is written. Devices and pipes, such as /dev/stdout, are written to and not replaced.
    """
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        kind = target.stat().st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        replace(target, content)
    else:
        target.write_bytes(content)


def save(path: Path, content: bytes, function: str) -> None:
    """Writes a file that a user has named, in one step. Raises LaunchValueError if it cannot be written."""
    try:
        write(path, content)
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) else None
        raise LaunchValueError(
            f"[{function}] '{path}' cannot be written: {text or error}."
        ) from error
