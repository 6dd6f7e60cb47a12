"""Slices whose loads and stores may meet in memory: they are made only where none touches what another one stores."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import tl, triton
from test_slices import integers, is_sliced


@triton.jit
def states_kernel(
    k_ptr, v_ptr, h_ptr, STEPS: tl.constexpr, SHIFT: tl.constexpr, T: tl.constexpr, K: tl.constexpr, V: tl.constexpr
):  # fmt: skip
    """A state of KxV numbers that products are added to. Each program stores its state in each step, SHIFT behind the last one."""
    i, j, t = tl.arange(0, K), tl.arange(0, V), tl.arange(0, T)
    first = tl.program_id(0) * STEPS
    h = tl.zeros((K, V), tl.float32)
    for step in range(STEPS):
        place = (first + step) * SHIFT
        tl.store(h_ptr + place + i[:, None] * V + j[None, :], h)
        k = tl.load(k_ptr + (first + step) * T * K + t[None, :] * K + i[:, None])
        v = tl.load(v_ptr + (first + step) * T * V + t[:, None] * V + j[None, :])
        h = tl.dot(k, v, h)


def states(k: np.ndarray, v: np.ndarray, shift: int, size: int) -> np.ndarray:
    """What the steps of one program leave, in their order."""
    found = np.zeros(size, np.float32)
    h = np.zeros((k.shape[2], v.shape[2]), np.float32)
    for step in range(len(k)):
        found[step * shift : step * shift + h.size] = h.reshape(-1)
        h = h + k[step].T.astype(np.float32) @ v[step].astype(np.float32)
    return found


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        (64 * 128, True),
        (65 * 128, True),
        (128, True),  # rows that the next step overwrites, of the same slice
        (64, False),  # columns of the other slice
        (64 * 128 + 16, False),
        (0, True),
    ],
)
def test_what_each_step_of_a_slice_stores(shift: int, expected: bool) -> None:
    rng = np.random.default_rng(20)
    steps, t, k, v = 4, 16, 64, 128
    x, y = integers(rng, steps, t, k), integers(rng, steps, t, v)
    h = np.zeros((steps - 1) * shift + k * v, np.float32)
    kernel = states_kernel[(1,)](
        x, y, h, STEPS=steps, SHIFT=shift, T=t, K=k, V=v, num_warps=2
    )  # fmt: skip
    assert is_sliced(kernel, expected)
    np.testing.assert_array_equal(h, states(x, y, shift, h.size))


def test_states_of_several_programs() -> None:
    rng = np.random.default_rng(21)
    programs, steps, t, k, v = 3, 4, 16, 64, 128
    x, y = integers(rng, programs * steps, t, k), integers(rng, programs * steps, t, v)
    h = np.full((programs * steps, k * v), np.nan, np.float32)
    kernel = states_kernel[(programs,)](
        x, y, h, STEPS=steps, SHIFT=k * v, T=t, K=k, V=v, num_warps=2
    )  # fmt: skip
    assert is_sliced(kernel, True)
    for program in range(programs):
        part = slice(program * steps, (program + 1) * steps)
        expected = states(x[part], y[part], k * v, steps * k * v)
        np.testing.assert_array_equal(h[part].reshape(-1), expected)


@triton.jit
def columns_kernel(
    x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    BARRIER: tl.constexpr,
):  # fmt: skip
    """Columns divided by their sums, stored so many rows and columns away; the ends come round."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * WIDTH + j[None, :])
    x = x / tl.sum(x, 0)[None, :]
    if BARRIER:
        tl.debug_barrier()
    to = ((i + ROWS) % M)[:, None] * WIDTH
    to += ((j + COLUMNS) % N)[None, :] if COLUMNS else j[None, :]
    tl.store(y_ptr + to, x)


def columns_of_a_power(rng: np.random.Generator, m: int, n: int) -> np.ndarray:
    """Columns whose sums are 1024, so that quotients are exact."""
    x = rng.integers(1, 4, (m, n)).astype(np.float32)
    x[0] += 1024 - x.sum(0)
    return x


@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "expected"), [(0, 0, True), (5, 0, True), (0, 64, False), (0, 8, False)]
)
def test_slices_in_place(rows: int, columns: int, expected: bool, barrier: bool) -> None:
    m, n = 256, 128
    x = columns_of_a_power(np.random.default_rng(22), m, n)
    right = np.roll(x / 1024, (rows, columns), (0, 1))
    kernel = columns_kernel[(1,)](
        x, x, M=m, N=n, WIDTH=n, ROWS=rows, COLUMNS=columns, BARRIER=barrier, num_warps=2
    )  # fmt: skip
    assert is_sliced(kernel, expected)
    np.testing.assert_array_equal(x, right)


