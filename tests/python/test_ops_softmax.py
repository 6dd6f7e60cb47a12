"""triton_metal.ops.softmax and log_softmax against float64, with their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops import softmaxes
from triton_metal.ops._launch import turned_grids
from triton_metal.ops._pieces import pieces

from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, rounded

SHAPES = (
    ((3, 37), -1), ((2, 1), 1), ((5,), 0), ((4, 3, 50), 1), ((3, 129, 2), -2), ((2, 0), 1), ((0, 4), 1),
    ((2, 1025), 1), ((33, 70), 0),
)  # fmt: skip
#: Of float32: exp, the sum and the quotient. Differences from the largest are rounded once, of up to 16.
EPS = 2.0**-24


def exact(x: np.ndarray, axis: int, log: bool) -> np.ndarray:
    if not x.size:
        return x
    x = x - x.max(axis, keepdims=True)
    total = np.exp(x).sum(axis, keepdims=True)
    return x - np.log(total) if log else np.exp(x) / total


def bound(y: np.ndarray, axis: int, log: bool) -> np.ndarray:
    length = y.shape[axis]
    if log:
        return (4 * np.abs(y) + 8 + length**0.5) * EPS
    if not y.size:
        return y
    # fast::exp is off by two roundings for each unit of its argument.
    below = np.log(y.max(axis, keepdims=True) / np.maximum(y, 1e-300))
    return (24 + length**0.5 + 5 * below) * EPS * y


@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_forward_and_gradient(
    shape: tuple, axis: int, framework: str, dtype: str, log: bool
) -> None:
    rng = np.random.default_rng(7)
    x = rounded(rng.standard_normal(shape) * 3, dtype)
    weights = rounded(rng.standard_normal(shape), dtype)
    function = ops.log_softmax if log else ops.softmax
    y = exact(x, axis, log)
    assert_near(function(made(framework, x, dtype), axis), y, bound(y, axis, log), dtype)
    if framework == "numpy" or not x.size:
        return
    (dx,) = gradients(framework, lambda a: function(a, axis), [made(framework, x, dtype)], weights)
    u = {"float32": EPS, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    p = np.exp(y) if log else y
    total = (weights if log else weights * y).sum(axis, keepdims=True)
    gradient = weights - p * total if log else y * (weights - total)
    magnitude = np.abs(weights if log else weights * y).sum(axis, keepdims=True)
    # The kept result is rounded to the dtype; of a logarithm that error is absolute.
    error = 4 * u * p * (magnitude + np.abs(weights)) * (1 + (np.abs(y) if log else 0))
    assert_near(dx, gradient, error + 16 * EPS * magnitude, dtype)


@pytest.mark.parametrize("log", [False, True])
def test_rows_longer_than_registers(log: bool) -> None:
    x = np.random.default_rng(1).standard_normal((2, 20_011)).astype(np.float32)
    function = ops.log_softmax if log else ops.softmax
    y = exact(x.astype(np.float64), 1, log)
    assert_near(function(x), y, bound(y, 1, log), "float32")


@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", [1, 3, 10, 33, 64, 65, 100, 256, 257, 512, 513])
def test_many_short_rows_share_a_simdgroup(length: int, dtype: str, log: bool) -> None:
    x = rounded(np.random.default_rng(length).standard_normal((513, length)) * 3, dtype)
    function = ops.log_softmax if log else ops.softmax
    y = exact(x, 1, log)
    assert_near(function(made("numpy", x, dtype)), y, bound(y, 1, log), dtype)


@pytest.mark.parametrize(("rows", "length"), [(5, 40), (5, 20_000), (515, 21), (515, 300)])
def test_special_values(rows: int, length: int) -> None:
    x = np.zeros((rows, length), np.float32)
    x[0, 3] = np.nan
    x[1, 3] = np.inf
    x[2, :] = -np.inf
    x[3, 1:] = -np.inf
    x[4, :] = 3e38
    with np.errstate(invalid="ignore"):
        y = exact(x.astype(np.float64), 1, False)
    assert_near(ops.softmax(x), y, bound(y, 1, False), "float32")


@pytest.mark.parametrize("length", [64, 20_000])
def test_numbers_far_below_the_largest(length: int) -> None:
    """The difference from the largest is rounded, and multiplied by log2(e), which is relative in a small result."""
    x = np.random.default_rng(3).uniform(-80, 0, (4, length)).astype(np.float32)
    x[:, 0] = 0
    y = exact(x.astype(np.float64), 1, False)
    assert_near(ops.softmax(x), y, bound(y, 1, False) + 5 * EPS * np.abs(x) * y, "float32")


def test_views_are_read_in_their_order() -> None:
    x = np.random.default_rng(2).standard_normal((20, 30)).astype(np.float32)
    for view in (x.T, x[::2, 1::3], x[::-1]):
        y = exact(view.astype(np.float64), -1, False)
        assert_near(ops.softmax(view), y, bound(y, -1, False), "float32")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.softmax(np.zeros(3)), LaunchValueError, r"\[softmax\] x must have dtype float16, bfloat16 or float32 but has dtype float64"),
        (lambda: ops.softmax(np.zeros((2, 2), np.float32), 2), LaunchValueError, r"\[softmax\] axis must be from -2 to 1"),
        (lambda: ops.log_softmax([1.0]), LaunchTypeError, r"\[log_softmax\] x must be an array"),
        (lambda: ops.softmax(np.zeros((), np.float32)), LaunchValueError, r"x must have 1 to"),
        (lambda: ops.softmax(np.zeros(3, np.float32), 0.0), LaunchTypeError, r"axis must be an integer"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("length", [257, 781, 896, 897, 1100, 5000, 9000, 14000])
def test_rows_that_are_no_power_of_two(length: int) -> None:
    """They are taken in blocks that hardly exceed them, of which the last one is cut."""
    x = (np.random.default_rng(length).standard_normal((3, length)) * 3).astype(np.float32)
    x[1, :5] = -np.inf
    wide = x.astype(np.float64)
    rest = wide - wide.max(1, keepdims=True)
    total = np.exp(rest).sum(1, keepdims=True)
    np.testing.assert_allclose(ops.softmax(x), np.exp(rest) / total, rtol=2e-5, atol=1e-8)
    np.testing.assert_allclose(ops.log_softmax(x), rest - np.log(total), rtol=1e-5, atol=1e-5)
    x[1, -1], x[2] = np.nan, -np.inf
    broken = np.isnan(ops.softmax(x))
    assert broken[1:].all()
    assert not broken[0].any()


def test_blocks_of_rows_hold_them() -> None:
    for length in range(65, 16_385, 61):
        for least, most in ((32, 32), (32, 16)):
            held = pieces(length, least, most)
            widths, unit = held["WIDTHS"], held["UNIT"]
            assert length <= unit * sum(widths) < length + unit
            assert list(widths) == sorted(widths, reverse=True)
            assert held["num_warps"] == unit // 32
            assert sum(widths) <= most or unit == least


@pytest.mark.own_route
@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
@pytest.mark.parametrize("longest", [softmaxes.LONGEST, 16])
def test_rows_across_2_to_the_31_elements(
    longest: int, log: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first program's rows alone; no memory is taken for what it leaves out."""
    monkeypatch.setattr(softmaxes, "LONGEST", longest)
    monkeypatch.setattr(softmaxes, "BLOCK", min(longest, softmaxes.BLOCK))
    x = np.zeros((33, 2**26), np.float16)
    x[:, :4] = np.random.default_rng(1).standard_normal((33, 4))
    function = ops.log_softmax if log else ops.softmax
    expected = function(x[:, :4], axis=0)
    dx = softmaxes._backward(x[:, :4], expected, 0, log)[0]
    with turned_grids(lambda kernel, grid: (1, 1)):
        y = function(x, axis=0)
        back = softmaxes._backward(x, y, 0, log)[0]
    for found, wanted in ((y, expected), (back, dx)):
        np.testing.assert_allclose(found[:, :4], wanted, rtol=2e-3, atol=1e-6)


def test_zero_tensors_of_torch_are_zeros() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 4, requires_grad=True)
    torch.sgn(ops.softmax(x)).sum().backward()  # gives a gradient without memory
    assert torch.equal(x.grad, torch.zeros(3, 4))
    zero = torch._efficientzerotensor((3, 4))
    assert torch.equal(ops.softmax(zero), torch.full((3, 4), 0.25))
