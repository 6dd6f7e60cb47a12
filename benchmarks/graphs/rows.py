"""Softmax and layer norm, a row a program, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import triton_metal as triton
from benchmarks.graphs.problem import Problem, gradient, normal
from triton_metal.mlx import graph

from layer_norm import layer_norm_kernel
from softmax import softmax_kernel


def softmax(x: Any) -> Any:
    rows, columns = x.shape
    return graph(softmax_kernel)(
        x, columns, columns, columns, BLOCK=triton.next_power_of_2(columns),
        grid=(rows,), outputs={"out_ptr": x},
    )  # fmt: skip


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    rows, columns = x.shape
    each = ((rows,), mx.float32)
    return graph(layer_norm_kernel)(
        x, weight, bias, columns, columns, columns, 1e-5, BLOCK=triton.next_power_of_2(columns),
        grid=(rows,), outputs={"y_ptr": x, "mean_ptr": each, "rstd_ptr": each},
    )[0]  # fmt: skip


def softmax_problem(rows: int, columns: int) -> Problem:
    name = f"softmax {rows}x{columns}"
    arrays = (normal(rows, columns),)
    return Problem(name, 1.5, "mx.softmax", softmax, lambda x: mx.softmax(x, axis=-1), arrays)


def layer_norm_problem(rows: int, columns: int) -> Problem:
    return Problem(
        f"layer norm {rows}x{columns}", 1.5, "mx.fast.layer_norm", layer_norm,
        lambda x, weight, bias: mx.fast.layer_norm(x, weight, bias, 1e-5),
        (normal(rows, columns), normal(columns), normal(columns)),
    )  # fmt: skip


def problems() -> Iterator[Callable[[], Problem]]:
    yield lambda: softmax_problem(4096, 1024)
    yield lambda: softmax_problem(4096, 1000)
    yield lambda: layer_norm_problem(4096, 1024)
    yield lambda: layer_norm_problem(4096, 1000)
    yield lambda: gradient(softmax_problem(4096, 1024), (0,), 1.5)
    yield lambda: gradient(softmax_problem(4096, 1000), (0,), 1.5)
    yield lambda: gradient(layer_norm_problem(4096, 1024), (0, 1, 2), 1.5)
