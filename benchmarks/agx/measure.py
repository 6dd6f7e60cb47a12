"""Runs the front end and the compiler on a Metal text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.agx.report import ASSUMED_TRIPS, Stats, parse_report

ROOT = Path(__file__).resolve().parents[2]


class AgxError(RuntimeError):
    """A text that cannot be measured, with the reason of the program that refused it."""


def compiler() -> Path:
    """Where build.sh leaves Mesa's compiler."""
    folder = os.environ.get("TRITON_METAL_AGX") or Path.home() / ".cache/triton-metal/agx"
    return Path(folder) / "agx-compiler"


def front_end() -> Path:
    """The project's metal-ir."""
    return Path(os.environ.get("TRITON_METAL_BUILD") or ROOT / "build") / "bin" / "metal-ir"


def available() -> str | None:
    """None if `measure` can run; otherwise what is missing, and how to build it."""
    for program, how in ((front_end(), "make"), (compiler(), "make agx")):
        if not program.exists():
            return f"{program} is missing: run `{how}`"
    return None


def _run(what: str, command: Sequence[str | Path], **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | environment,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise AgxError(f"{what}: " + "\n".join(lines[:20])[:2000])
    return done.stdout


def lower(
    path: str | Path,
    output: Path,
    *,
    target: str = "spirv",
    include: Sequence[str | Path] = (),
    constants: Mapping[int, int] | None = None,
    threads: int | None = None,
    kernel: str | None = None,
    form: str = "code",
    by_value: Mapping[int, int] | None = None,
) -> dict:
    """Writes a kernel of the Metal text at `path` as SPIR-V or PTX to `output`, or as LLVM's IR (`form="ir"`).

    `by_value` are the buffers of constants that a launch hands over itself, with their bytes (PTX only). The result is metal-ir's description.
    """
    command = [front_end(), path, f"--target={target}", f"--emit={form}", "-o", output]
    command += [f"--include={folder}" for folder in include]
    command += [f"--constant={index}={int(value)}" for index, value in (constants or {}).items()]
    command += [f"--by-value={buffer}={size}" for buffer, size in (by_value or {}).items()]
    if threads:
        command.append(f"--threads-per-threadgroup={threads}")
    if kernel:
        command.append(f"--kernel={kernel}")
    return json.loads(_run("metal-ir", command))


def _reported(text: str) -> str:
    """The text with names that the compiler reports: it leaves out functions whose names begin with an underscore."""
    for name in set(re.findall(r"\bvoid\s+(_\w+)\s*\(", text)):
        text = re.sub(rf"\b{name}\b", f"kernel{name}", text)
    return text


def measure(
    text: str | Path,
    *,
    include: Sequence[str | Path] = (),
    constants: Mapping[int, int] | None = None,
    threads: int | None = None,
    kernel: str | None = None,
    assumed_trips: int = ASSUMED_TRIPS,
) -> Stats:
    """What a kernel takes on G13.

    `text` is a Metal text, or the path of one. `include` are the folders of its headers, `constants` the values of its
    function constants by index (as integers), `threads` the threads of a threadgroup (its maximum if None; a group
    has one dimension), `kernel` the one to measure if the text has several. A loop whose length the text does not
    say counts as `assumed_trips` steps. Raises AgxError if a program refuses the text.
    """
    missing = available()
    if missing:
        raise AgxError(missing)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "kernel.metal"
        if isinstance(text, Path) or "\n" not in str(text):
            path = Path(text)
        else:
            path.write_text(_reported(str(text)))
            kernel = f"kernel{kernel}" if kernel and kernel.startswith("_") else kernel
        code = folder / "kernel.spv"
        described = lower(
            path, code, include=include, constants=constants, threads=threads, kernel=kernel
        )
        report = _run(
            "agx-compiler",
            [compiler(), code, folder / "kernel.h", folder / "kernel.c"],
            AGX_MESA_DEBUG="report,internal",
        )
    return parse_report(
        report, described, threads=described["threads"], assumed_trips=assumed_trips
    )
