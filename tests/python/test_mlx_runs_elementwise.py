"""MLX's elementwise kernels against NumPy: every operation, and every way that its arrays can lie."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from mlx_kernels import NEEDS_MLX
from mlx_kernels.elementwise import binary_operations, unary_operations
from mlx_kernels.family import FLOATS, TYPES
from mlx_kernels.running import (
    assert_close,
    blank,
    decode,
    encode,
    i32,
    i64,
    launch,
    metal,
    numbers,
    some,
    together,
)

pytestmark = NEEDS_MLX
ERF = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "Abs": np.abs,
    "ArcCos": np.arccos,
    "ArcCosh": np.arccosh,
    "ArcSin": np.arcsin,
    "ArcSinh": np.arcsinh,
    "ArcTan": np.arctan,
    "ArcTanh": np.arctanh,
    "BitwiseInvert": np.invert,
    "Ceil": np.ceil,
    "Conjugate": np.conj,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": lambda x: ERF(x),
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Floor": np.floor,
    "Imag": np.imag,
    "Log": np.log,
    "Log10": np.log10,
    "Log1p": np.log1p,
    "Log2": np.log2,
    "LogicalNot": np.logical_not,
    "Negative": np.negative,
    "Real": np.real,
    "Round": np.rint,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sign": np.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
BINARY = {
    "Add": np.add,
    "ArcTan2": np.arctan2,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LeftShift": np.left_shift,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogAddExp": np.logaddexp,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Multiply": np.multiply,
    "NaNEqual": lambda a, b: (a == b) | (np.isnan(a) & np.isnan(b)),
    "NotEqual": np.not_equal,
    "Power": np.power,
    "RightShift": np.right_shift,
    "Subtract": np.subtract,
}
SIZE = 1001


def chosen(operations: Iterator[tuple[str, str, str]], t: str) -> list[tuple[str, str, str]]:
    return some([each for each in operations if each[1] == t], t)


def split(t: str) -> int:
    """The elements of one thread."""
    return max(1, 8 // np.dtype({"bool_": "bool", "bfloat16": "uint16"}.get(t, t)).itemsize)


def domain(op: str, t: str) -> np.ndarray:
    """Numbers for which the operation is defined."""
    if t == "complex64" or t not in FLOATS:
        x = numbers((SIZE,), t, 3)
        return np.where(x == 0, 1, x).astype(x.dtype) if op == "Sign" and t == "complex64" else x
    low, high = {
        "ArcCos": (-1, 1),
        "ArcSin": (-1, 1),
        "ArcTanh": (-0.9, 0.9),
        "ArcCosh": (1.01, 9),
        "Round": (-9, 9),
    }.get(op, (0.02, 6))
    return decode(encode(np.linspace(low, high, SIZE, dtype=np.float32), t), t)


@pytest.mark.parametrize("t", TYPES)
def test_unary(t: str) -> None:
    # NumPy has few operations for truth values.
    operations = [
        each
        for each in chosen(unary_operations(), t)
        if each[0] in UNARY and (t != "bool_" or each[0] == "LogicalNot")
    ]
    together("unary", [("unary_v", metal(s), metal(r), op) for op, s, r in operations])
    for op, source, target in operations:
        x = domain(op, t)
        (out,) = launch(
            "unary",
            ("unary_v", metal(source), metal(target), op),
            {0: encode(x, t), 1: blank((SIZE,), target), 2: np.array([SIZE], np.uint32)},
            [1],
            grid=(-(-SIZE // split(t)),),
            group=(64,),
        )
        exact = UNARY[op](x)
        loose = 60 if t in ("complex64", "float32") else 4
        # MLX takes inverse complex functions from logarithms near one.
        atol = 1e-3 if op.startswith("Arc") and t == "complex64" else 2e-6 * (t in FLOATS)
        assert_close(out, exact, target, terms=loose, atol=atol)


@pytest.mark.parametrize(
    ("kernel", "index"), [("unary_g", "int"), ("unary_g", "int64_t"), ("unary_v2", "")]
)
def test_unary_layouts(kernel: str, index: str) -> None:
    x = numbers((7, 5, 33), "float32", 1)
    if kernel == "unary_v2":
        buffers = {0: encode(x, "float32"), 1: blank(x.shape, "float32"), 2: i64(x.size)}
        arguments, grid = (), (-(-x.size // 2), 1)
    else:
        given = encode(x.transpose(2, 0, 1), "float32")  # strides of a permuted array
        buffers = {
            0: given,
            1: blank(x.shape, "float32"),
            2: i32(7, 5, 33),
            3: i64(5, 1, 35),
            4: i32(3),
        }
        arguments, grid = (4, index), (9, 5, 7)
    (out,) = launch(
        "unary",
        (kernel, "float", "float", "Negative", *arguments),
        buffers,
        [1],
        grid=grid,
        group=(8, 4, 1),
    )
    np.testing.assert_array_equal(out, -x.astype(np.float32))


@pytest.mark.parametrize("t", TYPES)
def test_binary(t: str) -> None:
    # NumPy has no difference of truth values, and orders complex numbers otherwise.
    missing = {
        "bool_": {"Subtract", "Power"},
        "complex64": {"Power", "LogAddExp", "Maximum", "Minimum"}
        | {"Greater", "GreaterEqual", "Less", "LessEqual"},
    }.get(t, set())
    operations = [
        each
        for each in chosen(binary_operations(), t)
        if each[0] in BINARY and each[0] not in missing
    ]
    together("binary", [("binary_vv", metal(s), metal(r), op) for op, s, r in operations])
    for op, source, target in operations:
        a, b = numbers((SIZE,), t, 1), numbers((SIZE,), t, 2)
        a[::7] = b[::7]
        if "Shift" in op or (op == "Power" and t not in FLOATS):
            b = (np.abs(b.astype(np.int64)) % (3 if op == "Power" else 8)).astype(b.dtype)
        elif op == "Power":
            a = np.abs(a) + 0.1
            a, b = decode(encode(a, t), t), b
        with np.errstate(all="ignore"):
            exact = BINARY[op](a, b)
        (out,) = launch(
            "binary",
            ("binary_vv", metal(source), metal(target), op),
            {
                0: encode(a, t),
                1: encode(b, t),
                2: blank((SIZE,), target),
                3: np.array([SIZE], np.uint32),
            },
            [2],
            grid=(-(-SIZE // split(t)),),
            group=(64,),
        )
        assert_close(out, exact, target, terms=4, atol=1e-6)


@pytest.mark.parametrize("t", ["int32", "uint8", "int64", "float32", "float16", "bfloat16"])
def test_division(t: str) -> None:
    """Divide, Remainder and DivMod: integers are rounded down."""
    a, b = numbers((SIZE,), t, 1), numbers((SIZE,), t, 2)
    b = np.where(b == 0, 3, b).astype(b.dtype)
    grid = (-(-SIZE // split(t)),)
    size = np.array([SIZE], np.uint32)
    given = {0: encode(a, t), 1: encode(b, t), 2: blank((SIZE,), t)}
    (remainder,) = launch(
        "binary",
        ("binary_vv", metal(t), metal(t), "Remainder"),
        given | {3: size},
        [2],
        grid=grid,
        group=(64,),
    )
    assert_close(remainder, np.remainder(a, b), t, terms=40)
    whole, rest = launch(
        "binary_two",
        ("binary_vv", metal(t), metal(t), "DivMod"),
        given | {3: blank((SIZE,), t), 4: size},
        [2, 3],
        grid=grid,
        group=(64,),
    )
    exact = (
        np.trunc(a / b)
        if t in FLOATS
        else (np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))) * np.sign(a) * np.sign(b)
    )
    assert_close(whole, np.asarray(exact).astype(a.dtype), t)
    assert rest.shape == whole.shape


#: kernel, template arguments, the shape and strides of each operand, grid
LAYOUTS = [
    ("binary_ss", (), 1, (1,)),
    ("binary_sv", (1,), 301, (301,)),
    ("binary_vs", (), 301, (151,)),
    ("binary_sv2", (), 301, (151, 1)),
    ("binary_vs2", (), 301, (151, 1)),
    ("binary_vv2", (), 301, (151, 1)),
]


@pytest.mark.parametrize(("kernel", "arguments", "size", "grid"), LAYOUTS)
def test_binary_of_scalars_and_vectors(kernel: str, arguments, size: int, grid) -> None:
    kind = kernel.removeprefix("binary_").removesuffix("2")
    a = numbers((1 if kind[0] == "s" else size,), "float32", 1)
    b = numbers((1 if kind[1] == "s" else size,), "float32", 2)
    buffers = {0: encode(a, "float32"), 1: encode(b, "float32"), 2: blank((size,), "float32")}
    if kind != "ss":
        buffers[3] = i64(size) if kernel.endswith("2") else np.array([size], np.uint32)
    (out,) = launch(
        "binary",
        (kernel, "float", "float", "Subtract", *arguments),
        buffers,
        [2],
        grid=grid,
        group=(32,),
    )
    assert_close(out, a - b, "float32")


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_binary_and_select_of_strided_arrays(ndim: int, large: bool) -> None:
    """The second operand is transposed, the third is broadcast along its last dimension."""
    shape = (5, 2, 7, 9)[4 - ndim :]
    index = () if large else ("int",)
    if ndim == 4:
        index = (4,) if large else (2, "int")
    suffix = f"_nd{ndim}" if ndim < 4 else ""
    a = numbers(shape, "float32", 1)
    b = numbers(shape[::-1], "float32", 2)
    strides = [np.array(each.strides) // 8 for each in (a, b.T)]
    stride = [each.astype(np.int64) for each in strides]
    columns = shape[-1] if ndim < 4 else -(-shape[-1] // (4 if large else 2))
    grid = (columns, *shape[-2::-1][:1], int(np.prod(shape[:-2]))) if ndim > 1 else (columns,)
    more = (
        {3: i32(*shape), 4: stride[0], 5: stride[1], 6: i32(ndim)}
        if ndim == 4
        else {3: stride[0], 4: stride[1]}
    )
    given = {0: encode(a, "float32"), 1: encode(b, "float32"), 2: blank(shape, "float32")}
    (out,) = launch(
        "binary",
        (f"binary_g{suffix}", "float", "float", "Subtract", *index),
        given | more,
        [2],
        grid=grid,
        group=(4,),
    )
    assert_close(out, a - b.T, "float32")
    picks = numbers(shape, "bool_", 4)
    third = numbers((*shape[:-1], 1), "float32", 5)
    last = np.array(third.strides, np.int64) // 8
    last[-1] = 0
    places = [stride[0], stride[1], last]
    more = (
        {4: i32(*shape), **dict(enumerate(places, 5)), 8: i32(ndim)}
        if ndim == 4
        else dict(enumerate(places, 4))
    )
    (out,) = launch(
        "ternary",
        (f"ternary_g{suffix}", "float", "Select", *index),
        {
            0: encode(picks, "bool_"),
            1: encode(b, "float32"),
            2: encode(third, "float32"),
            3: blank(shape, "float32"),
        }
        | more,
        [3],
        grid=grid,
        group=(4,),
    )
    assert_close(out, np.where(picks, b.T, third), "float32")


@pytest.mark.parametrize("t", TYPES)
def test_select(t: str) -> None:
    picks, a, b = numbers((SIZE,), "bool_", 1), numbers((SIZE,), t, 2), numbers((1,), t, 3)
    (out,) = launch(
        "ternary",
        ("ternary_v", metal(t), "Select", False, True),
        {
            0: encode(picks, "bool_"),
            1: encode(a, t),
            2: encode(b, t),
            3: blank((SIZE,), t),
            4: np.array([SIZE], np.uint32),
        },
        [3],
        grid=(-(-SIZE // split(t)),),
        group=(64,),
    )
    assert_close(out, np.where(picks, a, b), t)


@pytest.mark.parametrize("t", [each for each in TYPES if each not in ("bool_", "complex64")])
def test_arange(t: str) -> None:
    start, step = encode(np.array([3]), t), encode(np.array([2]), t)
    (out,) = launch(
        "arange",
        ("arange", metal(t)),
        {0: start, 1: step, 2: blank((101,), t)},
        [2],
        grid=(101,),
        group=(32,),
    )
    exact = 3 + 2 * np.arange(101)
    np.testing.assert_array_equal(decode(out, t), decode(encode(exact, t), t))


@pytest.mark.parametrize("source", TYPES)
def test_copy_to_each_type(source: str) -> None:
    x = np.abs(numbers((SIZE,), source, 1)) if source != "bool_" else numbers((SIZE,), source, 1)
    targets = list(TYPES)[list(TYPES).index(source) % 4 :: 4]
    if source == "complex64":
        targets = [source]
    together("copy", [("copy_v", metal(source), metal(target)) for target in targets])
    for target in targets:
        (out,) = launch(
            "copy",
            ("copy_v", metal(source), metal(target)),
            {0: encode(x, source), 1: blank((SIZE,), target), 2: np.array([SIZE], np.uint32)},
            [1],
            grid=(-(-SIZE // max(1, 8 // np.dtype(out_type(target)).itemsize)),),
            group=(64,),
        )
        exact = decode(encode(decode(encode(x, source), source), target), target)
        np.testing.assert_array_equal(decode(out, target), exact, err_msg=f"{source} to {target}")


def out_type(t: str) -> str:
    return {"bool_": "bool", "bfloat16": "uint16"}.get(t, t)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("ndim", [1, 2, 3, 4])
def test_copy_between_strided_arrays(ndim: int, dynamic: bool) -> None:
    """From a transposed array into every second column of another one; `dynamic` gives both an offset."""
    shape = (3, 2, 7, 9)[4 - ndim :]
    x = numbers(shape[::-1], "float32", 1)
    from_strides = (np.array(x.T.strides) // 8).astype(np.int64)
    wide = np.zeros((*shape[:-1], 2 * shape[-1] + 4), np.float32)
    to_strides = (np.array(wide.strides) // 4).astype(np.int64)
    to_strides[-1] = 2
    suffix = f"_nd{ndim}" if ndim < 4 else ""
    name = f"copy_gg{'_dynamic' if dynamic else ''}{suffix}"
    index = (2, "int") if ndim == 4 else ("int",)
    columns = shape[-1] if ndim < 4 else -(-shape[-1] // 2)
    grid = (columns, shape[-2], int(np.prod(shape[:-2]))) if ndim > 1 else (columns,)
    buffers = {0: encode(x, "float32"), 1: wide, 3: from_strides, 4: to_strides}
    if ndim == 4:
        buffers |= {2: i32(*shape), 5: i32(ndim)}
    if ndim == 1:
        buffers |= {3: from_strides, 4: to_strides}
    if dynamic:
        buffers |= {6: i64(0), 7: i64(3)}
    (out,) = launch("copy", (name, "float", "float", *index), buffers, [1], grid=grid, group=(4,))
    wide[..., :] = 0
    flat = np.zeros(wide.size, np.float32)
    places = sum(np.indices(shape)[i] * to_strides[i] for i in range(ndim)) + 3 * dynamic
    flat[places] = x.T
    np.testing.assert_array_equal(out.ravel(), flat)


def test_all_layouts_of_copies_to_contiguous_arrays() -> None:
    x = numbers((7, 9), "float32", 1)
    (out,) = launch(
        "copy",
        ("copy_g_nd2", "float", "half", "int"),
        {0: encode(x, "float32"), 1: blank((9, 7), "float16"), 3: i64(1, 9)},
        [1],
        grid=(7, 9),
        group=(4, 4),
    )
    assert_close(out, x.T, "float16")
    (out,) = launch(
        "copy",
        ("copy_s", "float", "int"),
        {0: encode(x[:1, :1], "float32"), 1: blank((70,), "int32"), 2: np.array([70], np.uint32)},
        [1],
        grid=(35,),
        group=(8,),
    )
    np.testing.assert_array_equal(out, np.full(70, np.trunc(x[0, 0])))


def test_fp8() -> None:
    """To E4M3 and back: each of its numbers is itself."""
    codes = np.array([c for c in range(256) if c & 0x7F != 0x7F], np.uint8)
    together(
        "unary",
        [
            ("unary_v", *each)
            for t in FLOATS
            for each in (("uint8_t", metal(t), "FromFP8"), (metal(t), "uint8_t", "ToFP8"))
        ],
    )
    for t in FLOATS:
        size = np.array([codes.size], np.uint32)
        grid = (codes.size,)
        (wide,) = launch(
            "unary",
            ("unary_v", "uint8_t", metal(t), "FromFP8"),
            {0: codes, 1: blank(codes.shape, t), 2: size},
            [1],
            grid=grid,
            group=(32,),
        )
        exponents, digits = codes >> 3 & 15, codes & 7
        exact = np.where(
            exponents == 0, digits * 2.0**-9, (8 + digits) * 2.0 ** (exponents.astype(int) - 10)
        )
        np.testing.assert_array_equal(decode(wide, t), np.where(codes & 128, -exact, exact))
        (back,) = launch(
            "unary",
            ("unary_v", metal(t), "uint8_t", "ToFP8"),
            {0: wide, 1: blank(codes.shape, "uint8"), 2: size},
            [1],
            grid=grid,
            group=(32,),
        )
        np.testing.assert_array_equal(back, codes)
