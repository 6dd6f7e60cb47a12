"""Flash attention, forward: softmax(Q Kᵀ / √d) V without ever storing the scores.

A program owns a block of queries and walks over the keys and values. The scores of one block of keys live in
registers only: they are turned into weights relative to the highest score so far, and what was summed before is
scaled down whenever a higher one comes. Lengths need not be multiples of the blocks; with CAUSAL, a query sees the
keys up to its own position, and the blocks of keys after the last query are not visited.

`triton_metal.ops.attention` does this for heads of any width up to 256, with masks, biases, windows, shared keys, and gradients; where
there are fewer queries than keys, its last query stands at the last key.
"""

from __future__ import annotations

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, dtype_name, empty, itemsize, numpy_dtype, strides, to_float64
from _bounds import FUNCTION_ULPS, UNIT_ROUNDOFF, accumulation, rounding, share_of_bound


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    stride_qh,
    stride_qm,
    stride_kh,
    stride_kn,
    stride_vh,
    stride_vn,
    stride_oh,
    stride_om,
    n_queries,
    n_keys,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD)

    q_ptrs = q_ptr + head * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :]
    k_ptrs = k_ptr + head * stride_kh + offs_n[:, None] * stride_kn + offs_d[None, :]
    v_ptrs = v_ptr + head * stride_vh + offs_n[:, None] * stride_vn + offs_d[None, :]
    q = tl.load(q_ptrs, mask=offs_m[:, None] < n_queries, other=0.0)

    # Base 2, so that the exponential is one instruction: log2(e) goes into the scale.
    scale_2 = scale * 1.4426950408889634
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), tl.float32)

    last = n_keys
    if CAUSAL:
        last = min(n_keys, start_m + BLOCK_M)
    for start_n in range(0, last, BLOCK_N):
        in_range = start_n + offs_n < n_keys
        k = tl.load(k_ptrs + start_n * stride_kn, mask=in_range[:, None], other=0.0)
        # Rounded before the maximum is taken: with the subtraction in an fma, which does not round its product, weights of
        # scores of 2^28 and more would be infinite. `triton_metal.ops.attention` has both, by another factor for those.
        scores = tl.dot(q, tl.trans(k)) * scale_2
        visible = in_range[None, :]
        if CAUSAL:
            visible = visible & (offs_m[:, None] >= start_n + offs_n[None, :])
        scores = tl.where(visible, scores, -float("inf"))

        # Key 0 is visible to every query, so that from the first block on the maximum is a number.
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(weights, axis=1)
        acc = acc * fade[:, None]
        v = tl.load(v_ptrs + start_n * stride_vn, mask=in_range[:, None], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc)
        highest = higher

    # total is no more than the number of keys, so that its reciprocal is a number like any other.
    acc = acc * tl.div_rn(1.0, total)[:, None]
    out_ptrs = out_ptr + head * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=offs_m[:, None] < n_queries)


def launch_options(head: int) -> dict[str, int]:
    """32x32 tiles, 32x16 at head size 128, 4 warps and one stage: few registers, so many threads in flight."""
    return {"BLOCK_M": 32, "BLOCK_N": 16 if head == 128 else 32, "num_warps": 4, "num_stages": 1}


def attention(
    q: Array, k: Array, v: Array, causal: bool = False, scale: float | None = None
) -> Array:
    """Attention of q (heads, queries, head size) over k and v (heads, keys, head size).

    float16 or bfloat16; head size 16, 32, 64 or 128; any lengths. The elements of one head's row lie side by side,
    the other strides are free. A batch is more heads. ``scale`` is 1 / √(head size) unless it is given, and any finite
    number.
    """
    heads, n_queries, head = q.shape
    n_keys = k.shape[1]
    if head not in (16, 32, 64, 128):
        raise ValueError(f"[attention] the head size must be 16, 32, 64 or 128 but is {head}.")
    scale = head**-0.5 if scale is None else scale
    if not np.isfinite(scale):
        raise ValueError(f"[attention] scale must be a finite number but is {scale}.")
    out = empty((heads, n_queries, head), like=q)
    options = launch_options(head)
    attention_kernel[(triton.cdiv(n_queries, options["BLOCK_M"]), heads)](
        q,
        k,
        v,
        out,
        *strides(q)[:2],
        *strides(k)[:2],
        *strides(v)[:2],
        *strides(out)[:2],
        n_queries,
        n_keys,
        scale,
        HEAD=head,
        CAUSAL=causal,
        **options,
    )
    return out


