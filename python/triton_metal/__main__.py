"""``python -m triton_metal``: commands for an installation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import __version__, doctor


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m triton_metal", description="Triton kernels on Apple GPUs."
    )
    parser.add_argument("--version", action="version", version=f"triton_metal {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    checks = commands.add_parser(
        "doctor",
        help="check the installation: what is found, what works, what to do",
        description=doctor.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_arguments(checks)
    return doctor.main(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
