"""Attention: softmax(scale Q Kᵀ + bias) V, for batches, packed sequences, and caches of keys and values.

Scores, maxima and sums are float32; weights are rounded to the dtype of the operands before they are multiplied by the values. No
scores are stored. The kernels are in `_attention_forward.py`, `_attention_backward.py` and `_attention_decode.py`.
"""

from __future__ import annotations

from typing import Any

from ..errors import LaunchTypeError
from ._arrays import (
    FLOATS,
    Array,
    contiguous,
    dtype_name,
    framework,
    full,
    is_mlx,
    is_torch,
    is_whole,
    reshaped,
    strides,
)
from ._attention_backward import backward, backward_packed
from ._attention_decode import decode, suits
from ._attention_forward import forward, forward_packed
from ._checks import (
    check_arrays,
    check_dtype,
    check_flag,
    check_number,
    check_rank,
    check_same_dtype,
    check_shape,
    fail,
    integer,
)
from ._operators import Operator

WIDEST = 256
INTEGERS = ("int32", "int64")
_DENSE = (
    "Tensor q, Tensor k, Tensor v, Tensor? mask, Tensor? bias, Tensor? lengths, "
    "int left, int right, float scale"
)
_PACKED = "Tensor q, Tensor k, Tensor v, Tensor q_offsets, Tensor k_offsets, int left, int right, float scale"


def _compute(*arguments: Any, keep: bool = True) -> tuple[Array, ...]:
    *given, few = arguments
    if not few:
        return forward(*given, keep=keep)
    # The gradient computes what is kept, as its scores must be the same numbers, and these kernels add them up in another order.
    kept = [full((0,), 0, "float32", given[0]) for _ in range(2 * keep)]
    return (*decode(*given), *kept)


def _gradient(kept: Any, dout: Array | None, *_: Any) -> dict[str, Array]:
    if dout is None:
        return {}
    highest, share = kept.highest, kept.share
    if kept.few:
        _, highest, share = _ATTENTION(
            kept.q, kept.k, kept.v, kept.mask, kept.bias, kept.lengths, kept.left, kept.right, kept.scale, False,
        )  # fmt: skip
    found = _BACKWARD(
        dout, kept.q, kept.k, kept.v, kept.out, highest, share, kept.mask, kept.bias, kept.lengths,
        kept.left, kept.right, kept.scale, "bias" in kept.needs,
    )  # fmt: skip
    names = ("q", "k", "v", "bias") if "bias" in kept.needs else ("q", "k", "v")
    return dict(zip(names, found, strict=False))


def _gradient_packed(kept: Any, dout: Array | None, *_: Any) -> dict[str, Array]:
    if dout is None:
        return {}
    found = _BACKWARD_PACKED(
        dout, kept.q, kept.k, kept.v, kept.out, kept.highest, kept.share, kept.q_offsets, kept.k_offsets,
        kept.left, kept.right, kept.scale,
    )  # fmt: skip
    return dict(zip(("q", "k", "v"), found, strict=True))


def _like(*arrays: Array) -> list[Any]:
    return [(tuple(x.shape), dtype_name(x)) for x in arrays]


def _results_of_backward(dout: Any, q: Array, k: Array, v: Array, *rest: Any) -> list[Any]:
    bias, of_bias = rest[4], rest[-1]
    return [*_like(q, k, v), *(_like(bias) if of_bias else [((0,), "float32")])]


