"""triton_metal.ops.attention_varlen and paged_attention against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops import _attention_backward, _attention_forward

from attention_exact import Exact, exact_attention, operands
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, rounded

NAMES = ("q", "k", "v")
#: Lengths of sequences of queries and of keys, and what is hidden.
PACKED: list[tuple[list[int], list[int], dict[str, Any]]] = [
    ([33], [33], {}),
    ([5, 40, 1, 32], [5, 40, 1, 32], {"causal": True}),
    ([0, 3, 0, 0, 64, 31, 0], [7, 0, 0, 5, 40, 90, 0], {"causal": True}),
    ([70, 1], [20, 100], {"window": (9, 4), "scale": -0.3}),
    ([0, 0], [0, 0], {}),
    ([], [], {}),
]


def offsets(counts: list[int]) -> np.ndarray:
    return np.cumsum([0, *counts])


def exact_packed(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, weights: np.ndarray, dtype: str,
    queries: np.ndarray, keys: np.ndarray, **options: Any,
) -> Exact:  # fmt: skip
    """Each sequence by itself; rows of none are 0."""
    exact = Exact(np.zeros_like(q), {}, np.zeros_like(q), {})
    for name, x in zip(NAMES, (q, k, v), strict=True):
        exact.grads[name], exact.bounds[name] = np.zeros_like(x), np.zeros_like(x)
    for i in range(len(queries) - 1):
        rows, columns = slice(queries[i], queries[i + 1]), slice(keys[i], keys[i + 1])
        given = (
            x[part].swapaxes(0, 1)[None]
            for x, part in ((q, rows), (k, columns), (v, columns), (weights, rows))
        )
        one = exact_attention(*given, dtype, **options)
        exact.out[rows], exact.out_bound[rows] = (
            x[0].swapaxes(0, 1) for x in (one.out, one.out_bound)
        )
        for name, part in (("q", rows), ("k", columns), ("v", columns)):
            exact.grads[name][part] = one.grads[name][0].swapaxes(0, 1)
            exact.bounds[name][part] = one.bounds[name][0].swapaxes(0, 1)
    return exact


def packed(
    seed: int, queries: int, keys: int, width: int, dtype: str, heads: int = 4
) -> list[np.ndarray]:
    shape = (1, heads, queries, width)
    return [x[0].swapaxes(0, 1) for x in operands(seed, shape, 2, keys, dtype)]


@pytest.mark.parametrize(("queries", "keys", "options"), PACKED)
def test_packed_sequences(queries: list[int], keys: list[int], options: dict[str, Any]) -> None:
    q_offsets, k_offsets = offsets(queries), offsets(keys)
    q, k, v, weights = packed(1, q_offsets[-1], k_offsets[-1], 32, "float32")
    exact = exact_packed(q, k, v, weights, "float32", q_offsets, k_offsets, **options)
    arrays = [x.astype(np.float32) for x in (q, k, v)]
    result = ops.attention_varlen(*arrays, q_offsets, k_offsets.astype(np.int32), **options)
    assert_near(result, exact.out, exact.out_bound, "float32")
    before, after = ops.attentions._extent("", options.get("window"), options.get("causal", False))
    rest = (q_offsets, k_offsets, before, after, float(options.get("scale", 32**-0.5)))
    kept = _attention_forward.forward_packed(*arrays, *rest)
    found = _attention_backward.backward_packed(weights.astype(np.float32), *arrays, *kept, *rest)
    for name, gradient in zip(NAMES, found, strict=True):
        assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_packed_dtypes_and_frameworks(framework: str, dtype: str) -> None:
    counts = offsets([3, 40, 20])
    q, k, v, weights = packed(2, 63, 63, 48, dtype)
    exact = exact_packed(q, k, v, weights, dtype, counts, counts, causal=True)

    def function(*arrays: Any) -> Any:
        return ops.attention_varlen(*arrays, made(framework, counts, "int32"), causal=True)

    arrays = [made(framework, x, dtype) for x in (q, k, v)]
    assert_near(function(*arrays), exact.out, exact.out_bound, dtype)
    if framework != "numpy":
        for name, gradient in zip(
            NAMES, gradients(framework, function, arrays, weights), strict=True
        ):
            assert_near(gradient, exact.grads[name], exact.bounds[name], dtype)


@pytest.mark.own_route
def test_rows_of_no_sequence_and_offsets_that_leave_the_rows() -> None:
    torch = pytest.importorskip("torch")
    q, k, v, weights = packed(3, 50, 50, 16, "float32")
    counts = np.array([4, 10, 45])
    exact = exact_packed(q, k, v, weights, "float32", counts, counts)
    arrays = [torch.tensor(x.astype(np.float32)) for x in (q, k, v)]
    found = gradients(
        "torch", lambda *a: ops.attention_varlen(*a, torch.tensor(counts)), arrays, weights
    )
    for name, gradient in zip(NAMES, found, strict=True):
        assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")
    assert_near(
        ops.attention_varlen(*arrays, torch.tensor(counts)), exact.out, exact.out_bound, "float32"
    )
    # The last sequence ends where the rows do.
    counts = np.array([0, 10, 50])
    exact = exact_packed(q, k, v, weights, "float32", counts, counts)
    with torch.no_grad():
        result = ops.attention_varlen(*arrays, torch.tensor([0, 10, 1000]))
    assert_near(result, exact.out, exact.out_bound, "float32")


@pytest.mark.own_route
def test_packed_sequences_survive_torch_compile() -> None:
    torch = pytest.importorskip("torch")
    q, k, v, weights = packed(4, 40, 40, 16, "float32")
    counts = offsets([13, 27])
    exact = exact_packed(q, k, v, weights, "float32", counts, counts)
    arrays = [torch.tensor(x.astype(np.float32)) for x in (q, k, v)]
    function = torch.compile(ops.attention_varlen, fullgraph=True, backend="aot_eager")
    found = gradients("torch", lambda *a: function(*a, torch.tensor(counts)), arrays, weights)
    for name, gradient in zip(NAMES, found, strict=True):
        assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")


def pages_of(
    x: np.ndarray, page: int, most: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Keys (batch, heads, keys, width) in shuffled pages, and the table of them; other entries and rows are nonsense."""
    batch, heads, keys, width = x.shape
    used = -(-keys // page)
    pages = np.full((batch * used + 3, page, heads, width), 1e4)
    table = np.full((batch, most), 12345)
    order = rng.permutation(len(pages))[: batch * used].reshape(batch, used)
    table[:, :used] = order
    for b in range(batch):
        for i in range(used):
            rows = x[b, :, i * page : (i + 1) * page].swapaxes(0, 1)
            pages[order[b, i], : len(rows)] = rows
    return pages, table


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("queries", "page", "width", "options"),
    [(1, 16, 64, {}), (3, 7, 80, {"causal": True, "window": 50})],
)
def test_pages(
    queries: int, page: int, width: int, options: dict[str, Any], framework: str, dtype: str
) -> None:
    lengths = [200, 61, 0]
    q, k, v, _ = operands(5, (3, 4, queries, width), 2, 200, dtype)
    exact = exact_attention(q, k, v, np.zeros_like(q), dtype, lengths=lengths, **options)
    k_pages, table = pages_of(k, page, 40, np.random.default_rng(6))
    v_pages, _ = pages_of(v, page, 40, np.random.default_rng(6))
    result = ops.paged_attention(
        *(made(framework, rounded(x, dtype), dtype) for x in (q, k_pages, v_pages)),
        made(framework, table, "int32"),
        made(framework, np.array(lengths), "int64"),
        **options,
    )
    assert_near(result, exact.out, exact.out_bound, dtype)


