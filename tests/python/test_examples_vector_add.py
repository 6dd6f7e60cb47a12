"""examples/vector_add.py against NumPy, and its counts."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import (
    FLOATS,
    INTEGERS,
    assert_same,
    dtype,
    needs_counters,
    numbers,
    torch_or_skip,
)

from _counts import counting  # isort: skip
from vector_add import add, least_device_bytes  # isort: skip


@pytest.mark.parametrize("n", [1, 2, 31, 33, 1023, 1024, 1025, 98_432])
@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_every_dtype_and_size(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = numbers(rng, n, name), numbers(rng, n, name)
    assert_same(add(x, y), x + y)


@pytest.mark.parametrize(
    ("block", "num_warps"), [(1, 1), (2, 4), (16, 4), (32, 1), (256, 8), (2048, 16), (131_072, 32)]
)
def test_blocks_and_warps(block: int, num_warps: int) -> None:
    rng = np.random.default_rng(block)
    x, y = numbers(rng, 3001, "float32"), numbers(rng, 3001, "float32")
    assert_same(add(x, y, block=block, num_warps=num_warps), x + y)


@pytest.mark.parametrize("name", FLOATS)
def test_special_values(name: str) -> None:
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-7, 65504.0, 3.0e38], np.float32
    )
    with np.errstate(all="ignore"):
        values = special.astype(dtype(name))
        x, y = (grid.ravel().copy() for grid in np.meshgrid(values, values))
        expected = x + y
    assert_same(add(x, y), expected)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_unaligned_input(offset: int) -> None:
    rng = np.random.default_rng(offset)
    x, y = numbers(rng, 5000, "float32")[offset:], numbers(rng, 5000, "float32")[offset:]
    assert_same(add(x, y), x + y)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int32"])
def test_torch_tensors(name: str) -> None:
    torch = torch_or_skip()
    x, y = (
        torch.arange(777, dtype=torch.float32).sub(300).to(getattr(torch, name)) for _ in range(2)
    )
    out = add(x, y)
    assert isinstance(out, torch.Tensor)
    assert torch.equal(out, x + y)


@needs_counters
@pytest.mark.parametrize("name", FLOATS)
def test_counts(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = numbers(rng, 64 * 1024, name), numbers(rng, 64 * 1024, name)
    with counting() as counts:
        add(x, y)
    assert counts.device_bytes == least_device_bytes(x)
    assert counts.barriers == 0
    assert counts.private_bytes == 0
    # 16 bytes in every access: three of them for 16 bytes of the result.
    assert counts.device_accesses * 16 == counts.device_bytes
