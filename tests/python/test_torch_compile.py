"""torch.compile generates Triton kernels, which triton_metal compiles, and whole models train as they do eagerly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch._inductor")

FOLDER = Path(__file__).parent


def python(*arguments: str, **environment: str) -> str:
    """The standard output of another Python."""
    paths = [str(FOLDER.parents[1] / "python"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | environment,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize(
    ("model", "threads"),
    [
        ("mlp", "1"),
        ("transformer", "1"),
        ("resnet", "1"),
        ("embedding", "2"),
        ("decoder", "1"),
        ("unet", "1"),
    ],
)
def test_a_model_trains_as_it_does_eagerly(model: str, threads: str) -> None:
    """Forward, backward, AdamW on all parameters at once; with two threads in Inductor's own worker processes."""
    said = python(str(FOLDER / "torch_compile_models.py"), model, COMPILE_THREADS=threads)
    found = json.loads(said.splitlines()[-1])
    assert found.pop("kernels") >= 3
    assert all(value < 2e-4 for value in found.values()), found


CODE = """
import triton_metal
triton_metal.install()
import torch
from torch._inductor import config
from torch._inductor.utils import run_and_get_code
config.cpu_backend = "triton"
config.compile_threads = 1
config.force_disable_caches = True
"""


def test_kernels_have_no_more_arrays_than_metal_binds() -> None:
    """A step on 40 tensors, and a sum of 40 outputs."""
    text = (
        CODE
        + """
tensors = [torch.randn(33 + i) for i in range(40)]
f = torch.compile(lambda xs, ys: torch._foreach_add(xs, ys, alpha=2))
others = [torch.randn_like(x) for x in tensors]
for found, x, y in zip(f(tensors, others), tensors, others):
    assert torch.allclose(found, x + 2 * y)
rows = [torch.randn(64) for _ in range(40)]
g = torch.compile(lambda xs: [x.sin() + xs[i - 1] for i, x in enumerate(xs)])
for i, found in enumerate(g(rows)):
    assert torch.allclose(found, rows[i].sin() + rows[i - 1], atol=1e-6)
print("equal")
"""
    )
    assert python("-c", text).split() == ["equal"]


def test_other_settings_keep_their_code_generation() -> None:
    """Without cpu_backend="triton", CPU tensors go through Inductor's C++."""
    text = (
        CODE
        + """
import torch._inductor.graph
config.cpu_backend = "cpp"
from torch._inductor.codegen.common import get_scheduling_for_device, init_backend_registration
init_backend_registration()
print(type(get_scheduling_for_device("cpu")(None)).__name__)
config.cpu_backend = "triton"
print(type(get_scheduling_for_device("cpu")(None)).__name__)
"""
    )
    assert python("-c", text).split() == ["CppScheduling", "MetalScheduling"]


def test_dynamic_shapes_and_indices_out_of_bounds() -> None:
    text = (
        CODE
        + """
f = torch.compile(lambda x: (x.softmax(-1) * 2).sum(0), dynamic=True)
for rows, columns in ((3, 5), (17, 70), (40, 130)):
    x = torch.randn(rows, columns)
    assert torch.allclose(f(x), (x.softmax(-1) * 2).sum(0), atol=1e-5)
g = torch.compile(lambda table, index: table[index] + 1)
table = torch.arange(10.0)
assert g(table, torch.tensor([3, 9])).tolist() == [4.0, 10.0]
try:
    g(table, torch.tensor([3, 10]))
except RuntimeError as error:
    print("index out of bounds" in str(error))
"""
    )
    assert python("-c", text).split() == ["True"]


def test_a_kernel_of_the_program_in_a_compiled_function(tmp_path: Path) -> None:
    text = (
        CODE
        + """
import triton, triton.language as tl
KIND = tl.constexpr(tl.float32)
@triton.jit
def wide(x):
    return x.to(KIND)
@triton.jit
def twice(x, y, n, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, (wide(tl.load(x + i, i < n)) * 2).to(TO), i < n)
def call(x):
    y = torch.empty_like(x)
    twice[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), TO=tl.float32, BLOCK=64)
    return y + 1
x = torch.randn(100)
assert torch.equal(torch.compile(call, fullgraph=True)(x), call(x))
print("equal")
"""
    )
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    assert python(str(program)).split() == ["equal"]


def test_mps_gets_the_code_generation_for_triton() -> None:
    """What registration changes in Inductor, and gives back."""
    text = (
        CODE
        + """
import triton_metal.torch
from torch._inductor.codegen.common import get_device_op_overrides, get_scheduling_for_device
from torch._inductor.codegen.common import init_backend_registration
init_backend_registration()
before = get_scheduling_for_device("mps")
triton_metal.torch.register("mps")
print(type(get_scheduling_for_device("mps")(None)).__name__)
print(get_device_op_overrides("mps").import_get_raw_stream_as("stream"))
triton_metal.torch.unregister("mps")
print(get_scheduling_for_device("mps") is before)
try:
    triton_metal.torch.register("cuda")
except ValueError as error:
    print(error)
"""
    )
    assert python("-c", text).splitlines() == [
        "MetalScheduling",
        "def stream(_): return 0",
        "True",
        "torch.compile has no device 'cuda' for triton_metal: it is one of cpu, mps",
    ]
