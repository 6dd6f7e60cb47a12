"""triton_metal.ops.quantize, dequantize and quantized_matmul against MLX's own, and against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops import quantized as quantized_module
from triton_metal.ops._choices import forced
from triton_metal.ops._launch import turned_grids
from triton_metal.ops._product_families import QUANTIZED
from triton_metal.ops._quantized_kernels import quantized_matmul_kernel
from triton_metal.ops._row_family import QUANTIZED_ROWS

from _bounds import UNIT_ROUNDOFF, accumulation
from _counts import counting
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded

mx = pytest.importorskip("mlx.core")

KINDS = (("affine", 32, 4), ("affine", 64, 4), ("affine", 128, 4), ("affine", 64, 8), ("affine", 32, 8), ("mxfp4", 32, 4), ("mxfp8", 32, 8))  # fmt: skip
FEW = (("affine", 64, 4), ("affine", 32, 8), ("mxfp4", 32, 4), ("mxfp8", 32, 8))


def matrix(shape: tuple, dtype: str = "float32", seed: int = 3) -> np.ndarray:
    """Numbers whose rows have one sign, large and small ones, and not a zero."""
    w = np.random.default_rng(seed).standard_normal(shape) * 3
    if shape[-2] > 5:
        w[..., 1, :], w[..., 2, :] = np.abs(w[..., 1, :]), -np.abs(w[..., 2, :])
        w[..., 3, :], w[..., 4, :] = w[..., 3, :] / 1000, w[..., 4, :] * 1000
    return rounded(w, dtype)


def quantized(w: np.ndarray, kind: tuple, dtype: str, framework: str = "numpy") -> tuple:
    """What mx.quantize gives for w, as arrays of a framework, and their numbers in float64."""
    mode, group, bits = kind
    parts = mx.quantize(made("mlx", w, dtype), group, bits, mode)
    values = read(parts, kind)
    if framework == "mlx":
        return parts, values
    names = ["uint32", "uint8"] if mode != "affine" else ["uint32", dtype, dtype]
    plain = [numbers(x) if name in FLOATS else np.array(x) for x, name in zip(parts, names, strict=True)]  # fmt: skip
    return [made(framework, x, name) for x, name in zip(plain, names, strict=True)], values


def read(parts: Any, kind: tuple) -> np.ndarray:
    """The numbers of MLX's arrays in float64, by the definition of the layout."""
    mode, group, bits = kind
    words = np.array(parts[0])
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    codes = (words[..., None] >> shifts) & np.uint32((1 << bits) - 1)
    codes = codes.reshape(*words.shape[:-1], -1)
    if mode == "affine":
        scale, bias = (np.repeat(numbers(x), group, axis=-1) for x in parts[1:])
        return codes * scale + bias
    scale = np.exp2(np.repeat(np.array(parts[1]).astype(np.float64), group, axis=-1) - 127)
    if mode == "mxfp4":
        sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        return np.concatenate([sizes, -sizes])[codes] * scale
    import ml_dtypes

    return codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64) * scale


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_quantize_gives_what_mlx_gives(kind: tuple, dtype: str) -> None:
    mode, group, bits = kind
    w = matrix((9, 256), dtype)
    theirs = mx.quantize(made("mlx", w, dtype), group, bits, mode)
    found = ops.quantize(made("numpy", w, dtype), group, bits, mode)
    assert [str(x.dtype) for x in found[:1]] == ["uint32"]
    if mode == "affine":
        for mine, other in zip(found, theirs, strict=True):
            np.testing.assert_array_equal(numbers(mine), numbers(other))
        return
    # MLX on the CPU has no negative zero in 4 bits, and finds scales in the dtype of w, unlike its kernels for GPUs.
    mine, other = read(found, kind), read(theirs, kind)
    if dtype == "float32":
        np.testing.assert_array_equal(found[1], np.array(theirs[1]))
        np.testing.assert_array_equal(mine, other)
    exact = w / np.exp2(np.repeat(found[1].astype(np.float64), 32, axis=1) - 127)
    steps = 0.25 if bits == 4 else 2.0**-4
    error = np.abs(mine - w) / np.exp2(np.repeat(found[1].astype(np.float64), 32, axis=1) - 127)
    largest = 6 if bits == 4 else 448
    inside = np.abs(exact) <= largest
    assert (error[inside] <= np.maximum(steps, np.abs(exact[inside]) * steps)).all()


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("kind", FEW, ids=str)
def test_quantize_and_dequantize(kind: tuple, framework: str) -> None:
    mode, group, bits = kind
    w = matrix((2, 7, 128), "float16")
    parts = ops.quantize(made(framework, w, "float16"), group, bits, mode)
    given, values = quantized(w, kind, "float16", framework)
    found = ops.dequantize(*given, group_size=group, bits=bits, mode=mode)
    assert_near(found, values, 2.0**-23 * np.abs(w).max(-1, keepdims=True), "float16" if mode == "affine" else "bfloat16")  # fmt: skip
    back = ops.dequantize(*parts, group_size=group, bits=bits, mode=mode, dtype="float32")
    assert_near(back, values, 2.0**-22 * np.abs(w).max(-1, keepdims=True), "float32")