_BACKWARD = Operator(
    "attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor highest, Tensor share, "
    "Tensor? mask, Tensor? bias, Tensor? lengths, int left, int right, float scale, bool of_bias) -> (dq, dk, dv, dbias)",
    backward,
    _results_of_backward,
)
_ATTENTION = Operator(
    f"attention({_DENSE}, bool few) -> (out, highest, share)",
    _compute,
    lambda q, *rest: [*_like(q), *[((0,) if rest[-1] else tuple(q.shape[:3]), "float32")] * 2],
    _gradient,
    keeps="q k v mask bias lengths out highest share",
)
_ATTENTION_ONLY = Operator(
    f"attention_only({_DENSE}, bool few) -> (out)",
    lambda *arguments: _compute(*arguments, keep=False),
    lambda q, *_: _like(q),
)
_BACKWARD_PACKED = Operator(
    "attention_varlen_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor highest, "
    "Tensor share, Tensor q_offsets, Tensor k_offsets, int left, int right, float scale) -> (dq, dk, dv)",
    backward_packed,
    lambda dout, q, k, v, *_: _like(q, k, v),
)
_VARLEN = Operator(
    f"attention_varlen({_PACKED}) -> (out, highest, share)",
    forward_packed,
    lambda q, *_: [*_like(q), *[((q.shape[1], q.shape[0]), "float32")] * 2],
    _gradient_packed,
    keeps="q k v q_offsets k_offsets out highest share",
)
_VARLEN_ONLY = Operator(
    f"attention_varlen_only({_PACKED}) -> (out)",
    lambda *arguments: forward_packed(*arguments, keep=False),
    lambda q, *_: _like(q),
)
_PAGED = Operator(
    "paged_attention(Tensor q, Tensor k_pages, Tensor v_pages, Tensor page_table, Tensor lengths, int left, int right, "
    "float scale) -> (out)",
    lambda q, k, v, table, lengths, left, right, scale: decode(
        q, k, v, None, None, lengths, left, right, scale, table
    ),
    lambda q, *_: _like(q),
)


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    mask: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    lengths: Array | None = None,
) -> Array:
    """softmax(scale Q Kᵀ + bias) V for q (batch, heads, queries, width), and k and v (batch, kv_heads, keys, width).

    ``q``, ``k`` and ``v`` are float16, bfloat16 or float32, all alike; the result has the dtype and shape of ``q``. ``width`` is 1 to
    256. ``heads`` is a multiple of ``kv_heads``: head h of the queries reads head h // (heads // kv_heads) of keys and values.

    ``scale`` is 1 / √width unless it is given. ``bias`` (float16, bfloat16 or float32) is added to the scaled scores, and where ``mask``
    (truth values) is False a query does not see a key; the shapes of both broadcast to (batch, heads, queries, keys).
    ``lengths`` (int32 or int64, of shape (batch,)) says how many keys of each sequence there are, from the first one on;
    numbers are limited to 0 to keys.

    The last query stands at the place of the last key, as in MLX and FlashAttention 2: query i is at p = i + n - queries, where n
    is the sequence's number of keys. With ``causal``, it sees the keys up to p. With ``window=w``, it sees the keys from p - w + 1 to
    p + w - 1 (w keys with ``causal``); with ``window=(before, after)``, those from p - before to p + after, and None is without an end.
    What several arguments hide is hidden by each. A query that sees no key gives 0, and has gradients of 0; so does one
    whose biases are all -inf. Rows of k and v behind ``lengths`` may hold anything. Keys that are hidden otherwise weigh 0 but may be
    read: NaN and infinities in their v make results NaN, as in MLX and PyTorch, and so do those in their k in gradients.

    Differentiable in q, k, v and bias. Gradients are sums in a fixed order, the same each time. Few queries (up to 8, and 32 with the
    heads that share keys) take the kernels of `attention_decode`.

    Raises LaunchTypeError or LaunchValueError for other dtypes, shapes that do not fit, and arrays of different frameworks or devices.

    Error: docs/ops.md has the formula, which counts the roundings of scores, weights and sums.

    >>> import numpy as np, triton_metal.ops as ops
    >>> q = k = np.zeros((1, 1, 3, 16), np.float32)
    >>> v = np.arange(3, dtype=np.float32)[None, None, :, None] * np.ones(16, np.float32)
    >>> ops.attention(q, k, v, causal=True)[0, 0, :, 0]
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _attention("attention", q, k, v, causal, mask, bias, scale, window, lengths)


def attention_decode(
    q: Array,
    k: Array,
    v: Array,
    *,
    causal: bool = False,
    mask: Array | None = None,
    bias: Array | None = None,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    lengths: Array | None = None,
) -> Array:
    """`attention` of few queries over many keys, as in generation: the keys are split between programs.

    The arguments, the result and the gradients are those of `attention`; only the way of computing differs. Each query reads the keys by
    itself, so that this pays for a few of them. ``lengths`` says how many keys of a cache are filled. Weights stay float32.

    Error: that of `attention`. Raises what `attention` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> q, cache = np.ones((1, 4, 1, 64), np.float32), np.ones((1, 2, 1000, 64), np.float32)
    >>> ops.attention_decode(q, cache, cache, lengths=np.array([700], np.int32)).shape
    (1, 4, 1, 64)
    """
    return _attention("attention_decode", q, k, v, causal, mask, bias, scale, window, lengths, True)


def attention_varlen(
    q: Array,
    k: Array,
    v: Array,
    q_offsets: Array,
    k_offsets: Array | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
) -> Array:
    """`attention` of sequences of different lengths that are packed one behind the other.

    ``q`` is (rows, heads, width), ``k`` and ``v`` are (rows of keys, kv_heads, width), of dtypes as in `attention`. ``q_offsets`` and
    ``k_offsets`` (int32 or int64) have one number more than there are sequences: sequence i has the rows from offsets[i] up to but not
    including offsets[i + 1]. Without ``k_offsets``, they are those of the queries. Sequences may be empty. The result is like ``q``;
    rows of no sequence give 0. ``causal``, ``scale`` and ``window`` mean for each sequence what they mean in `attention`: its last query
    stands at its last key. Differentiable in q, k and v.

    Raises errors as `attention` does, and LaunchValueError if offsets of NumPy decrease or leave the rows. Those of MLX and PyTorch are
    not read before the launch; they are limited to the rows.

    Error: that of `attention`.

    >>> import numpy as np, triton_metal.ops as ops
    >>> q, v = np.zeros((5, 1, 16), np.float32), np.ones((5, 1, 16), np.float32)
    >>> v[2:] = 3
    >>> ops.attention_varlen(q, q, v, np.array([0, 2, 5], np.int32))[:, 0, 0]
    array([1., 1., 3., 3., 3.], dtype=float32)
    """
    name = "attention_varlen"
    k_offsets = q_offsets if k_offsets is None else k_offsets
    check_arrays(name, q=q, k=k, v=v, q_offsets=q_offsets, k_offsets=k_offsets)
    _check_operands(name, q, k, v, 3)
    for text, offsets, rows in (("q_offsets", q_offsets, q), ("k_offsets", k_offsets, k)):
        check_dtype(name, text, offsets, INTEGERS)
        check_rank(name, text, offsets, 1)
        if not offsets.shape[0]:
            raise fail(name, f"{text} must have at least one number, the first row, but has none.")
        if framework(offsets) == "numpy" and (
            (offsets[1:] < offsets[:-1]).any() or offsets[0] < 0 or offsets[-1] > rows.shape[0]
        ):
            raise fail(
                name,
                f"{text} must not decrease, from at least 0 to at most {rows.shape[0]}, but is {offsets.tolist()}.",
            )
    check_shape(name, "k_offsets", k_offsets, q_offsets.shape, ", as q_offsets has,")
    left, right = _extent(name, window, causal)
    arguments = (
        q, k, v, contiguous(q_offsets), contiguous(k_offsets), left, right, _scale(name, scale, q)
    )  # fmt: skip
    return (_VARLEN if _keeps(q, k, v) else _VARLEN_ONLY)(*arguments)[0]


def paged_attention(
    q: Array,
    k_pages: Array,
    v_pages: Array,
    page_table: Array,
    lengths: Array,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
) -> Array:
    """`attention_decode` over keys and values in pages, which a table lists for each sequence.

    ``q`` is (batch, heads, queries, width); ``k_pages`` and ``v_pages`` are (pages, page_size, kv_heads, width), of dtypes as in
    `attention`. ``page_table`` (int32 or int64) is (batch, most pages of a sequence): key j of sequence b is row j % page_size of page
    page_table[b, j // page_size]. ``lengths`` (int32 or int64, of shape (batch,)) says how many keys each sequence has; entries of the
    table behind them are not read. Numbers outside the table and the pages are limited to those that exist. ``causal``, ``scale`` and ``window``
    are those of `attention`: the last query stands at the last key. A query that sees no key gives 0. Not differentiable.

    Error: that of `attention`. Raises LaunchTypeError or LaunchValueError for other dtypes, shapes that do not fit, and
    arrays of different frameworks or devices.

    >>> import numpy as np, triton_metal.ops as ops
    >>> pages = np.arange(4, dtype=np.float32)[:, None, None, None] * np.ones((4, 2, 1, 16), np.float32)
    >>> table, lengths = np.array([[3, 1]], np.int32), np.array([3], np.int32)  # keys in pages 3, 3 and 1
    >>> ops.paged_attention(np.zeros((1, 1, 1, 16), np.float32), pages, pages, table, lengths)[0, 0, 0, 0].round(3)
    np.float32(2.333)
    """
    name = "paged_attention"
    check_arrays(
        name, q=q, k_pages=k_pages, v_pages=v_pages, page_table=page_table, lengths=lengths
    )
    check_rank(name, "q", q, 4)
    check_rank(name, "k_pages", k_pages, 4)
    check_dtype(name, "q", q, FLOATS)
    check_same_dtype(name, q=q, k_pages=k_pages, v_pages=v_pages)
    (batch, heads, _, width), (pages, page_size, kv_heads, _) = q.shape, k_pages.shape
    _check_width(name, width)
    check_shape(
        name, "k_pages", k_pages, (pages, page_size, kv_heads, width), f" for q of {tuple(q.shape)}"
    )
    check_shape(name, "v_pages", v_pages, k_pages.shape, ", as k_pages has,")
    _check_heads(name, heads, kv_heads, "k_pages")
    check_dtype(name, "page_table", page_table, INTEGERS)
    check_rank(name, "page_table", page_table, 2)
    check_shape(
        name, "page_table", page_table, (batch, page_table.shape[1]), f" for {batch} sequences"
    )
    _check_lengths(name, lengths, batch)
    if page_size == 0 or (pages == 0 and page_table.shape[1]):
        raise fail(name, f"k_pages must have pages with rows but has shape {tuple(k_pages.shape)}.")
    left, right = _extent(name, window, causal)
    given = (q, k_pages, v_pages, page_table, contiguous(lengths), left, right)
    return _PAGED(*given, _scale(name, scale, q))[0]


def _attention(
    name: str, q: Array, k: Array, v: Array, causal: bool, mask: Array | None, bias: Array | None,
    scale: float | None, window: Any, lengths: Array | None, few: bool = False,
) -> Array:  # fmt: skip
    check_arrays(name, "mask bias lengths", q=q, k=k, v=v, mask=mask, bias=bias, lengths=lengths)
    _check_operands(name, q, k, v, 4)
    whole = (*q.shape[:3], k.shape[2])
    if mask is not None:
        check_dtype(name, "mask", mask, ("bool",))
        mask = _broadcast(name, "mask", mask, whole)
    if bias is not None:
        check_dtype(name, "bias", bias, FLOATS)
        bias = _broadcast(name, "bias", bias, whole)
    if lengths is not None:
        _check_lengths(name, lengths, q.shape[0])
        lengths = contiguous(lengths)
    left, right = _extent(name, window, causal)
    few = few or suits(q.shape[2], q.shape[1] // max(k.shape[1], 1))
    operator = _ATTENTION if _keeps(q, k, v, bias) else _ATTENTION_ONLY
    return operator(q, k, v, mask, bias, lengths, left, right, _scale(name, scale, q), few)[0]


def _keeps(*arrays: Array | None) -> bool:
    """Whether a gradient may be asked for later: of MLX's arrays nobody knows."""
    if is_torch(arrays[0]):
        import torch

        return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arrays)
    return is_mlx(arrays[0])


