"""A program may end while another of its threads compiles or launches."""

import subprocess
import sys
from pathlib import Path

import pytest

METAL = """
import numpy as np, triton_metal_host as metal
text = "kernel void k(device uint *o) { for (uint i = 0; i < STEPS; i++) o[0] = o[0] * 3 + i; }"
kernel = metal.Device().pipeline(metal.Device().library(text).function("k"))
def step(number):
    kernel(np.zeros(1, np.uint32), threads=1)
"""

TRITON = """
import numpy as np
import triton_metal as triton
import triton_metal.language as tl

@triton.jit
def add(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

"""
ARRAYS = "x, o = np.ones(1 << 12, np.float32), np.zeros(1 << 12, np.float32)\n"
LAUNCH = "add[(32,)](x, o, 1 << 12, BLOCK=128)"
LAUNCHES = f"{TRITON}{ARRAYS}def step(number):\n    {LAUNCH}\n"
COUNTS = LAUNCHES.replace(LAUNCH, f"with triton.launch_options(count=True): {LAUNCH}")
COMPILATIONS = (
    TRITON
    + ARRAYS
    + """
def step(number):
    add[(1,)](x, o, 1 << 12, BLOCK=2 ** (number % 12), num_warps=2 ** (number // 12 % 5))
"""
)
# MLX itself aborts where a program ends while it computes in another thread.
MLX = (
    TRITON
    + """
import mlx.core as mx
mx.set_default_device(mx.cpu)
def prepare():
    global x, o
    mx.set_default_stream(mx.new_stream(mx.cpu))
    x, o = mx.ones((1 << 12,)), mx.zeros((1 << 12,))
    mx.eval(x, o)
def step(number):
    add[(32,)](x, o, 1 << 12, BLOCK=128)
"""
)

PROGRAM = """
import threading, time
begun = threading.Event()
def work():
    number = 0
    if "prepare" in globals(): prepare()
    begun.set()
    while True:
        step(number)
        number += 1
threading.Thread(target=work, daemon=True).start()
begun.wait()
time.sleep(DELAY)
"""


@pytest.mark.parametrize("delay", [0, 0.05, 0.3])
@pytest.mark.parametrize(
    "setup",
    [
        pytest.param(METAL.replace("STEPS", "1000"), id="metal"),
        pytest.param(METAL.replace("STEPS", "2000000000"), id="metal-long"),
        pytest.param(LAUNCHES, id="launches"),
        pytest.param(COUNTS, id="counts"),
        pytest.param(COMPILATIONS, id="compilations"),
        pytest.param(MLX, id="mlx"),
    ],
)
def test_a_program_may_end_while_another_thread_works(
    setup: str, delay: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if setup is MLX:
        pytest.importorskip("mlx.core")
    # Without compiled kernels from before, so that the program may end while LLVM works.
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(tmp_path / "cache"))
    program = tmp_path / "program.py"
    program.write_text(setup + PROGRAM.replace("DELAY", str(delay)))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
