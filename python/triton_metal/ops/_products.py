"""How a matrix product is launched: dimensions of batches are joined, and a kernel, a tile and parts of K are chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, contiguous, dtype_name, is_torch, is_whole, size_of, strides
from ._axes import is_wide
from ._choices import named
from ._far import FAR_FROM, reach
from ._launch import launch
from ._matrix_kernels import (
    add_parts_kernel,
    column_sums_kernel,
    matmul_kernel,
    vector_along_columns_kernel,
    vector_along_rows_kernel,
)
from ._product_families import ADD_PARTS
from ._tiles import Side, Tile, matmul_tile, parts_of, vector_tile

#: How bytes of a format are read. Arrays with dtypes of 8-bit floats are these already.
FORMATS = {"e4m3": tl.float8e4nv, "e5m2": tl.float8e5}
FLOATS8 = ("float8_e4m3fn", "float8_e5m2")
#: The dtypes in which numbers are multiplied.
TYPES = {
    "int8": tl.int8,
    "float16": tl.float16,
    "bfloat16": tl.bfloat16,
    "float32": tl.float32,
}
_BYTES = {"int8": 1, "float16": 2, "bfloat16": 2, "float32": 4}


def product_type(a: str, b: str) -> str:
    """The dtype in which numbers of two dtypes are multiplied: one that has all numbers of both."""
    wide = [name for name in (a, b) if name not in FLOATS8]
    if not wide:
        return "float16"
    return wide[0] if len(set(wide)) == 1 else "float32"


@dataclass(frozen=True)
class Dimension:
    """A dimension of the batch: its size, the operands' steps (0 broadcasts), and whether the result adds it up."""

    size: int
    a_step: int
    b_step: int
    summed: bool

    def joined(self, inner: Dimension) -> Dimension | None:
        """This dimension and the next as one, if their matrices lie at equal distances."""
        if self.summed != inner.summed:
            return None
        if (self.a_step, self.b_step) != (inner.a_step * inner.size, inner.b_step * inner.size):
            return None
        return replace(inner, size=self.size * inner.size)


@dataclass
class Plan:
    """Sizes and strides of a product, and the dimensions of its batch that the result has and those that it adds up."""

    m: int
    n: int
    k: int
    am: int
    ak: int
    bk: int
    bn: int
    batch: list[Dimension]
    sums: list[Dimension]

    @property
    def matrices(self) -> int:
        """How many products the result has."""
        return size_of(tuple(each.size for each in self.batch))

    @property
    def items(self) -> int:
        """How many products are added up for each of these."""
        return size_of(tuple(each.size for each in self.sums))

    def far(self, m: int, n: int, k: int) -> bool:
        """Whether an offset in blocks of so many rows, columns and numbers of K may need 64 bits; where blocks begin always has them."""
        m, n, k = min(m, self.m), min(n, self.n), min(k, self.k)
        # From block to block, pointers go on by K's.
        a, b = reach((m, k + 1), (self.am, self.ak)), reach((k + 1, n), (self.bk, self.bn))
        return max(a, b, self.m, self.n, self.k) >= FAR_FROM


def _dimensions(given: list[Dimension], sizes: str, first: str, second: str) -> dict[str, Any]:
    """What kernels take of dimensions."""
    return {
        sizes: tuple(each.size for each in given),
        first: tuple(each.a_step for each in given),
        second: tuple(each.b_step for each in given),
    }


def broadcast_batch(a: Array, b: Array) -> tuple[int, ...]:
    """The batch of the product of two arrays; ValueError if theirs do not fit."""
    return np.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))


def plan_product(
    a: Array, b: Array, transpose_a: bool, transpose_b: bool, batch: tuple[int, ...]
) -> Plan:
    """The plan of a product whose batch is added up to ``batch``, which has 1 or nothing for what is added up."""
    (am, ak), (bk, bn) = strides(a)[-2:], strides(b)[-2:]
    (m, k), n = a.shape[-2:], b.shape[-2 if transpose_b else -1]
    if transpose_a:
        (m, k), (am, ak) = (k, m), (ak, am)
    if transpose_b:
        bk, bn = bn, bk
    sizes = broadcast_batch(a, b)
    wanted = (1,) * (len(sizes) - len(batch)) + tuple(batch)
    dimensions: list[Dimension] = []
    for place, size in enumerate(sizes):
        a_step, b_step = (
            strides(x)[place - len(sizes) + x.ndim - 2]
            if place >= len(sizes) - x.ndim + 2 and x.shape[place - len(sizes) + x.ndim - 2] != 1
            else 0
            for x in (a, b)
        )
        if size != 1:
            dimensions.append(Dimension(size, a_step, b_step, wanted[place] != size))
    joined: list[Dimension] = []
    for each in sorted(dimensions, key=lambda each: each.summed):
        both = joined[-1].joined(each) if joined else None
        joined[-1:] = [both] if both else [*joined[-1:], each]
    batches, sums = ([each for each in joined if each.summed == summed] for summed in (False, True))
    plan = Plan(m, n, k, am, ak, bk, bn, batches, [])
    # What is added up and follows K is more of K; rows of more matrices times the same one are more rows.
    for each in sums:
        if plan.k == 1:
            plan.ak, plan.bk = each.a_step, each.b_step
        if each.size == 0 or (each.a_step, each.b_step) == (plan.k * plan.ak, plan.k * plan.bk):
            plan.k *= each.size
        else:
            plan.sums.append(each)
    if batches and batches[-1].b_step == 0:
        if m == 1:
            plan.am = batches[-1].a_step
        if batches[-1].a_step == m * plan.am:
            plan.m *= batches.pop().size
    return plan


