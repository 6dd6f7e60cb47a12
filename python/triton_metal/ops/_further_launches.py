"""How launches of further kernels are read for the table of SIMD-groups: indices, optimisers, quantised layouts and others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ._arrays import size_of
from ._launches import (
    DTYPES,
    NONE,
    Arguments,
    Reader,
    Seen,
    both_forms,
    bytes_of,
    form_of,
    name_of,
    rows_of,
    with_values,
)


def _numbers(array: str, tile: Callable[[Arguments], int], arrays: int = 1) -> Reader:
    """Programs that have a tile of the numbers of so many arrays, in one step."""

    def read(arguments: Arguments, grid: Sequence[int]) -> Seen:
        x = arguments[array]
        count = size_of(tuple(x.shape))
        there = -(-count // math.prod(grid))
        return Seen(name_of(x), tile(arguments), 1, arrays * bytes_of(x), there)

    return read


def _block(arguments: Arguments) -> int:
    return arguments["BLOCK"]


def _reduction_gradient(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Neighbours of a row share its gradient, where rows begin at multiples of 16."""
    found = _numbers("x_ptr", _block)(arguments, grid)
    kind = f"{found.kind} {arguments['KIND']}"
    return found._replace(kind=form_of(kind, arguments["length"]))


def _rotary(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Rows are steps; the angles of their pairs, which are the numbers that are there, are computed once."""
    x, heads = arguments["x_ptr"], arguments["n_heads"]
    form = "neighbours" if arguments["NEIGHBOURS"] else "halves"
    angles = "angles" if arguments["cos_ptr"] is None else "table"
    pairs = arguments["POSITIONS"] * sum(arguments["WIDTHS"])
    cut = "" if arguments["FULL"] else " cut"
    return Seen(f"{name_of(x)} {form} {angles}{cut}", pairs, -(-heads // grid[1]), bytes_of(x), pairs)  # fmt: skip


def _embedded(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A block of the row of an index."""
    weight, width, block = arguments["weight_ptr"], arguments["width"], arguments["BLOCK"]
    read = grid[0] * width * bytes_of(weight) // max(1, size_of(tuple(weight.shape)))
    return Seen(form_of(name_of(weight), width), block, 1, read, -(-width // grid[1]))


def _embedding_gradient(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Bisections of the indices, whose steps are the numbers that are there; and steps over the places of a row."""
    dy, count = arguments["dy_ptr"], arguments["count"]
    steps = max(1, -(-count // (grid[0] * arguments["PLACES"])))
    tile = arguments["PLACES"] * arguments["BLOCK"]
    return Seen(form_of(name_of(dy), arguments["width"]), tile, steps, bytes_of(dy), count.bit_length())  # fmt: skip


def _sums_at_indices(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Rows side by side, of which each power of two is a kind; the updates of a place are steps."""
    updates, count = arguments["updates_ptr"], arguments["count"]
    steps = max(1, -(-count // max(1, arguments["length"])))
    rows = arguments["ROWS"]
    kind = f"{name_of(updates)} {rows.bit_length() - 1}"
    if rows <= MOST_WIDE_ROWS:
        kind = form_of(kind, arguments["inner"])
    return Seen(kind, rows * arguments["BLOCK"], steps, bytes_of(updates))


def _losses(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Each row reads one logit, and three numbers."""
    x, rows = arguments["logits_ptr"], arguments["n_rows"]
    there = -(-rows // math.prod(grid))
    form = "each" if arguments["EACH"] else "sum"
    return Seen(f"{name_of(x)} {form}", arguments["BLOCK"], 1, 16 * rows, there)


def _column_scan(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Lanes go along columns number by number."""
    x = arguments["x_ptr"]
    form = "totals" if arguments["TOTALS"] else "walk"
    return Seen(f"{name_of(x)} {form}", arguments["ROWS"], arguments["part_length"], bytes_of(x))


def _optimised(states: Sequence[str]) -> Reader:
    """A block of one of up to four arrays."""

    def read(arguments: Arguments, grid: Sequence[int]) -> Seen:
        count = sum(arguments[f"n{place}"] for place in range(4))
        arrays = [arguments[f"{name}{place}"] for name in ("p", "g", *states) for place in range(4)]
        kind = f"{name_of(arguments['p0'])} {'first' if arguments['m0'] is None else 'later'}"
        read = sum(bytes_of(x) for x in arrays if x is not None)
        return Seen(kind, arguments["BLOCK"], 1, read, -(-count // math.prod(grid)))

    return read


def _histogram(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Steps over the numbers of a part; the bins are the numbers that are there."""
    x, block = arguments["x_ptr"], arguments["BLOCK"]
    form = "plain" if arguments["edges_ptr"] is None else "search" if arguments["SEARCH"] else "near"  # fmt: skip
    return Seen(form, block, -(-arguments["part_length"] // block), bytes_of(x), arguments["BINS"])


def _quantized_groups(arguments: Arguments, grid: Sequence[int]) -> Seen:
    w, group = arguments["w_ptr"], arguments["GROUP"]
    there = -(-arguments["groups"] * group // math.prod(grid))
    kind = f"{name_of(w)} {arguments['BITS']} {group}"
    return Seen(kind, group * arguments["BLOCK"], 1, bytes_of(w), there)


def _dequantized(arguments: Arguments, grid: Sequence[int]) -> Seen:
    q, scales, each = arguments["q_ptr"], arguments["scales_ptr"], 32 // arguments["BITS"]
    there = -(-arguments["words"] * each // math.prod(grid))
    kind = f"{name_of(scales)} {arguments['BITS']}"
    return Seen(kind, each * arguments["BLOCK"], 1, bytes_of(q) + bytes_of(scales), there)


def _weight_gradients(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Rows are steps, of a block of their columns each."""
    x, columns = arguments["x_ptr"], arguments["n_cols"]
    steps = -(-arguments["n_rows"] // grid[0])
    there = steps * -(-columns // grid[1])
    return Seen(form_of(name_of(x), columns), arguments["BLOCK"], steps, 2 * bytes_of(x), there)


def _tile_of_logits(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Gradients of logits, and products with them."""
    x = arguments["hidden_ptr"] if "hidden_ptr" in arguments else arguments["b_ptr"]
    length = arguments["width"] if "width" in arguments else arguments["length"]
    tile = arguments["BLOCK_ROWS"] * arguments["BLOCK_CLASSES"]
    kind = name_of(x)
    if "a_step" in arguments:
        if arguments["EACH"]:
            return NONE
        kind += " columns" if arguments["a_row_step"] == 1 else " rows"
    elif arguments["EACH"]:
        return NONE
    return Seen(form_of(kind, length), tile, -(-length // arguments["BLOCK_K"]), bytes_of(x))


def _gradient_of_attention(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A block of queries and steps over keys, or of keys and steps over queries of all heads that share them."""
    q, keys = arguments["q_ptr"], "dk_steps" in arguments
    if any(arguments.get(name) is not None for name in ("mask_ptr", "bias_ptr", "q_offsets_ptr")):
        return NONE
    rows, block, n = ("BLOCK_N", "BLOCK_M", "n_queries") if keys else ("BLOCK_M", "BLOCK_N", "n_keys")  # fmt: skip
    share = 2 if arguments["AHEAD"] == 1 and arguments["n_queries"] > arguments[rows] else 1
    steps = -(-arguments[n] // (share * arguments[block])) * (arguments["group"] if keys else 1)
    wide = f"{name_of(q)} {arguments['A']}{'+' if arguments['B'] else ''}"
    read = sum(bytes_of(arguments[name]) for name in ("q_ptr", "k_ptr", "v_ptr", "dout_ptr"))
    # A block of results is as wide as the heads.
    tile = max(arguments["BLOCK_M"] * arguments["BLOCK_N"], arguments[rows] * arguments["A"])
    return Seen(wide, tile, max(1, steps), read)


#: So many rows side by side still have a thread's neighbours.
MOST_WIDE_ROWS = 16
#: The kinds of reductions that have gradients.
GRADIENTS = ("sum", "mean", "logsumexp", "extreme", "norm", "var", "std", "prod")
#: The kernels, how their launches are read, and which kinds the table has.
FURTHER: Mapping[str, tuple[Reader, tuple[str, ...]]] = {
    "gated_backward_kernel": (_numbers("gate_ptr", _block, 3), DTYPES),
    "dropout_kernel": (_numbers("x_ptr", lambda arguments: 4 * arguments["GROUPS"]), DTYPES),
    "reduction_gradient_kernel": (_reduction_gradient, both_forms(*with_values(*GRADIENTS))),
    "put_kernel": (_numbers("dy_ptr", _block, 3), DTYPES),
    "plain_indices_kernel": (_numbers("indices_ptr", _block), ("int32", "int64")),
    "rotary_kernel": (
        _rotary,
        with_values(
            *(
                f"{form} {angles}{cut}"
                for form in ("halves", "neighbours")
                for angles in ("angles", "table")
                for cut in ("", " cut")
            )
        ),
    ),
    "embedding_kernel": (_embedded, both_forms(*DTYPES)),
    "embedding_backward_kernel": (_embedding_gradient, both_forms(*DTYPES)),
    "sums_at_indices_kernel": (
        _sums_at_indices,
        (*with_values(*range(8)), *with_values(*(f"{bit} ragged" for bit in range(5)))),
    ),
    "losses_kernel": (_losses, with_values("sum", "each")),
    "column_scan_kernel": (_column_scan, with_values("walk", "totals")),
    "adamw_kernel": (_optimised(("m", "v")), with_values("first", "later")),
    "sgd_kernel": (_optimised(("m",)), with_values("first", "later")),
    "histogram_kernel": (_histogram, ("plain", "search", "near")),
    "quantize_kernel": (
        _quantized_groups,
        with_values(*(f"{bits} {group}" for bits in (4, 8) for group in (32, 64, 128))),
    ),
    "mx_quantize_kernel": (_quantized_groups, with_values("4 32", "8 32")),
    "dequantize_kernel": (_dequantized, (*with_values(4, 8), "uint8 4", "uint8 8")),
    "weight_gradients_kernel": (_weight_gradients, both_forms(*DTYPES)),
    "long_norm_backward_kernel": (rows_of("x_ptr", "", "n_cols"), both_forms(*DTYPES)),
    "chunk_kernel": (_tile_of_logits, both_forms(*DTYPES)),
    "product_kernel": (_tile_of_logits, both_forms(*with_values("rows", "columns"))),
    "attention_dq_kernel": (_gradient_of_attention, with_values("32", "64", "64+", "128", "256")),
    "attention_dkv_kernel": (_gradient_of_attention, with_values("32", "64", "64+", "128", "256")),
}
#: Those on simdgroup matrices.
FURTHER_PRODUCTS = frozenset(
    name
    for name, (reader, _) in FURTHER.items()
    if reader in (_tile_of_logits, _gradient_of_attention)
)
