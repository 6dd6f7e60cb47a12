"""triton_metal.ops.matmul and linear against float64, with their gradients."""

from __future__ import annotations

from math import erf, pi, prod
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops._choices import forced
from triton_metal.ops._matrix_kernels import matmul_kernel
from triton_metal.ops._products import Plan, plan_product

from _bounds import UNIT_ROUNDOFF, accumulation
from _counts import counting
from ops_support import FRAMEWORKS, assert_near, far_apart, gradients, made, numbers, rounded

#: Shapes of a and b: rows and columns of one, vectors, batches that broadcast, nothing, and blocks that end anywhere.
SHAPES = (
    ((37, 50), (50, 41)), ((64, 64), (64, 64)), ((1, 70), (70, 33)), ((33, 300), (300, 1)), ((5,), (5,)), ((5,), (5, 7)),
    ((7, 5), (5,)), ((2, 7, 5), (5,)), ((5,), (2, 5, 3)), ((3, 37, 20), (20, 41)), ((3, 1, 37, 20), (4, 20, 41)),
    ((2, 1, 1, 9), (2, 3, 9, 4)), ((20, 3), (4, 3, 9)), ((2, 3, 1, 4, 5), (3, 2, 5, 6)), ((1, 1), (1, 1)), ((130, 1), (1, 70)),
    ((0, 5), (5, 3)), ((4, 0), (0, 3)), ((4, 0), (0,)), ((3, 5), (5, 0)), ((0, 2, 4), (4, 3)), ((0,), (0,)), ((2, 0, 3, 4), (4, 5)),
)  # fmt: skip
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh")
_ERF = np.vectorize(erf, otypes=[np.float64])


def activated(z: np.ndarray, activation: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The activation and its derivative."""
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    if activation == "relu":
        return np.maximum(z, 0), (z > 0).astype(np.float64)
    if activation == "sigmoid":
        return sigmoid(z), sigmoid(z) * sigmoid(-z)
    if activation == "tanh":
        return np.tanh(z), 1 - np.tanh(z) ** 2
    if activation == "silu":
        return z * sigmoid(z), sigmoid(z) * (1 + z * sigmoid(-z))
    if activation == "gelu":
        normal = (1 + _ERF(z / 2**0.5)) / 2
        return z * normal, normal + z * np.exp(-z * z / 2) / (2 * pi) ** 0.5
    if activation == "gelu_tanh":
        u = (2 / pi) ** 0.5 * (z + 0.044715 * z**3)
        slope = (2 / pi) ** 0.5 * (1 + 3 * 0.044715 * z * z)
        return z * (1 + np.tanh(u)) / 2, (1 + np.tanh(u)) / 2 + z * slope * (
            1 - np.tanh(u) ** 2
        ) / 2
    return z, np.ones_like(z)


def bound_of(a: np.ndarray, b: np.ndarray, bias: Any = None, activation: str | None = None) -> Any:
    """What a sum over K in float32 may be off; an activation's slope is at most 1.13, and its own error some units."""
    magnitude = np.abs(a) @ np.abs(b) + (0 if bias is None else np.abs(bias))
    bound = accumulation(magnitude, a.shape[-1] + 1)
    return 1.13 * bound + 8 * 2.0**-24 * (1 + magnitude) if activation else bound


def arrays(*shapes: Any, dtype: str = "float32", seed: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rounded(rng.standard_normal(shape), dtype) for shape in shapes]


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_shapes(left: tuple, right: tuple) -> None:
    a, b = arrays(left, right)
    found = ops.matmul(made("numpy", a, "float32"), made("numpy", b, "float32"))
    assert_near(found, np.asarray(a @ b), bound_of(a, b), "float32")


@pytest.mark.parametrize("split_k", [None, 1, 3])
@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
def test_bias_activation_and_parts_of_k(activation: str | None, split_k: int | None) -> None:
    a, b, bias = arrays((2, 19, 100), (100, 35), (35,))
    given = [x.astype(np.float32) for x in (a, b, bias)]
    found = ops.matmul(*given, activation, split_k=split_k)
    exact, _ = activated(a @ b + bias, activation)
    assert_near(found, exact, bound_of(a, b, bias, activation), "float32")


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("types", [("float32",) * 3, ("float16",) * 3, ("bfloat16",) * 3, ("float16", "bfloat16", "float32"), ("bfloat16", "float32", "float16")], ids=" ".join)  # fmt: skip
def test_forward_and_gradient(framework: str, types: tuple[str, str, str]) -> None:
    """Types of a, b and bias; a broadcasts in the first dimension, and b in the second."""
    shapes, activation = ((1, 3, 17, 24), (2, 1, 24, 33), (33,)), "gelu"
    a, b, bias = (
        arrays(s, dtype=t, seed=i)[0] for i, (s, t) in enumerate(zip(shapes, types, strict=True))
    )
    result = types[0] if types[0] == types[1] else "float32"
    z = a @ b + bias
    exact, slope = activated(z, activation)
    given = [made(framework, x, t) for x, t in zip((a, b, bias), types, strict=True)]
    assert_near(ops.matmul(*given, activation), exact, bound_of(a, b, bias, activation), result)
    if framework == "numpy":
        return
    weights = rounded(np.random.default_rng(5).standard_normal(z.shape), result)
    found = gradients(framework, lambda *x: ops.matmul(*x, activation), given, weights)
    dz, u = weights * slope, UNIT_ROUNDOFF[result]
    # z is kept in the result's dtype, and so is dz. The slope changes by at most 0.8 for each unit of z.
    error = np.abs(weights) * (u * (0.8 * np.abs(z) + 1.13) + 16 * 2.0**-24)
    right, left = np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2)
    for gradient, dtype, axis, value, off, terms in (
        (found[0], types[0], 0, dz @ right, error @ np.abs(right) + accumulation(np.abs(dz) @ np.abs(right), 66), 2),
        (found[1], types[1], 1, left @ dz, np.abs(left) @ error + accumulation(np.abs(left) @ np.abs(dz), 51), 3),
    ):  # fmt: skip
        exact, bound = value.sum(axis, keepdims=True), off.sum(axis, keepdims=True)
        assert_near(gradient, exact, bound * (1 + terms * 2.0**-24), dtype)
    axes = (0, 1, 2)
    bound = (error + accumulation(np.abs(dz), 102)).sum(axes)
    assert_near(found[2], dz.sum(axes), bound, types[2])


