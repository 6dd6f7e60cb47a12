"""How long kernels live, where they may stand in a file, and what empty arrays and odd paths do."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import DeviceError

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("faults are those of unchecked launches"),
]


def made() -> Any:
    scale = tl.constexpr(2)

    @triton.jit
    def helper(x):
        return x * scale

    @triton.jit
    def kernel(pair, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, helper(tl.load(pair[0] + i)) + pair[1])

    return kernel


def test_kernels_that_nobody_holds_are_freed() -> None:
    """A launch leaves nothing behind: neither the kernel nor what it read, its options, or its grid."""
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    freed = []
    for number in range(4):
        kernel = made()
        grid = kernel[(1,)]
        grid((x, 3.0), out, 64, BLOCK=64, num_warps=1 << number % 2)
        kernel.warmup((x, 3.0), out, 64, BLOCK=32, grid=(1,))
        freed.append(weakref.ref(kernel))
        del kernel, grid
    assert (out == 5).all()
    gc.collect()
    assert [reference() for reference in freed] == [None] * 4


def test_threads_compile_while_kernels_are_freed() -> None:
    """The garbage collector runs in the middle of everything, and lets other threads on."""
    failures: list[BaseException] = []

    def work(first: int) -> None:
        try:
            for number in range(first, first + 50):
                x, out = np.full(64, number, np.float32), np.zeros(64, np.float32)
                kernel = made()
                for num_warps in (1, 2):
                    kernel[(1,)]((x, 3.0), out, 64, BLOCK=64, num_warps=num_warps)
                assert (out == 2 * number + 3).all()
        except BaseException as error:
            failures.append(error)

    before = gc.get_threshold()
    gc.set_threshold(50, 2, 2)
    try:
        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 100, 200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*before)
    assert failures == []


# fmt: off
def with_margins() -> Any:
    @triton.jit
    def kernel(out_ptr, BLOCK: tl.constexpr):
        """A docstring
at the margin.
        """
        i = tl.arange(0, BLOCK)
# A comment at the margin.
        tl.store(out_ptr + i,
i * 2 + \
1)

    return kernel


def with_a_mistake() -> Any:
    @triton.jit
    def kernel(out_ptr, BLOCK: tl.constexpr):
# A comment at the margin.
        i = tl.arange(0, BLOCK)
        tl.store(out_ptr + i, missing)  # noqa: F821

    return kernel
# fmt: on


def test_lines_of_a_nested_kernel_may_begin_at_the_margin() -> None:
    out = np.zeros(16, np.int32)
    with_margins()[(1,)](out, BLOCK=16)
    assert out.tolist() == list(range(1, 33, 2))
    kernel = with_a_mistake()
    line = kernel.fn.__code__.co_firstlineno + 4
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](out, BLOCK=16)
    place, *_, text, caret = str(caught.value).splitlines()
    assert place == f"{__file__}:{line}:31: missing is not defined"
    assert text[caret.index("^") :].startswith("missing")


@triton.jit
def fill_kernel(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)


@pytest.mark.parametrize("kind", ["numpy", "torch", "bytearray", "memoryview"])
def test_an_access_to_an_empty_array_is_a_fault(kind: str) -> None:
    """It changes no other memory of the process."""
    if kind == "torch":
        empty = pytest.importorskip("torch").zeros(0)
    elif kind == "numpy":
        empty = np.zeros(0, np.float32)
    else:
        empty = bytearray() if kind == "bytearray" else memoryview(bytearray())
    with pytest.raises(DeviceError, match="accesses memory that it was not given"):
        fill_kernel[(1,)](empty, BLOCK=64)


def test_an_empty_view_keeps_its_place() -> None:
    x = np.zeros(64, np.float32)
    fill_kernel[(1,)](x[:0], BLOCK=32)
    assert x.tolist() == [1.0] * 32 + [0.0] * 32


def test_objects_name_their_dtype_as_numpy_does() -> None:
    class Array:
        def __init__(self, dtype: str) -> None:
            self.numbers, self.dtype = np.zeros(16, np.float32), dtype

        def data_ptr(self) -> int:
            return self.numbers.ctypes.data

    for dtype in ("float32", "fp32", "torch.float32"):
        array = Array(dtype)
        fill_kernel[(1,)](array, BLOCK=16)
        assert array.numbers.tolist() == [1.0] * 16


PROGRAM = """
import numpy as np, triton_metal as triton, triton_metal.language as tl
@triton.jit
def kernel(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), BLOCK)
out = np.zeros(16, np.float32)
kernel[(1,)](out, BLOCK=16)
print(int(out.sum()))
"""


def test_paths_may_have_bytes_that_are_no_text(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"no\xfftext")
    os.mkdir(folder)
    program = os.path.join(folder, b"program.py")
    with open(program, "w") as file:
        file.write(PROGRAM)
    for variables in ({}, {b"TRITON_METAL_CACHE_DIR": os.path.join(folder, b"cache")}):
        done = subprocess.run(
            [sys.executable, "-W", "error", program],
            env=os.environb | variables,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, "256\n"), done.stderr
    assert os.listdir(os.path.join(folder, b"cache"))
    tool = [sys.executable, "-m", "triton_metal_host", os.path.join(folder, b"none.metal")]
    done = subprocess.run([*tool, "--threads=1"], capture_output=True, text=True, errors="replace")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "none.metal" in done.stderr
