"""Runs a program and records its kernels: run_program.py PROGRAM [ARGUMENT...]. TRITON_METAL_RECORD names the file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    sys.path.append(str(Path(__file__).parent))
    import recorder

    recorder.start()
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    recorder.place = Path(sys.argv[0]).name
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
