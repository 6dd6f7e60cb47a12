"""The processors that the host device compiles for in tests: the host's own, and with and without AVX-512."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from triton_metal import _native

VARIABLE = "TRITON_METAL_HOST_CPU"


@contextmanager
def compiled_for(processor: str | None) -> Iterator[None]:
    """What is launched for the first time in here is compiled for that processor (None: as outside).

    A kernel that has been launched already stays what it is.
    """
    before = os.environ.get(VARIABLE)
    if processor is not None:
        os.environ[VARIABLE] = processor
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
        else:
            os.environ.pop(VARIABLE, None)


@cache
def host_processors() -> list[str | None]:
    """None for the host's own, and those of x86-64-v3 and x86-64-v4 that it can run."""
    found: list[str | None] = [None]
    for name in ("x86-64-v3", "x86-64-v4"):
        with compiled_for(name):
            try:
                _native.MetalLibrary("kernel void nothing() {}")
            except ValueError:
                continue
        found.append(name)
    return found