def test_lengths_and_pages_are_limited() -> None:
    q, k, v, _ = operands(7, (1, 2, 1, 16), 1, 20, "float32")
    pages = [x.astype(np.float32).reshape(4, 5, 1, 16) for x in (k, v)]
    wanted = ops.attention(*(x.astype(np.float32) for x in (q, k, v)))
    table = np.array([[-5, 1, 2, 99]])
    result = ops.paged_attention(q.astype(np.float32), *pages, table, np.array([1000]))
    assert np.abs(result - wanted).max() < 1e-6
    assert (ops.paged_attention(q.astype(np.float32), *pages, table, np.array([-3])) == 0).all()
    none = ops.paged_attention(q.astype(np.float32), *pages, table[:, :0], np.array([4]))
    assert (none == 0).all()


@pytest.mark.own_route
@pytest.mark.parametrize(
    "given", [[0, 2**33 + 1], [-(2**40), 50], [0, 2**32], [0, 7, 2**40, 2**41]]
)
def test_offsets_of_64_bits_are_limited(given: list[int]) -> None:
    torch = pytest.importorskip("torch")
    q, k, v, weights = packed(9, 50, 50, 16, "float32")
    limits = np.clip(given, 0, 50)
    exact = exact_packed(q, k, v, weights, "float32", limits, limits)
    arrays = [made("torch", x, "float32", True) for x in (q, k, v)]
    found = ops.attention_varlen(*arrays, torch.tensor(given))
    assert_near(found, exact.out, exact.out_bound, "float32")
    found.backward(torch.tensor(weights).float())
    for name, x in zip(NAMES, arrays, strict=True):
        assert_near(x.grad, exact.grads[name], exact.bounds[name], "float32")


