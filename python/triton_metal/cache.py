"""The cache of compiled kernels on disk: one file per kernel, safe for concurrent processes.

A launch never fails because of the cache. It compiles what it cannot read, and warns once if it cannot write.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from . import _native, files, knobs
from .errors import CacheWarning

_FORMAT = 2
_FIELDS = ("ttir", "metal", "metadata")


def cache_dir() -> Path:
    """The directory of compiled kernels.

    It is ``knobs.cache.dir`` if a program has set that, or TRITON_METAL_CACHE_DIR, or what Triton's own variables
    TRITON_CACHE_DIR and TRITON_HOME name, or the user's cache directory.
    """
    settings = vars(knobs.cache)
    if "dir" in settings:
        return Path(settings["dir"])
    named = os.environ.get("TRITON_METAL_CACHE_DIR")
    if named:
        return Path(named)
    if "TRITON_CACHE_DIR" in os.environ or "TRITON_HOME" in os.environ or "home_dir" in settings:
        return Path(knobs.cache.dir)
    return _default_cache_dir()


@functools.cache
def _default_cache_dir() -> Path:
    from platformdirs import user_cache_path

    return files.user_folder(user_cache_path)


@functools.cache
def build_id() -> str:
    """Identifies this build. It changes with the library and with the Python files of this package and of its
    backend for stock Triton.
    """
    # A process that stresses the compiler (compiler/transforms/Pipelines.h) has its own entries.
    stress = os.environ.get("TRITON_METAL_STRESS", "")
    hasher = hashlib.sha256(f"{_FORMAT} {sys.version} {platform.machine()} {stress}".encode())
    package = Path(__file__).parent
    for folder in (package, package.with_name("triton_metal_backend")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".so", ".dylib", ".pyd"):
                stat = path.stat()
                entry = f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}\n"
                hasher.update(os.fsencode(entry))
    return hasher.hexdigest()


def key_of(*parts: str) -> str:
    """The name of an entry: a digest of everything that the compiled kernel depends on."""
    return hashlib.sha256("\0".join((build_id(), *parts)).encode()).hexdigest()


def _digest(entry: dict[str, Any]) -> str:
    text = json.dumps([entry[field] for field in _FIELDS])
    return hashlib.sha256(text.encode()).hexdigest()


def load(key: str) -> dict[str, str] | None:
    """The entry with this key; None if there is none or if it is damaged."""
    try:
        entry = json.loads(files.read(cache_dir() / f"{key}.json"))
        if entry["key"] != key or entry["digest"] != _digest(entry):
            return None
        return {field: entry[field] for field in _FIELDS}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def store(key: str, fields: dict[str, str]) -> None:
    """Writes an entry atomically."""
    directory = cache_dir()
    entry: dict[str, Any] = {"key": key, **fields}
    entry["digest"] = _digest(entry)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        files.replace(directory / f"{key}.json", json.dumps(entry).encode())
    except (OSError, ValueError) as error:
        warn(directory, getattr(error, "strerror", None) or str(error))


_warned = False


def warn(directory: Path, problem: str) -> None:
    """Warns, once per process, that kernels are not kept."""
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        f"the cache directory {directory} cannot be written ({problem}): compiled kernels are only kept in memory. "
        "Set another directory with the environment variable TRITON_METAL_CACHE_DIR",
        CacheWarning,
        stacklevel=2,
    )


def device_dir() -> str:
    """The directory for code that the host device compiles; empty, with a warning, if it cannot be written."""
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
    """Tells the host device where to keep the code that it compiles."""
    global _host_device_dir
    wanted = str(cache_dir())
    if wanted != _host_device_dir:
        _native.configure_device(device_dir())
        _host_device_dir = wanted
