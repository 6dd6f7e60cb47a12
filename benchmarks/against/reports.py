"""The table, the JSON and the page of docs/ that the rows' results become."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from against.counting import COUNTS, JUDGED, LARGEST, Compared, Measured
from against.problem import Case

#: What the table shows of the G13 compiler, and the keys of what it says.
G13 = {
    "G13 registers": "registers",
    "in flight": "in flight",
    "spills": "spills",
    "others a multiply": "others a multiply",
}
#: Columns of ratios.
RATIOS = (*COUNTS, *LARGEST)


@dataclass(frozen=True)
class Row:
    """A case with its result, or the reason why there is none; `g13` has what is said of each side's text."""

    case: Case
    compared: Compared | None = None
    skipped: str = ""
    g13: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def error(self) -> str:
        """Why there are no ratios, or nothing."""
        if self.compared is None:
            return self.skipped
        for side, measured in (("ours", self.compared.ours), ("MLX's", self.compared.mlx)):
            if measured.error:
                return f"{side}: {measured.error}"
        return ""

    @property
    def spilling(self) -> list[str]:
        """Which of the chosen texts spill on G13, where its compiler was asked."""
        return [f"{side} spills on G13" for side, said in self.g13.items() if said.get("spills")]


def number(value: float) -> str:
    """A ratio: two digits behind the point, ∞ if MLX has none of it."""
    return "∞" if math.isinf(value) else f"{value:.2f}"


def g13_cells(row: Row) -> list[str]:
    """Each of G13's columns as ours : MLX's. A text that the compiler refuses says so in the first."""
    cells = []
    for key in G13.values():
        sides = []
        for side in ("ours", "mlx"):
            said = row.g13.get(side, {})
            refused = "error" in said and not cells
            value = said.get(key)
            sides.append("refused" if refused else "–" if value is None else f"{value:g}")
        cells.append(" : ".join(sides))
    return cells


def table(rows: Sequence[Row]) -> Table:
    """All rows, for the terminal. Counts of which ours are more are red."""
    judged = any(row.g13 for row in rows)
    result = Table(title="ours : MLX's", header_style="bold", pad_edge=False)
    for name in ("problem", "shape", "type", *RATIOS, *(G13 if judged else ())):
        result.add_column(name, justify="left" if name in ("problem", "shape") else "right")
    for row in rows:
        case = row.case
        head = [case.family, case.shape, case.dtype]
        if row.error:
            result.add_row(*head, f"[yellow]{row.error}")
            continue
        assert row.compared is not None
        above = row.compared.above()
        cells = [
            f"[red]{number(value)}" if name in above else number(value)
            for name, value in row.compared.ratios().items()
        ]
        result.add_row(*head, *cells, *(g13_cells(row) if judged else ()))
    return result


def as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """All rows with all configurations' counts. A ratio to nothing is null."""

    def told(each: Measured) -> dict[str, Any]:
        if each.error:
            return {"configuration": each.configuration, "error": each.error}
        return {"configuration": each.configuration, "counts": each.counts}

    result = []
    for row in rows:
        entry: dict[str, Any] = {
            "problem": row.case.family,
            "shape": row.case.shape,
            "type": row.case.dtype,
        }
        if row.error:
            entry["error"] = row.error
        if row.compared is not None:
            ratios = row.compared.ratios().items()
            entry |= {
                "ours": told(row.compared.ours),
                "mlx": told(row.compared.mlx),
                "ratios": {name: None if math.isinf(v) else v for name, v in ratios},
                "above": row.compared.above() if ratios else [],
                "all_ours": [told(each) for each in row.compared.all_ours],
                "all_mlx": [told(each) for each in row.compared.all_mlx],
            }
            if row.compared.default is not None:
                own = row.compared.ratios(row.compared.default).items()
                entry["default"] = {name: None if math.isinf(v) else v for name, v in own}
        if row.g13:
            entry["g13"] = row.g13
        result.append(entry)
    return result


