"""Reductions over any axis, or over all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import BOOL, F16, F32, I32, U32, DType, Refused
from ..program import Function, Program
from .views import paired


def _known(value: Value, axes: tuple[int, ...], keep: bool) -> np.ndarray | None:
    return None if value.known is None else value.known.all(axis=axes, keepdims=keep)


def _wrapping(
    function: Any, dtype: DType
) -> Callable[[np.ndarray, tuple[int, ...], bool], np.ndarray]:
    """A fold in the dtype itself, where integers wrap around."""

    def fold(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
        if dtype == BOOL:
            return (
                function(x.astype(np.uint8), axis=axes, dtype=np.uint8, keepdims=keep) & 1
            ).astype(bool)
        return function(x, axis=axes, dtype=dtype.numpy, keepdims=keep)

    return fold


def check_whole(x: np.ndarray, axes: tuple[int, ...], dtype: DType) -> None:
    """Sums of floats are exact, in any order, if they are of small whole numbers."""
    wide = x.astype(np.float64)
    if not np.all(np.isfinite(wide)) or np.any(wide != np.trunc(wide)):
        raise Refused("not whole numbers")
    if np.any(np.abs(wide).sum(axis=axes) > 2**dtype.digits):
        raise Refused("the sum may round")
    if np.any((wide == 0) & np.signbit(wide)):
        raise Refused("zeros of both signs")


def total(value: Value, axes: tuple[int, ...], keep: bool) -> Value:
    dtype = value.dtype
    if dtype.is_int and dtype.bits < 32:
        value = m.cast(value, I32 if dtype.is_signed else U32)
    if value.dtype.is_float:
        check_whole(value.data, axes, value.dtype)
        data = value.data.astype(np.float64).sum(axis=axes, keepdims=keep)
        return Value(data.astype(value.dtype.numpy), value.dtype, _known(value, axes, keep))
    data = _wrapping(np.sum, value.dtype)(value.data, axes, keep)
    return Value(data.astype(value.dtype.numpy), value.dtype, _known(value, axes, keep))


def close_total(value: Value, axes: tuple[int, ...], keep: bool) -> Value:
    """A sum of any floats, within the error that its roundings may make."""
    if value.dtype != F32:
        raise Refused("takes float32")
    wide = value.data.astype(np.float64)
    if not np.all(np.isfinite(wide)) or np.abs(wide).sum() > 1e37:
        raise Refused("not finite")
    count = np.prod([value.data.shape[axis] for axis in axes])
    error = np.abs(wide).sum(axis=axes, keepdims=keep) * 2.0**-23 * count + 1e-300
    data = wide.sum(axis=axes, keepdims=keep).astype(np.float32)
    # Nothing is said of a zero: its sign is that of all addends, if they have one.
    return Value(data, F32, m.both(_known(value, axes, keep), data != 0), error)


def extreme(smallest: bool) -> Callable[[Value, tuple[int, ...], bool], Value]:
    def reduce(value: Value, axes: tuple[int, ...], keep: bool) -> Value:
        if value.dtype.bits < 32:
            value = m.cast(value, F32 if value.dtype.is_float else I32)
        known = _known(value, axes, keep)
        if value.dtype.is_float:
            fold = np.fmin.reduce if smallest else np.fmax.reduce
            # NumPy takes a signaling NaN for a number.
            numbers = np.where(np.isnan(value.data), np.nan, value.data)
            data = fold(numbers, axis=axes, keepdims=keep)
            zeros = value.data == 0
            mixed = (zeros & np.signbit(value.data)).any(axis=axes, keepdims=keep) & (
                zeros & ~np.signbit(value.data)
            ).any(axis=axes, keepdims=keep)
            known = m.both(known, ~(mixed & (data == 0)))
        else:
            data = (np.min if smallest else np.max)(value.data, axis=axes, keepdims=keep)
        return Value(np.asarray(data, value.dtype.numpy), value.dtype, known)

    return reduce


def place_of_extreme(
    smallest: bool, first: bool
) -> Callable[[Value, tuple[int, ...], bool], Value]:
    def reduce(value: Value, axes: tuple[int, ...], keep: bool) -> Value:
        x, axis = value.data, axes[0]
        if value.dtype.is_float:
            x = x.astype(np.float64)
            if np.isnan(x).any():
                raise Refused("NaN has no order")
        if value.dtype == BOOL:
            x = x.astype(np.uint8)
        if len(axes) > 1:
            x = x.reshape((x.shape[0], -1))
            axis = 1
        data = (np.argmin if smallest else np.argmax)(x, axis=axis).astype(np.int32)
        best = (np.min if smallest else np.max)(x, axis=axis, keepdims=True)
        known = None if first else (x == best).sum(axis=axis) == 1
        if value.known is not None:
            known = m.both(known, value.known.all(axis=axes))
        if keep:
            shape = [1 if i in axes else s for i, s in enumerate(value.data.shape)]
            data = data.reshape(shape)
            known = None if known is None else known.reshape(shape)
        return Value(data, I32, known)

    return reduce


def bits(function: Any) -> Callable[[Value, tuple[int, ...], bool], Value]:
    def reduce(value: Value, axes: tuple[int, ...], keep: bool) -> Value:
        if value.dtype.is_float:
            raise Refused("bits of floats")
        data = value.data
        for axis in sorted(axes, reverse=True):
            data = function.reduce(data, axis=axis, keepdims=True)
        if not keep:
            data = data.reshape([s for i, s in enumerate(data.shape) if i not in axes])
        return Value(data.astype(value.dtype.numpy), value.dtype, _known(value, axes, keep))

    return reduce


def folded(function: Any) -> Callable[[Value, tuple[int, ...], bool], Value]:
    """A combine function of the program's own, on integers."""

    def reduce(value: Value, axes: tuple[int, ...], keep: bool) -> Value:
        if value.dtype.is_float:
            raise Refused("may round")
        return Value(
            _wrapping(function, value.dtype)(value.data, axes, keep).astype(value.dtype.numpy),
            value.dtype,
            _known(value, axes, keep),
        )

    return reduce