@pytest.mark.parametrize(("width", "expected"), [(256, True), (192, False), (129, False)])
def test_rows_in_place_that_are_not_as_long_as_the_tile(width: int, expected: bool) -> None:
    """Rows of 192 numbers do not begin at multiples of 128: the proof does not see that they are apart."""
    m, n = 256, 128
    x = columns_of_a_power(np.random.default_rng(23), m, width)
    right = x.copy()
    right[:, :n] /= 1024
    kernel = columns_kernel[(1,)](
        x, x, M=m, N=n, WIDTH=width, ROWS=0, COLUMNS=0, BARRIER=False, num_warps=2
    )  # fmt: skip
    assert is_sliced(kernel, expected)
    np.testing.assert_array_equal(x, right)


@pytest.mark.parametrize("offset", [1, 64, 128])
def test_arrays_that_overlap_are_not_sliced(offset: int) -> None:
    m, n = 256, 128
    memory = np.zeros(m * n + 128, np.float32)
    memory[: m * n] = columns_of_a_power(np.random.default_rng(24), m, n).reshape(-1)
    x = memory[: m * n].reshape(m, n)
    y = memory[offset : offset + m * n].reshape(m, n)
    right = x / 1024
    kernel = columns_kernel[(1,)](
        x, y, M=m, N=n, WIDTH=n, ROWS=0, COLUMNS=0, BARRIER=False, num_warps=2
    )  # fmt: skip
    assert is_sliced(kernel, False)
    np.testing.assert_array_equal(y, right)


