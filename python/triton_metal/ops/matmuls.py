"""Matrix products of one to many dimensions, with bias and activation, and their gradients.

Operands keep their strides: a transposed view is read where it lies (MLX hands over row-major copies of views; there
``transpose_a`` and ``transpose_b`` read an array the other way). Few tiles and a long K are split: parts of K are
computed by programs of their own, and added up in a second step, always in the same order.
"""

from __future__ import annotations

import sys
from typing import Any

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array, contiguous, dtype_name, is_torch, size_of
from ._checks import (
    check_arrays,
    check_choice,
    check_dtype,
    check_flag,
    check_rank,
    check_shape,
    fail,
    integer,
    listed,
)
from ._launch import launch
from ._matrix_kernels import activation_backward_kernel
from ._operators import Operator
from ._products import FLOATS8, broadcast_batch, column_sums, product, product_type

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh")
#: Those whose derivative follows from their result.
_FROM_RESULT = ("relu", "sigmoid", "tanh")


def _forward(keep: bool) -> Any:
    def forward(
        a: Array, b: Array, bias: Array | None, transpose_a: bool, transpose_b: bool, batch: Any,
        activation: str, split_k: int, out_dtype: str, precision: str,
    ) -> tuple[Array, ...]:  # fmt: skip
        return product(
            a, b, transpose_a, transpose_b, tuple(batch), out_dtype, bias=bias,
            activation=activation, keep=keep, split_k=split_k, precision=precision,
        )  # fmt: skip

    return forward


def _results(count: int) -> Any:
    def results(
        a: Array, b: Array, bias: Any, transpose_a: bool, transpose_b: bool, batch: Any,
        activation: str, split_k: int, out_dtype: str, precision: str,
    ) -> list[Any]:  # fmt: skip
        m, n = a.shape[-1 if transpose_a else -2], b.shape[-2 if transpose_b else -1]
        return [((*batch, m, n), out_dtype)] * count

    return results


def _gradient(kept: Any, dc: Array, _: Any = None) -> dict[str, Array]:
    """Products with dz, the gradient of what the activation is given; a sum of its rows for the bias."""
    a, b, ta, tb, dz = kept.a, kept.b, kept.transpose_a, kept.transpose_b, dc
    if kept.activation:
        if kept.activation in _FROM_RESULT:
            given = kept.c
        elif hasattr(kept, "z"):
            given = kept.z
        else:
            (given,) = _MATMUL(
                a,
                b,
                kept.bias,
                ta,
                tb,
                kept.batch,
                "",
                kept.split_k,
                kept.out_dtype,
                kept.precision,
            )
        (dz,) = _ACTIVATION_BACKWARD(dc, given, kept.activation)

    def multiply(x: Array, y: Array, tx: bool, ty: bool, like: Array) -> Array:
        batch = tuple(like.shape[:-2])
        return _MATMUL(x, y, None, tx, ty, batch, "", 0, dtype_name(like), kept.precision)[0]

    found = {}
    if "a" in kept.needs:
        found["a"] = multiply(b, dz, tb, True, a) if ta else multiply(dz, b, False, not tb, a)
    if "b" in kept.needs:
        found["b"] = multiply(dz, a, True, ta, b) if tb else multiply(a, dz, not ta, False, b)
    if "bias" in kept.needs:
        (found["bias"],) = _COLUMN_SUMS(dz, dtype_name(kept.bias))
    return found


_ARGUMENTS = (
    "(Tensor a, Tensor b, Tensor? bias, bool transpose_a, bool transpose_b, int[] batch, "
    "str activation, int split_k, str out_dtype, str precision)"
)
_MATMUL = Operator(
    f"matmul{_ARGUMENTS} -> (c)", _forward(False), _results(1), _gradient, keeps="a b bias"
)
_MATMUL_ACTIVATED = Operator(
    f"matmul_activated{_ARGUMENTS} -> (c)",
    _forward(False),
    _results(1),
    _gradient,
    keeps="a b bias c",
)
_MATMUL_KEPT = Operator(
    f"matmul_kept{_ARGUMENTS} -> (c, z)", _forward(True), _results(2), _gradient, keeps="a b bias z"
)


