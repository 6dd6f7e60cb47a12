"""benchmarks/nvidia/make.py: what it hands to the machine with the GPU, which is not needed here."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.agx.measure import front_end
from benchmarks.nvidia.kernels import cases
from benchmarks.nvidia.make import make

#: The texts are those of aligned arrays, which MLX does not promise.
pytestmark = [
    pytest.mark.skipif(not front_end().exists(), reason="metal-ir has not been built"),
    pytest.mark.own_route,
]


def test_a_launch_has_the_threads_of_its_warps(tmp_path: Path) -> None:
    """One warp, too, although the text's own bound is 64 threads."""
    (case,) = cases(only="softmax-1024-float16-1")
    made = make(case, tmp_path)
    text = (tmp_path / f"{case.name}.ptx").read_text()
    assert made["threads"] == 32
    assert ".reqntid 32" in text


def test_a_launch_has_the_scalars_themselves(tmp_path: Path) -> None:
    (case,) = cases(only="dropout-1024-float32-4")
    made = make(case, tmp_path)
    text = (tmp_path / f"{case.name}.ptx").read_text()
    assert made["words"] == [2**27, struct.unpack("<I", struct.pack("<f", 0.5))[0], 7]
    assert f".param .align 4 .b8 dropout_param_{made['scalar_buffer']}[12]" in text
    loads = [line for line in text.splitlines() if "ld.global" in line]
    assert loads
    assert all("ld.global.v4.b32" in line for line in loads)


def test_cases_read_and_write_enough() -> None:
    """Each is far larger than a GPU's caches, and a program has at least 4 KB of it."""
    for case in cases():
        assert case.bytes >= 2**29
        assert case.bytes // case.grid >= 4096
