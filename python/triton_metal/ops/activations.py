"""Activations and gated activations, element by element, with gradients from the inputs that they keep.

Everything is computed in float32 and rounded once. A gated activation is one kernel forward and one backward, which stores both
gradients from one reading.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl
from triton_metal.language.extra import libdevice

from ._arrays import FLOATS, Array, contiguous, dtype_name, size_of
from ._checks import check_arrays, check_choice, check_dtype, check_same_dtype, check_shape
from ._far import FAR_FROM, index
from ._launch import Spec, launch
from ._normal import normal_below
from ._operators import Operator

BLOCK = 1024
APPROXIMATIONS = ("none", "tanh")


@triton.jit
def activated(x, KIND: tl.constexpr):
    """An activation of x and its slope. A product whose factor is 0 or below any rounding is left out: x may be infinite."""
    if KIND == "relu":
        y = tl.where(x < 0, 0.0, x)
        slope = tl.where(x <= 0, 0.0, 1.0)
    elif KIND == "tanh":
        e = tl.exp(-2 * tl.abs(x))
        y = libdevice.tanh(x)
        slope = 4 * e / ((1 + e) * (1 + e))
    elif KIND == "gelu":
        below = normal_below(x)
        y = x * below
        slope = below + tl.where(tl.abs(x) < 20, x * 0.3989422804014327 * tl.exp(-0.5 * x * x), 0.0)
    elif KIND == "gelu_tanh":
        t = libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
        y = 0.5 * x * (1 + t)
        rise = 0.3989422804014327 * (1 - t * t) * (1 + 0.134145 * x * x)
        slope = 0.5 * (1 + t) + tl.where(tl.abs(x) < 20, x * rise, 0.0)
    else:
        y = tl.sigmoid(x)
        # exp of what is never positive does not overflow, so that small slopes keep all their digits.
        e = tl.exp(-tl.abs(x))
        share = 1 / (1 + e)
        slope = e * share * share
        if KIND == "silu":
            slope = tl.where(x < 0, e * share, share) + tl.where(e > 0, x * slope, 0.0)
            y = tl.where(x < 0, x * e, x) / (1 + e)
    return y, slope


@triton.jit
def block_of(n, BLOCK: tl.constexpr, FAR: tl.constexpr):
    """Where this program's block starts, the places in it, and which of them are among the n elements."""
    first = index(tl.program_id(0), FAR) * BLOCK
    at = tl.arange(0, BLOCK)
    if FAR:
        return first, at, at < tl.minimum(n - first, BLOCK).to(tl.int32)
    return first, at, first + at < n


