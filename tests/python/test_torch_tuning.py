"""What PyTorch tunes in compiled functions: its own templates with max-autotune, and a program's autotuned kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
import triton_metal
from triton_metal.tuning.options import read_prune

from test_torch_compile import CODE, python

pytest.importorskip("torch._inductor")


def test_templates_are_tried_where_something_follows_them() -> None:
    """Linear layers with an activation, and convolutions with a bias and without: forward and backward."""
    program = """
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv2d(4, 4, 1, bias=False), torch.nn.Flatten(),
    torch.nn.Linear(64, 8), torch.nn.GELU(),
)
compiled = torch.compile(model, mode="max-autotune")
x = torch.randn(2, 3, 6, 6)
found = []
for function in (compiled, model):
    model.zero_grad()
    y = function(x)
    y.square().sum().backward()
    found.append([y.detach(), *(p.grad.clone() for p in model.parameters())])
for ours, theirs in zip(*found):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
print("same")
"""
    assert python("-c", CODE + program).splitlines()[-1] == "same"


def test_tuners_that_pytorch_makes_anew(tmp_path: Path) -> None:
    """Heuristics inside of a tuner, options at the launch, and a parameter that is an option."""
    program = tmp_path / "tuned.py"
    program.write_text(
        CODE
        + """
import triton_metal as triton, triton_metal.language as tl

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (32, 64) for warps in (1, 2)]

@triton.autotune(CONFIGS, key=["n"])
@triton.heuristics({"EVEN": lambda values: values["n"] % values["BLOCK"] == 0})
@triton.jit
def with_heuristics(x, out, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, EVEN | (i < n)) * 3, EVEN | (i < n))

@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def plain(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * 3, i < n)

@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def with_option(x, out, n, num_warps: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * (num_warps - num_warps + 3), i < n)

def launch(kernel, x, **options):
    out = torch.zeros_like(x)
    kernel[lambda values: (triton.cdiv(x.numel(), values["BLOCK"]),)](x, out, x.numel(), **options)
    return out.relu()

x = torch.randn(100)
for kernel, options in ((with_heuristics, {}), (plain, {"num_stages": 2}), (with_option, {})):
    compiled = torch.compile(lambda x: launch(kernel, x, **options))
    assert torch.equal(compiled(x), (x * 3).relu()), kernel
print("same")
"""
    )
    assert python(str(program)).splitlines()[-1] == "same"


def test_options_that_others_write_into_a_configuration_count() -> None:
    config = triton_metal.Config({"BLOCK": 64})
    assert (config.num_warps, config.num_stages) == (4, 3)
    assert config.all_kwargs() == {"BLOCK": 64, "num_ctas": 1}
    config.__dict__.update(num_warps=8)
    config.num_stages = 2
    assert config.all_kwargs() == {"BLOCK": 64, "num_warps": 8, "num_ctas": 1, "num_stages": 2}
    assert vars(triton_metal.Config({}, num_warps=4))["num_warps"] == 4
    assert read_prune("kernel", {"configs_top_k": 2, "perf_model": len})[2] == 2