def test_quantize_of_special_groups() -> None:
    w = np.zeros((4, 64), np.float32)
    w[1] = 5
    w[2, :32], w[2, 32:] = np.nan, np.inf
    w[3] = 1e-40
    parts = ops.quantize(w[[0, 1]])
    np.testing.assert_array_equal(ops.dequantize(*parts), w[[0, 1]])
    for mode in ("mxfp4", "mxfp8"):
        parts = ops.quantize(w, mode=mode)
        found = ops.dequantize(*parts, mode=mode, dtype="float32")
        np.testing.assert_array_equal(parts[1][2], [255, 255])
        assert np.isnan(found[2]).all()
        np.testing.assert_array_equal(found[[0]], w[[0]])
        assert (np.abs(found[3]) <= 2e-38).all()
        np.testing.assert_allclose(found[1], 5, rtol=0.25)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_group_with_a_value_that_is_no_number_is_nan(bits: int, value: float) -> None:
    w = np.ones((2, 64), np.float32)
    w[1, 35] = value
    found = ops.dequantize(*ops.quantize(w, 32, bits), group_size=32, bits=bits)
    assert np.isnan(found[1, 32:]).all()
    assert np.array_equal(found[0], w[0])
    assert np.array_equal(found[1, :32], w[1, :32])


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 20, 70])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_products_of_many_shapes(kind: tuple, rows: int, transpose: bool) -> None:
    mode, group, bits = kind
    w = matrix((37 if transpose else 50, 384))
    parts, values = quantized(w, kind, "float32")
    y = values.T if transpose else values
    x = np.random.default_rng(rows).standard_normal((rows, len(y))).astype(np.float32)
    found = ops.quantized_matmul(x, *parts, transpose=transpose, group_size=group, bits=bits, mode=mode)  # fmt: skip
    exact, bound, _ = product_and_bound(x.astype(np.float64), parts, values, kind, transpose)
    assert_near(found, exact, bound, "float32")


