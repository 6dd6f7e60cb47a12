"""The kernels under `sorts` and `indexing`.

What is sorted are unsigned integers, the *keys*: an element's bits, turned so that they order as the elements do. Where places are wanted,
an element's place stands behind them, so that a sorted key gives both; all keys differ then, so every order of comparisons gives the same
result, which is stable. Where values alone are wanted, equal keys are equal elements.

A program sorts a block in registers. Of several blocks, each further pair of launches merges sorted runs in pairs: the first finds, for each block of the
merged runs, how much of it comes from either run, and the second reads these two parts, one rising and one falling, and sorts them
by a bitonic merge. Of few elements that are kept, a block gives these alone.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name, places_dtype
from ._axes import item_size
from ._launch import launch

#: The most bytes of the keys that one program sorts: half of a threadgroup's memory, through which they go.
BYTES = 16_384
#: The most elements of a row whose places, and a bit, are the lower half of a key of 32 bits.
SHORT = 32_768


@triton.jit
def _order(x, DESCENDING: tl.constexpr):
    """Unsigned bits that order as the elements do, as wide as these: -0 comes before 0, a NaN behind all numbers."""
    WIDTH: tl.constexpr = x.dtype.primitive_bitwidth
    if WIDTH == 1:
        order = x.to(tl.uint8)
    else:
        UNSIGNED: tl.constexpr = (
            tl.uint32 if WIDTH == 32 else tl.uint16 if WIDTH == 16 else tl.uint8
        )
        SIGNED: tl.constexpr = tl.int32 if WIDTH == 32 else tl.int16 if WIDTH == 16 else tl.int8
        LEAST: tl.constexpr = -(1 << (WIDTH - 1))
        if x.dtype.is_floating():
            bits = x.to(SIGNED, bitcast=True)
            # Of negative numbers all bits are turned, of others the sign.
            order = bits ^ ((bits >> (WIDTH - 1)) | LEAST)
            order = tl.where(x != x, -1, order).to(SIGNED).to(UNSIGNED, bitcast=True)
        elif x.dtype.is_int_signed():
            order = (x ^ LEAST).to(SIGNED).to(UNSIGNED, bitcast=True)
        else:
            order = x
    return ~order if DESCENDING else order


@triton.jit
def _element(order, TYPE: tl.constexpr, DESCENDING: tl.constexpr):
    """The element of these bits; a NaN is any of them."""
    WIDTH: tl.constexpr = TYPE.primitive_bitwidth
    order = ~order if DESCENDING else order
    if WIDTH == 1:
        return order.to(TYPE)
    SIGNED: tl.constexpr = tl.int32 if WIDTH == 32 else tl.int16 if WIDTH == 16 else tl.int8
    LEAST: tl.constexpr = -(1 << (WIDTH - 1))
    if TYPE.is_floating():
        bits = order.to(SIGNED, bitcast=True)
        # A number that is not negative has its sign turned on.
        return (bits ^ (~(bits >> (WIDTH - 1)) | LEAST)).to(SIGNED).to(TYPE, bitcast=True)
    if TYPE.is_int_signed():
        return (order.to(SIGNED, bitcast=True) ^ LEAST).to(TYPE)
    return order


@triton.jit
def _key(x, place, KEY: tl.constexpr, DESCENDING: tl.constexpr):
    """An element's key of the type KEY. With a place, -0 and 0 are equal, and the lowest bit is set for -0."""
    if place is None:
        return _order(x, DESCENDING)
    HALF: tl.constexpr = KEY.primitive_bitwidth // 2
    low = place.to(KEY) << 1
    if x.dtype.is_floating():
        wide = x.to(tl.float32)
        low |= (wide.to(tl.uint32, bitcast=True) == 0x80000000).to(KEY)
        x = tl.where(wide == 0.0, 0.0, x).to(x.dtype)
    return (_order(x, DESCENDING).to(KEY) << HALF) | low