def _check_operands(name: str, q: Array, k: Array, v: Array, rank: int) -> None:
    check_rank(name, "q", q, rank)
    check_rank(name, "k", k, rank)
    check_dtype(name, "q", q, FLOATS)
    check_same_dtype(name, q=q, k=k, v=v)
    _check_width(name, q.shape[-1])
    # (batch, heads, rows, width), or (rows, heads, width)
    wanted = (q.shape[0], *k.shape[1:3], q.shape[3]) if rank == 4 else (*k.shape[:2], q.shape[2])
    check_shape(name, "k", k, wanted, f" for q of {tuple(q.shape)}")
    check_shape(name, "v", v, k.shape, ", as k has,")
    _check_heads(name, q.shape[1], k.shape[1], "k")


def _check_width(name: str, width: int) -> None:
    if not 1 <= width <= WIDEST:
        raise fail(
            name, f"q must have a width (its last dimension) of 1 to {WIDEST} but has {width}."
        )


def _check_heads(name: str, heads: int, kv_heads: int, text: str) -> None:
    if heads % kv_heads if kv_heads else heads:
        raise fail(
            name,
            f"q must have a multiple of the heads of {text}, which are {kv_heads}, but has {heads}.",
        )


def _check_lengths(name: str, lengths: Array, batch: int) -> None:
    check_dtype(name, "lengths", lengths, INTEGERS)
    check_shape(name, "lengths", lengths, (batch,), ", a number for each sequence of q,")


