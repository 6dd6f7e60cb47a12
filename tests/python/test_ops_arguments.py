"""What all functions of triton_metal.ops take and refuse: arrays that are no plain ones, numbers, integers, choices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def unaligned(x: np.ndarray) -> np.ndarray:
    """The same array, whose elements begin one byte behind where they should."""
    raw = np.zeros(x.nbytes + 1, np.uint8)
    found = np.frombuffer(raw.data, x.dtype, x.size, 1).reshape(x.shape)
    found[...] = x
    assert not found.flags.aligned
    return found


QUERIES, KEYS = X.reshape(1, 1, 3, 4) / 12, np.ones((1, 1, 40, 4), np.float32)
LABELS, PLACES = np.array([1, 3, 0]), np.array([2, 0])
FILTERS, BIAS = np.ones((2, 3, 4), np.float32), np.ones((3, 40), np.float32)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (ops.softmax, [X]),
        (ops.sum, [X]),
        (lambda x: ops.cumsum(x, 0), [X]),
        (ops.sort, [X]),
        (lambda *a: ops.layer_norm(a[0], a[1], residual=a[2]), [X, X[0], X]),
        (ops.cross_entropy, [X, LABELS]),
        (ops.linear_cross_entropy, [X, X, LABELS % 3]),
        (lambda x, w, b: ops.matmul(x, w, b, "gelu"), [X, X.T.copy(), X[0, :3]]),
        (lambda q, k, bias: ops.attention(q, k, k, bias=bias), [QUERIES, KEYS, BIAS]),
        (lambda q, k, n: ops.attention(q, k, k, lengths=n), [QUERIES, KEYS, np.array([7])]),
        (ops.conv1d, [X[None], FILTERS]),
        (ops.take, [X, PLACES]),
        (ops.index_add, [X, PLACES, X[:2]]),
        (lambda x: ops.histogram(x, 3, range=(0, 9))[0], [X]),
        (lambda p, g: ops.adamw_step([p], [g], step=1)[0][0], [X, X]),
    ],
)
def test_arrays_that_are_not_aligned_are_copied(function: Any, arrays: list[np.ndarray]) -> None:
    assert np.array_equal(function(*map(unaligned, arrays)), function(*arrays))


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_array(X, mask=X > 3)
    with pytest.raises(
        LaunchTypeError, match=r"\[sum\] x must be a plain array but is a masked array"
    ):
        ops.sum(masked)
    with pytest.raises(LaunchTypeError, match=r"\[sgd_step\] grads\[0\] must be a plain array"):
        ops.sgd_step([X], [masked], lr=1.0)


def test_matrices_of_numpy_are_refused() -> None:
    """A numpy.matrix has two dimensions in any shape, so that four-dimensional masks would come of it with two."""
    matrix = np.ones((3, 40)).astype(bool).view(np.matrix)
    with pytest.raises(LaunchTypeError, match=r"mask must be a plain array but is a numpy.matrix"):
        ops.attention(QUERIES, KEYS, KEYS, mask=matrix)
    with pytest.raises(LaunchTypeError, match=r"\[take\] indices must be a plain array"):
        ops.take(X, PLACES[None].view(np.matrix))


@pytest.mark.own_route
@pytest.mark.parametrize("function", [ops.softmax, ops.sum, ops.bincount, ops.quantize])
def test_tensors_without_kernels_are_refused_by_name(function: Any) -> None:
    torch = pytest.importorskip("torch")
    message = r"must be a plain array but is a tensor on meta, where there are no kernels"
    with pytest.raises(LaunchTypeError, match=rf"\[{function.__name__}\] \w+ {message}"):
        function(torch.ones(3, 4, device="meta"), *([4] if function is ops.bincount else []))


#: Functions with an option that is True or False.
FLAGS: dict[str, Any] = {
    "sum keepdims": lambda flag: ops.sum(X, keepdims=flag),
    "argmax keepdims": lambda flag: ops.argmax(X, keepdims=flag),
    "cumsum reverse": lambda flag: ops.cumsum(X, reverse=flag),
    "cumprod exclusive": lambda flag: ops.cumprod(X, exclusive=flag),
    "sort descending": lambda flag: ops.sort(X, descending=flag),
    "argsort descending": lambda flag: ops.argsort(X, descending=flag),
    "topk largest": lambda flag: ops.topk(X, 2, largest=flag)[0],
    "matmul transpose_a": lambda flag: ops.matmul(X[:, :3], X[:, :3], transpose_a=flag),
    "matmul transpose_b": lambda flag: ops.matmul(X[:, :3], X[:, :3], transpose_b=flag),
    "rotary_embedding traditional": lambda flag: ops.rotary_embedding(X, traditional=flag),
    "attention causal": lambda flag: ops.attention(QUERIES, KEYS, KEYS, causal=flag),
    "sgd_step nesterov": lambda flag: ops.sgd_step([X], [X], lr=1.0, momentum=0.5, nesterov=flag)[0][0],
    "adamw_step bias_correction": lambda flag: ops.adamw_step([X], [X], step=1, bias_correction=flag)[0][0],
    "quantized_matmul transpose": lambda flag: ops.quantized_matmul(
        np.ones(32, np.float32), *ops.quantize(np.eye(32, dtype=np.float32), group_size=32), flag, 32
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_options_are_true_or_false(name: str) -> None:
    """What is merely true in Python, such as the string "False", is none."""
    function, option = name.split()
    for value in ("False", 1, 0.0, None, np.ones(2)):
        with pytest.raises(
            LaunchTypeError, match=rf"\[{function}\] {option} must be True or False but is"
        ):
            FLAGS[name](value)
    for value in (True, False):
        assert np.array_equal(FLAGS[name](np.bool_(value)), FLAGS[name](value))


FUNCTIONS = {
    "softmax": lambda x: ops.softmax(x),
    "sum": lambda x: ops.sum(x),
    "matmul": lambda x: ops.matmul(x, x, transpose_b=True),
    "rms_norm": lambda x: ops.rms_norm(x),
    "take": lambda x: ops.take(x, x.argmax(0)),
    "adamw_step": lambda x: ops.adamw_step([x], [x], step=1)[0][0],
}


@pytest.mark.own_route
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tensors_that_are_not_strided_are_refused(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(X)
    nested = torch.nested.nested_tensor([x[0], x[1]], layout=torch.jagged)
    for tensor, said in (
        (x.to_sparse(), "layout torch.sparse_coo"),
        (x.to_sparse_csr(), "layout torch.sparse_csr"),
        (nested, "a nested tensor"),
    ):
        given = FUNCTIONS[name] if name != "take" else lambda x: ops.take(x, torch.tensor([0]))
        with pytest.raises(
            LaunchTypeError, match=rf"\[{name}\] .* must be a plain array but is .*{said}"
        ):
            given(tensor)


@pytest.mark.own_route
def test_batched_gradients_are_refused_by_name() -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor(X[0], requires_grad=True)
    with pytest.raises(
        LaunchTypeError, match=r"\[softmax\] the gradient of a result must be a plain"
    ):
        torch.autograd.grad(ops.softmax(x), x, torch.eye(len(x)), is_grads_batched=True)


@pytest.mark.own_route
def test_tensors_without_memory_are_refused() -> None:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    given = torch.ones(64)
    given.untyped_storage().resize_(0)
    with pytest.raises(LaunchValueError, match="is a tensor without storage"):
        ops.sgd_step([given], [torch.ones(64)], lr=0.1)
    # A tensor that stands for another one gives such a tensor.
    with FakeTensorMode():
        [p], [m], _ = ops.adamw_step([torch.ones(300, 400)], [torch.ones(300, 400)], step=1)
    assert isinstance(p, FakeTensor)
    assert p.shape == m.shape == (300, 400)


@pytest.mark.own_route
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_transform_loses_a_derivative(name: str) -> None:
    """Forward mode would find a derivative of 0 where a kernel does not see the tangent."""
    torch = pytest.importorskip("torch")
    function, x = FUNCTIONS[name], torch.tensor(X)
    forward = torch.autograd.forward_ad
    refused = pytest.raises(LaunchTypeError, match=rf"\[{name}\] .* must be a plain array but is a")
    with forward.dual_level():
        with refused:
            function(forward.make_dual(x, torch.ones_like(x)))
        assert torch.equal(function(x), function(x.clone()))
    with refused:
        torch.func.jvp(function, (x,), (x,))
    with refused:
        torch.func.vmap(function)(x[None].expand(2, 3, 4))
    with refused:
        torch.func.grad(lambda x: function(x).sum())(x)


@pytest.mark.own_route
@pytest.mark.parametrize("axis", [1, -1, (-1, 0), (2, 0, 1), ()])
def test_torch_compile_traces_the_axis(axis: Any) -> None:
    """With dynamic=True an axis is a number that is traced, which Python's `in` and `sorted` do not know."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    x = torch.tensor(X).reshape(3, 2, 2)
    functions = [ops.max] if isinstance(axis, tuple) else [ops.softmax, ops.sum, ops.argmax]
    compiled = torch.compile(
        lambda x, axis: [function(x, axis) for function in functions],
        fullgraph=True, dynamic=True, backend="aot_eager",
    )  # fmt: skip
    for function, found in zip(functions, compiled(x, axis), strict=True):
        assert torch.equal(found, function(x, axis))


