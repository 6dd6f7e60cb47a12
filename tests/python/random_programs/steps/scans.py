"""Scans along an axis, in both directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import BOOL, I32, U32, Refused
from ..program import Function, Program
from .reductions import check_whole


def _along(
    function: Callable[[np.ndarray], np.ndarray], x: np.ndarray, axis: int, reverse: bool
) -> np.ndarray:
    flipped = np.flip(x, axis) if reverse else x
    scanned = function(flipped)
    return np.ascontiguousarray(np.flip(scanned, axis) if reverse else scanned)


def _known(value: Value, axis: int, reverse: bool) -> np.ndarray | None:
    if value.known is None:
        return None
    return _along(lambda x: np.logical_and.accumulate(x, axis), value.known, axis, reverse)


def running_total(axis: int, reverse: bool) -> Callable[[Value], Value]:
    def scan(value: Value) -> Value:
        dtype = value.dtype
        if dtype.is_int and dtype.bits < 32:
            value = m.cast(value, I32 if dtype.is_signed else U32)
        dtype = value.dtype
        if dtype.is_float:
            check_whole(value.data, (axis,), dtype)
            data = _along(
                lambda x: np.cumsum(x, axis), value.data.astype(np.float64), axis, reverse
            )
        else:
            data = _along(
                lambda x: np.cumsum(x, axis, dtype=dtype.numpy), value.data, axis, reverse
            )
        return Value(data.astype(dtype.numpy), dtype, _known(value, axis, reverse))

    return scan


def _newest(x: np.ndarray, axis: int) -> np.ndarray:
    """The last number up to each place that is not zero."""
    moved = np.moveaxis(x, axis, -1)
    places = np.where(moved != 0, np.arange(moved.shape[-1]), 0)
    places = np.maximum.accumulate(places, axis=-1)
    return np.moveaxis(np.take_along_axis(moved, places, -1), -1, axis)


COMBINE: dict[str, tuple[str, Callable[[np.ndarray, int], np.ndarray]]] = {
    "scan_times": ("return a * b", lambda x, axis: np.cumprod(x, axis, dtype=x.dtype)),
    "scan_either": ("return a | b", np.bitwise_or.accumulate),
    "scan_differ": ("return a ^ b", np.bitwise_xor.accumulate),
    "scan_larger": ("return tl.maximum(a, b)", np.maximum.accumulate),
    "scan_newest": ("return tl.where(b != 0, b, a)", _newest),
    "scan_first": ("return a", lambda x, axis: np.repeat(x.take([0], axis), x.shape[axis], axis)),
}


def scan(program: Program) -> None:
    a = program.pick(lambda t: t.shape != ())
    rng = program.rng
    axis = rng.randrange(len(a.shape))
    reverse = rng.random() < 0.4
    tail = ", reverse=True" if reverse else ""
    if rng.random() < 0.4:
        program.compute(f"tl.cumsum({{0}}, {axis}{tail})", running_total(axis + 1, reverse), a)
        return
    if a.dtype.is_float or a.dtype == BOOL:
        raise Refused("takes integers")
    name = rng.choice(list(COMBINE))
    body, accumulate = COMBINE[name]
    helper = f"@triton.jit\ndef {name}(a, b):\n    {body}\n"
    program.functions[name] = Function(name, [], [], [], helper)

    def fold(value: Value) -> Value:
        data = _along(lambda x: accumulate(x, axis + 1), value.data, axis + 1, reverse)
        return Value(data.astype(value.dtype.numpy), value.dtype)

    program.compute(f"tl.associative_scan({{0}}, {axis}, {name}{tail})", fold, a)


def scan_pair(program: Program) -> None:
    """Two tiles scanned together: the composition of linear functions, which does not commute."""
    a = program.pick(lambda t: t.shape != () and t.dtype in (I32, U32))
    b = program.pick(lambda t: t.shape == a.shape and t.dtype == a.dtype)
    axis = program.rng.randrange(len(a.shape))
    reverse = program.rng.random() < 0.4
    tail = ", reverse=True" if reverse else ""
    helper = "@triton.jit\ndef compose(a, b, c, d):\n    return a * c, b * c + d\n"
    program.functions["compose"] = Function("compose", [], [], [], helper)

    def fold(x: Value, y: Value) -> Value:
        factor, state = (np.moveaxis(v.data, axis + 1, 0) for v in (x, y))
        if reverse:
            factor, state = factor[::-1], state[::-1]
        result = state.copy()
        for i in range(1, len(result)):
            result[i] += result[i - 1] * factor[i]
        data = np.moveaxis(result[::-1] if reverse else result, 0, axis + 1)
        return Value(np.ascontiguousarray(data), y.dtype)

    program.compute(f"tl.associative_scan(({{0}}, {{1}}), {axis}, compose{tail})[1]", fold, a, b)
