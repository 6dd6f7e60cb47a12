"""Runs the metal-run tool on NumPy arrays."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def metal_run_path() -> Path:
    """Where the tool is built; METAL_RUN names another place."""
    path = Path(os.environ.get("METAL_RUN", ROOT / "build" / "bin" / "metal-run"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def invoke(arguments: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(metal_run_path()), *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def run(
    text: str,
    directory: Path,
    buffers: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    *options: str,
) -> list[np.ndarray]:
    """Runs MSL text with arrays bound to parameters, by name or index, and returns the buffers named in `outputs`."""
    arguments = list(options)
    for name, array in buffers.items():
        path = directory / f"in_{name}.npy"
        np.save(path, np.asarray(array, order="C"))
        arguments.append(f"--buffer={name}={path}")
    for name in outputs:
        arguments.append(f"--output={name}={directory / f'out_{name}.npy'}")
    result = invoke([*arguments, "-"], text)
    assert result.returncode == 0, result.stderr
    return [np.load(directory / f"out_{name}.npy") for name in outputs]
