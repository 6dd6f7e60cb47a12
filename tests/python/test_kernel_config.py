"""set_kernel_config: defaults and limits for all kernels of the process."""

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.errors import CompileError, LaunchTypeError, LaunchValueError


@triton.jit
def rows_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + places)))


@pytest.fixture(autouse=True)
def _restore():
    yield
    triton.set_kernel_config(num_warps=None, num_stages=None, max_threads=None, shared_memory=None)


def run():
    x = np.arange(2048, dtype=np.float32).reshape(2, 1024)
    y = np.zeros(2, np.float32)
    kernel = rows_kernel[(2,)](x, y, BLOCK=1024)
    assert np.array_equal(y, x.sum(axis=1))
    return kernel


def test_defaults():
    assert triton.kernel_config() == triton.KernelConfig(None, None, 1024, 32768)
    assert "SIMD-groups" in run().metadata.choice


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
