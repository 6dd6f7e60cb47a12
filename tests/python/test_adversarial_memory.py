"""Arrays that share memory: one under two names, and views that overlap, read and written in one kernel."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import (
    ON_STOCK,
    assert_same,
    integers,
    needs_counters,
    normal,
    tl,
    torch_or_skip,
    triton,
)

WARPS = pytest.mark.parametrize("num_warps", [1, 4, 16])
SCHEDULES = pytest.mark.parametrize("schedule", [None, 3])


@triton.jit
def gather_kernel(x_ptr, y_ptr, out_ptr, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    if MODE == "same":
        y = tl.load(y_ptr + offsets, mask=offsets < n, other=0)
    else:
        y = tl.load(y_ptr + (n - 1 - offsets), mask=offsets < n, other=0)
    tl.store(out_ptr + offsets, x * 2 + y, mask=offsets < n)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    rows, cols = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(out_ptr + cols * SIZE + rows, tl.load(x_ptr + rows * SIZE + cols))


@triton.jit
def steps_kernel(x_ptr, out_ptr, steps, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for step in range(steps):
        x = tl.load(x_ptr + step + offsets)
        tl.store(out_ptr + step + offsets, x + step)
        y = tl.load(x_ptr + step + offsets)
        tl.store(out_ptr + (BLOCK - 1 - offsets), y)


@WARPS
@SCHEDULES
@pytest.mark.parametrize("n", [1024, 1000])
def test_in_place(n: int, num_warps: int, schedule: int | None) -> None:
    start = integers(np.random.default_rng(0), n, "int32")
    with triton.launch_options(schedule=schedule):
        x = start.copy()
        gather_kernel[(triton.cdiv(n, 256),)](
            x, x, x, n, MODE="same", BLOCK=256, num_warps=num_warps
        )
        assert_same(x, start * 3)
        x = start.copy()
        gather_kernel[(1,)](x, x, x, n, MODE="reversed", BLOCK=1024, num_warps=num_warps)
        assert_same(x, start * 2 + start[::-1])
        x, y = start.copy(), start[::-1].copy()
        gather_kernel[(1,)](x, y, y, n, MODE="reversed", BLOCK=1024, num_warps=num_warps)
        assert_same(y, start * 2 + start)


@WARPS
@SCHEDULES
@pytest.mark.parametrize("shift", [1, 16, 100, -1, -7])
def test_overlapping_views(shift: int, num_warps: int, schedule: int | None) -> None:
    start = integers(np.random.default_rng(0), 2000, "int16")
    memory, expected = start.copy(), start.copy()
    first = max(0, -shift)
    x, out = memory[first:][:1024], memory[first + shift :][:1024]
    expected[first + shift :][:1024] = start[first:][:1024] * 2 + start[first:][:1024]
    with triton.launch_options(schedule=schedule):
        gather_kernel[(1,)](x, x, out, 1024, MODE="same", BLOCK=1024, num_warps=num_warps)
    assert_same(memory, expected)


@WARPS
@SCHEDULES
def test_overlapping_views_of_other_types(num_warps: int, schedule: int | None) -> None:
    start = integers(np.random.default_rng(0), 2048, "int32")
    memory, expected = start.copy(), start.copy()
    expected[:1024] = start.view(np.int16)[:1024].astype(np.int32) * 3
    narrow = memory.view(np.int16)
    with triton.launch_options(schedule=schedule):
        gather_kernel[(1,)](
            narrow, narrow, memory, 1024, MODE="same", BLOCK=1024, num_warps=num_warps
        )
    # int16 wraps around before it is widened.
    expected[:1024] = (start.view(np.int16)[:1024] * np.int16(3)).astype(np.int32)
    assert_same(memory, expected)


@WARPS
@SCHEDULES
@pytest.mark.parametrize("size", [16, 64])
def test_transposed_in_place(size: int, num_warps: int, schedule: int | None) -> None:
    start = normal(np.random.default_rng(0), (size, size))
    x = start.copy()
    with triton.launch_options(schedule=schedule):
        transpose_kernel[(1,)](x, x, SIZE=size, num_warps=num_warps)
    assert_same(x, start.T.copy())


@WARPS
@SCHEDULES
@pytest.mark.parametrize("shift", [0, 3])
def test_steps_that_read_what_earlier_ones_wrote(
    shift: int, num_warps: int, schedule: int | None
) -> None:
    memory = integers(np.random.default_rng(0), 300, "int32")
    expected = memory.copy()
    for step in range(5):
        expected[shift + step :][:256] = expected[step:][:256] + step
        expected[shift:][:256] = expected[step:][:256][::-1].copy()
    with triton.launch_options(schedule=schedule):
        steps_kernel[(1,)](memory, memory[shift:], 5, BLOCK=256, num_warps=num_warps)
    assert_same(memory, expected)


def test_read_only_names_of_what_is_written() -> None:
    x = np.arange(256, dtype=np.int32)
    frozen = x.view()
    frozen.flags.writeable = False
    gather_kernel[(1,)](frozen, frozen, x, 256, MODE="reversed", BLOCK=256)
    assert_same(x, np.arange(256, dtype=np.int32) + 255)
    if not ON_STOCK:
        with pytest.raises(ValueError, match="read-only"):
            gather_kernel[(1,)](x, x, frozen, 256, MODE="same", BLOCK=256)
    assert_same(x, np.arange(256, dtype=np.int32) + 255)


@WARPS
def test_tensors(num_warps: int) -> None:
    torch = torch_or_skip()
    start = torch.arange(2000, dtype=torch.int32)
    x = start.clone()
    gather_kernel[(1,)](x, x, x, 1024, MODE="reversed", BLOCK=1024, num_warps=num_warps)
    assert (x[:1024] == start[:1024] * 2 + start[:1024].flip(0)).all()
    x = start.clone()
    gather_kernel[(1,)](x, x, x[9:], 1024, MODE="same", BLOCK=1024, num_warps=num_warps)
    assert (x[9:1033] == start[:1024] * 3).all()
    # A tensor's memory under NumPy's name, and columns of one matrix.
    x = start.clone()
    gather_kernel[(1,)](
        x, x.numpy(), x.numpy(), 1024, MODE="reversed", BLOCK=1024, num_warps=num_warps
    )
    assert (x[:1024] == start[:1024] * 2 + start[:1024].flip(0)).all()
    x = start.clone().reshape(1000, 2)
    gather_kernel[(1,)](
        x[:, 0], x[:, 0], x[:, 1], 1024, MODE="same", BLOCK=1024, num_warps=num_warps
    )
    assert (x.reshape(-1)[1:1025] == start[:1024] * 3).all()


@needs_counters
def test_order_costs_nothing_where_arrays_are_apart_or_one() -> None:
    memory = np.zeros(4096, np.float32)
    x = memory[:2048]
    for out in (memory[2048:], x):
        with triton.launch_options(count=True) as log:
            gather_kernel[(1,)](x, x, out, 1024, MODE="same", BLOCK=1024)
        assert log.counters["threadgroup_barriers"] == 0
    metal = gather_kernel[(1,)](x, x, memory[1:], 1024, MODE="same", BLOCK=1024).asm["metal"]
    assert metal.count("threadgroup_barrier") == 1