@triton.jit
def _store(values_ptr, places_ptr, at, key, mask, PLACED: tl.constexpr, DESCENDING: tl.constexpr):
    """The elements and places of sorted keys, or one of these."""
    HALF: tl.constexpr = key.dtype.primitive_bitwidth // 2 if PLACED else 0
    if places_ptr is not None:
        place = (key & ((1 << HALF) - 1)) >> 1
        tl.store(places_ptr + at, place.to(places_ptr.dtype.element_ty), mask=mask)
    if values_ptr is not None:
        TYPE: tl.constexpr = values_ptr.dtype.element_ty
        WIDTH: tl.constexpr = TYPE.primitive_bitwidth
        UNSIGNED: tl.constexpr = (
            tl.uint32 if WIDTH == 32 else tl.uint16 if WIDTH == 16 else tl.uint8
        )
        value = _element((key >> HALF).to(UNSIGNED), TYPE, DESCENDING)
        if PLACED and TYPE.is_floating():
            value = tl.where((value == 0.0) & ((key & 1) != 0), -0.0, value).to(TYPE)
        tl.store(values_ptr + at, value, mask=mask)


@triton.jit
def sort_kernel(
    x_ptr, given_ptr, keys_ptr, values_ptr, places_ptr, rows, length, kept, key_stride,
    KEY: tl.constexpr, PLACED: tl.constexpr, DESCENDING: tl.constexpr,
    KEPT: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sorts one block of ROWS rows, of elements or of keys: to its first KEPT keys, or to the first `kept` values and places."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (place < length) & (row < rows)
    # What is not there comes last.
    LAST: tl.constexpr = (1 << KEY.primitive_bitwidth) - 1
    if given_ptr is not None:
        key = tl.load(given_ptr + row * length + place, mask=mask, other=LAST)
    else:
        x = tl.load(x_ptr + row * length + place, mask=mask, other=0)
        key = tl.where(mask, _key(x, place if PLACED else None, KEY, DESCENDING), LAST).to(KEY)
    key = tl.sort(key, dim=1) if KEPT == BLOCK else tl.topk(key, KEPT, dim=1, descending=False)
    to = tl.program_id(1) * KEPT + tl.arange(0, KEPT)[None, :]
    if keys_ptr is not None:
        tl.store(keys_ptr + row * key_stride + to, key, mask=(to < key_stride) & (row < rows))
    else:
        mask = (to < kept) & (row < rows)
        _store(values_ptr, places_ptr, row * kept + to, key, mask, PLACED, DESCENDING)


@triton.jit
def split_kernel(
    keys_ptr, splits_ptr, length, run, blocks, steps, BLOCK: tl.constexpr, SIDE: tl.constexpr
):
    """How many of the keys in front of each block of a merged pair of runs are of its first run; 2 ** steps is more than `run`."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    place = tl.minimum(block * BLOCK, length)
    pair = place // (2 * run) * (2 * run)
    one = tl.minimum(run, length - pair)
    two = tl.minimum(run, length - pair - one)
    ahead = place - pair
    first_ptr = keys_ptr + row * length + pair
    low, high = tl.maximum(ahead - two, 0), tl.minimum(ahead, one)
    for _ in range(steps):
        middle = (low + high) // 2
        more = low < high
        a = tl.load(first_ptr + middle, mask=more, other=0)
        b = tl.load(first_ptr + one + (ahead - 1 - middle), mask=more, other=0)
        low, high = (
            tl.where(more & (a <= b), middle + 1, low),
            tl.where(more & (a > b), middle, high),
        )
    tl.store(splits_ptr + row * blocks + block, low, mask=block < blocks)


@triton.jit
def merge_kernel(
    keys_ptr, splits_ptr, merged_ptr, values_ptr, places_ptr, length, run, blocks, kept,
    PLACED: tl.constexpr, DESCENDING: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A block of the keys of sorted runs that are merged in pairs; or the first `kept` values and places, if one pair is left."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    begin = block * BLOCK
    pair = begin // (2 * run) * (2 * run)
    one = tl.minimum(run, length - pair)
    two = tl.minimum(run, length - pair - one)
    ahead = begin - pair
    count = tl.minimum(one + two - ahead, BLOCK)
    # The block's part of the first run, and then of the second.
    first = tl.load(splits_ptr + row * blocks + block)
    behind = tl.load(splits_ptr + row * blocks + tl.minimum(block + 1, blocks - 1))
    of_one = tl.where(ahead + count == one + two, one, behind) - first
    i = tl.arange(0, BLOCK)
    back = BLOCK - 1 - i
    rises, falls = i < of_one, back < count - of_one
    at = tl.where(rises, first + i, one + (ahead - first) + back)
    LAST: tl.constexpr = (1 << keys_ptr.dtype.element_ty.primitive_bitwidth) - 1
    key = tl.load(keys_ptr + row * length + pair + at, mask=rises | falls, other=LAST)
    key = tl.bitonic_merge(key)
    if merged_ptr is not None:
        tl.store(merged_ptr + row * length + begin + i, key, mask=i < count)
    else:
        to = begin + i
        _store(values_ptr, places_ptr, row * kept + to, key, to < kept, PLACED, DESCENDING)


def key_dtype(dtype: str, length: int, placed: bool) -> str:
    """The dtype of the keys of rows of so many elements."""
    if not placed:
        return f"uint{8 * item_size(dtype)}"
    return "uint32" if item_size(dtype) <= 2 and length <= SHORT else "uint64"


def block_of(length: int, itemsize: int) -> int:
    """The elements that a program sorts: a whole row, or a part such that the last one has few that are not there."""
    most = min(BYTES // itemsize, 4096)
    if length <= most:
        return triton.next_power_of_2(max(length, 2))
    if triton.cdiv(length, most) * most - length > length // 4:
        most //= 2
    return most


def simdgroups_of(block: int, itemsize: int) -> dict[str, int]:
    """The SIMD-groups of a large block: with more than 32 bytes of keys, a thread would leave no room for others."""
    count = block * itemsize // 1024
    return {"num_warps": count} if itemsize >= 4 and count >= 8 else {}


_KEYS = {"uint8": tl.uint8, "uint16": tl.uint16, "uint32": tl.uint32, "uint64": tl.uint64}


def sorted_rows(
    x: Array, rows: int, length: int, kept: int, descending: bool, wanted: str = "values places"
) -> tuple[Array, ...]:
    """Of contiguous `x` (rows, length) the first elements in order and their places, (rows, kept), or one of these."""
    dtypes = {"values": dtype_name(x), "places": places_dtype(x)}
    outputs = {f"{name}_ptr": ((rows, kept), dtypes[name]) for name in wanted.split()}
    absent = {f"{name}_ptr": None for name in dtypes if name not in wanted.split()}
    if not rows * length * kept:
        return launch(sort_kernel, (0,), outputs, like=x)
    placed = "places" in wanted
    dtype = key_dtype(dtypes["values"], length, placed)
    form = {"PLACED": placed, "DESCENDING": descending}
    source: dict[str, Any] = {"x_ptr": x, "given_ptr": None}
    while True:
        block = block_of(length, item_size(dtype))
        blocks, some = triton.cdiv(length, block), triton.next_power_of_2(kept)
        some = some if some <= block // 2 else block
        side = min(triton.next_power_of_2(rows), 512 // block) or 1
        sizes = {"rows": rows, "length": length, "KEPT": some, "BLOCK": block, "ROWS": side}
        how = {**source, **form, **sizes, "KEY": _KEYS[dtype]}
        if some == block:
            how |= simdgroups_of(block, item_size(dtype))
        grid = (triton.cdiv(rows, side), blocks)
        if blocks == 1:
            given = {"keys_ptr": None, "kept": kept, "key_stride": 0}
            return launch(sort_kernel, grid, outputs, like=x, **given, **absent, **how)
        of_keys = length if some == block else blocks * some
        spec = {"keys_ptr": ((rows, of_keys), dtype)}
        given = {"values_ptr": None, "places_ptr": None, "kept": 0, "key_stride": of_keys}
        (keys,) = launch(sort_kernel, grid, spec, like=x, **given, **how)
        if some == block:
            break
        source, length = {"x_ptr": None, "given_ptr": keys}, of_keys
    run, how = block, {"length": length, "blocks": blocks, "BLOCK": block}
    merging = {**form, **simdgroups_of(block, item_size(dtype))}
    while True:
        splits = {"splits_ptr": ((rows, blocks), "int32")}
        grid, steps = (rows, triton.cdiv(blocks, 32)), run.bit_length()
        (found,) = launch(
            split_kernel, grid, splits, like=x, keys_ptr=keys, run=run, steps=steps, SIDE=32,
            num_warps=1, **how,
        )  # fmt: skip
        given = {"keys_ptr": keys, "splits_ptr": found, "run": run, "kept": kept, **how, **merging}
        if 2 * run >= length:
            grid = (rows, triton.cdiv(kept, block))
            return launch(merge_kernel, grid, outputs, like=x, merged_ptr=None, **given, **absent)
        spec = {"merged_ptr": ((rows, length), dtype)}
        none = {"values_ptr": None, "places_ptr": None}
        (keys,) = launch(merge_kernel, (rows, blocks), spec, like=x, **given, **none)
        run *= 2