def _visited(q: Array, k: Array, causal: bool) -> list[int]:
    """For every block of queries, the number of keys that its program must read."""
    block_m, n_queries, n_keys = launch_options(q.shape[2])["BLOCK_M"], q.shape[1], k.shape[1]
    starts = range(0, n_queries, block_m)
    return [min(n_keys, start + block_m) if causal else n_keys for start in starts]


def least_device_bytes(q: Array, k: Array, causal: bool = False) -> int:
    """Each program reads its queries once, each key and value that one of them may see once, and writes its rows."""
    heads, n_queries, head = q.shape
    return heads * head * itemsize(q) * (2 * n_queries + 2 * sum(_visited(q, k, causal)))


def least_multiplies(q: Array, k: Array, causal: bool = False) -> int:
    """The 8x8x8 products in the two dots, blocks at the edges counted whole."""
    options, head = launch_options(q.shape[2]), q.shape[2]
    steps = sum(triton.cdiv(n, options["BLOCK_N"]) for n in _visited(q, k, causal))
    return (
        q.shape[0] * steps * 2 * (options["BLOCK_M"] // 8) * (options["BLOCK_N"] // 8) * (head // 8)
    )


def _weights(
    q: Array, k: Array, causal: bool, scale: float | None
) -> tuple[np.ndarray, np.ndarray]:
    q, k = to_float64(q), to_float64(k)
    scores = q @ k.transpose(0, 2, 1) * (q.shape[2] ** -0.5 if scale is None else scale)
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return scores, weights / weights.sum(axis=2, keepdims=True)


def reference(
    q: Array, k: Array, v: Array, causal: bool = False, scale: float | None = None
) -> np.ndarray:
    """The same in float64."""
    return _weights(q, k, causal, scale)[1] @ to_float64(v)


def error_bound(
    q: Array,
    k: Array,
    v: Array,
    expected: np.ndarray,
    causal: bool = False,
    scale: float | None = None,
) -> np.ndarray:
    """An error in a score is a relative error of its weight; weights are rounded to the operands' dtype."""
    head, n_keys = q.shape[2], k.shape[1]
    magnitudes = np.abs(to_float64(q)) @ np.abs(to_float64(k)).transpose(0, 2, 1)
    score_error = accumulation(magnitudes, head + 4) * abs(head**-0.5 if scale is None else scale)
    # Each score, and the maximum that is taken from it.
    score_error = 2 * score_error.max(axis=2, keepdims=True)
    relative = (
        score_error + accumulation(2.0, n_keys + 4 * FUNCTION_ULPS) + UNIT_ROUNDOFF[dtype_name(q)]
    )
    weights = _weights(q, k, causal, scale)[1]
    # Small weights may be subnormal in fp16: half a step of 2^-24 each, relative to a sum of at least one.
    magnitude = (2 * relative * weights + 2.0**-25) @ np.abs(to_float64(v))
    return magnitude + rounding(expected, dtype_name(q))


def main() -> None:
    from triton_metal import ops  # here, because stock Triton runs the kernel above, too

    rng = np.random.default_rng(0)
    for head, causal in ((64, False), (64, True), (128, True)):
        q, k, v = (
            rng.standard_normal((2, 200, head)).astype(numpy_dtype("float16")) for _ in range(3)
        )
        expected = reference(q, k, v, causal)
        error, bound = share_of_bound(
            attention(q, k, v, causal), expected, error_bound(q, k, v, expected, causal)
        )
        print(
            f"2 heads of 200x{head}, causal={causal}: largest error {error:.3g}, bound {bound:.3g}"
        )
        same = ops.attention(q[None], k[None], v[None], causal=causal)[0]
        error, bound = share_of_bound(same, expected, error_bound(q, k, v, expected, causal))
        print(f"ops.attention: largest error {error:.3g}, bound {bound:.3g}")


if __name__ == "__main__":
    main()
