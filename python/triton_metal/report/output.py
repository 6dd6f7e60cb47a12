"""Where pages go: checked before anything runs, and written in one step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import LaunchValueError
from ..files import named, save


def checked_path(path: Any) -> Path:
    """The file to write. Raises LaunchValueError if it cannot be one."""
    target = named(path, "report", "kernel.html")
    try:
        # Says of a name that no file can have what is wrong with it, which is_dir does not say of all.
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise LaunchValueError(
            f"[report] path {os.fspath(path)!r} cannot be the name of a file: {text}."
        ) from error
    if target.is_dir():
        raise LaunchValueError(f"[report] path must be a file but '{target}' is a directory.")
    if not target.parent.is_dir():
        raise LaunchValueError(
            f"[report] path is '{target}', and there is no folder '{target.parent}': create it first."
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise LaunchValueError(
            f"[report] path is '{target}', and the folder '{target.parent}' cannot be written to."
        )
    return target


def write(path: Path, page: str) -> None:
    """Writes a page in one step. Raises LaunchValueError, and leaves what was there."""
    save(path, page.encode(), "report")
