"""MLX's attention, tiled in both generations and for single queries, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_kernels import NEEDS_MLX
from mlx_kernels.parameters import attention_params
from mlx_kernels.running import (
    assert_close,
    blank,
    decode,
    encode,
    f32,
    i32,
    i64,
    launch,
    metal,
    numbers,
)

pytestmark = NEEDS_MLX
ALL_FLOATS = pytest.mark.parametrize("t", ["float32", "float16", "bfloat16"])


def exact_attention(q, k, v, scale, mask=None, sinks=None) -> np.ndarray:
    """Heads of queries may share those of keys; `mask` is added, `sinks` is one more score for each head."""
    shared = q.shape[1] // k.shape[1]
    scores = q @ np.swapaxes(np.repeat(k, shared, 1), -1, -2) * scale
    if mask is not None:
        scores = scores + mask
    if sinks is not None:
        extra = np.broadcast_to(sinks[None, :, None, None], (*scores.shape[:3], 1))
        scores = np.concatenate([scores, extra], -1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights[..., : k.shape[2]] @ np.repeat(v, shared, 1)


@pytest.mark.parametrize(
    ("generation", "t", "lengths", "mode"),
    [
        ("", "float32", (45, 77), "plain"),
        ("", "float16", (64, 32), "boolean"),
        ("", "bfloat16", (33, 50), "causal"),
        ("", "float16", (33, 50), "float"),
        ("", "float32", (20, 70), "sinks"),
        ("_nax", "float32", (70, 77), "plain"),
        ("_nax", "float16", (64, 64), "boolean"),
        ("_nax", "bfloat16", (33, 50), "causal"),
        ("_nax", "float16", (100, 50), "float"),
        ("_nax", "float16", (20, 70), "sinks"),
    ],
)
def test_tiled(generation: str, t: str, lengths: tuple[int, int], mode: str) -> None:
    queries, keys = lengths
    bq, bk = (64, 32) if generation else (32, 32)
    shape_q, shape_k = (2, 4, queries, 64), (2, 2, keys, 64)
    q, k, v = numbers(shape_q, t, 1), numbers(shape_k, t, 2), numbers(shape_k, t, 3)
    scale = 0.125
    params = attention_params(shape_q, shape_k, scale, bq, bk)
    buffers = {0: encode(q, t), 1: encode(k, t), 2: encode(v, t), 3: blank(shape_q, t), 4: params}
    mask = sinks = None
    mask_type = t
    if mode == "boolean":
        allowed = numbers((queries, keys), "bool_", 4)
        allowed[:, 0] = True
        mask, mask_type = np.where(allowed, 0.0, -np.inf), "bool_"
        buffers |= {5: i64(0, 0, keys), 6: allowed}
    elif mode == "float":
        mask = numbers((4, queries, keys), t, 4)
        buffers |= {5: i64(0, queries * keys, keys), 6: encode(mask, t)}
    elif mode == "causal":
        rows, columns = np.ogrid[:queries, :keys]
        mask = np.where(columns <= rows + keys - queries, 0.0, -np.inf)
    elif mode == "sinks":
        sinks = numbers((4,), t, 5)
        buffers |= {7: encode(sinks, t)}
    (out,) = launch(
        f"steel_attention{generation}",
        (f"attention{generation}", metal(t), bq, bk, 64, 4, 1, metal(mask_type), "float"),
        buffers,
        [3],
        threadgroups=(-(-queries // bq), 4, 2),
        group=(32, 4, 1),
        constants={
            200: queries % bq == 0,
            201: keys % bk == 0,
            300: mode in ("boolean", "float"),
            301: mode == "causal",
            302: mode == "sinks",
        },
    )
    np.testing.assert_allclose(
        decode(out, t),
        exact_attention(q, k, v, scale, mask, sinks),
        atol={"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[t],
    )


@ALL_FLOATS
@pytest.mark.parametrize("mode", ["plain", "causal", "boolean", "sinks"])
def test_single_queries(t: str, mode: str) -> None:
    """One query, and a few queries with a mask, for each head."""
    queries, keys, width = 1 if mode == "plain" else 3, 77, 64
    q, k, v = (numbers((1, h, n, width), t, h) for h, n in ((4, queries), (2, keys), (2, keys)))
    buffers = {
        **{0: encode(q, t), 1: encode(k, t), 2: encode(v, t), 3: blank((1, 4, queries, width), t)},
        **{4: i32(2), 5: i32(keys)},
        **dict(enumerate([i64(keys * width), i64(width)] * 2, 6)),
        10: f32(0.125),
    }
    mask = sinks = None
    if mode == "boolean":
        allowed = numbers((4, queries, keys), "bool_", 4)
        allowed[:, :, 0] = True
        mask = np.where(allowed, 0.0, -np.inf)
        buffers |= {11: allowed, 13: i32(1), 14: i32(keys), 15: i32(queries * keys)}
    elif mode == "causal":
        rows, columns = np.ogrid[:queries, :keys]
        mask = np.where(columns <= rows + keys - queries, 0.0, -np.inf)
    elif mode == "sinks":
        sinks = numbers((4,), t, 5)
        buffers |= {16: encode(sinks, t), 17: i32(4)}
    (out,) = launch(
        "sdpa_vector",
        ("sdpa_vector", metal(t), width, width),
        buffers,
        [3],
        threadgroups=(4, queries, 1),
        group=(1024,),
        constants={
            **{20: mode == "boolean", 21: False, 22: mode == "causal", 23: mode == "boolean"},
            **{24: False, 25: mode == "sinks", 26: 1},
        },
    )
    exact = exact_attention(q, k, v, 0.125, mask, sinks)
    assert_close(out, exact, t, terms=keys)


@ALL_FLOATS
def test_single_queries_in_two_passes(t: str) -> None:
    queries, keys, width, blocks = 2, 150, 64, 32
    q, k, v = (numbers((1, h, n, width), t, h) for h, n in ((4, queries), (2, keys), (2, keys)))
    (partial, sums, tops) = launch(
        "sdpa_vector",
        ("sdpa_vector_2pass_1", metal(t), width, width),
        {
            **{0: encode(q, t), 1: encode(k, t), 2: encode(v, t)},
            3: blank((4, queries, blocks, width), t),
            4: blank((4, queries, blocks), "float32"),
            5: blank((4, queries, blocks), "float32"),
            7: i32(keys),
            **dict(enumerate([i64(keys * width), i64(width)] * 2, 8)),
            12: f32(0.125),
        },
        [3, 4, 5],
        threadgroups=(2, 1, blocks),
        group=(32, 2, queries),
        constants={
            20: False,
            21: False,
            22: False,
            23: False,
            24: False,
            25: False,
            26: blocks,
        },
    )
    (out,) = launch(
        "sdpa_vector",
        ("sdpa_vector_2pass_2", metal(t), width),
        {0: partial, 1: sums, 2: tops, 3: blank((1, 4, queries, width), t), 4: i32(blocks)},
        [3],
        threadgroups=(4, queries),
        group=(1024,),
    )
    np.testing.assert_allclose(
        decode(out, t),
        exact_attention(q, k, v, 0.125),
        atol={"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[t],
    )
