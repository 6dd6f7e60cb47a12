"""Kernels as MLX graphs: the results of the host device, MLX's transforms, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.errors import CompilationError, DeviceAssertionError, LaunchValueError

mx = pytest.importorskip("mlx.core")
pytestmark = pytest.mark.own_route


def graph_of(kernel: Any) -> Any:
    from triton_metal.mlx import graph

    return graph(kernel)


def same_as_on_host(launch: Callable[..., None], *arrays: np.ndarray, rtol: float = 1e-5) -> None:
    """Runs a launch on the host device and as a graph, on copies of the same arrays."""
    host = [array.copy() for array in arrays]
    launch(*host)
    graph = [array.copy() for array in arrays]
    with triton_metal.device("mlx-graph"):
        launch(*graph)
    for one, other in zip(host, graph, strict=True):
        np.testing.assert_allclose(
            other.astype(np.float64), one.astype(np.float64), rtol=rtol, atol=rtol
        )


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8"])
def test_ragged_vectors_are_added(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    x, y = ((100 * rng.standard_normal(size)).astype(dtype) for _ in range(2))
    grid = (max(1, triton.cdiv(size, 64)),)
    same_as_on_host(
        lambda x, y, out: add_kernel[grid](x, y, out, size, BLOCK=64), x, y, np.full_like(x, 7)
    )


@triton.jit
def softmax_kernel(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + i, e / tl.sum(e, 0), i < columns)


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    m = (first + pid % (GROUP * columns) % size) * BM + tl.arange(0, BM)
    n = pid % (GROUP * columns) // size * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], (m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(b + k[:, None] * N + n[None, :], (k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total, (m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("shape", [(64, 64, 64), (100, 60, 50), (33, 17, 70)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_grouped_programs_multiply_matrices(shape: tuple[int, int, int], dtype: str) -> None:
    M, N, K = shape
    rng = np.random.default_rng(0)
    a = rng.standard_normal((M, K)).astype(dtype)
    b = rng.standard_normal((K, N)).astype(dtype)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 16),)
    same_as_on_host(
        lambda a, b, c: matmul_kernel[grid](a, b, c, M, N, K, GROUP=2, BM=32, BN=16, BK=16),
        a, b, np.zeros((M, N), np.float32), rtol=1e-3,
    )  # fmt: skip


@pytest.mark.parametrize("columns", [16, 13])
def test_rows_become_slices_without_gathers(columns: int) -> None:
    x = mx.random.normal((5, columns))
    call: dict[str, Any] = {"grid": (5,), "outputs": {"out": x}}
    summary = graph_of(softmax_kernel).summary(x, columns, columns, 16, **call)
    assert (summary.sliced, summary.gathered) == (2, 0)
    result = graph_of(softmax_kernel)(x, columns, columns, 16, **call)
    np.testing.assert_allclose(np.array(result), np.array(mx.softmax(x, -1)), rtol=1e-5)


def softmax(x: Any) -> Any:
    rows, columns = x.shape
    return graph_of(softmax_kernel)(x, columns, columns, 16, grid=(rows,), outputs={"out": x})


def test_gradients_are_those_of_mlx() -> None:
    x, weight = mx.random.normal((5, 13)), mx.random.normal((5, 13))
    ours = mx.grad(lambda x: (softmax(x) * weight).sum())(x)
    theirs = mx.grad(lambda x: (mx.softmax(x, -1) * weight).sum())(x)
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-4, atol=1e-6)


def test_gradient_of_a_matrix_product() -> None:
    M, N, K = 20, 33, 18
    a, b = mx.random.normal((M, K)), mx.random.normal((K, N))

    def product(a: Any, b: Any) -> Any:
        grid = (triton.cdiv(M, 16) * triton.cdiv(N, 16),)
        return graph_of(matmul_kernel)(
            a, b, M, N, K, 2, 16, 16, 16, grid=grid, outputs={"c": ((M, N), mx.float32)}
        )

    weight = mx.random.normal((M, N))
    for ours, theirs in zip(
        mx.grad(lambda a, b: (product(a, b) * weight).sum(), argnums=(0, 1))(a, b),
        mx.grad(lambda a, b: ((a @ b) * weight).sum(), argnums=(0, 1))(a, b),
        strict=True,
    ):
        np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-4, atol=1e-4)


def test_vmap_and_compile_take_graphs() -> None:
    x = mx.random.normal((3, 5, 13))
    expected = np.array(mx.softmax(x, -1))
    np.testing.assert_allclose(np.array(mx.vmap(softmax)(x)), expected, rtol=1e-5)
    np.testing.assert_allclose(np.array(mx.compile(softmax)(x[1])), expected[1], rtol=1e-5)


@triton.jit
def halves_kernel(x, w, y, N: tl.constexpr, REPEAT: tl.constexpr):
    i, half = tl.arange(0, N), tl.arange(0, N // 2)
    tl.store(y + i, tl.load(x + i))
    for k in tl.static_range(REPEAT):
        tl.store(y + half, tl.load(y + half + N // 4) * tl.load(w + half) + k)


@triton.jit
def tile_kernel(x, y, M, N, WHAT: tl.constexpr, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    inside = (i < M) & (j < N)
    tile = tl.load(x + i * N + j, inside, other=0.0)
    if WHAT == "transposed":
        tl.store(y + j * M + i, tile * 2, inside)
    elif WHAT == "sums":
        tl.store(y + i * N + j, tl.cumsum(tile, 1), inside)
    else:
        tl.store(y + i * N + j, tile * tl.sum(tile * tile, 1)[:, None], inside)


@pytest.mark.parametrize("what", ["transposed", "sums", "rows"])
def test_gradients_of_maps_of_cut_tiles(what: str) -> None:
    # MLX 0.32 has wrong gradients of mapped pads.
    rng = np.random.default_rng(3)
    for many, rows, columns in ((2, 3, 3), (2, 4, 5), (3, 2, 7), (1, 5, 1), (2, 7, 3)):
        x = mx.array(rng.standard_normal((many, rows, columns)).astype(np.float32))
        w = mx.array(rng.standard_normal(rows * columns).astype(np.float32))

        def loss(x: Any, w: Any = w) -> Any:
            sizes = {"M": x.shape[0], "N": x.shape[1], "WHAT": what, "SIZE": 8}
            y = graph_of(tile_kernel)(x, **sizes, grid=(1,), outputs={"y": x})
            return (y.reshape(-1) * w).sum()

        def total(x: Any, loss: Any = loss) -> Any:
            return mx.vmap(loss)(x).sum()

        expected = mx.stack([mx.grad(loss)(x[i]) for i in range(many)])
        for found in (mx.vmap(mx.grad(loss))(x), mx.grad(total)(x), mx.compile(mx.grad(total))(x)):
            assert mx.allclose(found, expected, rtol=1e-5, atol=1e-5)
        tangent = mx.ones_like(x)
        forward = mx.jvp(total, [x], [tangent])[1][0]
        assert mx.allclose(forward, (expected * tangent).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transform", [lambda f: f, mx.grad, lambda f: mx.grad(mx.compile(f))])
@pytest.mark.parametrize("both", [False, True])
def test_vmap_of_a_part_that_is_overwritten(transform: Any, both: bool) -> None:
    """MLX's own map of slice_update replaces the slice of the first map alone."""
    x, w = mx.random.normal((3, 16)), mx.random.normal((3, 8) if both else (8,))
    weight = mx.random.normal((16,))

    def loss(x: Any, w: Any) -> Any:
        y = graph_of(halves_kernel)(x, w, 16, 2, grid=(1,), outputs={"y": x})
        return (y * weight).sum()

    def plain(x: Any, w: Any) -> Any:
        for k in range(2):
            x = mx.concatenate([x[4:12] * w + k, x[8:]])
        return (x * weight).sum()

    maps = {"in_axes": (0, 0 if both else None)}
    ours, theirs = (mx.vmap(transform(f), **maps)(x, w) for f in (loss, plain))
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-5, atol=1e-5)


