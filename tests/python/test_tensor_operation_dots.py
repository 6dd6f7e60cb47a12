"""Dots for Apple10 and Metal 4: tensor operations on fragments that threads load for themselves, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from triton_metal.devices.target import APPLE10

from host_target import host_target
from kernel_support import assert_same, assert_within, dtype, tl, triton

# The target is the host device's.
pytestmark = [pytest.mark.own_target, pytest.mark.own_route]

ONE_PRODUCT = "multiply_16x32x16<"


@pytest.fixture(autouse=True)
def _apple10() -> Iterator[None]:
    with host_target(APPLE10):
        yield


def small(shape: tuple[int, ...], name: str, seed: int = 0) -> np.ndarray:
    """Small integers, whose products and sums are exact in every type."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype(name))


@triton.jit
def gemm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    OUT: tl.constexpr,
    PRECISION: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    terms = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), OUT)
    for first in range(0, k, BLOCK_K):
        inside = first + terms < k
        a_at = rows[:, None] * stride_am + (first + terms)[None, :] * stride_ak
        b_at = (first + terms)[:, None] * stride_bk + cols[None, :] * stride_bn
        a = tl.load(a_ptr + a_at, mask=(rows[:, None] < m) & inside[None, :], other=0)
        b = tl.load(b_ptr + b_at, mask=inside[:, None] & (cols[None, :] < n), other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=OUT)
    at = rows[:, None] * n + cols[None, :]
    tl.store(c_ptr + at, acc, mask=(rows[:, None] < m) & (cols[None, :] < n))


def gemm(
    name: str,
    size: tuple[int, int, int],
    block: tuple[int, int, int],
    transposed: tuple[bool, bool] = (False, False),
    out: tl.constexpr = tl.float32,
    precision: str = "ieee",
    **options: int,
) -> str:
    """Multiplies, compares with NumPy and gives the text."""
    m, n, k = size
    a, b = small((m, k), name, 1), small((k, n), name, 2)
    held = [np.ascontiguousarray(x.T if t else x) for x, t in zip((a, b), transposed, strict=True)]
    strides = [1, m] if transposed[0] else [k, 1]
    strides += [1, k] if transposed[1] else [n, 1]
    kind = {tl.float32: np.float32, tl.float16: np.float16, tl.int32: np.int32}[out]
    c = np.full((m, n), 77, kind)
    grid = (triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))
    made = gemm_kernel[grid](
        *held, c, m, n, k, *strides, *block, OUT=out, PRECISION=precision, **options
    )
    assert_same(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(kind))
    return made.asm["metal"]


@pytest.mark.parametrize("num_stages", [1, 2])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("size", [(64, 64, 64), (100, 75, 50)])
def test_operands_are_loaded_into_fragments(
    size: tuple[int, int, int], transposed: tuple[bool, bool], num_stages: int
) -> None:
    text = gemm("float16", size, (64, 64, 32), transposed, num_stages=num_stages, num_warps=4)
    flags = ", ".join("true" if flag else "false" for flag in transposed)
    assert f"{ONE_PRODUCT}{flags}, false>" in text
    # No operand waits in threadgroup memory, and so no thread waits for another one. Where rows of C begin anywhere, the
    # sums change threads before they are stored.
    assert "threadgroup half" not in text
    last_product = text.rindex(ONE_PRODUCT)
    assert "threadgroup_barrier" not in text[: last_product if size[0] == 100 else len(text)]
    if size[0] == 64:
        assert text.count("(device const half4 *)") >= 2


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "block", [(16, 32, 16), (32, 32, 64), (16, 128, 32), (128, 32, 16), (128, 64, 64)]
)
def test_blocks(block: tuple[int, int, int], num_warps: int) -> None:
    assert ONE_PRODUCT in gemm("bfloat16", (130, 140, 70), block, num_warps=num_warps)


