"""What the tests of triton_metal.ops share: arrays of each framework, results in float64, bounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from triton_metal.ops._arrays import dtype_name

from _arrays import numpy_dtype, to_float64
from _bounds import rounding, share_of_bound

#: Launches of NumPy's arrays take the route that the command line names; those of the others have one of their own.
FRAMEWORKS = (
    "numpy",
    pytest.param("mlx", marks=pytest.mark.own_route),
    pytest.param("torch", marks=pytest.mark.own_route),
)
FLOATS = ("float32", "float16", "bfloat16")


def on_frameworks(dtypes: Sequence[str], not_in_torch: Sequence[str] = ()) -> list[Any]:
    """Each framework with each dtype, but for those on which PyTorch itself hardly has an operation to compare with."""
    whole = [each if hasattr(each, "values") else pytest.param(each) for each in FRAMEWORKS]
    return [
        pytest.param(*each.values, dtype, marks=each.marks)
        for each in whole
        for dtype in dtypes
        if each.values[0] != "torch" or dtype not in not_in_torch
    ]


def rounded(x: Any, dtype: str) -> np.ndarray:
    """Numbers as float64 after they have been rounded to a dtype."""
    return np.asarray(x, np.float64).astype(numpy_dtype(dtype)).astype(np.float64)


def made(framework: str, x: Any, dtype: str, requires_grad: bool = False) -> Any:
    """An array of a framework with the numbers of ``x``."""
    x = np.asarray(x)
    if framework == "numpy":
        return x.astype(numpy_dtype(dtype))
    if framework == "torch":
        torch = pytest.importorskip("torch")
        # By way of float32, which has every number of the smaller types.
        wide = x.astype(np.float32) if dtype in FLOATS else x
        return torch.tensor(wide).to(getattr(torch, dtype)).requires_grad_(requires_grad)
    mx = pytest.importorskip("mlx.core")
    wide = x.astype(np.float32) if dtype in FLOATS else x
    return mx.array(wide).astype(getattr(mx, "bool_" if dtype == "bool" else dtype))


def far_apart(x: np.ndarray) -> np.ndarray:
    """A view with the numbers of ``x``, of two dimensions, whose last row is 2^31 elements from the first one.

    No memory is taken for what is never written. There is as much of it in front of the rows, where an offset of 32 bits leads.
    """
    rows, columns = x.shape
    view = np.zeros((2 * rows - 1, -(-(2**31) // (rows - 1))), x.dtype)[rows - 1 :, :columns]
    view[...] = x
    return view


def numbers(x: Any) -> np.ndarray:
    """A result as float64 (integers as they are)."""
    if hasattr(x, "detach"):
        x = x.detach()
    name = dtype_name(x)
    return to_float64(x) if name.startswith(("float", "bfloat")) else np.asarray(x)


def assert_near(actual: Any, exact: np.ndarray, bound: Any, dtype: str | None = None) -> None:
    """The result has this dtype and shape, and differs from ``exact`` by at most ``bound`` and its own rounding.

    NaN and infinities must be where ``exact`` has them.
    """
    name = dtype_name(actual)
    assert dtype is None or name == dtype, f"dtype {name} instead of {dtype}"
    assert tuple(actual.shape) == exact.shape, (
        f"shape {tuple(actual.shape)} instead of {exact.shape}"
    )
    if not exact.size:
        return
    found = numbers(actual)
    whole = np.broadcast_to(np.asarray(bound, np.float64), exact.shape) + rounding(exact, name)
    error, _ = share_of_bound(found, exact, whole)
    wrong = ~(
        (found == exact) | (np.isnan(found) & np.isnan(exact)) | (np.abs(found - exact) <= whole)
    )
    assert not wrong.any(), (
        f"{wrong.sum()} of {exact.size} are wrong, first at {tuple(np.argwhere(wrong)[0])}: "
        f"{found[wrong][0]} for {exact[wrong][0]}, bound {whole[wrong][0]:.3g}; largest error {error:.3g}"
    )


def gradients(
    framework: str, function: Callable[..., Any], arrays: Sequence[Any], weights: np.ndarray
) -> list[Any]:
    """The gradients of Σ weights · function(*arrays) by autograd or mx.grad, for each floating array.

    ``function`` takes arrays alone. For NumPy there are no gradients.
    """
    if framework == "torch":
        torch = sys.modules["torch"]
        wanted = [x for x in arrays if x.is_floating_point()]
        for x in wanted:
            x.requires_grad_(True)
        result = function(*arrays)
        return list(torch.autograd.grad(result, wanted, torch.tensor(weights).to(result.dtype)))
    import mlx.core as mx

    places = [i for i, x in enumerate(arrays) if mx.issubdtype(x.dtype, mx.floating)]

    def total(*given: Any) -> Any:
        result = function(*given)
        return (
            (result * mx.array(weights.astype(np.float32)).astype(result.dtype))
            .astype(mx.float32)
            .sum()
        )

    found = mx.grad(total, argnums=places)(*arrays)
    return list(found) if isinstance(found, (tuple, list)) else [found]
