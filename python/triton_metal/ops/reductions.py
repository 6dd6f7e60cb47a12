"""Reductions over any axes, with gradients. The order of additions is fixed: a result is the same each time.

The names hide Python's own `sum`, `max`, `min`, `all` and `any` in this module, which therefore has no other code.
"""

from __future__ import annotations

from ._arrays import FLOATS, Array
from ._checks import check_choice, check_number
from ._reducing import ALL, Axes, reduced


def sum(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Σ x over ``axis``: an axis, several, or all of them (None); ``keepdims`` leaves axes of one place.

    ``x`` is of any shape, a float16, bfloat16 or float32, an integer or bool. Floats are added in float32, and the result is
    like ``x``. Sums of integers and bools are int64; those of unsigned integers are uint64, but int64 in PyTorch. The sum of
    nothing is 0. Differentiable.

    Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    Error, with u = 2^-24 and beside the rounding of the result: (n / 64 + 36) u Σ |x| for n numbers, and at most (n + 4) u
    Σ |x|. Integers are exact.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.sum(np.array([[1, 2], [3, 4]], np.float32), axis=0)
    array([4., 6.], dtype=float32)
    """
    return reduced("sum", x, axis, keepdims, ALL)


def mean(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Σ x / n over ``axis``, as `sum`; the mean of integers and bools is float32. Of nothing it is NaN. Differentiable.

    Integers are rounded to float32 before they are added.

    Error: that of `sum`, divided by n. Raises what `sum` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.mean(np.array([[1, 2], [3, 4]], np.float32), axis=1, keepdims=True)
    array([[1.5],
           [3.5]], dtype=float32)
    """
    return reduced("mean", x, axis, keepdims, ALL)


def prod(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The product of x over ``axis``, with axes and dtypes as `sum` has them. Of nothing it is 1. Differentiable, also at zeros.

    Error, with u = 2^-24 and beside the rounding of the result: (n + 2) u |y| for n numbers. The gradient is the product
    divided by the number: where the product is 0 or infinite in float32 without a zero or an infinity in x, it is so, too.
    Raises what `sum` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.prod(np.array([[1, 2], [3, 4]], np.float32), axis=1)
    array([ 2., 12.], dtype=float32)
    """
    return reduced("prod", x, axis, keepdims, ALL)


def max(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest of x over ``axis``, of the dtype of ``x``; a NaN is larger than any number, as in NumPy.

    Axes and dtypes are as in `sum`. Differentiable: numbers that are equally large share the gradient equally, as in torch.amax
    and MLX; there is none where the result is NaN.

    Raises LaunchValueError, beside what `sum` says, for an axis without numbers.

    Exact.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.max(np.array([[1, 5], [3, 4]], np.int32), axis=-1)
    array([5, 4], dtype=int32)
    """
    return reduced("max", x, axis, keepdims, ALL, some=True)


def min(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """The least of x over ``axis``; all else is as in `max`. A NaN is the least of all, as in NumPy.

    Exact. Differentiable as `max` is. Raises what `max` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.min(np.array([[1, 5], [3, 4]], np.float32))
    array(1., dtype=float32)
    """
    return reduced("min", x, axis, keepdims, ALL, some=True)


def var(x: Array, axis: Axes = None, keepdims: bool = False, ddof: float = 0) -> Array:
    """Σ (x - mean)² / (n - ddof) over ``axis``, computed in float32 about the mean itself; n - ddof counts as at least 0.

    ``x`` is float16, bfloat16 or float32, of any shape, and the result is like it. Where nothing is left to divide by, it is
    infinite, and NaN if there is nothing to divide either, as in NumPy. Squares are infinite from 2^128 on, and differences of
    numbers that are infinite give NaN. Differentiable.

    Error of a variance y: three times that of `sum`, relative to y, and the square of the error of `mean`. Raises LaunchValueError for
    another dtype, an axis that ``x`` does not have, or a negative ``ddof``.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.var(np.array([[1, 3], [2, 8]], np.float32), axis=1)
    array([1., 9.], dtype=float32)
    """
    ddof = check_number("var", "ddof", ddof, least=0)
    return reduced("var", x, axis, keepdims, FLOATS, ddof=ddof)


def std(x: Array, axis: Axes = None, keepdims: bool = False, ddof: float = 0) -> Array:
    """The square root of `var`. Its gradient is NaN where the result is 0.

    Error: the root of that of `var`, or that divided by the result where it is less. Raises what `var` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.std(np.array([[1, 3], [2, 8]], np.float32), axis=1)
    array([1., 3.], dtype=float32)
    """
    ddof = check_number("std", "ddof", ddof, least=0)
    return reduced("std", x, axis, keepdims, FLOATS, ddof=ddof)


def logsumexp(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """log Σ exp(x) over ``axis``, from the largest number on so that nothing overflows; -inf of nothing or of -inf alone.

    ``x`` is float16, bfloat16 or float32, of any shape, and the result is like it. Differentiable.

    Error, with u = 2^-24 and beside the rounding of the result: that of the sum of exponentials, 8 u (|y| + max |x|) and 16
    u. Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.logsumexp(np.array([[100, 100], [-100, 0]], np.float32), axis=1).round(4)
    array([100.6931,   0.    ], dtype=float32)
    """
    return reduced("logsumexp", x, axis, keepdims, FLOATS)


def norm(x: Array, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The length of x along ``axis``: √Σ x² for ``ord`` 2, Σ |x| for 1, the largest |x| for infinity.

    ``x`` is float16, bfloat16 or float32, of any shape, and the result is like it; squares are added in float32, and are infinite
    from 2^128 on. Differentiable: at 0 the gradient is 0, and for infinity equally large numbers share it equally.

    Error: that of `sum`. Raises LaunchValueError for another dtype or ``ord``, an axis that ``x`` does not have, and for
    infinity one without numbers.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.norm(np.array([[3, 4], [5, 12]], np.float32), axis=1)
    array([ 5., 13.], dtype=float32)
    """
    check_choice("norm", "ord", ord, (1, 2, float("inf")))
    kind = {1: "norm1", 2: "norm"}.get(ord, "norminf")
    return reduced("norm", x, axis, keepdims, FLOATS, kind, some=kind == "norminf")


def all(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether no number over ``axis`` is 0 or False, as bools; axes and dtypes are as in `sum`. NaN is not 0. True of nothing.

    Exact. Without gradients. Raises what `sum` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.all(np.array([[True, False], [True, True]]), axis=1)
    array([False,  True])
    """
    return reduced("all", x, axis, keepdims, ALL)


def any(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether a number over ``axis`` is not 0 or False, as bools; axes and dtypes are as in `sum`. NaN is not 0. False of nothing.

    Exact. Without gradients. Raises what `sum` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.any(np.array([[0, 0], [0, 2]], np.int32), axis=1)
    array([False,  True])
    """
    return reduced("any", x, axis, keepdims, ALL)
