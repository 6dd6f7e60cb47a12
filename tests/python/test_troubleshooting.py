"""docs/troubleshooting.md: each message is in the sources, and those that can be raised here are raised."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
import triton_metal.ops as ops
from triton_metal.__main__ import main
from triton_metal.doctor import kernels as doctor_kernels
from triton_metal.doctor import report as doctor_report
from triton_metal.doctor import run as doctor_run
from triton_metal.doctor import text as doctor_text

from kernel_support import ON_STOCK
from mac_support import found_on_mac

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
# A message with backquotes of its own stands between double ones.
MESSAGES = [
    double or single
    for double, single in re.findall(r"^\| (?:`` (.+?) ``|`(.+?)`) \| ", PAGE, re.MULTILINE)
]
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("the launches have checks of their own"),
    pytest.mark.own_target,
    pytest.mark.skipif(ON_STOCK, reason="stock Triton has messages of its own"),
]


def sources() -> str:
    """The texts of the sources, in which strings that follow each other are one."""
    texts = []
    for folder in ("python", "compiler", "host_device", "runtime"):
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


@triton.jit
def undefined(x_ptr):
    tl.store(x_ptr, nowhere)  # noqa: F821


@triton.jit
def one_path(x_ptr, n):
    if n > 0:
        y = 1.0
    tl.store(x_ptr, y)


def plain_function(value):
    return value + 1


@triton.jit
def calls_plain_function(x_ptr):
    tl.store(x_ptr, plain_function(3))


@triton.jit
def asks_a_tile(x_ptr):
    if tl.load(x_ptr + tl.arange(0, 4)) > 0:
        tl.store(x_ptr, 1.0)


@triton.jit
def two_types(x_ptr, n):
    if n > 0:
        v = 1
    else:
        v = tl.zeros((4,), tl.float32)
    tl.store(x_ptr, v)


@triton.jit
def becomes_a_float(x_ptr, n):
    v = 0
    for _ in range(n):
        v = v + tl.load(x_ptr)
    tl.store(x_ptr, v)


@triton.jit
def returns(x_ptr):
    return tl.load(x_ptr)


@triton.jit
def other_alone(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr, other=0.0))


@triton.jit
def multiplies(x_ptr, M: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, 16)
    c = tl.dot(tl.zeros((16, K), A), tl.zeros((M, 16), B))
    tl.store(x_ptr + i[:, None] * 16 + i[None, :], c)


@triton.jit
def reshapes(x_ptr):
    tl.store(x_ptr + tl.arange(0, 32), tl.arange(0, 64).reshape(32))


@triton.jit
def ranges(x_ptr, START: tl.constexpr, END: tl.constexpr):
    tl.store(x_ptr + tl.arange(START, END), 1.0)


@triton.jit
def fourth_axis(x_ptr):
    tl.store(x_ptr, tl.program_id(3))


@triton.jit
def counts(x_ptr):
    tl.atomic_add(x_ptr, 1)


@triton.jit
def calls_itself(x_ptr, n):
    if n > 0:
        calls_itself(x_ptr, n - 1)


def long_sum() -> None:
    """Launches a kernel with a sum of 600 terms, as a program that writes kernels may make one."""
    text = f"""
import triton_metal as triton
import triton_metal.language as tl

@triton.jit
def kernel(x_ptr):
    x = tl.load(x_ptr)
    tl.store(x_ptr, {" + ".join(["x"] * 600)})
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long_sum.py"
        path.write_text(text, encoding="utf-8")
        runpy.run_path(str(path))["kernel"][(1,)](X)


@triton.jit
def recursion(x_ptr, n):
    calls_itself(x_ptr, n)


@triton.jit
def descent(x, n: tl.constexpr):
    if n > 0:
        return descent(x + n, n - 1)
    return x


@triton.jit
def descends(x_ptr, n: tl.constexpr):
    tl.store(x_ptr, descent(tl.load(x_ptr), n))


@triton.jit
def strided_descriptor(x_ptr):
    d = tl.make_tensor_descriptor(x_ptr, [16, 16], [16, 2], [16, 16])
    d.store([0, 0], tl.zeros((16, 16), tl.float32))


@triton.jit
def assembly(x_ptr):
    args = [tl.load(x_ptr)]
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", args, tl.float32, True, 1)
    tl.store(x_ptr, y)


@triton.jit
def locks(x_ptr):
    while tl.atomic_cas(x_ptr, 0, 1) == 1:
        pass


