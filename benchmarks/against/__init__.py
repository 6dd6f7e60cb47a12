"""What `benchmarks/against_mlx.py` is made of: the problems, both sides' launches, their counts and the reports.

Ours are the functions of `triton_metal.ops`, and for tensor operations kernels of `benchmarks/kernels` and `examples`; MLX's launches from `tests/python/mlx_kernels`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

for _folder in ("benchmarks", "examples", "tests/python", "."):
    if str(ROOT / _folder) not in sys.path:
        sys.path.append(str(ROOT / _folder))
