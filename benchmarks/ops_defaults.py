"""How near the defaults of `triton_metal.ops` come to the best configuration that their functions have, by the cost model.

    PYTHONPATH=python:. python -m benchmarks.ops_defaults [--shapes 240] [--seed 0] [--only TEXT] [--chip NAME]... [--limit 1.1] [--json FILE]

Shapes are drawn over functions, dtypes, odd and even sizes. For each, every configuration of the function's grid is launched on the host
device, on the shape itself (--within inf; else those that the tables do not put far behind), and counted as `autotune` counts: the first programs until there are enough instructions. The model's
estimate of these counts for a chip, over the least of the grid, is the ratio. The tables that defaults come from are made from other
launches, of one program of few steps. No Apple GPU is asked.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton_metal as triton
from triton_metal import ops
from triton_metal.cost import Chip, Work, bound, full_name, ranking_chip, scaled
from triton_metal.cost.sampling import ENOUGH, ENOUGH_OF_DIFFERENT
from triton_metal.ops._choices import MOST_REGISTERS, asked, forced, seconds
from triton_metal.ops._families import FAMILIES
from triton_metal.ops._family import Family
from triton_metal.ops._problems import numpy_dtype
from triton_metal.ops._table_counts import counted

CHIPS = ("M1", "M2 Pro", "M3 Max", "M4", "M2 Ultra", "M5 Max")
WARPS = (1, 2, 4, 8, 16, 32)
FLOATS = ("float16", "bfloat16", "float32")


@dataclass(frozen=True)
class Shape:
    """A call of a function on arrays of one shape."""

    function: str
    text: str
    call: Callable[[], Any]


@dataclass(frozen=True)
class Result:
    """The default of a shape on a chip beside the best of the grid; configurations are by their names."""

    function: str
    shape: str
    chip: str
    ratio: float
    default: str
    best: str
    microseconds: float


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    """An array whose memory nobody has touched."""
    return np.zeros(shape, numpy_dtype(dtype))


def size(rng: random.Random, low: int, high: int, odd: float = 0.3) -> int:
    """A size, evenly drawn in its logarithm: a multiple of 16 or, with the probability ``odd``, any number."""
    found = round(low * (high / low) ** rng.random())
    return found if rng.random() < odd else max(16, found // 16 * 16)


def matmul(rng: random.Random) -> Shape:
    m, n, k = (size(rng, least, 4096) for least in (8, 8, 48))
    dtype = rng.choice((*FLOATS, "float16", "float32", "int8"))
    batch = rng.choice((1, 1, 1, 3, 16))
    ways = rng.choice(("nn", "nn", "nt", "tn", "tt"))
    if batch * m * n > 1 << 24:
        batch = 1
    a = zeros(batch, *((m, k) if ways[0] == "n" else (k, m)), dtype=dtype)
    b = zeros(batch, *((k, n) if ways[1] == "n" else (n, k)), dtype=dtype)
    turned = {"transpose_a": ways[0] == "t", "transpose_b": ways[1] == "t"}
    text = f"{batch}×{m}×{n}×{k} {dtype} {ways}"
    return Shape("matmul", text, lambda: ops.matmul(a, b, **turned))


def quantized(rng: random.Random) -> Shape:
    m, n, k = (
        size(rng, 7, 2048, 0.5),
        64 * round(4096 ** rng.random()),
        64 * round(64 ** rng.random()),
    )
    n = min(n, 8192)
    dtype, transpose = rng.choice(FLOATS), rng.random() < 0.7
    mode, bits = rng.choice((("affine", 4), ("affine", 8), ("mxfp4", 4), ("mxfp8", 8)))
    w = zeros(*((n, k) if transpose else (k, n)), dtype=dtype)
    group = 64 if mode == "affine" else 32
    parts = ops.quantize(w, group, bits, mode)
    x = zeros(m, k, dtype=dtype)
    text = f"{m}×{n}×{k} {dtype} {mode} {bits}{' transposed' if transpose else ''}"
    how = {"group_size": group, "bits": bits, "mode": mode, "transpose": transpose}
    return Shape("quantized_matmul", text, lambda: ops.quantized_matmul(x, *parts, **how))


def rows(rng: random.Random) -> tuple[np.ndarray, str]:
    count, length = size(rng, 1, 4096, 1.0), size(rng, 32, 32768)
    dtype = rng.choice(FLOATS)
    return zeros(count, length, dtype=dtype), f"{count}×{length} {dtype}"


def row_function(name: str, call: Callable[[np.ndarray], Any]) -> Callable[[random.Random], Shape]:
    """Shapes of a function of rows."""

    def make(rng: random.Random) -> Shape:
        x, text = rows(rng)
        return Shape(name, text, lambda: call(x))

    return make


#: What is drawn, as often as its weight says.
FUNCTIONS: dict[str, tuple[int, Callable[[random.Random], Shape]]] = {
    "matmul": (8, matmul),
    "quantized_matmul": (3, quantized),
    "softmax": (1, row_function("softmax", ops.softmax)),
    "rms_norm": (1, row_function("rms_norm", ops.rms_norm)),
    "layer_norm": (1, row_function("layer_norm", ops.layer_norm)),
    "sum": (1, row_function("sum", lambda x: ops.sum(x, axis=1))),
}


def shapes(count: int, seed: int, only: str = "") -> list[Shape]:
    """Shapes of the functions whose names contain ``only``. The first ones are the same for every count."""
    rng = random.Random(seed)
    names = [name for name in FUNCTIONS if only in name]
    weights = [FUNCTIONS[name][0] for name in names]
    return [FUNCTIONS[rng.choices(names, weights)[0]][1](rng) for _ in range(count)]


def sampled(call: Callable[[], Any]) -> list[Work]:
    """The work of each launch of a call, from as many programs as `triton_metal.cost.sampled` would count."""
    most, before = 1, 0.0
    while True:
        found = counted(call, most)
        lanes = sum(work.counters.get("lane_instructions", 0) for work, _ in found)
        mean = max((w.counters.get("lane_instructions", 0) / w.programs for w, _ in found), default=0)  # fmt: skip
        differ = bool(before) and abs(mean - before) > 0.02 * mean
        enough = ENOUGH_OF_DIFFERENT if differ else ENOUGH
        whole = all(work.programs == programs for work, programs in found)
        if whole or (lanes * 4 > enough and (before or lanes > enough)):
            return [scaled(work, programs) for work, programs in found]
        before, most = mean, most * 4


def estimates(works: Sequence[Work], chips: Sequence[Chip]) -> list[float]:
    """The model's estimate for each chip, in seconds."""
    return [sum(bound(chip, work).estimate for work in works) for chip in chips]


