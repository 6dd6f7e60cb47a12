"""Attention in an MLX graph, and other sums that a running maximum scales, against the steps one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl

mx = pytest.importorskip("mlx.core")

from triton_metal.mlx import graph  # noqa: E402

from test_mlx_graph_loops import compare, normal  # noqa: E402

pytestmark = [pytest.mark.own_route, pytest.mark.own_check]
ATTENTION = "scaled dot-product attention"
SCALED = "sums that a maximum scales"


@triton_metal.jit
def attention_kernel(
    q, k, v, bias, out, lse, M, N, GROUP, scale,
    FORM: tl.constexpr, MASK: tl.constexpr, END: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1)
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + (head * M + rows[:, None]) * D + d[None, :], rows[:, None] < M, other=0.0)
    keys = k + head // GROUP * N * D
    values = v + head // GROUP * N * D
    if FORM == "one block of queries":
        x = tl.load(q + (head * M + tl.arange(0, BM)[:, None]) * D + d[None, :])
    if FORM == "scaled query":
        x = (x * scale).to(x.dtype)
    highest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32) + (1.0 if FORM == "one" else 0.0)
    acc = tl.zeros((BM, D), tl.float32)
    last = N
    if MASK == "causal, short":
        last = min(N, first + BM)
    for start in range(0, last, BN):
        columns = start + tl.arange(0, BN)
        inside = columns < N
        y = tl.load(keys + columns[None, :] * D + d[:, None], inside[None, :], other=0.0)
        scores = tl.dot(x, y)
        seen = inside[None, :]
        if MASK == "causal" or MASK == "causal, short":
            seen = seen & (rows[:, None] >= columns[None, :])
        elif MASK == "causal, end":
            seen = seen & (rows[:, None] + (N - M) >= columns[None, :])
        elif MASK == "above":
            seen = seen & (rows[:, None] > columns[None, :])
        elif MASK == "window":
            seen = seen & (rows[:, None] - columns[None, :] < 50)
        elif MASK == "rows":
            seen = seen & (rows[:, None] < M)
        elif MASK == "in tile":
            seen = seen & (tl.arange(0, BM)[:, None] >= columns[None, :])
        elif MASK == "in block":
            seen = seen & (rows[:, None] >= tl.arange(0, BN)[None, :])
        elif MASK == "double":
            seen = seen & (rows[:, None] * 2 >= columns[None, :])
        if MASK == "bias":
            scores += tl.load(bias + rows[:, None] * N + columns[None, :], (rows[:, None] < M) & seen, other=0.0)  # fmt: skip
        scores = tl.where(seen, scores, -1.0e6 if FORM == "finite" else float("-inf"))
        if FORM == "base 2":
            higher = tl.maximum(highest, tl.max(scores, 1) * scale)
            weights = tl.exp2(scores * scale - higher[:, None])
            fade = tl.exp2(highest - higher)
        elif FORM == "scale of differences":
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp((scores - higher[:, None]) * scale)
            fade = tl.exp((highest - higher) * scale)
        elif FORM == "scales apart":
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores * scale - higher[:, None] * scale)
            fade = tl.exp2(highest * scale - higher * scale)
        elif FORM == "other fade":
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp((scores - higher[:, None]) * scale)
            fade = tl.exp(highest - higher)
        elif FORM == "other base":
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp2(scores - higher[:, None])
            fade = tl.exp(highest - higher)
        elif FORM == "constant":
            scores *= 0.25
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp(scores - higher[:, None])
            fade = tl.exp(highest - higher)
        elif FORM == "half scores":
            scores = scores * scale
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp(0.5 * scores - higher[:, None])
            fade = tl.exp(highest - higher)
        else:
            scores = scores * scale
            higher = tl.maximum(highest, tl.max(scores, 1))
            weights = tl.exp(scores - higher[:, None])
            fade = tl.exp(highest - higher)
        total = total * fade + tl.sum(weights, 1)
        acc = acc * fade[:, None]
        if FORM == "dropout":
            weights = tl.where(
                (rows[:, None] * 7 + columns[None, :] * 3) % 5 > 0, weights * 1.25, 0.0
            )
        z = tl.load(values + columns[:, None] * D + d[None, :], inside[:, None], other=0.0)
        if FORM == "added":
            acc += tl.dot(weights.to(z.dtype), z)
        else:
            acc = tl.dot(weights.to(z.dtype), z, acc)
        highest = higher
    if END == "reciprocal":
        result = acc * (1.0 / total)[:, None]
    elif END == "wide reciprocal":
        result = (1.0 / total[:, None]) * acc
    elif END == "sums":
        result = acc
        tl.store(lse + head * M + rows, total + highest, rows < M)
    elif END == "columns":
        result = acc / total[None, :]
    else:
        result = acc / total[:, None]
    if END == "lse":
        tl.store(lse + head * M + rows, highest + tl.log(total), rows < M)
    place = (head * M + rows[:, None]) * D + d[None, :]
    tl.store(out + place, result.to(out.dtype.element_ty), rows[:, None] < M)


class Case:
    """One launch of the kernel."""

    def __init__(
        self, form: str = "", mask: str = "", end: str = "", heads: int = 2, m: int = 64, n: int = 64, d: int = 16,
        bm: int = 32, bn: int = 16, group: int = 1, dtype: str = "float32", scale: float = 0.3,
    ) -> None:  # fmt: skip
        self.q = normal(heads, m, d, seed=1, dtype=dtype)
        self.k, self.v = (normal(heads // group, n, d, seed=s, dtype=dtype) for s in (2, 3))
        self.bias = normal(m, n, seed=4)
        self.out, self.lse = np.zeros_like(self.q), np.zeros((heads, m), np.float32)
        self.numbers = (m, n, group, scale, form, mask, end, bm, bn, d)
        self.grid = (triton_metal.cdiv(m, bm), heads)

    @property
    def arrays(self) -> list[Any]:
        return [self.q, self.k, self.v, self.bias, self.out, self.lse]

    @property
    def outputs(self) -> dict[str, Any]:
        return {"out": mx.array(self.out), "lse": mx.array(self.lse)}

    def raised(self) -> str:
        arrays = map(mx.array, self.arrays[:4])
        found = graph(attention_kernel).summary(
            *arrays, *self.numbers, grid=self.grid, outputs=self.outputs
        )
        return " ".join(found.raised)

    def compare(self, tolerance: float = 2e-6) -> None:
        compare(attention_kernel, self.grid, self.arrays, *self.numbers, tolerance=tolerance)

    def function(self) -> Any:
        def attend(q: Any, k: Any, v: Any) -> Any:
            return graph(attention_kernel)(
                q, k, v, mx.array(self.bias), *self.numbers,
                grid=self.grid, outputs=self.outputs,
            )[0]  # fmt: skip

        return attend


@pytest.mark.parametrize("end", ["", "reciprocal", "wide reciprocal"])
@pytest.mark.parametrize(
    "form",
    [
        "",
        "base 2",
        "scale of differences",
        "scales apart",
        "constant",
        "one",
        "added",
        "scaled query",
    ],
)
def test_every_spelling_is_attention(form: str, end: str) -> None:
    case = Case(form, end=end)
    assert ATTENTION in case.raised()
    case.compare()


@pytest.mark.parametrize(("m", "n"), [(64, 64), (50, 70), (70, 50), (1, 40), (33, 2), (5, 7)])
@pytest.mark.parametrize("mask", ["", "causal", "causal, short", "rows", "in tile"])
def test_masks_are_attention(mask: str, m: int, n: int) -> None:
    case = Case(mask=mask, m=m, n=n)
    assert ATTENTION in case.raised()
    case.compare()


@pytest.mark.parametrize(("m", "n"), [(64, 64), (50, 70), (16, 90)])
def test_the_last_queries_see_all_keys(m: int, n: int) -> None:
    case = Case(mask="causal, end", m=m, n=n)
    assert ATTENTION in case.raised()
    case.compare()


@pytest.mark.parametrize("mask", ["causal", "causal, short"])
def test_a_mask_may_change_where_queries_do_not(mask: str) -> None:
    case = Case("one block of queries", mask)
    assert ATTENTION in case.raised()
    case.compare()


@pytest.mark.parametrize("group", [2, 4])
@pytest.mark.parametrize("mask", ["", "causal"])
def test_heads_share_keys(group: int, mask: str) -> None:
    case = Case(mask=mask, heads=8, group=group, m=48, n=48)
    assert ATTENTION in case.raised()
    case.compare()


@pytest.mark.parametrize("dtype", ["float16"])
@pytest.mark.parametrize("mask", ["", "causal"])
def test_short_floats_are_as_exact_as_in_the_kernel(dtype: str, mask: str) -> None:
    case = Case(mask=mask, dtype=dtype)
    assert ATTENTION in case.raised()
    case.compare(2e-3)


# Where a mask hides the whole first block, the kernel's result is NaN, and so is the graph's.
@pytest.mark.parametrize("mask", ["above", "window", "in block", "double", "bias"])
@pytest.mark.parametrize("form", ["", "base 2"])
def test_other_masks_stay_and_are_right(mask: str, form: str) -> None:
    case = Case(form, mask)
    raised = case.raised()
    assert SCALED in raised
    assert ATTENTION not in raised
    case.compare(1e-5)


@pytest.mark.parametrize("form", ["finite", "half scores", "dropout"])
def test_other_weights_stay_and_are_right(form: str) -> None:
    case = Case(form, "causal")
    raised = case.raised()
    assert SCALED in raised
    assert ATTENTION not in raised
    case.compare(1e-5)


@pytest.mark.parametrize("form", ["other fade", "other base"])
def test_sums_that_another_factor_scales_run_step_by_step(form: str) -> None:
    case = Case(form, scale=0.7)
    assert SCALED not in case.raised()
    case.compare(1e-5)


@pytest.mark.parametrize("end", ["lse", "sums"])
@pytest.mark.parametrize("mask", ["", "causal, short"])
def test_what_else_takes_the_sums_has_them(end: str, mask: str) -> None:
    case = Case("", mask, end, m=50, n=70)
    raised = case.raised()
    assert SCALED in raised
    assert ATTENTION not in raised
    case.compare(1e-5)


def test_a_negative_scale_is_no_attention() -> None:
    case = Case("scale of differences", scale=-0.3, n=32, bn=32)
    assert ATTENTION not in case.raised()
    case.compare(1e-5)


def test_a_sum_of_columns_is_no_attention() -> None:
    case = Case(end="columns", d=32)
    assert ATTENTION not in case.raised()
    case.compare(1e-5)


def test_infinite_scores_are_nan_in_both() -> None:
    case = Case()
    case.q[0, 3, 2], case.k[1, 5, 1] = np.inf, np.inf
    case.compare()


MASKS = {
    "": None,
    "causal": "causal",
    "causal, short": "causal",
    "window": np.subtract.outer(np.arange(64), np.arange(64)) < 50,
}


@pytest.mark.parametrize("mask", list(MASKS))
def test_gradients_are_those_of_mlx(mask: str) -> None:
    case = Case(mask=mask)
    inputs = [mx.array(x) for x in (case.q, case.k, case.v)]
    weight = mx.array(normal(*case.q.shape, seed=9))
    of_mlx = MASKS[mask] if mask != "window" else mx.array(MASKS[mask])

    def theirs(q: Any, k: Any, v: Any) -> Any:
        attend = mx.fast.scaled_dot_product_attention
        return (attend(q[None], k[None], v[None], scale=0.3, mask=of_mlx)[0] * weight).sum()

    def ours(q: Any, k: Any, v: Any) -> Any:
        return (case.function()(q, k, v) * weight).sum()

    for one, other in zip(
        mx.grad(ours, (0, 1, 2))(*inputs), mx.grad(theirs, (0, 1, 2))(*inputs), strict=True
    ):
        assert np.allclose(np.array(one), np.array(other), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mask", ["", "causal", "window"])
@pytest.mark.parametrize("mapped", range(3))
def test_vmap_maps_each_operand(mask: str, mapped: int) -> None:
    case = Case(mask=mask)
    inputs = [mx.array(x) for x in (case.q, case.k, case.v)]
    inputs[mapped] = mx.stack([inputs[mapped], -2 * inputs[mapped], inputs[mapped] + 1])
    axes = tuple(0 if i == mapped else None for i in range(3))
    attend = case.function()
    together = mx.vmap(attend, in_axes=axes)(*inputs)
    for i in range(3):
        one = attend(*[x[i] if i_ == mapped else x for i_, x in enumerate(inputs)])
        assert np.allclose(np.array(together[i]), np.array(one), rtol=1e-5, atol=1e-6)


def test_compiled_attention_is_the_same() -> None:
    case = Case(mask="causal", m=50, n=50)
    inputs = [mx.array(x) for x in (case.q, case.k, case.v)]
    plain, compiled = case.function()(*inputs), mx.compile(case.function())(*inputs)
    assert np.allclose(np.array(plain), np.array(compiled), rtol=1e-6, atol=1e-6)


@triton_metal.jit
def block_kernel(
    q, k, v, out, M, N, scale, FORM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, d = tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + d[None, :], rows[:, None] < M, other=0.0)
    y = tl.load(k + columns[:, None] * D + d[None, :], columns[:, None] < N, other=0.0)
    z = tl.load(v + columns[:, None] * D + d[None, :], columns[:, None] < N, other=0.0)
    scores = tl.dot(x, y.T) * scale
    scores = tl.where(columns[None, :] < N, scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    total = tl.sum(weights, 1)
    if FORM == "after":
        result = tl.dot(weights, z) / total[:, None]
    elif FORM == "before":
        result = tl.dot(weights / total[:, None], z)
    else:
        result = tl.dot(weights * (1.0 / total)[:, None], z)
    tl.store(out + rows[:, None] * D + d[None, :], result, rows[:, None] < M)


@pytest.mark.parametrize(("m", "n"), [(64, 64), (40, 50)])
@pytest.mark.parametrize("form", ["after", "before", "reciprocal before"])
def test_attention_over_one_block_of_keys(form: str, m: int, n: int) -> None:
    arrays = [normal(m, 32, seed=1), normal(n, 32, seed=2), normal(n, 32, seed=3), np.zeros((m, 32), np.float32)]  # fmt: skip
    numbers = (m, n, 0.2, form, 32, 64, 32)
    raised = graph(block_kernel).summary(
        *map(mx.array, arrays[:3]), *numbers, grid=(2,), outputs={"out": mx.array(arrays[3])}
    )
    assert (ATTENTION in " ".join(raised.raised)) == (form == "after")
    compare(block_kernel, (2,), arrays, *numbers, tolerance=2e-6)


@triton_metal.jit
def rows_kernel(
    x, counts, out, sums, N, FORM: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """The highest element, and sums of exponentials, of a part of each row, with any first maximum."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    count = tl.load(counts + tl.program_id(0))
    highest = tl.full((ROWS,), 0.5 if FORM == "number" else float("-inf"), tl.float32)
    total = tl.full((ROWS,), 3.0 if FORM == "number" else 0.0, tl.float32)
    weighted = tl.zeros((ROWS,), tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row[:, None] * N + at[None, :], at[None, :] < count, float("-inf"))
        higher = tl.maximum(highest, tl.max(value, 1))
        weight = tl.exp(value - higher[:, None])
        fade = tl.exp(highest - higher)
        total = fade * total + tl.sum(weight, 1)
        if FORM == "twice":
            total += tl.sum(weight * 0.5, 1) - tl.sum(weight * 0.25, 1)
        if FORM == "not scaled":
            weighted += tl.sum(tl.where(at[None, :] < count, weight * at[None, :], 0.0), 1)
        else:
            weighted = weighted * fade + tl.sum(weight * at[None, :], 1)
        highest = higher
    tl.store(out + row, highest)
    tl.store(sums + row * 2, total)
    tl.store(sums + row * 2 + 1, weighted)


