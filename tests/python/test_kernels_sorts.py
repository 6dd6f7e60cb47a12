"""tl.sort, tl.topk, tl.flip, tl.bitonic_merge, tl.histogram and tl.map_elementwise."""

from typing import Any

import numpy as np
import pytest

from kernel_support import dtype, tl, triton

NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
)
SHAPES = [(1, 1), (1, 2), (4, 32), (1, 512), (16, 4), (64, 1), (4, 128)]


def numbers(name: str, shape: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if "float" in name:
        return (rng.integers(-500, 500, shape) / 8).astype(dtype(name))
    info = np.iinfo(name)
    x = rng.integers(info.min, info.max, shape, dtype=name, endpoint=True)
    x.reshape(-1)[::3] = x.reshape(-1)[0]
    return x


@triton.jit
def sorts(x_ptr, up_ptr, down_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i)
    tl.store(up_ptr + i, tl.sort(x))
    tl.store(down_ptr + i, tl.sort(x, descending=True))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_sort(name: str, shape: tuple[int, int], num_warps: int) -> None:
    x = numbers(name, shape)
    up, down = np.zeros_like(x), np.zeros_like(x)
    sorts[(1,)](x, up, down, M=shape[0], N=shape[1], num_warps=num_warps)
    expected = np.sort(x, 1)
    np.testing.assert_array_equal(up, expected)
    np.testing.assert_array_equal(down, expected[:, ::-1])


@triton.jit
def exchanges(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, A)[:, None, None] * 2 * B + tl.arange(0, 2)[:, None] * B + tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.xor_sum(x, 1, keep_dims=True) ^ x)


@pytest.mark.parametrize("num_warps", [2, 8])
@pytest.mark.parametrize("shape", [(1, 512), (1, 1024), (2, 256), (8, 64), (16, 1)])
@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "int64"])
def test_an_exclusive_or_with_one_of_a_pair_is_the_other(
    name: str, shape: tuple[int, int], num_warps: int
) -> None:
    a, b = shape
    x = numbers(name, (a, 2, b))
    out = np.zeros_like(x)
    exchanges[(1,)](x, out, A=a, B=b, num_warps=num_warps)
    np.testing.assert_array_equal(out, x[:, ::-1])


def test_simdgroups_exchange_numbers_through_memory_once() -> None:
    """A reduction of pairs would read twice what it has written, and not as it lies in the registers."""
    x = numbers("int32", (1, 2, 512))
    out = np.zeros_like(x)
    with triton.launch_options(count=True) as report:
        exchanges[(1,)](x, out, A=1, B=512, num_warps=8)
    np.testing.assert_array_equal(out, x[:, ::-1])
    (launch,) = report.launches
    assert launch.counters["threadgroup_bytes_written"] == x.nbytes
    assert launch.counters["threadgroup_bytes_read"] == x.nbytes
    assert launch.counters["threadgroup_barriers"] == 1


def registers_of_a_sort(length: int, num_warps: int) -> int:
    """Of a row of integers, both ways."""
    x = numbers("int32", (1, length))
    up, down = np.zeros_like(x), np.zeros_like(x)
    with triton.launch_options(count=True) as report:
        sorts[(1,)](x, up, down, M=1, N=length, num_warps=num_warps)
    np.testing.assert_array_equal(up, np.sort(x, 1))
    np.testing.assert_array_equal(down, np.sort(x, 1)[:, ::-1])
    (launch,) = report.launches
    return launch.counters["registers_per_thread"]


def test_a_sort_keeps_no_bit_of_the_position_for_each_of_its_stages() -> None:
    """Numbers that live from the first stage to the last would take as many registers as the position has bits."""
    # 100 with the bits.
    assert registers_of_a_sort(2048, num_warps=16) <= 64


def test_no_comparison_of_a_sort_of_integers_depends_on_its_run() -> None:
    """Falling runs are turned and rise. A test of each pair of bits of the position would take 44 registers."""
    assert registers_of_a_sort(512, num_warps=2) <= 36


