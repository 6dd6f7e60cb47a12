"""Features of a target that cure a defect of Macs and cost time, so that only the Macs with it have them.

``python -m triton_metal doctor --quirks --save`` finds out and remembers it, for this chip and this build of macOS.
The environment variable TRITON_METAL_QUIRKS overrides it: names with commas between them, or "none".
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import _native, files
from ..errors import LaunchValueError
from .target import WITHOUT

#: The features, and what the compiler does on a target with them.
QUIRKS = {
    "volatile_accumulation": "loads from device memory in accumulating loops are volatile",
    "rolled_loops": "loops are not unrolled, except over simdgroup matrices",
    "simdgroup_dots": "dots take simdgroup matrices where the chip has tensor operations, too",
}

_FORMAT = 1


def file() -> Path:
    """The file that remembers the features of this user's Macs."""
    named = os.environ.get("TRITON_METAL_CONFIG_DIR")
    if named:
        return Path(named) / "quirks.json"
    from platformdirs import user_config_path

    return files.user_folder(user_config_path) / "quirks.json"


def machine(chip: str | None, build: str | None) -> str | None:
    """How the file names a Mac: its chip and its build of macOS; None if either is unknown.

    >>> machine("Apple M4 Max", "25F80")
    'Apple M4 Max, 25F80'
    """
    return f"{chip}, {build}" if chip and build else None


def chosen() -> tuple[str, ...] | None:
    """The features that TRITON_METAL_QUIRKS names; None if it is not set."""
    text = os.environ.get("TRITON_METAL_QUIRKS")
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if names in ([], ["none"]):
        return ()
    for name in names:
        if name not in QUIRKS:
            raise LaunchValueError(
                f"TRITON_METAL_QUIRKS names {name!r}; the features are {', '.join(QUIRKS)}, or none"
            )
        if name not in understood():
            raise LaunchValueError(
                f"TRITON_METAL_QUIRKS names {name!r}, which this build's compiler does not have: "
                "build triton_metal anew"
            )
    return tuple(sorted(set(names)))


def saved(key: str | None) -> tuple[str, ...]:
    """The features that the doctor remembered for a Mac. A file that cannot be read remembers nothing."""
    if key is None:
        return ()
    try:
        entry = _read()["machines"][key]
        names = entry["features"]
        return tuple(sorted(name for name in names if name in QUIRKS and name in understood()))
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def save(key: str, features: Iterable[str], results: dict[str, Any]) -> Path:
    """Remembers the features of a Mac, with the probes' results that they follow from."""
    try:
        content = _read()
    except (OSError, ValueError, KeyError, TypeError):
        content = {"format": _FORMAT, "machines": {}}
    content["machines"][key] = {"features": sorted(features), "results": results}
    path = file()
    path.parent.mkdir(parents=True, exist_ok=True)
    files.replace(path, f"{json.dumps(content, indent=2)}\n".encode())
    return path


def _read() -> dict[str, Any]:
    content = json.loads(file().read_text(encoding="utf-8"))
    if content["format"] != _FORMAT or not isinstance(content["machines"], dict):
        raise ValueError("another format")
    return content


def features_of(key: str | None) -> tuple[str, ...]:
    """The features of this Mac: those of the environment, or else the remembered ones."""
    named = chosen()
    return saved(key) if named is None else named


@functools.cache
def understood() -> frozenset[str]:
    """The features that the compiler of this build has."""
    found = set(WITHOUT)
    for name in QUIRKS.keys() - WITHOUT.keys():
        try:
            _native.compile_text(
                "module { tt.func public @k() { tt.return } }",
                "<quirks>",
                1,
                1,
                f"msl=3.2,threads=1024,threadgroup=32768,{name}",
            )
        except ValueError:
            continue
        found.add(name)
    return frozenset(found)