def _scale(name: str, scale: float | None, q: Array) -> float:
    return q.shape[-1] ** -0.5 if scale is None else check_number(name, "scale", scale)


def _extent(name: str, window: Any, causal: bool) -> tuple[int, int]:
    """How far a query sees before and behind its place; -1 is without an end."""
    causal = check_flag(name, "causal", causal)
    sides = window if isinstance(window, (tuple, list)) else (window, window)
    if len(sides) != 2:
        raise fail(name, f"window must be a number, two numbers or None but is {window!r}.")
    single = sides is not window
    found = []
    for side in sides:
        if side is None:
            found.append(-1)
            continue
        width = integer(side)
        if width is None:
            raise LaunchTypeError(
                f"[{name}] window must be an integer, a pair of integers or None but is {window!r}."
            )
        width -= single
        if width < 0:
            raise fail(
                name,
                f"window must be at least 1, or a pair of numbers of at least 0, but is {window!r}.",
            )
        found.append(min(width, 1 << 30))
    return found[0], 0 if causal else found[1]


def _broadcast(name: str, text: str, x: Array, whole: tuple[int, ...]) -> Array:
    """``x`` with four dimensions, each of which is 1 or that of (batch, heads, queries, keys)."""
    shape = tuple(x.shape)
    four = (1,) * (4 - len(shape)) + shape
    # Python's `in` does not find a number among sizes that torch.compile traces.
    if len(shape) > 4 or any(n != 1 and n != all_n for n, all_n in zip(four, whole, strict=True)):
        raise fail(
            name,
            f"{text} must have a shape that broadcasts to (batch, heads, queries, keys) = {tuple(whole)} "
            f"but has shape {shape}.",
        )
    if not is_mlx(x) and not (is_whole(x) and all(step >= 0 for step in strides(x))):
        x = contiguous(x)
    return reshaped(x, four)
