"""Convolutions in one, two and three dimensions and their transposes, with gradients.

All run on one kernel, an implicit matrix product of pixels and filters; groups with few channels, such as those of a depthwise
convolution, are multiplied number by number. Arrays of NumPy and PyTorch are read with the strides they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array
from ._checks import (
    check_arrays,
    check_choice,
    check_dtype,
    check_rank,
    check_same_dtype,
    check_shape,
    fail,
    integer,
)
from ._convolving import CONVOLUTION, spatial

Sizes = int | Sequence[int]
_LAYOUTS = {1: ("NLC", "NCL"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def _sizes(function: str, name: str, value: Any, dimensions: int, least: int) -> list[int]:
    """The number for each dimension, of one for all or of one for each."""
    several = isinstance(value, (tuple, list))
    given = [integer(each) for each in value] if several else [integer(value)] * dimensions
    wanted = "an integer" if dimensions == 1 else f"an integer or {dimensions} integers"
    sizes = [each for each in given if each is not None]
    if len(sizes) < len(given):
        raise LaunchTypeError(f"[{function}] {name} must be {wanted} but is {value!r}.")
    if len(sizes) != dimensions:
        raise fail(function, f"{name} must be {wanted} but is {value!r}.")
    if any(not least <= each < 2**31 for each in sizes):
        raise fail(function, f"{name} must be from {least} to 2**31 - 1 but is {value!r}.")
    return sizes


def _convolve(
    dimensions: int,
    transposed: bool,
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    layout: str,
    output_padding: Sizes = 0,
) -> Array:
    function = f"conv{'_transpose' if transposed else ''}{dimensions}d"
    check_arrays(function, "bias", x=x, w=w, bias=bias)
    check_dtype(function, "x", x, FLOATS)
    check_same_dtype(function, x=x, w=w, bias=bias)
    check_rank(function, "x", x, dimensions + 2)
    check_rank(function, "w", w, dimensions + 2)
    check_choice(function, "layout", layout, _LAYOUTS[dimensions])
    last = layout == _LAYOUTS[dimensions][0]
    steps = _sizes(function, "stride", stride, dimensions, 1)
    pads = _sizes(function, "padding", padding, dimensions, 0)
    spread = _sizes(function, "dilation", dilation, dimensions, 1)
    more = _sizes(function, "output_padding", output_padding, dimensions, 0)
    [groups] = _sizes(function, "groups", groups, 1, 1)
    channels = x.shape[-1] if last else x.shape[1]
    # Where the filters have the channels of all groups first, and those of one group elsewhere.
    inside = w.shape[-1] if last else w.shape[1]
    inputs_first = transposed and not last
    inputs = w.shape[0] if inputs_first else inside * groups
    outputs = inside * groups if inputs_first else w.shape[0]
    if not channels:
        raise fail(function, f"x must have at least one channel but has shape {tuple(x.shape)}.")
    if channels != inputs or not inside or w.shape[0] % groups:
        raise fail(
            function,
            f"w must have shape {_wanted(dimensions, channels, groups, last, inputs_first)} for {channels} channels of x and "
            f"groups={groups} but has shape {tuple(w.shape)}.",
        )
    taps = spatial(w.shape, last)
    if 0 in taps:
        raise fail(
            function,
            f"w must have at least one tap in each dimension but has shape {tuple(w.shape)}.",
        )
    if bias is not None:
        check_shape(function, "bias", bias, (outputs,), ", one number for each output channel")
    size = []
    for n, tap, step, pad, far, extra in zip(
        spatial(x.shape, last), taps, steps, pads, spread, more, strict=True
    ):
        reach = far * (tap - 1) + 1
        if not transposed:
            size.append((n + 2 * pad - reach) // step + 1)
        elif extra >= max(step, far):
            raise fail(
                function,
                f"output_padding must be less than stride or dilation ({max(step, far)}) but is {output_padding!r}.",
            )
        else:
            size.append((n - 1) * step - 2 * pad + reach + extra)
    if transposed and any(n < 0 for n in size):
        raise fail(
            function,
            f"padding={padding!r} takes more than all of the result, which shape {tuple(x.shape)} of x and shape {tuple(w.shape)} of w "
            f"with stride={stride!r} and dilation={dilation!r} make.",
        )
    if any(n <= 0 for n in size) and not transposed:
        raise fail(
            function,
            f"x must be at least as large with its padding as w with its dilation, but shape {tuple(x.shape)} with "
            f"padding={padding!r} is too small for shape {tuple(w.shape)} with dilation={dilation!r}.",
        )
    wide_first = transposed and last
    return CONVOLUTION(x, w, bias, steps, pads, spread, groups, size, transposed, wide_first, last)[
        0
    ]


def _wanted(dimensions: int, channels: int, groups: int, last: bool, inputs_first: bool) -> str:
    taps = ", ".join(["taps"] * dimensions)
    each = str(channels // groups) if channels % groups == 0 else f"{channels}/{groups}"
    if inputs_first:
        return f"({channels}, outputs/{groups}, {taps})"
    return f"(outputs, {taps}, {each})" if last else f"(outputs, {each}, {taps})"


def conv1d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    layout: str = "NLC",
) -> Array:
    """y[n, l, o] = bias[o] + Σ x[n, l * stride - padding + tap * dilation, i] · w[o, tap, i], added in float32.

    ``x`` is (N, L, C) and ``w`` (O, taps, C / groups), of dtype float16, bfloat16 or float32; ``bias`` is (O,); all have one
    dtype, which the result (N, (L + 2 padding - dilation (taps - 1) - 1) // stride + 1, O) has too. With ``layout="NCL"`` they
    are as PyTorch has them: ``x`` (N, C, L), ``w`` (O, C / groups, taps), the result (N, O, …). ``groups`` cuts input and output
    channels into as many groups, each on its own; with C groups the convolution is depthwise. Places outside of ``x`` count as
    0. Differentiable in ``x``, ``w`` and ``bias``, in ``x`` and ``w`` any number of times.

    Raises LaunchValueError for shapes that do not fit, other dtypes, and numbers out of range; LaunchTypeError for what is no array.

    Error, with u = 2^-24 and beside the rounding of the result: (terms + 3) u Σ |x| |w|, and the same of gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.array([1, 2, 3, 4], np.float32).reshape(1, 4, 1)
    >>> ops.conv1d(x, np.array([1, 0, -1], np.float32).reshape(1, 3, 1), padding=1).reshape(4)
    array([-2., -2., -2.,  3.], dtype=float32)
    """
    return _convolve(1, False, x, w, bias, stride, padding, dilation, groups, layout)


def conv2d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    layout: str = "NHWC",
) -> Array:
    """y[n, h, w, o] = bias[o] + Σ x[n, (h, w) * stride - padding + tap * dilation, i] · w[o, tap, i], added in float32.

    As `conv1d` for ``x`` (N, H, W, C), ``w`` (O, taps, taps, C / groups), ``bias`` (O,): ``stride``, ``padding`` and ``dilation`` are an
    integer or one for each dimension. With ``layout="NCHW"`` they are as PyTorch has them: ``x`` (N, C, H, W) and ``w`` (O, C /
    groups, taps, taps).

    Gradients, errors and the bound are those of `conv1d`, of which it raises the same: LaunchValueError for what does not
    fit. Differentiable.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    >>> ops.conv2d(x, np.ones((1, 2, 2, 1), np.float32), stride=2)[0, :, :, 0]
    array([[10., 18.],
           [42., 50.]], dtype=float32)
    """
    return _convolve(2, False, x, w, bias, stride, padding, dilation, groups, layout)


def conv3d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    layout: str = "NDHWC",
) -> Array:
    """As `conv2d` in three dimensions: ``x`` (N, D, H, W, C) and ``w`` (O, taps, taps, taps, C / groups).

    With ``layout="NCDHW"`` they are as PyTorch has them: ``x`` (N, C, D, H, W) and ``w`` (O, C / groups, taps, taps, taps).

    Gradients, errors and the bound are those of `conv1d`, of which it raises the same: LaunchValueError for what does not
    fit. Differentiable.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x, w = np.ones((1, 3, 3, 3, 2), np.float32), np.ones((1, 2, 2, 2, 2), np.float32)
    >>> ops.conv3d(x, w, np.array([0.5], np.float32)).reshape(8)
    array([16.5, 16.5, 16.5, 16.5, 16.5, 16.5, 16.5, 16.5], dtype=float32)
    """
    return _convolve(3, False, x, w, bias, stride, padding, dilation, groups, layout)


def conv_transpose1d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    output_padding: Sizes = 0,
    groups: int = 1,
    layout: str = "NLC",
) -> Array:
    """y[n, l * stride - padding + tap * dilation, o] += x[n, l, i] · w[o, tap, i], from bias[o] on, added in float32.

    This is the gradient of `conv1d` in its input, with a bias. ``x`` is (N, L, C) and ``w`` (O, taps, C / groups), as in MLX, of
    dtype float16, bfloat16 or float32; ``bias`` is (O,); all have one dtype. The result is (N, (L - 1) stride - 2 padding +
    dilation (taps - 1) + 1 + output_padding, O); ``output_padding`` is less than the stride or the dilation. With ``layout="NCL"``
    they are as PyTorch has them: ``x`` (N, C, L), ``w`` (C, O / groups, taps), the result (N, O, …). Differentiable as `conv1d` is.

    Raises LaunchValueError for shapes that do not fit, other dtypes, and numbers out of range; LaunchTypeError for what is no array.

    Error, with u = 2^-24 and beside the rounding of the result: (terms + 3) u Σ |x| |w|, and the same of gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.array([1, 2], np.float32).reshape(1, 2, 1)
    >>> ops.conv_transpose1d(x, np.array([1, 10, 100], np.float32).reshape(1, 3, 1), stride=2).reshape(5)
    array([  1.,  10., 102.,  20., 200.], dtype=float32)
    """
    return _convolve(1, True, x, w, bias, stride, padding, dilation, groups, layout, output_padding)


def conv_transpose2d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    output_padding: Sizes = 0,
    groups: int = 1,
    layout: str = "NHWC",
) -> Array:
    """As `conv_transpose1d` in two dimensions: ``x`` (N, H, W, C) and ``w`` (O, taps, taps, C / groups).

    With ``layout="NCHW"`` they are as PyTorch has them: ``x`` (N, C, H, W) and ``w`` (C, O / groups, taps, taps).

    Gradients, errors and the bound are those of `conv_transpose1d`, of which it raises the same: LaunchValueError for what
    does not fit. Differentiable.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 2, 2, 1)
    >>> ops.conv_transpose2d(x, np.ones((1, 2, 2, 1), np.float32))[0, :, :, 0]
    array([[ 1.,  3.,  2.],
           [ 4., 10.,  6.],
           [ 3.,  7.,  4.]], dtype=float32)
    """
    return _convolve(2, True, x, w, bias, stride, padding, dilation, groups, layout, output_padding)


def conv_transpose3d(
    x: Array,
    w: Array,
    bias: Array | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    output_padding: Sizes = 0,
    groups: int = 1,
    layout: str = "NDHWC",
) -> Array:
    """As `conv_transpose1d` in three dimensions: ``x`` (N, D, H, W, C) and ``w`` (O, taps, taps, taps, C / groups).

    With ``layout="NCDHW"`` they are as PyTorch has them: ``x`` (N, C, D, H, W) and ``w`` (C, O / groups, taps, taps, taps).

    Gradients, errors and the bound are those of `conv_transpose1d`, of which it raises the same: LaunchValueError for what
    does not fit. Differentiable.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x, w = np.ones((1, 1, 1, 2, 1), np.float32), np.ones((1, 1, 1, 2, 1), np.float32)
    >>> ops.conv_transpose3d(x, w).reshape(3)
    array([1., 2., 1.], dtype=float32)
    """
    return _convolve(3, True, x, w, bias, stride, padding, dilation, groups, layout, output_padding)