@triton.jit
def activation_kernel(x_ptr, y_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr, FAR: tl.constexpr):
    """y = f(x)."""
    first, at, mask = block_of(n, BLOCK, FAR)
    x = tl.load(x_ptr + first + at, mask=mask).to(tl.float32)
    y, _ = activated(x, KIND)
    tl.store(y_ptr + first + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def activation_backward_kernel(
    dy_ptr, x_ptr, dx_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr, FAR: tl.constexpr
):
    """dx = dy f'(x)."""
    first, at, mask = block_of(n, BLOCK, FAR)
    x = tl.load(x_ptr + first + at, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + first + at, mask=mask).to(tl.float32)
    _, slope = activated(x, KIND)
    tl.store(dx_ptr + first + at, (dy * slope).to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gated_kernel(
    gate_ptr, value_ptr, y_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr, FAR: tl.constexpr
):
    """y = f(gate) value."""
    first, at, mask = block_of(n, BLOCK, FAR)
    gate = tl.load(gate_ptr + first + at, mask=mask).to(tl.float32)
    value = tl.load(value_ptr + first + at, mask=mask).to(tl.float32)
    y, _ = activated(gate, KIND)
    tl.store(y_ptr + first + at, (y * value).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gated_backward_kernel(
    dy_ptr,
    gate_ptr,
    value_ptr,
    dgate_ptr,
    dvalue_ptr,
    n,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
    FAR: tl.constexpr,
):
    """dgate = dy value f'(gate), dvalue = dy f(gate)."""
    first, at, mask = block_of(n, BLOCK, FAR)
    dy = tl.load(dy_ptr + first + at, mask=mask).to(tl.float32)
    gate = tl.load(gate_ptr + first + at, mask=mask).to(tl.float32)
    value = tl.load(value_ptr + first + at, mask=mask).to(tl.float32)
    y, slope = activated(gate, KIND)
    dgate = dy * value * slope
    tl.store(dgate_ptr + first + at, dgate.to(dgate_ptr.dtype.element_ty), mask=mask)
    tl.store(dvalue_ptr + first + at, (dy * y).to(dvalue_ptr.dtype.element_ty), mask=mask)


def _run(kernel: Any, outputs: tuple[str, ...], kind: str, **arrays: Array) -> tuple[Array, ...]:
    like = next(iter(arrays.values()))
    n = size_of(tuple(like.shape))
    return launch(
        kernel,
        (triton.cdiv(n, BLOCK),),
        {f"{name}_ptr": (like.shape, dtype_name(like)) for name in outputs},
        like=like,
        n=n,
        KIND=kind,
        BLOCK=BLOCK,
        # The last block reaches behind the array.
        FAR=n > FAR_FROM - BLOCK,
        **{f"{name}_ptr": contiguous(x) for name, x in arrays.items()},
    )


def _like_first(x: Array, *_: Any) -> list[Spec]:
    return [(x.shape, dtype_name(x))]


_ACTIVATION_BACKWARD = Operator(
    "activation_backward(Tensor x, Tensor dy, str kind) -> (dx)",
    lambda x, dy, kind: _run(activation_backward_kernel, ("dx",), kind, x=x, dy=dy),
    _like_first,
)
_ACTIVATION = Operator(
    "activation(Tensor x, str kind) -> (y)",
    lambda x, kind: _run(activation_kernel, ("y",), kind, x=x),
    _like_first,
    lambda kept, dy: {"x": _ACTIVATION_BACKWARD(kept.x, dy, kept.kind)[0]},
    keeps="x",
)
_GATED_BACKWARD = Operator(
    "gated_backward(Tensor gate, Tensor value, Tensor dy, str kind) -> (dgate, dvalue)",
    lambda gate, value, dy, kind: _run(
        gated_backward_kernel, ("dgate", "dvalue"), kind, gate=gate, value=value, dy=dy
    ),
    lambda gate, *_: _like_first(gate) * 2,
)


def _gated_gradients(kept: Any, dy: Array) -> dict[str, Array]:
    dgate, dvalue = _GATED_BACKWARD(kept.gate, kept.value, dy, kept.kind)
    return {"gate": dgate, "value": dvalue}


_GATED = Operator(
    "gated(Tensor gate, Tensor value, str kind) -> (y)",
    lambda gate, value, kind: _run(gated_kernel, ("y",), kind, gate=gate, value=value),
    _like_first,
    _gated_gradients,
    keeps="gate value",
)


def _activation(function: str, x: Array, kind: str) -> Array:
    check_arrays(function, x=x)
    check_dtype(function, "x", x, FLOATS)
    return _ACTIVATION(x, kind)[0]


def _gated(function: str, gate: Array, value: Array, kind: str) -> Array:
    check_arrays(function, gate=gate, value=value)
    check_dtype(function, "gate", gate, FLOATS)
    check_same_dtype(function, gate=gate, value=value)
    check_shape(function, "value", value, gate.shape, ", that of gate,")
    return _GATED(gate, value, kind)[0]


def _gelu_kind(function: str, approximate: str) -> str:
    check_choice(function, "approximate", approximate, APPROXIMATIONS)
    return "gelu" if approximate == "none" else "gelu_tanh"


def relu(x: Array) -> Array:
    """max(x, 0) of every element; NaN stays NaN. The slope at 0 is 0, and at NaN 1, as in PyTorch.

    ``x`` is float16, bfloat16 or float32, of any shape; the result is like ``x``. Differentiable. Raises LaunchValueError
    for another dtype.

    Exact.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.relu(np.array([-1, 0, 2], np.float32))
    array([0., 0., 2.], dtype=float32)
    """
    return _activation("relu", x, "relu")


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) of every element, computed in float32.

    ``x`` is float16, bfloat16 or float32, of any shape; the result is like ``x``. Differentiable. Raises LaunchValueError
    for another dtype.

    Error, with u = 2^-24 and beside the rounding of the result: 16 u |y| + 2^-126 (1 + |x|), and 4 u |x y| more for x < 0.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.sigmoid(np.array([-1, 0, 1], np.float32)).round(3)
    array([0.269, 0.5  , 0.731], dtype=float32)
    """
    return _activation("sigmoid", x, "sigmoid")


def tanh(x: Array) -> Array:
    """The hyperbolic tangent of every element, computed in float32.

    ``x`` is float16, bfloat16 or float32, of any shape; the result is like ``x``. Differentiable. Raises LaunchValueError
    for another dtype.

    Error, with u = 2^-24 and beside the rounding of the result: 16 u |y| + 2^-126 (1 + |x|).

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.tanh(np.array([-1, 0, 1], np.float32)).round(3)
    array([-0.762,  0.   ,  0.762], dtype=float32)
    """
    return _activation("tanh", x, "tanh")


def silu(x: Array) -> Array:
    """x / (1 + exp(-x)) of every element, also called swish, computed in float32.

    ``x`` is float16, bfloat16 or float32, of any shape; the result is like ``x``, and NaN for -inf. Differentiable. Raises
    LaunchValueError for another dtype.

    Error, with u = 2^-24 and beside the rounding of the result: 16 u |y| + 2^-126 (1 + |x|), and 4 u |x y| more for x < 0.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.silu(np.array([-1, 0, 1], np.float32)).round(3)
    array([-0.269,  0.   ,  0.731], dtype=float32)
    """
    return _activation("silu", x, "silu")


def gelu(x: Array, approximate: str = "none") -> Array:
    """x (1 + erf(x / √2)) / 2 of every element, computed in float32.

    With ``approximate="tanh"`` x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2. ``x`` is float16, bfloat16 or float32, of any shape; the
    result is like ``x``, and NaN for -inf. Differentiable. Raises LaunchValueError for another dtype or approximation.

    Error, with u = 2^-24 and beside the rounding of the result: 10 u |x| + 2^-126 (1 + |x|).

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.array([-1, 0, 2], np.float32)
    >>> ops.gelu(x).round(4)
    array([-0.1587,  0.    ,  1.9545], dtype=float32)
    >>> ops.gelu(x, approximate="tanh").round(4)
    array([-0.1588,  0.    ,  1.9546], dtype=float32)
    """
    return _activation("gelu", x, _gelu_kind("gelu", approximate))


def silu_mul(gate: Array, value: Array) -> Array:
    """silu(gate) · value, the gated unit of SwiGLU, computed in float32 and rounded once.

    ``gate`` and ``value`` have one shape and one dtype, float16, bfloat16 or float32; the result is like them. Differentiable
    in both. Raises LaunchValueError for shapes that differ or another dtype.

    Error, with u = 2^-24 and beside the rounding of the result: |value| times that of `silu`, and 3 u |y|.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.silu_mul(np.array([-1, 1], np.float32), np.array([10, 10], np.float32)).round(2)
    array([-2.69,  7.31], dtype=float32)
    """
    return _gated("silu_mul", gate, value, "silu")


def gelu_mul(gate: Array, value: Array, approximate: str = "none") -> Array:
    """gelu(gate, approximate) · value, the gated unit of GeGLU, computed in float32 and rounded once.

    ``gate`` and ``value`` have one shape and one dtype, float16, bfloat16 or float32; the result is like them. Differentiable
    in both. Raises LaunchValueError for shapes that differ, another dtype or approximation than "none" and "tanh".

    Error, with u = 2^-24 and beside the rounding of the result: |value| times that of `gelu`, and 3 u |y|.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.gelu_mul(np.array([-1, 2], np.float32), np.array([10, 10], np.float32)).round(2)
    array([-1.59, 19.54], dtype=float32)
    """
    return _gated("gelu_mul", gate, value, _gelu_kind("gelu_mul", approximate))