@triton.jit
def halves_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, SHIFT: tl.constexpr):
    """Columns divided by their sums, and twice that, SHIFT numbers behind."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    x = x / tl.sum(x, 0)[None, :]
    to = y_ptr + i[:, None] * (2 * N) + j[None, :]
    tl.store(to, x)
    tl.store(to + SHIFT, 2 * x)


@pytest.mark.parametrize(
    ("shift", "expected"), [(128, True), (256, True), (0, True), (64, False), (1, False)]
)
def test_two_stores_to_one_array(shift: int, expected: bool) -> None:
    m, n = 256, 128
    x = columns_of_a_power(np.random.default_rng(25), m, n)
    y = np.zeros(m * 2 * n + shift, np.float32)
    right = y.copy()
    place = np.arange(m)[:, None] * 2 * n + np.arange(n)
    right[place] = x / 1024
    right[place + shift] = x / 512
    kernel = halves_kernel[(1,)](x, y, M=m, N=n, SHIFT=shift, num_warps=2)
    assert is_sliced(kernel, expected)
    np.testing.assert_array_equal(y, right)


@triton.jit
def gated_kernel(
    x_ptr, y_ptr, g_ptr, z_ptr, M: tl.constexpr, K: tl.constexpr, LOADED: tl.constexpr
):  # fmt: skip
    """Products of rows with rows, times a power of two by the difference of what both rows have."""
    i, k = tl.arange(0, M), tl.arange(0, K)
    if LOADED:
        g = tl.load(g_ptr + i)
    else:
        g = (i % 4).to(tl.float32) * 2
    x = tl.load(x_ptr + i[:, None] * K + k[None, :])
    y = tl.load(y_ptr + i[None, :] * K + k[:, None])
    z = tl.dot(x, y) * tl.exp2(g[:, None] - g[None, :])
    tl.store(z_ptr + i[:, None] * M + i[None, :], tl.where(i[:, None] >= i[None, :], z, 0))


@pytest.mark.parametrize("loaded", [False, True])
def test_what_rows_and_columns_have_once(loaded: bool) -> None:
    m, k = 128, 32
    rng = np.random.default_rng(26)
    x, y = integers(rng, m, k), integers(rng, m, k)
    g = rng.integers(-4, 5, m).astype(np.float32) if loaded else np.arange(m) % 4 * 2.0
    g = g.astype(np.float32)
    z = np.full((m, m), np.nan, np.float32)
    kernel = gated_kernel[(1,)](x, y, g, z, M=m, K=k, LOADED=loaded, num_warps=2)
    assert is_sliced(kernel, True)
    expected = (x.astype(np.float32) @ y.T.astype(np.float32)) * np.exp2(g[:, None] - g[None, :])
    np.testing.assert_allclose(z, np.tril(expected), rtol=1e-5)


@triton.jit
def beside_kernel(x_ptr, a_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Rows over their sums, and between what they need something else that is loaded and stored."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    sums = tl.sum(x, 1)
    a = tl.load(a_ptr + k)
    tl.store(z_ptr + k, a / tl.sum(a, 0))
    tl.store(y_ptr + i[:, None] * N + j[None, :], x / sums[:, None])


@pytest.mark.parametrize("case", ["apart", "z in y", "a in y", "z in x"])
def test_what_stands_between_the_slices(case: str) -> None:
    m, n, k = 128, 256, 16
    rng = np.random.default_rng(27)
    x = np.ascontiguousarray(columns_of_a_power(rng, n, m).T)
    a, y, z = np.full(k, 4, np.float32), np.full((m, n), 8, np.float32), np.zeros(k, np.float32)
    right, before = x / 1024, x.copy()
    if case == "z in y":
        z = y  # its first numbers are overwritten by the rows
    elif case == "a in y":
        a = y
    elif case == "z in x":
        z = x
    kernel = beside_kernel[(1,)](x, a, y, z, M=m, N=n, K=k, num_warps=2)
    # a is loaded in front of the slices; the rows of x are all there before z is stored, behind them.
    assert is_sliced(kernel, case != "z in y")
    np.testing.assert_array_equal(y, right)
    if z is not y:
        np.testing.assert_array_equal(z.reshape(-1)[:k], np.full(k, 1 / k, np.float32))
    if z is x:
        np.testing.assert_array_equal(x.reshape(-1)[k:], before.reshape(-1)[k:])


@triton.jit
def both_kernel(x_ptr, a_ptr, b_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Products of a rest of rows, first the columns and then the rows in slices."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + i[:, None] * K + k[None, :])
    x = x / tl.sum(x, 1)[:, None]
    a = tl.load(a_ptr + k[:, None] * K + k[None, :])
    p = tl.dot(x, a)
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(y_ptr + i[:, None] * N + j[None, :], tl.dot(p, b))


@pytest.mark.parametrize(("m", "n"), [(128, 128), (64, 256), (256, 64)])
def test_slices_of_rows_and_columns(m: int, n: int) -> None:
    k = 32
    rng = np.random.default_rng(28)
    x = rng.integers(1, 4, (m, k)).astype(np.float32)
    x[:, 0] += 256 - x.sum(1)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((k, k), (k, n)))
    y = np.full((m, n), np.nan, np.float32)
    kernel = both_kernel[(1,)](x, a, b, y, M=m, N=n, K=k, num_warps=1)
    assert is_sliced(kernel, True)
    np.testing.assert_array_equal(y, x / 256 @ a @ b)


@triton.jit
def hinted_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, HINT: tl.constexpr):
    """Columns over their sums in place, of which the program says that their addresses are multiples."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    pointers = x_ptr + i[:, None] * N + j[None, :]
    if HINT:
        pointers = tl.multiple_of(pointers, (1, HINT))
    x = tl.load(pointers)
    tl.store(pointers, x / tl.sum(x, 0)[None, :])


@pytest.mark.parametrize("hint", [0, 4])
def test_what_a_program_says_of_addresses_is_not_taken_for_places(hint: int) -> None:
    x = columns_of_a_power(np.random.default_rng(29), 256, 128)
    right = x / 1024
    kernel = hinted_kernel[(1,)](x, x, M=256, N=128, HINT=hint, num_warps=2)
    assert is_sliced(kernel, not hint)
    np.testing.assert_array_equal(x, right)


@triton.jit
def turned_in_place_kernel(x_ptr, M: tl.constexpr, N: tl.constexpr):
    """Writes the rows of a matrix, one after the other, over its columns."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] + j[None, :] * M)
    tl.store(x_ptr + tl.arange(0, M * N), tl.reshape(x, (M * N,)) + 1.0)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(("m", "n"), [(128, 64), (32, 256)])
def test_blocks_of_two_lengths_in_place(m: int, n: int, num_warps: int) -> None:
    """A part of the places of one shape is another part of the array than that of the other shape."""
    x = np.arange(m * n, dtype=np.float32)
    wanted = x.reshape(n, m).T.reshape(-1) + 1
    kernel = turned_in_place_kernel[(1,)](x, m, n, num_warps=num_warps)
    assert is_sliced(kernel, False)
    np.testing.assert_array_equal(x, wanted)
