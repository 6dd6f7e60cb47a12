"""Aggregates, and functions of programs that run while a kernel is compiled."""

import inspect

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.aggregate
class Pair:
    values: tl.tensor
    scale: tl.constexpr = 2

    @triton.jit
    def total(self):
        return tl.sum(self.values, 0) * self.scale

    def doubled(self, _semantic=None):
        return Pair(_semantic.add(self.values, self.values), self.scale)

    def __add__(self, other, _semantic=None):
        return Pair(_semantic.add(self.values, other.values), self.scale)

    @triton.jit
    def __getitem__(self, index):
        return self.values + index

    @staticmethod
    def made(values):
        return Pair(values, tl.constexpr(5))

    @triton.constexpr_function
    def squared(self):
        return self.scale * self.scale


@triton.aggregate
class Outer:
    inner: Pair
    sizes: tl.tuple

    def __init__(self, inner, size, _semantic=None):
        self.inner = inner
        self.sizes = tl.tuple((size, size.value + 1))


@triton.jit
def through_a_call(pair):
    return pair.total()


@triton.jit
def methods(out, n):
    pair = Pair(tl.arange(0, 8), 4)
    for _ in range(n):
        pair = pair + pair
    if n > 100:
        pair = pair.doubled()
    tl.store(out, through_a_call(pair))
    tl.store(out + 1, tl.sum(pair.doubled().values))
    tl.store(out + 2, Pair.made(tl.arange(0, 8)).squared())
    tl.store(out + 3, tl.sum(pair[1]))
    tl.store(out + 4, tl.aggregate_replace(pair, scale=9).scale)
    outer = Outer(Pair(tl.arange(0, 8)), 3)
    tl.store(out + 5, outer.inner.total() + outer.sizes[1])
    tl.static_assert(isinstance(outer, Outer))
    tl.static_assert(not isinstance(outer, tl.tuple))


def test_methods_operators_and_nested_aggregates():
    out = np.zeros(6, np.int32)
    methods[(1,)](out, 2)
    total = 28 * 4
    assert out.tolist() == [total * 4, total * 2, 25, total + 8, 9, 28 * 2 + 4]


def test_outside_of_kernels_fields_are_constexpr_and_read_only():
    @triton.aggregate
    class Shape:
        rows: tl.constexpr
        columns: tl.constexpr = 4

    shape = Shape(2)
    assert (shape.rows.value, shape.columns.value) == (2, 4)
    with pytest.raises(AttributeError, match="cannot assign to field 'rows' on immutable"):
        shape.rows = tl.constexpr(3)
    assert tl.aggregate_replace(shape, rows=7).rows.value == 7
    with pytest.raises(TypeError, match="missing required argument: 'rows'"):
        Shape()


@tl.core.builtin
def add_three(x, count: tl.constexpr, _semantic=None):
    assert isinstance(count, tl.constexpr)
    return tl.core.add(x.to(tl.float32, _semantic=_semantic), count.value, _semantic=_semantic)


OFFSET = 1


@tl.core.extern
def with_global(x, _semantic=None):
    return _semantic.add(x, OFFSET)


@triton.jit
def uses_builtins(out):
    tl.store(out + tl.arange(0, 4), with_global(add_three(tl.arange(0, 4), 3)))


def test_a_program_s_builtin_gets_a_semantic_and_constexpr():
    out = np.zeros(4, np.float32)
    uses_builtins[(1,)](out)
    assert out.tolist() == [4, 5, 6, 7]


def test_a_global_that_a_builtin_reads_is_part_of_the_kernel(monkeypatch):
    out = np.zeros(4, np.float32)
    uses_builtins[(1,)](out)
    monkeypatch.setitem(globals(), "OFFSET", 100)
    uses_builtins[(1,)](out)
    assert out.tolist() == [103, 104, 105, 106]


def test_a_builtin_outside_of_a_kernel_says_what_is_missing():
    with pytest.raises(ValueError, match=r"Did you forget to add @triton\.jit"):
        add_three(1, 2)


@triton.jit
def asks_types(out, n):
    tl.static_assert((4).type == tl.constexpr_type(4))
    tl.static_assert((n, 2).type == tl.tuple_type([tl.int32, tl.constexpr_type(2)]))
    tl.static_assert(n.dtype.kind() == tl.dtype.KIND.INTEGRAL)
    tl.static_assert(tl.int16.get_int_max_value() == 32767)
    tl.store(out, n)


def test_types_of_values_are_values():
    out = np.zeros(1, np.int32)
    asks_types[(1,)](out, 5)
    assert out[0] == 5
    assert tl.str_to_ty("*fp16", None) == tl.pointer_type(tl.float16)
    assert tl.str_to_ty("constexpr", 3) == tl.constexpr_type(3)
    assert [tl.float32.codegen_name(), tl.bfloat16.codegen_name()] == ["float32", "bfloat16"]


def marked(function):
    def wrapper(*args, _semantic, **kwargs):
        return function(*args, _builder=_semantic, **kwargs)

    wrapper.__triton_builtin__ = True
    return wrapper


@marked
def next_power(count, *, _builder=None):
    assert isinstance(count, tl.constexpr)
    return tl.constexpr(triton.next_power_of_2(count.value))


@marked
def only_with_mask(mask, value, *, _builder=None):
    return tl.constexpr(None) if isinstance(mask, tl.constexpr) and mask.value is None else value


@triton.jit
def uses_marked(x, out, COUNT: tl.constexpr, MASK: tl.constexpr):
    size: tl.constexpr = next_power(COUNT)
    places = tl.arange(0, size)
    mask = places < COUNT if MASK else None
    tl.store(out + places, tl.load(x + places, mask, only_with_mask(mask, 7.0)))


@pytest.mark.parametrize("has_mask", [False, True])
def test_a_program_may_set_the_mark_of_a_builtin_itself(has_mask):
    assert "_semantic" in inspect.signature(tl.core.view).parameters
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    uses_marked[(1,)](x, out, 3, has_mask)
    assert out.tolist() == [0, 1, 2, 7 if has_mask else 3]
