"""Loops whose steps an MLX graph runs together give what the steps give one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl

mx = pytest.importorskip("mlx.core")

from triton_metal.mlx import graph  # noqa: E402

pytestmark = [pytest.mark.own_route, pytest.mark.own_check]


def compare(
    kernel: Any, grid: tuple[int, ...], arrays: list[Any], *others: Any, tolerance: float = 0.0
) -> list[Any]:
    """Runs a kernel on the host device and as a graph, and compares all of its arrays."""
    results = []
    for device in ("host", "mlx-graph"):
        copies = [array.copy() for array in arrays]
        with triton_metal.device(device):
            kernel[grid](*copies, *others)
        results.append(copies)
    for on_host, in_graph in zip(*results, strict=True):
        np.testing.assert_allclose(in_graph, on_host, rtol=tolerance, atol=tolerance)
    return results[1]


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@triton_metal.jit
def matmul_kernel(
    a,
    b,
    c,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    ADDS: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    in_group = GROUP * num_n
    first = pid // in_group * GROUP
    size = min(num_m - first, GROUP)
    pm = first + (pid % in_group) % size
    pn = (pid % in_group) // size
    rows = (pm * BM + tl.arange(0, BM)) % M
    columns = (pn * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left = a + rows[:, None] * K + k[None, :]
    right = b + k[:, None] * N + columns[None, :]
    total = tl.zeros((BM, BN), c.dtype.element_ty if c.dtype.element_ty.is_int() else tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0)
        if ADDS:
            total += tl.dot(x, y, out_dtype=total.dtype)
        else:
            total = tl.dot(x, y, total, out_dtype=total.dtype)
        left += BK
        right += BK * N
    rows = pm * BM + tl.arange(0, BM)
    columns = pn * BN + tl.arange(0, BN)
    tl.store(
        c + rows[:, None] * N + columns[None, :],
        total.to(c.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def matmul(a: Any, b: Any, dtype: Any, adds: bool = False, call: Any = None) -> Any:
    (m, k), n = a.shape, b.shape[1]
    grid = (triton_metal.cdiv(m, 32) * triton_metal.cdiv(n, 64),)
    return (call or graph(matmul_kernel))(
        a, b, m, n, k, 32, 64, 16, 4, adds, grid=grid, outputs={"c": ((m, n), dtype)}
    )


@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("shape", [(256, 128, 64), (256, 256, 100), (100, 90, 33), (32, 64, 16)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8"])
def test_matrices_are_multiplied_at_once(
    dtype: str, shape: tuple[int, int, int], adds: bool
) -> None:
    m, n, k = shape
    if dtype == "int8":
        rng = np.random.default_rng(0)
        a, b = (mx.array(rng.integers(-128, 128, s).astype(np.int8)) for s in ((m, k), (k, n)))
        result = matmul(a, b, mx.int32, adds)
        wanted = np.array(a).astype(np.int64) @ np.array(b).astype(np.int64)
        assert np.array_equal(np.array(result), wanted)
        return
    a, b = (
        mx.array(normal(*s, seed=i)).astype(getattr(mx, dtype))
        for i, s in enumerate(((m, k), (k, n)))
    )
    result = matmul(a, b, mx.float32, adds)
    wanted = np.array(a.astype(mx.float32)).astype(np.float64) @ np.array(b.astype(mx.float32))
    np.testing.assert_allclose(np.array(result), wanted, rtol=1e-4, atol=1e-4)


def test_a_grid_of_tiles_is_one_product_of_slices() -> None:
    a, b = mx.array(normal(256, 128)), mx.array(normal(128, 192))
    summary = matmul(a, b, mx.float32, call=graph(matmul_kernel).summary)
    assert summary.gathered == 0
    assert any("a product of tiles along 8 steps" in note for note in summary.raised)
    assert not summary.fell_back


def test_gradients_of_a_tiled_product_are_those_of_mlx() -> None:
    a, b, weight = (
        mx.array(normal(*s, seed=i)) for i, s in enumerate(((64, 48), (48, 128), (64, 128)))
    )
    found = mx.grad(lambda a, b: (matmul(a, b, mx.float32) * weight).sum(), argnums=(0, 1))(a, b)
    wanted = mx.grad(lambda a, b: ((a @ b) * weight).sum(), argnums=(0, 1))(a, b)
    for x, y in zip(found, wanted, strict=True):
        assert mx.allclose(x, y, rtol=1e-4, atol=1e-4)


@triton_metal.jit
def attention_kernel(
    q,
    k,
    v,
    o,
    lse,
    scale,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    pm = tl.program_id(0)
    base = tl.program_id(1) * S * D
    rows = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < S, other=0.0)
    most = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, D), tl.float32)
    end = min((pm + 1) * BM, S) if CAUSAL else S
    for start in range(0, end, BN):
        columns = start + tl.arange(0, BN)
        inside = columns[:, None] < S
        keys = tl.load(k + base + columns[:, None] * D + d[None, :], mask=inside, other=0.0)
        values = tl.load(v + base + columns[:, None] * D + d[None, :], mask=inside, other=0.0)
        scores = tl.dot(query, tl.trans(keys)) * scale
        scores = tl.where(columns[None, :] < S, scores, float("-inf"))
        if CAUSAL:
            scores = tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))
        highest = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - highest[:, None])
        factor = tl.exp(most - highest)
        total = total * factor + tl.sum(p, 1)
        result = tl.dot(p, values, result * factor[:, None])
        most = highest
    inside = rows < S
    tl.store(o + base + rows[:, None] * D + d[None, :], result / total[:, None], inside[:, None])
    tl.store(lse + tl.program_id(1) * S + rows, most + tl.log(total), inside)


def attention(q: Any, k: Any, v: Any, causal: bool, block: int = 32, call: Any = None) -> Any:
    heads, length, size = q.shape
    return (call or graph(attention_kernel))(
        q, k, v, scale=size**-0.5, S=length, D=size, BM=32, BN=block, CAUSAL=causal,
        grid=(triton_metal.cdiv(length, 32), heads),
        outputs={"o": q, "lse": ((heads, length), mx.float32)},
    )  # fmt: skip


@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.parametrize("length", [128, 100])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_that_of_mlx(causal: bool, length: int, block: int) -> None:
    q, k, v = (mx.array(normal(3, length, 32, seed=i)) for i in range(3))
    found, lse = attention(q, k, v, causal, block)
    mask = "causal" if causal else None
    wanted = mx.fast.scaled_dot_product_attention(
        q[None], k[None], v[None], scale=32**-0.5, mask=mask
    )
    assert mx.allclose(found, wanted[0], rtol=1e-5, atol=1e-5)
    assert bool(mx.isfinite(lse).all())


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_attention_are_those_of_mlx(causal: bool) -> None:
    q, k, v, weight = (mx.array(normal(2, 64, 16, seed=i)) for i in range(4))

    def ours(q: Any, k: Any, v: Any) -> Any:
        return (attention(q, k, v, causal)[0] * weight).sum()

    def mlx(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(1, 2) * 16**-0.5
        if causal:
            scores = mx.where(mx.tri(64, dtype=mx.bool_), scores, -mx.inf)
        return (mx.softmax(scores, -1) @ v * weight).sum()

    for x, y in zip(
        mx.grad(ours, argnums=(0, 1, 2))(q, k, v),
        mx.grad(mlx, argnums=(0, 1, 2))(q, k, v),
        strict=True,
    ):
        assert mx.allclose(x, y, rtol=1e-4, atol=1e-5)


def test_vmap_and_compile_take_loops() -> None:
    q, k, v = (mx.array(normal(2, 3, 64, 16, seed=i)) for i in range(3))
    each = mx.stack([attention(q[i], k[i], v[i], True)[0] for i in range(2)])
    mapped = mx.vmap(lambda q, k, v: attention(q, k, v, True)[0])(q, k, v)
    compiled = mx.compile(lambda q, k, v: attention(q, k, v, True)[0])(q[0], k[0], v[0])
    assert mx.allclose(mapped, each, rtol=1e-5, atol=1e-6)
    assert mx.allclose(compiled, each[0], rtol=1e-5, atol=1e-6)


@triton_metal.jit
def norm_kernel(x, w, y, mean, N, EPS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * N + columns, columns < N, 0.0).to(tl.float32)
    middle = tl.sum(total, 0) / N
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * N + columns, columns < N, 0.0).to(tl.float32)
        value = tl.where(columns < N, value - middle, 0.0)
        squares += value * value
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / N + EPS)
    tl.store(mean + row, middle)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < N
        value = tl.load(x + row * N + columns, inside, 0.0).to(tl.float32)
        tl.store(
            y + row * N + columns, (value - middle) * scale * tl.load(w + columns, inside), inside
        )


@pytest.mark.parametrize("size", [256, 250, 64, 3])
def test_rows_longer_than_a_tile_are_normalized(size: int) -> None:
    arrays = [normal(5, size), normal(size), np.zeros((5, size), "float32"), np.zeros(5, "float32")]
    compare(norm_kernel, (5,), arrays, size, 1e-5, 64, tolerance=1e-5)


@triton_metal.jit
def combine_kernel(x, out, N, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    result = tl.load(x + i)
    for row in range(1, N):
        value = tl.load(x + row * BLOCK + i)
        if KIND == "sum":
            result += value
        elif KIND == "difference":
            result -= value
        elif KIND == "reversed":
            result = value - result
        elif KIND == "product":
            result *= value
        elif KIND == "max":
            result = tl.maximum(result, value)
        elif KIND == "min":
            result = tl.minimum(result, value)
        elif KIND == "max_nan":
            result = tl.maximum(result, value, propagate_nan=tl.PropagateNan.ALL)
        elif KIND == "and":
            result &= value
        elif KIND == "or":
            result |= value
        elif KIND == "xor":
            result ^= value
        elif KIND == "horner":
            result = result * 3 + value
        elif KIND == "quotient":
            result = result / value
        elif KIND == "twice":
            result = result + value + value
        elif KIND == "last":
            result = value
    tl.store(out + i, result)


FLOATS = ["sum", "difference", "reversed", "product", "max", "min", "max_nan", "horner", "quotient", "twice", "last"]  # fmt: skip
INTEGERS = ["sum", "difference", "reversed", "product", "max", "min", "and", "or", "xor", "horner", "twice", "last"]  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("kind", FLOATS)
def test_floats_are_combined_along_steps(kind: str, rows: int) -> None:
    x = normal(rows, 32) + np.float32(0.1)
    if kind in ("max", "min", "max_nan"):
        x.flat[::5] = np.nan
        x[:, :3] = np.nan
        x.flat[7::11] = -np.inf
    compare(combine_kernel, (1,), [x, np.zeros(32, "float32")], rows, kind, 32, tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_combined_along_steps(kind: str, dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, (6, 32), dtype=dtype, endpoint=True)
    x[0, :2] = [info.min, info.max]
    compare(combine_kernel, (1,), [x, np.zeros(32, dtype)], 6, kind, 32)


@triton_metal.jit
def bounds_kernel(x, counts, sums, lasts, tops, products, positions, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    last = tl.full((BLOCK,), -1.0, tl.float32)
    before = tl.full((BLOCK,), -2.0, tl.float32)
    top = tl.full((BLOCK,), -3.0, tl.float32)
    product = tl.full((BLOCK,), 1.0, tl.float32)
    position = 5
    pointer = x + i
    for _ in range(tl.load(counts + row)):
        value = tl.load(pointer)
        total += value / (value - 2.0)
        top = tl.maximum(top, value)
        product = product * 0.5 + value
        before = last
        last = value
        position += 3
        pointer += BLOCK
    tl.store(sums + row * BLOCK + i, total + before)
    tl.store(lasts + row * BLOCK + i, last)
    tl.store(tops + row * BLOCK + i, top)
    tl.store(products + row * BLOCK + i, product)
    tl.store(positions + row, position)


def test_programs_leave_a_loop_in_their_own_steps() -> None:
    x = normal(6, 16)
    # Steps that no program takes would divide by 0.
    x[5] = 2.0
    counts = np.array([3, 0, 5, 1, 2], "int32")
    outputs = [np.zeros((5, 16), "float32") for _ in range(4)]
    compare(bounds_kernel, (5,), [x, counts, *outputs, np.zeros(5, "int32")], 16, tolerance=1e-6)


@triton_metal.jit
def broken_kernel(x, limits, sums, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    limit = tl.load(limits + row)
    total = tl.zeros((BLOCK,), tl.float32)
    pointer = x + i
    for _ in range(n):
        value = tl.load(pointer)
        if tl.max(value) > limit:
            break
        total += value
        pointer += BLOCK
    tl.store(sums + row * BLOCK + i, total)


def test_a_pointer_moves_until_a_program_breaks_out_of_its_loop() -> None:
    x = np.arange(6 * 16, dtype="float32")
    limits = np.array([100, 0, 40, 15], "float32")
    compare(broken_kernel, (4,), [x, limits, np.zeros((4, 16), "float32")], 6, 16)


@triton_metal.jit
def triangle_kernel(a, b, c, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tile = i[:, None] * BLOCK + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(row, 4):
        x = tl.load(a + step * BLOCK * BLOCK + tile)
        y = tl.load(b + step * BLOCK * BLOCK + tile)
        total = tl.dot(x, y, total)
    tl.store(c + row * BLOCK * BLOCK + tile, total)


def test_products_end_for_each_program() -> None:
    a, b = normal(4, 16, 16), normal(4, 16, 16, seed=1)
    a[0, 0, 0] = np.inf
    compare(triangle_kernel, (5,), [a, b, np.ones((5, 16, 16), "float32")], 16, tolerance=1e-4)


@triton_metal.jit
def memory_kernel(x, y, N, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for step in range(N):
        if KIND == "in place":
            value = tl.load(x + step * BLOCK + i)
            tl.store(x + step * BLOCK + i, value * 2)
        elif KIND == "next":
            value = tl.load(x + step * BLOCK + i)
            tl.store(x + (step + 1) * BLOCK + i, value + 1)
        elif KIND == "one place":
            tl.store(y + i, tl.load(x + step * BLOCK + i))
        elif KIND == "overlapping":
            tl.store(y + step + i, tl.load(x + step * BLOCK + i))
        elif KIND == "backwards":
            tl.store(y + (N - 1 - step) * BLOCK + i, tl.load(x + step * BLOCK + i))
        elif KIND == "two stores":
            tl.store(y + step * BLOCK + i, tl.load(x + step * BLOCK + i))
            tl.store(y + step + i, step * 1.0)
        elif KIND == "strided":
            tl.store(y + i * N + step, tl.load(x + step * BLOCK + i))
        elif KIND == "conditional":
            if step % 2 == 0:
                tl.store(y + step * BLOCK + i, tl.load(x + step * BLOCK + i))
        elif KIND == "indirect":
            place = tl.load(x + step * BLOCK + i).to(tl.int32)
            tl.store(y + tl.abs(place) % 7 * BLOCK + i, step * 1.0)


KINDS = ["in place", "next", "one place", "overlapping", "backwards", "two stores", "strided", "conditional", "indirect"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_stores_keep_the_order_of_steps(kind: str) -> None:
    arrays = [normal(9, 16) * 10, np.zeros((9, 16), "float32")]
    compare(memory_kernel, (1,), arrays, 8, kind, 16)


@triton_metal.jit
def carried_kernel(x, y, out, N, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    result = tl.zeros((BLOCK,), tl.float32)
    if KIND == "prefetched":
        value = tl.load(x + i)
        for step in range(1, N):
            following = tl.load(x + step * BLOCK + i)
            result += value * following
            value = following
    elif KIND == "swapped":
        p = x + i
        q = y + i
        for _ in range(N):
            result = result * 0.5 + tl.load(p) - tl.load(q)
            p, q = q + BLOCK, p + BLOCK
    elif KIND == "fibonacci":
        a = tl.load(x + i)
        b = tl.load(y + i)
        for _ in range(N):
            a, b = b, a + b
        result = a
    elif KIND == "welford":
        count = 0.0
        mean = tl.zeros((BLOCK,), tl.float32)
        for step in range(N):
            value = tl.load(x + step * BLOCK + i)
            count += 1.0
            delta = value - mean
            mean += delta / count
            result += delta * (value - mean)
    elif KIND == "running":
        for step in range(N):
            result += tl.load(x + step * BLOCK + i)
            tl.store(y + step * BLOCK + i, result)
    elif KIND == "growing":
        stride = 1
        offset = 0
        for _ in range(3):
            result += tl.load(x + offset + i)
            offset += stride
            stride *= 2
    elif KIND == "nested":
        for step in range(N):
            row = tl.zeros((BLOCK,), tl.float32)
            for inner in range(step):
                row += tl.load(x + inner * BLOCK + i)
            result = tl.maximum(result, row)
    elif KIND == "inner state":
        for step in range(N):
            for inner in range(3):
                result = result * 0.5 + tl.load(x + step * BLOCK + i) * inner
    elif KIND == "argmax":
        best = tl.full((BLOCK,), float("-inf"), tl.float32)
        for step in range(N):
            value = tl.load(x + step * BLOCK + i)
            result = tl.where(value > best, step * 1.0, result)
            best = tl.maximum(best, value)
    elif KIND == "while":
        for step in range(N):
            left = step
            while left > 0:
                result += tl.load(x + left * BLOCK + i)
                left -= 2
    elif KIND == "branch":
        for step in range(N):
            if step % 3 == 1:
                result += tl.load(x + step * BLOCK + i)
            else:
                result = tl.maximum(result, 0.25)
    elif KIND == "scan":
        for step in range(N):
            result += tl.cumsum(tl.load(x + step * BLOCK + i), 0) + tl.sort(
                tl.load(y + step * BLOCK + i)
            )
    tl.store(out + tl.program_id(0) * BLOCK + i, result + tl.program_id(0))


CARRIED = ["prefetched", "swapped", "fibonacci", "welford", "running", "growing", "nested", "inner state", "argmax", "while", "branch", "scan"]  # fmt: skip


@pytest.mark.parametrize("kind", CARRIED)
def test_values_are_carried_from_step_to_step(kind: str) -> None:
    programs = 1 if kind == "running" else 2
    arrays = [normal(9, 16), normal(9, 16, seed=1), np.zeros((2, 16), "float32")]
    compare(carried_kernel, (programs,), arrays, 8, kind, 16, tolerance=1e-5)


@triton_metal.jit
def atomic_kernel(x, out, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for step in range(N):
        tl.atomic_add(out + i // 2, tl.load(x + step * BLOCK + i))
        tl.atomic_max(out + BLOCK + i, step * 1.0)


def test_steps_update_places_together() -> None:
    arrays = [normal(8, 16), np.zeros(32, "float32")]
    compare(atomic_kernel, (1,), arrays, 8, 16, tolerance=1e-5)


@triton_metal.jit
def atomic_grid_kernel(x, out, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for step in range(N):
        tl.atomic_add(out + i // 2, tl.load(x + step * BLOCK + i) * tl.program_id(0))
        tl.atomic_add(out + i // 2, 1.0)


def test_every_program_and_step_updates() -> None:
    arrays = [normal(8, 16), np.zeros(32, "float32")]
    compare(atomic_grid_kernel, (3,), arrays, 8, 16, tolerance=1e-5)


@triton_metal.jit
def edge_kernel(out, start, stop, STEP: tl.constexpr):
    total = tl.zeros((), tl.int64)
    last = start
    for i in range(start, stop, STEP):
        total += i
        last = i
    tl.store(out, total)
    tl.store(out + 1, last)


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 10, 3), (2**31 - 40, 2**31 - 1, 7), (-(2**31), -(2**31) + 9, 4), (5, 5, 1), (7, 3, 1), (-5, 6, 5)],
)  # fmt: skip
def test_loops_count_at_the_edges_of_integers(start: int, stop: int, step: int) -> None:
    compare(edge_kernel, (1,), [np.zeros(2, "int64")], start, stop, step)


@triton_metal.jit
def divided_kernel(x, out, W, H, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    column = pid % W
    row = pid // W % H
    plane = pid // (W * H)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + ((row * W + column) * 3 + plane) * BLOCK + i)
    tl.store(out + ((plane * W + column) * H + row) * BLOCK + i, value)


@pytest.mark.parametrize(("width", "height"), [(4, 5), (1, 7), (6, 1), (8, 8)])
def test_numbers_of_programs_are_divided(width: int, height: int) -> None:
    arrays = [normal(width * height * 3, 8), np.zeros((width * height * 3, 8), "float32")]
    compare(divided_kernel, (3 * width * height,), arrays, width, height, 8)


def test_divided_numbers_stay_slices() -> None:
    x = mx.array(normal(60, 8))
    summary = graph(divided_kernel).summary(x, W=4, H=5, BLOCK=8, grid=(60,), outputs={"out": x})
    assert (summary.sliced, summary.gathered) == (2, 0)


@triton_metal.jit
def rows_kernel(x, y, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + row * n + i, inside, other=1.0)
    w = tl.load(y + row * n + i, inside, other=1.0)
    if KIND == "logarithm":
        result = tl.where(inside, tl.log(v * v + 1.0) * w, 0.0)
        result = result + tl.sum(result, 0)
    elif KIND == "welford":
        mean = 0.0
        count = 0.0
        result = v * 0
        for step in range(4):
            value = tl.load(x + step * n + i, inside, other=0.0)
            count += 1
            delta = value - mean
            mean = mean + tl.sum(delta, 0) / count / n
            result += delta * (value - mean) * w
    elif KIND == "recurrent":
        result = v * 0
        for step in range(5):
            value = tl.load(x + (step % 4) * n + i, inside, other=0.0)
            result = tl.sigmoid(result * w + value)
    elif KIND == "while":
        result = v
        step = 0
        while step < 3:
            result = result * w + v
            step += 1
    elif KIND == "branch":
        result = v * w
        if row % 2 == 0:
            result = tl.exp(v) * w
    elif KIND == "products":
        result = v * 0 + 1
        for step in range(row + 1):
            result *= tl.load(x + step * n + i, inside, other=1.0) + w
    elif KIND == "reductions":
        result = v * tl.max(w, 0) + tl.min(v, 0) * w + tl.sum(v * w, 0)
    elif KIND == "index":
        result = v + tl.argmax(w, 0)
    elif KIND == "bits":
        bits = (i & row) ^ (v * 4).to(tl.int32) | (row << 2)
        result = (bits >> (v > 0).to(tl.int32)).to(tl.float32) + v * (row != w.to(tl.int32))
    elif KIND == "gather":
        result = tl.gather(v, (i * 7 + 3) % n, 0) * w
    tl.store(out + row * n + i, result, inside)


ROWS = ["logarithm", "welford", "recurrent", "while", "branch", "products", "reductions", "index", "bits", "gather"]  # fmt: skip


@pytest.mark.parametrize("size", [16, 13])
@pytest.mark.parametrize("kind", ROWS)
def test_transforms_of_rows(kind: str, size: int) -> None:
    """Gradients agree with differences, vmap with one call after the other, and mx.compile with both."""
    x, y, weight, direction = (mx.array(normal(4, size, seed=seed)) for seed in range(4))

    def f(x: Any, y: Any) -> Any:
        out = graph(rows_kernel)(x, y, n=size, KIND=kind, BLOCK=16, grid=(4,), outputs={"out": x})
        return (out * weight).sum()

    gradients = mx.grad(f, argnums=(0, 1))(x, y)
    if kind != "bits":
        for place, gradient in enumerate(gradients):
            step = 1e-3 * direction
            more, less = [x, y], [x, y]
            more[place], less[place] = more[place] + step, less[place] - step
            difference = float(f(*more) - f(*less)) / 2e-3
            assert abs(difference - float((gradient * direction).sum())) < 2e-2 * max(
                1, abs(difference)
            )
    compiled = mx.compile(mx.grad(f, argnums=(0, 1)))(x, y)
    for one, other in zip(compiled, gradients, strict=True):
        assert mx.allclose(one, other, rtol=1e-4, atol=1e-4)
    for axes in ((0, 0), (0, None), (None, 0)):
        first, second = (
            mx.stack([array, other]) if axis == 0 else array
            for array, other, axis in ((x, y, axes[0]), (y, x, axes[1]))
        )
        mapped = mx.vmap(f, in_axes=axes)(first, second)
        for i in range(2):
            one = f(first[i] if axes[0] == 0 else first, second[i] if axes[1] == 0 else second)
            assert mx.allclose(mapped[i], one, rtol=1e-4, atol=1e-3)