@triton.jit
def best(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LARGEST: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    x = tl.load(x_ptr + i * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + i * K + tl.arange(0, K)[None, :], tl.topk(x, K, descending=LARGEST))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 2, 8, 32])
@pytest.mark.parametrize("shape", [(1, 32), (4, 64), (2, 256)])
@pytest.mark.parametrize("name", ["int8", "uint32", "float16", "float32", "int64"])
def test_topk(name: str, shape: tuple[int, int], k: int, largest: bool) -> None:
    x = numbers(name, shape)
    out = np.zeros((shape[0], k), x.dtype)
    best[(1,)](x, out, M=shape[0], N=shape[1], K=k, LARGEST=largest)
    expected = np.sort(x, 1)
    np.testing.assert_array_equal(out, expected[:, ::-1][:, :k] if largest else expected[:, :k])


@triton.jit
def merges(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.bitonic_merge(tl.load(x_ptr + i), descending=True))


def test_bitonic_merge() -> None:
    x = numbers("int32", 128)
    x = np.concatenate([np.sort(x[:64]), np.sort(x[64:])[::-1]])
    out = np.zeros_like(x)
    merges[(1,)](x, out, N=128)
    np.testing.assert_array_equal(out, np.sort(x)[::-1])


@pytest.mark.parametrize(
    "name", ["int8", "uint16", "int32", "int64", "uint64", "float16", "float32"]
)
@pytest.mark.parametrize(("num_warps", "size"), [(4, 256), (8, 1024), (16, 1024), (16, 2048)])
def test_a_merge_between_simdgroups(name: str, num_warps: int, size: int) -> None:
    x = numbers(name, (size,))
    x[: size // 2].sort()
    x[size // 2 :] = np.sort(x[size // 2 :])[::-1]
    out = np.zeros_like(x)
    merges[(1,)](x, out, N=size, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.sort(x)[::-1])


def test_two_steps_between_simdgroups_are_one_round_through_memory() -> None:
    """Four steps are between 16 SIMD-groups: two writes in place of four, each with three reads."""
    x = np.arange(1024, dtype=np.int32)
    out = np.zeros_like(x)
    with triton.launch_options(count=True) as report:
        merges[(1,)](x, out, N=1024, num_warps=16)
    (launch,) = report.launches
    counters = launch.counters
    assert counters["threadgroup_bytes_written"] == 2 * x.nbytes
    assert counters["threadgroup_bytes_read"] == 2 * 3 * x.nbytes
    assert counters["threadgroup_barriers"] == 3


@triton.jit
def flips(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, DIM: tl.constexpr):
    i = tl.arange(0, A)[:, None, None] * B + tl.arange(0, B)[None, :, None]
    i = i * C + tl.arange(0, C)[None, None, :]
    tl.store(out_ptr + i, tl.flip(tl.load(x_ptr + i), DIM))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, None])
@pytest.mark.parametrize("shape", [(2, 4, 8), (16, 1, 32), (1, 64, 2)])
@pytest.mark.parametrize("name", ["bool", "int8", "float16", "int64"])
def test_flip(name: str, shape: tuple[int, int, int], dim: int | None) -> None:
    x = numbers(name, shape)
    out = np.zeros_like(x)
    flips[(1,)](x, out, A=shape[0], B=shape[1], C=shape[2], DIM=dim)
    np.testing.assert_array_equal(out, np.flip(x, -1 if dim is None else dim))


@triton.jit
def counts(x_ptr, mask_ptr, all_ptr, some_ptr, N: tl.constexpr, BINS: tl.constexpr):
    i, b = tl.arange(0, N), tl.arange(0, BINS)
    x = tl.load(x_ptr + i)
    tl.store(all_ptr + b, tl.histogram(x, BINS))
    tl.store(some_ptr + b, tl.histogram(x, BINS, mask=tl.load(mask_ptr + i)))


