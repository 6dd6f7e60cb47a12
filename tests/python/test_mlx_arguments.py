"""Kernels on MLX arrays, in place: values, dtypes, views, and who sees a write."""

from __future__ import annotations

import copy
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
import triton_metal.mlx
from triton_metal import _native
from triton_metal.errors import LaunchTypeError

import mlx_support
from mlx_support import (
    BLOCK,
    STATES,
    add,
    available,
    blocks,
    copy_2d,
    count_into,
    increase,
    increment,
    lazy,
    mx,
    rotate,
    same,
    sample,
)

# Fixtures: arrays in each state, and every test with both ways of a launch.
state = mlx_support.state
way = mlx_support.way
pytestmark = pytest.mark.own_route


# --- values


@pytest.mark.parametrize("n", [1, 127, 128, 1000])
def test_values(n: int, state: Any) -> None:
    a, b = sample(n, 1), sample(n, 2)
    x, y, out = state(a), state(b), state(np.full(n, 7, np.float32))
    add[blocks(n)](x, y, out, n, BLOCK=BLOCK)
    same(out, a + b)
    same(x, a)
    same(y, b)


def test_the_name_is_the_array(state: Any) -> None:
    x = state(sample())
    name = x
    increase(x)
    assert name is x
    same(name, sample() + 1)


def test_several_outputs(state: Any) -> None:
    values = [sample(200, seed) for seed in range(3)]
    x, y, z = (state(value) for value in values)
    for _ in range(4):
        rotate[blocks(200)](x, y, z, 200, BLOCK=BLOCK)
    for array, expected in zip((x, y, z), (1, 2, 0), strict=True):
        same(array, values[expected])


def test_atomic_updates_write(state: Any) -> None:
    counter = state(np.zeros(1, np.int32))
    held = counter[:]
    values = sample(1000)
    for _ in range(3):
        count_into[blocks(1000)](counter, state(values), 1000, BLOCK=BLOCK)
    assert counter.item() == 3 * int((values > 0).sum())
    same(held, [0])


DTYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32".split()


@triton.jit
def both(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, value + value, mask=i < n)