@pytest.mark.parametrize("framework", [FRAMEWORKS[1], FRAMEWORKS[2]])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_activations(framework: str, activation: str) -> None:
    x, weight, bias = arrays((2, 9, 16), (12, 16), (12,))
    z = x @ weight.T + bias
    exact, slope = activated(z, activation)
    given = [made(framework, each, "float32") for each in (x, weight, bias)]
    assert_near(ops.linear(*given, activation), exact, bound_of(x, weight.T, bias, activation))
    weights = rounded(np.random.default_rng(5).standard_normal(z.shape), "float32")
    found = gradients(framework, lambda *g: ops.linear(*g, activation), given, weights)
    dz = weights * slope
    error = np.abs(weights) * 64 * 2.0**-24 * (1 + np.abs(z))
    flat = dz.reshape(-1, 12), x.reshape(-1, 16), error.reshape(-1, 12)
    for gradient, value, bound in (
        (found[0], dz @ weight, error @ np.abs(weight)),
        (found[1], flat[0].T @ flat[1], flat[2].T @ np.abs(flat[1])),
        (found[2], flat[0].sum(0), flat[2].sum(0)),
    ):
        assert_near(gradient, value, 2 * bound + 32 * 2.0**-24, "float32")


@pytest.mark.parametrize("framework", [FRAMEWORKS[1], FRAMEWORKS[2]])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_slopes_of_the_largest_numbers_are_their_limits(
    framework: str, activation: str, request: pytest.FixtureRequest
) -> None:
    x = np.array([[-3e38, -1e20, -1e10, 1e10, 1e20, 3e38]]).T
    above = np.ones(3) if activation not in ("sigmoid", "tanh") else np.zeros(3)
    slopes = np.concatenate([np.zeros(3), above])[:, None]
    given = [made(framework, x, "float32"), made(framework, np.ones((1, 1)), "float32")]
    found = gradients(
        framework, lambda a, w: ops.linear(a, w, activation=activation), given, np.ones((6, 1))
    )
    # On the worst device that Metal allows, a fast function is an ulp off.
    error = 0 if request.config.getoption("--portable") is None else 2.0**-22
    assert np.abs(numbers(found[0]) - slopes).max() <= error