@triton.jit
def begin_kernel(x, w, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(y + i * COLUMNS + j, tl.load(x + i * COLUMNS + j))
    k = tl.arange(0, COLUMNS // 2)[None, :]
    inside = i < ROWS - 3
    tl.store(y + i * COLUMNS + k, tl.load(w + i * COLUMNS // 2 + k, mask=inside), mask=inside)


def test_what_is_overwritten_has_no_gradient() -> None:
    """Also where that of what is stored there is infinite."""
    x, w = mx.ones((8, 4)), mx.zeros((8, 2))

    def loss(x: Any, w: Any) -> Any:
        y = graph_of(begin_kernel)(x, w, 8, 4, grid=(1,), outputs={"y": x})
        return mx.sqrt(y).sum()

    dx, dw = (np.array(each) for each in mx.grad(loss, argnums=(0, 1))(x, w))
    expected = np.full((8, 4), 0.5, np.float32)
    expected[:5, :2] = 0
    np.testing.assert_array_equal(dx, expected)
    assert np.isinf(dw[:5]).all()
    assert not dw[5:].any()


def test_numbers_may_be_of_numpy() -> None:
    x = mx.arange(10).astype(mx.float32)
    sizes = {"n": np.int64(10), "BLOCK": np.int32(16)}
    y = graph_of(add_kernel)(x, x, **sizes, grid=(np.int64(1),), outputs={"out": x})
    assert mx.array_equal(y, 2 * x)


def test_jvp_takes_graphs() -> None:
    x, v = mx.random.normal((5, 13)), mx.random.normal((5, 13))
    [ours] = mx.jvp(softmax, [x], [v])[1]
    [theirs] = mx.jvp(lambda x: mx.softmax(x, -1), [x], [v])[1]
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=1e-4, atol=1e-6)


@triton.jit
def collatz_kernel(x, steps):
    i = tl.program_id(0)
    n = tl.load(x + i)
    count = 0
    while n > 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        count += 1
    tl.store(steps + i, count)


def test_loops_end_for_each_program() -> None:
    x = np.arange(1, 30, dtype=np.int32)
    same_as_on_host(lambda x, steps: collatz_kernel[(29,)](x, steps), x, np.zeros_like(x))


def test_a_loop_on_values_is_refused_where_mlx_traces() -> None:
    x = mx.arange(1, 30)
    with pytest.raises(CompilationError, match=r"condition of a loop.*mx\.compile") as caught:
        mx.compile(lambda x: graph_of(collatz_kernel)(x, grid=(29,), outputs={"steps": x}))(x)
    assert "while n > 1" in str(caught.value)


@triton.jit
def triangle_kernel(out, n):
    i = tl.program_id(0)
    total = 0
    for j in range(i):
        if j % 2 == 0:
            total += j
        else:
            total -= 1
    tl.store(out + i, total)


def test_bounds_of_loops_differ_by_program() -> None:
    same_as_on_host(lambda out: triangle_kernel[(20,)](out, 20), np.zeros(20, np.int32))


@triton.jit
def branch_kernel(x, out, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if tl.sum(v, 0) > 0:
        tl.store(out + i, v)
        v = v * 2
    else:
        v = -v
    if pid == 1:
        return
    tl.store(out + i, v + 1)


def test_branches_write_where_their_programs_are() -> None:
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    same_as_on_host(lambda x, out: branch_kernel[(8,)](x, out, BLOCK=8), x, np.zeros_like(x))


@triton.jit
def count_kernel(x, counts, old, BLOCK: tl.constexpr, KEEP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.atomic_add(counts + tl.load(x + i), 1)
    if KEEP:
        tl.store(old + i, before)


def test_atomic_sums_are_scattered() -> None:
    x = np.random.default_rng(0).integers(0, 10, 64).astype(np.int32)
    launch = lambda x, counts: count_kernel[(4,)](x, counts, x, BLOCK=16, KEEP=False)  # noqa: E731
    same_as_on_host(launch, x, np.zeros(10, np.int32))


def test_what_an_update_found_is_refused_where_others_change_it() -> None:
    x = np.zeros(64, np.int32)
    with triton_metal.device("mlx-graph"), pytest.raises(CompilationError, match="order"):
        count_kernel[(4,)](x, np.zeros(10, np.int32), np.zeros_like(x), BLOCK=16, KEEP=True)
    # Each place has one element.
    x = np.arange(64, dtype=np.int32)
    launch = lambda x, counts, old: count_kernel[(4,)](x, counts, old, BLOCK=16, KEEP=True)  # noqa: E731
    same_as_on_host(launch, x, np.arange(64, dtype=np.int32), np.zeros_like(x))


@triton.jit
def bits_kernel(x, found, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) // STEP
    tl.atomic_or(x + i, 5)
    tl.atomic_and(x + i, 29)
    tl.store(found + i, tl.atomic_cas(x + i, 13, 100))


def test_updates_of_places_that_one_element_has() -> None:
    x = np.arange(64, dtype=np.int32)
    launch = lambda x, found: bits_kernel[(4,)](x, found, BLOCK=16, STEP=1)  # noqa: E731
    same_as_on_host(launch, x, np.zeros_like(x))
    with triton_metal.device("mlx-graph"), pytest.raises(CompilationError, match="order"):
        bits_kernel[(4,)](x, np.zeros_like(x), BLOCK=16, STEP=2)


@triton.jit
def shift_kernel(x, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i + STEP, tl.load(x + i))


def test_programs_that_depend_on_their_order_are_refused() -> None:
    x = np.arange(40, dtype=np.float32)
    before = x.copy()
    with triton_metal.device("mlx-graph"), pytest.raises(CompilationError, match="order") as caught:
        shift_kernel[(4,)](x, 40, BLOCK=8, STEP=8)
    assert "tl.store(x + i + STEP" in str(caught.value)
    np.testing.assert_array_equal(x, before)
    same_as_on_host(lambda x: shift_kernel[(4,)](x, 40, BLOCK=8, STEP=0), x)


@triton.jit
def outside_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def test_loads_outside_of_an_array_are_refused() -> None:
    x = mx.zeros((5,))
    with pytest.raises(CompilationError, match="loads place 7 of an array of 5 elements"):
        graph_of(outside_kernel)(x, 8, grid=(1,), outputs={"out": ((8,), mx.float32)})


def test_arrays_that_are_written_must_be_outputs() -> None:
    x = mx.zeros((8,))
    with pytest.raises(LaunchValueError, match="argument out is written"):
        graph_of(add_kernel)(x, x, 8, BLOCK=8, grid=(1,), outputs={"y": x})


@triton.jit
def combine(a, b):
    return a * 2 + b


@triton.jit
def scan_kernel(
    x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + i)
    tl.store(out + i, tl.associative_scan(v, AXIS, maximum, reverse=REVERSE) + tl.cumsum(v, AXIS))


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_keep_their_order(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (8, 16)).astype(np.int32)
    same_as_on_host(
        lambda x, out: scan_kernel[(1,)](x, out, 8, 16, AXIS=axis, REVERSE=reverse),
        x,
        np.zeros_like(x),
    )


@triton.jit
def arg_kernel(x, places, most, order, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    i = row * COLUMNS + tl.arange(0, COLUMNS)
    v = tl.load(x + i)
    top, place = tl.max(v, 0, return_indices=True)
    tl.store(places + row, place)
    tl.store(most + row, top)
    tl.store(order + i, tl.sort(v))


def test_rows_are_searched_and_sorted() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (6, 32)).astype(np.float32)
    same_as_on_host(
        lambda x, p, m, o: arg_kernel[(6,)](x, p, m, o, COLUMNS=32),
        x, np.zeros(6, np.int32), np.zeros(6, np.float32), np.zeros_like(x),
    )  # fmt: skip


@triton.jit
def integer_kernel(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b)
    tl.store(out + BLOCK + i, a % b)
    tl.store(out + 2 * BLOCK + i, a << (b & 31))
    tl.store(out + 3 * BLOCK + i, a >> (b & 31))
    tl.store(
        out + 4 * BLOCK + i, tl.umulhi(a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True))
    )
    tl.store(out + 5 * BLOCK + i, (a.to(tl.uint32, bitcast=True) // b.to(tl.uint32, bitcast=True)))


@pytest.mark.own_check("divides by zero, and takes remainders of negative numbers")
def test_integers_at_their_edges() -> None:
    edges = [0, 1, -1, 2, -2, 7, -7, 2**31 - 1, -(2**31), 1000]
    pairs = [(a, b) for a in edges for b in edges]
    pairs += [(0, 1)] * (128 - len(pairs))
    x, y = (np.array(side, np.int32) for side in zip(*pairs, strict=True))
    launch = lambda x, y, out: integer_kernel[(1,)](x, y, out, BLOCK=128)  # noqa: E731
    same_as_on_host(launch, x, y, np.zeros(6 * 128, np.int32), rtol=0)


@triton.jit
def truth_kernel(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a ^ b)
    tl.store(out + BLOCK + i, (a & b) | (a ^ (b != 0)))
    tl.store(out + 2 * BLOCK + i, tl.xor_sum(a.to(tl.int32), 0) == 0)


def test_truth_values_are_combined() -> None:
    x, y = np.array([1, 1, 0, 0], bool), np.array([1, 0, 1, 0], bool)
    same_as_on_host(
        lambda x, y, out: truth_kernel[(1,)](x, y, out, BLOCK=4), x, y, np.zeros(12, bool)
    )


@triton.jit
def toward_zero_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i).to(tl.float16, fp_downcast_rounding="rtz")
    tl.store(out + i, v.to(tl.float32) + tl.load(x + i).to(tl.bfloat16, fp_downcast_rounding="rtz"))


def test_conversions_go_toward_zero() -> None:
    x = np.array([1.0009, -1.0009, 65519.9, -1e-8, 3.1415927, 1e30, 0.0, 7.99], np.float32)
    same_as_on_host(
        lambda x, out: toward_zero_kernel[(1,)](x, out, BLOCK=8), x, np.zeros_like(x), rtol=0
    )


@triton.jit
def asserting_kernel(x, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, BLOCK))
    tl.device_assert(v < 5, "too large")
    tl.store(x + tl.arange(0, BLOCK), v + 1)


def test_assertions_are_checked() -> None:
    x = np.arange(4, dtype=np.int32)
    with triton_metal.device("mlx-graph"):
        asserting_kernel[(1,)](x, BLOCK=4, debug=True)
        np.testing.assert_array_equal(x, [1, 2, 3, 4])
        asserting_kernel[(1,)](x, BLOCK=4, debug=True)
        with pytest.raises(DeviceAssertionError, match="too large") as caught:
            asserting_kernel[(1,)](x, BLOCK=4, debug=True)
    assert caught.value.program == (0, 0, 0)
    assert caught.value.index == (3,)
    assert "tl.device_assert(v < 5" in str(caught.value)
    np.testing.assert_array_equal(x, [2, 3, 4, 5])


def test_mlx_arrays_change_in_place() -> None:
    x, out = mx.arange(100, dtype=mx.float32), mx.zeros((100,))
    with triton_metal.device("mlx-graph"):
        add_kernel[(2,)](x, x, out, 100, BLOCK=64)
    np.testing.assert_array_equal(np.array(out), 2 * np.arange(100))


def test_read_only_arrays_are_not_written() -> None:
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    out.flags.writeable = False
    with triton_metal.device("mlx-graph"), pytest.raises(LaunchValueError, match="out is a read"):
        add_kernel[(2,)](x, x, out, 100, BLOCK=64)
    assert not out.any()


def test_buffers_of_python_are_arrays() -> None:
    x, out = np.arange(100, dtype=np.float32), bytearray(400)
    with triton_metal.device("mlx-graph"):
        add_kernel[(2,)](x, memoryview(x), memoryview(out).cast("f"), 100, BLOCK=64)
    np.testing.assert_array_equal(np.frombuffer(out, np.float32), 2 * x)


@triton.jit
def histogram_kernel(x, counts, BLOCK: tl.constexpr, BINS: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + pid * BLOCK + tl.arange(0, BLOCK))
    tl.store(counts + pid * BINS + tl.arange(0, BINS), tl.histogram(v, BINS, mask=v != 3))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_histograms_leave_out_what_no_bin_has(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 40, (300, 64)).astype(dtype)
    if dtype != "uint8":
        x[0, :3] = -1, -(2**31), 2**31 - 1
    launch = lambda x, counts: histogram_kernel[(300,)](x, counts, BLOCK=64, BINS=32)  # noqa: E731
    same_as_on_host(launch, x, np.zeros((300, 32), np.int32))


def test_histograms_of_many_programs_fit_the_memory() -> None:
    programs = 20_000
    x = np.random.default_rng(0).integers(0, 1024, (programs, 64)).astype(np.int32)
    counts = np.zeros((programs, 1024), np.int32)
    with triton_metal.device("mlx-graph"):
        histogram_kernel[(programs,)](x, counts, BLOCK=64, BINS=1024)
    rows = np.repeat(np.arange(programs), 64)[x.ravel() != 3]
    expected = np.zeros_like(counts)
    np.add.at(expected, (rows, x[x != 3]), 1)
    np.testing.assert_array_equal(counts, expected)


@triton.jit
def asserting_programs_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    pid = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + (pid // 3 * 3 + pid % 3) * ROWS * COLUMNS + i * COLUMNS + j)
    for step in range(3):
        tl.device_assert(v + step < 10, "at most 9")
    tl.store(out + pid, tl.sum(v))


def test_the_first_program_and_element_of_a_failed_assertion_are_told() -> None:
    x = np.zeros((4, 3, 4, 8), np.int32)
    x[3, 0, 0, 0] = x[1, 2, 3, 5] = x[1, 2, 3, 7] = 8
    told = []
    for device in ("host", "mlx-graph"):
        out = np.zeros(12, np.int32)
        with triton_metal.device(device), pytest.raises(DeviceAssertionError) as caught:
            asserting_programs_kernel[(4, 3)](x, out, ROWS=4, COLUMNS=8, debug=True)
        told.append((caught.value.program, caught.value.index, caught.value.error_message))
    assert told[0] == told[1]
    assert told[0][:2] == ((3, 0, 0), (0, 0))


@triton.jit
def scan_of_one_kernel(x, out):
    i = tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :]
    tl.store(out + i, tl.cumsum((1 / tl.load(x + i)).to(tl.int32), 0))


def test_scans_of_one_element_that_was_broadcast() -> None:
    x = np.array([1], np.int32)
    same_as_on_host(lambda x, out: scan_of_one_kernel[(1,)](x, out), x, np.zeros_like(x))


@triton_metal.jit
def chain_kernel(x, y, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, i < n) * scale + tl.load(y + i, i < n)
    tl.store(out + i, value / (1.0 + tl.exp(-value)), i < n)


def test_launches_that_come_again_are_compiled() -> None:
    """Each scalar, each pair of arrays that are one, and each size is a launch of its own."""

    def chain(x: Any, y: Any, scale: float, compiled: bool) -> Any:
        grid = (triton_metal.cdiv(x.size, 64),)
        return triton_metal.mlx.graph(chain_kernel, compiled)(
            x, y, n=x.size, scale=scale, BLOCK=64, grid=grid, outputs={"out": x}
        )

    rng = np.random.default_rng(0)
    for size in (100, 128):
        x, y = (mx.array(rng.standard_normal(size).astype("float32")) for _ in range(2))
        for _ in range(3):
            for scale in (2.0, -1.0):
                for pair in ((x, y), (x, x), (y, x)):
                    found, wanted = chain(*pair, scale, True), chain(*pair, scale, False)
                    assert mx.allclose(found, wanted, rtol=1e-5, atol=1e-6)
    loss = lambda x: chain(x, y, 2.0, True).sum()  # noqa: E731
    plain = lambda x: chain(x, y, 2.0, False).sum()  # noqa: E731
    assert mx.allclose(mx.grad(loss)(x), mx.grad(plain)(x), rtol=1e-5, atol=1e-6)
    batch = mx.stack([x, y])
    assert mx.allclose(mx.vmap(loss)(batch), mx.vmap(plain)(batch), rtol=1e-5, atol=1e-6)


def test_launches_that_read_elements_are_not_compiled() -> None:
    for count in (3, 1, 4):
        limits = mx.array([count, 2], dtype=mx.int32)
        out = triton_metal.mlx.graph(halvings_of_limits, True)(
            limits, grid=(2,), outputs={"out": limits}
        )
        assert out.tolist() == [2 * count, 4]


@triton_metal.jit
def halvings_of_limits(limits, out):
    total = 0
    for _ in range(tl.load(limits + tl.program_id(0))):
        total += 2
    tl.store(out + tl.program_id(0), total)


@triton.jit
def narrow_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v.to(tl.float16).to(tl.float32))
    tl.store(out + BLOCK + i, v.to(tl.bfloat16).to(tl.float32))


def test_doubles_are_rounded_once() -> None:
    ties = [1 + 2.0**-11, 1 + 2.0**-8, 65520.0, 2.0**-25, 1 + 3 * 2.0**-11, 0.0, 1e300, -1e-300]
    x = np.array([v * (1 + e) for v in ties for e in (0.0, 2.0**-40, -(2.0**-40))])
    x = np.resize(np.concatenate([x, -x]), 64)
    same_as_on_host(
        lambda x, out: narrow_kernel[(1,)](x, out, BLOCK=64), x, np.zeros(128, np.float32), rtol=0
    )
