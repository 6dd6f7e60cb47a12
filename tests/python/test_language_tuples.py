"""Tuples and named tuples: as arguments of a launch, as *args, made in kernels, and gone through."""

from typing import NamedTuple

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


class View(NamedTuple):
    data: object
    shape: tuple


class Closure(NamedTuple):
    fn: tl.constexpr
    captured: tuple


@triton.jit
def read_view(view, out):
    rows = tl.arange(0, 4)[:, None]
    columns = tl.arange(0, 4)[None, :]
    inside = (rows < view.shape[0]) & (columns < view.shape[1])
    values = tl.load(view.data + rows * view.shape[1] + columns, mask=inside, other=0.0)
    tl.store(out, tl.sum(values))


def test_a_launch_takes_a_named_tuple_with_an_array_and_a_shape():
    data, out = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros(1, np.float32)
    read_view[(1,)](View(data, data.shape), out)
    assert out[0] == data.sum()


@triton.jit
def nested(parts, out):
    tl.store(out, parts[0] + parts[1][0])
    tl.static_assert(parts[1][1] is None)
    tl.static_assert(parts[1][2] == 4)
    tl.store(out + 1, tl.load(parts[2]))


def test_numbers_none_and_constexpr_stand_in_nested_tuples():
    out, array = np.zeros(2, np.int32), np.array([9], np.int32)
    nested[(1,)]((20, (3, None, tl.constexpr(4)), array), out)
    assert out.tolist() == [23, 9]


def test_a_tuple_s_values_are_specialised_like_arguments_of_their_own():
    out, array = np.zeros(2, np.int32), np.array([9], np.int32)
    for number in (1, 16, 7, 2**40):
        nested[(1,)]((number, (3, None, tl.constexpr(4)), array), np.zeros(2, np.int64))
    nested[(1,)]((7, (30, None, tl.constexpr(4)), array), out)
    assert out.tolist() == [37, 9]


@triton.jit
def apply(closure, out):
    tl.store(out, closure.fn(2.0, *closure.captured))


@triton.jit
def scaled(value, pointer):
    return value * tl.load(pointer)


def test_a_named_tuple_holds_a_function_and_what_it_takes():
    out, factor = np.zeros(1, np.float32), np.array([5], np.float32)
    apply[(1,)](Closure(scaled, (factor,)), out)
    assert out[0] == 10


@triton.jit
def variadic(out, *values, SCALE: tl.constexpr = 1):
    total = 0
    for value in values:
        total += value
    tl.store(out, total * SCALE)
    tl.store(out + 1, len(values))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_kernel_takes_any_number_of_arguments(count):
    out = np.zeros(2, np.int32)
    variadic[(1,)](out, *range(10, 10 + count), SCALE=2)
    assert out.tolist() == [2 * sum(range(10, 10 + count)), count]


def test_a_missing_argument_of_a_variadic_kernel_is_named():
    with pytest.raises(triton.LaunchTypeError, match=r"variadic: missing .*'out'"):
        variadic[(1,)]()


@triton.jit
def loops(out):
    total = 0
    for index, (a, b) in enumerate(zip((1, 2, 3), (10, 20, 30), strict=True)):
        tl.static_assert(b == 10 * a)
        total += (index + 1) * b
    tl.store(out, total)
    for value in reversed((4, 5)):
        total = value
    tl.store(out + 1, total)
    pair: tl.constexpr = tl.tuple([value * 2 for value in (1, 2, 3) if value != 2])
    tl.static_assert(pair == (2, 6))
    tl.static_assert(isinstance(pair, tl.tuple))
    tl.store(out + 2, (pair + (7, 8))[-1])


def test_loops_go_through_tuples_zip_enumerate_and_reversed():
    out = np.zeros(3, np.int32)
    loops[(1,)](out)
    assert out.tolist() == [140, 4, 8]


@triton.jit
def swap_in_a_loop(out, n):
    view = View(tl.arange(0, 4), (1, n))
    for _ in range(n):
        view = View(view.data + 1, (view.shape[0], view.shape[1] + 1))
    tl.store(out, tl.sum(view.data))
    tl.store(out + 1, view.shape[1])


def test_a_loop_carries_named_tuples_that_the_kernel_makes():
    out = np.zeros(2, np.int32)
    swap_in_a_loop[(1,)](out, 5)
    assert out.tolist() == [6 + 4 * 5, 10]


@triton.jit
def closures(out, n):
    total = 0
    add = lambda value: value + total  # noqa: E731

    def twice(value, by=2):
        product = value * by
        return product

    for _ in range(n):
        total = add(1)
    tl.store(out, total)
    tl.store(out + 1, twice(5) + twice(1, by=3))
    tl.store(out + 2, tl.reduce(tl.arange(0, 8), 0, lambda a, b: a + b))


def test_lambdas_and_local_functions_see_the_variables_of_the_kernel_as_they_are_now():
    out = np.zeros(3, np.int32)
    closures[(1,)](out, 4)
    assert out.tolist() == [4, 13, 28]


def test_a_warmup_takes_dtypes_in_tuples():
    compiled = read_view.warmup(View(tl.float32, (3, 4)), tl.float32, grid=(1,))
    assert "tt.load" in compiled.asm["ttir"]


def test_a_compiled_kernel_takes_the_elements_of_a_named_tuple_by_their_names():
    signature = {"view": View("*fp32", ("i32", "i32")), "out": "*fp32"}
    source = triton.compiler.ASTSource(
        read_view, signature, attrs={(0, 0): [["tt.divisibility", 16]]}
    )
    compiled = triton.compile(source)
    assert "%view.data: !tt.ptr<f32> {tt.divisibility = 16 : i32}" in compiled.asm["ttir"]
    data, out = np.arange(16, dtype=np.float32), np.zeros(1, np.float32)
    compiled[(1, 1, 1)](View(data, (3, 4)), out)
    assert out[0] == data[:12].sum()


@triton.jit
def weighted(pairs, bias, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    (x, w), (y, v) = pairs
    tl.store(out + i, tl.load(x + i) * w + tl.load(y + i) * v + bias[0])


def test_a_launch_with_tuples_asks_python_for_each_structure_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launcher = weighted.launcher
    asked: list[tuple] = []
    ask = launcher.parts_launcher

    def counted(values: list) -> object:
        asked.append(tuple(map(type, values)))
        return ask(values)

    monkeypatch.setattr(launcher, "parts_launcher", counted)
    monkeypatch.setattr(launcher, "launch_parts", None)
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    for w, v, bias in ((2.0, 3.0, (1,)), (1.0, 5.0, (4,)), (0.5, 0.25, (1.5, 7))):
        out = np.zeros(8, np.float32)
        seen: list[set[str]] = []

        def grid(meta: dict, seen: list = seen) -> tuple[int]:
            seen.append(set(meta))
            return (1,)

        weighted[grid](((x, w), (y, v)), bias, out, BLOCK=8, num_warps=1)
        np.testing.assert_array_equal(out, x * w + y * v + bias[0])
        assert seen == [{"pairs", "bias", "out", "BLOCK"}]
    assert len(asked) == 2  # the last bias has one element more


def test_tuples_of_another_class_are_another_structure() -> None:
    class Pair(NamedTuple):
        first: object
        second: object

    @triton.jit
    def named(pair, out):
        if hasattr(pair, "first"):
            tl.store(out, pair.first)
        else:
            tl.store(out, pair[1])

    out = np.zeros(1, np.int32)
    for pair, expected in (((3, 4), 4), (Pair(3, 4), 3), ((5, 6), 6)):
        named[(1,)](pair, out)
        assert out[0] == expected
