"""Launches that run beside the program: order, completion, failure, interrupts."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import triton_metal_host as metal

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void add(device float *x, constant float &a, uint i [[thread_position_in_grid]]) { x[i] += a; }
kernel void times(device float *x, constant float &a, uint i [[thread_position_in_grid]]) { x[i] *= a; }
kernel void work(device float *x, constant uint &n, uint i [[thread_position_in_grid]]) {
  float y = x[i];
  for (uint k = 0; k < n; ++k) y = fma(y, 0.999f, 0.5f);
  x[i] = y;
}
"""


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


@pytest.fixture(scope="module")
def pipelines(device):
    library = device.library(SOURCE)
    return {name: device.pipeline(library.function(name)) for name in library.function_names}


def test_submissions_run_in_order(device, pipelines) -> None:
    x = np.zeros(100, np.float32)
    runs = []
    for _ in range(5):
        runs.append(pipelines["add"].submit(x, 1, threads=100))
        runs.append(pipelines["times"].submit(x, 2, threads=100))
    runs[-1].wait()
    assert (x == 62).all()
    assert all(run.done and run.error is None for run in runs)
    starts = [run.gpu_start_time for run in runs]
    assert starts == sorted(starts)
    assert all(run.gpu_end_time >= run.gpu_start_time > 0 for run in runs)


def test_a_call_waits_for_what_was_submitted(pipelines) -> None:
    x = np.zeros(64, np.float32)
    for _ in range(50):
        pipelines["add"].submit(x, 1, threads=64)
    pipelines["times"](x, 2, threads=64)
    assert (x == 100).all()


def test_a_command_buffer_is_one_submission(device) -> None:
    counting = metal.Device(counters=True)
    library = counting.library(SOURCE)
    add = counting.pipeline(library.function("add"))
    times = counting.pipeline(library.function("times"))
    x = np.ones(32, np.float32)
    commands = counting.command_buffer()
    commands.dispatch(add, x, 2, threads=32)
    commands.dispatch(times, x, 3.0, threads=32)
    run = commands.commit()
    assert run.wait() is run
    assert (x == 9).all()
    assert run.counters["threads"] == 64
    assert run.seconds == run.gpu_end_time - run.gpu_start_time
    with pytest.raises(RuntimeError, match="committed"):
        commands.dispatch(add, x, 2, threads=32)
    with pytest.raises(RuntimeError, match="committed"):
        commands.commit()
    counting.command_buffer().commit().wait()  # an empty one is none the worse


def test_handlers_are_called_once_with_their_run(pipelines) -> None:
    x = np.zeros(32, np.float32)
    seen, event = [], threading.Event()

    def completed(run: metal.Run) -> None:
        seen.append((run, run.done, x[0], run.wait() is run))
        event.set()

    run = pipelines["add"].submit(x, 1, threads=32, on_completed=completed)
    run.wait()
    assert event.wait(10)
    assert seen == [(run, True, 1, True)]


@pytest.mark.parametrize("depth", [1, 3])
def test_handlers_run_and_submit_kernels(pipelines, depth: int) -> None:
    add = pipelines["add"]
    x = np.zeros(32, np.float32)
    done = threading.Event()

    def launch(left: int) -> None:
        submitted = add.submit(x, 10, threads=32)
        add(x, 100, threads=32)  # waits for what was submitted before
        assert submitted.done
        assert submitted.wait() is submitted
        if left > 1:
            add.submit(x, 1, threads=32, on_completed=lambda run: launch(left - 1)).wait()
        else:
            done.set()

    run = add.submit(x, 1, threads=32, on_completed=lambda run: launch(depth))
    after = add.submit(x, 1000, threads=32)
    run.wait()
    after.wait()
    assert done.is_set()
    assert (x == 111 * depth + 1000).all()


def test_a_failed_run_says_so_when_it_is_waited_for(pipelines) -> None:
    checked = metal.Device(checks="bounds")
    add = checked.pipeline(checked.library(SOURCE).function("add"))
    x = np.zeros(32, np.float32)
    commands = checked.command_buffer()
    commands.dispatch(add, x, 1, threads=32)
    commands.dispatch(add, x, 1, threads=33)
    commands.dispatch(add, x, 1, threads=32)
    bad = commands.commit()
    good = add.submit(x, 5, threads=32)
    with pytest.raises(metal.LaunchError, match=r"dispatch 2 of 3: kernel 'add', line 3:"):
        bad.wait()
    assert bad.done
    assert isinstance(bad.error, metal.LaunchError)
    assert "failed" in repr(bad)
    good.wait()
    assert x[0] in (6, 7)  # the third dispatch did not run


def test_wrong_arguments_are_found_when_they_are_submitted(pipelines) -> None:
    with pytest.raises(TypeError, match="float64"):
        pipelines["add"].submit(np.zeros(4), 1, threads=4)


