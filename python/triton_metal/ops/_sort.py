"""The kernels under `sorts` and `indexing`.

What is sorted are numbers of 64 bits: an element's bits, turned so that they order as the elements do, and behind them its place,
so that a sorted key gives both. All differ, so every order of comparisons gives the same result, which is stable. Blocks are sorted in registers; each further
launch merges sorted runs in pairs: an element's place is its own in its run, and the number of smaller ones in the other.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name
from ._launch import launch

#: The most elements that one program sorts.
BLOCK = 2048


@triton.jit
def _key(x, DESCENDING: tl.constexpr):
    """Bits that order as the elements of at most 32 bits do; a NaN comes behind all numbers."""
    if x.dtype.is_floating():
        x = x.to(tl.float32)
        bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)  # -0 is equal to 0
        # Of negative numbers all bits are turned, of others the sign.
        key = (bits ^ ((bits >> 31) | -2147483648)).to(tl.uint32, bitcast=True)
        key = tl.where(x != x, 0xFFFFFFFF, key).to(tl.uint32)
    elif x.dtype.is_int_signed() and x.dtype.primitive_bitwidth > 1:
        key = (x.to(tl.int32) ^ -2147483648).to(tl.uint32, bitcast=True)
    else:
        key = x.to(tl.uint32)
    return ~key if DESCENDING else key


@triton.jit
def _long_key(x, place, DESCENDING: tl.constexpr):
    """A key of 64 bits: the element's, then its place and a bit that is set for -0, which is equal to 0."""
    low = place.to(tl.uint64) << 1
    if x.dtype.is_floating():
        low |= (x.to(tl.float32).to(tl.uint32, bitcast=True) == 0x80000000).to(tl.uint64)
    return (_key(x, DESCENDING).to(tl.uint64) << 32) | low


@triton.jit
def _place(key):
    return (key & 0xFFFFFFFF).to(tl.int64) >> 1


@triton.jit
def _value(key, TYPE: tl.constexpr, DESCENDING: tl.constexpr):
    """The element whose key this is; a NaN is any of them."""
    order = (key >> 32).to(tl.uint32)
    order = ~order if DESCENDING else order
    if TYPE.is_floating():
        bits = order.to(tl.int32, bitcast=True)
        # A number that is not negative has its sign turned on.
        bits = tl.where(bits < 0, bits ^ -2147483648, ~bits)
        negative_zero = (bits == 0) & ((key & 1) != 0)
        bits = tl.where(negative_zero, -2147483648, bits)
        return bits.to(tl.float32, bitcast=True).to(TYPE)
    if TYPE.is_int_signed() and TYPE.primitive_bitwidth > 1:
        return (order.to(tl.int32, bitcast=True) ^ -2147483648).to(TYPE)
    return order.to(TYPE)


@triton.jit
def sort_kernel(
    x_ptr,
    keys_ptr,
    values_ptr,
    places_ptr,
    rows,
    length,
    kept,
    DESCENDING: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Sorts one block of ROWS rows: to keys if there are more blocks, else to the first `kept` values and their places."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (place < length) & (row < rows)
    x = tl.load(x_ptr + row * length + place, mask=mask, other=0)
    key = _long_key(x, place, DESCENDING)
    # What is not there comes last, in the order of its places.
    key = tl.where(mask, key, 0xFFFFFFFF00000000 | (place.to(tl.uint64) << 1))
    key = tl.sort(key, dim=1)
    if keys_ptr is not None:
        tl.store(keys_ptr + row * length + place, key, mask=mask)
    else:
        mask = (place < kept) & (row < rows)
        if places_ptr is not None:
            tl.store(places_ptr + row * kept + place, _place(key), mask=mask)
        if values_ptr is not None:
            x = _value(key, values_ptr.dtype.element_ty, DESCENDING)
            tl.store(values_ptr + row * kept + place, x, mask=mask)


@triton.jit
def merge_kernel(keys_ptr, merged_ptr, length, run, steps, BLOCK: tl.constexpr):
    """Merges sorted runs of `run` keys in pairs; 2 ** steps is more than `run`."""
    row = tl.program_id(0).to(tl.int64) * length
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = place < length
    key = tl.load(keys_ptr + row + place, mask=mask, other=0)
    pair = place // (2 * run) * (2 * run)
    first = tl.where(place - pair < run, pair + run, pair)  # of the other run
    first = tl.minimum(first, length)
    low, high = first, tl.minimum(first + run, length)
    for _ in range(steps):
        middle = (low + high) // 2
        other = tl.load(keys_ptr + row + middle, mask=mask & (low < high), other=0)
        smaller = (low < high) & (other < key)
        high = tl.where(smaller, high, middle)
        low = tl.where(smaller, middle + 1, low)
    own = tl.where(place - pair < run, place - pair, place - pair - run)
    tl.store(merged_ptr + row + pair + own + (low - first), key, mask=mask)


@triton.jit
def sorted_kernel(
    keys_ptr, values_ptr, places_ptr, length, kept, DESCENDING: tl.constexpr, BLOCK: tl.constexpr
):
    """The first `kept` values of sorted keys, and their places."""
    row = tl.program_id(0).to(tl.int64)
    place = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = place < kept
    key = tl.load(keys_ptr + row * length + place, mask=mask, other=0)
    if places_ptr is not None:
        tl.store(places_ptr + row * kept + place, _place(key), mask=mask)
    if values_ptr is not None:
        x = _value(key, values_ptr.dtype.element_ty, DESCENDING)
        tl.store(values_ptr + row * kept + place, x, mask=mask)


def sorted_rows(
    x: Array, rows: int, length: int, kept: int, descending: bool, wanted: str = "values places"
) -> tuple[Array, ...]:
    """Of contiguous `x` (rows, length) the first elements in order and their places, (rows, kept), or one of these."""
    dtypes = {"values": dtype_name(x), "places": "int64"}
    outputs = {f"{name}_ptr": ((rows, kept), dtypes[name]) for name in wanted.split()}
    absent = {f"{name}_ptr": None for name in dtypes if name not in wanted.split()}
    block = min(BLOCK, triton.next_power_of_2(max(length, 2)))
    side = min(triton.next_power_of_2(max(rows, 1)), BLOCK // 4 // block) or 1
    blocks = triton.cdiv(length, block)
    sizes = {"rows": rows, "length": length, "DESCENDING": descending, "BLOCK": block, "ROWS": side}
    grid = (triton.cdiv(rows, side), blocks)
    if blocks <= 1:
        given = {"x_ptr": x, "keys_ptr": None, "kept": kept}
        return launch(sort_kernel, grid, outputs, like=x, **given, **absent, **sizes)
    none = {"values_ptr": None, "places_ptr": None}
    spec = {"keys_ptr": ((rows, length), "uint64")}
    (keys,) = launch(sort_kernel, grid, spec, like=x, x_ptr=x, kept=0, **none, **sizes)
    run, spec, grid = block, {"merged_ptr": ((rows, length), "uint64")}, (rows, blocks)
    while run < length:
        how = {"length": length, "run": run, "steps": run.bit_length(), "BLOCK": block}
        # A permutation writes all of it, which nothing but the kernel's run shows.
        (keys,) = launch(merge_kernel, grid, spec, like=x, fill=0, keys_ptr=keys, **how)
        run *= 2
    grid = (rows, triton.cdiv(kept, block))
    how = {"keys_ptr": keys, "length": length, "kept": kept, "BLOCK": block, **absent}
    return launch(sorted_kernel, grid, outputs, like=x, DESCENDING=descending, **how)