@pytest.mark.parametrize("k", [64, 544])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("bits", [4, 8])
def test_each_column_of_a_vectors_product_is_stored_by_one_program(
    bits: int, n: int, k: int
) -> None:
    """The last block of columns begins within the one before, and where there is no other one, it is cut."""
    kind = ("affine", 32, bits)
    parts, values = quantized(matrix((n, k)), kind, "float32")
    x = np.random.default_rng(n).standard_normal((2, k)).astype(np.float32)
    with triton.launch_options(check="all"):
        found = ops.quantized_matmul(x, *parts, group_size=32, bits=bits)
    exact, bound, _ = product_and_bound(x.astype(np.float64), parts, values, kind, True)
    assert_near(found, exact, bound, "float32")


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("kind", FEW, ids=str)
def test_places_of_64_bits_are_those_of_32(
    kind: tuple, transpose: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode, group, bits = kind
    parts, values = quantized(matrix((2, 70, 128)), kind, "float32")
    depth = values.shape[-1 if transpose else -2]
    x = np.random.default_rng(1).standard_normal((2, 3, depth)).astype(np.float32)

    def product() -> np.ndarray:
        return ops.quantized_matmul(x, *parts, transpose=transpose, group_size=group, bits=bits, mode=mode)  # fmt: skip

    found = product()
    exact, bound, _ = product_and_bound(x.astype(np.float64), parts, values, kind, transpose)
    assert_near(found, exact, bound, "float32")
    monkeypatch.setattr(quantized_module, "WIDE_FROM", 1)
    assert np.array_equal(product(), found)


def product_and_bound(x: Any, parts: Any, values: Any, kind: tuple, transpose: bool) -> Any:
    """Scales and biases round on their own, so the bound has their magnitudes, not those of their sums."""
    size = np.abs(values)
    if kind[0] == "affine":
        size = size + 2 * np.abs(np.repeat(numbers(parts[2]), kind[1], axis=-1))
    turn = (lambda z: np.swapaxes(z, -1, -2)) if transpose else (lambda z: z)
    magnitude = np.abs(x) @ turn(size)
    bound = accumulation(magnitude, x.shape[-1]) + 2.0**-22 * magnitude
    return x @ turn(values), bound, magnitude


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", FEW, ids=str)
def test_forward_and_gradient(kind: tuple, dtype: str, framework: str) -> None:
    mode, group, bits = kind
    w = matrix((48, 128), dtype) / 3
    parts, values = quantized(w, kind, dtype, framework)
    options = {"group_size": group, "bits": bits, "mode": mode}
    for shape in ((2, 1, 128), (2, 9, 128), (128,)):
        x = rounded(np.random.default_rng(5).standard_normal(shape), dtype)
        given = made(framework, x, dtype)
        found = ops.quantized_matmul(given, *parts, **options)
        exact, bound, magnitude = product_and_bound(x, parts, values, kind, True)
        # A tile of the matrix is rounded to the dtype, once.
        u = UNIT_ROUNDOFF[dtype] if mode == "affine" else 0
        assert_near(found, exact, bound + u * magnitude, dtype)
        if framework == "mlx" and len(shape) == 3:
            theirs = mx.quantized_matmul(given, *parts, **options)
            tolerance = 40 * UNIT_ROUNDOFF[dtype] * np.abs(x).sum(-1, keepdims=True) * np.abs(w).max()  # fmt: skip
            assert (np.abs(numbers(found) - numbers(theirs)) <= tolerance).all()
    if framework == "numpy":
        return
    weights = rounded(np.random.default_rng(6).standard_normal((2, 9, 48)), dtype)
    x = made(framework, rounded(np.random.default_rng(5).standard_normal((2, 9, 128)), dtype), dtype)  # fmt: skip
    (dx,) = gradients(framework, lambda a: ops.quantized_matmul(a, *parts, **options), [x], weights)
    exact, bound, magnitude = product_and_bound(weights, parts, values, kind, False)
    u = UNIT_ROUNDOFF[dtype] if mode == "affine" else 0
    assert_near(dx, exact, bound + u * magnitude, dtype)


def test_batches_and_mixed_types() -> None:
    w = matrix((3, 40, 128), "float16")
    parts, values = quantized(w, ("affine", 64, 4), "float16")
    for rows in (2, 30):
        x = np.random.default_rng(1).standard_normal((3, rows, 128)).astype(np.float32)
        found = ops.quantized_matmul(x, *parts)
        exact, bound, _ = product_and_bound(x.astype(np.float64), parts, values, ("affine", 64, 4), True)  # fmt: skip
        assert_near(found, exact, bound, "float32")
    assert ops.quantized_matmul(x[:, :0], *parts).shape == (3, 0, 40)
    assert ops.quantized_matmul(np.zeros((2, 0), np.float32), *(p[0, :, :0] for p in parts)).shape == (2, 40)  # fmt: skip


@pytest.mark.own_route
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rows", [2, 9])
@pytest.mark.parametrize("kind", [kind for kind in FEW if kind[0] == "affine"], ids=str)
def test_what_comes_to_a_float32_result_is_not_rounded(kind: tuple, rows: int, dtype: str) -> None:
    """The gradient of a result in float32, of x in 16 bits: beyond float16, and with more digits than bfloat16 has."""
    torch = pytest.importorskip("torch")
    w = matrix((5, 128)) * 1e-3
    parts, values = quantized(w, kind, "float32", "torch")
    x = torch.ones((rows, 128), dtype=getattr(torch, dtype), requires_grad=True)
    y = ops.quantized_matmul(x, *parts, True, *kind[1:], kind[0])
    assert y.dtype == torch.float32
    dy = np.random.default_rng(6).standard_normal((rows, 5)) * 1e5
    y.backward(torch.tensor(dy, dtype=torch.float32))
    assert_near(x.grad, dy @ values, accumulation(np.abs(dy) @ np.abs(values), 5), dtype)


#: Device bytes of MLX 0.32's own kernel for a row of 1,024 halves and a matrix of 1,024 by 1,024 (qmv_fast, qvm).
MLX_BYTES = {
    ("affine", 4, True): 1312768,
    ("affine", 8, True): 2099200,
    ("mxfp4", 4, True): 1116160,
    ("mxfp8", 8, True): 1705984,
    ("affine", 4, False): 722944,
    ("affine", 8, False): 1247232,
    ("mxfp4", 4, False): 624640,
}


@pytest.mark.parametrize("kind", MLX_BYTES, ids=str)
def test_counts_of_vectors_are_at_most_those_of_mlx(kind: tuple) -> None:
    mode, bits, transpose = kind
    group = 64 if mode == "affine" else 32
    parts, _ = quantized(matrix((1024, 1024), "float16"), (mode, group, bits), "float16")
    x = np.ones((1, 1024), np.float16)
    with counting() as counts:
        ops.quantized_matmul(x, *parts, transpose=transpose, bits=bits, mode=mode)
    assert counts.device_bytes <= MLX_BYTES[kind]
    assert counts.private_bytes == counts.multiplies == 0
    assert counts.barriers == 0 or not transpose


@pytest.mark.parametrize("bits", [4, 8])
def test_a_vector_times_a_matrix_leaves_registers_for_1024_threads(bits: int) -> None:
    """32 sums of a thread are most of the 52 registers; codes are computed from their words one after the other."""
    parts, _ = quantized(matrix((128, 256), "float16"), ("affine", 64, bits), "float16")
    with forced(QUANTIZED_ROWS.name, (1,)), triton.launch_options(count=True) as report:
        ops.quantized_matmul(np.ones((1, 128), np.float16), *parts, transpose=False, bits=bits)
    assert report.launches[0].counters["registers_per_thread"] <= 52


@pytest.mark.parametrize("bits", [4, 8])
def test_counts_of_matrices_are_the_least(bits: int) -> None:
    m, n, k = 256, 512, 512
    parts, _ = quantized(matrix((n, k), "float16"), ("affine", 64, bits), "float16")
    with counting(quantized_matmul_kernel.__name__) as counts:
        ops.quantized_matmul(np.ones((m, k), np.float16), *parts, bits=bits)
    tiles = (m // 64) * (n // 64)
    assert counts.multiplies == m * n * k // 512
    # Two a step, and one behind the last.
    assert counts.barriers <= tiles * (2 * (k // 32) + 1)
    assert counts.private_bytes == 0


@pytest.mark.parametrize("bits", [4, 8])
def test_a_number_of_a_matrix_takes_a_conversion_and_an_fma(bits: int) -> None:
    """Codes of 4 bits are masked where they are in their byte; the scale of the upper ones is a 16th, one product for each group."""
    m, n, k = 64, 64, 128
    parts, _ = quantized(matrix((n, k), "float32"), ("affine", 64, bits), "float32")
    config = (64, 64, 32, 4)
    with forced(QUANTIZED.name, config), triton.launch_options(count=True) as report:
        ops.quantized_matmul(np.ones((m, k), np.float32), *parts, bits=bits)
    counters = report.launches[0].counters
    assert counters["optimized_f32_fma"] == counters["optimized_f32_other"] == n * k
    # Two threads share a row of a step, of which each makes a 16th of the scale.
    assert counters["optimized_f32_mul"] == (2 * n * (k // 32) if bits == 4 else 0)
    assert counters["optimized_f32_add"] == 0


@pytest.mark.own_route
def test_torch_compile_and_int32_words() -> None:
    torch = pytest.importorskip("torch")
    parts, _ = quantized(matrix((16, 64)), ("affine", 64, 4), "float32", "torch")
    words = parts[0].view(torch.int32)
    x = torch.randn(3, 64, requires_grad=True)

    def product(x: Any) -> Any:
        return ops.quantized_matmul(x, words, *parts[1:]).square().sum()

    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x), x)
    torch.testing.assert_close(found, torch.autograd.grad(product(x), x)[0])
    torch.testing.assert_close(
        ops.quantized_matmul(x, words, *parts[1:]), ops.quantized_matmul(x, *parts)
    )


@pytest.mark.own_route
def test_mlx_compile() -> None:
    parts, _ = quantized(matrix((16, 64)), ("affine", 64, 4), "float32", "mlx")
    x = mx.random.normal((3, 64))
    loss = lambda x: ops.quantized_matmul(x, *parts).square().sum()  # noqa: E731
    found = mx.compile(mx.grad(loss))(x)
    np.testing.assert_allclose(np.array(found), np.array(mx.grad(loss)(x)), rtol=1e-6)


def some(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


W, S = some(8, 8, dtype=np.uint32), some(8, 1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.quantize(some(4, 60)), LaunchValueError, r"\[quantize\] w must have a multiple of 64 \(group_size\) columns but has shape \(4, 60\)"),
        (lambda: ops.quantize(some(64)), LaunchValueError, r"\[quantize\] w must have 2 to"),
        (lambda: ops.quantize(some(4, 64), bits=3), LaunchValueError, r"\[quantize\] bits must be 4 or 8 but is 3"),
        (lambda: ops.quantize(some(4, 64), 16), LaunchValueError, r"group_size must be 32, 64 or 128 but is 16"),
        (lambda: ops.quantize(some(4, 64), mode="nvfp4"), LaunchValueError, r"mode must be 'affine', 'mxfp4' or 'mxfp8' but is 'nvfp4'"),
        (lambda: ops.quantize(some(4, 64), 64, mode="mxfp4"), LaunchValueError, r"group_size must be 32 but is 64"),
        (lambda: ops.quantize(some(4, 64, dtype=np.float64)), LaunchValueError, r"w must have dtype float16, bfloat16 or float32"),
        (lambda: ops.dequantize(W, S), LaunchValueError, r"\[dequantize\] biases must be given for mode 'affine' but is None"),
        (lambda: ops.dequantize(W, S[:4], S), LaunchValueError, r"scales must have shape \(8, 1\), one number for each group of 64, but has shape \(4, 1\)"),
        (lambda: ops.dequantize(W, S, S.astype(np.float16)), LaunchValueError, r"biases must have the dtype of scales, float32, but has dtype float16"),
        (lambda: ops.dequantize(S, S, S), LaunchValueError, r"w must have dtype uint32 or int32 but has dtype float32"),
        (lambda: ops.dequantize(W[:, :5], S, S), LaunchValueError, r"w must have rows of whole groups of 64 numbers, 8 words each, but has shape \(8, 5\)"),
        (lambda: ops.dequantize(W, S, mode="mxfp8"), LaunchValueError, r"scales must have shape \(8, 1\)|scales must have dtype uint8"),
        (lambda: ops.dequantize(W, S, S, dtype="float64"), LaunchValueError, r"dtype must be float16, bfloat16 or float32 but is float64"),
        (lambda: ops.quantized_matmul(some(2, 32), W, S, S), LaunchValueError, r"\[quantized_matmul\] x must have 64 elements in its last dimension, as w of shape \(8, 8\) stands for a matrix \(8, 64\) and transpose is True, but has shape \(2, 32\)"),
        (lambda: ops.quantized_matmul(some(2, 64), W[None], S[None], S[None]), LaunchValueError, r"w must have 2 dimensions or the batch dimensions of x, \(\), but has shape \(1, 8, 8\)"),
        (lambda: ops.quantized_matmul([1.0], W, S, S), LaunchTypeError, r"x must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_route
def test_a_gradient_of_scales_is_refused_and_that_of_x_is_not() -> None:
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    w = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    x = torch.ones(2, 64, requires_grad=True)
    words, scales, biases = ops.quantize(torch.tensor(w))
    ops.quantized_matmul(x, words, scales, biases).sum().backward()
    assert x.grad is not None
    scales.requires_grad_(True)
    refused = r"\[quantized_matmul\] scales has no gradient: leave it out of what is differentiated"
    with pytest.raises(NotImplementedError, match=refused):
        ops.quantized_matmul(x, words, scales, biases).sum().backward()
    parts = ops.quantize(mx.array(w))
    loss = lambda x, *parts: ops.quantized_matmul(x, *parts).sum()  # noqa: E731
    found = mx.compile(mx.grad(loss))(mx.ones((2, 64)), *parts)
    assert np.allclose(np.array(found), x.grad.numpy(), atol=1e-5)
    with pytest.raises(ValueError, match=refused):
        mx.grad(loss, argnums=(0, 2))(mx.ones((2, 64)), *parts)
    with pytest.raises(ValueError, match="biases has no gradient"):
        mx.grad(loss, argnums=3)(mx.ones((2, 64)), *parts)


@pytest.mark.own_check(reason="a portable launch takes several times the memory of its arrays")
@pytest.mark.own_route
@pytest.mark.parametrize("transpose", [False, True])
def test_rows_of_2_to_the_28_numbers(transpose: bool) -> None:
    """Blocks of more than 8 rows reach over 2^31. The first program's columns alone; no memory is taken for what it leaves out."""
    kind, n = ("mxfp4", 32, 4), 2**28
    (words, scales), _ = quantized(matrix((64, 64)), kind, "float32")
    shapes = ((n, 8), (n, 2)) if transpose else ((64, n // 8), (64, n // 32))
    large = [np.zeros(shape, x.dtype) for shape, x in zip(shapes, (words, scales), strict=True)]
    for one, part in zip(large, (words, scales), strict=True):
        one[: part.shape[0], : part.shape[1]] = part
    x = np.random.default_rng(1).standard_normal((16, 64)).astype(np.float16)
    expected = ops.quantized_matmul(x, words, scales, None, transpose, mode="mxfp4")
    with turned_grids(lambda kernel, grid: (1, 1, 1)):
        found = ops.quantized_matmul(x, *large, None, transpose, mode="mxfp4")
    np.testing.assert_allclose(found[:, :16], expected[:, :16], rtol=2e-3, atol=1e-3)