def test_arrays_live_as_long_as_their_run(pipelines) -> None:
    # The second run needs its array after the program has dropped it, while the first one still runs.
    slow = np.zeros(32, np.float32)
    first = pipelines["work"].submit(slow, 3_000_000, threads=32)
    results = []
    for number in range(20):
        array = np.full(100_000, number, np.float32)
        pipelines["add"].submit(array, 1, threads=array.size)
        results.append(array[::50_000])
        view = array.base is None
        del array
        gc.collect()
        assert view
    last = pipelines["add"].submit(slow, 0, threads=32)
    last.wait()
    assert first.done
    assert [r.tolist() for r in results] == [[n + 1, n + 1] for n in range(20)]


def test_queues_are_independent(device, pipelines) -> None:
    other = device.queue()
    slow, quick = np.zeros(32, np.float32), np.zeros(32, np.float32)
    first = pipelines["work"].submit(slow, 100_000_000, threads=32)
    pipelines["add"].submit(quick, 1, threads=32, queue=other).wait()
    assert quick[0] == 1
    assert not first.done
    with pytest.raises(TimeoutError, match=r"has not ended after 0.01 seconds"):
        first.wait(0.01)
    with pytest.raises(RuntimeError, match="has not ended"):
        first.seconds
    first.wait()
    other.wait()
    device.wait()


def test_other_threads_run_while_a_kernel_runs(pipelines) -> None:
    x = np.zeros(32, np.float32)
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    pipelines["work"](x, 50_000_000, threads=32)
    stop.set()
    thread.join()
    assert counted > 5


def test_many_threads_launch_at_once(pipelines) -> None:
    arrays = [np.zeros(64, np.float32) for _ in range(8)]

    def launch(array: np.ndarray) -> None:
        for i in range(50):
            if i % 2:
                pipelines["add"](array, 1, threads=64)
            else:
                pipelines["add"].submit(array, 1, threads=64).wait()

    threads = [threading.Thread(target=launch, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((array == 50).all() for array in arrays)


def program(tmp_path: Path, body: str) -> subprocess.Popen[str]:
    path = tmp_path / "program.py"
    path.write_text(
        # A test run in the background starts with interrupts ignored, and so would this program.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import numpy as np, triton_metal_host as metal, sys, time\n"
        f"device = metal.Device()\nlibrary = device.library({SOURCE!r})\n"
        "work = device.pipeline(library.function('work'))\n"
        "add = device.pipeline(library.function('add'))\n"
        "x = np.zeros(32, np.float32)\n" + body
    )
    environment = dict(
        os.environ, PYTHONPATH=str(ROOT / "python"), TRITON_METAL_CACHE_DIR=str(tmp_path)
    )
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


LAUNCHES = {
    "call": "work(x, 0xFFFFFFFF, threads=32)",
    "submit": "work.submit(x, 0xFFFFFFFF, threads=32).wait()",
    "call behind another": "work.submit(x, 0xFFFFFFFF, threads=32); add(x, 1, threads=32)",
}


@pytest.mark.parametrize("launch", LAUNCHES.values(), ids=LAUNCHES.keys())
def test_an_interrupt_ends_a_launch(tmp_path: Path, launch: str) -> None:
    done = program(
        tmp_path,
        "for i in range(2):\n"
        "  print('ready', flush=True)\n"
        f"  try:\n    while True: {launch}\n"
        "  except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
        "device.wait()\nadd(x, 1, threads=32)\nprint('end')\n",
    )
    assert done.stdout is not None
    for _ in range(2):
        assert done.stdout.readline() == "ready\n", done.stderr.read() if done.stderr else ""
        time.sleep(0.5)
        done.send_signal(signal.SIGINT)
        assert done.stdout.readline() == "interrupted\n"
    assert done.stdout.read() == "end\n"
    assert done.wait(60) == 0


def test_a_program_may_end_while_kernels_run(tmp_path: Path) -> None:
    done = program(
        tmp_path,
        "for i in range(10): work.submit(x, 1000000, threads=32, on_completed=lambda run: print('.', end=''))\n",
    )
    out, errors = done.communicate(timeout=60)
    assert (out, errors, done.returncode) == ("." * 10, "", 0)


def test_a_child_process_has_queues_of_its_own(tmp_path: Path) -> None:
    done = program(
        tmp_path,
        "import os\n"
        "add.submit(x, 1, threads=32).wait()\n"
        "child = os.fork()\n"
        "add.submit(x, 2, threads=32).wait()\n"
        "os.write(1, f'{x[0]}\\n'.encode())\n"
        "if child: os.waitpid(child, 0)\n",
    )
    out, errors = done.communicate(timeout=60)
    assert (out, done.returncode) == ("3.0\n3.0\n", 0), errors
