"""Rows of the table that attend with one query for each head, as in generation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import triton_metal as triton
from triton_metal import ops
from triton_metal.ops._choices import forced
from triton_metal.ops._decode_family import DECODE

from against.along_rows import typed
from against.attending import exact_attention
from against.problem import DEFAULT, Case, Launch, Problem, near
from mlx_kernels.running import blank, decode, encode, f32, i32, i64, launch, metal, numbers

#: The keys of a part. Launches of many queries take all of some thousand keys as one part, those of few take more parts than this.
KEYS = 256


def _decode(queries: int, heads: int, keys: int, width: int, t: str) -> Problem:
    shape_q, shape_k = (1, queries, 1, width), (1, heads, keys, width)
    q, k, v = numbers(shape_q, t, 1), numbers(shape_k, t, 2), numbers(shape_k, t, 3)
    scale, shared = width**-0.5, queries // heads
    operands = {0: encode(q, t), 1: encode(k, t), 2: encode(v, t)}
    steps = [i64(keys * width), i64(width)] * 2
    flags = dict.fromkeys(range(20, 26), False)

    def one_pass() -> np.ndarray:
        (out,) = launch(
            "sdpa_vector",
            ("sdpa_vector", metal(t), width, width),
            {
                **operands,
                3: blank(shape_q, t),
                4: i32(shared),
                5: i32(keys),
                10: f32(scale),
                **dict(enumerate(steps, 6)),
            },
            [3],
            threadgroups=(queries, 1, 1),
            group=(1024,),
            constants={**flags, 26: 1},
        )
        return decode(out, t)

    def two_passes(blocks: int) -> np.ndarray:
        partial, sums, tops = launch(
            "sdpa_vector",
            ("sdpa_vector_2pass_1", metal(t), width, width),
            {
                **operands,
                3: blank((queries, blocks, width), t),
                4: blank((queries, blocks), "float32"),
                5: blank((queries, blocks), "float32"),
                7: i32(keys),
                12: f32(scale),
                **dict(enumerate(steps, 8)),
            },
            [3, 4, 5],
            threadgroups=(heads, 1, blocks),
            group=(32, shared, 1),
            constants={**flags, 26: blocks},
        )
        (out,) = launch(
            "sdpa_vector",
            ("sdpa_vector_2pass_2", metal(t), width),
            {0: partial, 1: sums, 2: tops, 3: blank(shape_q, t), 4: i32(blocks)},
            [3],
            threadgroups=(queries, 1),
            group=(1024,),
        )
        return decode(out, t)

    theirs: dict[str, Launch] = {}
    if shared == 1 or keys < 4096:
        theirs["one pass (base and Pro)"] = one_pass
    else:
        blocks = 64 if shared >= 4 else 32
        theirs[f"two passes, {blocks} blocks (base and Pro)"] = lambda: two_passes(blocks)
    if keys >= 1024:
        most = 128 if keys > 1024 and shared > 4 else 64
        theirs[f"two passes, {most} blocks (Max)"] = lambda: two_passes(most)
        theirs["two passes, 128 blocks (Ultra)"] = lambda: two_passes(128)
    given = [typed(each, t) for each in (q, k, v)]

    def run(keys_of_part: int) -> np.ndarray:
        # Launches of few queries are cut into more parts, by the chip.
        parts = max(1, triton.next_power_of_2(keys) // keys_of_part)
        with forced(DECODE.name, (parts, 1)):
            return ops.attention_decode(*given)

    exact = exact_attention(q, k, v, False)
    ours = {DEFAULT: lambda: run(KEYS), f"parts of {KEYS // 2}": lambda: run(KEYS // 2)}
    return Problem(ours, theirs, near(exact, t, rtol=1e-1, terms=16))


def cases() -> Iterator[Case]:
    for queries, heads, keys, width, t, quick in (
        (8, 2, 1024, 64, "float16", True),
        (8, 2, 1024, 128, "float16", False),
        (8, 8, 1024, 128, "bfloat16", False),
        (8, 2, 4096, 128, "float16", False),
        (8, 2, 1000, 64, "float16", False),
    ):
        make = lambda a=(queries, heads, keys, width, t): _decode(*a)  # noqa: E731
        yield Case(f"decode, {queries} : {heads} heads", f"{keys}×{width}", t, make, quick=quick)