HEAD = """# Against MLX's kernels

What our kernels do beside what MLX 0.32's own Metal kernels do for the same problem, as the host Metal device counts it
([host-device.md](host-device.md), *Counters*). `benchmarks/against_mlx.py --docs` writes this page; it needs MLX and, for
norms, rope and argmax, a checkout of MLX v0.32.0 (TRITON_METAL_MLX_SOURCE).

Each number is our count divided by MLX's: below 1.00 ours does less. **None of them is a time,** and nothing here ran on an Apple
GPU. A row stands only if both sides' results are NumPy's in float64 within the rounding of the type.

- *device bytes* are what lanes load and store in device memory, *lines* the 128-byte lines that each SIMD-group's accesses touch.
- *multiplies* are products of 8×8×8 on simdgroup matrices; one of 16×32×16 on tensor operations is 16 of them. *barriers* are those of threadgroups, once for each threadgroup.
- *tg read* and *tg written* are bytes of threadgroup memory. *shuffles* are a SIMD-group's exchanges: shuffles, and reductions of
  the whole SIMD-group as one each.
- *float* and *integer* are lanes' operations after common ones have been removed, without those by which the host computes elementary
  functions: a GPU has instructions for these. Conversions between half and float, negations and magnitudes that arithmetic does by itself are none ([host-device.md](host-device.md)). *integer* has the arithmetic of addresses, alike for
  moved pointers, `[]` and offsets that a text adds up: an access adds a constant or one (shifted) number to a pointer by itself. What the host does for a product
  of tensor operations, which is one instruction on a GPU, is in neither.
- *registers* is an estimate of the 32-bit registers of a thread ([host-device.md](host-device.md#registers)), and *tg memory* the
  threadgroup memory of one threadgroup: both decide how many threads a GPU core holds.
- *functions* are calls of elementary functions (exp, log, sin, …). *private bytes* are of arrays that did not become registers.

1.00 also stands where both are nothing, and ∞ where only MLX has none. **Bold** is more than MLX's, in the counts that are held to it.

Ours are the functions of `triton_metal.ops` as users call them, with the tiles that they choose by themselves, the SIMD-groups of large launches, and keys of `attention_decode` in parts of 256 (launches of few programs get more of both, by the chip: [ops.md](ops.md)). Where
the tile of a matrix product that a function takes by itself counts more than MLX's, its other shipped tiles are counted, too, and the best of them stands ([Configurations](#configurations) names it, and
[Defaults that count more](#defaults-that-count-more) has the figures of the function's own choice). Products and attention on tensor operations, products whose K is split and MLX's tiles stand with several configurations. Where a function is several launches, as a mean of MLX's is, all of them count.

Sums of bfloats are added in float32, which is one
conversion more for each number than MLX's sums in bfloat. Products cross a SIMD-group by shuffles, where MLX has `simd_product`. Sorting is a bitonic network on integers, of a number or of a number
and its place; longer rows are merged block by block. Rows whose results are places take MLX's arrays, so that places have 32 bits on both sides. MLX's topk is a sort, of which the end is taken; ours gives the places, too.

What MLX composes of several kernels stands with all of them: log-softmax, variance, deviation, length, cross entropy. Its `nn.silu` and `nn.gelu` are one kernel that `mx.compile` makes: ours for
`tests/python/mlx_kernels` has the same functors of MLX's. There a division is one *float*, where ours is one of *functions*. Variance of long rows reads them once, MLX seven times. Sines and cosines
are polynomials in our text ([arithmetic.md](arithmetic.md)) and count as *float*, where MLX's are *functions*: those of an angle are 14 operations together, for all heads that a program turns. Rope of four heads counts up to 1.03, and heads of 80 and 96
more if the positions are odd in number, as threads then compute pairs that are not there. `take` asks whether an index is in the array, which MLX does not. Sums at indices sort the indices, so that the result is the same each time; MLX adds by atomic
operations, which are counted as bytes alone.

Ragged products on tensor operations have up to a fifth more *float*, which there is the conversion of results alone: compilers make it before the branch that leaves out rows.

Of small and ragged matrix products, the model of a core that chooses tiles ([threads.md](threads.md)) prefers twice as many SIMD-groups as MLX's, or more, since it finds their waits shorter. Each of them reads
fragments of its own (*tg read*, and *float* of bfloats, which are converted), and computes addresses and bounds of its own (*integer*).

The rows here are a choice. `benchmarks/against_mlx.py --drawn 288 --seed 15` draws shapes, types and options of the same families at random (`benchmarks/against/drawn.py`): on 2026-11-30, 23 of the 288 rows counted more than MLX's in something, most of them for the reasons above
(sums of bfloats, rope of four heads, ragged products on tensor operations, elementwise functions of few numbers); by more than a tenth otherwise only a scan of few columns, which reads parts of them twice, and the barriers of a small batched
product.

"""

