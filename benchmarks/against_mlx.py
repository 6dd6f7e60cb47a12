"""Counts what our kernels and MLX's own Metal kernels do for the same problems, on the host Metal device.

    PYTHONPATH=python .venv/bin/python benchmarks/against_mlx.py [--quick] [--only TEXT]... [--drawn N [--seed S]] [--json FILE] [--docs]

Needs MLX (its headers have most kernels). Norms, rope and argmax are in its source only: TRITON_METAL_MLX_SOURCE names a
checkout of v0.32.0. Where benchmarks/agx has been built, the table also has what Mesa's compiler for Apple's G13 says of both texts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import track
from triton_metal.ops._choices import forced
from triton_metal.ops._groups import GROUPS
from triton_metal.ops._row_family import QUANTIZED_ROWS

import against
from against import (
    along_rows,
    attending,
    composing,
    convolving,
    decoding,
    drawn,
    elements,
    judge,
    matrices,
    quantizing,
    reducing,
    reports,
    tensor_operations,
    vectors,
)
from against.counting import compare
from against.problem import Case
from mlx_kernels.family import include_folder, source_folder

PAGE = against.ROOT / "docs" / "against-mlx.md"
MODULES = (
    along_rows, composing, elements, reducing, vectors, matrices, quantizing, attending, decoding, convolving, tensor_operations,
)  # fmt: skip
#: Kernels of MLX's that are in no package of it.
NO_SOURCE = "MLX's kernel is in its source only: TRITON_METAL_MLX_SOURCE names no checkout"


def cases(quick: bool = False, only: list[str] | None = None) -> list[Case]:
    """The rows in the order of the table: of the quick one, or those whose name has one of the texts in it."""
    every = [case for module in MODULES for case in module.cases()]
    families = list(dict.fromkeys(case.family for case in every))
    every.sort(key=lambda case: families.index(case.family))
    return chosen_from(every, quick, only)


def chosen_from(every: list[Case], quick: bool, only: list[str] | None) -> list[Case]:
    """The rows of the quick table, or those whose name has one of the texts in it."""
    chosen = [case for case in every if case.quick or not quick]
    return [case for case in chosen if not only or any(text in case.name for text in only)]


def results(chosen: list[Case], silent: bool = False) -> Iterator[reports.Row]:
    """Each case's row, as it is counted."""
    agx = judge.compiler()
    for case in track(chosen, "counting", console=Console(stderr=True), disable=silent):
        if case.source and source_folder() is None:
            yield reports.Row(case, skipped=NO_SOURCE)
            continue
        # A launch of few programs has more SIMD-groups, by the chip; MLX's has what its program has.
        with forced(GROUPS.name, (0,)), forced(QUANTIZED_ROWS.name, (1,)):
            compared = compare(case.make())
        g13 = {}
        if agx is not None:
            sides = {"ours": compared.ours, "mlx": compared.mlx}
            g13 = {side: judge.judged(agx, measured) for side, measured in sides.items()}
        yield reports.Row(case, compared, g13=g13)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one or two rows of each family")
    parser.add_argument(
        "--only", action="append", metavar="TEXT", help="rows whose name contains this"
    )
    parser.add_argument(
        "--drawn", type=int, metavar="N", help="so many rows of shapes and types drawn at random"
    )
    parser.add_argument("--seed", type=int, default=0, help="of these rows; 0 if left out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all counts as JSON")
    parser.add_argument(
        "--docs", action="store_true", help=f"write {PAGE.relative_to(against.ROOT)} (all rows)"
    )
    parser.add_argument(
        "--most",
        type=float,
        metavar="RATIO",
        help="fail if a count that is held to MLX's is above this multiple of it, or a row has no counts",
    )
    options = parser.parse_args(arguments)
    if include_folder() is None:
        parser.error("MLX is not installed: TRITON_METAL_MLX_INCLUDE may name its headers")
    if options.docs and (options.quick or options.only or options.drawn):
        parser.error("--docs writes all rows: leave out --quick, --only and --drawn")
    if options.drawn is not None and options.drawn < 1:
        parser.error(f"--drawn is a number of rows above 0, not {options.drawn}")
    if options.docs and source_folder() is None:
        parser.error("--docs needs MLX's source: TRITON_METAL_MLX_SOURCE names no checkout")
    if options.drawn:
        every = drawn.cases(options.drawn, options.seed)
        chosen = chosen_from(every, options.quick, options.only)
    else:
        chosen = cases(options.quick, options.only)
    if not chosen:
        parser.error(f"no row's name contains {' or '.join(map(repr, options.only))}")
    rows = list(results(chosen))
    console = Console(width=None if sys.stdout.isatty() else 230)
    console.print(reports.table(rows))
    if options.json:
        options.json.write_text(json.dumps(reports.as_json(rows), indent=1) + "\n", "utf-8")
    if options.docs:
        PAGE.write_text(reports.page(rows), encoding="utf-8")
    wrong = [row for row in rows if row.error and not row.skipped]
    for row in wrong:
        print(f"{row.case.name}: {row.error}", file=sys.stderr)
    for row in rows:
        for text in row.spilling:
            print(f"{row.case.name}: {text}", file=sys.stderr)
    too_much = []
    if options.most is not None:
        too_much = [
            f"{row.case.name}: {', '.join(row.compared.above(options.most))}"
            for row in rows
            if row.compared is not None and not row.error and row.compared.above(options.most)
        ]
        print("\n".join(too_much), file=sys.stderr)
    return 1 if wrong or too_much else 0


if __name__ == "__main__":
    sys.exit(main())
