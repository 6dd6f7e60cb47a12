"""Compiled kernels on disk: one file a kernel, safe under many processes.

A launch never fails for the cache: what cannot be read is compiled, and what cannot be kept is told once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import stat
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from . import _native
from .errors import CacheWarning

_FORMAT = 1
_FIELDS = ("ttir", "ttm", "msl", "metal", "metadata")


def cache_dir() -> Path:
    """Where compiled kernels are kept: TRITON_METAL_CACHE_DIR, or the user's cache directory."""
    named = os.environ.get("TRITON_METAL_CACHE_DIR")
    if named:
        return Path(named)
    return _default_cache_dir()


@functools.cache
def _default_cache_dir() -> Path:
    from platformdirs import user_cache_path

    path = user_cache_path("triton-metal", appauthor=False)
    # Where nobody knows a home, "~" stays: that would be a folder of this name, wherever the process is.
    return (
        path if path.is_absolute() else Path(tempfile.gettempdir()) / f"triton-metal-{os.getuid()}"
    )


@functools.cache
def build_id() -> str:
    """Names this build: any change of the library or of this package's Python makes it another."""
    hasher = hashlib.sha256(f"{_FORMAT} {sys.version} {platform.machine()}".encode())
    package = Path(__file__).parent
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".so", ".dylib", ".pyd"):
            stat = path.stat()
            entry = f"{path.relative_to(package)} {stat.st_size} {stat.st_mtime_ns}\n"
            hasher.update(entry.encode())
    return hasher.hexdigest()


def key_of(*parts: str) -> str:
    """The name of an entry: a digest of everything that the compiled kernel depends on."""
    return hashlib.sha256("\0".join((build_id(), *parts)).encode()).hexdigest()


def _digest(entry: dict[str, Any]) -> str:
    text = json.dumps([entry[field] for field in _FIELDS])
    return hashlib.sha256(text.encode()).hexdigest()


def load(key: str) -> dict[str, str] | None:
    """The entry of that name; None where there is none, or where it is damaged."""
    try:
        # Not to wait for whoever writes into a pipe of that name.
        descriptor = os.open(cache_dir() / f"{key}.json", os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            entry = json.load(file)
        if entry["key"] != key or entry["digest"] != _digest(entry):
            return None
        return {field: entry[field] for field in _FIELDS}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def store(key: str, fields: dict[str, str]) -> None:
    """Writes an entry as a whole, or not at all."""
    directory = cache_dir()
    entry: dict[str, Any] = {"key": key, **fields}
    entry["digest"] = _digest(entry)
    temporary = None
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(entry, file)
        os.replace(temporary, directory / f"{key}.json")
    except (OSError, ValueError) as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        warn(directory, getattr(error, "strerror", None) or str(error))


_warned = False


def warn(directory: Path, problem: str) -> None:
    """Tells, once in a process, that kernels are not kept."""
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        f"the cache directory {directory} cannot be written ({problem}): compiled kernels are kept in memory only. "
        "Name another directory in the environment variable TRITON_METAL_CACHE_DIR",
        CacheWarning,
        stacklevel=2,
    )


def device_dir() -> str:
    """Where the host device may keep what it compiles; empty, with a warning, where nothing can be kept."""
    directory = cache_dir() / "device"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except (OSError, ValueError) as error:
        warn(cache_dir(), getattr(error, "strerror", None) or str(error))
        return ""
    return str(directory)


_host_device_dir: str | None = None


def configure_host_device() -> None:
    """Tells the host device where it may keep what it compiles."""
    global _host_device_dir
    wanted = str(cache_dir())
    if wanted != _host_device_dir:
        _native.configure_device(device_dir())
        _host_device_dir = wanted
