"""What goes wrong while a kernel runs: the Python line of a failed check, faults of unchecked kernels, and interrupts."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

pytestmark = [pytest.mark.own_route, pytest.mark.own_check("faults are those of unchecked kernels")]
HERE = Path(__file__)


def line_of(mark: str) -> int:
    """The line of this file that ends with a mark."""
    (line,) = [
        number
        for number, text in enumerate(HERE.read_text().splitlines(), 1)
        if text.endswith(f"# {mark}")
    ]
    return line


@triton.jit
def direct(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    value = tl.load(x + offs)  # direct load
    tl.store(out + offs + n, value)  # direct store


@triton.jit
def read(pointer, offs):
    return tl.load(pointer + offs) * 2  # load in a helper


@triton.jit
def twice(pointer, offs):
    return read(pointer, offs) + 1  # call in a helper


@triton.jit
def calling(x, out, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        total += twice(x, offs + k * BLOCK)  # call in a loop
    tl.store(out + offs, total)


@triton.jit
def two(x, y, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a = tl.load(x + offs)  # first of two
    b = tl.load(y + offs)  # second of two
    tl.store(out + offs, a + b)


@triton.jit
def adding(x, index, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    where = tl.load(index + offs)
    tl.atomic_add(out + where, tl.load(x + offs))  # atomic


@triton.jit
def searching(x, out):
    at = 0
    while tl.load(x + at) != 0:  # condition
        at += 1
    tl.store(out, at)


@triton.jit
def endless(x):
    going = 1
    while going != 0:
        tl.atomic_add(x, 1)
        going = tl.load(x + 1) + 1


@triton.jit
def wild(x, n):
    tl.store(x + n + tl.arange(0, 4), 1)


def fails(kernel, *args, **constants) -> triton.DeviceError:
    with triton.launch_options(check="bounds"), pytest.raises(triton.DeviceError) as info:
        kernel[(1,)](*args, **constants)
    return info.value


def zeros(n: int, dtype=np.float32) -> np.ndarray:
    return np.zeros(n, dtype)


@pytest.mark.parametrize("block", [4, 64, 256])
def test_the_line_of_a_load_and_of_a_store(block: int) -> None:
    error = fails(direct, zeros(block - 1), zeros(block), 0, BLOCK=block)
    assert (error.location.file, error.location.line) == (str(HERE), line_of("direct load"))
    assert "value = tl.load(x + offs)" in str(error)
    assert "^" in str(error)
    assert "of 'x'" in str(error)
    error = fails(direct, zeros(block), zeros(block), 1, BLOCK=block)
    assert error.location.line == line_of("direct store")
    assert str(error).startswith(f"{HERE}:{error.location.line}:")
    assert error.callers == ()


def test_the_lines_of_the_calls_that_lead_to_a_load_in_a_loop() -> None:
    error = fails(calling, zeros(200), zeros(64), 4, BLOCK=64)
    assert error.location.line == line_of("load in a helper")
    lines = [caller.line for caller in error.callers]
    assert lines == [line_of("call in a helper"), line_of("call in a loop")]
    assert "called from" in str(error)


def test_which_of_two_loads() -> None:
    assert fails(two, zeros(63), zeros(64), zeros(64), BLOCK=64).location.line == line_of(
        "first of two"
    )
    assert fails(two, zeros(64), zeros(63), zeros(64), BLOCK=64).location.line == line_of(
        "second of two"
    )


def test_atomics_and_conditions() -> None:
    index = np.full(32, 40, np.int32)
    error = fails(adding, zeros(32), index, zeros(32), BLOCK=32)
    assert error.location.line == line_of("atomic")
    error = fails(searching, np.ones(8, np.int32), zeros(1, np.int32))
    assert error.location.line == line_of("condition")


def test_lines_come_out_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import numpy as np, triton_metal as triton, sys\n"
    text += f"sys.path.insert(0, {str(HERE.parent)!r})\nimport test_faults as t\n"
    text += "print(t.fails(t.two, t.zeros(64), t.zeros(63), t.zeros(64), BLOCK=64).location.line)\n"
    environment = {**os.environ, "TRITON_METAL_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", text],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert int(done.stdout) == line_of("second of two")


def faulting() -> triton.DeviceError:
    with pytest.raises(triton.DeviceError, match=r"faulted \(SIG") as info:
        wild[(1,)](zeros(4, np.int32), 1 << 40)
    return info.value


def test_a_fault_is_an_error_of_the_launch() -> None:
    error = faulting()
    assert 'check="bounds"' in str(error)
    assert "'wild'" in str(error)
    assert error.location is not None
    assert error.location.file == str(HERE)
    # The device is as usable as before.
    out = zeros(64)
    two[(1,)](zeros(64) + 1, zeros(64) + 2, out, BLOCK=64)
    assert (out == 3).all()
    faulting()


def test_faults_of_many_threads() -> None:
    errors = []

    def work() -> None:
        for _ in range(5):
            try:
                wild[(100,)](zeros(4, np.int32), 1 << 40)
            except triton.DeviceError as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 20


def run_script(body: str, **options) -> subprocess.Popen[str]:
    # A shell starts what it puts in the background with interrupts ignored.
    head = f"""
        import signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.path.insert(0, {str(HERE.parent)!r})
        """
    text = textwrap.dedent(head) + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_other_faults_go_where_they_went() -> None:
    """To faulthandler, and then to the end of the process."""
    process = run_script(
        """
        import ctypes, numpy as np, test_faults as t
        t.faulting()
        print("alive", flush=True)
        ctypes.string_at(8)
        """
    )
    out, err = process.communicate(timeout=120)
    assert out == "alive\n"
    assert process.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in err


def test_faulthandler_that_comes_later() -> None:
    process = run_script(
        """
        import faulthandler, numpy as np, test_faults as t
        faulthandler.disable()
        t.faulting()
        faulthandler.enable()
        faulthandler._sigsegv()
        """
    )
    _, err = process.communicate(timeout=120)
    assert process.returncode < 0
    assert "Segmentation fault" in err


@pytest.mark.parametrize("programs", [1, 64])
@pytest.mark.parametrize("where", ["main", "thread"])
def test_an_interrupt_ends_a_kernel_that_does_not_end(programs: int, where: str) -> None:
    process = run_script(
        f"""
        import threading, numpy as np, test_faults as t
        done = threading.Event()
        def launch():
            try:
                t.endless[({programs},)](np.zeros(2, np.int32))
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            done.set()
        t.two[(1,)](t.zeros(64), t.zeros(64), t.zeros(64), BLOCK=64)
        threading.Timer(1.5, lambda: print("started", flush=True)).start()
        if {where!r} == "main":
            launch()
        else:
            threading.Thread(target=launch).start()
            try:
                done.wait()
            except KeyboardInterrupt:
                done.wait()
        out = t.zeros(64)
        t.two[(1,)](t.zeros(64) + 1, t.zeros(64), out, BLOCK=64)
        print(out.sum())
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "interrupted\n64.0\n", err
    assert process.returncode == 0


def test_a_handler_of_ones_own_decides() -> None:
    """An interrupt that a program handles itself ends no launch."""
    process = run_script(
        """
        import signal, threading, os, numpy as np, test_faults as t
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        out = t.zeros(64)
        for k in range(200):
            if k == 100:
                os.kill(os.getpid(), signal.SIGINT)
            t.two[(1,)](t.zeros(64) + k, t.zeros(64), out, BLOCK=64)
        print(seen, out[0])
        """
    )
    out, err = process.communicate(timeout=60)
    assert out == "[1] 199.0\n", err


def test_after_a_fork() -> None:
    faulting()
    child = os.fork()
    if child == 0:
        try:
            faulting()
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_faulthandler_stays_enabled() -> None:
    was = faulthandler.is_enabled()
    faulting()
    assert faulthandler.is_enabled() == was