COMBINE = {
    "product": ("return a * b", folded(np.prod)),
    "plus": ("return a + b", folded(np.sum)),
    "both": ("return a & b", bits(np.bitwise_and)),
    "either": ("return a | b", bits(np.bitwise_or)),
    "differ": ("return (a | b) & ~(a & b)", bits(np.bitwise_xor)),
}
KINDS: dict[str, Any] = {
    "tl.sum({0}, {axis}{keep})": total,
    "tl.max({0}, {axis}{keep})": extreme(False),
    "tl.min({0}, {axis}{keep})": extreme(True),
    "tl.xor_sum({0}, {axis}{keep})": bits(np.bitwise_xor),
    "tl.argmax({0}, {axis}{keep})": place_of_extreme(False, True),
    "tl.argmin({0}, {axis}{keep})": place_of_extreme(True, True),
    "tl.argmax({0}, {axis}, tie_break_left=False{keep})": place_of_extreme(False, False),
    "tl.argmin({0}, {axis}, tie_break_left=False{keep})": place_of_extreme(True, False),
    **{f"tl.reduce({{0}}, {{axis}}, {name}{{keep}})": fold for name, (_, fold) in COMBINE.items()},
}


def _helper(program: Program, text: str) -> None:
    for name, (body, _) in COMBINE.items():
        if f", {name}" in text:
            helper = f"@triton.jit\ndef {name}(a, b):\n    {body}\n"
            program.functions[name] = Function(name, [], [], [], helper)


def reduce(program: Program) -> None:
    a = program.pick(lambda t: t.shape != (), unknown=True)
    rng = program.rng
    axis = rng.choice([None, *range(len(a.shape)), *range(len(a.shape)), -1])
    keep = rng.random() < 0.35
    kinds = [k for k in KINDS if not (a.dtype.is_float and ("xor" in k or "reduce" in k))]
    text = rng.choice(kinds)
    fold = KINDS[text]
    if a.dtype.is_float and fold is total and rng.random() < 0.4:
        fold = close_total
    _helper(program, text)
    axes = tuple(range(1, len(a.shape) + 1)) if axis is None else (axis % len(a.shape) + 1,)
    filled = text.replace("{axis}", str(axis)).replace("{keep}", ", keep_dims=True" if keep else "")
    program.compute(filled, lambda x: fold(x, axes, keep), a)


def reduce_joined(program: Program) -> None:
    """Two tiles number by number, as pairs that are reduced."""
    a = program.pick(lambda t: 0 < len(t.shape) < 4)
    b = program.pick(lambda t: t.shape == a.shape and t.dtype == a.dtype)
    name = program.rng.choice(["sum", "sum", "max", "min"])
    fold, rank = KINDS[f"tl.{name}({{0}}, {{axis}}{{keep}})"], len(a.shape)

    pairs = paired(lambda x, y: np.stack([x, y], -1))
    reduced = lambda x, y: fold(pairs(x, y), (rank + 1,), False)  # noqa: E731
    program.compute(f"tl.{name}(tl.join({{0}}, {{1}}), {rank})", reduced, a, b)


def reduce_small(program: Program) -> None:
    """A sum of floats that are small whole numbers."""
    a = program.pick(
        lambda t: t.shape != () and t.dtype.is_int and t.dtype != BOOL and t.dtype.bits >= 8
    )
    dtype = program.rng.choice([F16, F32, F32])
    axis = program.rng.randrange(len(a.shape))

    def fold(x: Value) -> Value:
        low = m.simple(np.subtract)(m.bitwise(np.bitwise_and)(x, 7), 3)
        return total(m.cast(low, dtype), (axis + 1,), False)

    program.compute(f"tl.sum((({{0}} & 7) - 3).to({dtype.text}), {axis})", fold, a)


def reduce_pair(program: Program) -> None:
    """Two tiles reduced together: a sum and a maximum."""
    a = program.pick(lambda t: t.shape != () and t.dtype.is_int and t.dtype != BOOL)
    b = program.pick(lambda t: t.shape == a.shape and t.dtype.is_int)
    axis = program.rng.randrange(len(a.shape))
    helper = "@triton.jit\ndef sum_and_max(a, b, c, d):\n    return a + c, tl.maximum(b, d)\n"
    program.functions["sum_and_max"] = Function("sum_and_max", [], [], [], helper)
    first = program.compute(
        f"tl.reduce(({{0}}, {{1}}), {axis}, sum_and_max)[0]",
        lambda x, y: folded(np.sum)(x, (axis + 1,), False),
        a,
        b,
    )
    del first
    program.compute(
        f"tl.reduce(({{0}}, {{1}}), {axis}, sum_and_max)[1]",
        lambda x, y: Value(y.data.max(axis=axis + 1), y.dtype),
        a,
        b,
    )


def softmax_like(program: Program) -> None:
    """A reduction that goes back into the tile: broadcast along the axis that it went."""
    a = program.pick(lambda t: t.shape != () and t.dtype.is_int and t.dtype.bits >= 32)
    axis = program.rng.randrange(len(a.shape))
    largest = program.compute(
        f"tl.max({{0}}, {axis}, keep_dims=True)", lambda x: extreme(False)(x, (axis + 1,), True), a
    )
    program.compute("{0} - {1}", m.simple(np.subtract), a, largest)
