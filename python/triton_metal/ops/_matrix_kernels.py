"""Kernels of matrix products: tiles, vectors, sums of parts, and the derivatives of their activations.

A product has a batch of matrices. ``batches`` are the sizes of its dimensions, ``a_steps`` and ``b_steps`` how far
apart the matrices of each operand lie in them; a step of 0 broadcasts.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl
from triton_metal.language.extra import libdevice

from ._far import far_steps, index
from ._normal import normal_below


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """The activation of x, which is float32 unless it is None or "relu"."""
    if ACTIVATION == "relu":
        x = tl.where(x <= 0, 0, x)  # a NaN stays one
    elif ACTIVATION == "sigmoid":
        x = tl.sigmoid(x)
    elif ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    elif ACTIVATION == "tanh":
        x = libdevice.tanh(x)
    elif ACTIVATION == "gelu":
        x = x * normal_below(x)
    elif ACTIVATION == "gelu_tanh":
        x = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    return x


@triton.jit
def slope(x, ACTIVATION: tl.constexpr):
    """The derivative of an activation; x is its result for "relu", "sigmoid" and "tanh", else what it was given.

    A product one of whose factors is 0 or below any rounding is left out: the other may be infinite.
    """
    if ACTIVATION == "relu":
        d = tl.where(x <= 0, 0.0, 1.0)
    elif ACTIVATION == "sigmoid":
        d = x * (1 - x)
    elif ACTIVATION == "tanh":
        d = 1 - x * x
    elif ACTIVATION == "silu":
        s = tl.sigmoid(x)
        d = s + tl.where(tl.abs(x) < 128, x * s * (1 - s), 0.0)
    elif ACTIVATION == "gelu":
        normal = tl.exp(-0.5 * x * x) * 0.3989422804014327
        d = normal_below(x)
        d += tl.where(tl.abs(x) < 20, x * normal, 0.0)
    else:
        s = tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
        inner = 1.5957691216057308 + 0.2140644488 * x * x
        d = s + tl.where(tl.abs(x) < 20, x * s * (1 - s) * inner, 0.0)
    return d


@triton.jit
def as_type(x, FORMAT: tl.constexpr, TYPE: tl.constexpr):
    """x as numbers of TYPE; bytes are those of the FORMAT if there is one."""
    if FORMAT is not None:
        x = x.to(FORMAT, bitcast=True)
    return x.to(TYPE)


@triton.jit
def with_bias(acc, row, rows, column, columns, bias_ptr, row_scale_ptr, column_scale_ptr):
    """acc * scale of the row * scale of the column + bias of the column, each where there is one."""
    if row_scale_ptr is not None:
        acc = acc * tl.load(row_scale_ptr + row, mask=rows, other=0)
    if column_scale_ptr is not None:
        acc = acc * tl.load(column_scale_ptr + column, mask=columns, other=0)
    if bias_ptr is not None:
        acc = acc + tl.load(bias_ptr + column, mask=columns, other=0).to(acc.dtype)
    return acc


@triton.jit
def offset_of(index, batches, steps):
    """Where the matrix with this index in the batch begins."""
    offset = tl.full((), 0, tl.int64)
    for i in tl.static_range(len(batches) - 1, -1, -1):
        if i > 0:
            offset += (index % batches[i]).to(tl.int64) * steps[i]
            index = index // batches[i]
        else:
            offset += index.to(tl.int64) * steps[i]
    return offset


@triton.jit
def add_product(
    acc, a_ptr, b_ptr, rows, columns, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_K: tl.constexpr, TYPE: tl.constexpr, A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr,
    PRECISION: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """acc plus the product of the rows and columns that begin at the pointers; masks say which are there."""
    m, n, k = tl.arange(0, acc.shape[0]), tl.arange(0, acc.shape[1]), tl.arange(0, BLOCK_K)
    if FAR:
        stride_am, stride_ak = far_steps((stride_am, stride_ak))
        stride_bk, stride_bn = far_steps((stride_bk, stride_bn))
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=rows & (k[None, :] < K - start), other=0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - start) & columns, other=0)
        a, b = as_type(a, A_FORMAT, TYPE), as_type(b, B_FORMAT, TYPE)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    return acc


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr, M, N, K, part_size,
    matrices, batches, a_steps, b_steps, items, sums, a_sum_steps, b_sum_steps,
    stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT: tl.constexpr, TYPE: tl.constexpr, A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr,
    ACCUMULATOR: tl.constexpr, ACTIVATION: tl.constexpr, PRECISION: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """A tile of c = activation(a b scales + bias); z is the same before the activation.

    The products of a batch `sums` of `items` matrices are added up, where there is one. With SPLIT, a program has a part of
    them, or else of K, and stores its sum as it is.
    """
    # Programs go over c in groups of GROUP_M rows of tiles, so that neighbours in time share tiles of a and b.
    # The last group may have more rows than there are.
    first_m = index(tl.program_id(1), FAR) * GROUP_M + index(tl.program_id(0), FAR) % GROUP_M
    first_m *= BLOCK_M
    first_n = index(tl.program_id(0), FAR) // GROUP_M * BLOCK_N
    if first_m >= M:
        return
    batch, part = tl.program_id(2), 0
    if SPLIT:
        batch, part = batch % matrices, index(batch // matrices, FAR)

    local_m, local_n = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    rows, columns = (local_m < M - first_m)[:, None], (local_n < N - first_n)[None, :]
    a_ptr += offset_of(batch, batches, a_steps) + first_m.to(tl.int64) * stride_am
    b_ptr += offset_of(batch, batches, b_steps) + first_n.to(tl.int64) * stride_bn
    first = part * part_size
    if SPLIT and len(sums) == 0:
        a_ptr += first.to(tl.int64) * stride_ak
        b_ptr += first.to(tl.int64) * stride_bk
        K = min(K - first, part_size)
    acc = tl.zeros((BLOCK_M, BLOCK_N), ACCUMULATOR)
    if len(sums) == 0:
        acc = add_product(
            acc, a_ptr, b_ptr, rows, columns, K, stride_am, stride_ak, stride_bk, stride_bn,
            BLOCK_K, TYPE, A_FORMAT, B_FORMAT, PRECISION, FAR,
        )  # fmt: skip
    else:
        for item in range(first, min(first + part_size, items)):
            a_item = a_ptr + offset_of(item, sums, a_sum_steps)
            b_item = b_ptr + offset_of(item, sums, b_sum_steps)
            acc = add_product(
                acc, a_item, b_item, rows, columns, K, stride_am, stride_ak, stride_bk, stride_bn,
                BLOCK_K, TYPE, A_FORMAT, B_FORMAT, PRECISION, FAR,
            )  # fmt: skip

    row = first_m.to(tl.int64)
    if SPLIT or len(batches) > 0:
        row += tl.program_id(2).to(tl.int64) * M
    if not SPLIT:
        row_at, column_at = row + local_m[:, None], first_n + local_n[None, :]
        acc = with_bias(
            acc, row_at, rows, column_at, columns, bias_ptr, row_scale_ptr, column_scale_ptr
        )
    at = local_m[:, None].to(tl.int64) * N + local_n[None, :]
    if z_ptr is not None:
        z_ptr += row * N + first_n
        tl.store(z_ptr + at, acc.to(z_ptr.dtype.element_ty), mask=rows & columns)
    c_ptr += row * N + first_n
    acc = activated(acc, ACTIVATION)
    tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty), mask=rows & columns)


@triton.jit
def add_parts_kernel(
    parts_ptr, bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr, parts, size, N,
    ACTIVATION: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sum of `parts` arrays of `size` numbers, finished as a product is."""
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    total = tl.zeros((BLOCK,), parts_ptr.dtype.element_ty)
    for _ in range(parts):
        total += tl.load(parts_ptr + at, mask=inside, other=0)
        parts_ptr += size
    total = with_bias(
        total, at // N, inside, at % N, inside, bias_ptr, row_scale_ptr, column_scale_ptr
    )
    if z_ptr is not None:
        tl.store(z_ptr + at, total.to(z_ptr.dtype.element_ty), mask=inside)
    total = activated(total, ACTIVATION)
    tl.store(c_ptr + at, total.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def vector_along_rows_kernel(
    m_ptr, x_ptr, bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr,
    R, K, batches, m_steps, x_steps, stride_r, stride_k, stride_x,
    BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, EACH: tl.constexpr, JOINED: tl.constexpr, BY_ROW: tl.constexpr,
    M_FORMAT: tl.constexpr, X_FORMAT: tl.constexpr,
    ACCUMULATOR: tl.constexpr, ACTIVATION: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """Rows of a matrix times a vector. A thread loads EACH neighbours of a row, and has a sum for each of them, or one if they are JOINED.

    One sum takes fewer registers, but an operation more for each number.
    BY_ROW says whether a bias goes with the rows (the vector is on the left), or one number is for all.
    """
    batch, first = tl.program_id(1), index(tl.program_id(0), FAR) * BLOCK_R
    if FAR:
        stride_r, stride_k, stride_x = far_steps((stride_r, stride_k, stride_x))
    local, offs_k = tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_K)
    inside = first + local < R
    m_ptr += offset_of(batch, batches, m_steps) + first.to(tl.int64) * stride_r
    x_ptr += offset_of(batch, batches, x_steps)
    m_ptrs = m_ptr + local[:, None] * stride_r + offs_k[None, :] * stride_k
    x_ptrs = x_ptr + offs_k * stride_x
    acc = tl.zeros((BLOCK_R, BLOCK_K // EACH if JOINED else BLOCK_K), ACCUMULATOR)
    for k in range(0, K, BLOCK_K):
        m = tl.load(m_ptrs, mask=inside[:, None] & (offs_k[None, :] < K - k), other=0)
        x = tl.load(x_ptrs, mask=offs_k < K - k, other=0)
        products = as_type(m, M_FORMAT, ACCUMULATOR) * as_type(x, X_FORMAT, ACCUMULATOR)[None, :]
        if JOINED:
            products = tl.sum(tl.reshape(products, (BLOCK_R, BLOCK_K // EACH, EACH)), axis=2)
        acc += products
        m_ptrs += BLOCK_K * stride_k
        x_ptrs += BLOCK_K * stride_x
    finish_vector(
        tl.sum(acc, axis=1), batch, R, first + local, inside,
        bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr, BY_ROW, ACTIVATION,
    )  # fmt: skip


@triton.jit
def vector_along_columns_kernel(
    m_ptr, x_ptr, bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr,
    R, K, batches, m_steps, x_steps, stride_r, stride_k, stride_x,
    BLOCK_R: tl.constexpr, BLOCK_K: tl.constexpr, EACH: tl.constexpr, BY_ROW: tl.constexpr,
    M_FORMAT: tl.constexpr, X_FORMAT: tl.constexpr,
    ACCUMULATOR: tl.constexpr, ACTIVATION: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """The same where the rows' numbers lie side by side: EACH sums along K for each row.

    A step has several parts of EACH numbers, each of which is added to the sums by itself, as products are then fma.
    """
    batch, first = tl.program_id(1), index(tl.program_id(0), FAR) * BLOCK_R
    if FAR:
        stride_r, stride_k, stride_x = far_steps((stride_r, stride_k, stride_x))
    local, offs_k = tl.arange(0, BLOCK_R), tl.arange(0, EACH)
    inside = first + local < R
    m_ptr += offset_of(batch, batches, m_steps) + first.to(tl.int64) * stride_r
    x_ptr += offset_of(batch, batches, x_steps)
    m_ptrs = m_ptr + offs_k[:, None] * stride_k + local[None, :] * stride_r
    x_ptrs = x_ptr + offs_k * stride_x
    acc = tl.zeros((EACH, BLOCK_R), ACCUMULATOR)
    for k in range(0, K, BLOCK_K):
        for part in tl.static_range(0, BLOCK_K, EACH):
            rest = K - k - part
            m_part = m_ptrs + part * stride_k
            m = tl.load(m_part, mask=(offs_k[:, None] < rest) & inside[None, :], other=0)
            x = tl.load(x_ptrs + part * stride_x, mask=offs_k < rest, other=0)
            m, x = as_type(m, M_FORMAT, ACCUMULATOR), as_type(x, X_FORMAT, ACCUMULATOR)
            acc += m * x[:, None]
        m_ptrs += BLOCK_K * stride_k
        x_ptrs += BLOCK_K * stride_x
    finish_vector(
        tl.sum(acc, axis=0), batch, R, first + local, inside,
        bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr, BY_ROW, ACTIVATION,
    )  # fmt: skip


@triton.jit
def finish_vector(
    acc, batch, R, place, inside, bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr,
    BY_ROW: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """Scales, bias and activation of the results of a vector product, and their stores."""
    at = batch.to(tl.int64) * R + place
    row, column = (batch + place * 0, place) if BY_ROW else (at, place * 0)
    acc = with_bias(acc, row, inside, column, inside, bias_ptr, row_scale_ptr, column_scale_ptr)
    if z_ptr is not None:
        tl.store(z_ptr + at, acc.to(z_ptr.dtype.element_ty), mask=inside)
    acc = activated(acc, ACTIVATION)
    tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def activation_backward_kernel(
    dc_ptr, x_ptr, dz_ptr, size, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr
):
    """dz = dc * the activation's derivative."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    dc = tl.load(dc_ptr + at, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    dz = dc * slope(x, ACTIVATION)
    tl.store(dz_ptr + at, dz.to(dz_ptr.dtype.element_ty), mask=inside)


@triton.jit
def column_sums_kernel(
    x_ptr, parts_ptr, rows, columns, part_size,
    BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """Sums of the columns over a part of the rows."""
    if FAR:
        columns = tl.cast(columns, tl.int64)
    part = tl.program_id(1)
    first = part.to(tl.int64) * part_size
    count = tl.minimum(rows - first, part_size)
    offs_r = tl.arange(0, BLOCK_R)[:, None]
    column = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    x_ptrs = x_ptr + first * columns + offs_r * columns + column[None, :]
    acc = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    for row in range(0, count, BLOCK_R):
        inside = (offs_r < count - row) & (column < columns)[None, :]
        acc += tl.load(x_ptrs, mask=inside, other=0.0).to(tl.float32)
        x_ptrs += BLOCK_R * columns
    at = part.to(tl.int64) * columns + column
    tl.store(parts_ptr + at, tl.sum(acc, axis=0), mask=column < columns)