@triton.jit
def negate_bool(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) == 0, mask=i < n)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str, state: Any) -> None:
    dtype = getattr(mx, name)
    if name == "bool_":
        x = state(np.array([True, False, True, True]))
        assert x.dtype == dtype
        negate_bool[(1,)](x, 4, BLOCK=4)
        same(x, [False, True, False, False])
        return
    if "int" in name:
        limits = np.iinfo(name)
        values = np.array([0, 1, 2, limits.max // 2, limits.min // 2, 77, 3], name)
        x = mx.array(values)
        assert x.dtype == dtype
        expected = values + values
    else:
        values = np.array([0.5, -0.0, 1e-3, -7.25, np.inf, -np.inf, 1.5], np.float32)
        x = mx.array(values).astype(dtype)
        expected = np.array((x + x).astype(mx.float32))
    out = mx.zeros((7,), dtype)
    x = x * mx.array(1, dtype) if state is lazy else x
    both[(1,)](x, out, 7, BLOCK=8)
    assert out.dtype == dtype
    wide = np.array(out.astype(mx.float32)) if "float" in name else np.array(out)
    np.testing.assert_array_equal(wide, expected)


def test_large_64_bit_values() -> None:
    x = mx.array(np.array([2**63 - 5, -(2**63)], np.int64))
    increment[(1,)](x, 2, 3, BLOCK=BLOCK)
    same(x, np.array([2**63 - 2, -(2**63) + 3], np.int64))
    x = mx.array(np.array([2**64 - 5], np.uint64))
    increment[(1,)](x, 1, 3, BLOCK=BLOCK)
    same(x, np.array([2**64 - 2], np.uint64))


@pytest.mark.parametrize("name", ["complex64", "float64"])
def test_refused_dtypes(name: str) -> None:
    # float64 arrays exist on MLX's CPU device only.
    with mx.stream(mx.cpu):
        x = mx.ones((4,)).astype(getattr(mx, name))
    with pytest.raises(
        LaunchTypeError, match=rf"increment: argument x is an array of mlx\.core\.{name}"
    ):
        increase(x)
    assert x.dtype == getattr(mx, name)
    assert np.array(x).tolist() == [1, 1, 1, 1]


def test_scalar_arrays_and_empty_arrays(state: Any) -> None:
    x = state(np.float32(4))
    assert x.ndim == 0
    increment[(1,)](x, 1, 2.5, BLOCK=BLOCK)
    assert x.shape == ()
    assert x.item() == 6.5
    empty = state(np.zeros((0, 3), np.float32))
    increment[(1,)](empty, 0, 1.0, BLOCK=BLOCK)
    assert empty.shape == (0, 3)
    assert np.array(empty).shape == (0, 3)
    out = state(sample(5))
    add[(1,)](empty, empty, out, 0, BLOCK=BLOCK)
    same(out, sample(5))


def test_shape_and_dtype_stay() -> None:
    x = mx.zeros((3, 4, 5), mx.bfloat16)
    increment[(1,)](x, 60, 1.0, BLOCK=BLOCK)
    assert x.shape == (3, 4, 5)
    assert x.dtype == mx.bfloat16
    assert (x == 1).all().item()


# --- who sees a write


def test_a_slice_taken_before_and_computed_after(state: Any) -> None:
    x = state(sample())
    part, every, view = x[10:20], x[::3], x.reshape(30, 10)
    increase(x)
    same(part, sample()[10:20])
    same(every, sample()[::3])
    same(view, sample().reshape(30, 10))
    same(x, sample() + 1)


def test_a_slice_computed_before(state: Any) -> None:
    x = state(sample())
    part = x[10:20]
    mx.eval(part)
    increase(x)
    same(part, sample()[10:20])
    same(x, sample() + 1)


def test_a_slice_that_is_written(state: Any) -> None:
    x = state(sample())
    part = x[10:20]
    increase(part, 5.0)
    same(part, sample()[10:20] + 5)
    same(x, sample())
    evaluated = x[20:40]
    mx.eval(evaluated)
    increase(evaluated, 5.0)
    same(evaluated, sample()[20:40] + 5)
    same(x, sample())


def test_a_graph_that_was_built_before(state: Any) -> None:
    x = state(sample())
    doubled = x * 2
    total = mx.sum(x)
    increase(x, 3.0)
    same(doubled, sample() * 2)
    assert total.item() == mx.sum(mx.array(sample())).item()
    same(x, sample() + np.float32(3))


def test_a_graph_that_is_running(state: Any) -> None:
    x = state(np.ones(1 << 16, np.float32))
    deep = x
    for _ in range(30):
        deep = mx.sin(deep) + x
    mx.async_eval(deep)
    increase(x)
    expected = np.ones(1 << 16, np.float32)
    reference = mx.array(expected)
    wanted = reference
    for _ in range(30):
        wanted = mx.sin(wanted) + reference
    same(deep, np.array(wanted))
    same(x, expected + 1)


def test_two_names_for_one_node(state: Any) -> None:
    x = state(sample())
    # Python's += makes a new node; mx.array's methods may return the node itself under a new object.
    twin = mx.stop_gradient(x)
    shape = x.reshape(x.shape)
    kept = mx.contiguous(x)
    increase(x)
    for other in (twin, shape, kept):
        same(other, sample())
    same(x, sample() + 1)


def test_two_objects_of_one_node_as_two_arguments(state: Any) -> None:
    x = state(sample())
    other = x.reshape(x.shape)
    out = x.reshape(x.shape)
    add[blocks(300)](x, other, out, 300, BLOCK=BLOCK)
    same(out, sample() * 2)
    same(x, sample())
    same(other, sample())


def test_arrays_that_share_a_buffer_as_two_arguments(state: Any) -> None:
    x = state(sample(200))
    low, high = x[:100], x[100:]
    mx.eval(low, high)
    add[blocks(100)](low, high, low, 100, BLOCK=BLOCK)
    same(low, sample(200)[:100] + sample(200)[100:])
    same(high, sample(200)[100:])
    same(x, sample(200))


def test_one_array_for_two_arguments_is_one_memory(state: Any) -> None:
    x = state(sample())
    add[blocks(300)](x, x, x, 300, BLOCK=BLOCK)
    same(x, sample() * 2)
    a = state(sample(100, 1))
    b = state(sample(100, 2))
    # x and y are one: x = y, y = z, z = x happen on two arrays, the later store wins.
    rotate[(1,)](a, a, b, 100, BLOCK=BLOCK)
    same(a, sample(100, 2))
    same(b, sample(100, 1))


def test_constants_and_donated_inputs(state: Any) -> None:
    constant = mx.array([1.0, 2.0, 3.0])

    def use() -> Any:
        return constant + 1

    before = use()
    increase(constant, 10.0)
    same(before, [2, 3, 4])
    same(use(), [12, 13, 14])
    # A temporary is donated to the next operation; the written array must not be.
    x = state(sample())
    y = mx.exp(x)
    increase(y)
    z = mx.exp(y)
    del y
    same(z, np.array(mx.exp(mx.exp(mx.array(sample())) + 1)))
    same(x, sample())


def test_broadcast_arrays(state: Any) -> None:
    row = state(sample(8))
    wide = mx.broadcast_to(row, (5, 8))
    increase(wide)
    same(wide, np.broadcast_to(sample(8) + 1, (5, 8)))
    same(row, sample(8))
    one = mx.broadcast_to(mx.array(2.0), (40,))
    mx.eval(one)
    increase(one)
    same(one, np.full(40, 3, np.float32))


def test_views_are_seen_in_row_major_order(state: Any) -> None:
    values = sample(24).reshape(2, 3, 4)
    x = state(values)
    for view, expected in (
        (x.transpose(2, 0, 1), values.transpose(2, 0, 1)),
        (x[:, ::2, 1:], values[:, ::2, 1:]),
        (x[::-1, :, ::-1], values[::-1, :, ::-1]),
        (
            mx.as_strided(x, (3, 2), (1, 5)),
            np.array([[v[0], v[5]] for v in (values.ravel()[i:] for i in range(3))]),
        ),
    ):
        for evaluated in (False, True):
            if evaluated:
                mx.eval(view)
            out = state(np.zeros(expected.size, np.float32))
            increment[(1,)](out, expected.size, 1.0, BLOCK=BLOCK)
            add[(1,)](view, out, out, expected.size, BLOCK=BLOCK)
            same(out, expected.ravel() + 1)
    same(x, values)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_views_of_all_widths(dtype: str, state: Any) -> None:
    values = np.arange(120).reshape(4, 5, 6).astype(dtype)
    view = state(values)[:, 1:4, ::-2].transpose(1, 2, 0)
    mx.eval(view)
    expected = values[:, 1:4, ::-2].transpose(1, 2, 0)
    increment[(1,)](view, expected.size, 1, BLOCK=BLOCK)
    same(view, expected + 1)


def test_a_view_that_is_written(state: Any) -> None:
    values = sample(12).reshape(3, 4)
    x = state(values)
    view = x.T
    increase(view, 2.0)
    same(view, values.T + 2)
    same(x, values)


def test_strides() -> None:
    x = mx.arange(12).reshape(3, 4)
    assert triton_metal.mlx.strides(x) == (4, 1)
    assert triton_metal.mlx.strides(x.T) == (3, 1)
    assert triton_metal.mlx.strides(mx.zeros((2, 0, 3))) == (0, 3, 1)
    assert triton_metal.mlx.strides(mx.array(1.0)) == ()
    view = x.T
    out = mx.zeros((4, 3), mx.int32)
    copy_2d[(4,)](view, out, 4, 3, *triton_metal.mlx.strides(view), BLOCK=4)
    same(out, np.arange(12).reshape(3, 4).T)


@pytest.mark.own_check  # checked launches copy what is not aligned
def test_buffers_are_taken_over(way: str) -> None:
    x = available(sample())
    address = np.array(x, copy=False).ctypes.data
    gc.collect()
    for _ in range(3):
        increase(x)
    mx.eval(x)
    assert np.array(x, copy=False).ctypes.data == address
    view = x[:10]
    increase(x)
    mx.eval(x)
    assert np.array(x, copy=False).ctypes.data != address
    same(view, sample()[:10] + np.float32(1) + np.float32(1) + np.float32(1))


def test_python_assignment_around_launches(state: Any) -> None:
    x = state(sample())
    x[3] = 100
    increase(x)
    x[4] = 200
    view = x[3:6]
    x += 1
    increase(x)
    expected = sample()
    expected[3] = 100
    expected += 1
    expected[4] = 200
    same(view, expected[3:6])
    same(x, (expected + 1) + 1)


def test_copies_in_python_and_subclasses(state: Any) -> None:
    x = state(sample(8))
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    holder = {"weight": x}
    increase(holder["weight"])
    same(x, sample(8) + 1)
    same(shallow, sample(8))
    same(deep, sample(8))

    class Named(mx.array):
        pass

    named = Named([1.0, 2.0])
    increase(named)
    assert type(named) is Named
    same(named, [2, 3])


def test_memory_of_others() -> None:
    values = sample(8)
    x = mx.array(values)
    increase(x)
    np.testing.assert_array_equal(values, sample(8))
    view = memoryview(x)
    increase(x)
    mx.eval(x)
    assert list(view) == (values + 1 + 1).tolist()
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(x)
    increase(x)
    same(x, values + 1 + 1 + 1)
    np.testing.assert_array_equal(tensor.numpy(), values + 1 + 1)


@pytest.fixture
def aligned() -> Iterator[None]:
    """Kernels are compiled for aligned arrays, as for GPU streams, and the arrays are brought there."""
    before = _native.align_mlx_arrays(True)
    yield
    _native.align_mlx_arrays(before)


@pytest.mark.usefixtures("aligned")
@pytest.mark.parametrize("start", [0, 1, 2, 4, 7])
def test_aligned_kernels(start: int, state: Any) -> None:
    values, n = sample(4000), 1984
    first, second = values[start : start + n], values[2000 + start : 2000 + start + n]
    x, y = state(values)[start : start + n], state(values)[2000 + start : 2000 + start + n]
    out = state(values)
    compiled = add[(2,)](x, y, out, n, BLOCK=1024)
    assert compiled.asm["ttir"].count("tt.divisibility = 16") >= 4
    assert "float4" in compiled.asm["metal"]
    same(out[:n], first + second)
    same(out[n:], values[n:])
    same(x, first)
    for _ in range(2):
        increment[(2,)](x, n, 1.0, BLOCK=1024)
    same(x, first + 1 + 1)


@pytest.mark.usefixtures("aligned")
def test_aligned_memory_stays() -> None:
    x = available(sample(4000))
    increase(x)  # brings it to aligned memory
    mx.eval(x)
    address = np.array(x, copy=False).ctypes.data
    assert address % 16 == 0
    for _ in range(5):
        increase(x)
    mx.eval(x)
    assert np.array(x, copy=False).ctypes.data == address
    same(x, sample(4000) + 1 + 1 + 1 + 1 + 1 + 1)


class Model:
    """Arrays of MLX beside NumPy arrays that are copied whenever a value is made: what value semantics say."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.arrays: list[tuple[Any, np.ndarray]] = []
        for _ in range(3):
            self.make()

    def pick(self) -> int:
        return int(self.rng.integers(len(self.arrays)))

    def make(self) -> None:
        values = self.rng.integers(-50, 50, 24).astype(np.float32)
        array = list(STATES.values())[self.rng.integers(3)](values)
        self.arrays.append((array, values.copy()))

    def derive(self) -> None:
        array, values = self.arrays[self.pick()]
        kind = self.rng.integers(7)
        if kind == 0:
            start = int(self.rng.integers(12))
            new = (array.reshape(24)[start : start + 12], values.reshape(24)[start : start + 12])
            new = (mx.concatenate([new[0], new[0]]), np.concatenate([new[1], new[1]]))
        elif kind == 1:
            new = (array.reshape(4, 6).T, values.reshape(4, 6).T)
        elif kind == 2:
            new = (array.reshape(array.shape), values)
        elif kind == 3:
            new = (array * 2 - 1, values * 2 - 1)
        elif kind == 4:
            new = (array.reshape(24)[::-1], values.reshape(24)[::-1])
        elif kind == 5:
            new = (array.reshape(2, 12)[:, :12], values.reshape(2, 12))
        else:
            half = array.reshape(24)[:12]
            new = (
                mx.broadcast_to(half, (2, 12)),
                np.broadcast_to(values.reshape(24)[:12], (2, 12)),
            )
        self.arrays.append((new[0], np.array(new[1], np.float32)))

    def change(self) -> None:
        i, j, k = self.pick(), self.pick(), self.pick()
        x, y, z = (self.arrays[index] for index in (i, j, k))
        flat = lambda pair: pair[1].reshape(24).copy()  # noqa: E731
        kind = self.rng.integers(3)
        if kind == 0:
            increase(x[0], 3.0)
            self.put(i, flat(x) + 3)
        elif kind == 1:
            add[(1,)](x[0], y[0], z[0], 24, BLOCK=BLOCK)
            self.put(k, flat(x) + flat(y))
        elif len({id(x[0]), id(y[0]), id(z[0])}) == 3:
            rotate[(1,)](x[0], y[0], z[0], 24, BLOCK=BLOCK)
            values = flat(x), flat(y), flat(z)
            self.put(i, values[1])
            self.put(j, values[2])
            self.put(k, values[0])

    def put(self, index: int, values: np.ndarray) -> None:
        array, old = self.arrays[index]
        self.arrays[index] = (array, values.reshape(old.shape))

    def step(self) -> None:
        kind = self.rng.integers(10)
        if kind < 3:
            self.derive()
        elif kind < 7:
            self.change()
        elif kind == 7:
            mx.eval(self.arrays[self.pick()][0])
        elif kind == 8:
            mx.async_eval(self.arrays[self.pick()][0])
        elif len(self.arrays) > 3:
            del self.arrays[self.pick()]

    def check(self) -> None:
        for index, (array, values) in enumerate(self.arrays):
            np.testing.assert_array_equal(np.array(array), values, err_msg=f"array {index}")


@pytest.mark.usefixtures("aligned")
@pytest.mark.parametrize("seed", range(40, 60))
def test_random_programs_on_aligned_kernels(seed: int) -> None:
    run_program(seed)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_have_value_semantics(seed: int) -> None:
    run_program(seed)


def run_program(seed: int) -> None:
    model = Model(seed)
    for step in range(40):
        model.step()
        if step % 8 == 7 and seed % 2:
            model.check()
    model.check()
