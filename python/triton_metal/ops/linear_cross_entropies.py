"""Cross entropy of the product of hidden states and a matrix of classes, which never holds all logits.

Forward, a program computes a tile of logits and keeps of each of its rows the maximum, the sum of exponentials, the label's logit
and, if labels are smoothed, the sum; a second kernel joins the tiles of a row. Backward, the classes are taken in chunks of
about CHUNK logits: a kernel computes their logits again and stores (softmax - target), and two products
turn them into the chunk's part of the gradient of the hidden states, which is added up in float32, and the chunk's rows of the
gradient of the matrix. There are no atomics, so that the result is the same on every run.

What is stored in 16 bits is less than 2: of a gradient of a row's loss it has the mantissa, and the power of two comes in behind the sums
or, where each term of a sum has its own, as its share of the largest.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, full, is_mlx, is_torch
from ._checks import check_arrays, check_dtype, check_rank, check_same_dtype, check_shape, fail
from ._indices import check_indices
from ._launch import launch
from ._operators import Operator
from ._reduce import reduce_rows
from .cross_entropies import checked, loss_results, losses_of, reduced, store_losses

#: How many logits the gradient holds at once; of at least LEAST classes.
CHUNK = 1 << 24
LEAST = 512
TILE = {"BLOCK_ROWS": 64, "BLOCK_CLASSES": 64, "BLOCK_K": 32}


@triton.jit
def logits_of(hidden_ptr, weight_ptr, rows, cols, n_rows, classes, width, BLOCK_K: tl.constexpr):
    """The tile rows × cols of hidden @ weightᵀ, in float32."""
    k = tl.arange(0, BLOCK_K)
    hidden_ptrs = hidden_ptr + rows[:, None].to(tl.int64) * width + k[None, :]
    weight_ptrs = weight_ptr + cols[None, :].to(tl.int64) * width + k[:, None]
    logits = tl.zeros((rows.shape[0], cols.shape[0]), tl.float32)
    for start in range(0, width, BLOCK_K):
        inside = start + k < width
        hidden = tl.load(hidden_ptrs, mask=(rows[:, None] < n_rows) & inside[None, :], other=0.0)
        weight = tl.load(weight_ptrs, mask=(cols[None, :] < classes) & inside[:, None], other=0.0)
        logits = tl.dot(hidden, weight, logits, input_precision="ieee")
        hidden_ptrs += BLOCK_K
        weight_ptrs += BLOCK_K
    return logits


@triton.jit
def tiles_kernel(
    hidden_ptr, weight_ptr, labels_ptr, highest_ptr, total_ptr, target_ptr, sum_ptr,
    n_rows, classes, width, SMOOTH: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_CLASSES: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """What a tile of logits contributes to the loss of its rows."""
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.program_id(1) * BLOCK_CLASSES + tl.arange(0, BLOCK_CLASSES)
    logits = logits_of(hidden_ptr, weight_ptr, rows, cols, n_rows, classes, width, BLOCK_K)
    inside = cols[None, :] < classes
    x = tl.where(inside, logits, -float("inf"))
    highest = tl.max(x, axis=1)
    # A tile of -inf alone weighs nothing, and no NaN may come of it.
    shift = tl.where(highest == -float("inf"), 0.0, highest)
    at = tl.program_id(1).to(tl.int64) * n_rows + rows
    mask = rows < n_rows
    labels = tl.load(labels_ptr + rows, mask=mask, other=-1).to(tl.int64)
    target = tl.sum(tl.where(cols[None, :] == labels[:, None], logits, 0.0), axis=1)
    tl.store(highest_ptr + at, highest, mask=mask)
    tl.store(total_ptr + at, tl.sum(tl.exp(x - shift[:, None]), axis=1), mask=mask)
    tl.store(target_ptr + at, target, mask=mask)
    if SMOOTH:
        tl.store(sum_ptr + at, tl.sum(tl.where(inside, logits, 0.0), axis=1), mask=mask)


@triton.jit
def joined_tiles_kernel(
    highest_ptr, total_ptr, target_ptr, sum_ptr, labels_ptr, losses_ptr, counts_ptr, log_sums_ptr,
    n_rows, n_tiles, classes, ignore_index, smoothing, SMOOTH: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The losses of BLOCK rows, and log Σ exp of each."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n_rows
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    target = tl.zeros((BLOCK,), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for tile in range(n_tiles):
        at = tile.to(tl.int64) * n_rows + rows
        highest = tl.load(highest_ptr + at, mask=mask, other=-float("inf"))
        higher = tl.maximum(top, highest, propagate_nan=tl.PropagateNan.ALL)
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        part = tl.load(total_ptr + at, mask=mask, other=0.0)
        total = total * tl.exp(top - shift) + part * tl.exp(highest - shift)
        top = higher
        target += tl.load(target_ptr + at, mask=mask, other=0.0)
        if SMOOTH:
            sums += tl.load(sum_ptr + at, mask=mask, other=0.0)
    log_sums = top + tl.log(total)
    if SMOOTH:
        target = (1.0 - smoothing) * target + smoothing * (sums / classes)  # both may be -inf
    labels = tl.load(labels_ptr + rows, mask=mask, other=0).to(tl.int64)
    losses = tl.where((labels >= 0) & (labels < classes), log_sums - target, float("nan"))
    counted = labels != ignore_index
    store_losses(losses_ptr, counts_ptr, rows, losses, mask, counted, EACH)
    tl.store(log_sums_ptr + rows, log_sums, mask=mask)


@triton.jit
def power_of(x):
    """The largest power of two that |x| has in it; 1 of 0, of less than the least normal number, and of what is not finite."""
    bits = x.to(tl.int32, bitcast=True) & 0x7F800000
    bits = tl.where((bits == 0) | (bits == 0x7F800000), 0x3F800000, bits)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def chunk_kernel(
    hidden_ptr, weight_ptr, labels_ptr, log_sums_ptr, dloss_ptr, chunk_ptr, after_1_ptr, after_2_ptr,
    n_rows, classes, width, start, size, ignore_index, smoothing, EACH: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_CLASSES: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """softmax - target of `size` classes from `start` on, times dloss without its power of two if each row has its own.

    What after_1 and after_2 hold is not read: MLX computes them before it makes room for this chunk.
    """
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    places = tl.program_id(1) * BLOCK_CLASSES + tl.arange(0, BLOCK_CLASSES)
    cols = start + places
    logits = logits_of(hidden_ptr, weight_ptr, rows, cols, n_rows, classes, width, BLOCK_K)
    mask = rows < n_rows
    labels = tl.load(labels_ptr + rows, mask=mask, other=0).to(tl.int64)
    log_sums = tl.load(log_sums_ptr + rows, mask=mask, other=0.0)
    target = tl.where(cols[None, :] == labels[:, None], 1.0 - smoothing, 0.0) + smoothing / classes
    d = tl.exp(logits - log_sums[:, None]) - target
    if EACH:
        dloss = tl.load(dloss_ptr + rows, mask=mask, other=0.0).to(tl.float32)
        d *= tl.math.div_rn(dloss, power_of(dloss))[:, None]
    known = (labels >= 0) & (labels < classes)
    d = tl.where(known[:, None], d, float("nan"))
    d = tl.where((labels == ignore_index)[:, None], 0.0, d)
    at = rows[:, None].to(tl.int64) * size + places[None, :]
    tl.store(
        chunk_ptr + at, d.to(chunk_ptr.dtype.element_ty), mask=mask[:, None] & (places[None, :] < size)
    )  # fmt: skip


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, before_ptr, dloss_ptr, share_ptr, largest_ptr, b_start, n_rows, n_cols, length,
    a_row_step, a_step, EACH: tl.constexpr,
    BLOCK_ROWS: tl.constexpr, BLOCK_CLASSES: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c = before + (a @ rows of b from b_start on) · share · dloss.

    dloss is one for all or, of which a has the mantissas, for each of c's "rows", or for each of the "terms" of its sums,
    the largest of which is `largest`.
    """
    rows = tl.program_id(1) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    cols = tl.program_id(0) * BLOCK_CLASSES + tl.arange(0, BLOCK_CLASSES)
    product = tl.zeros((BLOCK_ROWS, BLOCK_CLASSES), tl.float32)
    factor = tl.load(share_ptr)
    if EACH == "":
        factor *= tl.load(dloss_ptr).to(tl.float32)
    largest = 1.0
    if EACH == "terms":
        largest = power_of(tl.load(largest_ptr))
        factor *= largest
    for start in range(0, length, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_at = rows[:, None].to(tl.int64) * a_row_step + k[None, :].to(tl.int64) * a_step
        a = tl.load(a_ptr + a_at, mask=(rows[:, None] < n_rows) & (k[None, :] < length), other=0.0)
        if EACH == "terms":
            dloss = tl.load(dloss_ptr + k, mask=k < length, other=0.0).to(tl.float32)
            share = tl.math.div_rn(power_of(dloss), largest)
            a = (a.to(tl.float32) * share[None, :]).to(a.dtype)
        b_at = (b_start + k[:, None]).to(tl.int64) * n_cols + cols[None, :]
        b = tl.load(b_ptr + b_at, mask=(k[:, None] < length) & (cols[None, :] < n_cols), other=0.0)
        product = tl.dot(a, b, product, input_precision="ieee")
    c = product * factor
    if EACH == "rows":
        dloss = tl.load(dloss_ptr + rows, mask=rows < n_rows, other=0.0).to(tl.float32)
        c *= power_of(dloss)[:, None]
    at = rows[:, None].to(tl.int64) * n_cols + cols[None, :]
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    if before_ptr is not None:
        c += tl.load(before_ptr + at, mask=mask, other=0.0)
    tl.store(c_ptr + at, c.to(c_ptr.dtype.element_ty), mask=mask)


def _forward(
    hidden: Array, weight: Array, labels: Array, ignore_index: int, smoothing: float, reduction: str
) -> tuple[Array, ...]:
    (n_rows, width), classes = hidden.shape, weight.shape[0]
    check_indices("linear_cross_entropy", "labels", labels, classes, ignore_index)
    labels = contiguous(labels)
    tiles = triton.cdiv(classes, TILE["BLOCK_CLASSES"])
    smooth, part = smoothing > 0, ((tiles, n_rows), "float32")
    names = ["highest_ptr", "total_ptr", "target_ptr"] + ["sum_ptr"] * smooth
    sizes = {"n_rows": n_rows, "classes": classes, "SMOOTH": smooth}
    absent = {} if smooth else {"sum_ptr": None}
    found = launch(
        tiles_kernel,
        (triton.cdiv(n_rows, TILE["BLOCK_ROWS"]), tiles),
        dict.fromkeys(names, part),
        like=hidden,
        hidden_ptr=contiguous(hidden),
        weight_ptr=contiguous(weight),
        labels_ptr=labels,
        width=width,
        **sizes,
        **absent,
        **TILE,
    )
    programs, outputs, ending = losses_of((n_rows,), reduction)
    *losses, log_sums = launch(
        joined_tiles_kernel,
        (programs,),
        outputs | {"log_sums_ptr": ((n_rows,), "float32")},
        like=hidden,
        labels_ptr=labels,
        n_tiles=tiles,
        ignore_index=ignore_index,
        smoothing=smoothing,
        **ending,
        **dict(zip(names, found, strict=True)),
        **sizes,
        **absent,
    )
    loss, share = reduced(reduction, *losses)
    return loss, log_sums, share


def _joined(parts: list[Array]) -> Array:
    """The arrays one below the other."""
    if len(parts) == 1:
        return parts[0]
    if is_torch(parts[0]):
        return sys.modules["torch"].cat(parts)
    return (sys.modules["mlx.core"] if is_mlx(parts[0]) else np).concatenate(parts)


def _backward(
    dloss: Array, share: Array, hidden: Array, weight: Array, labels: Array, log_sums: Array,
    ignore_index: int, smoothing: float, reduction: str, of_hidden: bool, of_weight: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """dhidden and dweight; one that is not wanted has no elements."""
    (n_rows, width), classes = hidden.shape, weight.shape[0]
    hidden, weight, labels, dloss = (contiguous(x) for x in (hidden, weight, labels, dloss))
    dtype, nothing = dtype_name(hidden), full((0,), 0, dtype_name(hidden), hidden)
    dhidden: Array | None = None
    dweights: list[Array] = []
    size = min(classes, max(LEAST, CHUNK // max(n_rows, 1) // 64 * 64))
    each = reduction == "none"
    largest = None
    if each:
        largest = full((1,), 1, "float32", hidden)
        if n_rows:
            largest = reduce_rows(dloss, (1, n_rows, 1), "max", "float32", map="abs")

    def product(shape: tuple[int, int], to: str, **arguments: Any) -> Array:
        grid = (
            triton.cdiv(shape[1], TILE["BLOCK_CLASSES"]),
            triton.cdiv(shape[0], TILE["BLOCK_ROWS"]),
        )
        arguments |= {
            "n_rows": shape[0],
            "n_cols": shape[1],
            "share_ptr": share,
            "dloss_ptr": dloss,
            **TILE,
        }
        return launch(product_kernel, grid, {"c_ptr": (shape, to)}, like=hidden, **arguments)[0]

    for start in range(0, classes, size):
        n = min(size, classes - start)
        (chunk,) = launch(
            chunk_kernel,
            (triton.cdiv(n_rows, TILE["BLOCK_ROWS"]), triton.cdiv(n, TILE["BLOCK_CLASSES"])),
            {"chunk_ptr": ((n_rows, n), dtype)},
            like=hidden,
            hidden_ptr=hidden,
            weight_ptr=weight,
            labels_ptr=labels,
            log_sums_ptr=log_sums,
            after_1_ptr=dhidden,
            after_2_ptr=dweights[-1] if dweights else None,
            n_rows=n_rows,
            classes=classes,
            width=width,
            start=start,
            size=n,
            ignore_index=ignore_index,
            smoothing=smoothing,
            dloss_ptr=dloss,
            EACH=each,
            **TILE,
        )
        if of_hidden:
            dhidden = product(
                (n_rows, width), dtype if start + n == classes else "float32", length=n,
                a_ptr=chunk, a_row_step=n, a_step=1, b_ptr=weight, b_start=start, before_ptr=dhidden,
                EACH="rows" if each else "", largest_ptr=None,
            )  # fmt: skip
        if of_weight:
            part = product(
                (n, width), dtype, length=n_rows,
                a_ptr=chunk, a_row_step=1, a_step=n, b_ptr=hidden, b_start=0, before_ptr=None,
                EACH="terms" if each else "", largest_ptr=largest,
            )  # fmt: skip
            dweights.append(part)
    return nothing if dhidden is None else dhidden, _joined(dweights) if dweights else nothing


def _backward_results(dloss: Array, share: Array, hidden: Array, weight: Array, *rest: Any) -> Any:
    shapes = (hidden.shape if rest[-2] else (0,), weight.shape if rest[-1] else (0,))
    return [(shape, dtype_name(hidden)) for shape in shapes]


_BACKWARD = Operator(
    "linear_cross_entropy_backward(Tensor dloss, Tensor share, Tensor hidden, Tensor weight, Tensor labels, "
    "Tensor log_sums, int ignore_index, float smoothing, str reduction, bool of_hidden, bool of_weight) "
    "-> (dhidden, dweight)",
    _backward,
    _backward_results,
)


def _gradient(kept: Any, dloss: Array | None, *_: Any) -> dict[str, Array]:
    if dloss is None:
        return {}
    arrays = (dloss, kept.share, kept.hidden, kept.weight, kept.labels, kept.log_sums)
    wanted = tuple(name in kept.needs for name in ("hidden", "weight"))
    found = _BACKWARD(*arrays, kept.ignore_index, kept.smoothing, kept.reduction, *wanted)
    return {
        name: each
        for name, each in zip(("hidden", "weight"), found, strict=True)
        if name in kept.needs
    }


_LINEAR_CROSS_ENTROPY = Operator(
    "linear_cross_entropy(Tensor hidden, Tensor weight, Tensor labels, int ignore_index, float smoothing, "
    "str reduction) -> (loss, log_sums, share)",
    _forward,
    lambda hidden, weight, labels, index, smoothing, how: loss_results(labels.shape, how),
    _gradient,
    keeps="hidden weight labels log_sums share",
)


def linear_cross_entropy(
    hidden: Array,
    weight: Array,
    labels: Array,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Array:
    """cross_entropy(hidden @ weightᵀ, labels) without an array of all logits, as for the last layer of a language model.

    ``hidden`` (rows, width) and ``weight`` (classes, width), with at least one class, are float16, bfloat16 or float32, both of
    the same dtype; the products are added up in float32, and logits are not rounded to the dtype. ``labels`` (rows,) and the
    other arguments are those of ``cross_entropy``; so is the result, float32, of shape () or, with ``reduction`` "none", (rows,).

    Differentiable in ``hidden`` and ``weight``. The gradient computes the logits again, about 2**24 at a time, and holds
    softmax - target of these in the dtype of ``hidden``.

    Raises LaunchValueError for shapes that do not fit, dtypes and values that are not allowed, and for labels out of range
    where the host has them at hand (arrays of NumPy, tensors of PyTorch on the CPU); elsewhere their loss and the gradients that
    they enter are NaN.

    Error: that of `cross_entropy`, and twice that of the products, which is (min(width, 6 √width) + 1) 2^-24 Σ |hidden|
    |weight|.

    >>> import numpy as np, triton_metal.ops as ops
    >>> weight = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    >>> hidden = np.array([[2, 0], [0, 3]], np.float32)
    >>> ops.linear_cross_entropy(hidden, weight, np.array([0, 1]), reduction="none").round(3)
    array([0.759, 0.718], dtype=float32)
    >>> ops.cross_entropy(hidden @ weight.T, np.array([0, 1]), reduction="none").round(3)
    array([0.759, 0.718], dtype=float32)
    """
    name = "linear_cross_entropy"
    check_arrays(name, hidden=hidden, weight=weight, labels=labels)
    check_dtype(name, "hidden", hidden, FLOATS)
    check_same_dtype(name, hidden=hidden, weight=weight)
    check_rank(name, "hidden", hidden, 2)
    check_rank(name, "weight", weight, 2)
    if weight.shape[0] == 0:
        raise fail(
            name, f"weight must have at least one class but has shape {tuple(weight.shape)}."
        )
    wanted = (weight.shape[0], hidden.shape[1])
    check_shape(name, "weight", weight, wanted, " (classes, width), the width that of hidden,")
    check_shape(name, "labels", labels, hidden.shape[:1], ", one label for each row of hidden,")
    plain = checked(name, labels, ignore_index, label_smoothing, reduction)
    return _LINEAR_CROSS_ENTROPY(hidden, weight, labels, *plain)[0]