def readable(x: Array) -> Array:
    """``x``, or a copy of it if its strides are no multiples of an element or its bytes are swapped."""
    return x if is_whole(x) else np.array(x, x.dtype.newbyteorder("="), order="C")


def product(
    a: Array,
    b: Array,
    transpose_a: bool,
    transpose_b: bool,
    batch: tuple[int, ...],
    out_dtype: str,
    *,
    bias: Array | None = None,
    row_scale: Array | None = None,
    column_scale: Array | None = None,
    activation: str = "",
    keep: bool = False,
    split_k: int = 0,
    precision: str = "ieee",
    a_format: str = "",
    b_format: str = "",
) -> tuple[Array, ...]:
    """activation(a b · scales + bias) with this batch; with ``keep`` also what the activation is given."""
    a, b = readable(a), readable(b)
    plan = plan_product(a, b, transpose_a, transpose_b, batch)
    type_a, type_b = (
        "float8_e4m3fn" if f else dtype_name(x) for x, f in ((a, a_format), (b, b_format))
    )
    multiplied = product_type(type_a, type_b)
    accumulator = "int32" if multiplied == "int8" else "float32"
    shape = (*batch, a.shape[-1 if transpose_a else -2], plan.n)
    names = ("c_ptr", "z_ptr") if keep else ("c_ptr",)
    outputs: dict[str, Any] = dict.fromkeys(names, (shape, out_dtype))
    ending: dict[str, Any] = {
        "bias_ptr": None if bias is None else contiguous(bias),
        "row_scale_ptr": row_scale,
        "column_scale_ptr": column_scale,
        **({} if keep else {"z_ptr": None}),
    }
    vector = (plan.m == 1 or plan.n == 1) and split_k < 2 and not plan.sums
    tile = None if vector else _tile_of(plan, a, b, multiplied, out_dtype, split_k)
    parts = 1 if tile is None else tile.parts
    whole = parts == 1
    if not whole:
        made: dict[str, Any] = {"c_ptr": ((parts, *shape), accumulator)}
        plain: dict[str, Any] = dict.fromkeys(ending) | {"z_ptr": None}
        # Empty results have no parts.
        if not size_of(shape):
            return launch(add_parts_kernel, (0,), outputs, like=a)
    kernel_end = {**(ending if whole else plain), "ACTIVATION": activation if whole else ""}
    types = {"ACCUMULATOR": TYPES.get(accumulator, tl.int32)}
    formats = FORMATS.get(a_format), FORMATS.get(b_format)
    if tile is None:
        found = _launch_vector(a, b, plan, outputs if whole else made, formats, kernel_end | types)
    else:
        size = triton.cdiv(triton.cdiv(plan.k, parts), tile.k) * tile.k
        if plan.sums:
            size = triton.cdiv(plan.items, parts)
        tiles_m, tiles_n = triton.cdiv(plan.m, tile.m), triton.cdiv(plan.n, tile.n)
        programs = tiles_m * tiles_n * parts * plan.matrices
        (group,) = named(GROUPING) or (_group_of(tiles_m, programs),)
        found = launch(
            matmul_kernel,
            (tiles_n * group, triton.cdiv(tiles_m, group), parts * plan.matrices),
            outputs if whole else made,
            like=a,
            a_ptr=a,
            b_ptr=b,
            M=plan.m,
            N=plan.n,
            K=plan.k,
            part_size=size,
            matrices=plan.matrices,
            **_dimensions(plan.batch, "batches", "a_steps", "b_steps"),
            items=plan.items,
            **_dimensions(plan.sums, "sums", "a_sum_steps", "b_sum_steps"),
            stride_am=plan.am,
            stride_ak=plan.ak,
            stride_bk=plan.bk,
            stride_bn=plan.bn,
            BLOCK_M=tile.m,
            BLOCK_N=tile.n,
            BLOCK_K=tile.k,
            GROUP_M=group,
            SPLIT=parts > 1,
            TYPE=TYPES[multiplied],
            A_FORMAT=formats[0],
            B_FORMAT=formats[1],
            PRECISION=precision,
            FAR=plan.far(tile.m, tile.n, tile.k),
            num_warps=tile.warps,
            **types,
            **kernel_end,
        )
    if whole:
        return found
    return add_parts(found[0], outputs, plan.n, activation, ending)


