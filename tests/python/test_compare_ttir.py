"""scripts/compare-ttir: which texts it calls equal, and that the front ends agree on kernels of many kinds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMPARE = ROOT / "tests" / "compare"

A = """module {
  tt.func public @one(%arg0: i32) attributes {noinline = false} {
    %c1_i32 = arith.constant 1 : i32
    %c2_i32 = arith.constant 2 : i32
    %0 = arith.addi %arg0, %c1_i32 : i32
    %1 = arith.muli %arg0, %c2_i32 : i32
    tt.print "x" {hex = false, isSigned = array<i32: 1>} : %0 : i32
    tt.print "y" {hex = false, isSigned = array<i32: 1>} : %1 : i32
    tt.return
  }
}
"""


@pytest.fixture
def canonical(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(COMPARE))
    import canonical

    return canonical


def test_names_of_values_and_functions_do_not_matter(canonical) -> None:
    renamed = A.replace("%arg0", "%x").replace("%0", "%sum").replace("@one", "@other")
    assert canonical.canonical(A) == canonical.canonical(renamed)


def test_names_in_strings_matter(canonical) -> None:
    assert canonical.canonical(A) != canonical.canonical(A.replace('"x"', '"%x"'))


def test_constants_are_compared_where_they_are_used(canonical) -> None:
    lines = A.splitlines()
    lines[2], lines[3] = lines[3], lines[2]
    swapped = canonical.canonical("\n".join(lines))
    whole = canonical.canonical(A)
    assert whole != swapped
    assert canonical.without_constants(whole) == canonical.without_constants(swapped)
    other = canonical.canonical(A.replace("constant 2", "constant 3"))
    assert canonical.without_constants(whole) != canonical.without_constants(other)


def test_only_operations_without_effects_may_change_places(canonical) -> None:
    lines = A.splitlines()
    lines[4], lines[5] = lines[5], lines[4]
    assert canonical.same_but_for_order(
        canonical.canonical(A), canonical.canonical("\n".join(lines))
    )
    lines = A.splitlines()
    lines[6], lines[7] = lines[7], lines[6]
    assert not canonical.same_but_for_order(
        canonical.canonical(A), canonical.canonical("\n".join(lines))
    )


PROGRAM = """
import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=-1e9, cache_modifier=".cg")
    total = tl.sum(value) + tl.max(value, axis=0) + tl.argmin(value, 0)
    for i in tl.range(0, n, num_stages=3):
        if total > i:
            total -= tl.rand(n, i)
    while total > 1:
        total = total / 2 if total > 8 else tl.exp(total) * 0.1
    tl.store(y + at, tl.sort(value) + total, mask=at < n)

@triton.jit
def blocks(desc, out, M, N, K: tl.constexpr):
    made = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 16])
    acc = tl.zeros((16, 16), tl.float32)
    for k in range(0, N, 16):
        a = desc.load([0, k])
        acc = tl.dot(a, a.T, acc)
    made.store([0, 0], acc)
    tl.atomic_max(out, tl.max(tl.ravel(acc)))
    tl.store(out + tl.arange(0, K), tl.topk(tl.ravel(acc), K))

x, y = torch.zeros(64), torch.zeros(64)
rows[(1,)](x, y, 48, BLOCK=64)
m = torch.zeros(16, 32)
blocks[(1,)](TensorDescriptor.from_tensor(m, [16, 16]), torch.zeros(16, 32), 16, 32, K=8)
"""


def test_both_front_ends_agree(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    program, kept = tmp_path / "program.py", tmp_path / "kernels.jsonl"
    program.write_text(PROGRAM)
    command = [sys.executable, ROOT / "scripts" / "compare-ttir", "program", "--dry", "--show", "2"]
    command += ["--keep", kept, program]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    recorded = [json.loads(line) for line in kept.read_text().splitlines()]
    assert sorted(row["kernel"].rpartition(".")[2] for row in recorded) == ["blocks", "rows"]

    # The comparison sees one operation that differs.
    recorded[0]["own"] = recorded[0]["own"].replace("arith.addi", "arith.subi", 1)
    kept.write_text("\n".join(map(json.dumps, recorded)) + "\n")
    command = [sys.executable, ROOT / "scripts" / "compare-ttir", "report", kept]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "arith.addi against arith.subi" in run.stdout, run.stdout


def test_stock_triton_makes_the_same_of_this_package_s_kernels(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    program, kept = tmp_path / "program.py", tmp_path / "kernels.jsonl"
    program.write_text(
        """
from typing import NamedTuple
import numpy as np, triton_metal as triton
import triton_metal.language as tl

LIMIT = tl.constexpr(8)

class View(NamedTuple):
    data: object
    size: object

@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)

@triton.jit
def kernel(view, out, n, BLOCK: tl.constexpr, KIND: tl.constexpr = tl.float16):
    at = tl.arange(0, BLOCK)
    x = tl.load(view.data + at, mask=at < view.size, other=0.0)
    if n > LIMIT:
        y = x * 2
        factor = n
    else:
        y = larger(x, tl.exp(x))
        factor = 1
    tl.store(out + at, tl.cumsum(y, 0).to(KIND) * factor + tl.reduce(x, 0, larger))

@triton.jit
def jumps(out, n):
    for i in range(n):
        if i == 3:
            break
        tl.store(out + i, i)

x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
kernel[(1,)](View(x, 60), out, 9, BLOCK=64)
jumps[(1,)](out, 5)
"""
    )
    command = [sys.executable, ROOT / "scripts" / "compare-ttir", "program", "--own", "--show", "2"]
    run = subprocess.run(
        [*command, "--keep", kept, program], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    recorded = {r["kernel"]: r for r in map(json.loads, kept.read_text().splitlines())}
    assert "stock" in recorded["__main__.kernel"]
    assert "Break" in recorded["__main__.jumps"]["refused"]
    assert "| 1 | | not generated by stock Triton |" in run.stdout
