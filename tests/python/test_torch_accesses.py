"""PyTorch reads in Triton IR which tensors a program's kernel writes, with the results that it has with stock Triton."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("torch._higher_order_ops.triton_kernel_wrap")

FOLDER = Path(__file__).parent

#: For each kernel the tensors that it reads, those that it writes, and whether an operation on its result can join it.
EXPECTED = {
    "one_of_three": ["xy", "z", True],
    "in_branch": ["x", "yz", False],
    "one_of_two_in_branch": ["x", "yz", False],
    "with_return": ["", "y", True],
    "in_for": ["x", "z", True],
    "in_while": ["x", "y", True],
    "in_calls": ["xy", "yz", False],
    "with_atomics": ["y", "xz", False],
    "with_reductions": ["x", "y", True],
    "at_indices": ["yz", "x", True],
    "with_descriptors": ["x", "z", True],
    "of_none": ["z", "y", True],
    "only_reads": ["xy", "", False],
    "tuned": ["x", "x", False],
    "of_loops_in_loops": ["x", "z", False],
}

#: What PyTorch does not see with stock Triton. Where it cannot follow a pointer, all are taken for written.
OWN = {
    "own_reduces_by_descriptor": ["", "y", True],
    "own_scatters_by_descriptor": ["x", "y", True],
    "own_jumps": ["xyz", "xyz", False],
    "own_swaps_in_for": ["xyz", "xyz", False],
    "own_swaps_in_while": ["xyz", "xyz", False],
}


def accesses(triton: str, *paths: str) -> dict[str, list[object]]:
    """What PyTorch finds with a Triton, in another process."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "torch_kernel_accesses.py"), triton],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_what_kernels_write() -> None:
    paths = [str(FOLDER.parents[1] / "python"), os.environ.get("PYTHONPATH", "")]
    assert accesses("ours", *filter(None, paths)) == EXPECTED | OWN


def test_stock_triton_gives_the_same() -> None:
    versions = [found.version for found in metadata.distributions(name="triton")]
    if "3.9.0" not in versions:
        pytest.skip("stock Triton is compared with")
    assert accesses("stock") == EXPECTED


PROGRAM = """
import logging
import triton_metal
triton_metal.install()
import torch, triton, triton.language as tl
from torch._inductor import config
config.cpu_backend = "triton"
config.compile_threads = 1
config.force_disable_caches = True  # else a graph of an earlier run needs no analysis
said = []
class Handler(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
logging.getLogger("torch._dynamo").addHandler(Handler())

@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

@triton.jit
def reduce(x, y, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(y, [8, BLOCK], [BLOCK, 1], [8, BLOCK])
    d.atomic_add([0, 0], tl.load(x + tl.arange(0, 8)[:, None] * BLOCK + tl.arange(0, BLOCK)))

@triton.jit
def choose(x, y, z, n):
    p = z
    if n > 10:
        p = y
        if n > 100:
            return
    tl.store(p, tl.load(x) * 2)

def call(x, y):
    z = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), BLOCK=64)
    return (z * 2).relu(), x + 1

def reduces(x, y):
    z = y + 0
    reduce[(1,)](x, z, BLOCK=16)
    return z + 1

def chooses(x, y):
    z, other = y * 1, y * 2
    choose[(1,)](x, z, other, 50)
    return z + 1

x, y = torch.randn(8, 16), torch.randn(8, 16)
from torch._inductor.utils import run_and_get_code
found, codes = run_and_get_code(torch.compile(call, fullgraph=True), x, y)
assert all(map(torch.equal, found, call(x, y)))
assert not said, said
print("clone" in codes[0])
assert torch.allclose(torch.compile(reduces)(x, y), reduces(x, y))
assert not said, said
assert torch.equal(torch.compile(chooses)(x, y), chooses(x, y))
print(any("assuming every input is mutated" in text for text in said))
"""


def test_compiled_graphs_see_what_kernels_write(tmp_path: Path) -> None:
    """Without a warning and copies where PyTorch can tell, with all tensors taken for written where it cannot."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    paths = [str(FOLDER.parents[1] / "python"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split() == ["False", "True"]