@pytest.mark.own_route
def test_torch_compile_traces_attention_of_any_shape() -> None:
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    q, keys, bias = (torch.tensor(each) for each in (QUERIES, KEYS, BIAS))
    function = lambda q, k, b: ops.attention(q, k, k, bias=b, mask=b[:1] > 0)  # noqa: E731
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    assert torch.equal(compiled(q, keys, bias), function(q, keys, bias))


@pytest.mark.own_route
def test_tensors_with_a_negative_bit_are_read_as_they_are() -> None:
    torch = pytest.importorskip("torch")
    x = torch.complex(torch.tensor(X), torch.tensor(X) + 1).conj().imag
    assert x.is_neg()
    assert torch.equal(ops.sum(x, 1), torch.tensor(-(X + 1).sum(1)))
    assert torch.equal(ops.sort(x), torch.tensor(np.sort(-(X + 1))))
    torch.testing.assert_close(ops.matmul(x, x.T), x @ x.T)
    torch.testing.assert_close(ops.linear(x, x), x @ x.T)
    # Where the bit is of a tensor side by side in memory, no copy takes it away.
    y = torch._neg_view(torch.tensor(X))
    plain = y.resolve_neg()
    q, w = torch.tensor(QUERIES), torch.tensor(FILTERS)
    for function in (
        ops.sum, ops.softmax, ops.relu, ops.cumsum, ops.rms_norm,
        lambda x: ops.conv1d(x[None], torch._neg_view(-w) if x.is_neg() else w),
        lambda x: ops.attention(q, *[torch._neg_view(-q) if x.is_neg() else q] * 2),
        lambda x: ops.sgd_step([x], [x], lr=0.5)[0][0],
        lambda x: ops.take(x, torch._neg_view(torch.tensor([-1])) if x.is_neg() else torch.tensor([1])),
    ):  # fmt: skip
        assert torch.equal(function(y), function(plain))