def _near(
    family: Family, kind: str, sizes: tuple[int, ...], chips: Sequence[Chip], within: float
) -> list[tuple[int, ...]]:
    """The grid without what the tables put beyond ``within`` times the best on every chip. What they do not have is in it."""
    tables = {each.config: [seconds(chip, each.launches) for chip in chips] for each in family.candidates(kind, sizes)}  # fmt: skip
    least = [min(values) for values in zip(*tables.values(), strict=True)]
    return [
        config
        for config in family.grid(kind, sizes)
        if config not in tables or any(value <= within * low for value, low in zip(tables[config], least, strict=True))
    ]  # fmt: skip


def of_family(shape: Shape, chips: Sequence[Chip], within: float) -> Iterator[Result] | None:
    """The results of a function with a table; None for one without."""
    with asked() as questions:
        counted(shape.call)
    if not questions:
        return None
    [(name, kind, sizes)] = dict.fromkeys(questions)
    family = FAMILIES[name]
    found: dict[tuple[int, ...], list[float]] = {}
    defaults = [family.best(chip, kind, sizes) for chip in chips]
    for config in dict.fromkeys([*_near(family, kind, sizes, chips, within), *defaults]):
        try:
            with forced(name, config):
                works = sampled(shape.call)
            # What spills is no side's best: the model knows nothing of it.
            if config in defaults or works[0].registers <= MOST_REGISTERS:
                found[config] = estimates(works, chips)
        except triton.TritonError:
            if config in defaults:
                raise
    return compared(shape, chips, defaults, found, lambda config: str(dict(zip(family.choice, config, strict=True))))  # fmt: skip


def of_warps(shape: Shape, chips: Sequence[Chip]) -> Iterator[Result]:
    """The results of a function whose SIMD-groups the compiler chooses, or that has none to choose."""
    found: dict[Any, list[float]] = {None: estimates(sampled(shape.call), chips)}
    for warps in WARPS:
        triton.set_kernel_config(num_warps=warps)
        try:
            found[warps] = estimates(sampled(shape.call), chips)
        except triton.TritonError:
            continue
        finally:
            triton.set_kernel_config(num_warps=None)
    return compared(shape, chips, [None] * len(chips), found, lambda warps: f"num_warps {warps}")


def compared(
    shape: Shape, chips: Sequence[Chip], defaults: Sequence[Any], found: dict[Any, list[float]], named: Callable[[Any], str]
) -> Iterator[Result]:  # fmt: skip
    """The default's estimate for each chip over the least."""
    for place, (chip, default) in enumerate(zip(chips, defaults, strict=True)):
        best = min(found, key=lambda config: found[config][place])
        mine, least = found[default][place], found[best][place]
        yield Result(
            shape.function, shape.text, full_name(chip), mine / least, named(default), named(best), least * 1e6
        )  # fmt: skip


def summary(results: Sequence[Result]) -> str:
    """The table that is printed: for each function and for all of them."""
    lines = [f"{'function':20} {'shapes':>6} {'max':>6} {'median':>7} {'at most 1.1':>12}"]
    groups = {name: [r for r in results if r.function == name] for name in dict.fromkeys(r.function for r in results)}  # fmt: skip
    for name, group in [*groups.items(), ("all", list(results))]:
        ratios = [result.ratio for result in group]
        share = sum(ratio <= 1.1 for ratio in ratios) / len(ratios)
        count = len({(result.function, result.shape) for result in group})
        lines.append(f"{name:20} {count:6} {max(ratios):6.3f} {statistics.median(ratios):7.3f} {share:12.1%}")  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, default=240, help="how many shapes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="functions whose names contain this")
    parser.add_argument("--chip", action="append", help=f"default: {', '.join(CHIPS)}")
    parser.add_argument("--within", type=float, default=1.5, help="count no configuration that the tables put beyond so many times the best on every chip (inf: count all)")  # fmt: skip
    parser.add_argument("--limit", type=float, help="fail if a ratio is larger")
    parser.add_argument("--json", type=Path, help="write all ratios here")
    options = parser.parse_args()
    chips = [ranking_chip(name) for name in options.chip or CHIPS]
    results: list[Result] = []
    begin = time.monotonic()
    for place, shape in enumerate(shapes(options.shapes, options.seed, options.only)):
        own = list(of_family(shape, chips, options.within) or of_warps(shape, chips))
        results += own
        worst = max(own, key=lambda result: result.ratio)
        print(
            f"{place + 1:4} {time.monotonic() - begin:5.0f} s  {worst.ratio:.3f}  {shape.function} {shape.text}: on {worst.chip} {worst.default}; best {worst.best}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    print(summary(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return int(options.limit is not None and max(r.ratio for r in results) > options.limit)


if __name__ == "__main__":
    sys.exit(main())
