"""examples/attention.py against NumPy in float64, and its counts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kernel_support import assert_within, needs_counters, normal, torch_or_skip

from _counts import counting  # isort: skip
from attention import (
    attention,
    error_bound,
    launch_options,
    least_device_bytes,
    least_multiplies,
    reference,
)  # isort: skip


def inputs(heads: int, n_queries: int, n_keys: int, head: int, name: str) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n_queries)
    return tuple(normal(rng, (heads, n, head), name) for n in (n_queries, n_keys, n_keys))


def check(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, scale: float | None = None
) -> None:
    expected = reference(q, k, v, causal, scale)
    assert_within(
        attention(q, k, v, causal, scale), expected, error_bound(q, k, v, expected, causal, scale)
    )


@pytest.mark.parametrize("n", [1, 16, 31, 64, 65, 128, 200])
@pytest.mark.parametrize("head", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_lengths(name: str, causal: bool, head: int, n: int) -> None:
    check(*inputs(2, n, n, head, name), causal)


@pytest.mark.parametrize("head", [16, 32])
def test_small_heads(head: int) -> None:
    check(*inputs(3, 77, 77, head, "float16"), True)


@pytest.mark.parametrize(("n_queries", "n_keys"), [(1, 100), (70, 33), (33, 70)])
@pytest.mark.parametrize("causal", [False, True])
def test_other_numbers_of_keys(n_queries: int, n_keys: int, causal: bool) -> None:
    check(*inputs(1, n_queries, n_keys, 64, "float16"), causal)


def test_large_scores_do_not_overflow() -> None:
    q, k, v = inputs(1, 96, 96, 64, "float16")
    check(q * np.float16(20), k * np.float16(20), v, True)


@pytest.mark.parametrize("exponent", [27, 28, 32, 38])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_scores_that_float32_has_in_large_steps(name: str, sign: int, exponent: int) -> None:
    """Every key is there twice, so that the highest score is that of two and no other weighs anything."""
    rng = np.random.default_rng(exponent)
    base = 2.0 ** (exponent / 2 - 7) * rng.uniform(1, 2, (1, 1, 64))
    keys = np.repeat(np.arange(1, 36), 2)[None, :, None] / 35 * base
    queries = sign * np.broadcast_to(base, (1, 40, 64)) * rng.uniform(1, 2, (1, 40, 1))
    v = normal(rng, (1, 70, 64), name)
    q, k = queries.astype(v.dtype), keys.astype(v.dtype)
    two = (v[:, -2:] if sign > 0 else v[:, :2]).astype(np.float64).mean(axis=1, keepdims=True)
    expected = np.broadcast_to(two, q.shape)
    assert_within(attention(q, k, v, scale=4.0), expected, 2.0**-7 * np.abs(expected) + 2.0**-9)


def test_heads_that_interleave() -> None:
    q, k, v = (
        np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2)
        for x in inputs(4, 90, 90, 64, "float16")
    )
    check(q, k, v, False, scale=0.25)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [-0.125, -1.0, 0.0, 2.0**-140, 3.0])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_any_scale(name: str, scale: float, causal: bool) -> None:
    q, k, v = inputs(2, 70, 70, 64, name)
    # So that a maximum of the products is far from that of the scores.
    check(q * q.dtype.type(4), k, v, causal, scale)


@pytest.mark.parametrize("scale", [float("inf"), float("-inf"), float("nan")])
def test_scales_that_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=r"\[attention\] scale must be a finite number but is "):
        attention(*inputs(1, 4, 4, 64, "float16"), scale=scale)


def test_a_nan_key_reaches_only_the_queries_that_see_it() -> None:
    q, k, v = inputs(1, 128, 128, 64, "float16")
    k[0, 100, 3] = np.nan
    out = attention(q, k, v, causal=True)
    assert not np.isnan(out[0, :100]).any()
    assert np.isnan(out[0, 100:]).all()


def test_torch() -> None:
    torch = torch_or_skip()
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 100, 128, generator=generator).bfloat16() for _ in range(3))
    check(q, k, v, True)


def test_other_head_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="must be 16, 32, 64 or 128 but is 48"):
        attention(*inputs(1, 4, 4, 48, "float16"))


@needs_counters
@pytest.mark.own_target
def test_a_weight_takes_a_difference_and_one_function() -> None:
    q, k, v = inputs(1, 64, 64, 64, "float16")
    with counting() as counts:
        attention(q, k, v)
    text = counts.kernels[0].asm["metal"]
    assert re.search(r"fast::exp2\(scores\w*\[i\] - higher\)", text)


@needs_counters
@pytest.mark.parametrize("n", [256, 200])
@pytest.mark.parametrize("head", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.own_target
def test_counts(name: str, causal: bool, head: int, n: int) -> None:
    q, k, v = inputs(2, n, n, head, name)
    with counting() as counts:
        attention(q, k, v, causal)
    assert launch_options(head) == {
        "BLOCK_M": 32,
        "BLOCK_N": 32 if head == 64 else 16,
        "num_warps": 4,
        "num_stages": 1,
    }
    assert counts.multiplies == least_multiplies(q, k, causal)
    assert counts.device_bytes == least_device_bytes(q, k, causal)
    # So that a core with 60 KB holds 768 threads at head size 64, and 512 at 128.
    assert counts.threadgroup_bytes <= (10 if head == 64 else 15) * 1024
