"""examples/matmul.py against NumPy in float64, and its counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_support import assert_within, dtype, needs_counters, normal, torch_or_skip

from _counts import counting  # isort: skip
from matmul import (
    TILES,
    error_bound,
    least_device_bytes,
    least_multiplies,
    matmul,
    random_matrix,
    reference,
)  # isort: skip

DTYPES = ("float16", "bfloat16", "float32", "int8")
SHAPES = [
    (1, 1, 1),
    (16, 16, 16),
    (64, 64, 32),
    (65, 63, 33),
    (128, 192, 96),
    (200, 17, 100),
    (3, 130, 70),
]


def operands(m: int, n: int, k: int, name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    dtype(name)
    rng = np.random.default_rng(seed)
    return random_matrix(rng, (m, k), name), random_matrix(rng, (k, n), name)


def check(a: Any, b: Any, bias: Any = None, activation: str = "", **options: Any) -> None:
    expected = reference(a, b, bias, activation)
    assert_within(
        matmul(a, b, bias, activation, **options), expected, error_bound(a, b, expected, bias)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("name", DTYPES)
def test_shapes_and_dtypes(name: str, shape: tuple[int, int, int]) -> None:
    check(*operands(*shape, name))


@pytest.mark.parametrize(
    "tile",
    [*TILES, (16, 16, 16, 1), (256, 16, 16, 4), (16, 256, 32, 8), (128, 128, 64, 16)],
    ids=str,
)
@pytest.mark.parametrize("name", ["float16", "float32", "int8"])
def test_tiles_and_warps(name: str, tile: tuple[int, int, int, int]) -> None:
    check(*operands(150, 140, 90, name), tile=tile[:3], num_warps=tile[3])


@pytest.mark.parametrize("num_stages", [1, 2, 3])
@pytest.mark.parametrize("name", ["float16", "float32"])
def test_stages(name: str, num_stages: int) -> None:
    check(*operands(130, 70, 200, name), num_stages=num_stages)


@pytest.mark.parametrize("transposed", ["a", "b", "ab"])
@pytest.mark.parametrize("name", DTYPES)
def test_transposed_operands(name: str, transposed: str) -> None:
    a, b = operands(70, 90, 110, name)
    if "a" in transposed:
        a = np.ascontiguousarray(a.T).T
    if "b" in transposed:
        b = np.ascontiguousarray(b.T).T
    check(a, b)


@pytest.mark.parametrize("name", DTYPES)
def test_strided_and_reversed_operands(name: str) -> None:
    a, b = operands(140, 210, 100, name)
    check(a[::2, ::2], b[::2, 1::3])
    check(a[::-1, ::-1], b[::-1, ::-1])


def test_strided_result() -> None:
    a, b = operands(70, 50, 40, "float32")
    for out in (np.full((50, 70), -1, np.float32).T, np.full((140, 150), -1, np.float32)[::2, ::3]):
        expected = reference(a, b)
        assert_within(matmul(a, b, out=out), expected, error_bound(a, b, expected))
    assert (out.base.reshape(140, 150)[1::2] == -1).all()


@pytest.mark.parametrize("activation", ["", "relu", "leaky_relu"])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_epilogue(name: str, activation: str) -> None:
    a, b = operands(90, 75, 64, name)
    check(a, b, normal(np.random.default_rng(1), 75, name), activation)


def test_integer_bias() -> None:
    a, b = operands(33, 40, 50, "int8")
    check(a, b, np.arange(-20, 20, dtype=np.int32) * 1000)


def test_int8_sums_beyond_what_fp32_holds() -> None:
    a, b = np.full((16, 4000), -128, np.int8), np.full((4000, 16), -128, np.int8)
    a[:, ::3] = 127
    np.testing.assert_array_equal(matmul(a, b), a.astype(np.int64) @ b.astype(np.int64))


def test_special_values_reach_only_their_row_and_column() -> None:
    a, b = operands(64, 64, 64, "float32")
    a[3, 5], a[10, 60], b[7, 9] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    actual = matmul(a, b)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(actual), np.isposinf(expected))
    np.testing.assert_array_equal(np.isneginf(actual), np.isneginf(expected))


def test_shapes_that_do_not_fit_are_refused() -> None:
    a, b = operands(4, 4, 4, "float32")
    with pytest.raises(ValueError, match="a's columns must be b's rows"):
        matmul(a, b[:3])


def test_torch() -> None:
    torch = torch_or_skip()
    generator = torch.Generator().manual_seed(0)
    a, b = (
        torch.randn(50, 60, generator=generator).bfloat16(),
        torch.randn(70, 60, generator=generator).bfloat16().T,
    )
    check(a, b, torch.randn(70, generator=generator).bfloat16(), "leaky_relu")


@needs_counters
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(256, 128, 128), (250, 100, 130)], ids=["aligned", "masked"])
@pytest.mark.own_target
def test_counts(name: str, shape: tuple[int, int, int]) -> None:
    a, b = operands(*shape, name)
    steps = -(-shape[2] // 32)
    for num_stages, most_bytes, barriers in ((1, 10 * 1024, 2), (2, 20 * 1024, 1)):
        with counting() as counts:
            c = matmul(a, b, tile=(64, 64, 32), num_warps=4, num_stages=num_stages)
        assert counts.multiplies == least_multiplies(a, b, (64, 64, 32))
        assert counts.multiplies == counts.programs * steps * 256
        assert counts.device_bytes == least_device_bytes(a, b, c, (64, 64, 32))
        if name != "float32":
            assert counts.threadgroup_bytes <= most_bytes
        # Two slots of float32 tiles, 35 KB, do not fit: they stay single-buffered.
        if name == "float32":
            barriers = 2
        # Operands of 18 KB and more go in two slices along K, so that a core holds more threads.
        slices = 2 if name == "float32" or num_stages == 2 else 1
        # One more: when it is double-buffered before the loop, to hand over the first tiles, and
        # otherwise behind the last step.
        assert counts.barriers_per_program <= barriers * steps * slices + 1
        assert counts.private_bytes == 0
        assert counts.scalar_multiply_adds == 0
        assert (
            counts.counters["f32_mul"] + counts.counters["f16_mul"] + counts.counters["bf16_mul"]
            == 0
        )
