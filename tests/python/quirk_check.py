"""Scans every Metal text that the suite makes for what Apple's compilers and GPUs are known to get wrong.

A finding fails the test that made the text. What may stay is listed here with its reason. Texts are scanned once: the
findings are kept beside the kernels that the suite caches, by the text and the scanner's version.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Rows and kinds of findings that may stay, and why.
MAY_STAY = {
    (
        11,
        "unproven",
    ): "texts for Apple10 have cooperative tensors; they are compiled where macOS is 26.2 or later",
    (4, "costly"): "a volatile read costs up to half of the speed; it is a feature of the target",
    (
        17,
        "unproven",
    ): "the compiler has proven ranges that the text does not show; portable launches find overflow",
}

_new: list[str] = []
_known: set[str] = set()


def _record(text: str) -> None:
    if text and text not in _known:
        _known.add(text)
        _new.append(text)


def _wrapped(function: Callable[..., Any], text_of: Callable[[Any], str]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        _record(text_of(result))
        return result

    return call


def install() -> None:
    """Records the texts of all kernels, also of those that come from the cache, and of the frameworks' routes."""
    from triton_metal import _native, launcher
    from triton_metal.testing import metal_kernel

    if importlib.util.find_spec("triton_metal_host") is None:
        return
    launcher.Launcher.compile = _wrapped(  # type: ignore[method-assign]
        launcher.Launcher.compile,
        lambda made: "" if made is None else made.asm["metal"],  # a hook may decline a kernel
    )
    _native.compile_text = _wrapped(_native.compile_text, lambda made: made.metal)
    library = metal_kernel._library

    def recorded(text: str) -> Any:
        if (
            "#pragma METAL fp" in text or "#pragma STDC FP_CONTRACT" in text
        ):  # written by this compiler
            _record(metal_kernel.mlx_utilities() + text)
        return library(text)

    metal_kernel._library = recorded  # type: ignore[assignment]


def _store() -> Path | None:
    folder = os.environ.get("TRITON_METAL_CACHE_DIR")
    return Path(folder) / "quirks" if folder else None


def findings(text: str) -> list[dict[str, Any]]:
    """The findings in a text that the suite has made; from the store, if it has been scanned before."""
    from triton_metal.testing.quirks import scanner_version
    from triton_metal_host import find_quirks

    # Below Metal 3.2 there is no pragma, and the frameworks set the safe mode.
    safe = "#pragma STDC FP_CONTRACT OFF" in text
    store = _store()
    digest = hashlib.sha256(f"{scanner_version()}\n{safe}\n{text}".encode()).hexdigest()
    path = store / digest[:2] / digest if store else None
    if path is not None:
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            pass
    found = json.loads(find_quirks(text, "kernel.metal", safe))
    if isinstance(found, dict):
        raise ValueError(found["error"])
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        partial.write_text(json.dumps(found))
        partial.replace(path)
    return found


def check(report: str | None, test: str) -> None:
    """Fails the test that made a text with a finding that may not stay. ``report`` names a file for all findings."""
    while _new:
        text = _new.pop()
        found = findings(text)
        if report and found:
            with Path(report).open("a") as file:
                file.writelines(
                    json.dumps({**hit, "test": test, "text": text.splitlines()[hit["line"] - 1]})
                    + "\n"
                    for hit in found
                )
        bad = [hit for hit in found if (hit["row"], hit["kind"]) not in MAY_STAY]
        if bad:
            lines = text.splitlines()
            places = "\n".join(
                f"line {hit['line']}: row {hit['row']} ({hit['name']}): {hit['message']}\n"
                f"    {lines[hit['line'] - 1].strip()}"
                for hit in bad
            )
            pytest.fail(f"the Metal text has what Apple gets wrong:\n{places}", pytrace=False)