@pytest.mark.parametrize("block", [(16, 16, 16), (64, 16, 32), (8, 64, 16)])
def test_small_blocks_take_simdgroup_matrices(block: tuple[int, int, int]) -> None:
    text = gemm("float16", (70, 60, 40), block)
    assert ONE_PRODUCT not in text
    assert "simdgroup_multiply_accumulate" in text


def test_int8_is_multiplied_as_half() -> None:
    assert ONE_PRODUCT in gemm("int8", (90, 80, 70), (64, 64, 32), (False, True), tl.int32)


def test_accumulators_of_half() -> None:
    assert ONE_PRODUCT in gemm("float16", (90, 80, 70), (64, 64, 32), out=tl.float16)


def test_fp32_is_relaxed_only_where_the_kernel_allows_it() -> None:
    assert "simdgroup_multiply_accumulate" in gemm("float32", (90, 80, 70), (64, 64, 32))
    assert f"{ONE_PRODUCT}false, false, true>" in gemm(
        "float32", (90, 80, 70), (64, 64, 32), precision="tf32"
    )
    assert ONE_PRODUCT not in gemm("float32", (90, 80, 70), (64, 64, 32), precision="tf32x3")


@triton.jit
def float8_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c_ptr + at, tl.dot(tl.load(a_ptr + at), tl.trans(tl.load(b_ptr + at))))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_is_converted(name: str) -> None:
    a, b = small((64, 64), name, 3), small((64, 64), name, 4)
    c = np.empty((64, 64), np.float32)
    made = float8_kernel[(1,)](a, b, c, N=64)
    assert f"{ONE_PRODUCT}false, true, false>" in made.asm["metal"]
    assert_same(c, a.astype(np.float32) @ b.astype(np.float32).T)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d, keys = tl.arange(0, D), tl.arange(0, N)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=rows[:, None] < n, other=0.0)
    best = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for first in range(0, n, N):
        inside = first + keys < n
        at = (first + keys)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(q, tl.trans(k)), -float("inf"))
        higher = tl.maximum(best, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        fade = tl.exp(best - higher)
        total = total * fade + tl.sum(weights, 1)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * fade[:, None])
        best = higher
    tl.store(out_ptr + rows[:, None] * D + d[None, :], acc / total[:, None], mask=rows[:, None] < n)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(("n", "head"), [(128, 64), (100, 64), (65, 128)])
def test_attention_needs_no_threadgroup_memory(
    n: int, head: int, name: str, num_warps: int
) -> None:
    rng = np.random.default_rng(n)
    q, k, v = (rng.standard_normal((n, head)).astype(dtype(name)) for _ in range(3))
    q = (q.astype(np.float32) / head**0.5).astype(dtype(name))
    out = np.empty((n, head), np.float32)
    made = attention_kernel[(triton.cdiv(n, 64),)](
        q, k, v, out, n, M=64, N=32, D=head, num_warps=num_warps
    )
    text = made.asm["metal"]
    # The weights are where the second product takes them: no number changes its thread but in sums over rows.
    assert "threadgroup_barrier" not in text
    assert f"{ONE_PRODUCT}false, true, false>" in text
    assert f"{ONE_PRODUCT}false, false, false>" in text
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    rounding = 2.0**-8 if name == "bfloat16" else 2.0**-11
    bound = 2 * rounding * (weights @ np.abs(v.astype(np.float64))) + 1e-5
    assert_within(out, weights @ v.astype(np.float64), bound)


