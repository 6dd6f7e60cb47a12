"""What tests of caches and of fresh processes share: kernels that nothing has compiled, programs, modules of a file."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

ROOT = Path(__file__).resolve().parents[2]


def fresh_kernel() -> Any:
    """A @jit function that has compiled nothing in this process. It adds 1 to an array of BLOCK elements."""

    @triton.jit
    def kernel(x, BLOCK: tl.constexpr):
        offs = tl.arange(0, BLOCK)
        tl.store(x + offs, tl.load(x + offs) + 1)

    return kernel


def entries(directory: Path) -> list[Path]:
    """The kernels in a cache directory."""
    return sorted(directory.glob("*.json"))


def run_program(
    *arguments: Any,
    cwd: Path | None = None,
    before: Callable[[], None] | None = None,
    **environment: Any,
) -> subprocess.CompletedProcess[str]:
    """Runs Python on the package of this checkout, in an environment that has nothing else."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={
            "PYTHONPATH": str(ROOT / "python"),
            "PATH": "/usr/bin:/bin",
            **{name: str(value) for name, value in environment.items()},
        },
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=before,
        timeout=100,
    )


def load_module(path: Path) -> ModuleType:
    """The module that a file is."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
