"""The SIMD-groups of launches without a choice of tiles: kernels of rows, reductions, scans, products with vectors, elementwise ones.

The compiler chooses them for a launch of eight programs for each core (docs/threads.md), or a kernel names them for that. A launch of
fewer programs wants more of them, so that a core has work. With so many SIMD-groups, what a program of a kernel does is nearly linear in
its numbers and the steps of its loop: the table has the coefficients, from a few launches, and the model is asked for the chip
as it is for other families.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..config import kernel_config
from ..cost import Chip
from ..cost.model import Sums
from ._arrays import Array, dtype_name, item_size, size_of
from ._choices import MOST_REGISTERS, Config, Entry, Launch, seconds
from ._family import Candidate, Family

WARPS = (1, 2, 4, 8, 16, 32)
#: What coefficients are of: a program, a number, a step. Of a kernel whose tiles are alike a step is so many numbers.
TERMS = ("once", "number", "step")
#: With so many programs for each core, the compiler's choice or the kernel's own stands. The compiler chooses for fewer.
MANY, MANY_OF_COMPILER = 32, 8
#: Estimates that are at most so many times the least one are equal: of these a launch's own stands, else the nearest to it.
EQUAL = 1.04


class Seen(NamedTuple):
    """What a launch's arguments say: the dtype of its numbers and what else tells its kind, the numbers of a program's tile, the
    steps of a program (0: as many as it takes to read an array), and the bytes that are read.
    """

    kind: str
    tile: int
    steps: int
    read: int


#: A launch that no table knows.
NONE = Seen("", 0, 0, 0)
Arguments = Mapping[str, Any]
Reader = Callable[[Arguments, Sequence[int]], Seen]


#: The names of dtypes that arrays have had; those of three frameworks are not many.
_names: dict[Any, str] = {}


def _name(x: Array) -> str:
    """`dtype_name`, which torch.compile traces and which therefore keeps nothing, for every launch."""
    found = _names.get(x.dtype)
    if found is None:
        found = _names[x.dtype] = dtype_name(x)
    return found


def _bytes(x: Array) -> int:
    return size_of(tuple(x.shape)) * item_size(_name(x))


def _rows(array: str, constant: str = "") -> Reader:
    """Programs that share the numbers of an array; the values of a constant are kinds apart."""

    def read(arguments: Arguments, grid: Sequence[int]) -> Seen:
        x = arguments[array]
        if x is None:
            return NONE
        dtype, tile = _name(x), arguments.get("BLOCK", 1)
        kind = f"{dtype} {arguments[constant]}" if constant else dtype
        if "WIDTHS" in arguments:
            tile = arguments["UNIT"] * sum(arguments["WIDTHS"])
        else:
            tile *= arguments.get("ROWS", 1)
        count = size_of(tuple(x.shape))
        return Seen(kind, tile, -(-count // (math.prod(grid) * tile)), count * item_size(dtype))

    return read


def _reduced(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Reductions: several rows of a tile are reduced side by side."""
    found = _rows("x_ptr", "FORM")(arguments, grid)
    if not found.kind.endswith(" rows") or arguments["ROWS"] == 1:
        return found
    return found._replace(kind=found.kind + (" several" if arguments["ROWS"] <= 4 else " many"))