@pytest.mark.own_route
def test_gradients_of_tensors_with_a_negative_bit() -> None:
    torch = pytest.importorskip("torch")
    y = torch._neg_view(torch.tensor(X))
    w = torch.tensor(X + 2)

    def found(x: Any) -> Any:
        given = [each.detach().requires_grad_() for each in (x, w)]
        product = ops.linear(*given)
        return torch.autograd.grad(product, given, x @ w.T)

    for one, two in zip(found(y), found(y.resolve_neg()), strict=True):
        assert torch.equal(one, two)


@pytest.mark.own_route
def test_empty_results_of_mlx_have_their_dtype() -> None:
    mx = pytest.importorskip("mlx.core")
    for dtype in (mx.bool_, mx.int8, mx.int64, mx.bfloat16):
        assert ops.take(mx.zeros((3, 0), dtype), mx.array([1, 1])).dtype == dtype
        assert ops.max(mx.zeros((0, 3), dtype), 1).dtype == dtype
    assert ops.any(mx.zeros((0, 3)), 1).dtype == mx.bool_


def test_numbers_may_be_those_of_numpy() -> None:
    assert np.array_equal(ops.rms_norm(X, eps=np.float32(0.5)), ops.rms_norm(X, eps=0.5))
    assert np.array_equal(ops.var(X, ddof=np.int64(1)), ops.var(X, ddof=1))
    assert np.array_equal(ops.dropout(X, np.float16(0.5), 3), ops.dropout(X, 0.5, np.int8(3)))
    ones = np.full((2, 4), 0x38, np.uint8)
    scaled = ops.scaled_matmul(ones, ones, np.float32(2), a_format="e4m3", b_format="e4m3")
    assert (scaled.astype(np.float32) == 8).all()
    [p], _ = ops.sgd_step([X], [X], lr=np.float32(0.5))
    assert np.array_equal(p, X / 2)
    given = (QUERIES, KEYS, KEYS)
    assert np.array_equal(
        ops.attention(*given, causal=np.True_, scale=np.float32(0.5), window=np.int64(2)),
        ops.attention(*given, causal=True, scale=0.5, window=2),
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.attention(QUERIES, KEYS, KEYS, scale=float("nan")), LaunchValueError, r"\[attention\] scale must be a finite number of at most 3.4028235e\+38 but is nan"),
        (lambda: ops.attention(QUERIES, KEYS, KEYS, scale=10**400), LaunchValueError, r"scale must be a finite number of at most 3.4028235e\+38 but is 1000"),
        (lambda: ops.attention(QUERIES, KEYS, KEYS, window=np.array([1, 2])), LaunchTypeError, r"window must be an integer, a pair of integers or None"),
        (lambda: ops.attention(QUERIES, KEYS, KEYS, scale=1e39), LaunchValueError, r"\[attention\] scale must be a finite number of at most 3.4028235e\+38 but is 1e\+39"),
        (lambda: ops.layer_norm(X, eps=1e39), LaunchValueError, r"\[layer_norm\] eps must be a finite number of at most 3.4028235e\+38 but is 1e\+39"),
        (lambda: ops.sgd_step([X], [X], lr=1e39), LaunchValueError, r"\[sgd_step\] lr must be a finite number of at most 3.4028235e\+38 but is 1e\+39"),
        (lambda: ops.scaled_matmul(LABELS[None].astype(np.uint8), LABELS[None].astype(np.uint8), -1e39, a_format="e4m3", b_format="e4m3"), LaunchValueError, r"a_scale must be a finite number of at most 3.4028235e\+38 but is -1e\+39"),
        (lambda: ops.matmul(X, X.T, split_k=10**400), LaunchValueError, r"\[matmul\] split_k must be from 1 to 2\*\*31 - 1 but is 1000"),
        (lambda: ops.matmul(X, X.T, split_k=0), LaunchValueError, r"\[matmul\] split_k must be from 1 to 2\*\*31 - 1 but is 0"),
        (lambda: ops.rotary_embedding(X, base=float("inf")), LaunchValueError, r"\[rotary_embedding\] base must be a finite number of at most 3.4028235e\+38 but is inf"),
        (lambda: ops.sgd_step([X], [X], lr=float("inf")), LaunchValueError, r"\[sgd_step\] lr must be a finite number of at most 3.4028235e\+38 but is inf"),
        (lambda: ops.sgd_step([X], [X], lr=np.ones(2)), LaunchTypeError, r"lr must be a number but is array"),
        (lambda: ops.rms_norm(X, eps=np.True_), LaunchTypeError, r"eps must be a number but is np.True_"),
        (lambda: ops.adamw_step([X], [X], step=10**400), LaunchValueError, r"\[adamw_step\] step must be from 1 to 2\*\*63 - 1 but is 1000"),
        (lambda: ops.sum(X, np.array([0, 1])), LaunchTypeError, r"\[sum\] axis must be an integer, several or None but is array"),
        (lambda: ops.softmax(X, np.array([0, 1])), LaunchTypeError, r"\[softmax\] axis must be an integer but is array"),
        (lambda: ops.topk(X, np.array([1, 2])), LaunchTypeError, r"\[topk\] k must be an integer but is array"),
        (lambda: ops.matmul(X, X.T, split_k=np.array([1, 2])), LaunchTypeError, r"\[matmul\] split_k must be an integer but is array"),
        (lambda: ops.matmul(X, X.T, activation=np.ones(2)), LaunchValueError, r"\[matmul\] activation must be None, 'relu', .* but is array"),
        (lambda: ops.norm(X, ord=True), LaunchValueError, r"\[norm\] ord must be 1, 2 or inf but is True"),
        (lambda: ops.norm(X, ord=np.ones(2)), LaunchValueError, r"\[norm\] ord must be 1, 2 or inf but is array"),
        (lambda: ops.conv1d(X[None], FILTERS, stride=np.array([1, 2])), LaunchTypeError, r"\[conv1d\] stride must be an integer but is array"),
        (lambda: ops.conv1d(X[None], FILTERS, padding=2**40), LaunchValueError, r"padding must be from 0 to 2\*\*31 - 1 but is 1099511627776"),
        (lambda: ops.rotary_embedding(X, offset=2**31 - 1), LaunchValueError, r"offset must be at most 2147483645, so that positions are below 2\*\*31, but is 2147483647"),
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_refused(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_route
def test_sizes_that_are_known_fit_sizes_that_are_traced() -> None:
    """With dynamic=True a mask of a module has numbers for sizes, and queries have names."""
    torch = pytest.importorskip("torch")

    def masked(q, k):
        mask, bias = torch.ones(3, 9, dtype=torch.bool).tril(6), torch.ones(9)
        return ops.attention(q, k, k, mask=mask, bias=bias)

    def scaled(a):
        scales = torch.full((3,), 2.0), torch.full((3, 1), 2.0)
        return ops.scaled_matmul(a, a, *scales).float()

    arrays = (torch.randn(1, 2, 3, 8), torch.randn(1, 1, 9, 8))
    for function, given in (
        (masked, arrays),
        (scaled, (torch.randn(3, 8).to(torch.float8_e4m3fn),)),
    ):
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
        assert torch.allclose(compiled(*given), function(*given))
