"""The SIMD-groups of launches without a choice of tiles: kernels of rows, reductions, scans, products with vectors, elementwise ones.

The compiler chooses them for a launch of eight programs for each core (docs/threads.md), without looking at a layout, or a kernel names
them for that. A launch of fewer programs wants more of them, so that a core has work. With so many SIMD-groups, what a program of a kernel does is nearly linear in
its numbers and the steps of its loop: the table has the coefficients, from a few launches, and the model is asked for the chip
as it is for other families.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..config import kernel_config
from ..cost import Chip
from ..cost.model import Sums
from ._arrays import Array, item_size
from ._choices import MOST_REGISTERS, Config, Entry, Launch, seconds
from ._family import Candidate, Family
from ._further_launches import FURTHER, FURTHER_PRODUCTS
from ._launches import (
    BY_SIDES,
    DTYPES,
    NONE,
    Arguments,
    Reader,
    Seen,
    both_forms,
    bytes_of,
    columns_form,
    form_of,
    fours_form,
    name_of,
    rows_of,
    side_by_side,
    with_values,
)

WARPS = (1, 2, 4, 8, 16, 32)
#: What coefficients are of: a program, a place of its tile in each step, a step, and a number that is there. Of a kernel whose tiles
#: are alike a step is so many places, and where these are whole all numbers are there.
TERMS = ("once", "place", "step", "number")
#: With so many programs for each core, what a kernel names stands. The compiler chooses for fewer.
MANY, MANY_OF_COMPILER = 32, 8
#: Estimates that are at most so many times the least one are equal: of these a launch's own stands, else the nearest to it.
EQUAL = 1.04


def _several(kind: str, rows: int) -> str:
    """A kind of programs of so many rows: what is reduced of each, and where each begins, is done for several at once."""
    return kind if rows == 1 else f"{kind} {rows}" if rows <= 16 else f"{kind} many"


def _reduced(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Reductions: rows of a tile are reduced side by side, and so many numbers of columns at once."""
    found = rows_of("x_ptr", "FORM")(arguments, grid)
    if found.kind.startswith("int32"):
        # Counts, which are added up in 64 bits: no kinds of their own.
        found = found._replace(kind=found.kind.replace("int32", "float32"))
    if arguments["FORM"] != "columns":
        kind = _several(found.kind, arguments["ROWS"])
        return found._replace(kind=form_of(kind, arguments["length"]))
    # A comparison is more than a sum.
    join = " max" if arguments.get("JOIN") in ("max", "min") else ""
    kind = f"{found.kind} {arguments['BLOCK']}{join}"
    return found._replace(kind=columns_form(kind, arguments["inner"]))


