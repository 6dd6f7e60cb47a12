"""Triton IR to Metal text, warm, in milliseconds for each example's kernel.

python benchmarks/compile_time.py [--limit 30]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import triton_metal  # noqa: E402

import demo  # noqa: E402
from _counts import counting  # noqa: E402


def compile_ms(ttir: str, num_warps: int, num_stages: int, repeat: int = 15) -> float:
    """The median milliseconds from the text of the Triton IR to the Metal text."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        triton_metal.compile_ttir(ttir, num_warps=num_warps, num_stages=num_stages)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--limit", type=float, help="fail if a kernel takes longer than this many milliseconds"
    )
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    for case in demo.cases():
        with counting(case.kernel) as counts:
            case.run()
        kernel = counts.kernels[0]
        metadata = kernel.metadata
        ms = compile_ms(kernel.asm["ttir"], metadata.num_warps, metadata.num_stages)
        figures[case.text_name] = ms
        print(f"{case.text_name:70} {ms:7.2f} ms", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    slow = {name: ms for name, ms in figures.items() if arguments.limit and ms > arguments.limit}
    if slow:
        sys.exit(f"over {arguments.limit:g} ms: " + ", ".join(slow))


if __name__ == "__main__":
    main()