def _norm_gradients(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["x_ptr"]
    steps = -(-arguments["n_rows"] // math.prod(grid))
    return Seen(_name(x), arguments["BLOCK"], steps, 2 * _bytes(x))


def _column_sums(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Those of norms; matrix products have a kernel of the same name."""
    if "BLOCK_COLS" not in arguments:
        return NONE
    rows, block = arguments["n_rows"], arguments["BLOCK_ROWS"]
    kind = "float32 few" if rows < block else "float32"
    tile = min(rows, block) * arguments["BLOCK_COLS"]
    return Seen(kind, tile, -(-rows // block), _bytes(arguments["x_ptr"]))


def _sorted(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Steps are the stages of a sorting network; where a part is kept, that is sorted, and each half of the others merged into it."""
    x = arguments["x_ptr"]
    if x is None:
        return NONE
    kept = arguments["KEPT"].bit_length() - 1
    stages = kept * (kept + 1) // 2
    some = arguments["KEPT"] < arguments["BLOCK"]
    tile = arguments["BLOCK"] * arguments["ROWS"]
    return Seen(_name(x) + " some" * some, tile, stages + (kept + 1) * some, _bytes(x))


def _taken(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["x_ptr"]
    tile = arguments["BLOCK"] * arguments["ROWS"]
    read = min(_bytes(x), math.prod(grid) * tile * item_size(_name(x)))
    form = "even" if arguments["inner"] % 16 == 0 else "ragged"
    return Seen(f"{_name(x)} {arguments['ALONG']} {form}", tile, 1, read)


def _vector(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A product with a vector. Rows of the matrix (columns, where it lies along these) begin anywhere, or at 16 bytes."""
    matrix = arguments["m_ptr"]
    dtype = _name(matrix)
    far = max(arguments["stride_r"], arguments["stride_k"])
    form = "even" if far * item_size(dtype) % 16 == 0 else "ragged"
    steps = -(-arguments["K"] // arguments["BLOCK_K"])
    tile = arguments["BLOCK_R"] * arguments["BLOCK_K"]
    return Seen(f"{dtype} {form}", tile, steps, _bytes(matrix))


def _quantized(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A few rows times a quantised matrix."""
    x, w = arguments["x_ptr"], arguments["w_ptr"]
    tile = arguments["BLOCK_N"] * arguments["BLOCK_K"]
    steps = -(-arguments["K"] // arguments["BLOCK_K"])
    return Seen(f"{_name(x)} {arguments['MODE']}{arguments['BITS']}", tile, steps, _bytes(w))


def _convolved(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """Tiles of pixels and channels, and steps over taps and inputs."""
    x, form, taps = arguments["x_ptr"], arguments["FORM"], math.prod(arguments["TAPS"])
    inputs, block = arguments["INPUTS"], arguments["BLOCK_K"]
    steps = -(-taps * inputs // block) if form == "flat" else taps * -(-inputs // block)
    tile = arguments["BLOCK_M"] * arguments["BLOCK_N"]
    deep = block if form == "tile" else ""
    read = _bytes(x) + _bytes(arguments["w_ptr"])
    return Seen(f"{_name(x)} {form}{deep}", tile, steps, read)


def _filter_gradient(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["wide_ptr"]
    steps = -(-arguments["part_pixels"] // arguments["BLOCK_K"])
    tile = arguments["BLOCK_M"] * arguments["BLOCK_N"]
    read = _bytes(x) + _bytes(arguments["narrow_ptr"])
    return Seen(f"{_name(x)} {arguments['FORM']}", tile, steps, read)


def _attention(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """A block of queries, and steps over keys: half of them where a query sees those before it. Widths are powers of two, and more."""
    q = arguments["q_ptr"]
    share = 2 if arguments["AHEAD"] == 1 and arguments["n_queries"] > arguments["BLOCK_M"] else 1
    steps = -(-arguments["n_keys"] // (share * arguments["BLOCK_N"]))
    wide = f"{_name(q)} {arguments['A']}{'+' if arguments['B'] else ''}"
    tile = arguments["BLOCK_M"] * arguments["BLOCK_N"]
    read = sum(_bytes(arguments[name]) for name in ("q_ptr", "k_ptr", "v_ptr"))
    return Seen(wide, tile, max(1, steps), read)


def _joined(arguments: Arguments, grid: Sequence[int]) -> Seen:
    """The parts of a query's keys."""
    tile = arguments["PARTS"] * arguments["BLOCK"]
    return Seen(str(arguments["BLOCK"]), tile, 1, _bytes(arguments["acc_ptr"]))


def _logits(arguments: Arguments, grid: Sequence[int]) -> Seen:
    x = arguments["hidden_ptr"]
    tile = arguments["BLOCK_ROWS"] * arguments["BLOCK_CLASSES"]
    steps = -(-arguments["width"] // arguments["BLOCK_K"])
    return Seen(_name(x), tile, steps, _bytes(x) + _bytes(arguments["weight_ptr"]))


def _scaled(arguments: Arguments, grid: Sequence[int]) -> Seen:
    forms = f"{arguments['A_FORMAT']}:{arguments['B_FORMAT']}"
    tile = arguments["BLOCK_M"] * arguments["BLOCK_N"]
    steps = -(-arguments["part_size"] // arguments["BLOCK_K"])
    return Seen(forms, tile, steps, _bytes(arguments["a_ptr"]) + _bytes(arguments["b_ptr"]))


DTYPES = ("float32", "float16", "bfloat16")


def _with(*values: Any) -> tuple[str, ...]:
    """Kinds of each dtype with each of these values."""
    return tuple(f"{dtype} {value}" for value in values for dtype in DTYPES)


_FORMS = ("rows", "rows several", "rows many", "columns")
#: The kernels with a table: how their launches are read, and which kinds the table has.
KERNELS: Mapping[str, tuple[Reader, tuple[str, ...]]] = {
    "activation_kernel": (_rows("x_ptr"), DTYPES),
    "activation_backward_kernel": (_rows("x_ptr"), DTYPES),
    "gated_kernel": (_rows("gate_ptr"), DTYPES),
    "softmax_kernel": (_rows("x_ptr", "LOG"), _with(False, True)),
    "uneven_softmax_kernel": (_rows("x_ptr", "LOG"), _with(False, True)),
    "long_softmax_kernel": (_rows("x_ptr"), DTYPES),
    "softmax_backward_kernel": (_rows("y_ptr"), DTYPES),
    "norm_kernel": (_rows("x_ptr", "CENTRE"), _with(False, True)),
    "long_norm_kernel": (_rows("x_ptr"), DTYPES),
    "norm_backward_kernel": (_norm_gradients, DTYPES),
    "column_sums_kernel": (_column_sums, ("float32", "float32 few")),
    "row_sums_kernel": (_rows("logits_ptr"), DTYPES),
    "long_row_sums_kernel": (_rows("logits_ptr"), DTYPES),
    "cross_entropy_backward_kernel": (_rows("logits_ptr"), DTYPES),
    "tiles_kernel": (_logits, DTYPES),
    "reduce_kernel": (_reduced, _with(*_FORMS)),
    "centred_kernel": (_reduced, _with(*_FORMS[:3])),
    "place_kernel": (_reduced, _with(*_FORMS)),
    "scan_kernel": (_rows("x_ptr"), DTYPES),
    "sort_kernel": (_sorted, (*DTYPES, *_with("some"))),
    "take_kernel": (_taken, _with("False even", "False ragged")),
    "vector_along_rows_kernel": (_vector, _with("even", "ragged")),
    "vector_along_columns_kernel": (_vector, _with("even", "ragged")),
    "word_vector_kernel": (_quantized, _with("affine4", "mxfp44")),
    "byte_vector_kernel": (_quantized, _with("affine8", "mxfp88")),
    "convolution_kernel": (
        _convolved,
        (*_with("tile8", "tile16", "flat"), "float16 tile32", "bfloat16 tile32"),
    ),
    "filter_gradient_kernel": (_filter_gradient, _with("tile", "flat")),
    "attention_kernel": (_attention, _with("32", "64", "64+", "128", "256")),
    "join_kernel": (_joined, ("16", "32", "64", "128", "256")),
    "scaled_matmul_kernel": (_scaled, ("e2m1:e2m1", "e4m3:e4m3", "fp16:e2m1")),
}
#: Those on simdgroup matrices.
PRODUCTS = frozenset(
    name
    for name, (reader, _) in KERNELS.items()
    if reader in (_logits, _convolved, _filter_gradient, _attention, _scaled)
)


def weights(tile: int, steps: int) -> tuple[float, ...]:
    """How many of each of the TERMS a program has."""
    return (1.0, float(tile * steps), float(steps))


def question_of(
    kernel: Any, grid: Sequence[int], arguments: Arguments, outputs: int
) -> tuple[str, tuple[int, ...]] | None:
    """The kind and the sizes of a launch; None if it is not one of the table's.

    Sizes are programs, the numbers of a tile, the steps of a program, the bytes that the launch reads and writes in all, and
    the SIMD-groups that it names, 0 where it names none.
    """
    reader, kinds = KERNELS[kernel.name]
    seen = reader(arguments, grid)
    if seen.kind not in kinds:
        return None
    named = arguments.get("num_warps") or 0
    sizes = (math.prod(grid), seen.tile, max(1, seen.steps), seen.read + outputs, named)
    return f"{kernel.name} {seen.kind}", sizes


class Groups(Family):
    """SIMD-groups of kernels of `KERNELS`. A kind is the kernel's name and what `KERNELS` reads; sizes are those of `question_of`.

    Entries (SIMD-groups, 0) have in ``once`` what a program does, in ``step`` what it does of each number, and in ``staged_step`` the
    registers for each number of a thread. Entries (SIMD-groups, 1), where tiles of a kind differ, have in ``once`` what a step does.
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

    def entry(self, kind: str, warps: int, tile: int, steps: int) -> Entry:
        """What a program of so many SIMD-groups, numbers of a tile and steps does."""
        key = (kind, warps, tile, steps)
        found = self._entries.get(key)
        if found is None:
            parts = {each.config: each for each in self.table[kind]}
            own, of_steps = parts[warps, 0], parts.get((warps, 1))
            terms = (own.once, own.step, of_steps.once if of_steps else Sums())
            of_terms = weights(tile, steps)
            sums = Sums(
                *(
                    max(0.0, math.fsum(w * v for w, v in zip(of_terms, values, strict=True)))
                    for values in zip(*terms, strict=True)
                )
            )
            registers = own.registers + tile / (32 * warps) * own.staged_step
            found = Entry((warps,), 32 * warps, registers, 0, False, False, 0.0, 0.0, sums, Sums())
            if len(self._entries) > 1 << 12:
                self._entries.clear()
            self._entries[key] = found
        return found

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        programs, tile, steps, memory, _ = sizes
        # There are no counts of what cannot hold its numbers.
        known = {each.config[0] for each in self.table[kind]}
        grid = [w for (w,) in self.grid(kind, sizes) if w in known] or [min(known)]
        every = [self.entry(kind, warps, tile, steps) for warps in grid]
        for entry in [e for e in every if e.registers <= MOST_REGISTERS] or every[-1:]:
            (warps,) = entry.config
            launch = Launch(entry, programs, 0, memory)
            yield Candidate((warps,), (abs(math.log2(warps / 4)),), (launch,), True)

    def own(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> int:
        """The SIMD-groups that a launch has without this family: those that it names, or nearly those that the compiler chooses."""
        _, *rest, named = sizes
        if named:
            return named
        many = (MANY_OF_COMPILER * chip.cores, *rest, named)
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
        if sizes[0] >= MANY * chip.cores:
            return (0,)
        key = (chip.name, chip.cores, kind, sizes)
        known = self._kept.get(key)
        if known is None:
            found = self._estimates(chip, kind, sizes)
            least, own = min(found.values()), self.own(chip, kind, sizes)
            # Fewer than a launch names may not hold what its threads have.
            near = [w for w in found if w >= sizes[-1] and found[w] <= EQUAL * least] or [own]
            best = min(near, key=lambda warps: abs(math.log2(warps / own)))
            # What the compiler chooses is only nearly known.
            known = (0 if best == sizes[-1] else best,)
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