@pytest.mark.parametrize("form", ["", "number", "twice", "not scaled"])
@pytest.mark.parametrize("counts", [[50, 50, 50], [7, 100, 33], [0, 90, 16], [1, 1, 1]])
def test_sums_of_exponentials_of_rows(form: str, counts: list[int]) -> None:
    x = normal(12, 100, seed=5)
    x[2] *= 30
    x[5, :20] = -np.inf  # NaN until there is a number, and so for good
    x[6, 40:] = -np.inf
    arrays = [x, np.array(counts, np.int32), np.zeros(12, np.float32), np.zeros((12, 2), np.float32)]  # fmt: skip
    compare(rows_kernel, (3,), arrays, 100, form, 16, 4, tolerance=2e-5)


@triton_metal.jit
def halves_kernel(q, k, v, out, N, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal attention in two loops: full blocks, then those on the diagonal."""
    first = tl.program_id(0) * BM
    rows, d = first + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + d[None, :])
    highest = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for half in tl.static_range(2):
        low = 0 if half == 0 else first
        high = first if half == 0 else first + BM
        for start in range(low, high, BN):
            columns = start + tl.arange(0, BN)
            y = tl.load(k + columns[:, None] * D + d[None, :])
            scores = tl.dot(x, y.T)
            if half == 1:
                scores = scores * scale + tl.where(rows[:, None] >= columns[None, :], 0, -1.0e6)
                higher = tl.maximum(highest, tl.max(scores, 1))
                scores -= higher[:, None]
            else:
                higher = tl.maximum(highest, tl.max(scores, 1) * scale)
                scores = scores * scale - higher[:, None]
            weights = tl.exp2(scores)
            fade = tl.exp2(highest - higher)
            total = total * fade + tl.sum(weights, 1)
            acc = acc * fade[:, None]
            acc = tl.dot(weights, tl.load(v + columns[:, None] * D + d[None, :]), acc)
            highest = higher
    tl.store(out + rows[:, None] * D + d[None, :], acc / total[:, None])


def test_two_loops_go_on_with_each_others_sums() -> None:
    n, d = 128, 16
    arrays = [normal(n, d, seed=s) for s in (1, 2, 3)] + [np.zeros((n, d), np.float32)]
    compare(halves_kernel, (4,), arrays, n, 0.4, 32, 16, d, tolerance=1e-5)
    inputs = [mx.array(a) for a in arrays]
    weight = mx.array(normal(n, d, seed=7))
    call = lambda q, k, v: graph(halves_kernel)(  # noqa: E731
        q, k, v, n, 0.4, 32, 16, d, grid=(4,), outputs={"out": inputs[3]}
    )
    attend = mx.fast.scaled_dot_product_attention
    theirs = lambda q, k, v: attend(  # noqa: E731
        q[None, None], k[None, None], v[None, None], scale=0.4 * np.log(2.0), mask="causal"
    )[0, 0]
    slopes = [
        mx.grad(lambda *a, f=f: (f(*a) * weight).sum(), (0, 1, 2))(*inputs[:3])
        for f in (call, theirs)
    ]
    for one, other in zip(*slopes, strict=True):
        assert np.allclose(np.array(one), np.array(other), rtol=1e-3, atol=2e-5)
