"""triton_metal.ops.attention and attention_decode against float64, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops import _attention_backward, _attention_decode, _attention_forward
from triton_metal.ops._choices import asked, chip_for
from triton_metal.ops._families import FAMILIES

from attention_exact import exact_attention, operands, visible
from ops_support import (
    FLOATS,
    FRAMEWORKS,
    assert_near,
    far_apart,
    gradients,
    made,
    numbers,
    rounded,
)

#: (batch, heads, kv_heads, queries, keys, width) and what is hidden. Sizes around the tiles of 32 and 16 rows.
CASES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 1, 1, 32, 32, 64), {}),
    ((2, 4, 2, 37, 70, 64), {"causal": True}),
    ((1, 2, 1, 70, 37, 32), {"causal": True}),  # the first 33 queries see nothing
    ((2, 6, 2, 33, 45, 80), {"window": 7}),
    ((1, 2, 2, 65, 65, 96), {"window": 9, "causal": True}),
    ((1, 2, 2, 40, 50, 16), {"window": (5, 0)}),
    ((1, 2, 2, 40, 50, 16), {"window": (None, 3)}),
    ((3, 2, 1, 20, 50, 37), {"lengths": [50, 0, 13]}),
    ((3, 2, 1, 20, 50, 128), {"lengths": [60, -4, 13], "causal": True, "window": 30}),
    ((1, 2, 1, 20, 33, 200), {"causal": True}),
    ((1, 1, 1, 17, 19, 256), {"causal": True}),
    ((1, 3, 1, 18, 40, 5), {}),
    ((1, 8, 2, 1, 300, 64), {}),
    ((2, 4, 2, 5, 300, 80), {"causal": True, "window": 100, "lengths": [300, 3]}),
    # Three neighbours of a thread.
    ((2, 4, 2, 3, 130, 96), {"causal": True}),
    ((1, 2, 1, 9, 1, 24), {"scale": -0.7}),
    ((1, 2, 1, 20, 20, 16), {"scale": 0.0, "causal": True}),
    ((1, 2, 1, 20, 20, 16), {"scale": -2}),
]
NAMES = ("q", "k", "v")


@pytest.mark.own_route
@pytest.mark.own_target
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [64, 80, 96, 128, 256])
@pytest.mark.parametrize("dtype", FLOATS)
def test_forward_is_in_one_piece(dtype: str, width: int, causal: bool) -> None:
    """Its registers are enough on G13: slices of its tiles, each with a loop over all keys, would only cost."""
    q = made("torch", np.zeros((1, 2, 64, width), np.float32), dtype)
    with triton.launch_options(count=True) as report:
        ops.attention(q, q, q, causal=causal)
    assert [launch.kernel.metadata.slices for launch in report.launches] == [1]


def shapes_of(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], int, int]:
    batch, heads, kv_heads, queries, keys, width = sizes
    return (batch, heads, queries, width), kv_heads, keys


def given(options: dict[str, Any], framework: str) -> dict[str, Any]:
    """Options with the arrays among them in a framework."""
    found = dict(options)
    for name, dtype in (("lengths", np.int32), ("mask", np.bool_)):
        if found.get(name) is not None:
            found[name] = made(framework, np.asarray(found[name], dtype), np.dtype(dtype).name)
    return found


@pytest.mark.parametrize(("sizes", "options"), CASES)
def test_shapes_and_what_is_hidden(sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    shape, kv_heads, keys = shapes_of(sizes)
    q, k, v, weights = operands(1, shape, kv_heads, keys, "float32")
    exact = exact_attention(q, k, v, weights, "float32", **options)
    arrays = [made("numpy", x, "float32") for x in (q, k, v)]
    for function in (ops.attention, ops.attention_decode):
        result = function(*arrays, **given(options, "numpy"))
        assert_near(result, exact.out, exact.out_bound, "float32")


@pytest.mark.parametrize(("sizes", "options"), CASES)
def test_gradients_on_every_route(sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    shape, kv_heads, keys = shapes_of(sizes)
    q, k, v, weights = operands(2, shape, kv_heads, keys, "float32")
    exact = exact_attention(q, k, v, weights, "float32", **options)
    arrays = [made("numpy", x, "float32") for x in (q, k, v)]
    before, after = ops.attentions._extent(
        "attention", options.get("window"), options.get("causal", False)
    )
    lengths = given(options, "numpy").get("lengths")
    rest = (None, None, lengths, before, after, float(options.get("scale", shape[-1] ** -0.5)))
    out, *kept = _attention_forward.forward(*arrays, *rest)
    if _attention_decode.suits(shape[2], shape[1] // kv_heads):
        (out,) = _attention_decode.decode(*arrays, *rest)
    found = _attention_backward.backward(
        made("numpy", weights, "float32"), *arrays, out, *kept, *rest, False
    )
    for name, gradient in zip(NAMES, found, strict=False):
        assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((2, 4, 2, 33, 40, 64), {"causal": True}),
        ((1, 4, 2, 2, 70, 48), {}),
        ((1, 4, 2, 1, 70, 96), {}),
    ],
)
def test_dtypes_and_frameworks(
    sizes: tuple[int, ...], options: dict[str, Any], framework: str, dtype: str
) -> None:
    shape, kv_heads, keys = shapes_of(sizes)
    q, k, v, weights = operands(3, shape, kv_heads, keys, dtype)
    exact = exact_attention(q, k, v, weights, dtype, **options)

    def function(*arrays: Any) -> Any:
        return ops.attention(*arrays, **options)

    arrays = [made(framework, x, dtype) for x in (q, k, v)]
    assert_near(function(*arrays), exact.out, exact.out_bound, dtype)
    if framework != "numpy":
        for name, gradient in zip(
            NAMES, gradients(framework, function, arrays, weights), strict=True
        ):
            assert_near(gradient, exact.grads[name], exact.bounds[name], dtype)


@pytest.mark.parametrize("queries", [3, 35])
@pytest.mark.parametrize(
    "shape", [(2, 4, 0, 41), (1, 4, 0, 41), (2, 1, 1, 41), (0, 1), (1, 1, 0, 1), ()]
)
def test_bias_and_its_gradient(shape: tuple[int, ...], queries: int) -> None:
    torch = pytest.importorskip("torch")
    # A 0 stands for the number of queries.
    shape = tuple(n or queries for n in shape)
    q, k, v, weights = operands(4, (2, 4, queries, 32), 2, 41, "float32")
    rng = np.random.default_rng(5)
    bias = rounded(rng.standard_normal(shape), "float32")
    whole = np.broadcast_to(bias, (2, 4, queries, 41))
    exact = exact_attention(q, k, v, weights, "float32", bias=whole, causal=True)
    arrays = [made("numpy", x, "float32") for x in (q, k, v, bias)]
    result = ops.attention(*arrays[:3], bias=arrays[3], causal=True)
    assert_near(result, exact.out, exact.out_bound, "float32")

    def summed(x: np.ndarray) -> np.ndarray:
        four = (1,) * (4 - len(shape)) + shape
        return x.sum(tuple(i for i in range(4) if four[i] == 1), keepdims=True).reshape(shape)

    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return ops.attention(q, k, v, bias=bias, causal=True)

    found = gradients("torch", function, [torch.tensor(x) for x in arrays], weights)
    for name, gradient in zip((*NAMES, "bias"), found, strict=True):
        value, bound = exact.grads[name], exact.bounds[name]
        if name == "bias":
            rest = 2.0**-20 * summed(np.abs(value))
            value, bound = summed(value), summed(bound) + rest
        assert_near(gradient, value, bound, "float32")


@pytest.mark.own_route
def test_gradient_of_a_bias_in_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    q, k, v, weights = operands(6, (1, 2, 20, 16), 1, 24, "float32")
    bias = np.random.default_rng(7).standard_normal((2, 20, 24))
    exact = exact_attention(q, k, v, weights, "float32", bias=rounded(bias, "float32")[None])
    arrays = [mx.array(x.astype(np.float32)) for x in (q, k, v, bias)]
    found = gradients("mlx", lambda q, k, v, b: ops.attention(q, k, v, bias=b), arrays, weights)
    assert_near(found[3], exact.grads["bias"][0], exact.bounds["bias"][0], "float32")


@pytest.mark.parametrize("queries", [2, 40])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_masks_hide_and_rows_without_keys_give_zero(framework: str, queries: int) -> None:
    q, k, v, weights = operands(8, (2, 2, queries, 32), 2, 50, "float32")
    mask = np.random.default_rng(9).random((2, 1, queries, 50)) < 0.5
    mask[1, 0, 1] = False
    bias = np.where(np.random.default_rng(10).random((1, 2, 1, 50)) < 0.2, -np.inf, 0.25)
    whole = np.broadcast_to(bias, (2, 2, queries, 50))
    exact = exact_attention(q, k, v, weights, "float32", mask=mask, bias=whole)
    assert (exact.out[1, :, 1] == 0).all()
    options = {"mask": made(framework, mask, "bool"), "bias": made(framework, bias, "float32")}
    arrays = [made(framework, x, "float32") for x in (q, k, v)]
    for function in (ops.attention, ops.attention_decode):
        assert_near(function(*arrays, **options), exact.out, exact.out_bound, "float32")
    if framework != "numpy":
        found = gradients(framework, lambda *a: ops.attention(*a, **options), arrays, weights)
        for name, gradient in zip(NAMES, found, strict=True):
            assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")


@pytest.mark.parametrize("queries", [1, 33])
def test_every_query_masked(queries: int) -> None:
    q = np.ones((1, 2, queries, 16), np.float32)
    k = np.ones((1, 2, 9, 16), np.float32)
    for options in (
        {"mask": np.zeros((1, 1, 1, 9), bool)},
        {"bias": np.full((9,), -np.inf, np.float32)},
        {"lengths": np.zeros(1, np.int64)},
    ):
        assert (ops.attention(q, k, k, **options) == 0).all()


@pytest.mark.parametrize("queries", [2, 40])
def test_views_keep_their_order(queries: int) -> None:
    rng = np.random.default_rng(11)
    # (batch, rows, heads, width), as models have it; every second row; from the end; and one key for all.
    q = rng.standard_normal((2, queries, 4, 48)).astype(np.float32).transpose(0, 2, 1, 3)
    k = rng.standard_normal((2, 60, 2, 96)).astype(np.float32).transpose(0, 2, 1, 3)[:, :, ::2, ::2]
    v = rng.standard_normal((2, 2, 30, 48)).astype(np.float32)[:, :, ::-1]
    mask = np.broadcast_to(rng.random(30)[::-1] < 0.7, (4, queries, 30))
    exact = exact_attention(
        *(x.astype(np.float64) for x in (q, k, v)), np.zeros(q.shape), "float32", mask=mask
    )
    assert_near(ops.attention(q, k, v, mask=mask), exact.out, exact.out_bound, "float32")
    same = np.broadcast_to(k[:, :, :1], k.shape)
    exact = exact_attention(
        *(x.astype(np.float64) for x in (q, same, v)), np.zeros(q.shape), "float32"
    )
    assert_near(ops.attention(q, same, v), exact.out, exact.out_bound, "float32")


@pytest.mark.parametrize(
    ("sizes", "kv_heads", "keys"),
    [((0, 2, 4, 16), 2, 5), ((1, 0, 4, 16), 0, 5), ((1, 2, 0, 16), 2, 5), ((1, 2, 40, 16), 2, 0), ((1, 2, 1, 16), 1, 0)],
)  # fmt: skip
@pytest.mark.own_route
def test_empty_arrays(sizes: tuple[int, ...], kv_heads: int, keys: int) -> None:
    torch = pytest.importorskip("torch")
    mx = pytest.importorskip("mlx.core")
    q, k, v, weights = operands(12, sizes, kv_heads, keys, "float32")
    arrays = [torch.tensor(x.astype(np.float32)) for x in (q, k, v)]
    found = gradients("torch", ops.attention, arrays, weights)
    assert all((g == 0).all() and g.shape == x.shape for g, x in zip(found, arrays, strict=True))
    for like in (np.asarray, mx.array):
        for function in (ops.attention, ops.attention_decode):
            result = function(*(like(x.astype(np.float32)) for x in (q, k, v)))
            assert tuple(result.shape) == sizes
            assert (np.asarray(result) == 0).all()


@pytest.mark.parametrize("queries", [1, 40])
def test_special_values(queries: int) -> None:
    q, k, v, _ = operands(13, (1, 1, queries, 16), 1, 40, "float32")
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    broken = q.copy()
    broken[0, 0, 0, 3] = np.nan
    found = ops.attention(broken, k, v)
    assert np.isnan(found[0, 0, 0]).all()
    assert np.isfinite(found[0, 0, 1:]).all()
    broken = v.copy()
    broken[0, 0, 5, 2] = np.inf
    found = ops.attention(q, k, broken)
    assert (found[..., 2] == np.inf).all()
    assert np.isfinite(found[..., 3:]).all()
    # Scores of up to 2e4: one key has all the weight, and nothing overflows.
    exact = exact_attention(
        *(x.astype(np.float64) for x in (q * 500, k, v)), q * 0.0, "float32", scale=10.0
    )
    assert np.isfinite(ops.attention(q * 500, k, v, scale=10.0)).all()
    assert np.abs(ops.attention(q * 500, k, v, scale=10.0) - exact.out).max() < 0.05


def test_long_caches() -> None:
    q, k, v, weights = operands(20, (1, 2, 1, 256), 1, 16_500, "float32")
    exact = exact_attention(q, k, v, weights, "float32", lengths=[16_411])
    with asked() as questions:
        ops.attention_decode(*(x.astype(np.float32) for x in (q, k, v)))
    [(name, kind, sizes), *_] = questions
    assert FAMILIES[name].best(chip_for(weights), kind, sizes)[0] == 128, (
        "all that one program joins"
    )
    arrays = [x.astype(np.float32) for x in (q, k, v)]
    result = ops.attention_decode(*arrays, lengths=np.array([16_411]))
    assert_near(result, exact.out, exact.out_bound, "float32")


@pytest.mark.parametrize("queries", [2, 40])
def test_offsets_of_64_bits(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v, weights = operands(21, (2, 4, queries, 24), 2, 50, "float32")
    arrays = [x.astype(np.float32) for x in (q, k, v)]
    rest = (None, np.zeros((1, 4, queries, 50), np.float32), None, -1, 0, 0.2)

    def computed() -> list[np.ndarray]:
        kept = _attention_forward.forward(*arrays, *rest)
        gradient = _attention_backward.backward(
            weights.astype(np.float32), *arrays, *kept, *rest, True
        )
        return [*kept, *gradient]

    wanted = computed()
    for module in (_attention_forward, _attention_backward):
        monkeypatch.setattr(module, "far", lambda *_: True)
    assert all(np.array_equal(a, b) for a, b in zip(computed(), wanted, strict=True))


def test_what_reaches_over_2_to_the_31_elements() -> None:
    one = np.zeros((1, 1, 1, 16), np.float32)
    step = np.lib.stride_tricks.as_strided
    assert not _attention_forward.far(one, None)
    assert _attention_forward.far(step(one, (1, 1, 1 << 16, 16), (0, 0, 4 << 15, 4)))
    assert _attention_forward.far(np.broadcast_to(one, (1, 1 << 12, 1 << 15, 16)))


def test_gradients_are_the_same_each_time() -> None:
    torch = pytest.importorskip("torch")
    q, k, v, weights = operands(14, (1, 8, 40, 32), 2, 70, "float16")
    arrays = [made("torch", x, "float16") for x in (q, k, v)]
    first = gradients("torch", ops.attention, arrays, weights)
    again = gradients("torch", ops.attention, arrays, weights)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.own_route
def test_agrees_with_torch_and_survives_torch_compile() -> None:
    torch = pytest.importorskip("torch")
    q, k, v, weights = operands(15, (2, 4, 35, 32), 4, 50, "float32")
    bias = np.random.default_rng(16).standard_normal((4, 35, 50))
    arrays = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, k, v, bias)]
    out = torch.nn.functional.scaled_dot_product_attention(*arrays[:3], attn_mask=arrays[3])
    wanted = torch.autograd.grad(out, arrays, torch.tensor(weights))

    def function(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return ops.attention(q, k, v, bias=bias)

    inputs = [x.detach().float() for x in arrays]
    for one in (function, torch.compile(function, fullgraph=True, backend="aot_eager")):
        torch.testing.assert_close(one(*inputs).double(), out, rtol=1e-5, atol=1e-5)
        for found, exact in zip(gradients("torch", one, inputs, weights), wanted, strict=True):
            torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-5)


@pytest.mark.own_route
def test_survives_mx_compile() -> None:
    mx = pytest.importorskip("mlx.core")
    q, k, v, weights = operands(17, (1, 2, 35, 32), 1, 50, "float32")
    exact = exact_attention(q, k, v, weights, "float32", causal=True)
    arrays = [mx.array(x.astype(np.float32)) for x in (q, k, v)]

    def total(*given: Any) -> Any:
        return (ops.attention(*given, causal=True) * mx.array(weights.astype(np.float32))).sum()

    found = mx.compile(mx.grad(total, argnums=[0, 1, 2]))(*arrays)
    for name, gradient in zip(NAMES, found, strict=True):
        assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")


def test_small_steps_change_the_result_as_the_gradient_says() -> None:
    torch = pytest.importorskip("torch")
    q, k, v, weights = operands(18, (1, 2, 12, 16), 1, 14, "float32")
    arrays = [made("torch", x, "float32") for x in (q, k, v)]
    found = gradients("torch", lambda *a: ops.attention(*a, causal=True), arrays, weights)
    for place, gradient in enumerate(found):
        direction = torch.tensor(np.random.default_rng(19).standard_normal(gradient.shape)).float()

        def moved(step: float, place: int = place, direction: Any = direction) -> float:
            changed = [x.detach() for x in arrays]
            changed[place] = changed[place] + step * direction
            return float((numbers(ops.attention(*changed, causal=True)) * weights).sum())

        slope = (moved(1e-2) - moved(-1e-2)) / 2e-2
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=2e-3, abs=2e-2)


@pytest.mark.parametrize("queries", [3, 40])
@pytest.mark.parametrize("function", [ops.attention, ops.attention_decode])
def test_lengths_of_64_bits_are_limited(function: Any, queries: int) -> None:
    q, k, v, weights = operands(20, (3, 2, queries, 16), 2, 33, "float32")
    lengths = np.array([2**32 + 3, -(2**40), 2**63 - 1])
    exact = exact_attention(q, k, v, weights, "float32", lengths=[33, 0, 33])
    arrays = [made("numpy", x, "float32") for x in (q, k, v)]
    found = function(*arrays, lengths=lengths)
    assert_near(found, exact.out, exact.out_bound, "float32")


@pytest.mark.parametrize("queries", [3, 40])
@pytest.mark.parametrize("function", [ops.attention, ops.attention_decode])
def test_keys_whose_scores_are_minus_infinity_weigh_nothing(function: Any, queries: int) -> None:
    """Also those that come first, before there is a highest score."""
    q, k, v, weights = operands(21, (1, 2, queries, 16), 2, 150, "float32")
    q = np.abs(q)
    exact = exact_attention(q, k[:, :, 70:], v[:, :, 70:], weights, "float32")
    k[:, :, :70] = -np.inf
    arrays = [made("numpy", x, "float32") for x in (q, k, v)]
    assert_near(function(*arrays), exact.out, exact.out_bound, "float32")
    arrays[1][:] = -np.inf
    assert (function(*arrays) == 0).all()


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


Q, K = zeros(1, 4, 5, 16), zeros(1, 2, 7, 16)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.attention(Q[0], K, K), LaunchValueError, r"\[attention\] q must have 4 dimensions but has 3"),
        (lambda: ops.attention(Q, K[..., :8], K), LaunchValueError, r"k must have shape \(1, 2, 7, 16\) for q of \(1, 4, 5, 16\) but has shape \(1, 2, 7, 8\)"),
        (lambda: ops.attention(Q, K, K[:, :, 1:]), LaunchValueError, r"v must have shape \(1, 2, 7, 16\), as k has, but"),
        (lambda: ops.attention(Q, zeros(1, 3, 7, 16), zeros(1, 3, 7, 16)), LaunchValueError, r"q must have a multiple of the heads of k, which are 3, but has 4"),
        (lambda: ops.attention(Q, K.astype(np.float16), K), LaunchValueError, r"k must have the dtype of q, float32, but has dtype float16"),
        (lambda: ops.attention(Q.astype(np.float64), K, K), LaunchValueError, r"q must have dtype float16, bfloat16 or float32"),
        (lambda: ops.attention(zeros(1, 1, 2, 300), zeros(1, 1, 2, 300), zeros(1, 1, 2, 300)), LaunchValueError, r"a width \(its last dimension\) of 1 to 256 but has 300"),
        (lambda: ops.attention(Q, K, [1.0]), LaunchTypeError, r"v must be an array"),
        (lambda: ops.attention(Q, K, K, mask=zeros(5, 7)), LaunchValueError, r"mask must have dtype bool but has dtype float32"),
        (lambda: ops.attention(Q, K, K, mask=zeros(2, 1, 5, 7, dtype=bool)), LaunchValueError, r"mask must have a shape that broadcasts to \(batch, heads, queries, keys\) = \(1, 4, 5, 7\) but has shape \(2, 1, 5, 7\)"),
        (lambda: ops.attention(Q, K, K, bias=zeros(5, 7, dtype=bool)), LaunchValueError, r"bias must have dtype"),
        (lambda: ops.attention(Q, K, K, lengths=zeros(2, dtype=np.int32)), LaunchValueError, r"lengths must have shape \(1,\)"),
        (lambda: ops.attention(Q, K, K, lengths=zeros(1)), LaunchValueError, r"lengths must have dtype int32 or int64"),
        (lambda: ops.attention(Q, K, K, window=0), LaunchValueError, r"window must be at least 1, or a pair of numbers of at least 0, but is 0"),
        (lambda: ops.attention(Q, K, K, window=1.5), LaunchTypeError, r"window must be an integer, a pair of integers or None but is 1.5"),
        (lambda: ops.attention(Q, K, K, window=(1, 2, 3)), LaunchValueError, r"window must be a number, two numbers or None"),
        (lambda: ops.attention(Q, K, K, causal=1), LaunchTypeError, r"causal must be True or False but is 1"),
        (lambda: ops.attention_decode(Q, K, K, scale="x"), LaunchTypeError, r"\[attention_decode\] scale must be a number"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


def test_what_is_visible_is_what_the_docstring_says() -> None:
    see = visible((1, 1, 3, 5), True, 2, None)[0, 0]
    assert see.astype(int).tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]]


@pytest.mark.own_route
@pytest.mark.parametrize("queries", [2, 40])
def test_keys_queries_masks_and_biases_that_are_far_apart(queries: int) -> None:
    """The last of few rows is 2^31 elements from the first one, also within a block."""
    rng = np.random.default_rng(1)
    few = rng.standard_normal((17, 48)).astype(np.float16)
    view, keys = far_apart(few)[None, None], few[None, None]
    q = rng.standard_normal((1, 1, queries, 48)).astype(np.float16)
    expected = ops.attention(q, keys, keys)
    assert np.array_equal(ops.attention(q, view, view), expected)
    assert np.array_equal(ops.attention(view, q, q), ops.attention(keys, q, q))
    mask, bias = rng.random((17, queries)) < 0.7, few[:, :queries]
    for name, each in (("mask", mask), ("bias", bias)):
        hidden = far_apart(each).T
        expected = ops.attention(q, keys, keys, **{name: each.T})
        assert np.array_equal(ops.attention(q, keys, keys, **{name: hidden}), expected)


@pytest.mark.own_route
def test_rows_of_a_page_that_are_far_apart() -> None:
    rng = np.random.default_rng(1)
    few = rng.standard_normal((17, 48)).astype(np.float16)
    q, rows = (
        rng.standard_normal((1, 1, 2, 48)).astype(np.float16),
        (np.zeros((1, 1), np.int32), np.array([17])),
    )
    pages, far = few[None, :, None], far_apart(few)[None, :, None]
    assert np.array_equal(
        ops.paged_attention(q, far, far, *rows), ops.paged_attention(q, pages, pages, *rows)
    )


@pytest.mark.own_route
def test_gradients_of_keys_and_queries_that_are_far_apart() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    x, q, bias = (
        rng.standard_normal(shape).astype(np.float16) for shape in ((17, 48), (20, 48), (20, 17))
    )
    view, few, q, bias = (torch.from_numpy(each)[None, None] for each in (far_apart(x), x, q, bias))

    def found(keys: Any, first: bool) -> Any:
        given = [each.detach().requires_grad_() for each in (q, keys, keys, bias)]
        pair = (given[0], given[1]) if first else (given[1], given[0])
        y = ops.attention(*pair, pair[1], bias=given[3] if first else None)
        return torch.autograd.grad(y.float().square().sum(), [*given[:2], *given[3:][:first]])

    for first in (True, False):
        for one, two in zip(found(view, first), found(few, first), strict=True):
            assert torch.equal(one, two)
