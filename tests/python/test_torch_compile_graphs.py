"""Graphs and settings of torch.compile for which Inductor generates kernels of other forms."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch._inductor")

CODE = """
import triton_metal
triton_metal.install()
import torch
import torch.nn.functional as F
from torch._inductor import config
from torch._inductor.utils import run_and_get_code
config.cpu_backend = "triton"
config.compile_threads = 1
config.force_disable_caches = True
torch.set_num_threads(1)
torch.manual_seed(0)

def same(f, *arguments, **settings):
    torch._dynamo.reset()
    with config.patch(settings):
        found, codes = run_and_get_code(torch.compile(f), *arguments)
    torch.testing.assert_close(found, f(*arguments), rtol=1e-4, atol=1e-3, equal_nan=True)
    return codes[0]
"""


def run(text: str) -> str:
    """The standard output of a program that imports torch and triton_metal."""
    paths = [str(Path(__file__).parents[2] / "python"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", CODE + text],
        capture_output=True,
        text=True,
        timeout=400,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_no_kernel_waits_for_other_programs() -> None:
    """Long scans and reductions, which Inductor would split among programs that wait for each other."""
    text = """
code = same(lambda x: x.cumsum(1), torch.randn(1, 9000))
print("@triton" in code, "decoupled_lookback" in code)
settings = {"triton.cooperative_reductions": True, "triton.force_cooperative_reductions": True}
code = same(lambda x: (x.sum(), x.var(1)), torch.randn(3, 9000), **settings)
print("@triton" in code, "barrier" in code)
"""
    assert run(text).split() == ["True", "False"] * 2


def test_additions_at_indices_of_every_dtype() -> None:
    """There are no atomic additions for small integers: PyTorch adds them itself."""
    text = """
index = torch.tensor([0, 2, 2, 1, 2])
for dtype in (torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
    x, y = torch.ones(4).to(dtype), torch.arange(5).to(dtype)
    same(lambda x, y: (x.index_put((index,), y, accumulate=True), x.scatter_add(0, index, y)), x, y)
    same(lambda x, y: x.index_add(0, index, y), x, y)
print("equal")
"""
    assert run(text).split() == ["equal"]


def test_padding_with_other_forms_of_addresses() -> None:
    """Masked loads whose first element is not there, in tiles of two dimensions and by block pointers."""
    text = """
x = torch.randn(8, 16, 32)
for pointers in (False, True):
    settings = {"triton.use_block_ptr": pointers, "triton.prefer_nd_tiling": True, "triton.max_tiles": 3}
    code = same(lambda x: (F.pad(x, (1, 2)) * 2, x.permute(2, 0, 1) + 1), x, **settings)
    print("make_block_ptr" in code)
same(lambda x: x.transpose(1, 2).contiguous().sin(), x, **{"triton.use_tensor_descriptor": True})
"""
    assert run(text).split() == ["False", "True"]


def test_ties_and_nans_in_orders() -> None:
    text = """
nan, inf = float("nan"), float("inf")
x = torch.tensor([[1.0, 3, 3, 1], [nan, 1, nan, 5], [2, 2, 2, 2], [inf, nan, 1, -inf]]).repeat(1, 20)
same(lambda x: (x.argmax(1), x.argmin(1), x.max(1), x.min(0), x.cummax(1), x.amax(1), x.clamp(0, 2)), x)
i = torch.randint(0, 3, (4, 60))
same(lambda i: (torch.sort(i, dim=1, stable=True), i.argmax(1), i // -2, i % -2, i.cumsum(1)), i)
print("equal")
"""
    assert run(text).split() == ["equal"]
