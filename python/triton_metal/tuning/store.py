"""Results on disk: one file for each kernel, key, device and build, safe for concurrent processes."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

from .. import cache
from ..errors import CacheWarning, LaunchValueError
from ..files import read as read_text
from . import files
from .rows import Tuning, shown_key


def name_of(*parts: str) -> str:
    """The name of a file of results; the build of this package is in it."""
    return f"{cache.key_of('autotune', *parts)}.autotune.json"


def load(name: str, kernel: str, arg_names: Sequence[str], key: tuple[Any, ...]) -> Tuning | None:
    """The results of an earlier search; None if there are none, or, with a warning, if the file is damaged."""
    path = cache.cache_dir() / name
    try:
        text = read_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        return warn_damaged(f"{path}: {error}")
    try:
        found = files.decode(text, str(path), kernel, arg_names, "cache")
    except LaunchValueError as error:
        return warn_damaged(str(error))
    for shown, tuning in found:
        if shown == shown_key(key):
            return dataclasses.replace(tuning, key=key)
    return warn_damaged(f"{path} holds no results for the key {key}")


def warn_damaged(problem: str) -> None:
    """Says that results are not taken."""
    warnings.warn(
        f"results of autotune in the cache are ignored, and the search is made again: {problem}",
        CacheWarning,
        stacklevel=2,
    )


def store(name: str, kernel: str, tuning: Tuning) -> None:
    """Keeps the results of a search. Results that a file cannot hold stay in memory."""
    directory = cache.cache_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        files.write(directory / name, kernel, [tuning])
    except LaunchValueError:
        return  # a value that JSON does not have
    except OSError as error:
        cache.warn(directory, error.strerror or str(error))
