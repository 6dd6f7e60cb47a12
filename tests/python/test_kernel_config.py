"""set_kernel_config: defaults and limits for all kernels of the process."""

import os
import subprocess
import sys

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import ops
from triton_metal.errors import CompileError, LaunchTypeError, LaunchValueError


@triton.jit
def rows_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + places)))


@pytest.fixture(autouse=True)
def _restore():
    yield
    triton.set_kernel_config(
        num_warps=None, num_stages=None, max_threads=None, shared_memory=None, choose_threads=None
    )


def run():
    x = np.arange(2048, dtype=np.float32).reshape(2, 1024)
    y = np.zeros(2, np.float32)
    kernel = rows_kernel[(2,)](x, y, BLOCK=1024)
    assert np.array_equal(y, x.sum(axis=1))
    return kernel


def test_defaults():
    assert triton.kernel_config() == triton.KernelConfig(None, None, 1024, 32768)
    assert "SIMD-groups" in run().metadata.choice


def test_named_threads_are_the_compiler_s_choice_where_that_is_asked_for():
    x, y = np.ones(1024, np.float32), np.zeros(1, np.float32)
    chosen = rows_kernel[(1,)](x, y, BLOCK=1024).metadata.num_warps
    named = 16 if chosen != 16 else 8
    launch = rows_kernel[(1,)]
    assert launch(x, y, BLOCK=1024, num_warps=named).metadata.num_warps == named
    triton.set_kernel_config(choose_threads=True)
    kernel = launch(x, y, BLOCK=1024, num_warps=named, num_stages=3)
    assert (kernel.metadata.num_warps, y[0]) == (chosen, 1024)
    assert "SIMD-groups" in kernel.metadata.choice
    warm = rows_kernel.warmup(x, y, BLOCK=1024, num_warps=named, grid=(1,))
    assert warm.metadata.num_warps == chosen
    tuned = triton.autotune([triton.Config({"BLOCK": 1024}, num_warps=named)], key=[])(rows_kernel)
    assert tuned[(1,)](x, y).metadata.num_warps == chosen
    triton.set_kernel_config(num_warps=2)
    assert launch(x, y, BLOCK=1024, num_warps=named).metadata.num_warps == 2
    triton.set_kernel_config(num_warps=None, choose_threads=False)
    assert launch(x, y, BLOCK=1024, num_warps=named).metadata.num_warps == named


def test_functions_keep_the_threads_that_they_name():
    def warps():
        with triton.launch_options(count=True) as report:
            ops.cumsum(np.ones((8, 64), np.float32), 0)
        return [launch.kernel.metadata.num_warps for launch in report.launches]

    assert warps() == [1]
    triton.set_kernel_config(choose_threads=True)
    assert warps() == [1]


def test_environment_asks_for_the_compiler_s_choice():
    program = "import triton_metal; print(triton_metal.kernel_config().choose_threads)"
    for value, expected in (("1", "True"), ("0", "False"), (None, "False")):
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_METAL_CHOOSE_THREADS"}
        if value:
            environment["TRITON_METAL_CHOOSE_THREADS"] = value
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        assert done.stdout.strip() == expected


def test_defaults_of_launches():
    first = run()
    triton.set_kernel_config(num_warps=8, num_stages=3)
    second = run()
    assert (second.metadata.num_warps, second.metadata.num_stages) == (8, 3)
    assert second.metadata.threads == 256
    # A launch's own options go before.
    x, y = np.ones(1024, np.float32), np.zeros(1, np.float32)
    assert rows_kernel[(1,)](x, y, BLOCK=1024, num_warps=2).metadata.num_warps == 2
    assert y[0] == 1024
    triton.set_kernel_config(num_stages=None)
    assert (triton.kernel_config().num_warps, triton.kernel_config().num_stages) == (8, None)
    triton.set_kernel_config(num_warps=None)
    third = run()
    assert third.metadata.num_warps == first.metadata.num_warps
    assert third.asm["metal"] == first.asm["metal"]


def test_max_threads_takes_fewer_warps():
    before = run().metadata.threads
    triton.set_kernel_config(max_threads=32)
    assert triton.kernel_config().num_warps is None
    assert run().metadata.threads == 32 < before
    triton.set_kernel_config(max_threads=100)
    assert run().metadata.threads <= 64
    x, y = np.ones(1024, np.float32), np.zeros(1, np.float32)
    with pytest.raises(CompileError) as caught:
        rows_kernel[(1,)](x, y, BLOCK=1024, num_warps=4)
    assert caught.value.error_message == (
        "has num_warps=4, which is 128 threads in a threadgroup, and the target takes 100: launch it with "
        "num_warps=2"
    )
    assert y[0] == 0
    triton.set_kernel_config(max_threads=None)
    assert run().metadata.threads == before


def test_shared_memory_limits_kernels():
    triton.set_kernel_config(num_warps=4)
    needed = run().metadata.threadgroup_bytes
    assert needed > 0
    triton.set_kernel_config(shared_memory=needed)
    run()
    # What moves through the memory goes in more rounds where there is less of it, down to its least.
    triton.set_kernel_config(shared_memory=15)
    with pytest.raises(CompileError, match=r"has 15: use smaller blocks"):
        run()
    triton.set_kernel_config(shared_memory=None)
    run()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"num_warps": 3}, LaunchValueError, "num_warps must be 1, 2, 4, 8, 16 or 32, not 3"),
        ({"num_warps": 64}, LaunchValueError, "num_warps must be 1, 2, 4, 8, 16 or 32, not 64"),
        ({"num_warps": 4.0}, LaunchTypeError, "num_warps must be 1, 2, 4, 8, 16 or 32, not 4.0"),
        ({"num_warps": True}, LaunchTypeError, "num_warps must be"),
        ({"num_stages": 0}, LaunchValueError, "num_stages must be an integer from 1 to 16, not 0"),
        ({"max_threads": 31}, LaunchValueError, "max_threads must be an integer from 32 to 1024"),
        ({"max_threads": 2048}, LaunchValueError, "not 2048"),
        ({"shared_memory": -1}, LaunchValueError, "bytes, an integer from 0 to 32768, not -1"),
        ({"shared_memory": 65536}, LaunchValueError, "from 0 to 32768, not 65536"),
        ({"shared_memory": "16k"}, LaunchTypeError, "not '16k'"),
        ({"choose_threads": 1}, LaunchTypeError, "choose_threads must be True or False, not 1"),
        ({"choose_threads": "yes"}, LaunchTypeError, "True or False, not 'yes'"),
        (
            {"num_warps": 8, "max_threads": 128},
            LaunchValueError,
            "num_warps=8 is 256 threads in a threadgroup, and max_threads is 128",
        ),
    ],
)
def test_bad_input_changes_nothing(options, error, words):
    triton.set_kernel_config(num_stages=3)
    before = triton.kernel_config()
    with pytest.raises(error) as caught:
        triton.set_kernel_config(**{"num_stages": 5, **options})
    assert str(caught.value).startswith("set_kernel_config: ")
    assert words in str(caught.value)
    assert triton.kernel_config() == before


def test_unknown_options():
    with pytest.raises(TypeError, match="unexpected keyword argument 'warps'"):
        triton.set_kernel_config(warps=4)
