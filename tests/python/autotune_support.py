"""What the tests of autotune share."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, at < n) * factor, at < n)


@triton.jit
def increment_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, at < n) + 1, at < n)


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def blocks(*sizes: int, **options: Any) -> list[Config]:
    return [Config({"BLOCK": size}, **options) for size in sizes]


class Bench:
    """A do_bench that runs each configuration once and gives the values of a list in turn."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)
        self.quantiles: list[Any] = []

    def __call__(self, call: Any, quantiles: Any) -> Any:
        call()
        self.quantiles.append(quantiles)
        return self.values[len(self.quantiles) - 1]


def arrays(n: int, dtype: str = "float32") -> tuple[Any, Any]:
    return np.arange(n).astype(dtype), np.zeros(n, dtype)
