"""``python -m triton_metal_host`` is metal-run: it runs Metal kernels on arrays from files. See its --help."""

from __future__ import annotations

import sys

from . import _engine


def main() -> int:
    """Runs the tool with the program's arguments and returns its exit status."""
    return _engine.metal_run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
