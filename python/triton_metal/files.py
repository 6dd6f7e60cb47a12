"""Files that other processes may read while they are written."""

from __future__ import annotations

import os
import secrets
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
    """Writes a file in one step: other processes see what it had, or the new content. Raises OSError, and leaves nothing
    behind then. Who may read it follows from the process's umask, as with any new file.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