@pytest.mark.parametrize("shapes", [s for s in SHAPES if len(s[0]) + len(s[1]) != 4 or 0 in s[0] + s[1] or 1 in s[0] + s[1]], ids=str)  # fmt: skip
@pytest.mark.own_route
def test_gradients_of_shapes(shapes: tuple) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.tensor(x.astype(np.float32), requires_grad=True) for x in arrays(*shapes))
    c = ops.matmul(a, b)
    exact = [x.detach().double().requires_grad_() for x in (a, b)]
    wanted = torch.matmul(*exact)
    dc = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(1)).float()
    found = torch.autograd.grad(c, (a, b), dc)
    for mine, theirs in zip(found, torch.autograd.grad(wanted, exact, dc.double()), strict=True):
        assert mine.shape == theirs.shape
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine.double(), theirs, rtol=1e-5, atol=3e-5)


@pytest.mark.parametrize("transpose", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_transposed_operands(framework: str, transpose: tuple[bool, bool]) -> None:
    a, b = arrays((2, 30, 21), (21, 18))
    stored = [
        np.swapaxes(x, -1, -2).copy() if turned else x
        for x, turned in zip((a, b), transpose, strict=True)
    ]
    given = [made(framework, x, "float32") for x in stored]
    found = ops.matmul(*given, transpose_a=transpose[0], transpose_b=transpose[1])
    assert_near(found, a @ b, bound_of(a, b), "float32")
    if framework == "numpy":
        return
    weights = arrays((2, 30, 18))[0]
    da, db = gradients(
        framework,
        lambda x, y: ops.matmul(x, y, transpose_a=transpose[0], transpose_b=transpose[1]),
        given,
        weights,
    )
    exact_a, exact_b = weights @ b.T, (np.swapaxes(a, -1, -2) @ weights).sum(0)
    exact_a = np.swapaxes(exact_a, -1, -2) if transpose[0] else exact_a
    assert_near(da, exact_a, 1e-5, "float32")
    assert_near(db, exact_b.T if transpose[1] else exact_b, 2e-5, "float32")


def test_strides_are_read_without_copies() -> None:
    a, b = (x.astype(np.float32) for x in arrays((60, 90), (80, 100)))
    views = [
        (a.T[:50, :40], b[3:43, ::2]),
        (a[::-1, ::-1][:30, :40], b[40:, 10:60]),
        (np.broadcast_to(a[:1], (20, 90))[:, :40], b[::2]),
    ]
    for left, right in views:
        exact = left.astype(np.float64) @ right.astype(np.float64)
        bound = bound_of(left.astype(np.float64), right.astype(np.float64))
        with counting() as counts:
            found = ops.matmul(left, right)
        assert len(counts.kernels) == 1
        assert_near(found, exact, bound, "float32")
    record = np.zeros((20, 30), [("tag", np.int8), ("x", np.float32)])
    record["x"] = a[:20, :30]
    found = ops.matmul(record["x"], b[:30])
    exact = a[:20, :30].astype(np.float64) @ b[:30]
    assert_near(found, exact, accumulation(np.abs(exact) + 100, 30), "float32")


def test_batches_become_one_product() -> None:
    x, weight = (y.astype(np.float32) for y in arrays((4, 3, 20, 16), (16, 24)))
    plan = plan_product(x, weight, False, False, (4, 3))
    assert (plan.m, plan.matrices) == (240, 1)
    dy = np.zeros((4, 3, 20, 24), np.float32)
    plan = plan_product(x, dy, True, False, ())
    assert (plan.k, plan.matrices, plan.items) == (240, 1, 1), "the rows of all batches are one K"


@pytest.mark.own_route
def test_a_gradient_adds_up_products_of_a_batch() -> None:
    """The weight on the left of a batch: its gradient is a sum of products, in a few parts and in one launch or two."""
    torch = pytest.importorskip("torch")
    for batch, rows in (((70,), 20), ((3, 5), 130)):
        weight, x = (torch.tensor(y.astype(np.float32)) for y in arrays((rows, 30), (*batch, 30, 200)))  # fmt: skip
        weight.requires_grad_()
        c = ops.matmul(weight, x)
        dc = torch.tensor(arrays(tuple(c.shape))[0].astype(np.float32))
        with counting() as counts:
            (found,) = torch.autograd.grad(c, weight, dc)
        assert len(counts.kernels) <= 2
        terms = dc.double().numpy(), x.double().numpy()
        axes = tuple(range(len(batch)))
        exact = (terms[0] @ np.swapaxes(terms[1], -1, -2)).sum(axes)
        magnitude = (np.abs(terms[0]) @ np.abs(np.swapaxes(terms[1], -1, -2))).sum(axes)
        assert_near(found, exact, accumulation(magnitude, 200 * prod(batch)), "float32")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_int8(framework: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((3, 33, 70), (70, 20)))
    bias = rng.integers(-1000, 1000, 20, dtype=np.int32)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    given = made(framework, a, "int8"), made(framework, b, "int8")
    assert_near(ops.matmul(*given), exact, 0, "int32")
    assert_near(ops.matmul(*given, split_k=2), exact, 0, "int32")
    found = ops.matmul(*given, made(framework, bias, "int32"), "relu", out_dtype="float32")
    assert_near(found, np.maximum(exact + bias, 0).astype(np.float64), 0, "float32")
    assert_near(ops.matmul(given[0][0, 0], given[1]), exact[0, 0], 0, "int32")


@pytest.mark.parametrize("types", [("e4m3fn", "e4m3fn"), ("e5m2", "e4m3fn"), ("e4m3fn", None)], ids=str)  # fmt: skip
@pytest.mark.own_route
def test_float8_of_torch(types: tuple) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.tensor(x).to(torch.bfloat16) for x in arrays((2, 30, 40), (40, 24)))
    a, b = (
        x if t is None else x.to(getattr(torch, f"float8_{t}"))
        for x, t in zip((a, b), types, strict=True)
    )
    found = ops.matmul(a, b, out_dtype=torch.float32)
    wide = a.double().numpy(), b.double().numpy()
    assert_near(found, wide[0] @ wide[1], bound_of(*wide), "float32")
    assert ops.matmul(a, b).dtype == torch.bfloat16


