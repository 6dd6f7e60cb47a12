"""Scaled dots, mxfp4, mxfp8, nvfp4 and 16-bit floats on either side, against NumPy's float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from float8_model import FORMATS

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


@triton.jit
def scaled_kernel(
    a, a_scale, b, b_scale, out, A: tl.constexpr, B: tl.constexpr, SA: tl.constexpr, SB: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AM: tl.constexpr, AK: tl.constexpr,
    BK: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr, FAST: tl.constexpr,
    A_K: tl.constexpr, B_K: tl.constexpr,
):  # fmt: skip
    am, ak, bk, bn = tl.arange(0, AM), tl.arange(0, AK), tl.arange(0, BK), tl.arange(0, BN)
    x = tl.load(a + am[:, None] * AK + ak[None, :])
    y = tl.load(b + bk[:, None] * BN + bn[None, :])
    m, n, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // GROUP)
    if a_scale is not None:
        a_scale = tl.load(a_scale + m[:, None] * (K // GROUP) + g[None, :]).to(SA, bitcast=True)
    if b_scale is not None:
        b_scale = tl.load(b_scale + n[:, None] * (K // GROUP) + g[None, :]).to(SB, bitcast=True)
    acc = tl.full((M, N), 2.0, tl.float32)
    z = tl.dot_scaled(
        x, a_scale, A, y, b_scale, B, acc, fast_math=FAST, lhs_k_pack=A_K, rhs_k_pack=B_K
    )
    tl.store(out + m[:, None] * N + n[None, :], z)


def make_side(
    rng: np.random.Generator, kind: str, rows: int, k: int, packed_along_k: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel takes, and the numbers: a tile of rows x K."""
    if kind == "e2m1":
        code = rng.integers(0, 16, (rows, k), dtype=np.uint8)
        pairs = (code[:, ::2], code[:, 1::2]) if packed_along_k else (code[::2, :], code[1::2, :])
        return pairs[0] | (pairs[1] << 4), E2M1[code]
    if kind in ("e4m3", "e5m2"):
        values = FORMATS["float8e4nv" if kind == "e4m3" else "float8e5"].values()
        code = rng.choice(np.flatnonzero(np.isfinite(values)), (rows, k)).astype(np.uint8)
        return code, values[code]
    element = np.dtype(np.float16 if kind == "fp16" else ml_dtypes.bfloat16)
    numbers = rng.normal(size=(rows, k)).astype(element)
    return numbers, numbers.astype(np.float64)


def make_scale(
    rng: np.random.Generator, kind: str | None, rows: int, groups: int
) -> tuple[np.ndarray | None, np.ndarray]:
    if kind is None:
        return None, np.ones((rows, groups))
    if kind == "uint8":
        code = rng.integers(107, 148, (rows, groups), dtype=np.uint8)
        return code, np.exp2(code.astype(np.float64) - 127)
    values = FORMATS[kind].values()
    code = rng.choice(np.flatnonzero(np.isfinite(values)), (rows, groups)).astype(np.uint8)
    return code, values[code]


