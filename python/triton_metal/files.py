"""Files that other processes may read while they are written."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Mapping
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


def user_folder(find: Callable[..., Path]) -> Path:
    """This project's folder of a kind that `platformdirs` knows: ``find`` is its function.

    It is in the folder for temporary files for a user without a home.
    """
    try:
        path = find("triton-metal", appauthor=False)
    except RuntimeError:  # of pathlib, as platformdirs asks it for the home
        path = None
    # Or else "~" stays as it is, and the path would depend on the current folder.
    if path is None or not path.is_absolute():
        return Path(tempfile.gettempdir()) / f"triton-metal-{os.getuid()}"
    return path


def replace(path: Path, content: bytes) -> None:
    """Writes a file in one step: other processes see what was there, or the new content. Raises OSError, and leaves nothing
    behind then. Who may read it follows from the process's umask, as with any new file.
    """
    replace_all({path: content})


def replace_all(contents: Mapping[Path, bytes]) -> None:
    """Writes files as `replace` does. None is replaced before all are written."""
    temporaries: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
                temporaries[path] = temporary
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
            except OSError as error:
                raise type(error)(error.errno, error.strerror, str(path)) from None
        for path, temporary in temporaries.items():
            os.replace(temporary, path)
    except BaseException:
        for temporary in temporaries.values():
            temporary.unlink(missing_ok=True)
        raise


def read(path: Path) -> str:
    """The text of a file. Raises OSError, also for a pipe or a device, which may have no end, and UnicodeDecodeError."""
    # O_NONBLOCK: do not wait for a writer if a pipe has this name.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, encoding="utf-8") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return file.read()


def target_of(path: Path) -> Path:
    """Where a file is that a user has named: where a symbolic link points to, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def write(path: Path, content: bytes) -> None:
    """Writes what a user has named, as `replace` does. Raises OSError.

    A symbolic link stays, and its target is written. Devices and pipes, such as /dev/stdout, are written to and not replaced.
    """
    target = target_of(path)
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