def test_special_values() -> None:
    a = np.array([[np.nan, 1], [np.inf, 0], [1, 1], [0, 0]], np.float32)
    b = np.array([[1, 0, -1], [1, 1, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        exact = np.maximum(a.astype(np.float64) @ b, 0)
    assert_near(ops.matmul(a, b, activation="relu"), exact, 0, "float32")
    assert_near(ops.matmul(a, b[:, 0], activation="relu"), exact[:, 0], 0, "float32")


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_of_special_values(activation: str) -> None:
    z = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e30, -1e30, 100, -100, -85, -75, 9, -9, 1e-30])
    z = z.astype(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        exact, _ = activated(z, activation)
    exact[0] = np.nan
    one = np.ones((1, 3), np.float32)
    found = ops.matmul(z.astype(np.float32)[:, None], one, activation=activation)
    bound = 2.0**-20 * np.minimum(np.abs(z), 10) + 2.0**-22 * (1 + np.abs(exact))
    assert_near(
        found, np.repeat(exact[:, None], 3, 1), np.nan_to_num(bound, posinf=0)[:, None], "float32"
    )


@pytest.mark.not_as_graph("a launch that is counted stays on the host")
def test_the_same_numbers_every_time() -> None:
    a, b = (x.astype(np.float32) for x in arrays((40, 4000), (4000, 50)))
    with counting("add_parts_kernel") as counts:
        first = ops.matmul(a, b)
    assert counts.programs, "few tiles and a long K are split"
    np.testing.assert_array_equal(first, ops.matmul(a, b))
    assert_near(first, a.astype(np.float64) @ b, bound_of(a, b), "float32")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("transposition", ["nn", "nt", "tn", "tt"])
def test_counts_are_the_least(transposition: str, dtype: type) -> None:
    """At most those of MLX's tiles of 64x64x16: each program reads its operands once, two barriers for a step of K."""
    (m, n, k), rng = (512, 512, 256), np.random.default_rng(0)
    a, b = (
        rng.standard_normal(shape[::-1] if turned == "t" else shape).astype(dtype)
        for shape, turned in zip(((m, k), (k, n)), transposition, strict=True)
    )
    a, b = (x.T if turned == "t" else x for x, turned in zip((a, b), transposition, strict=True))
    with counting(matmul_kernel.__name__) as counts:
        ops.matmul(a, b)
    tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    assert counts.device_bytes <= (tiles * 2 * 64 * k + m * n) * np.dtype(dtype).itemsize
    assert counts.multiplies == m * n * k // 512
    assert counts.barriers <= tiles * 2 * (k // 16)
    assert counts.private_bytes == 0


@pytest.mark.own_route
def test_torch_compile_keeps_the_operators() -> None:
    torch = pytest.importorskip("torch")
    x, weight, bias = (torch.tensor(y.astype(np.float32)) for y in arrays((8, 16), (12, 16), (12,)))
    weight.requires_grad_()

    def layer(x: Any, weight: Any, bias: Any) -> Any:
        return ops.linear(x, weight, bias, "silu").square().sum()

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x, weight, bias), weight)
    (wanted,) = torch.autograd.grad(layer(x, weight, bias), weight)
    torch.testing.assert_close(found, wanted)
    arguments = (x, weight, None, False, True, [], "", 0, "float32", "ieee")
    torch.library.opcheck(ops.matmuls._MATMUL.torch_operator, arguments)


@pytest.mark.own_route
def test_gradients_of_gradients() -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.tensor(y.astype(np.float32), requires_grad=True) for y in arrays((4, 5), (5, 3)))

    def penalty(multiply: Any, a: Any, b: Any) -> Any:
        (da,) = torch.autograd.grad(multiply(a, b).square().sum(), a, create_graph=True)
        return torch.autograd.grad(da.square().sum(), (a, b))

    for mine, theirs in zip(penalty(ops.matmul, a, b), penalty(torch.matmul, a, b), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-3)


