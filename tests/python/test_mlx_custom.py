"""Kernels with hand-written backward kernels: MLX's own gradients, MLX's transforms, and what is refused."""

from __future__ import annotations

import doctest
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.errors import LaunchTypeError, LaunchValueError, TritonMetalError
from triton_metal.testing import contract_device, metal_kernel

mx = pytest.importorskip("mlx.core")
nn = pytest.importorskip("mlx.nn")
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("MLX traces the launches, and launch_options needs values"),
]

from triton_metal.mlx import call, custom, graph  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mlx-graphs.md"
FORMS = ["metal", "graph"]
#: How far a gradient may be from MLX's, relative to the largest one.
TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


def near(ours: Any, theirs: Any, tolerance: float) -> None:
    ours, theirs = (np.array(x.astype(mx.float32)) for x in (ours, theirs))
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * np.abs(theirs).max())


# A kernel whose gradient is another kernel, found by the names of its parameters.


@triton.jit
def silu_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n).to(tl.float32)
    tl.store(y + i, (v / (1 + tl.exp(-v))).to(y.dtype.element_ty), i < n)


@triton.jit
def silu_backward_kernel(x, dy, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n).to(tl.float32)
    s = 1 / (1 + tl.exp(-v))
    slope = s * (1 + v * (1 - s)) * tl.load(dy + i, i < n).to(tl.float32)
    tl.store(dx + i, slope.to(dx.dtype.element_ty), i < n)


