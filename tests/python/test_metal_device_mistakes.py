"""What newcomers do wrong with the host device's API is one error with the argument, its value, and what is allowed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import triton_metal_host as metal

ROOT = Path(__file__).resolve().parents[2]
TEXT = """#include <metal_stdlib>
using namespace metal;
constant int size [[function_constant(0)]];
kernel void add(device const float *a, device float *b, constant uint &n, uint i [[thread_position_in_grid]]) {
  if (i < n)
    b[i] += a[i];
}
kernel void shared(device float *o, threadgroup float *s [[threadgroup(0)]], uint t [[thread_index_in_threadgroup]]) {
  s[t] = t;
  o[t] = s[t];
}
kernel void sized(device int *o) { o[0] = size; }
"""


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


@pytest.fixture(scope="module")
def library(device: metal.Device) -> metal.Library:
    return device.library(TEXT)


def floats() -> np.ndarray:
    return np.ones(8, np.float32)


MISTAKES: dict[str, tuple[Callable, type[Exception], str]] = {
    "grid in an array": (
        lambda d, li, add: add(floats(), floats(), 8, threads=np.array([8])),
        TypeError,
        r"threads takes one to three whole numbers, not array\(\[8\]\)",
    ),
    "scalar of another kind": (
        lambda d, li, add: add(floats(), floats(), np.float32(8), threads=8),
        TypeError,
        r"'n' .* takes a whole number of type uint, not float32 8.0",
    ),
    "lengths in a list": (
        lambda d, li, add: d.pipeline(li.function("shared"))(
            floats(), threads=8, threadgroup_memory=[32]
        ),
        TypeError,
        r"shared: threadgroup_memory takes lengths by index or name, like \{0: 1024\}, not \[32\]",
    ),
    "arguments in a list": (
        lambda d, li, add: add(arguments=[floats()], threads=8),
        TypeError,
        "add: arguments takes buffers by name or index, .* not list",
    ),
    "constants in a list": (
        lambda d, li, add: li.function("sized", [1]),
        TypeError,
        r"'sized': constants takes values by name or index, .* not \[1\]",
    ),
    "queue that is none": (
        lambda d, li, add: add(floats(), floats(), 8, threads=8, queue=3),
        TypeError,
        r"add: queue takes what device.queue\(\) returns, not 3",
    ),
    "queue of a submission that is none": (
        lambda d, li, add: add.submit(floats(), floats(), 8, threads=8, queue="q"),
        TypeError,
        r"add: queue takes what device.queue\(\) returns, not 'q'",
    ),
    "one resource": (
        lambda d, li, add: add(floats(), floats(), 8, threads=8, resources=metal.Buffer(8)),
        TypeError,
        "add: resources takes a list of metal.Buffers, not <Buffer of 8 bytes>",
    ),
    "function instead of a pipeline": (
        lambda d, li, add: d.command_buffer().dispatch(li.function("add"), threads=8),
        TypeError,
        "dispatch takes a Pipeline, which device.pipeline makes, not <Function kernel void add",
    ),
    "handler that is none": (
        lambda d, li, add: add.submit(floats(), floats(), 8, threads=8, on_completed="x"),
        TypeError,
        "on_completed takes a function of a Run, not 'x'",
    ),
    "negative time": (
        lambda d, li, add: add.submit(floats(), floats(), 8, threads=8).wait(-1),
        ValueError,
        "timeout takes seconds from 0 on, not -1",
    ),
    "number of checks": (
        lambda d, li, add: metal.Device(checks=3),
        TypeError,
        "checks takes True, a name or several names, not 3",
    ),
    "path as text": (
        lambda d, li, add: d.library("kernels/saxpy.metal"),
        ValueError,
        r"takes Metal text, not the path 'kernels/saxpy.metal': pass pathlib.Path\('kernels/saxpy.metal'\)",
    ),
    "macros in a list": (
        lambda d, li, add: d.library(TEXT, macros=["A"]),
        TypeError,
        r"macros takes values by name, like \{'SIZE': 4\}, not \['A'\]",
    ),
    "name of a macro": (
        lambda d, li, add: d.library(TEXT, macros={"A B": 1}),
        ValueError,
        "macros: 'A B' is no name of a macro",
    ),
    "macro without a value": (
        lambda d, li, add: d.library(TEXT, macros={"A": None}),
        TypeError,
        "macros: 'A' takes a number or one line of text, not None",
    ),
    "macro of two lines": (
        lambda d, li, add: d.library(TEXT, macros={"A": "1\n#error x"}),
        TypeError,
        "macros: 'A' takes a number or one line of text",
    ),
    "one folder": (
        lambda d, li, add: d.library(TEXT, include="/tmp"),
        TypeError,
        "include takes a list of folders, not '/tmp'",
    ),
    "length that is no whole number": (
        lambda d, li, add: metal.Buffer(np.float32(8)),
        TypeError,
        "Buffer takes a length in bytes, .* not float32",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_clear_error(device, library, name: str) -> None:
    mistake, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        mistake(device, library, device.pipeline(library.function("add")))


def test_a_handler_that_is_none_leaves_the_command_buffer_as_it_was(device, library) -> None:
    out = floats()
    commands = device.command_buffer()
    commands.dispatch(device.pipeline(library.function("add")), floats(), out, 8, threads=8)
    with pytest.raises(TypeError, match="on_completed"):
        commands.commit(on_completed=3)
    commands.commit().wait()
    assert (out == 2).all()


def test_numbers_of_numpy_are_numbers(device, library) -> None:
    assert metal.Buffer(np.int64(64)).nbytes == 64
    add = device.pipeline(library.function("add"), checks="steps", max_steps=np.int64(1000))
    out = floats()
    add(floats(), out, np.uint32(8), threads=np.int64(8), threads_per_threadgroup=(np.int32(4),))
    assert (out == 2).all()


def test_one_output_may_be_named(device, library) -> None:
    add = device.pipeline(library.function("add"), outputs="b")
    add(floats(), floats(), 8, threads=8)
    with pytest.raises(metal.LaunchError, match="no thread has written byte 16 of 'b'"):
        add(floats(), floats(), 4, threads=8)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import triton_metal_host as metal

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores interrupts
device = metal.Device()
endless = device.pipeline(device.library(
    "kernel void f(device int *o) { while (o[1] == 0) o[0] += 1; }").function("f"))
out = np.zeros(2, np.int32)


def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)


# After a launch on all threads, the next interrupt may arrive at a thread that the first one has stopped.
for launch in (
    lambda: endless(out, threads=4096),
    lambda: endless.submit(out, threads=64).wait(),
    lambda: endless(out, threads=64),
    lambda: (endless.submit(out, threads=64), device.wait()),
):
    threading.Thread(target=interrupt).start()
    try:
        launch()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_each_of_several_interrupts_ends_a_launch(tmp_path: Path) -> None:
    script = tmp_path / "interrupted.py"
    script.write_text(INTERRUPTED)
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT / "python"), TRITON_METAL_CACHE_DIR=str(tmp_path)),
    )
    try:
        out, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        raise
    assert out == "interrupted\n" * 4
    assert process.returncode == 0
