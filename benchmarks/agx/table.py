"""This project's kernels beside MLX's on G13: the texts of `make demo` in out/, and those that MLX's headers instantiate."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.agx.measure import ROOT, AgxError, measure
from benchmarks.agx.report import Stats
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "python")]


@dataclass(frozen=True)
class Pair:
    """A text of the demo, and the kernel with which MLX does the same."""

    ours: str
    family: str
    theirs: str
    threads: int
    constants: dict[int, int] = field(default_factory=dict)


#: No batches, no addend; every tile is full.
GEMM = {10: 0, 100: 0, 110: 0, 200: 1, 201: 1, 202: 1}
#: Every block is full; no mask and no sinks.
ATTENTION = {200: 1, 201: 1, 300: 0, 301: 0, 302: 0}
CAUSAL = ATTENTION | {301: 1}
#: Some blocks are cut.
RAGGED = CAUSAL | {200: 0, 201: 0}
_TILES = "bm64_bn64_bk16_wm2_wn2"
_HEAD_64 = "steel_attention_float16_bq32_bk32_bd64_wm4_wn1_maskfloat16"
_HEAD_128 = "steel_attention_bfloat16_bq32_bk16_bd128_wm4_wn1_maskbfloat16"
PAIRS = [
    Pair("softmax_kernel-256x1024-float32", "softmax", "block_softmax_float32", 256),
    Pair("softmax_kernel-256x1024-float16", "softmax", "block_softmax_float16", 256),
    *(
        Pair(
            f"matmul_kernel-512x512x512-{dtype}",
            "steel_gemm_fused",
            f"steel_gemm_fused_nn_{dtype}_{dtype}_{_TILES}",
            128,
            GEMM,
        )
        for dtype in ("float16", "bfloat16", "float32")
    ),
    Pair("attention_kernel-4x512x64-float16", "steel_attention", _HEAD_64, 128, ATTENTION),
    Pair("attention_kernel-4x512x64_causal-float16", "steel_attention", _HEAD_64, 128, CAUSAL),
    Pair("attention_kernel-2x500x128_causal-bfloat16", "steel_attention", _HEAD_128, 128, RAGGED),
]


def mlx_text(pair: Pair) -> tuple[str, Path]:
    """MLX's text with this one kernel, and the folder of its headers."""
    from mlx_kernels import FAMILIES, include_folder

    folder = include_folder()
    if folder is None:
        raise AgxError("MLX is not installed: run `make test` once, or `scripts/setup.sh --tests`")
    family = next(family for family in FAMILIES if family.name == pair.family)
    chosen = [each for each in family.instances() if each.name == pair.theirs]
    if not chosen:
        raise AgxError(f"the installed MLX does not make {pair.theirs}")
    return family.text(chosen), folder


#: What is measured of a text, or why it cannot be.
Measured = Stats | AgxError
COLUMNS = (
    "registers", "in flight", "threadgroup B", "spills", "instructions", "integer a multiply"
)  # fmt: skip


def measured_ours(pair: Pair, arguments: argparse.Namespace) -> Measured:
    """Our text of a pair."""
    path = ROOT / "out" / f"{pair.ours}.metal"
    if not path.exists():
        return AgxError(f"{path} is missing: run `make demo`")
    try:
        return measure(path, assumed_trips=arguments.trips)
    except AgxError as error:
        return error


def measured_theirs(pair: Pair, arguments: argparse.Namespace) -> Measured:
    """MLX's text of a pair."""
    try:
        text, folder = mlx_text(pair)
        return measure(
            text,
            include=[folder],
            constants=pair.constants,
            threads=pair.threads,
            assumed_trips=arguments.trips,
        )
    except AgxError as error:
        return error


def record(measured: Measured) -> dict[str, Any]:
    """For JSON."""
    if isinstance(measured, AgxError):
        return {"error": str(measured)}
    return dataclasses.asdict(measured)


def cells(measured: Measured) -> dict[str, str]:
    """The columns of the table. Integers, moves and branches of the main loop are counted for a multiply."""
    if isinstance(measured, AgxError):
        return dict.fromkeys(COLUMNS, "refused")
    loop = measured.main_loop
    each = loop.per("multiply", "integer", "move", "branch") if loop else None
    figures = (
        measured.registers,
        measured.in_flight,
        measured.threadgroup_bytes,
        measured.spills + measured.fills,
        measured.instructions,
        each,
    )
    return dict(zip(COLUMNS, map(show, figures), strict=True))


def show(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value % 1 else f"{value:g}"


def print_table(arguments: argparse.Namespace) -> int:
    """Measures every pair and prints ours / MLX's. 1 if a text was refused, which its row says; else 0."""
    rows: list[tuple[Pair, Measured, Measured]] = []
    for pair in PAIRS:
        if arguments.only in pair.ours:
            rows.append((pair, measured_ours(pair, arguments), measured_theirs(pair, arguments)))
    status = int(any(isinstance(each, AgxError) for row in rows for each in row[1:]))
    if arguments.json:
        print(
            json.dumps(
                [
                    {
                        "ours": record(ours),
                        "mlx": record(theirs),
                        "text": pair.ours,
                        "mlx_kernel": pair.theirs,
                    }
                    for pair, ours, theirs in rows
                ],
                indent=1,
            )
        )
        return status
    if not rows:
        return status
    lines = []
    for pair, ours, theirs in rows:
        left, right = cells(ours), cells(theirs)
        lines.append([pair.ours, *(f"{left[name]} / {right[name]}" for name in COLUMNS)])
        for whose, each in (("ours", ours), ("MLX's", theirs)):
            if isinstance(each, AgxError):
                print(f"agx: {pair.ours}, {whose}: {each}", file=sys.stderr)
    if arguments.markdown:
        print("| ours / MLX's | " + " | ".join(COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for line in lines:
            print("| " + " | ".join(line) + " |")
        return status
    table = Table(
        "ours / MLX's", *COLUMNS, title="Apple G13, by Mesa's compiler", title_justify="left"
    )
    for line in lines:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    return status