def silu(x: Any, form: str = "metal", vjp_form: str | None = None) -> Any:
    function = custom(silu_kernel, silu_backward_kernel, form=form, vjp_form=vjp_form)
    return function(x, x.size, BLOCK=64, grid=(triton.cdiv(x.size, 64),), outputs={"y": x})


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("vjp_form", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_mlx(form: str, vjp_form: str, dtype: str) -> None:
    x, weight = (mx.random.normal((5, 29)).astype(getattr(mx, dtype)) for _ in range(2))
    ours = mx.value_and_grad(lambda x: (silu(x, form, vjp_form) * weight).sum())(x)
    theirs = mx.value_and_grad(lambda x: (nn.silu(x) * weight).sum())(x)
    assert ours[1].dtype == x.dtype
    near(silu(x, form), nn.silu(x), TOLERANCE[dtype])
    near(ours[1], theirs[1], TOLERANCE[dtype])


# A kernel that saves what its gradient needs, with a gradient of several steps.


@triton.jit
def rms_norm_kernel(x, w, y, rstd, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, i < columns, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(v * v, 0) / columns + eps)
    out = v * scale * tl.load(w + i, i < columns, other=0.0).to(tl.float32)
    tl.store(y + row * columns + i, out.to(y.dtype.element_ty), i < columns)
    tl.store(rstd + row, scale)


@triton.jit
def rms_norm_backward_kernel(x, w, rstd, dy, dx, dw_rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    scale = tl.load(rstd + row)
    v = tl.load(x + row * columns + i, i < columns, other=0.0).to(tl.float32) * scale
    g = tl.load(dy + row * columns + i, i < columns, other=0.0).to(tl.float32)
    tl.store(dw_rows + row * columns + i, g * v, i < columns)
    g = g * tl.load(w + i, i < columns, other=0.0).to(tl.float32)
    slope = (g - v * (tl.sum(g * v, 0) / columns)) * scale
    tl.store(dx + row * columns + i, slope.to(dx.dtype.element_ty), i < columns)


def rms_norm_vjp(backward: Callable[..., Any]) -> Callable[..., Any]:
    def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        x = primals.x
        dx, dw_rows = backward(
            x, primals.w, outputs.rstd, cotangents.y, primals.columns, primals.BLOCK, grid=(x.shape[0],),
            outputs={"dx": x, "dw_rows": (x.shape, mx.float32)},
        )  # fmt: skip
        return dx, dw_rows.sum(0)

    return vjp


BACKWARD = {
    "metal": lambda *args, **kwargs: call(rms_norm_backward_kernel, *args, **kwargs),
    "graph": graph(rms_norm_backward_kernel),
}


def rms_norm(x: Any, w: Any, form: str = "metal", vjp_form: str | None = None) -> Any:
    function = custom(
        rms_norm_kernel, rms_norm_vjp(BACKWARD[vjp_form or form]), form=form, saved=["rstd"]
    )
    return function(
        x, w, x.shape[1], 1e-5, triton.next_power_of_2(x.shape[1]), grid=(x.shape[0],),
        outputs={"y": x, "rstd": ((x.shape[0],), mx.float32)},
    )  # fmt: skip


def normed(x: Any, w: Any) -> Any:
    return mx.fast.rms_norm(x, w, 1e-5)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("vjp_form", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_saved_outputs_reach_the_gradient(form: str, vjp_form: str, dtype: str) -> None:
    x, weight = (mx.random.normal((7, 50)).astype(getattr(mx, dtype)) for _ in range(2))
    w = mx.random.uniform(shape=(50,)).astype(x.dtype)
    near(rms_norm(x, w, form), normed(x, w), TOLERANCE[dtype])
    both = [
        mx.grad(lambda x, w, f=f: (f(x, w) * weight).sum(), argnums=(0, 1))(x, w)
        for f in (lambda x, w: rms_norm(x, w, form, vjp_form), normed)
    ]
    for ours, theirs in zip(*both, strict=True):
        assert ours.dtype == x.dtype
        near(ours, theirs, 2 * TOLERANCE[dtype])


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_the_slopes_of_the_function(form: str) -> None:
    rng = np.random.default_rng(0)
    x, w, weight, dx, dw = (rng.standard_normal(s) for s in ((3, 20), 20, (3, 20), (3, 20), 20))

    def loss(x: np.ndarray, w: np.ndarray) -> float:
        y = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w
        return float((y * weight).sum())

    step = 1e-6
    slope = (loss(x + step * dx, w + step * dw) - loss(x - step * dx, w - step * dw)) / (2 * step)
    weights = mx.array(weight.astype(np.float32))
    gradients = mx.grad(lambda x, w: (rms_norm(x, w, form) * weights).sum(), argnums=(0, 1))(
        mx.array(x.astype(np.float32)), mx.array(w.astype(np.float32))
    )
    ours = sum(float((np.array(g) * d).sum()) for g, d in zip(gradients, (dx, dw), strict=True))
    np.testing.assert_allclose(ours, slope, rtol=1e-5)


# A kernel with an argument of integers, which has no gradient.


@triton.jit
def cross_entropy_kernel(x, labels, loss, lse, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * classes + i, i < classes, other=-float("inf"))
    top = tl.max(v, 0)
    total = top + tl.log(tl.sum(tl.exp(v - top), 0))
    tl.store(lse + row, total)
    tl.store(loss + row, total - tl.load(x + row * classes + tl.load(labels + row)))


@triton.jit
def cross_entropy_backward_kernel(x, labels, lse, dloss, dx, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * classes + i, i < classes, other=0.0)
    slope = tl.exp(v - tl.load(lse + row)) - (i == tl.load(labels + row)).to(tl.float32)
    tl.store(dx + row * classes + i, slope * tl.load(dloss + row), i < classes)


def cross_entropy(x: Any, labels: Any, form: str = "metal", **options: Any) -> Any:
    rows, classes = x.shape
    function = custom(
        cross_entropy_kernel, cross_entropy_backward_kernel, form=form, saved="lse", **options
    )
    return function(
        x, labels, classes, triton.next_power_of_2(classes), grid=(rows,),
        outputs={"loss": ((rows,), x.dtype), "lse": ((rows,), x.dtype)},
    )  # fmt: skip


# The graph of the forward kernel is computed where labels have values: not while MLX traces.
@pytest.mark.parametrize("form", FORMS)
def test_arguments_of_integers_have_no_gradient(form: str) -> None:
    x, labels = mx.random.normal((6, 10)), mx.array([0, 9, 3, 3, 1, 7])
    theirs = mx.grad(lambda x: nn.losses.cross_entropy(x, labels).mean())(x)
    ours = mx.grad(lambda x: cross_entropy(x, labels, form).mean())(x)
    near(ours, theirs, TOLERANCE["float32"])


@pytest.mark.parametrize("form", FORMS)
def test_launch_of_the_backward_kernel_has_its_own_options(form: str) -> None:
    x, labels = mx.random.normal((6, 10)), mx.array([0, 9, 3, 3, 1, 7])
    launch = {"grid": lambda meta: (meta["labels"].size,), "BLOCK": 32, "num_warps": 1}
    theirs = mx.grad(lambda x: nn.losses.cross_entropy(x, labels).mean())(x)
    ours = mx.grad(lambda x: cross_entropy(x, labels, form, vjp_launch=launch).mean())(x)
    near(ours, theirs, TOLERANCE["float32"])


@triton.jit
def rotate_kernel(x, angles, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * tl.cos(tl.load(angles + i, i < n)), i < n)


@triton.jit
def rotate_backward_kernel(angles, dy, dx, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(dx + i, tl.load(dy + i, i < n) * tl.cos(tl.load(angles + i, i < n)), i < n)


def test_constant_arguments_have_gradient_0() -> None:
    x, angles = mx.random.normal((20,)), mx.random.normal((20,))
    rotate = custom(rotate_kernel, rotate_backward_kernel, constant=["angles"])

    def total(x: Any, angles: Any) -> Any:
        return rotate(x, angles, 20, 32, grid=(1,), outputs={"y": x}).sum()

    dx, dangles = mx.grad(total, argnums=(0, 1))(x, angles)
    near(dx, mx.cos(angles), 1e-6)
    assert not np.array(dangles).any()


@triton.jit
def pair_kernel(pair, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y = pair
    tl.store(out + i, tl.load(x + i, i < n) * tl.load(y + i, i < n), i < n)


def test_arrays_in_tuples_have_gradients() -> None:
    x, y = mx.random.normal((20,)), mx.random.normal((20,))

    def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return {f"pair.{i}": cotangents.out * primals.pair[1 - i] for i in range(2)}

    product = custom(pair_kernel, vjp)
    ours = mx.grad(
        lambda x, y: product((x, y), 20, 32, grid=(1,), outputs={"out": x}).sum(), argnums=(0, 1)
    )(x, y)
    near(ours[0], y, 0)
    near(ours[1], x, 0)


def test_an_array_that_is_given_twice_has_both_gradients() -> None:
    x, weight = mx.random.normal((20,)), mx.random.normal((20,))
    product = custom(
        product_kernel, lambda p, c, o: {"x": c.out * p.w, "w": c.out * p.x}, form="graph"
    )
    ours = mx.grad(lambda x: (product(x, x, 20, 32, grid=(1,), outputs={"out": x}) * weight).sum())(
        x
    )
    near(ours, 2 * x * weight, 1e-6)


@triton.jit
def split_kernel(x, low, high, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, i < n)
    tl.store(low + i, tl.minimum(v, 0), i < n)
    tl.store(high + i, tl.maximum(v, 0), i < n)


@triton.jit
def split_backward_kernel(x, dlow, dhigh, dx, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    low, high = tl.load(dlow + i, i < n), tl.load(dhigh + i, i < n)
    tl.store(dx + i, tl.where(tl.load(x + i, i < n) < 0, low, high), i < n)


@pytest.mark.parametrize("form", FORMS)
def test_several_outputs_have_cotangents(form: str) -> None:
    x = mx.random.normal((20,))
    split = custom(split_kernel, split_backward_kernel, form=form)
    outputs = {"low": x, "high": x}

    def both(x: Any) -> Any:
        low, high = split(x, 20, 32, grid=(1,), outputs=outputs)
        return (2 * low + 3 * high).sum()

    def one(x: Any) -> Any:
        return split(x, 20, 32, grid=(1,), outputs=outputs)[1].sum()

    np.testing.assert_array_equal(np.array(mx.grad(both)(x)), np.where(np.array(x) < 0, 2, 3))
    np.testing.assert_array_equal(np.array(mx.grad(one)(x)), np.where(np.array(x) < 0, 0, 1))


@triton.jit
def sum_kernel(x, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i, i < n, other=0.0), 0))


@triton.jit
def sum_backward_kernel(dtotal, dx, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dx + i, tl.load(dtotal) + i * 0.0, i < n)


@pytest.mark.parametrize("form", FORMS)
def test_outputs_that_are_updated_begin_with_a_value(form: str) -> None:
    x = mx.random.normal((100,))
    total = custom(sum_kernel, sum_backward_kernel, form=form)
    launch: dict[str, Any] = {"grid": (4,), "outputs": {"total": ((1,), mx.float32)}}
    value, gradient = mx.value_and_grad(lambda x: total(x, 100, 32, init_value=0, **launch).sum())(
        x
    )
    np.testing.assert_allclose(value.item(), np.array(x).sum(), rtol=1e-4)
    np.testing.assert_array_equal(np.array(gradient), np.ones(100))


# MLX's transforms


@pytest.mark.parametrize("form", FORMS)
def test_compiled_functions_have_the_same_gradients(form: str) -> None:
    x, w = mx.random.normal((7, 50)), mx.random.normal((50,))
    function = mx.value_and_grad(lambda x, w: silu(rms_norm(x, w, form), form).sum(), (0, 1))
    compiled = mx.compile(function)
    for scale in (1, 2):
        value, gradients = function(scale * x, w)
        again, same = compiled(scale * x, w)
        near(again, value, 1e-5)
        for one, other in zip(same, gradients, strict=True):
            near(one, other, 1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_vjp_takes_cotangents(form: str) -> None:
    x, dy = mx.random.normal((5, 29)), mx.random.normal((5, 29))
    [y], [ours] = mx.vjp(lambda x: silu(x, form), [x], [dy])
    [z], [theirs] = mx.vjp(nn.silu, [x], [dy])
    near(y, z, 1e-6)
    near(ours, theirs, 2e-6)


class Norm(nn.Module):
    def __init__(self, width: int, form: str) -> None:
        super().__init__()
        self.weight = mx.ones((width,))
        self.form = form

    def __call__(self, x: Any) -> Any:
        flat = x.reshape(-1, x.shape[-1])
        return rms_norm(flat, self.weight, self.form).reshape(x.shape)


@pytest.mark.parametrize("form", FORMS)
def test_modules_train(form: str) -> None:
    mx.random.seed(0)
    x, wanted = mx.random.normal((4, 3, 8)), mx.random.normal((4, 3, 8))
    ours = nn.Sequential(nn.Linear(8, 16), Norm(16, form), nn.Linear(16, 8))
    theirs = nn.Sequential(nn.Linear(8, 16), nn.RMSNorm(16), nn.Linear(16, 8))
    theirs.update(ours.parameters())

    def loss(model: Any, x: Any, wanted: Any) -> Any:
        return nn.losses.mse_loss(model(x), wanted)

    values = [nn.value_and_grad(model, loss)(model, x, wanted) for model in (ours, theirs)]
    near(values[0][0], values[1][0], 1e-5)
    flat = [dict(nn.utils.tree_flatten(gradients)) for _, gradients in values]
    assert set(flat[0]) == set(flat[1])
    assert "layers.1.weight" in flat[0]
    for name, gradient in flat[0].items():
        near(gradient, flat[1][name], 1e-4)


def test_graphs_are_vectorised_and_differentiated_forward_and_twice() -> None:
    x, dx = mx.random.normal((3, 5, 29)), mx.random.normal((3, 5, 29))
    near(mx.vmap(lambda x: silu(x, "graph"))(x), nn.silu(x), 1e-6)
    [ours] = mx.jvp(lambda x: silu(x, "graph"), [x], [dx])[1]
    [theirs] = mx.jvp(nn.silu, [x], [dx])[1]
    near(ours, theirs, 1e-5)

    def slopes(f: Callable[[Any], Any]) -> Any:
        return mx.grad(lambda x: (mx.grad(lambda x: f(x).sum())(x) ** 2).sum())(x)

    near(slopes(lambda x: silu(x, "graph")), slopes(nn.silu), 1e-5)
    per_row = mx.vmap(mx.grad(lambda x: silu(x, "graph").sum()))(x)
    near(per_row, mx.grad(lambda x: nn.silu(x).sum())(x), 1e-5)


def slope(x: Any) -> Any:
    return mx.grad(lambda x: silu(x).sum())(x)


@pytest.mark.parametrize(
    ("kernel", "transform", "run"),
    [
        ("silu_kernel", "mx.jvp", lambda x: mx.jvp(silu, [x], [x])),
        ("silu_backward_kernel", "mx.grad", lambda x: mx.grad(lambda x: slope(x).sum())(x)),
        ("silu_backward_kernel", "mx.jvp", lambda x: mx.jvp(slope, [x], [x])),
    ],
)
def test_metal_kernels_refuse_further_derivatives(
    kernel: str, transform: str, run: Callable[[Any], Any]
) -> None:
    words = rf"^{kernel}: {transform} has no derivative of the Metal kernel.*form=.graph"
    with pytest.raises(LaunchValueError, match=words):
        run(mx.random.normal((3, 29)))


@pytest.mark.skipif(mx.metal.is_available(), reason="MLX's own kernels have a message of MLX's")
def test_metal_kernels_refuse_to_be_vectorised() -> None:
    with pytest.raises(ValueError, match=r"\[vmap\] triton_metal kernel silu_kernel"):
        mx.vmap(silu)(mx.random.normal((3, 29)))


def test_a_contract_device_runs_both_kernels() -> None:
    x, w = mx.random.normal((7, 50)), mx.random.normal((50,))
    with contract_device("mlx"), metal_kernel.recording() as recorder:
        ours = mx.grad(lambda x: rms_norm(x, w).square().sum())(x)
        mx.eval(ours)
    texts = [launch.text for launch in recorder.launches]
    assert ["rms_norm_backward_kernel" in text for text in texts] == [False, True]
    near(ours, mx.grad(lambda x: normed(x, w).square().sum())(x), 1e-5)


# What is refused


def refusal(vjp: Any, x: Any = None, **options: Any) -> Any:
    """The gradient of a product with this vjp."""
    x = mx.random.normal((20,)) if x is None else x
    function = custom(product_kernel, vjp, **options)
    return mx.grad(lambda x: function(x, x, 20, 32, grid=(1,), outputs={"out": x}).sum())(x)


@triton.jit
def product_kernel(x, w, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * tl.load(w + i, i < n), i < n)


@triton.jit
def half_kernel(x, dout, dw, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(dw + i, tl.load(x + i, i < n) * tl.load(dout + i, i < n), i < n)


@triton.jit
def unrelated_kernel(x, scale, dx, dw, dout, n, BLOCK: tl.constexpr):
    tl.store(dx + tl.arange(0, BLOCK), tl.load(dout + tl.arange(0, BLOCK)))
    tl.store(dw + tl.arange(0, BLOCK), tl.load(dout + tl.arange(0, BLOCK)))


@triton.jit
def no_cotangent_kernel(x, w, dx, dw, n, BLOCK: tl.constexpr):
    tl.store(dx + tl.arange(0, BLOCK), tl.load(w + tl.arange(0, BLOCK)))
    tl.store(dw + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))


@pytest.mark.parametrize(
    ("vjp", "error", "message"),
    [
        (lambda p, c, o: p.x, LaunchValueError, "vjp returned 1 gradient, but must return 2, of x, w"),
        (lambda p, c, o: (p.x,) * 3, LaunchValueError, "vjp returned 3 gradients, but must return 2"),
        (lambda p, c, o: None, LaunchTypeError, "vjp must return the gradients of x, w.*not NoneType"),
        (lambda p, c, o: {"x": p.x}, LaunchValueError, r"vjp returned no gradient of w;.*constant="),
        (lambda p, c, o: {"x": p.x, "w": p.x, "n": p.x}, LaunchValueError, "a gradient of n, which is not"),
        (lambda p, c, o: (p.x, p.w[:3]), LaunchValueError, r"gradient of w has shape \(3,\), but w has shape \(20,\)"),
        (lambda p, c, o: (p.x, 0.0), LaunchTypeError, "the gradient of w must be an MLX array, not float"),
        (lambda p, c, o: (p.x > 0, p.x), LaunchTypeError, "the gradient of x has dtype mlx.core.bool"),
        (lambda p, c, o: p.z, AttributeError, "the arguments of product_kernel have no z; they are x, w, n, BLOCK"),
        (lambda p, c, o: o.lse, AttributeError, "the outputs of product_kernel have no lse; they are out"),
        (half_kernel, LaunchValueError, "half_kernel: there is no parameter dx for the gradient of x"),
        (unrelated_kernel, LaunchTypeError, "unrelated_kernel: parameter scale is not an argument or output"),
        (no_cotangent_kernel, LaunchValueError, "there is no parameter dout for the cotangent of out.*saved="),
    ],
)  # fmt: skip
def test_wrong_gradients_are_refused(vjp: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        refusal(vjp)
    assert isinstance(caught.value, TritonMetalError) or error is AttributeError


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: custom(max, half_kernel), LaunchTypeError, "custom.. takes a @triton_metal.jit kernel"),
        (lambda: custom(product_kernel, 3), LaunchTypeError, "vjp must be a @triton_metal.jit kernel or a function"),
        (lambda: custom(product_kernel, half_kernel, form="mlx"), LaunchValueError, 'form must be "metal" or "graph"'),
        (lambda: custom(product_kernel, half_kernel, vjp_form="?"), LaunchValueError, "vjp_form must be"),
        (lambda: custom(product_kernel, max, vjp_form="graph"), LaunchTypeError, "belong to a backward kernel"),
        (lambda: custom(product_kernel, half_kernel, saved=["lse"]), LaunchValueError, "saved names lse, but the"),
        (lambda: custom(product_kernel, half_kernel, constant="v"), LaunchValueError, "constant names v, but the"),
        (
            lambda: custom(product_kernel, half_kernel, vjp_launch={"size": 3}),
            LaunchTypeError, "half_kernel: vjp_launch has size, which is neither grid",
        ),
    ],
)  # fmt: skip
def test_wrong_functions_are_refused(make: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("x", "x"), {"outputs": {}}, LaunchTypeError, "outputs must give a shape and a dtype"),
        (("x",), {"outputs": {"w": "x"}}, LaunchValueError, "output w is never written|argument out is written"),
        (("x", "numpy"), {}, LaunchTypeError, "argument w is a ndarray, not an array of MLX"),
        (("x", [1.0]), {}, LaunchTypeError, "which is not an array"),
        (("x",), {}, LaunchTypeError, "argument w is missing"),
        (("x", "x"), {"w": 3}, LaunchTypeError, "argument w is given twice"),
    ],
)  # fmt: skip
def test_wrong_launches_are_refused(
    form: str, arguments: tuple[Any, ...], options: dict[str, Any], error: type, message: str
) -> None:
    x = mx.random.normal((20,))
    known = {"x": x, "numpy": np.zeros(20)}
    given = [known.get(each, each) if isinstance(each, str) else each for each in arguments]
    options = {"outputs": {"out": x}, **options}
    outputs = dict.fromkeys(options.pop("outputs"), x)
    function = custom(product_kernel, lambda p, c, o: (c.out, c.out), form=form)
    if "out" not in outputs and outputs:
        given.append(x)
    with pytest.raises(error, match=message) as caught:
        function(*given, n=20, BLOCK=32, grid=(1,), outputs=outputs, **options)
    assert isinstance(caught.value, TritonMetalError)


def test_saved_outputs_must_be_outputs_but_not_all() -> None:
    x = mx.random.normal((3, 10))
    function = custom(cross_entropy_kernel, cross_entropy_backward_kernel, saved=["lse"])
    launch: dict[str, Any] = {"grid": (3,)}
    labels, spec = mx.array([1, 2, 3]), ((3,), mx.float32)
    with pytest.raises(LaunchValueError, match="lse is saved for the gradient, so outputs="):
        function(x, labels, x, 10, 16, outputs={"loss": spec}, **launch)
    function = custom(cross_entropy_kernel, cross_entropy_backward_kernel, saved=["lse", "loss"])
    with pytest.raises(LaunchValueError, match="all outputs are saved"):
        function(x, labels, 10, 16, outputs={"loss": spec, "lse": spec}, **launch)


def test_errors_of_the_vjp_keep_their_type() -> None:
    def vjp(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return [half_kernel][1]

    with pytest.raises(IndexError):
        refusal(vjp)


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    page = runpy.run_path(str(program))
    x = mx.array([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(np.array(mx.grad(page["loss"])(x)), [0.0723295, 0.5, 0.92767], 1e-4)
    assert page["silu"].form == "graph"
    np.testing.assert_array_equal(
        np.array(mx.grad(lambda x: page["square"](x).sum())(x)), [-2, 0, 2]
    )


def test_the_example_of_the_docstring_runs() -> None:
    from triton_metal.mlx import customs

    results = doctest.testmod(customs)
    assert results.attempted > 5
    assert not results.failed