@triton.jit
def epilogue_kernel(a_ptr, b_ptr, bias_ptr, c_ptr, most_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    # A sum before the product, a product twice, and what is computed of both.
    a = tl.load(a_ptr + at) + tl.load(bias_ptr + j)[None, :]
    b = tl.load(b_ptr + at)
    first = tl.dot(a, b)
    second = tl.dot(tl.trans(a), b)
    result = tl.where(first > second, first, 2.0 * second) + tl.load(bias_ptr + i)[:, None]
    tl.store(c_ptr + at, result)
    tl.store(most_ptr + j, tl.max(result, 0))


def test_operands_of_several_products() -> None:
    a, b, bias = (
        small((64, 64), "float16", 5),
        small((64, 64), "float16", 6),
        small((64,), "float16", 7),
    )
    c, most = np.empty((64, 64), np.float32), np.empty(64, np.float32)
    epilogue_kernel[(1,)](a, b, bias, c, most, N=64, num_warps=4)
    left = (a + bias[None, :]).astype(np.float32)
    first, second = left @ b.astype(np.float32), left.T @ b.astype(np.float32)
    expected = np.where(first > second, first, 2 * second) + bias[:, None].astype(np.float32)
    assert_same(c, expected)
    assert_same(most, expected.max(0))


@triton.jit
def chain_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    square = tl.dot(a, a).to(a.dtype)
    left = tl.dot(tl.trans(square), b).to(a.dtype)
    tl.store(c_ptr + at, tl.dot(b, left))


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
def test_chains_through_both_operands(num_warps: int) -> None:
    a, b = (np.sign(small((64, 64), "float16", seed)) for seed in (8, 9))
    keep = np.random.default_rng(10).random((64, 64)) < 0.1
    a, b = a * keep, b * keep.T
    c = np.empty((64, 64), np.float32)
    chain_kernel[(1,)](a, b, c, N=64, num_warps=num_warps)
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert_same(c, (y @ ((x @ x).T @ y)).astype(np.float32))


def test_other_targets_keep_simdgroup_matrices() -> None:
    ttir = gemm_kernel.warmup(
        *(tl.float16, tl.float16, tl.float32, 64, 64, 64, 64, 1, 64, 1),
        *(64, 64, 32),
        OUT=tl.float32,
        PRECISION="ieee",
    ).asm["ttir"]
    assert "mpp::tensor_ops" in triton.compile_ttir(ttir, target=APPLE10).asm["metal"]
    assert "mpp::tensor_ops" not in triton.compile_ttir(ttir).asm["metal"]


@triton.jit(do_not_specialize=["keys"])
def highest_kernel(q_ptr, k_ptr, out_ptr, keys, N: tl.constexpr, K: tl.constexpr):
    """The highest product of each of 32 rows with rows of k, of which `keys` count; k has whole blocks."""
    i, n, d = tl.arange(0, 32), tl.arange(0, N), tl.arange(0, K)
    q = tl.load(q_ptr + i[:, None] * K + d[None, :])
    highest = tl.full((32,), -float("inf"), tl.float32)
    for start in range(0, keys, N):
        k = tl.load(k_ptr + (start + n)[:, None] * K + d[None, :])
        products = tl.where((start + n < keys)[None, :], tl.dot(q, tl.trans(k)), -float("inf"))
        highest = tl.maximum(highest, tl.max(products, axis=1))
    tl.store(out_ptr + i, highest)


def test_products_of_whole_steps_are_chosen_without_a_mask() -> None:
    """Of one text, three of four steps are whole; in the last one, each thread asks for its keys if one is not there."""
    q, k = small((32, 32), "float16", 1), small((128, 32), "float16", 2)
    integers = []
    for keys in (128, 127):
        out = np.zeros(32, np.float32)
        with triton.launch_options(count=True) as report:
            highest_kernel[(1,)](q, k, out, keys, N=32, K=32, num_warps=2)
        products = q.astype(np.float32) @ k[:keys].astype(np.float32).T
        np.testing.assert_array_equal(out, products.max(axis=1))
        (launch,) = report.launches
        assert ONE_PRODUCT in launch.kernel.asm["metal"]
        counters = launch.counters
        integers.append(sum(counters[f"optimized_int_{kind}"] for kind in ("add", "mul", "other")))
    # 32 by 32 products of a step are compared.
    assert integers[1] - integers[0] >= 32 * 32
