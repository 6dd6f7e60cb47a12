"""triton_metal.ops' convolutions against PyTorch's in float64, with the gradients of input, filters and bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops._choices import forced
from triton_metal.ops._convolving import BLOCKS

from ops_support import FLOATS, FRAMEWORKS, assert_near, far_apart, made, rounded

torch = pytest.importorskip("torch")
EPS = 2.0**-24

#: (dimensions, transposed, batch, sizes, inputs, outputs, taps, channels last, options)
CASES = {
    "1d": (1, False, 2, (17,), 16, 24, (3,), True, {"padding": 1}),
    "1d-one-tap": (1, False, 1, (5,), 1, 1, (1,), True, {}),
    "2d": (2, False, 2, (9, 7), 20, 24, (3, 3), True, {"padding": 1, "stride": 2}),
    "2d-no-padding": (2, False, 1, (5, 8), 8, 9, (2, 3), False, {"stride": (1, 3)}),
    "few-inputs": (2, False, 2, (9, 7), 3, 10, (3, 3), False, {"padding": 1, "stride": 2}),
    "depthwise": (2, False, 2, (9, 7), 12, 12, (3, 3), True, {"padding": 1, "groups": 12}),
    "depthwise-multiplied": (2, False, 2, (9, 7), 5, 10, (3, 3), True, {"padding": 1, "groups": 5, "stride": 2}),
    "groups": (2, False, 2, (9, 7), 20, 30, (3, 2), False, {"padding": (2, 1), "groups": 2, "dilation": (2, 1)}),
    "3d": (3, False, 1, (5, 4, 6), 9, 8, (2, 3, 2), True, {"padding": 1, "stride": (1, 2, 3), "dilation": (1, 2, 2)}),
    "t1d": (1, True, 2, (17,), 16, 24, (5,), False, {"padding": 1, "stride": 3, "output_padding": 1, "dilation": 2}),
    "t2d": (2, True, 2, (6, 5), 16, 8, (4, 3), True, {"padding": 1, "stride": (4, 2), "dilation": 2}),
    "t2d-groups": (2, True, 2, (6, 5), 16, 8, (4, 3), False, {"padding": 1, "stride": 2, "groups": 4}),
    "t3d": (3, True, 1, (3, 4, 2), 4, 6, (2, 3, 2), True, {"padding": 1, "stride": (1, 2, 3), "output_padding": (0, 1, 2), "groups": 2}),
    "t1d-long-stride": (1, True, 2, (1,), 9, 8, (3,), True, {"stride": 1000, "dilation": 2}),
    "t2d-long-strides": (2, True, 1, (2, 1), 3, 4, (2, 3), False, {"stride": (7, 50), "padding": (1, 0)}),
    "2d-long-strides": (2, False, 2, (4, 3), 9, 8, (2, 2), True, {"stride": (3, 1000), "padding": 1}),
    "empty": (2, False, 0, (6, 5), 3, 4, (2, 2), True, {}),
}  # fmt: skip
LAYOUTS = {1: ("NLC", "NCL"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def moved(x: Any, transposed: bool, groups: int, last: bool, filters: bool = False) -> Any:
    """An array as PyTorch has it in the order that the function takes."""
    if not last:
        return x
    if filters and transposed:
        (inputs, each), taps = x.shape[:2], x.shape[2:]
        x = x.reshape(groups, inputs // groups, each, *taps).swapaxes(1, 2)
        x = x.reshape(groups * each, inputs // groups, *taps)
    return x.movedim(1, -1)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        (case, dtype)
        for case in CASES
        for dtype in FLOATS
        if dtype == "float32" or case in ("2d", "few-inputs", "depthwise", "t2d", "3d")
    ],
)
def test_forward_and_gradients(case: str, dtype: str, framework: str) -> None:
    dimensions, transposed, batch, size, inputs, outputs, taps, last, how = CASES[case]
    groups = how.get("groups", 1)
    rng = np.random.default_rng(3)
    shapes = (
        (batch, inputs, *size),
        (inputs, outputs // groups, *taps) if transposed else (outputs, inputs // groups, *taps),
        (outputs,),
    )
    arrays = [torch.tensor(rounded(rng.standard_normal(s), dtype)) for s in shapes]
    name = f"conv{'_transpose' if transposed else ''}{dimensions}d"
    layout = LAYOUTS[dimensions][0 if last else 1]

    def results(signs: bool, weights: Any = None) -> tuple[Any, list[Any]]:
        given = [(x if signs else x.abs()).clone().requires_grad_(True) for x in arrays]
        y = getattr(torch.nn.functional, name)(*given, **how)
        weights = (
            torch.tensor(rounded(rng.standard_normal(y.shape), dtype))
            if weights is None
            else weights
        )
        grads = torch.autograd.grad(y, given, weights if signs else weights.abs())
        order = [moved(y.detach(), transposed, groups, last)]
        for i, grad in enumerate(grads):
            order.append(grad if i == 2 else moved(grad, transposed, groups, last, i == 1))
        return weights, [each.numpy() for each in order]

    weights, exact = results(True)
    _, magnitude = results(False, weights)
    terms = math.prod(taps) * inputs // groups + 1
    counts = [terms, math.prod(taps) * outputs // groups, batch * math.prod(weights.shape[2:])]
    counts.append(counts[2])
    bounds = [(n + 2) * EPS * m for n, m in zip(counts, magnitude, strict=True)]
    given = [
        moved(arrays[0], transposed, groups, last),
        moved(arrays[1], transposed, groups, last, True),
        arrays[2],
    ]
    own = [made(framework, x.numpy(), dtype) for x in given]
    weights = moved(weights, transposed, groups, last).numpy()
    function = getattr(ops, name)
    assert_near(function(*own, layout=layout, **how), exact[0], bounds[0], dtype)
    if framework == "numpy":
        return
    if framework == "torch":
        own = [x.requires_grad_(True) for x in own]
        y = function(*own, layout=layout, **how)
        found = torch.autograd.grad(y, own, torch.tensor(weights).to(y.dtype))
    else:
        import mlx.core as mx

        _, found = mx.vjp(
            lambda *a: [function(*a, layout=layout, **how)], own, [made("mlx", weights, dtype)]
        )
    for grad, right, bound in zip(found, exact[1:], bounds[1:], strict=True):
        assert_near(grad, right, bound, dtype)


@pytest.mark.parametrize("depthwise", [False, True])
def test_gradients_of_filters_are_added_in_parts(depthwise: bool) -> None:
    rng = np.random.default_rng(4)
    x = torch.tensor(rng.integers(-3, 4, (2, 33, 31, 8)), dtype=torch.float32)
    groups = 8 if depthwise else 1
    w = torch.tensor(rng.integers(-3, 4, (8, 3, 3, 8 // groups)), dtype=torch.float32)
    w.requires_grad_(True)
    y = ops.conv2d(x, w, padding=1, groups=groups)
    dy = torch.tensor(rng.integers(-3, 4, tuple(y.shape)), dtype=torch.float32)
    plain = w.detach().movedim(-1, 1).requires_grad_(True)
    right = torch.nn.functional.conv2d(x.movedim(-1, 1), plain, padding=1, groups=groups)
    (grad,) = torch.autograd.grad(right, plain, dy.movedim(-1, 1))
    (found,) = torch.autograd.grad(y, w, dy)
    assert torch.equal(found, grad.movedim(1, -1))  # small integers are added exactly
    assert torch.equal(y, right.movedim(1, -1))


def test_strides_are_kept() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, (2, 6, 9, 12)).astype(np.float32)
    w = rng.integers(-3, 4, (5, 6, 3, 3)).astype(np.float32)
    right = ops.conv2d(x, w, layout="NCHW")
    last, filters = x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(ops.conv2d(last, filters), right.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(
        ops.conv2d(x[:, :, ::2, ::-1], w[::-1, :, :, ::2], layout="NCHW"),
        ops.conv2d(x[:, :, ::2, ::-1].copy(), w[::-1, :, :, ::2].copy(), layout="NCHW"),
    )
    tensor = torch.tensor(x).to(memory_format=torch.channels_last)
    found = ops.conv2d(tensor, torch.tensor(w).to(memory_format=torch.channels_last), layout="NCHW")
    np.testing.assert_array_equal(found.numpy(), right)


@pytest.mark.own_route
def test_mlx_has_the_same_groups_and_layouts() -> None:
    mx = pytest.importorskip("mlx.core")
    rng = np.random.default_rng(6)
    x = mx.array(rng.integers(-3, 4, (2, 6, 5, 8)).astype(np.float32))
    w = mx.array(rng.integers(-3, 4, (12, 3, 2, 8)).astype(np.float32))
    with mx.stream(mx.cpu):
        right = mx.conv2d(x, w[..., :4], stride=2, padding=1, groups=2)
        back = mx.conv_transpose2d(x, w, stride=2, padding=1)
    assert mx.array_equal(ops.conv2d(x, w[..., :4], stride=2, padding=1, groups=2), right)
    assert mx.array_equal(ops.conv_transpose2d(x, w, stride=2, padding=1), back)


@pytest.mark.own_route
def test_second_derivatives_and_compile() -> None:
    x = torch.randn(1, 5, 8, dtype=torch.float32, requires_grad=True)
    w = torch.randn(9, 3, 8, dtype=torch.float32, requires_grad=True)

    def twice(function: Any, x: Any, w: Any) -> Any:
        (dx, dw) = torch.autograd.grad(function(x, w).square().sum(), (x, w), create_graph=True)
        return torch.autograd.grad(dx.square().sum() + dw.square().sum(), (x, w))

    found = twice(lambda x, w: ops.conv1d(x, w, padding=1), x, w)
    wide = [t.detach().double().requires_grad_(True) for t in (x, w)]
    right = twice(lambda x, w: torch.nn.functional.conv1d(x.mT, w.mT, padding=1).mT, *wide)
    for a, b in zip(found, right, strict=True):
        assert (a - b).abs().max() <= 1e-5 * b.abs().max()
    compiled = torch.compile(
        lambda x, w: ops.conv1d(x, w, padding=1).relu(), fullgraph=True, backend="aot_eager"
    )
    y = compiled(x, w)
    assert torch.equal(y, ops.conv1d(x, w, padding=1).relu())
    grads = torch.autograd.grad(y.sum(), (x, w))
    for a, b in zip(
        grads, torch.autograd.grad(ops.conv1d(x, w, padding=1).relu().sum(), (x, w)), strict=True
    ):
        assert torch.equal(a, b)
    assert torch.library.opcheck(
        torch.ops.triton_metal.convolution.default,
        (x, w, None, [1], [1], [1], 1, [5], False, False, True),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )


def test_special_values_and_padding_alone() -> None:
    x = np.zeros((1, 6, 1), np.float32)
    x[0, 3] = np.inf
    y = ops.conv1d(x, np.array([1, 0, 1], np.float32).reshape(1, 3, 1), padding=1).reshape(6)
    np.testing.assert_array_equal(y, [0, 0, np.inf, np.nan, np.inf, 0])
    bias = np.array([2, 3], np.float32)
    y = ops.conv1d(np.zeros((1, 0, 3), np.float32), np.ones((2, 3, 3), np.float32), bias, padding=2)
    np.testing.assert_array_equal(y, np.broadcast_to(bias, (1, 2, 2)))


X, W = np.zeros((1, 8, 8, 4), np.float32), np.zeros((6, 3, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.conv2d(X, W[..., :3]), LaunchValueError, r"\[conv2d\] w must have shape \(outputs, taps, taps, 4\) for 4 channels of x and groups=1 but has shape \(6, 3, 3, 3\)"),
        (lambda: ops.conv2d(X, W[..., :2], groups=3), LaunchValueError, r"for 4 channels of x and groups=3"),
        (lambda: ops.conv_transpose2d(X, W, layout="NCHW"), LaunchValueError, r"\[conv_transpose2d\] w must have shape \(8, outputs/1, taps, taps\)"),
        (lambda: ops.conv1d(X, W), LaunchValueError, r"\[conv1d\] x must have 3 dimensions but has 4"),
        (lambda: ops.conv2d(X, W.astype(np.float16)), LaunchValueError, r"w must have the dtype of x, float32, but has dtype float16"),
        (lambda: ops.conv2d(X.astype(np.float64), W), LaunchValueError, r"x must have dtype"),
        (lambda: ops.conv2d(X, W, np.zeros(5, np.float32)), LaunchValueError, r"bias must have shape \(6,\), one number for each output channel but has shape \(5,\)"),
        (lambda: ops.conv2d(X, W, stride=0), LaunchValueError, r"stride must be from 1 to 2\*\*31 - 1 but is 0"),
        (lambda: ops.conv2d(X, W, padding=(1, 2, 3)), LaunchValueError, r"padding must be an integer or 2 integers but is \(1, 2, 3\)"),
        (lambda: ops.conv2d(X, W, dilation=1.5), LaunchTypeError, r"dilation must be an integer or 2 integers but is 1.5"),
        (lambda: ops.conv2d(X, W, dilation=4), LaunchValueError, r"is too small for shape \(6, 3, 3, 4\) with dilation=4"),
        (lambda: ops.conv2d(X, W, layout="NCL"), LaunchValueError, r"layout must be 'NHWC' or 'NCHW' but is 'NCL'"),
        (lambda: ops.conv2d(X, [1.0]), LaunchTypeError, r"w must be an array"),
        (lambda: ops.conv_transpose2d(X, W, stride=2, output_padding=2), LaunchValueError, r"output_padding must be less than stride or dilation \(2\) but is 2"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("inputs", "side", "step"), [(48, 64, 16), (48, 12, 32), (80, 64, 32)])
def test_many_programs_have_short_steps_where_these_multiply_a_quarter_less(
    inputs: int, side: int, step: int
) -> None:
    """48 inputs are three steps of 16; two of 32 are fewer, of which each of a few programs waits for each."""
    x, w = np.ones((1, side, side, inputs), np.float16), np.ones((32, 1, 1, inputs), np.float16)
    with triton.launch_options(count=True) as report:
        y = ops.conv2d(x, w)
    (launch,) = report.launches
    assert launch.kernel.constants["BLOCK_K"] == step
    padded = -(-inputs // step) * step
    if side == 64:  # whole blocks of pixels
        assert launch.counters["simdgroup_matrix_multiplies"] == side**2 * 32 * padded // 512
    assert (y == inputs).all()


@pytest.mark.parametrize("blocks", [(32, 16, 16), (32, 64, 16), (64, 32, 32)], ids=str)
def test_named_blocks_give_the_convolution(blocks: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((1, 9, 7, 40)), rng.standard_normal((48, 3, 3, 40))
    x, w = x.astype(np.float32), w.astype(np.float32)
    expected = ops.conv2d(x, w, padding=1)
    with forced(BLOCKS, blocks), triton.launch_options(count=True) as report:
        found = ops.conv2d(x, w, padding=1)
    constants = report.launches[0].kernel.constants
    assert tuple(constants[f"BLOCK_{side}"] for side in "MNK") == blocks
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.own_route
@pytest.mark.parametrize("groups", [1, 8])
@pytest.mark.parametrize("name", ["rows", "channels", "filters"])
def test_images_and_filters_that_are_far_apart(name: str, groups: int) -> None:
    """The last row, channel or filter is 2^31 elements from the first one, in one image."""
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((1, 24, 9, 8)), rng.standard_normal((8, 3, 3, 8 // groups))
    x, w = x.astype(np.float16), w.astype(np.float16)
    far_x, far_w = x, w
    if name == "rows":
        far_x = far_apart(x.reshape(24, 72)).reshape(x.shape)
    elif name == "channels":
        far_x = far_apart(x.reshape(-1, 8).T.copy()).reshape(8, 1, 24, 9).transpose(1, 2, 3, 0)
    else:
        far_w = far_apart(w.reshape(8, -1)).reshape(w.shape)
    how: dict[str, Any] = {"padding": 1, "groups": groups}
    for function, stride in ((ops.conv2d, 1), (ops.conv_transpose2d, 2)):
        if function is ops.conv_transpose2d and groups > 1:
            continue  # its filters have another shape
        expected = function(x, w, stride=stride, **how)
        assert np.array_equal(function(far_x, far_w, stride=stride, **how), expected)

    def gradient(x: Any) -> Any:
        weights = torch.tensor(w).requires_grad_()
        y = ops.conv2d(torch.from_numpy(x), weights, **how)
        return torch.autograd.grad(y.float().square().sum(), weights)[0]

    if name != "filters":
        assert torch.equal(gradient(far_x), gradient(x))


def test_what_leaves_nothing_to_compute_is_named() -> None:
    x, w = np.ones((1, 4, 3), np.float32), np.ones((2, 3, 3), np.float32)
    with pytest.raises(LaunchValueError, match=r"padding=9 takes more than all of the result"):
        ops.conv_transpose1d(x, w, padding=9)
    with pytest.raises(
        LaunchValueError, match=r"x must have at least one channel but has shape \(1, 4, 0\)"
    ):
        ops.conv1d(x[..., :0], w[..., :0])


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_strides_of_31_bits(framework: str) -> None:
    """The programs of a transposed one are those of its result, however far its places lie apart."""
    x, w = np.full((1, 1, 1), 3, np.float32), np.array([[[2.0], [5.0]]], np.float32)
    if framework == "torch":
        x, w = torch.from_numpy(x), torch.from_numpy(w)
    assert np.asarray(ops.conv_transpose1d(x, w, stride=2**31 - 1)).ravel().tolist() == [6, 15]
    wide, one = np.ones((1, 1, 1, 1), np.float32), np.full((1, 1, 1, 1), 2, np.float32)
    assert ops.conv_transpose2d(wide, one, stride=65536).ravel().tolist() == [2]
    y = torch.ones(1, 2, 2, 1, requires_grad=True)
    ops.conv2d(y, torch.full((1, 1, 1, 1), 4.0), stride=65536).sum().backward()
    assert y.grad.ravel().tolist() == [4, 0, 0, 0]