@pytest.mark.parametrize("num_warps", [1, 8])
@pytest.mark.parametrize("bins", [1, 2, 64, 4096, 16384])
@pytest.mark.parametrize("n", [1, 32, 2048])
@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "uint32", "int64"])
def test_histogram(name: str, n: int, bins: int, num_warps: int) -> None:
    rng = np.random.default_rng(n + bins)
    info = np.iinfo(name)
    # Some numbers have no bin; 2^32 and more would have one in 32 bits.
    low, high = max(info.min, -bins // 8 - 1), min(info.max, bins + bins // 4 + 1)
    x = rng.integers(low, high, n, endpoint=True).astype(name)
    if info.bits == 64:
        x[::5] += 1 << 33
    mask = rng.integers(0, 2, n).astype(bool)
    every, some = np.full((2, bins), -1, np.int32)
    counts[(1,)](x, mask, every, some, N=n, BINS=bins, num_warps=num_warps)

    def expected(values: np.ndarray) -> np.ndarray:
        inside = values[(values >= 0) & (values < bins)]
        return np.bincount(inside.astype(np.int64), minlength=bins)

    np.testing.assert_array_equal(every, expected(x))
    np.testing.assert_array_equal(some, expected(x[mask]))


@triton.jit
def collatz(n, limit):
    steps = 0
    while n > 1 and steps < limit:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps, n.to(tl.float32)


@triton.jit
def maps(x_ptr, steps_ptr, rest_ptr, limit, N: tl.constexpr):
    i = tl.arange(0, N)
    steps, rest = tl.map_elementwise(collatz, tl.load(x_ptr + i), limit + i * 0)
    tl.store(steps_ptr + i, steps)
    tl.store(rest_ptr + i, rest)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("n", [1, 64, 1024])
def test_map_with_loops(n: int, num_warps: int) -> None:
    x = np.arange(1, n + 1, dtype=np.int32)
    steps, rest = np.zeros(n, np.int32), np.zeros(n, np.float32)
    maps[(1,)](x, steps, rest, 50, N=n, num_warps=num_warps)
    expected = []
    for value in x.tolist():
        count = 0
        while value > 1 and count < 50:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        expected.append((count, value))
    np.testing.assert_array_equal(steps, [count for count, _ in expected])
    np.testing.assert_array_equal(rest, np.array([value for _, value in expected], np.float32))


@triton.jit
def rotate(a, b, c, d):
    total = 0
    for k in range(a & 7, 8):
        total += k
    return d, a, total, c


@triton.jit
def packed(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + i, tl.map_elementwise(rotate, tl.load(x_ptr + i), pack=4))


@pytest.mark.parametrize("shape", [(1, 4), (2, 2), (16, 32), (128, 1)])
def test_map_of_packs(shape: tuple[int, int]) -> None:
    x = numbers("int32", shape)
    out = np.zeros_like(x)
    packed[(1,)](x, out, M=shape[0], N=shape[1])
    a, _, c, d = x.reshape(-1, 4).T
    totals = np.array([sum(range(start, 8)) for start in a & 7])
    np.testing.assert_array_equal(out.reshape(-1, 4), np.stack([d, a, totals, c], 1))


@triton.jit
def looked_up(place, table_ptr, out_ptr):
    value = 0
    if place % 3 == 0:
        value = tl.load(table_ptr + place)
        tl.store(out_ptr + place, value * 2)
    return value


@triton.jit
def reads(table_ptr, stored_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tables = table_ptr + i * 0
    tl.store(out_ptr + i, tl.map_elementwise(looked_up, i, tables, stored_ptr + i * 0))


def test_map_with_accesses() -> None:
    # Every third place is read and written; the table ends behind the last of them.
    table = np.arange(100, 100 + 62, dtype=np.int32)
    stored, out = np.zeros(64, np.int32), np.zeros(64, np.int32)
    table = np.append(table, [170, 180]).astype(np.int32)
    reads[(1,)](table, stored, out, N=64)
    i = np.arange(64)
    np.testing.assert_array_equal(out, np.where(i % 3 == 0, table, 0))
    np.testing.assert_array_equal(stored, np.where(i % 3 == 0, 2 * table, 0))


@triton.jit
def empty(out_ptr):
    tl.store(out_ptr + tl.program_id(0), 1)


@pytest.mark.parametrize("grid", [(0,), (2, 0), (1, 1, 0), lambda meta: (0, 3)])
def test_a_grid_without_programs_does_nothing(grid: Any) -> None:
    out = np.zeros(4, np.int32)
    empty[grid](out)
    assert not out.any()


@triton.jit
def doubled_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + rows * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    most = tl.topk(x, 1)
    tl.store(out_ptr + rows, most + most)
    if COLUMNS == 1:
        order = tl.sort(x)
        tl.store(out_ptr + ROWS + rows, order + order)


@pytest.mark.parametrize("columns", [1, 4])
def test_one_number_of_a_row_has_32_bits_as_its_maximum_has(columns: int) -> None:
    x, out = np.full((8, columns), 100, np.int8), np.full(16, 200, np.int32)
    doubled_kernel[(1,)](x, out, ROWS=8, COLUMNS=columns)
    np.testing.assert_array_equal(out, np.full(16, 200))