#: A choice that can be named: how many rows of tiles are a group.
GROUPING = "rows of tiles of a group"
#: Of so many programs a chip has most at once, and neighbours in time say little.
FEW_PROGRAMS = 512


def _group_of(tiles_m: int, programs: int) -> int:
    """How many rows of tiles are a group: as many that few groups have more rows than there are, and of few programs none."""
    share = 0 if programs <= FEW_PROGRAMS else tiles_m
    return next(group for group in (8, 4, 2, 1) if -tiles_m % group * 4 <= share)


def _tile_of(plan: Plan, a: Array, b: Array, multiplied: str, out_dtype: str, split_k: int) -> Tile:
    """The tile of a plan."""
    return matmul_tile(
        a,
        multiplied,
        Side(plan.am, plan.ak, _itemsize(a)),
        Side(plan.bk, plan.bn, _itemsize(b)),
        _BYTES.get(out_dtype, 4),
        plan.m,
        plan.n,
        plan.k,
        plan.items,
        plan.matrices,
        split_k or None,
    )


def _itemsize(x: Array) -> int:
    return x.element_size() if is_torch(x) else x.itemsize


def add_parts(
    parts: Array, outputs: dict[str, Any], n: int, activation: str, ending: dict[str, Any]
) -> tuple[Array, ...]:
    """The outputs, from sums of parts of them."""
    size = size_of(tuple(parts.shape)[1:])
    dtype = outputs["c_ptr"][1]
    block, warps = ADD_PARTS.choose(parts, ADD_PARTS.kind(dtype), size, parts.shape[0])
    return launch(
        add_parts_kernel,
        (triton.cdiv(size, block),),
        outputs,
        like=parts,
        parts_ptr=parts,
        parts=parts.shape[0],
        size=size,
        N=n,
        ACTIVATION=activation,
        WIDE=is_wide((size,)),
        BLOCK=block,
        num_warps=warps,
        **ending,
    )


def _launch_vector(
    a: Array,
    b: Array,
    plan: Plan,
    outputs: dict[str, Any],
    formats: tuple[Any, Any],
    arguments: dict[str, Any],
) -> tuple[Array, ...]:
    """A product with one row or one column: the other operand is the matrix."""
    left = plan.m == 1
    matrix = b if left else a
    rows = plan.n if left else plan.m
    stride_r, stride_k = (plan.bn, plan.bk) if left else (plan.am, plan.ak)
    along_rows = stride_r != 1 or stride_k == 1
    itemsize = _itemsize(matrix)
    # Numbers that one access reads are there together, or none is: masks of single ones take registers.
    ends, step = (plan.k, stride_r) if along_rows else (rows, stride_k)
    aligned = step * itemsize % 16 == 0 and ends * itemsize % 16 == 0
    tile = vector_tile(along_rows, rows, plan.k, itemsize, aligned)
    steps = ("x_steps", "m_steps") if left else ("m_steps", "x_steps")
    return launch(
        vector_along_rows_kernel if along_rows else vector_along_columns_kernel,
        (triton.cdiv(rows, tile.rows), plan.matrices),
        outputs,
        like=a,
        m_ptr=matrix,
        x_ptr=a if left else b,
        R=rows,
        K=plan.k,
        **_dimensions(plan.batch, "batches", *steps),
        stride_r=stride_r,
        stride_k=stride_k,
        stride_x=plan.ak if left else plan.bk,
        BLOCK_R=tile.rows,
        BLOCK_K=tile.k,
        EACH=tile.each,
        **({"JOINED": tile.joined} if along_rows else {}),
        BY_ROW=left,
        M_FORMAT=formats[left],
        X_FORMAT=formats[not left],
        FAR=plan.far(tile.rows, tile.rows, tile.k),
        num_warps=1,  # a thread's share of a tile is the kernel's own
        **arguments,
    )


def column_sums(x: Array, dtype: str) -> tuple[Array, ...]:
    """The sums over all dimensions of ``x`` but the last one, in two steps."""
    columns = x.shape[-1]
    rows = size_of(tuple(x.shape)[:-1])
    parts = parts_of(rows, 64, triton.cdiv(columns, 64), max(1, min(64, rows // 256)))
    size = triton.cdiv(triton.cdiv(rows, parts), 16) * 16
    (sums,) = launch(
        column_sums_kernel,
        (triton.cdiv(columns, 64), parts),
        {"parts_ptr": ((parts, columns), "float32")},
        like=x,
        x_ptr=contiguous(x),
        rows=rows,
        columns=columns,
        part_size=size,
        BLOCK_R=16,
        BLOCK_C=64,
        FAR=16 * columns >= FAR_FROM,
    )
    ending = dict.fromkeys(("bias_ptr", "row_scale_ptr", "column_scale_ptr", "z_ptr"))
    return add_parts(sums, {"c_ptr": ((columns,), dtype)}, columns, "", ending)