@pytest.mark.own_route
def test_pages_survive_torch_compile() -> None:
    torch = pytest.importorskip("torch")
    pages = torch.randn(4, 5, 1, 16)
    given = (torch.randn(1, 2, 1, 16), pages, pages, torch.tensor([[2, 0]]), torch.tensor([8]))
    function = torch.compile(ops.paged_attention, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(function(*given), ops.paged_attention(*given))


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


ROWS, OFFSETS = zeros(5, 2, 16), np.array([0, 2, 5])
ONE, PAGES, TABLE, COUNT = zeros(1, 4, 1, 16), zeros(3, 8, 2, 16), np.array([[0, 1]]), np.array([9])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.attention_varlen(ROWS, ROWS, ROWS, np.array([0, 6])), LaunchValueError, r"\[attention_varlen\] q_offsets must not decrease, from at least 0 to at most 5, but is \[0, 6\]"),
        (lambda: ops.attention_varlen(ROWS, ROWS, ROWS, OFFSETS, np.array([0, 5])), LaunchValueError, r"k_offsets must have shape \(3,\), as q_offsets has, but has shape \(2,\)"),
        (lambda: ops.attention_varlen(ROWS, ROWS, ROWS, zeros(3)), LaunchValueError, r"q_offsets must have dtype int32 or int64"),
        (lambda: ops.attention_varlen(ROWS, ROWS, ROWS, OFFSETS[:0]), LaunchValueError, r"q_offsets must have at least one number"),
        (lambda: ops.attention_varlen(ROWS[None], ROWS, ROWS, OFFSETS), LaunchValueError, r"q must have 3 dimensions but has 4"),
        (lambda: ops.attention_varlen(ROWS, ROWS[:, :, :8], ROWS, OFFSETS), LaunchValueError, r"k must have shape \(5, 2, 16\) for q of \(5, 2, 16\) but has shape \(5, 2, 8\)"),
        (lambda: ops.paged_attention(ONE, PAGES, PAGES[:2], TABLE, COUNT), LaunchValueError, r"\[paged_attention\] v_pages must have shape \(3, 8, 2, 16\), as k_pages has, but has shape \(2, 8, 2, 16\)"),
        (lambda: ops.paged_attention(ONE, PAGES[..., :8], PAGES, TABLE, COUNT), LaunchValueError, r"k_pages must have shape \(3, 8, 2, 16\) for q of"),
        (lambda: ops.paged_attention(ONE, PAGES[:, :0], PAGES[:, :0], TABLE, COUNT), LaunchValueError, r"k_pages must have pages with rows but has shape"),
        (lambda: ops.paged_attention(ONE, PAGES, PAGES, TABLE[0], COUNT), LaunchValueError, r"page_table must have 2 dimensions"),
        (lambda: ops.paged_attention(ONE, PAGES, PAGES, TABLE, np.array([1, 2])), LaunchValueError, r"lengths must have shape \(1,\), a number for each sequence of q, but has shape \(2,\)"),
        (lambda: ops.paged_attention(ONE, PAGES, PAGES, None, COUNT), LaunchTypeError, r"page_table must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_route
def test_a_gradient_of_paged_attention_is_refused() -> None:
    """Beside other parameters of a network, one without a word would go unnoticed."""
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    q, pages, table, count = (torch.tensor(x) for x in (ONE, PAGES, TABLE, COUNT))
    assert not ops.paged_attention(q, pages, pages, table, count).requires_grad
    found = ops.paged_attention(q.requires_grad_(True), pages, pages, table, count)
    with pytest.raises(NotImplementedError, match="paged_attention has no gradient"):
        found.sum().backward()
    pages, table, count = (mx.array(x) for x in (PAGES, TABLE, COUNT))
    with pytest.raises(ValueError, match="has no derivative"):
        mx.grad(lambda q: ops.paged_attention(q, pages, pages, table, count).sum())(mx.array(ONE))