def _reduced_rows(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Long rows in blocks, and short ones, of which there may be four at once."""
    found = rows_of("x_ptr")(arguments, grid)
    form = "blocks" if arguments["BLOCK"] else "four" if arguments["ROWS"] == 4 else "one"
    found = found._replace(kind=form_of(f"{found.kind} {form}", arguments["length"]))
    return _in_blocks(found, arguments) if arguments["BLOCK"] else found


def _in_blocks(found: Seen, arguments: Arguments) -> Seen:
    """A row that is walked over in blocks, of which the last may be cut."""
    steps = -(-arguments["length"] // arguments["BLOCK"])
    return found._replace(tile=arguments["BLOCK"], steps=steps)


def _variance(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Long rows in blocks."""
    return _in_blocks(rows_of("x_ptr", "", "length")(arguments, grid), arguments)


def _centred(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """The logarithm of a sum of exponentials, or a variance: of several short rows, or of one."""
    read = _reduced if "FORM" in arguments else rows_of("x_ptr", "", "length")
    found = read(arguments, grid)
    dtype, *words = found.kind.split()
    end = "log" if arguments["END"] == "log" else "var"
    return found._replace(kind=" ".join([dtype, end, *words]))


def _scanned(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Rows of one block, or walked over in blocks, of which a program may have several."""
    found = rows_of("x_ptr")(arguments, grid)
    form = "one" if arguments["SINGLE"] else "totals" if arguments["TOTALS"] else "walk"
    kind = _several(f"{found.kind} {form}", arguments["ROWS"])
    return found._replace(kind=form_of(kind, arguments["length"]))


def _norm_gradients(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["x_ptr"]
    steps = -(-arguments["n_rows"] // math.prod(grid))
    columns = arguments["n_cols"]
    kind = form_of(name_of(x), columns)
    return Seen(kind, arguments["BLOCK"], steps, 2 * bytes_of(x), steps * columns)


def _column_sums(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Those of norms; matrix products have a kernel of the same name."""
    if "BLOCK_COLS" not in arguments:
        return NONE
    rows, block = arguments["n_rows"], arguments["BLOCK_ROWS"]
    columns = arguments["BLOCK_COLS"]
    steps = -(-rows // block)
    return Seen("float32", block * columns, steps, bytes_of(arguments["x_ptr"]), rows * columns)


def _sorted(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Steps are the stages of a sorting network; where a part is kept, that is sorted, and each half of the others merged into it.

    Which stages cross lanes and SIMD-groups depends on the block: each has a kind of its own.
    """
    x, block = arguments["x_ptr"], arguments["BLOCK"]
    if x is None:
        return NONE
    kept = arguments["KEPT"].bit_length() - 1
    stages = kept * (kept + 1) // 2
    some = arguments["KEPT"] < block
    # Places make keys twice as wide. Indices that are sorted are no kinds of their own.
    form = "some " if some else "placed " if arguments["PLACED"] else ""
    dtype = {"int32": "float32", "int16": "float16"}.get(name_of(x), name_of(x))
    kind = f"{dtype} {form}{max(block, SORTED[0])}"
    return Seen(kind, block * arguments["ROWS"], stages + (kept + 1) * some, bytes_of(x))


def _merged(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Steps are the stages of a bitonic merge."""
    keys, block = arguments["keys_ptr"], arguments["BLOCK"]
    return Seen(name_of(keys), block, block.bit_length() - 1, bytes_of(keys))


def _taken(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["x_ptr"]
    tile = arguments["BLOCK"] * arguments["ROWS"]
    read = min(bytes_of(x), math.prod(grid) * tile * item_size(name_of(x)))
    form = "even" if arguments["inner"] % 16 == 0 else "ragged"
    return Seen(f"{name_of(x)} {arguments['ALONG']} {form}", tile, 1, read)


def _vector(block: str) -> Reader:
    """A product with a vector, of so many rows or numbers of K in a program.

    Rows of the matrix (columns, where it lies along these) begin anywhere, or at 16 bytes.
    """

    def read(arguments: Arguments, grid: Sequence[int]) -> Seen:
        matrix = arguments["m_ptr"]
        dtype = name_of(matrix)
        far = max(arguments["stride_r"], arguments["stride_k"])
        form = "even" if far * item_size(dtype) % 16 == 0 else "ragged"
        steps = -(-arguments["K"] // arguments["BLOCK_K"])
        tile = arguments["BLOCK_R"] * arguments["BLOCK_K"]
        return Seen(f"{dtype} {form} {arguments[block]}", tile, steps, bytes_of(matrix))

    return read


def _quantized(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A few rows times a quantised matrix, so many numbers of K at once, of which some may not be there."""
    x, w, block = arguments["x_ptr"], arguments["w_ptr"], arguments["BLOCK_K"]
    steps = -(-arguments["K"] // block)
    cut = "" if arguments["EVEN"] else " cut"
    kind = f"{name_of(x)} {arguments['MODE']}{arguments['BITS']} {block}{cut}"
    return Seen(kind, arguments["BLOCK_N"] * block, steps, bytes_of(w))


def _convolved(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Tiles of pixels and channels, and steps over taps and inputs."""
    x, form, back = arguments["x_ptr"], arguments["FORM"], arguments["TRANSPOSED"]
    inputs, block = arguments["INPUTS"], arguments["BLOCK_K"]
    # Of a transposed one, each tap falls on places of the input in one phase of the result.
    taps = math.prod(arguments["TAPS"]) / (math.prod(arguments["STRIDE"]) if back else 1)
    deep_steps = taps * inputs / block if form == "flat" else taps * -(-inputs // block)
    steps = max(1, math.ceil(deep_steps))
    tile = arguments["BLOCK_M"] * arguments["BLOCK_N"]
    deep = "" if form == "narrow" else block
    read = bytes_of(x) + bytes_of(arguments["w_ptr"])
    kind = f"{name_of(x)} {form}{deep}"
    if form == "narrow":
        # Of the last blocks of pixels and channels fewer are there.
        written = arguments["n_pixels"] * arguments["OUTPUTS"] * arguments["GROUPS"]
        there = steps * written // max(1, math.prod(grid[:2]))
        return Seen(fours_form(kind, inputs * arguments["GROUPS"]), tile, steps, read, there)
    # Places of a group are sums of more terms.
    grouped = form == "tile" and arguments["GROUPS"] > 1
    side = " transposed" if back else " grouped" if grouped else ""
    return Seen(kind + side, tile, steps, read)


def _filter_gradient(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["wide_ptr"]
    steps = -(-arguments["part_pixels"] // arguments["BLOCK_K"])
    form = arguments["FORM"]
    # A product of one row with a block of pixels is no product of tiles.
    tile = arguments["BLOCK_K" if form == "narrow" else "BLOCK_M"] * arguments["BLOCK_N"]
    read = bytes_of(x) + bytes_of(arguments["narrow_ptr"])
    kind = f"{name_of(x)} {form}"
    if form != "narrow":
        return Seen(kind, tile, steps, read)
    summed = arguments["n_pixels"] * arguments["NARROWS"] * arguments["GROUPS"]
    there = summed // max(1, grid[0] * grid[2])
    kind = fours_form(kind, arguments["WIDES"] * arguments["GROUPS"])
    return Seen(kind, tile, steps, read, there)


def _attention(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A block of queries, and steps over keys: half of them where a query sees those before it. Widths are powers of two, and more."""
    q = arguments["q_ptr"]
    share = 2 if arguments["AHEAD"] == 1 and arguments["n_queries"] > arguments["BLOCK_M"] else 1
    steps = -(-arguments["n_keys"] // (share * arguments["BLOCK_N"]))
    wide = f"{name_of(q)} {arguments['A']}{'+' if arguments['B'] else ''}"
    tile = arguments["BLOCK_M"] * arguments["BLOCK_N"]
    read = sum(bytes_of(arguments[name]) for name in ("q_ptr", "k_ptr", "v_ptr"))
    return Seen(wide, tile, max(1, steps), read)


def _joined(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """The parts of a query's keys."""
    tile = arguments["PARTS"] * arguments["BLOCK"]
    return Seen(str(arguments["BLOCK"]), tile, 1, bytes_of(arguments["acc_ptr"]))


def _logits(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["hidden_ptr"]
    tile = arguments["BLOCK_ROWS"] * arguments["BLOCK_CLASSES"]
    steps = -(-arguments["width"] // arguments["BLOCK_K"])
    read = bytes_of(x) + bytes_of(arguments["weight_ptr"])
    return Seen(form_of(name_of(x), arguments["width"]), tile, steps, read)


_ROWS = ("", " 2", " 4", " 8", " 16", " many")


def _reductions(held: int, *joins: str) -> tuple[str, ...]:
    """Rows, and columns of which some numbers are reduced at once, by programs that hold so many numbers in all.

    The most of a column are those of 32 side by side, where float32 alone may begin anywhere. More than 16 rows are shorter than
    a 16th of what is held, and begin at multiples of 16 if that is more than 16.
    """
    most = held // 32
    blocks = [f"columns {1 << i}{join}" for join in joins for i in range(1, most.bit_length() - 1)]
    whole = [f"{dtype} columns {most}{join}" for join in joins for dtype in DTYPES]
    rows = with_values(*(f"rows{form}" for form in _ROWS), *blocks)
    every = (*both_forms(*rows, *(kind for kind in whole if "32" in kind)), *(kind for kind in whole if "32" not in kind))  # fmt: skip
    return tuple(kind for kind in every if held > 256 or not kind.endswith(" many"))


#: The blocks that are sorted.
SORTED = tuple(1 << i for i in range(5, 13))
_CENTRED = tuple(f"{end} rows{form}" for end in ("var", "log") for form in _ROWS)
#: Of keys with places of floats, which have 64 bits, a program has half as many.
_SORTS = tuple(
    f"{dtype} {form}{block}"
    for form in ("", "placed ", "some ")
    for block in SORTED
    for dtype in DTYPES
    if not (form and dtype == "float32" and block == SORTED[-1])
)
#: Convolutions of groups that are too small for products.
_NARROW = (
    *with_values("narrow", "narrow ragged"),
    *(f"{half} narrow fours" for half in DTYPES[1:]),
)
#: Convolutions that are no plain ones.
_SIDES = (" transposed", " grouped")
#: Numbers of K of a program: 16 bytes for each lane, or fewer of short rows. What is read four by four is shorter.
_VECTORS = (
    *with_values(
        *(f"{form} {block}" for form in ("even", "ragged") for block in (16, 32, 64, 128))
    ),
    *(f"{half} even 256" for half in DTYPES[1:]),
)


def _of_words(*modes: str, blocks: tuple[int, ...]) -> tuple[str, ...]:
    """So many numbers of K at once. The last ones are not there only of blocks that are cut by less than a fourth, and of the least."""
    forms = [f"{block}{cut}" for block in blocks for cut in ("", " cut" if block != 128 else "")]
    return with_values(*(f"{mode} {form}" for mode in modes for form in dict.fromkeys(forms)))


_SCANS = (*(f"one{form}" for form in _ROWS), "walk", "totals")
#: The kernels with a table: how their launches are read, and which kinds the table has.
KERNELS: Mapping[str, tuple[Reader, tuple[str, ...]]] = {
    "activation_kernel": (rows_of("x_ptr"), DTYPES),
    "activation_backward_kernel": (rows_of("x_ptr"), DTYPES),
    "gated_kernel": (rows_of("gate_ptr"), DTYPES),
    "softmax_kernel": (
        side_by_side("x_ptr", "LOG"),
        both_forms(
            *with_values(False, True),
            *with_values(*(f"{log} {sides}" for log in (False, True) for sides in BY_SIDES)),
        ),
    ),
    "uneven_softmax_kernel": (
        rows_of("x_ptr", "LOG", "length"),
        both_forms(*with_values(False, True)),
    ),
    "long_row_softmax_kernel": (rows_of("x_ptr", "", "length"), both_forms(*DTYPES)),
    "softmax_backward_kernel": (
        side_by_side("y_ptr"),
        both_forms(*DTYPES, *with_values(*BY_SIDES)),
    ),
    "norm_kernel": (rows_of("x_ptr", "CENTRE", "n_cols"), both_forms(*with_values(False, True))),
    "norm_row_kernel": (
        rows_of("x_ptr", "CENTRE", "n_cols"),
        both_forms(*with_values(False, True)),
    ),
    "long_norm_kernel": (rows_of("x_ptr", "", "n_cols"), both_forms(*DTYPES)),
    "norm_backward_kernel": (_norm_gradients, both_forms(*DTYPES)),
    "column_sums_kernel": (_column_sums, ("float32",)),
    "row_sums_kernel": (rows_of("logits_ptr", "", "classes"), both_forms(*DTYPES)),
    "long_row_sums_kernel": (rows_of("logits_ptr", "", "classes"), both_forms(*DTYPES)),
    "cross_entropy_backward_kernel": (rows_of("logits_ptr", "", "classes"), both_forms(*DTYPES)),
    "tiles_kernel": (_logits, both_forms(*DTYPES)),
    "reduce_kernel": (_reduced, _reductions(512, "", " max")),
    "reduce_row_kernel": (_reduced_rows, both_forms(*with_values("one", "four", "blocks"))),
    "centred_kernel": (_centred, both_forms(*with_values(*_CENTRED))),
    "centred_row_kernel": (_centred, both_forms(*with_values("var", "log"))),
    "variance_row_kernel": (_variance, both_forms(*DTYPES)),
    "place_kernel": (_reduced, _reductions(256, "")),
    "scan_kernel": (_scanned, both_forms(*with_values(*_SCANS))),
    "sort_kernel": (_sorted, _SORTS),
    "merge_kernel": (_merged, ("uint16", "uint32")),
    "take_kernel": (_taken, with_values("False even", "False ragged")),
    "vector_along_rows_kernel": (_vector("BLOCK_K"), _VECTORS),
    "vector_along_columns_kernel": (
        _vector("BLOCK_R"),
        (*with_values("even 16", "ragged 16"), "float32 even 128", "float32 ragged 128"),
    ),
    "word_vector_kernel": (_quantized, _of_words("affine4", "mxfp44", blocks=(512, 256, 128, 64))),
    "byte_vector_kernel": (_quantized, _of_words("affine8", "mxfp88", blocks=(256, 128, 64))),
    "convolution_kernel": (
        _convolved,
        (
            *_NARROW,
            *with_values(*(f"tile{deep}{side}" for deep in (8, 16) for side in ("", *_SIDES))),
            *with_values(*(f"flat{deep}{side}" for deep in (8, 16) for side in ("", _SIDES[0]))),
            *(f"{half} tile32{side}" for half in DTYPES[1:] for side in ("", *_SIDES)),
            *(f"{half} flat32{side}" for half in DTYPES[1:] for side in ("", _SIDES[0])),
        ),
    ),
    "filter_gradient_kernel": (
        _filter_gradient,
        (*with_values("tile", "flat"), *_NARROW),
    ),
    "attention_kernel": (_attention, with_values("32", "64", "64+", "128", "256")),
    "join_kernel": (_joined, ("16", "32", "64", "128", "256")),
    **FURTHER,
}
#: Those on simdgroup matrices.
PRODUCTS = (
    frozenset(
        name
        for name, (reader, _) in KERNELS.items()
        if reader in (_logits, _convolved, _filter_gradient, _attention)
    )
    | FURTHER_PRODUCTS
)


def weights(tile: int, steps: int, there: int) -> tuple[float, ...]:
    """How many of each of the TERMS a program has."""
    return (1.0, float(tile * steps), float(steps), float(there))


def question_of(
    kernel: Any, grid: Sequence[int], arguments: Arguments, outputs: int
) -> tuple[str, tuple[int, ...]] | None:
    """The kind and the sizes of a launch; None if it is not one of the table's.

    Sizes are programs, the numbers of a tile, the steps of a program, the bytes that the launch reads and writes in all,
    the SIMD-groups that it names, 0 where it names none, and the numbers of a program that are there.
    """
    reader, kinds = KERNELS[kernel.name]
    seen = reader(arguments, grid)
    if seen.kind not in kinds:
        return None
    named = arguments.get("num_warps") or 0
    steps = max(1, seen.steps)
    there = min(seen.there or seen.tile * steps, seen.tile * steps)
    sizes = (math.prod(grid), seen.tile, steps, seen.read + outputs, named, there)
    return f"{kernel.name} {seen.kind}", sizes


class Groups(Family):
    """SIMD-groups of kernels of `KERNELS`. A kind is the kernel's name and what `KERNELS` reads; sizes are those of `question_of`.

    Entries (SIMD-groups, 0) have in ``once`` what a program does, in ``step`` what it does of each place of its tiles, and in
    ``staged_step`` the registers for each place of a thread. Entries (SIMD-groups, 1), where launches of a kind differ, have in ``once``
    what a step does, and in ``step`` what a program does of each number that is there.
    """

    name = "groups"
    names = ("num_warps", "of_steps")
    choice = ("num_warps",)

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[tuple[Any, ...], Entry] = {}

    def kinds(self) -> Sequence[str]:
        return [f"{name} {kind}" for name, (_, kinds) in KERNELS.items() for kind in kinds]

    def configs(self, kind: str) -> Sequence[Config]:
        return [(warps, of_steps) for warps in WARPS for of_steps in (0, 1)]

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        """A thread has at least one number, a SIMD-group a product of 8x8: those that have the same do its work twice."""
        least = 64 if kind.split()[0] in PRODUCTS else 32
        return [(warps,) for warps in WARPS if warps == 1 or least * warps <= sizes[1]]

    def entry(self, kind: str, warps: int, tile: int, steps: int, there: int) -> Entry:
        """What a program of so many SIMD-groups, places of a tile, steps and numbers that are there does."""
        key = (kind, warps, tile, steps, there)
        found = self._entries.get(key)
        if found is None:
            parts = {each.config: each for each in self.table[kind]}
            own, more = parts[warps, 0], parts.get((warps, 1))
            terms = (own.once, own.step, *((more.once, more.step) if more else (Sums(), Sums())))
            of_terms = weights(tile, steps, there)
            sums = Sums(
                *(
                    max(0.0, math.fsum(w * v for w, v in zip(of_terms, values, strict=True)))
                    for values in zip(*terms, strict=True)
                )
            )
            registers = own.registers + tile / (32 * warps) * own.staged_step
            held = own.threadgroup_bytes
            found = Entry((warps,), 32 * warps, registers, held, False, False, 0, 0, sums, Sums())
            if len(self._entries) > 1 << 12:
                self._entries.clear()
            self._entries[key] = found
        return found

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        programs, tile, steps, memory, _, there = sizes
        # There are no counts of what cannot hold its numbers.
        known = {each.config[0] for each in self.table[kind]}
        grid = [w for (w,) in self.grid(kind, sizes) if w in known] or [min(known)]
        every = [self.entry(kind, warps, tile, steps, there) for warps in grid]
        for entry in [e for e in every if e.registers <= MOST_REGISTERS] or every[-1:]:
            (warps,) = entry.config
            launch = Launch(entry, programs, 0, memory)
            yield Candidate((warps,), (abs(math.log2(warps / 4)),), (launch,), True)

    def own(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> int:
        """The SIMD-groups that a launch has without this family: those that it names, or nearly those that the compiler chooses."""
        named = sizes[4]
        if named:
            return named
        many = (MANY_OF_COMPILER * chip.cores, *sizes[1:])
        found = self._estimates(chip, kind, many)
        least = min(found.values())
        return min(
            (w for w in found if found[w] <= 1.02 * least), key=lambda w: abs(math.log2(w / 4))
        )

    def _estimates(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> dict[int, float]:
        return {
            each.config[0]: seconds(chip, each.launches) for each in self.candidates(kind, sizes)
        }

    def best(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> Config:
        """The choice for a launch on a chip; (0,) for the launch's own, which stands unless another is better."""
        kernel = kind.split()[0]
        stands = sizes[4] and kernel not in PRODUCTS
        if stands and sizes[0] >= MANY * chip.cores:
            return (0,)
        key = (chip.name, chip.cores, kind, sizes)
        known = self._kept.get(key)
        if known is None:
            found = self._estimates(chip, kind, sizes)
            least, own = min(found.values()), self.own(chip, kind, sizes)
            # Fewer than a launch names may not hold what its threads have.
            near = [w for w in found if w >= sizes[4] and found[w] <= EQUAL * least] or [own]
            best = min(near, key=lambda warps: abs(math.log2(warps / own)))
            # What the compiler chooses is only nearly known.
            known = (0 if best == sizes[4] else best,)
            self.keep(key, known)
        return known


GROUPS = Groups()


def groups_of(
    kernel: Any, grid: Sequence[int], arguments: Mapping[str, Any], outputs: int, like: Array
) -> int | None:
    """The SIMD-groups of a launch on the device of ``like``; None for its own."""
    question = question_of(kernel, grid, arguments, outputs)
    if question is None or kernel_config().num_warps is not None:
        return None
    return GROUPS.choose(like, *question[:1], *question[1])[0] or None
