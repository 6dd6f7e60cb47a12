"""Metal texts on the host device with check="portable"."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from triton_metal import _native

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"


def launch(
    body: str,
    seed: int = 1,
    grid: int = 64,
    group: int = 64,
    outputs: Sequence[np.ndarray] | None = None,
    number: int = 0,
    before: str = "",
) -> str | None:
    """Runs a kernel with `device int *out`, `device float *x`, `constant int &n` and the thread's positions: the error
    of the launch, or None.

    `i` is the position in the grid, `t` that in the threadgroup, `l` the lane, `g` the threadgroup.
    """
    text = (
        f"{HEADER}{before}\nkernel void k(device int *out [[buffer(0)]], device float *x [[buffer(1)]], "
        "constant int &n [[buffer(2)]], uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]], "
        f"uint l [[thread_index_in_simdgroup]], uint g [[threadgroup_position_in_grid]]) {{\n{body}\n}}\n"
    )
    library = _native.MetalLibrary(text, portable=True)
    arrays = list(outputs or (np.zeros(grid, np.int32), np.zeros(grid, np.float32)))
    arrays.append(np.array([number], np.int32))
    bindings = [(a.ctypes.data, a.nbytes, index < 2) for index, a in enumerate(arrays)]
    try:
        library.dispatch("k", bindings, (grid, 1, 1), (group, 1, 1), portable_seed=seed)
    except (ValueError, RuntimeError) as error:
        return str(error)
    return None


def reported_line(message: str) -> int:
    match = re.match(r"kernel 'k', line (\d+):\d+: ", message)
    assert match, message
    return int(match[1])


def line_of(body: str, mark: str, before: str = "") -> int:
    """The line of the whole text in which the body has a mark."""
    first = (HEADER + before + "\n").count("\n") + 2
    lines = [number for number, line in enumerate(body.split("\n")) if mark in line]
    assert len(lines) == 1, f"{mark!r} marks {len(lines)} lines"
    return first + lines[0]