@triton.jit
def tickets(x_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.atomic_add(x_ptr + i // 2, 1))


@triton.jit
def loaded_bound(n_ptr, out_ptr):
    total = 0
    for i in range(tl.load(n_ptr)):
        total += i
    tl.store(out_ptr, total)


@triton.jit
def next_after(x_ptr):
    tl.store(x_ptr, tl.extra.libdevice.nextafter(tl.load(x_ptr), 2.0))


X, INTEGERS = np.ones(100, np.float32), np.zeros(4, np.int32)


def as_graph(launch: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        pytest.importorskip("mlx.core")
        with triton.device("mlx-graph"):
            launch()

    return run


def traced() -> None:
    mx = pytest.importorskip("mlx.core")
    from triton_metal.mlx import graph

    n = mx.array([3])
    mx.compile(lambda n: graph(loaded_bound)(n, grid=(1,), outputs={"out_ptr": n}))(n)


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


def many_arrays() -> None:
    arguments = ", ".join(f"%p{i}: !tt.ptr<f32>" for i in range(33))
    triton.compile_ttir(f"module {{ tt.func public @many({arguments}) {{ tt.return }} }}")


def said_by(*arguments: str) -> Callable[[], None]:
    """What a command line is answered with."""

    def run() -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            status = main(["doctor", *arguments])
        assert status == 2
        raise RuntimeError(said.getvalue())

    return run


def told_by_the_doctor(**record: Any) -> Callable[[], None]:
    """What a report with a record is shown as."""

    def run() -> None:
        whole = {
            "triton_metal": "0", "system": {"os": "Linux", "machine": "x", "python": "3"}, "packages": {},
            "gpu": {"problem": "none"}, "checks": [], "advice": [],
            "devices": [{"name": "host", "problem": None, "ok": True, "target": "msl=3.2", "properties": {}, "records": []}],
        }  # fmt: skip
        whole["devices"][0] |= record
        raise RuntimeError(doctor_text.plain(whole))

    return run


def probed(*probes: Any) -> list[dict[str, Any]]:
    """The records of the doctor's kernels on the host device."""
    records: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor_kernels, "probes", lambda: list(probes))
        doctor_run.probe("host", records.append)
    return records


def wrong_result() -> None:
    good = doctor_kernels.probes()[0]
    wrong, _ = probed(dataclasses.replace(good, expected=lambda arrays: arrays[1] + 1.0))
    assert not wrong["ok"]
    raise RuntimeError(wrong["error"])


def refused_kernel() -> None:
    def launch(arrays: Any) -> None:
        product[(1,)](np.ones((1024, 1024), np.float32), B=1024)

    refused, _ = probed(dataclasses.replace(doctor_kernels.probes()[0], launch=launch))
    assert refused["ok"]
    raise RuntimeError(doctor_text.measured(refused))


def ended(script: str, seconds: float) -> Callable[[], None]:
    """The record of a process that ends badly."""

    def run() -> None:
        records: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            shell = Path(folder) / "python"
            shell.write_text(f"#!/bin/sh\n{script}\n")
            shell.chmod(0o755)
            patch.setattr(doctor_report.sys, "executable", str(shell))
            doctor_report.in_a_process(["probe", "host"], seconds, records.append)
        raise RuntimeError(records[-1]["error"])

    return run


def without_packages() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor_report.importlib.util, "find_spec", lambda name: None)
        checks = doctor_report.check_numpy()
    raise RuntimeError(
        "; ".join(check.get("error", "") + check.get("skipped", "") for check in checks)
    )


def advised(
    system: str, version: str, failed: bool = False, frameworks: bool = False
) -> Callable[[], None]:
    """What the doctor advises on a machine."""

    def run() -> None:
        mac = {} if frameworks else {"mlx": {"version": "0.32.0"}}
        found = found_on_mac("Apple M3 Max", version, **mac)
        if system != "Darwin":
            found = dataclasses.replace(found, system=system, machine="x86_64")
        absent = [{"name": name, "problem": "absent", "records": []} for name in ("mlx", "mps")]
        host = {"name": "host", "problem": None, "records": [{"ok": not failed}]}
        gpu = doctor_report.gpu(found) if system == "Darwin" else {"problem": "none"}
        whole = {"checks": [], "gpu": gpu, "devices": [host, *absent]}
        raise RuntimeError("; ".join(doctor_report.advice(whole, found)))

    return run


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
    "must be a plain array but is …": lambda: ops.relu(np.ma.masked_array(X)),
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
    "… place … of an array, and the result depends on their order": as_graph(lambda: races[(4,)](INTEGERS)),
    "and what each of them found depends on their order": as_graph(lambda: tickets[(1,)](INTEGERS, np.ones(4, np.int32))),
    "depends on the elements of an array, and there are none while …": traced,
    "cannot become a part of an MLX graph": as_graph(lambda: next_after[(1,)](X.copy())),
    "loads place … of an array of … elements": as_graph(lambda: twice[(1,)](X.copy(), 128, B=128)),
    "a race: …": under(lambda: races[(4,)](INTEGERS), check="races"),
    "an integer division by zero": under(lambda: divides[(1,)](INTEGERS, 0), check="arithmetic"),
    "NumPy arrays and CPU tensors run on the host device, which …": without_host_device,
    "there is no device …; the devices are …": lambda: triton.device("cuda").__enter__(),
    "there is no check …; the checks are …": under(lambda: None, check="bound"),
    "cannot be combined with other checks": under(lambda: None, check=["portable", "bounds"]),
    "needs the names of the outputs, which a launch does not have": under(lambda: None, check="outputs"),
    'max_steps is a positive number for check="steps" or check="all"': under(lambda: None, max_steps=3),
    "… is not defined": lambda: undefined[(1,)](X),
    "… has no value here: only one path of an if assigns it": lambda: one_path[(1,)](X, 5),
    "… is not a function of the language": lambda: calls_plain_function[(1,)](X),
    "the truth of a tile (…) is ambiguous: a condition must be a scalar": lambda: asks_a_tile[(1,)](X),
    "Mismatched type for …": lambda: two_types[(1,)](X, 5),
    "its type must stay the same. Begin with …": lambda: becomes_a_float[(1,)](X, 5),
    "a kernel cannot return a value: store it": lambda: returns[(1,)](X),
    "takes a pointer, not …": lambda: divides[(1,)](3, 4),
    "`other` needs a `mask`": lambda: other_alone[(1,)](X),
    "both operands must have the same dtype": lambda: multiplies[(1,)](X, 16, 16, tl.float32, tl.float16),
    "must have as many rows as … has columns": lambda: multiplies[(1,)](X, 16, 32, tl.float32, tl.float32),
    "the first operand must be a tile of …": lambda: multiplies[(1,)](X, 16, 16, tl.int32, tl.int32),
    "reshape cannot change the number of elements": lambda: reshapes[(1,)](INTEGERS),
    "more than 1048576 elements, the most that a tile may have": lambda: ranges[(1,)](X, 0, 1 << 21),
    "the end must be greater than the start": lambda: ranges[(1,)](X, 4, 2),
    "axis must be 0, 1 or 2": lambda: fourth_axis[(1,)](X),
    "does not support int1": lambda: counts[(1,)](np.zeros(4, bool)),
    "kernels have no recursion": lambda: recursion[(1,)](X, 3),
    "is called too deep for Python's recursion limit of …": lambda: descends[(1,)](X, 10_000),
    "the expression is too deep for Python's recursion limit of …": long_sum,
    "its stride is 1": lambda: strided_descriptor[(1,)](X),
    "is assembly of another vendor's GPU": lambda: assembly[(1,)](X),
    "waits here until another program changes memory": lambda: locks[(2,)](INTEGERS),
    "buffers, and Metal binds 31": many_arrays,
    "@jit takes a function defined with def": lambda: triton.jit(len),
    "is not an operation that triton-metal knows": lambda: triton.compile_ttir("module { tt.nothing }"),
    "some kernels failed: …": advised("Linux", "15.1", failed=True),
    "the result is off by …": wrong_result,
    "was ended by signal …": ended("kill -SEGV $$", 60),
    "took more than … and was stopped": ended("exec sleep 60", 0.3),
    "not available: …": told_by_the_doctor(problem="torch is not installed: pip install torch"),
    "there is no Apple GPU on …": advised("Linux", "15.1"),
    "to run kernels on the GPU: pip install mlx (or torch)": advised("Darwin", "15.1", frameworks=True),
    "… is not supported: kernels need Metal 3, which requires macOS 13 or later": advised("Darwin", "12.4"),
    "is not installed, but the doctor compares results with it": without_packages,
    "is not installed, so bfloat16 is not tested": without_packages,
    "is not a folder: --report needs a file in an existing folder": said_by("--report", "/no/such/report.md"),
    "doctor: --save belongs to --quirks": said_by("--save"),
    "names no probe; the rows are …": said_by("--quirks", "--only", "999"),
    "refused: needs …": refused_kernel,
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