def _activation_backward(dc: Array, given: Array, activation: str) -> tuple[Array, ...]:
    size = size_of(tuple(dc.shape))
    return launch(
        activation_backward_kernel,
        (-(-size // 1024),),
        {"dz_ptr": (dc.shape, dtype_name(dc))},
        like=dc,
        dc_ptr=contiguous(dc),
        x_ptr=contiguous(given),
        size=size,
        ACTIVATION=activation,
        BLOCK=1024,
    )


_ACTIVATION_BACKWARD = Operator(
    "matmul_activation_backward(Tensor dc, Tensor given, str activation) -> (dz)",
    _activation_backward,
    lambda dc, *_: [(dc.shape, dtype_name(dc))],
)
_COLUMN_SUMS = Operator(
    "matmul_column_sums(Tensor x, str dtype) -> (y)",
    column_sums,
    lambda x, dtype: [((x.shape[-1],), dtype)],
)


def dtype_argument(function: str, name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """The name of the dtype that ``value``, a name or a framework's dtype, stands for."""
    found = value if isinstance(value, str) else getattr(value, "__name__", str(value))
    found = found.removeprefix("torch.").removeprefix("mlx.core.")
    if found not in allowed:
        raise fail(function, f"{name} must be {listed(allowed)} but is {value}.")
    return found


def check_split(function: str, split_k: Any) -> int:
    """The parts of K, or 0 where the shape decides."""
    if split_k is None:
        return 0
    parts = integer(split_k)
    if parts is None:
        raise LaunchTypeError(f"[{function}] split_k must be an integer but is {split_k!r}.")
    if not 1 <= parts < 2**31:
        raise fail(function, f"split_k must be from 1 to 2**31 - 1 but is {parts}.")
    return parts


def _check_dtypes(function: str, a: Array, b: Array, bias: Array | None, names: Any) -> str:
    """The dtype in which a and b are multiplied."""
    types = (*FLOATS, *FLOATS8, "int8")
    check_dtype(function, names[0], a, types)
    check_dtype(function, names[1], b, types)
    integers = [dtype_name(x) == "int8" for x in (a, b)]
    if integers[0] != integers[1]:
        raise fail(
            function,
            f"{names[0]} and {names[1]} must both have dtype int8 or neither, "
            f"but have dtypes {dtype_name(a)} and {dtype_name(b)}.",
        )
    if bias is not None:
        check_dtype(function, "bias", bias, ("int32",) if integers[0] else FLOATS)
    return product_type(dtype_name(a), dtype_name(b))


def _run(
    function: str, a: Array, b: Array, bias: Array | None, activation: str | None,
    split_k: int | None, out_dtype: Any, precision: str | None, transpose: tuple[bool, bool],
    names: tuple[str, str],
) -> Array:  # fmt: skip
    """The checks of both functions, and the operator that fits. a and b have at least two dimensions."""
    multiplied = _check_dtypes(function, a, b, bias, names)
    if activation is not None:
        check_choice(function, "activation", activation, (None, *ACTIVATIONS))
    if multiplied == "int8" and activation not in (None, "relu"):
        raise fail(
            function, f"activation must be None or 'relu' for int8 operands but is {activation!r}."
        )
    depths = a.shape[-2 if transpose[0] else -1], b.shape[-1 if transpose[1] else -2]
    if depths[0] != depths[1]:
        raise fail(
            function,
            f"{names[0]} and {names[1]} must agree in the dimension that is added up, but it has {depths[0]} and "
            f"{depths[1]} elements in the shapes {tuple(a.shape)} and {tuple(b.shape)}.",
        )
    try:
        batch = broadcast_batch(a, b)
    except ValueError:
        raise fail(
            function,
            f"{names[0]} and {names[1]} must have batch dimensions that broadcast, but these are "
            f"{tuple(a.shape[:-2])} and {tuple(b.shape[:-2])}.",
        ) from None
    if bias is not None:
        n = b.shape[-2 if transpose[1] else -1]
        check_shape(function, "bias", bias, (n,), ", one number for each column of the result,")
    if precision is not None:
        check_choice(function, "precision", precision, (None, "ieee", "tf32"))
    split = check_split(function, split_k)
    allowed = ("int32", *FLOATS) if multiplied == "int8" else FLOATS
    default = "int32" if multiplied == "int8" else multiplied
    if dtype_name(a) in FLOATS8 and dtype_name(b) in FLOATS8:
        default = "bfloat16"  # which has the range of their products
    dtype = (
        default if out_dtype is None else dtype_argument(function, "out_dtype", out_dtype, allowed)
    )
    arguments = (
        a, b, bias, *transpose, batch, activation or "", split, dtype, precision or "ieee",
    )  # fmt: skip
    if not activation:
        return _MATMUL(*arguments)[0]
    if (
        activation not in _FROM_RESULT
        and is_torch(a)
        and sys.modules["torch"].is_grad_enabled()
        and any(x is not None and x.requires_grad for x in (a, b, bias))
    ):
        return _MATMUL_KEPT(*arguments)[0]
    return _MATMUL_ACTIVATED(*arguments)[0]


def matmul(
    a: Array,
    b: Array,
    bias: Array | None = None,
    activation: str | None = None,
    *,
    split_k: int | None = None,
    out_dtype: Any = None,
    precision: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Array:
    """activation(a @ b + bias), summed in float32, or in int32 for int8.

    Shapes are NumPy's: ``a`` (..., M, K) times ``b`` (..., K, N) with batch dimensions that broadcast gives (..., M, N); an operand
    of one dimension is a row or a column that the result lacks. With ``transpose_a`` (``transpose_b``) the last two
    dimensions of the operand are exchanged. Views of NumPy and PyTorch are read where they lie, in any strides. ``bias`` has
    shape (N,); it needs a ``b`` with two dimensions or more.

    Dtypes: float16, bfloat16, float32, float8_e4m3fn and float8_e5m2 (of PyTorch or ml_dtypes) in any pair, or int8
    twice. The result has the wider dtype, float32 for float16 with bfloat16, bfloat16 for two of 8 bits, int32 for int8;
    or ``out_dtype``: float16, bfloat16, float32 (int32 for int8 alone), by name or as the framework's dtype. The bias
    is any float of 16 or 32 bits, and int32 for int8. Floats are rounded once, when they are stored.

    ``activation`` is None, "relu", "gelu" (with erf), "gelu_tanh", "silu", "sigmoid" or "tanh"; for int8 None or "relu".
    ``split_k`` is the number of parts that K is cut into; without it, the shape decides. ``precision`` "tf32" lets
    chips with tensor operations multiply float32 in fewer bits; None and "ieee" do not.

    Differentiable in ``a``, ``b`` and ``bias`` where they are float16, bfloat16 or float32.

    Raises LaunchValueError for shapes, dtypes or names that do not fit, LaunchTypeError for arguments that are no arrays of one framework.

    Error, with u = 2^-24 and beside the rounding of the result: min(K, 6 √K) u Σ |a| |b|; int8 is exact, and wraps around.

    >>> import numpy as np, triton_metal.ops as ops
    >>> a, b = np.array([[1, 2], [3, 4]], np.float32), np.array([[1, -1], [0, 1]], np.float32)
    >>> ops.matmul(a, b, np.array([0, -2], np.float32), "relu")
    array([[1., 0.],
           [3., 0.]], dtype=float32)
    >>> ops.matmul(a, a[0])
    array([ 5., 11.], dtype=float32)
    """
    check_arrays("matmul", "bias", a=a, b=b, bias=bias)
    check_rank("matmul", "a", a, 1, 1 << 16)
    check_rank("matmul", "b", b, 1, 1 << 16)
    for name, x, transposed in (("a", a, transpose_a), ("b", b, transpose_b)):
        check_flag("matmul", f"transpose_{name}", transposed)
        if x.ndim == 1 and transposed:
            raise fail(
                "matmul", f"transpose_{name} needs an {name} of 2 dimensions or more but it has 1."
            )
    if b.ndim == 1 and bias is not None:
        raise fail("matmul", "bias needs a b of 2 dimensions or more, but b has 1.")
    left = a.reshape(1, a.shape[0]) if a.ndim == 1 else a
    right = b.reshape(b.shape[0], 1) if b.ndim == 1 else b
    c = _run(
        "matmul", left, right, bias, activation, split_k, out_dtype, precision,
        (bool(transpose_a), bool(transpose_b)), ("a", "b"),
    )  # fmt: skip
    if a.ndim > 1 and b.ndim > 1:
        return c
    shape = tuple(c.shape)
    ends = (shape[-2:-1] if a.ndim > 1 else ()) + (shape[-1:] if b.ndim > 1 else ())
    return c.reshape((*shape[:-2], *ends))


def linear(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    activation: str | None = None,
    *,
    split_k: int | None = None,
    out_dtype: Any = None,
    precision: str | None = None,
) -> Array:
    """activation(x @ weight.T + bias): a layer of PyTorch's and MLX's ``nn.Linear``, whose weight is (outputs, inputs).

    ``x`` is (..., inputs), ``bias`` (outputs,), the result (..., outputs). Dtypes, activations and the other arguments are those
    of ``matmul``. Differentiable in ``x``, ``weight`` and ``bias``.

    Raises LaunchValueError for shapes, dtypes or names that do not fit, LaunchTypeError for arguments that are no arrays of one framework.

    Error, with u = 2^-24 and beside the rounding of the result: min(inputs, 6 √inputs) u Σ |x| |weight|; int8 is exact, and
    wraps around.

    >>> import numpy as np, triton_metal.ops as ops
    >>> weight = np.array([[1, 0, 1], [0, 2, 0]], np.float32)
    >>> ops.linear(np.array([1, 2, 3], np.float32), weight, np.array([10, 20], np.float32))
    array([14., 24.], dtype=float32)
    """
    check_arrays("linear", "bias", x=x, weight=weight, bias=bias)
    check_rank("linear", "x", x, 1, 1 << 16)
    check_rank("linear", "weight", weight, 2)
    rows = x.reshape(1, x.shape[0]) if x.ndim == 1 else x
    y = _run(
        "linear", rows, weight, bias, activation, split_k, out_dtype, precision, (False, True),
        ("x", "weight"),
    )  # fmt: skip
    return y.reshape(y.shape[-1]) if x.ndim == 1 else y
