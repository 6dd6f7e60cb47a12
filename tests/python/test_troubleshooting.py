"""docs/troubleshooting.md: each message is in the sources, and those that can be raised here are raised."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from kernel_support import ON_STOCK

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^\| `(.+?)` \| ", PAGE, re.MULTILINE)
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("the launches have checks of their own"),
    pytest.mark.own_target,
    pytest.mark.skipif(ON_STOCK, reason="stock Triton has messages of its own"),
]


def sources() -> str:
    """The texts of the sources, in which strings that follow each other are one."""
    texts = []
    for folder in ("python", "compiler", "host_device"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".cpp", ".h", ".td"):
                texts.append(path.read_text(encoding="utf-8"))
    text = "\n".join(texts).replace('\\"', '"')
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", text)


def parts(message: str) -> list[str]:
    return [part.strip() for part in message.split("…") if part.strip()]


def stale(message: str, text: str) -> list[str]:
    """The parts of a message that no source has."""
    return [part for part in parts(message) if part not in text]


def test_messages_that_are_not_raised_here_are_in_the_sources() -> None:
    text = sources()
    assert len(MESSAGES) >= 45
    rest = [message for message in MESSAGES if message not in EXAMPLES]
    assert {message: found for message in rest if (found := stale(message, text))} == {}
    assert stale("macOS ended the … kept the GPU too briefly", text) == ["kept the GPU too briefly"]


@triton.jit
def twice(x_ptr, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + at, tl.load(x_ptr + at, at < n) * 2, at < n)


@triton.jit
def run_time_block(x_ptr, B):
    tl.store(x_ptr + tl.arange(0, B), 1.0)


@triton.jit
def two_shapes(x_ptr):
    tl.store(x_ptr + tl.arange(0, 64), tl.arange(0, 16) + tl.arange(0, 64))


@triton.jit
def exceptions(x_ptr):
    try:
        tl.store(x_ptr, 1.0)
    except ValueError:
        pass


@triton.jit
def assigned(x_ptr):
    x_ptr[0] = 1.0


GLOBAL = 3


@triton.jit
def reads_a_global(x_ptr):
    tl.store(x_ptr, GLOBAL)


@triton.jit
def changes_a_constant(x_ptr, n, m):
    while m > 0:
        m = m - n
        n = n + m
    tl.store(x_ptr, n)


@triton.jit
def asserts(x_ptr, B: tl.constexpr):
    tl.static_assert(B > 64, "B is small")
    tl.device_assert(tl.load(x_ptr) > 5, "too small")


@triton.jit
def product(x_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i[:, None] * B + i[None, :])
    tl.store(x_ptr + i[:, None] * B + i[None, :], tl.dot(x, x))


@triton.jit
def divides(x_ptr, n):
    tl.store(x_ptr, 7 // n)


@triton.jit
def races(x_ptr):
    tl.store(x_ptr, tl.program_id(0))


X, INTEGERS = np.ones(100, np.float32), np.zeros(4, np.int32)


def under(launch: Callable[[], Any], **options: Any) -> Callable[[], None]:
    def run() -> None:
        with triton.launch_options(**options):
            launch()

    return run


def without_host_device() -> None:
    """In a process of its own, in which the module cannot be imported."""
    program = (
        "import sys\nsys.modules['triton_metal_host'] = None\n"
        "import numpy, triton_metal, test_troubleshooting as t\n"
        "try:\n    t.twice[(1,)](numpy.ones(4, numpy.float32), 4, B=4)\n"
        "except triton_metal.DeviceError as error:\n    print(error)\n"
    )
    environment = dict(
        os.environ, PYTHONPATH=os.pathsep.join([str(Path(__file__).parent), *sys.path])
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    raise RuntimeError(done.stdout)


def without_source() -> None:
    names: dict[str, Any] = {"triton": triton}
    exec(compile("def f(x_ptr):\n    pass\n", "<nowhere>", "exec"), names)
    triton.jit(names["f"])[(1,)](X)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "Cannot call @triton.jit'd outside of the scope of a kernel": lambda: twice(X, 100, B=64),
    "argument … is missing; its parameters are …": lambda: twice[(1,)](X, B=64),
    "has no parameter …; its parameters are …": lambda: twice[(1,)](X, 100, B=64, C=3),
    "which is not an array; a kernel takes arrays, numbers and None": lambda: twice[(1,)]([1.0], 1, B=64),
    "is an array of …; a kernel takes arrays of bool": lambda: twice[(1,)](np.ones(4, np.complex64), 4, B=4),
    "is a read-only array, but the kernel writes it": lambda: twice[(1,)](np.broadcast_to(X[:1], (4,)), 4, B=4),
    "is a constexpr: it takes a number, a string, a dtype or a function that is known before the launch": lambda: (
        twice[(1,)](X, 100, B=X)
    ),
    "which does not fit in any type: the largest are int64 and uint64": lambda: twice[(1,)](X, 2**70, B=64),
    "grid dimension … must be an integer, not …": lambda: twice[(1.5,)](X, 100, B=64),
    "it must be from 0 to 2147483647": lambda: twice[(-1,)](X, 100, B=64),
    "the grid must have 1 to 3 dimensions": lambda: twice[(1, 1, 1, 1)](X, 100, B=64),
    "num_warps must be 1, 2, 4, 8, 16 or 32": lambda: twice[(1,)](X, 100, B=64, num_warps=3),
    "num_stages must be an integer from 1 to 16": lambda: twice[(1,)](X, 100, B=64, num_stages=99),
    "the range must be a power of 2": lambda: twice[(1,)](X, 100, B=100),
    "must be a constexpr integer, not the run-time value …": lambda: run_time_block[(1,)](X, 64),
    "do not broadcast: dimension …": lambda: two_shapes[(1,)](X),
    "kernels do not support …": lambda: exceptions[(1,)](X),
    "elements of a pointer cannot be assigned": lambda: assigned[(1,)](X),
    "Cannot access global variable …": lambda: reads_a_global[(1,)](X),
    "a compile-time value cannot change in a run-time loop": lambda: changes_a_constant[(1,)](INTEGERS, 1, 5),
    "static assertion failed": lambda: asserts[(1,)](X, B=1),
    "device-side assertion failed": lambda: asserts[(1,)](X, B=128, debug=True),
    "bytes of threadgroup memory, and the target (or set_kernel_config) has …": lambda: product[(1,)](
        np.ones((1024, 1024), np.float32), B=1024
    ),
    "the source of … cannot be read: @jit functions must be defined in a file": without_source,
    "a … of … bytes at byte … of …, which has … bytes": under(lambda: twice[(4,)](X, 200, B=64), check="bounds"),
    "a race: …": under(lambda: races[(4,)](INTEGERS), check="races"),
    "an integer division by zero": under(lambda: divides[(1,)](INTEGERS, 0), check="arithmetic"),
    "NumPy arrays and CPU tensors run on the host device, which …": without_host_device,
    "there is no device …; the devices are …": lambda: triton.device("cuda").__enter__(),
    "there is no check …; the checks are …": under(lambda: None, check="bound"),
    "cannot be combined with other checks": under(lambda: None, check=["portable", "bounds"]),
    "needs the names of the outputs, which a launch does not have": under(lambda: None, check="outputs"),
    'max_steps is a positive number for check="steps" or check="all"': under(lambda: None, max_steps=3),
    "[cost] chip must be one of …": lambda: twice.cost("M9", (1,), X, 100, B=64),
}  # fmt: skip


def matched(message: str, said: str) -> bool:
    return re.search(".*?".join(re.escape(p) for p in message.split("…")), said, re.S) is not None


@pytest.mark.parametrize("message", EXAMPLES)
def test_the_message_is_raised(message: str) -> None:
    assert message in MESSAGES
    with pytest.raises(Exception) as error:  # noqa: PT011
        EXAMPLES[message]()
    assert matched(message, str(error.value)), error.value


def test_every_cause_of_a_refusal_is_told() -> None:
    from triton_metal.refusals import KINDS

    told = [
        kind for kind in KINDS if any(kind.cause.startswith(m.partition(" {")[0]) for m in MESSAGES)
    ]
    assert {kind.name for kind in KINDS} - {kind.name for kind in told} <= {
        "internal", "allocation", "no function", "pipeline",
    }  # fmt: skip
