"""The command line of scripts/compare-ttir."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDERS = ("language", "runtime")


def main(root: Path, description: str | None) -> int:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("upstream", "tests", "program", "report"))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="see above")
    options, rest = parser.parse_known_args()
    del rest
    inner = argparse.ArgumentParser(prog=f"compare-ttir {options.what}")
    if options.what != "program":
        inner.add_argument("paths", nargs="+")
        inner.add_argument("-k", metavar="WORDS", help="only tests whose names match")
        inner.add_argument("-n", type=int, default=1, metavar="N", help="processes")
        inner.add_argument("--sample", type=int, default=1, metavar="K", help="every K-th test")
        inner.add_argument("--offset", type=int, default=0, metavar="O", help="the sample's first")
    else:
        inner.add_argument("paths", nargs=argparse.REMAINDER)
    inner.add_argument("--launch", action="store_true", help="launch the kernels of tests, too")
    inner.add_argument("--dry", action="store_true", help="launch no kernel of a program")
    inner.add_argument("--own", action="store_true", help="the kernels are triton_metal's")
    inner.add_argument("--keep", type=Path, metavar="FILE", help="a file for what is recorded")
    inner.add_argument("--show", type=int, default=0, metavar="N", help="differences to print")
    inner.add_argument("--reason", metavar="WORDS", help="show only differences of this reason")
    inner.add_argument("--report", type=Path, metavar="FILE", help="a file for the tables")
    arguments = inner.parse_args(options.arguments)

    import comparison

    if options.what == "report":
        files = [Path(path) for path in arguments.paths]
        return comparison.report(files, arguments.show, arguments.reason, arguments.report)
    with tempfile.TemporaryDirectory() as temporary:
        recorded = (arguments.keep or Path(temporary) / "kernels.jsonl").resolve()
        for old in recorded.parent.glob(f"{recorded.stem}*{recorded.suffix}"):
            old.unlink()
        record(root, options.what, arguments, recorded, Path(temporary))
        files = sorted(recorded.parent.glob(f"{recorded.stem}*{recorded.suffix}"))
        if not files:
            sys.exit("compare-ttir: no kernel was compiled; the program's message is above")
        return comparison.report(files, arguments.show, arguments.reason, arguments.report)


def record(
    root: Path, what: str, arguments: argparse.Namespace, recorded: Path, temporary: Path
) -> None:
    """Runs the program or the tests, which write what they compile into a file."""
    paths = [
        str(root / "python"),
        str(root / "tests" / "compare"),
        str(root / "tests" / "upstream"),
    ]
    # Each process of the runs below records into a file of its own; this one may be a worker of other tests.
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    environment = own | {
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_DEFAULT_BACKEND": "metal",
        "TRITON_METAL_DEVICE": "host",
        "TRITON_METAL_CACHE_DIR": str(temporary / "metal"),
        "TRITON_CACHE_DIR": str(temporary / "triton"),
        "TRITON_METAL_RECORD": str(recorded),
        "TRITON_METAL_RECORD_DRY": "0" if arguments.launch or arguments.own else "1",
        "TRITON_METAL_RECORD_SIDE": "own" if arguments.own else "stock",
    }
    if what == "program":
        environment["TRITON_METAL_RECORD_DRY"] = "1" if arguments.dry else "0"
        program = root / "tests" / "compare" / "run_program.py"
        subprocess.run([sys.executable, program, *arguments.paths], env=environment, check=False)
        return
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "record_plugin",
        "-p",
        "no:cacheprovider",
    ]
    command += ["--tb=no", "-r", "N", "--continue-on-collection-errors", "-c", os.devnull]
    folder = None
    if what == "upstream":
        checkout = Path(arguments.paths[0]).resolve()
        unit = checkout / "python" / "test" / "unit"
        folder = unit.parent
        tests = [str(unit / test) for test in arguments.paths[1:]]
        tests = tests or [str(unit / name) for name in FOLDERS]
        command += [
            "-p",
            "upstream_plugin",
            "--rootdir",
            str(folder),
            "--confcutdir",
            str(checkout),
        ]
        command += ["--sample", str(arguments.sample), "--offset", str(arguments.offset)]
    else:
        tests = [str(Path(path).resolve()) for path in arguments.paths]
    if arguments.n > 1:
        command += ["-n", str(arguments.n), "--dist", "worksteal"]
    if arguments.k:
        command += ["-k", arguments.k]
    subprocess.run([*command, *tests], env=environment, cwd=folder, check=False)
