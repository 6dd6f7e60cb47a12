"""triton_metal.ops.scaled_matmul against float64: 8-bit floats, and blocks of 32 with a power of two."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops import scaled_matmuls
from triton_metal.ops._choices import forced

from _bounds import accumulation
from _counts import counting
from ops_support import FRAMEWORKS, assert_near, far_apart, made, numbers, rounded

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
BYTES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "mxfp8": ml_dtypes.float8_e4m3fn}  # fmt: skip


def operand(form: str, rows: tuple[int, ...], k: int, seed: int, scaled: str = "rows") -> Any:
    """What a function takes for an operand, its scale, and the numbers that both stand for."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((*rows, k))
    if form in ("mxfp4", "mxfp8"):
        exponents = rng.integers(107, 148, (*rows, k // 32)).astype(np.uint8)
        powers = np.repeat(np.exp2(exponents - 127.0), 32, axis=-1)
        if form == "mxfp4":
            codes = rng.integers(0, 16, (*rows, k)).astype(np.uint8)
            return codes[..., ::2] | (codes[..., 1::2] << 4), exponents, E2M1[codes] * powers
        small = x.astype(BYTES[form])
        return small.view(np.uint8), exponents, small.astype(np.float64) * powers
    values, given = rounded(x, "float32"), x.astype(np.float32)
    if form in BYTES:
        small = x.astype(BYTES[form])
        values, given = small.astype(np.float64), small.view(np.uint8)
    elif form != "float32":
        values = given = rounded(x, form)
    shape = {"rows": (*rows, 1), "flat": rows, "one": (1,), "": None}[scaled]
    if shape is None:
        return given, None, values
    scale = np.exp(rng.standard_normal(shape)).astype(np.float32)
    factor = scale.astype(np.float64)
    return given, scale, values * (factor[..., None] if scaled == "flat" else factor)


def arguments(framework: str, forms: tuple[str, str], a: Any, b: Any) -> tuple[list, dict]:
    given = []
    for form, (x, _, _) in zip(forms, (a, b), strict=True):
        given.append(made(framework, x, "uint8" if x.dtype == np.uint8 else form))
    for _, scale, _ in (a, b):
        given.append(None if scale is None else made(framework, scale, str(scale.dtype)))
    formats = {f"{n}_format": form for n, form in zip("ab", forms, strict=True) if "float" not in form}  # fmt: skip
    return given, formats


def check(framework: str, forms: tuple[str, str], rows: tuple, n: int, k: int, scaled: tuple = ("rows", "flat"), dtype: str = "float32", **options: Any) -> None:  # fmt: skip
    a, b = operand(forms[0], rows, k, 1, scaled[0]), operand(forms[1], (n,), k, 2, scaled[1])
    given, formats = arguments(framework, forms, a, b)
    found = ops.scaled_matmul(*given, **formats, out_dtype=dtype, **options)
    exact = a[2] @ b[2].T
    # Scales are multiplied behind the sum: two more roundings.
    bound = accumulation(np.abs(a[2]) @ np.abs(b[2]).T, k) + 2.0**-22 * np.abs(exact)
    assert_near(found, exact, bound, dtype)


@pytest.mark.parametrize("forms", [("e4m3", "e4m3"), ("e5m2", "e4m3"), ("float16", "e5m2"), ("bfloat16", "e4m3"), ("e4m3", "float32"), ("mxfp4", "mxfp4"), ("mxfp8", "mxfp8"), ("mxfp8", "mxfp4"), ("e4m3", "mxfp4"), ("float16", "mxfp4"), ("bfloat16", "mxfp8"), ("mxfp4", "bfloat16")], ids=" ".join)  # fmt: skip
def test_formats(forms: tuple[str, str]) -> None:
    check("numpy", forms, (37,), 41, 96)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("forms", [("e4m3", "e5m2"), ("mxfp4", "mxfp8")], ids=" ".join)
def test_frameworks(forms: tuple[str, str], framework: str) -> None:
    check(framework, forms, (2, 9), 20, 64, dtype="bfloat16")
    check(framework, forms, (2, 9), 20, 64, ("one", ""))


@pytest.mark.parametrize("forms", [("e4m3", "e4m3"), ("mxfp4", "mxfp4")], ids=" ".join)
@pytest.mark.parametrize("size", [((1,), 70, 320), ((3, 5), 1, 64), ((0,), 4, 32), ((2, 3), 0, 32), ((5,), 6, 0), ((130,), 33, 32), ((4,), 8, 2048)], ids=str)  # fmt: skip
def test_shapes(size: tuple, forms: tuple[str, str]) -> None:
    check("numpy", forms, *size)


@pytest.mark.parametrize("forms", [("e4m3", "e4m3"), ("mxfp8", "mxfp4")], ids=" ".join)
@pytest.mark.parametrize("split_k", [1, 3])
def test_bias_activation_and_parts_of_k(split_k: int, forms: tuple[str, str]) -> None:
    a, b = operand(forms[0], (20,), 256, 1, "one"), operand(forms[1], (35,), 256, 2, "rows")
    bias = np.random.default_rng(3).standard_normal(35).astype(np.float32)
    given, formats = arguments("numpy", forms, a, b)
    found = ops.scaled_matmul(*given, **formats, bias=bias, activation="relu", split_k=split_k, out_dtype="float32")  # fmt: skip
    exact = a[2] @ b[2].T + bias
    bound = accumulation(np.abs(a[2]) @ np.abs(b[2]).T + np.abs(bias), 257) * 2
    assert_near(found, np.maximum(exact, 0), bound, "float32")


def test_scale_255_is_nan_and_numbers_are_scales() -> None:
    a, b = operand("mxfp4", (4,), 64, 1), operand("mxfp8", (5,), 64, 2)
    a[1][2, 1] = 255
    found = ops.scaled_matmul(a[0], b[0], a[1], b[1], a_format="mxfp4", b_format="mxfp8")
    assert str(found.dtype) == "bfloat16"
    np.testing.assert_array_equal(np.isnan(numbers(found)), np.arange(4)[:, None] == [2] * 5)
    x = np.full((2, 16), 0x38, np.uint8)
    found = ops.scaled_matmul(x, x, 0.5, 3, a_format="e4m3", b_format="e4m3", out_dtype="float16")
    np.testing.assert_array_equal(found, np.full((2, 2), 24.0))


@pytest.mark.own_route
@pytest.mark.parametrize("mode", ["mxfp4", "mxfp8"])
def test_what_mlx_quantises(mode: str) -> None:
    mx = pytest.importorskip("mlx.core")
    x, w = mx.random.normal((17, 128)), mx.random.normal((24, 128))
    (qx, sx), (qw, sw) = mx.quantize(x, mode=mode), mx.quantize(w, mode=mode)
    found = ops.scaled_matmul(qx, qw, sx, sw, a_format=mode, b_format=mode, out_dtype="float32")
    wide = [np.array(mx.dequantize(*q, mode=mode, dtype=mx.float32)).astype(np.float64) for q in ((qx, sx), (qw, sw))]  # fmt: skip
    bound = accumulation(np.abs(wide[0]) @ np.abs(wide[1]).T, 128)
    assert_near(found, wide[0] @ wide[1].T, bound, "float32")
    # The bytes of mx.to_fp8 are e4m3.
    small = mx.to_fp8(x)
    found = ops.scaled_matmul(small, small, a_format="e4m3", b_format="e4m3", out_dtype="float32")
    values = np.array(mx.from_fp8(small, mx.float32)).astype(np.float64)
    assert_near(found, values @ values.T, accumulation(np.abs(values) @ np.abs(values).T, 128))


@pytest.mark.own_route
def test_dtypes_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.randn(2, 9, 40), torch.randn(12, 40)
    small = a.to(torch.float8_e4m3fn), b.to(torch.float8_e5m2)
    scales = torch.rand(2, 9, 1), torch.rand(12, 1)
    found = ops.scaled_matmul(*small, *scales, out_dtype=torch.float32)
    exact = (small[0].double() * scales[0]) @ (small[1].double() * scales[1]).T
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)
    turned = a.transpose(1, 2).contiguous().to(torch.float8_e4m3fn).transpose(1, 2)
    torch.testing.assert_close(
        ops.scaled_matmul(turned, small[1], *scales, out_dtype=torch.float32), found
    )
    compiled = torch.compile(lambda *x: ops.scaled_matmul(*x) * 2, fullgraph=True, backend="aot_eager")  # fmt: skip
    torch.testing.assert_close(compiled(*small, *scales), ops.scaled_matmul(*small, *scales) * 2)


@pytest.mark.own_route
def test_small_dtypes_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = operand("mxfp4", (9,), 64, 1), operand("mxfp8", (12,), 64, 2)
    given, formats = arguments("torch", ("mxfp4", "mxfp8"), a, b)
    wanted = ops.scaled_matmul(*given, **formats)
    types = torch.float4_e2m1fn_x2, torch.float8_e4m3fn, torch.float8_e8m0fnu, torch.float8_e8m0fnu
    given = [x.view(dtype) for x, dtype in zip(given, types, strict=True)]
    assert torch.equal(ops.scaled_matmul(*given, **formats), wanted)


def test_counts_are_the_least() -> None:
    """Each tile of 64×64 reads its operands once."""
    a, b = operand("mxfp4", (128,), 256, 1), operand("mxfp4", (128,), 256, 2)
    with counting() as counts, forced("scaled", (64, 64, 64, 8, 1)):
        ops.scaled_matmul(a[0], b[0], a[1], b[1], a_format="mxfp4", b_format="mxfp4")
    tiles = 4
    assert counts.multiplies == 128 * 128 * 256 // 512
    operands = 2 * 64 * (128 + 8)
    assert counts.device_bytes <= tiles * operands + 128 * 128 * 2 + tiles * 7 * 2 * 64 * 8
    assert counts.private_bytes == 0


def codes(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.uint8)


MX = {"a_format": "mxfp8", "b_format": "mxfp8"}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.scaled_matmul(codes(2, 8), codes(3, 8)), LaunchValueError, r"\[scaled_matmul\] a_format must be e4m3, e5m2, mxfp4 or mxfp8 for an a of dtype uint8, or a must have dtype"),
        (lambda: ops.scaled_matmul(codes(2, 8), codes(3, 8), a_format="fp8", b_format="e4m3"), LaunchValueError, r"a_format must be None, 'e4m3', .* but is 'fp8'"),
        (lambda: ops.scaled_matmul(codes(2, 8), codes(3, 9), a_format="e4m3", b_format="e4m3"), LaunchValueError, r"a and b must have as many numbers in a row but have 8 and 9"),
        (lambda: ops.scaled_matmul(codes(2, 32), codes(3, 32), codes(2, 1), **MX), LaunchValueError, r"b_scale must be given for b_format 'mxfp8' but is None"),
        (lambda: ops.scaled_matmul(codes(2, 32), codes(3, 32), codes(2, 1), codes(3, 2), **MX), LaunchValueError, r"b_scale must have shape \(3, 1\), one number for 32 of a row, but has shape \(3, 2\)"),
        (lambda: ops.scaled_matmul(codes(2, 48), codes(3, 48), codes(2, 1), codes(3, 1), **MX), LaunchValueError, r"a must have rows of whole groups of 32 numbers but these have 48"),
        (lambda: ops.scaled_matmul(np.zeros((2, 32), np.float32), codes(3, 32), None, codes(3, 1), b_format="mxfp8"), LaunchValueError, r"a must have dtype float16 or bfloat16 beside mxfp4 or mxfp8 but has dtype float32"),
        (lambda: ops.scaled_matmul(np.zeros((2, 32), np.float32), codes(3, 32), a_format="e4m3", b_format="e4m3"), LaunchValueError, r"a must have dtype uint8 or float8_e4m3fn for a_format 'e4m3' but has dtype float32"),
        (lambda: ops.scaled_matmul(codes(2, 8), codes(3, 8), np.ones((3,), np.float32), a_format="e4m3", b_format="e4m3"), LaunchValueError, r"a_scale must have one element, or one for each row in shape \(2,\) or \(2, 1\), but has shape \(3,\)"),
        (lambda: ops.scaled_matmul(codes(2, 8), codes(1, 3, 8), a_format="e4m3", b_format="e4m3"), LaunchValueError, r"b must have 2 dimensions but has 3"),
        (lambda: ops.scaled_matmul(codes(2, 8), codes(3, 8), "1", a_format="e4m3", b_format="e4m3"), LaunchTypeError, r"a_scale must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_route
def test_views_whose_rows_are_far_apart() -> None:
    x, _, _ = operand("e4m3", (20,), 64, 1)
    y, _, _ = operand("e4m3", (30,), 64, 2)
    how: dict[str, Any] = {"a_format": "e4m3", "b_format": "e4m3", "out_dtype": "float32"}
    expected = ops.scaled_matmul(x, y, **how)
    assert np.array_equal(ops.scaled_matmul(far_apart(x), y, **how), expected)
    assert np.array_equal(ops.scaled_matmul(x, far_apart(y), **how), expected)


@pytest.mark.own_route
def test_rows_of_groups_that_are_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 64 numbers of rows so long that 8 of them are 2^31 bytes: the part of K that a program of several has."""
    k = 2**28
    x, scales = (np.zeros((16, width), np.uint8) for width in (k, k // 32))
    part, scale, values = operand("mxfp8", (16,), 64, 1)
    x[:, :64], scales[:, :2] = part, scale

    def first_part(kernel: Any, grid: Any, outputs: Any, *, like: Any, **arguments: Any) -> Any:
        y = np.zeros((1, 16, 16), np.float32)
        ends = dict.fromkeys(("bias_ptr", "row_scale_ptr", "column_scale_ptr"))
        kernel[(*grid[:2], 1)](c_ptr=y, **(arguments | ends | {"SPLIT": True, "part_size": 64}))
        return (y[0],)

    monkeypatch.setattr(scaled_matmuls, "launch", first_part)
    y = ops.scaled_matmul(
        x, x, scales, scales, a_format="mxfp8", b_format="mxfp8", out_dtype="float32", split_k=1
    )
    assert_near(y, values @ values.T, accumulation(np.abs(values) @ np.abs(values).T, 64))