def check(
    left: str,
    right: str,
    shape: tuple[int, int, int] = (32, 16, 64),
    left_scale: str | None = "uint8",
    right_scale: str | None = "uint8",
    group: int = 32,
    left_k: bool = True,
    right_k: bool = True,
    nan_at: tuple[int, int] | None = None,
    **options: Any,
) -> None:
    m, n, k = shape
    rng = np.random.default_rng(7)
    a, x = make_side(rng, left, m, k, left_k)
    b, y = make_side(rng, right, n, k, right_k)
    a_scale, xs = make_scale(rng, left_scale, m, k // group)
    b_scale, ys = make_scale(rng, right_scale, n, k // group)
    if nan_at:
        a_scale[nan_at] = 255
        xs[nan_at] = np.nan
    b = np.ascontiguousarray(b.T)
    out = np.zeros((m, n), np.float32)
    fast = options.pop("fast", False)
    types = {"uint8": tl.uint8, None: tl.uint8}
    scaled_kernel[(1,)](
        a, a_scale, b, b_scale, out, A=left, B=right,
        SA=types.get(left_scale) or getattr(tl, left_scale),
        SB=types.get(right_scale) or getattr(tl, right_scale),
        M=m, N=n, K=k, AM=a.shape[0], AK=a.shape[1], BK=b.shape[0], BN=b.shape[1], GROUP=group,
        FAST=fast, A_K=left_k, B_K=right_k, **options,
    )  # fmt: skip
    x = x * np.repeat(xs, group, axis=1)
    y = y * np.repeat(ys, group, axis=1)
    expected = x @ y.T + 2
    # The operands are exact: what is lost are the roundings of a sum in float32.
    bound = (np.abs(x) @ np.abs(y.T) + 2) * (k + 1) * 2.0**-24
    same = np.abs(out - expected) <= bound
    np.testing.assert_array_equal(same | (np.isnan(out) & np.isnan(expected)), True)


KINDS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")


@pytest.mark.parametrize("right", KINDS)
@pytest.mark.parametrize("left", KINDS)
def test_kinds(left: str, right: str) -> None:
    check(left, right)


@pytest.mark.parametrize(
    ("left_scale", "right_scale"), [("uint8", None), (None, "uint8"), (None, None)]
)
@pytest.mark.parametrize("right", ["e5m2", "bf16", "fp16"])
@pytest.mark.parametrize("left", ["e2m1", "e4m3", "fp16"])
def test_missing_scales(
    left: str, right: str, left_scale: str | None, right_scale: str | None
) -> None:
    check(left, right, left_scale=left_scale, right_scale=right_scale)


@pytest.mark.parametrize("scale", ["uint8", "float8e4nv", "float8e5"])
@pytest.mark.parametrize("kind", KINDS)
def test_scales_for_16(kind: str, scale: str) -> None:
    check("e2m1", kind, (16, 32, 64), scale, scale, group=16)


@pytest.mark.parametrize("right_k", [True, False])
@pytest.mark.parametrize("left_k", [True, False])
@pytest.mark.parametrize("shape", [(32, 16, 64), (16, 64, 32), (128, 64, 128)], ids=str)
def test_packed_along_either_dimension(
    shape: tuple[int, int, int], left_k: bool, right_k: bool
) -> None:
    check("e2m1", "e2m1", shape, left_k=left_k, right_k=right_k)


@pytest.mark.parametrize("kind", KINDS)
def test_scale_255_is_nan(kind: str) -> None:
    check(kind, "e4m3", nan_at=(5, 1))


@pytest.mark.parametrize("num_warps", [1, 8])
@pytest.mark.parametrize("fast", [False, True])
def test_options(fast: bool, num_warps: int) -> None:
    check("e4m3", "e2m1", (64, 64, 128), fast=fast, num_warps=num_warps)


@triton.jit
def batch_kernel(a, a_scale, b, out, S: tl.constexpr, K: tl.constexpr):
    batch, i, k = tl.arange(0, 2)[:, None, None], tl.arange(0, S), tl.arange(0, K)
    x = tl.load(a + batch * S * K + i[None, :, None] * K + k[None, None, :])
    y = tl.load(b + batch * S * K + k[None, :, None] * S + i[None, None, :])
    g = tl.arange(0, K // 32)
    scale = tl.load(
        a_scale + batch * S * (K // 32) + i[None, :, None] * (K // 32) + g[None, None, :]
    )
    z = tl.dot_scaled(x, scale, "e5m2", y, None, "bf16", out_dtype=tl.float16)
    tl.store(out + batch * S * S + i[None, :, None] * S + i[None, None, :], z)


def test_batches() -> None:
    rng = np.random.default_rng(8)
    s, k = 16, 64
    a = rng.choice(np.array([0x3C, 0xBC, 0x40, 0x38, 0], np.uint8), (2, s, k))
    b = rng.integers(-2, 3, (2, k, s)).astype(ml_dtypes.bfloat16)
    scale = rng.integers(126, 129, (2, s, k // 32), dtype=np.uint8)
    out = np.zeros((2, s, s), np.float16)
    batch_kernel[(1,)](a, scale, b, out, S=s, K=k)
    x = FORMATS["float8e5"].values()[a] * np.repeat(np.exp2(scale - 127.0), 32, axis=2)
    np.testing.assert_array_equal(out, (x @ b.astype(np.float64)).astype(np.float16))
