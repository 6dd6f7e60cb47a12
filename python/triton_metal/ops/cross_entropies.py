"""Cross entropy of logits and integer labels, with its gradient.

A program reads one row once, a long one in blocks with running maxima and sums, and keeps the logarithm of the sum of exponentials, also
for the gradient, which is softmax - target for each logit. A second kernel makes the rows' losses of them, a row for each lane, and adds up
those of a block. A third one adds up the blocks in a fixed order, so that the result is the same on every run.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, full, size_of
from ._checks import check_arrays, check_choice, check_dtype, check_number, check_rank, check_shape
from ._indices import INTEGERS, check_index, check_indices
from ._launch import Spec, launch
from ._operators import Operator
from ._pieces import (
    centred,
    exp_of,
    in_float32,
    less,
    load_pieces,
    max_of,
    pieces,
    places_of,
    sum_of,
    with_exponentials,
)

#: The most classes that a program holds at once.
LONGEST = 16_384
#: The block of longer rows.
BLOCK = 4_096
#: The rows of a program that makes losses.
ROWS = 128
REDUCTIONS = ("mean", "sum", "none")


@triton.jit
def row_sums_kernel(
    logits_ptr, log_sums_ptr, means_ptr, classes,
    SMOOTH: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """log Σ exp of a row, and its mean; a program holds the row in pieces."""
    row = tl.program_id(0)
    places, mask = places_of(classes, WIDTHS, UNIT)
    first = logits_ptr + row.to(tl.int64) * classes
    x = in_float32(load_pieces(first, places, mask, -float("inf")))
    top = max_of(x)
    tl.store(log_sums_ptr + row, top + tl.log(sum_of(exp_of(less(x, top)))))
    if SMOOTH:
        tl.store(means_ptr + row, sum_of(centred(x, 0.0, mask)) / classes)


@triton.jit
def long_row_sums_kernel(
    logits_ptr, log_sums_ptr, means_ptr, classes, SMOOTH: tl.constexpr, BLOCK: tl.constexpr
):
    """The same of a row that is longer than BLOCK: four places have a running maximum and sum together."""
    row = tl.program_id(0)
    row_ptr = logits_ptr + row.to(tl.int64) * classes
    places = tl.arange(0, BLOCK // 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    highest = tl.full((BLOCK // 4,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK // 4,), tl.float32)
    sums = tl.zeros((BLOCK // 4,), tl.float32)
    for start in range(0, classes, BLOCK):
        mask = start + places < classes
        x = tl.load(row_ptr + start + places, mask=mask, other=-float("inf")).to(tl.float32)
        highest, total = with_exponentials(highest, total, x)
        if SMOOTH:
            sums += tl.sum(tl.where(mask, x, 0.0), axis=1)
    top = tl.max(highest, axis=0)
    total = tl.sum(total * tl.exp(highest - top), axis=0)
    tl.store(log_sums_ptr + row, top + tl.log(total))
    if SMOOTH:
        tl.store(means_ptr + row, tl.sum(sums, axis=0) / classes)


@triton.jit
def store_losses(losses_ptr, counts_ptr, rows, losses, mask, counted, EACH: tl.constexpr):
    """Each row's loss, or else the sum of a program's and the number of its labels that are not ignored."""
    losses = tl.where(counted, losses, 0.0)
    if EACH:
        tl.store(losses_ptr + rows, losses, mask=mask)
    else:
        tl.store(losses_ptr + tl.program_id(0), tl.sum(tl.where(mask, losses, 0.0), axis=0))
        tl.store(counts_ptr + tl.program_id(0), tl.sum((mask & counted).to(tl.int32), axis=0))


@triton.jit
def losses_kernel(
    logits_ptr, labels_ptr, log_sums_ptr, means_ptr, losses_ptr, counts_ptr,
    n_rows, classes, ignore_index, smoothing, SMOOTH: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The losses of BLOCK rows: log Σ exp less the label's logit, of which smoothing takes a share for the mean.

    A loss is NaN without such a label.
    """
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = row < n_rows
    log_sum = tl.load(log_sums_ptr + row, mask=mask)
    label = tl.load(labels_ptr + row, mask=mask, other=-1).to(tl.int64)
    known = (label >= 0) & (label < classes)
    at = row.to(tl.int64) * classes + label
    target = tl.load(logits_ptr + at, mask=known, other=float("nan")).to(tl.float32)
    if SMOOTH:
        mean = tl.load(means_ptr + row, mask=mask)
        target = (1.0 - smoothing) * target + smoothing * mean  # both may be -inf
    counted = label != ignore_index
    store_losses(losses_ptr, counts_ptr, row, log_sum - target, mask, counted, EACH)