ON_G13 = """## On G13

What Mesa's compiler for Apple's G13 (the M1) makes of the same two texts ([agx.md](agx.md)), ours : MLX's: 32-bit registers, threads in
flight on a core, instructions that spill or fill, and the instructions that come with each matrix multiply in the loop that multiplies (of whole blocks, where there is another one for those that are cut). No
GPU was asked. Of two kernels that follow each other the first stands. *Refused* is a text that its front end or SPIR-V cannot express; M5's tensor operations
are among them.

Softmax of 16,384 columns takes a register more, as it reads a row once: a thread holds 16 numbers, where MLX's loop reads four at a time, and
each row twice. Attention with heads of 80 takes more, for as many threads in flight: its rows are two pieces, of 64 and 16, each with addresses of its own. GEMV in bfloat16 takes more, as the bound
of its whole steps and the masks of the last one ask the same of its rows, which is kept between them.

"""

CONFIGURATIONS = """
## Configurations

MLX's host code picks tiles and threads by size and chip; the column shows what it takes, and where chips differ (base and Pro, Max,
Ultra) the one whose counts have the least product. Where MLX would convert its operand first, the shapes here avoid it; where it would split K, there are rows of their own. *On tensor
operations* is what each side has for Apple10 (M5): our text for that target and MLX's `_nax` kernels, fp32 as TF32 on both sides.
Ours are the *default* of a function of `triton_metal.ops`, or, of products whose default counts more than MLX's, one of the tiles in its shipped table with as many numbers to a SIMD-group as MLX's have (quantised ones: up to four times as many), and of convolutions other blocks of those that it chooses from. On tensor operations and with K split they are kernels of `examples/` and `benchmarks/kernels/` with a few tiles and numbers of SIMD-groups each. Of those
that count no more than MLX's, or else of all, that one stands that exceeds MLX's least: first in device, threadgroup and private bytes, multiplies and barriers, then in float and
integer operations, registers and threads in flight (by these registers and threadgroup memory, or by the latter alone), too (`--json` has the counts of all configurations of both sides).
Where a side has others, none that spills on G13 is among them ([agx.md](agx.md#spills)).

| problem | shape | type | ours | MLX's |
|---|---|---|---|---|
"""


DEFAULTS = """
## Defaults that count more

What the function takes by itself on these rows, where the tables above have another of its shipped tiles: its counts divided by those of the same MLX kernel. The model that chooses expects it to be faster nevertheless.

"""


def page(rows: Sequence[Row]) -> str:
    """docs/against-mlx.md."""
    lines = [HEAD]
    for family, group in itertools.groupby(rows, key=lambda row: row.case.family):
        lines.append(f"## {family[0].upper()}{family[1:]}\n\n")
        lines.append(f"| shape | type | {' | '.join(RATIOS)} |\n")
        lines.append(f"|---|---|{'---:|' * len(RATIOS)}\n")
        for row in group:
            cells = [row.error] if row.error else _cells(row)
            lines.append(f"| {row.case.shape} | {row.case.dtype} | {' | '.join(cells)} |\n")
        lines.append("\n")
    lines.append(on_g13(rows))
    lines.append(CONFIGURATIONS.lstrip("\n"))
    for row in rows:
        if row.error or row.compared is None:
            continue
        sides = row.compared.ours.configuration, row.compared.mlx.configuration
        head = row.case.family, row.case.shape, row.case.dtype
        lines.append(f"| {' | '.join([*head, *sides])} |\n")
    lines.append(defaults(rows))
    return "".join(lines)


def defaults(rows: Sequence[Row]) -> str:
    """The page's section on defaults in whose place another configuration stands, or nothing where there are none."""
    names = (*JUDGED, "registers", "tg memory")
    lines = [
        f"{DEFAULTS}| problem | shape | type | {' | '.join(names)} |\n",
        f"|---|---|---|{'---:|' * len(names)}\n",
    ]
    for row in rows:
        if row.compared is None or row.compared.default is None:
            continue
        ratios = row.compared.ratios(row.compared.default)
        cells = [row.case.family, row.case.shape, row.case.dtype]
        lines.append(f"| {' | '.join([*cells, *(number(ratios[name]) for name in names)])} |\n")
    return "".join(lines) if len(lines) > 2 else ""


def on_g13(rows: Sequence[Row]) -> str:
    """The page's section on G13, or nothing where its compiler has not been built."""
    judged = [row for row in rows if row.g13]
    if not judged:
        return ""
    head = ("problem", "shape", "type", *G13)
    lines = [ON_G13, f"| {' | '.join(head)} |\n", f"|---|---|---|{'---:|' * len(G13)}\n"]
    for row in judged:
        cells = [row.case.family, row.case.shape, row.case.dtype, *g13_cells(row)]
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join([*lines, "\n"])


def _cells(row: Row) -> list[str]:
    assert row.compared is not None
    above = row.compared.above()
    return [
        f"**{number(value)}**" if name in above and name in JUDGED else number(value)
        for name, value in row.compared.ratios().items()
    ]