@pytest.mark.own_route
def test_mlx_compile() -> None:
    mx = pytest.importorskip("mlx.core")
    x, weight = (mx.array(y.astype(np.float32)) for y in arrays((8, 16), (12, 16)))

    def loss(x: Any, weight: Any) -> Any:
        return ops.linear(x, weight, None, "gelu").square().sum()

    found = mx.compile(mx.grad(loss, argnums=1))(x, weight)
    np.testing.assert_array_equal(np.array(found), np.array(mx.grad(loss, argnums=1)(x, weight)))


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.matmul(zeros(2, 3), zeros(2, 3)), LaunchValueError, r"\[matmul\] a and b must agree in the dimension that is added up, but it has 3 and 2 elements in the shapes \(2, 3\) and \(2, 3\)"),
        (lambda: ops.matmul(zeros(2, 2, 3), zeros(3, 3, 4)), LaunchValueError, r"\[matmul\] a and b must have batch dimensions that broadcast, but these are \(2,\) and \(3,\)"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3, 4), zeros(3)), LaunchValueError, r"\[matmul\] bias must have shape \(4,\), one number for each column of the result, but has shape \(3,\)"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3), zeros(1)), LaunchValueError, r"\[matmul\] bias needs a b of 2 dimensions or more"),
        (lambda: ops.matmul(zeros(), zeros(3)), LaunchValueError, r"\[matmul\] a must have 1 to"),
        (lambda: ops.matmul(zeros(3), zeros(3), transpose_a=True), LaunchValueError, r"transpose_a needs an a of 2"),
        (lambda: ops.matmul(zeros(3, dtype=np.float64), zeros(3)), LaunchValueError, r"\[matmul\] a must have dtype float16, bfloat16, float32, float8_e4m3fn, float8_e5m2 or int8 but has dtype float64"),
        (lambda: ops.matmul(zeros(3, dtype=np.int8), zeros(3)), LaunchValueError, r"a and b must both have dtype int8 or neither"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3, 2), activation="swish"), LaunchValueError, r"activation must be None, 'relu', .* but is 'swish'"),
        (lambda: ops.matmul(zeros(2, 3, dtype=np.int8), zeros(3, 2, dtype=np.int8), activation="silu"), LaunchValueError, r"activation must be None or 'relu' for int8"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3, 2), out_dtype="int32"), LaunchValueError, r"out_dtype must be float16, bfloat16 or float32 but is int32"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3, 2), split_k=0), LaunchValueError, r"split_k must be from 1 to 2\*\*31 - 1 but is 0"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3, 2), split_k=1.5), LaunchTypeError, r"split_k must be an integer but is 1.5"),
        (lambda: ops.matmul(zeros(2, 3), zeros(3, 2), precision="high"), LaunchValueError, r"precision must be None, 'ieee' or 'tf32' but is 'high'"),
        (lambda: ops.matmul(zeros(2, 3), [1.0]), LaunchTypeError, r"\[matmul\] b must be an array of NumPy, MLX or PyTorch but is a list"),
        (lambda: ops.linear(zeros(2, 3), zeros(4, 2)), LaunchValueError, r"\[linear\] x and weight must agree"),
        (lambda: ops.linear(zeros(2, 3), zeros(3)), LaunchValueError, r"\[linear\] weight must have 2 dimensions but has 1"),
        (lambda: ops.linear(zeros(2, 3), zeros(4, 3), zeros(4, dtype=np.int32)), LaunchValueError, r"\[linear\] bias must have dtype"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_out_dtypes_by_name_and_as_dtypes() -> None:
    a, b = (x.astype(np.float16) for x in arrays((9, 20), (20, 7)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for out_dtype in ("float32", np.float32, np.dtype("float32")):
        found = ops.matmul(a, b, out_dtype=out_dtype)
        assert_near(found, exact, bound_of(a.astype(float), b.astype(float)), "float32")
    assert prod(ops.matmul(a, b, out_dtype="bfloat16").shape) == 63


@pytest.mark.own_target
def test_a_vector_times_a_wide_matrix_reads_four_rows_at_once() -> None:
    """Eight would take 60 registers, with which a core holds fewer threads."""
    random = np.random.default_rng(1)
    x = random.standard_normal(64).astype(np.float32)
    matrix = random.standard_normal((64, 2048)).astype(np.float32)
    with triton.launch_options(count=True) as report, forced("groups", (0,)):
        y = ops.matmul(x, matrix)
    np.testing.assert_allclose(y, x.astype(np.float64) @ matrix, atol=1e-4)
    (launch,) = report.launches
    assert launch.counters["registers_per_thread"] <= 48


@pytest.mark.own_route
@pytest.mark.parametrize("framework", ["numpy", pytest.param("torch", marks=pytest.mark.own_route)])
def test_views_whose_rows_are_far_apart(framework: str) -> None:
    """Offsets of 2^31 elements and more along either side of either operand, also where it is multiplied with a vector."""
    rng = np.random.default_rng(1)
    x, a, b = (rng.integers(-9, 9, shape).astype(np.int8) for shape in ((30, 40), (7, 30), (40, 9)))
    view = far_apart(x)
    if framework == "torch":
        torch = pytest.importorskip("torch")
        view, a, b = (torch.from_numpy(each) for each in (view, a, b))
    x, wide_a, wide_b = x.astype(np.int32), *(np.asarray(each).astype(np.int32) for each in (a, b))
    for one, two, exact in (
        (view, b, x @ wide_b), (b.T, view.T, wide_b.T @ x.T), (a, view, wide_a @ x), (view.T, a.T, x.T @ wide_a.T),
        (view, b[:, 0], x @ wide_b[:, 0]), (b.T[0], view.T, x @ wide_b[:, 0]), (a[0], view, wide_a[0] @ x), (view.T, a[0], wide_a[0] @ x),
    ):  # fmt: skip
        assert np.array_equal(np.asarray(ops.matmul(one, two)), exact)
    assert np.array_equal(np.asarray(ops.linear(b.T, view)), wide_b.T @ x.T)


def test_large_operands_are_not_far_apart_within_a_block() -> None:
    """A block of them counts in 32 bits, as that of small ones: blocks begin anywhere."""
    assert not Plan(m=2**30, n=2**16, k=2**15, am=2**15, ak=1, bk=2**16, bn=1, batch=[], sums=[]).far(64, 64, 32)  # fmt: skip
    assert Plan(m=64, n=64, k=64, am=1, ak=2**26, bk=64, bn=1, batch=[], sums=[]).far(64, 64, 32)
    assert Plan(m=64, n=64, k=64, am=2**26, ak=1, bk=64, bn=1, batch=[], sums=[]).far(64, 64, 32)
    assert Plan(m=2**31, n=4, k=2, am=0, ak=1, bk=1, bn=2, batch=[], sums=[]).far(64, 64, 32)