@triton.jit
def reduced_losses_kernel(
    losses_ptr, counts_ptr, loss_ptr, share_ptr, count, MEAN: tl.constexpr, BLOCK: tl.constexpr
):
    """The sum of all blocks' losses times share: 1, or for a mean one over the number of labels that are not ignored."""
    sums = tl.zeros((BLOCK,), tl.float32)
    counts = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, count, BLOCK):
        blocks = start + tl.arange(0, BLOCK)
        mask = blocks < count
        sums += tl.load(losses_ptr + blocks, mask=mask, other=0.0)
        if MEAN:
            counts += tl.load(counts_ptr + blocks, mask=mask, other=0)
    loss, share = tl.sum(sums, axis=0), 1.0
    if MEAN:
        labels = tl.sum(counts, axis=0)
        share = 1.0 / labels.to(tl.float32)
        loss *= share
        # The mean of no losses is NaN, and has gradients of 0.
        share = tl.where(labels == 0, 0.0, share)
    tl.store(loss_ptr, loss)
    tl.store(share_ptr, share)


@triton.jit
def cross_entropy_backward_kernel(
    dloss_ptr, share_ptr, logits_ptr, labels_ptr, log_sums_ptr, dlogits_ptr,
    classes, ignore_index, smoothing, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(exp(x - log Σ exp) - target) dloss of a block of a row."""
    row = tl.program_id(0)
    first = row.to(tl.int64) * classes
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < classes
    label = tl.load(labels_ptr + row).to(tl.int64)
    known = (label >= 0) & (label < classes)
    dloss = tl.load(dloss_ptr + row if EACH else dloss_ptr).to(tl.float32) * tl.load(share_ptr)
    dloss = tl.where(known, dloss, float("nan"))
    x = tl.load(logits_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
    target = smoothing / classes + tl.where(cols == label, 1.0 - smoothing, 0.0)
    dx = (tl.exp(x - tl.load(log_sums_ptr + row)) - target) * dloss
    dx = tl.where(label == ignore_index, 0.0, dx)
    tl.store(dlogits_ptr + first + cols, dx.to(dlogits_ptr.dtype.element_ty), mask=mask)


def losses_of(rows: tuple[int, ...], reduction: str) -> tuple[int, dict[str, Spec], dict[str, Any]]:
    """The programs of a kernel that stores losses, its outputs for them, and what else it takes."""
    programs = triton.cdiv(size_of(rows), ROWS)
    each = reduction == "none"
    shape = rows if each else (programs,)
    outputs: dict[str, Spec] = {"losses_ptr": (shape, "float32")}
    if not each:
        outputs["counts_ptr"] = (shape, "int32")
    return programs, outputs, {"EACH": each, "BLOCK": ROWS} | ({"counts_ptr": None} if each else {})


def reduced(reduction: str, losses: Array, counts: Array | None = None) -> tuple[Array, Array]:
    """The losses of rows or their sum or mean, and the factor of their gradients, of shape (1,)."""
    if counts is None:
        return losses, full((1,), 1.0, "float32", losses)
    count = losses.shape[0]
    loss, share = launch(
        reduced_losses_kernel,
        (1,),
        {"loss_ptr": ((1,), "float32"), "share_ptr": ((1,), "float32")},
        like=losses,
        losses_ptr=losses,
        counts_ptr=counts,
        count=count,
        MEAN=reduction == "mean",
        BLOCK=min(1024, max(32, triton.next_power_of_2(count))),
    )
    return loss.reshape(()), share


def _forward(
    logits: Array, labels: Array, ignore_index: int, smoothing: float, reduction: str
) -> tuple[Array, ...]:
    check_indices("cross_entropy", "labels", labels, logits.shape[-1], ignore_index)
    rows, classes = tuple(labels.shape), logits.shape[-1]
    held = {"BLOCK": BLOCK} if classes > LONGEST else pieces(max(classes, 1), most=16)
    x, n_rows = contiguous(logits), size_of(rows)
    smooth = {"SMOOTH": smoothing > 0}
    names = ("log_sums_ptr", "means_ptr")[: 2 if smoothing > 0 else 1]
    absent = {} if smoothing > 0 else {"means_ptr": None}
    sums = launch(
        row_sums_kernel if classes <= LONGEST else long_row_sums_kernel,
        (n_rows,),
        dict.fromkeys(names, (rows, "float32")),
        like=logits,
        logits_ptr=x,
        classes=classes,
        **held,
        **absent,
        **smooth,
    )
    programs, outputs, ending = losses_of(rows, reduction)
    found = launch(
        losses_kernel,
        (programs,),
        outputs,
        like=logits,
        logits_ptr=x,
        labels_ptr=contiguous(labels),
        n_rows=n_rows,
        classes=classes,
        ignore_index=ignore_index,
        smoothing=smoothing,
        **ending,
        **dict(zip(names, sums, strict=True)),
        **absent,
        **smooth,
    )
    loss, share = reduced(reduction, *found)
    return loss, sums[0], share


def _backward(
    dloss: Array, share: Array, logits: Array, labels: Array, log_sums: Array,
    ignore_index: int, smoothing: float, reduction: str,
) -> tuple[Array, ...]:  # fmt: skip
    classes = logits.shape[-1]
    block = min(triton.next_power_of_2(max(classes, 1)), 1024)
    return launch(
        cross_entropy_backward_kernel,
        (size_of(tuple(labels.shape)), triton.cdiv(classes, block)),
        {"dlogits_ptr": (logits.shape, dtype_name(logits))},
        like=logits,
        dloss_ptr=contiguous(dloss),
        share_ptr=share,
        logits_ptr=contiguous(logits),
        labels_ptr=contiguous(labels),
        log_sums_ptr=log_sums,
        classes=classes,
        ignore_index=ignore_index,
        smoothing=smoothing,
        EACH=reduction == "none",
        BLOCK=block,
    )


def loss_results(rows: tuple[int, ...], reduction: str) -> list[Spec]:
    """Loss, log Σ exp of each row, and the factor of the gradients."""
    return [
        (rows if reduction == "none" else (), "float32"),
        (rows, "float32"),
        ((1,), "float32"),
    ]


_BACKWARD = Operator(
    "cross_entropy_backward(Tensor dloss, Tensor share, Tensor logits, Tensor labels, Tensor log_sums, "
    "int ignore_index, float smoothing, str reduction) -> (dlogits)",
    _backward,
    lambda dloss, share, logits, *_: [(logits.shape, dtype_name(logits))],
)


def _gradient(kept: Any, dloss: Array | None, *_: Any) -> dict[str, Array]:
    if dloss is None:
        return {}
    arrays = (dloss, kept.share, kept.logits, kept.labels, kept.log_sums)
    (found,) = _BACKWARD(*arrays, kept.ignore_index, kept.smoothing, kept.reduction)
    return {"logits": found}


_CROSS_ENTROPY = Operator(
    "cross_entropy(Tensor logits, Tensor labels, int ignore_index, float smoothing, str reduction) "
    "-> (loss, log_sums, share)",
    _forward,
    lambda logits, labels, index, smoothing, reduction: loss_results(labels.shape, reduction),
    _gradient,
    keeps="logits labels log_sums share",
)


def checked(
    function: str, labels: Array, ignore_index: Any, label_smoothing: Any, reduction: Any
) -> tuple[int, float, str]:
    """The plain arguments of a loss; raises if one is wrong."""
    check_dtype(function, "labels", labels, INTEGERS)
    check_choice(function, "reduction", reduction, REDUCTIONS)
    smoothing = check_number(function, "label_smoothing", label_smoothing, least=0, most=1)
    return check_index(function, "ignore_index", ignore_index), smoothing, reduction


def cross_entropy(
    logits: Array,
    labels: Array,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Array:
    """log Σ exp(logits) - logits[label] over the last axis, computed in float32.

    ``logits`` (…, classes) is float16, bfloat16 or float32; ``labels`` (…), with one axis less, is of integers from 0 to
    classes - 1 or ``ignore_index``, whose loss and gradient are 0. With ``label_smoothing`` ε the target is 1 - ε at the label plus
    ε / classes everywhere. The result is float32: with ``reduction`` "mean" the mean over the labels that are not ignored (NaN if
    there are none, with gradients of 0), with "sum" the sum, both of shape (), with "none" each loss, of the shape of ``labels``.

    Differentiable in ``logits``, whose gradient is like ``logits``. Raises LaunchValueError for shapes that do not fit, dtypes,
    a ``reduction`` or a ``label_smoothing`` that is not allowed, and for labels out of range where the host has them at
    hand (arrays of NumPy, tensors of PyTorch on the CPU); elsewhere the loss and the gradient of such a row are NaN.

    Error of a row of n, with u = 2^-24: (min(n, 6 √n) + 1) u + (20 + 8 max |logits|) u. A gradient has twice that of softmax(logits),
    as it is made of log Σ exp(logits), which is rounded: subtract the maximum of logits in the thousands first.

    >>> import numpy as np, triton_metal.ops as ops
    >>> logits = np.log(np.array([[1, 1, 2], [1, 3, 4]], np.float32))
    >>> losses = ops.cross_entropy(logits, np.array([2, 1]), reduction="none")
    >>> np.exp(-losses).round(3)
    array([0.5  , 0.375], dtype=float32)
    """
    name = "cross_entropy"
    check_arrays(name, logits=logits, labels=labels)
    check_dtype(name, "logits", logits, FLOATS)
    check_rank(name, "logits", logits, 1, 1 << 16)
    check_shape(
        name, "labels", labels, logits.shape[:-1], ", that of logits without its last axis,"
    )
    plain = checked(name, labels, ignore_index, label_smoothing, reduction)
    return _CROSS_ENTROPY(logits, labels, *plain)[0]
