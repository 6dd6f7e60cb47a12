"""Runs programs on stock Triton's interpreter: that is how the model itself is tested.

    python -m random_programs.stock --count 500

Left out is what the interpreter does not define (shifts beyond the width, divisions by zero, conversions out of range) or
has otherwise (bfloat16, which it truncates; compare-and-swap); programs that it refuses are only counted.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from . import arithmetic
from .dtypes import BF16, BOOL, DType, Refused


def leave_out_what_is_undefined() -> None:
    """Has the model refuse what the interpreter does not define."""
    amount, quotient, to_int = arithmetic._amount, arithmetic._quotient, arithmetic.float_to_int

    def defined_amount(y: arithmetic.Value, dtype: DType) -> np.ndarray:
        wide = y.data.astype(np.float64)
        if dtype == BOOL or (wide < 0).any() or (wide >= dtype.bits).any():
            raise Refused("shifted by the width or more")
        return amount(y, dtype)

    def defined_quotient(x: np.ndarray, y: np.ndarray, dtype: DType) -> tuple:
        result, known = quotient(x, y, dtype)
        if dtype == BOOL or not known.all():
            raise Refused("divided by zero")
        return result, known

    def defined_to_int(data: np.ndarray, target: DType) -> np.ndarray:
        wide = np.trunc(data.astype(np.float64))
        inside = np.isfinite(wide) & (wide >= target.low) & (wide < float(target.high))
        if not inside.all():
            raise Refused("out of range")
        return to_int(data, target)

    arithmetic._amount, arithmetic._quotient = defined_amount, defined_quotient
    arithmetic.float_to_int = defined_to_int


def main() -> int:
    parser = argparse.ArgumentParser(prog="random_programs.stock", description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    import stock

    stock.use_stock_interpreter()
    leave_out_what_is_undefined()
    from .execute import check
    from .generate import generate

    kinds: collections.Counter[str] = collections.Counter()
    start = options.seed * 1_000_000
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        for seed in range(start, start + options.count):
            program = generate(seed)
            # The interpreter's compare-and-swap reads past a scalar that it has broadcast.
            if any(name in program.text() for name in (BF16.text, "atomic_cas", "float8")) or any(
                memory.dtype == BF16 for memory in program.machine.memory.values()
            ):
                kinds["left out"] += 1
                continue
            try:
                wrong = check(program, Path(folder), stock=True)
            except Exception as error:
                kinds[f"refused ({type(error.__cause__ or error).__name__})"] += 1
                continue
            kinds["wrong" if wrong else "same"] += 1
            for line in wrong:
                print(f"program {seed}: {line}")
    print(", ".join(f"{number} {kind}" for kind, number in kinds.most_common()))
    return 1 if kinds["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
