"""Flash attention, whose loop keeps the highest score and the sum of the weights so far, and its gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import triton_metal as triton
from benchmarks.graphs.problem import Problem, gradient, normal
from triton_metal.mlx import graph

from attention import attention_kernel

BLOCK = 32


def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
    heads, queries, head = q.shape
    keys = k.shape[1]
    return graph(attention_kernel)(
        q, k, v, queries * head, head, keys * head, head, keys * head, head, queries * head, head,
        queries, keys, head**-0.5, BLOCK_M=BLOCK, BLOCK_N=BLOCK, HEAD=head, CAUSAL=causal,
        grid=(triton.cdiv(queries, BLOCK), heads), outputs={"out_ptr": q},
    )  # fmt: skip


def of_mlx(q: Any, k: Any, v: Any, causal: bool) -> Any:
    mask = "causal" if causal else None
    scale = q.shape[-1] ** -0.5
    attend = mx.fast.scaled_dot_product_attention
    return attend(q[None], k[None], v[None], scale=scale, mask=mask)[0]


def problem(heads: int, length: int, head: int, causal: bool) -> Problem:
    name = f"attention {heads}x{length}x{head}{', causal' if causal else ''}"
    ours, theirs = (functools.partial(side, causal=causal) for side in (attention, of_mlx))
    arrays = tuple(normal(heads, length, head) for _ in range(3))
    return Problem(name, 2.0, "mx.fast.scaled_dot_product_attention", ours, theirs, arrays)


def problems() -> Iterator[Callable[[], Problem]]:
    for causal in (False, True):
        yield functools.partial(problem, 4, 512, 64, causal)
    for causal in (False, True):
        yield lambda causal=causal: gradient(problem(4, 512, 64, causal), (0, 1, 2), 1.5)
