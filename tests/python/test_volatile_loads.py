"""A volatile load reads memory each time that it is executed, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import FLOATS, INTEGERS, assert_same, dtype, needs_counters, tl, triton


@triton.jit
def twice(x_ptr, out_ptr, n, N: tl.constexpr, VOLATILE: tl.constexpr):
    i = tl.arange(0, N)
    first = tl.load(x_ptr + i, mask=i < n, other=1, volatile=VOLATILE)
    second = tl.load(x_ptr + i, mask=i < n, other=2, volatile=VOLATILE)
    scalar = tl.load(x_ptr, volatile=VOLATILE)
    tl.store(out_ptr + i, first)
    tl.store(out_ptr + N + i, second)
    tl.store(out_ptr + 2 * N + i, scalar + tl.zeros((N,), scalar.dtype))


@pytest.mark.parametrize("size", [16, 128, 1024])
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
def test_volatile_loads_of_every_type(name: str, size: int) -> None:
    x = (np.arange(size) % 100 + 1).astype(bool if name == "bool" else dtype(name))
    out = np.zeros((3, size), x.dtype)
    twice[(1,)](x, out, size - 3, N=size, VOLATILE=True)
    expected = np.stack([x, x, np.full(size, x[0])])
    expected[0, -3:], expected[1, -3:] = 1, 2
    assert_same(out, expected)


@needs_counters
def test_volatile_loads_are_neither_merged_nor_widened() -> None:
    x, out = np.arange(1024, dtype=np.float32), np.zeros((3, 1024), np.float32)
    texts, bytes_read = {}, {}
    for volatile in (False, True):
        with triton.launch_options(count=True) as log:
            kernel = twice[(1,)](x, out, 1024, N=1024, VOLATILE=volatile)
        texts[volatile] = kernel.asm["metal"]
        bytes_read[volatile] = log.launches[0].counters["device_bytes_read"]
    assert "volatile" not in texts[False]
    assert "*(volatile device const float *)" in texts[True]
    assert "float4" not in texts[True].split("volatile")[1]
    # Every one of 128 threads reads the scalar.
    assert bytes_read[True] == 2 * 4096 + 128 * 4


@triton.jit
def unread(x_ptr, out_ptr):
    tl.load(x_ptr + tl.arange(0, 32), volatile=True)
    for _ in range(3):
        tl.load(x_ptr, volatile=True)
    tl.store(out_ptr, 1.0)


@needs_counters
def test_volatile_loads_that_nothing_uses_are_kept() -> None:
    x, out = np.ones(32, np.float32), np.zeros(1, np.float32)
    with triton.launch_options(count=True) as log:
        unread[(1,)](x, out, num_warps=1)
    assert log.launches[0].counters["device_bytes_read"] == 32 * 4 + 3 * 32 * 4
