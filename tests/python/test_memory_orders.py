"""What an atomic's order promises between the programs of a launch, where it costs nothing, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from triton_metal.compiler import compile_ttir
from triton_metal.devices.target import apple
from triton_metal.errors import CompileError

import metal_run
from kernel_support import dtype, needs_counters, tl, triton

from _counts import counting  # isort: skip

pytestmark = needs_counters  # Stock's interpreter has one thread, no text and nothing to refuse.

FENCE = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"


@triton.jit
def last_kernel(x_ptr, part_ptr, counter_ptr, out_ptr, PROGRAMS: tl.constexpr, N: tl.constexpr):
    """The last program adds up what all of them stored, each element through another thread than stored it."""
    pid = tl.program_id(0)
    o = tl.arange(0, N)
    tl.store(part_ptr + pid * N + o, tl.load(x_ptr + pid * N + o) * 2)
    if tl.atomic_add(counter_ptr, 1) == PROGRAMS - 1:
        total = tl.zeros((N,), tl.float32)
        for p in range(PROGRAMS):
            total += tl.load(part_ptr + p * N + (N - 1 - o)).to(tl.float32)
        tl.store(out_ptr + o, total)


@triton.jit
def halves_kernel(x_ptr, part_ptr, counter_ptr, out_ptr, PROGRAMS: tl.constexpr, N: tl.constexpr):
    """The same with an update that releases and another one that acquires, and system scope."""
    pid = tl.program_id(0)
    o = tl.arange(0, N)
    tl.store(part_ptr + pid * N + o, tl.load(x_ptr + pid * N + o) * 2)
    done = tl.atomic_add(counter_ptr, 1, sem="release", scope="sys")
    if done == PROGRAMS - 1:
        tl.atomic_or(counter_ptr, 0, sem="acquire", scope="sys")
        total = tl.zeros((N,), tl.float32)
        for p in range(PROGRAMS):
            total += tl.load(part_ptr + p * N + (N - 1 - o)).to(tl.float32)
        tl.store(out_ptr + o, total)


@triton.jit
def split_kernel(x_ptr, part_ptr, counter_ptr, out_ptr, PROGRAMS: tl.constexpr, N: tl.constexpr):
    """All programs add to one tile; the last one finishes it. Its ticket is drawn with a compare-and-exchange."""
    pid = tl.program_id(0)
    o = tl.arange(0, N)
    tl.atomic_add(part_ptr + o, tl.load(x_ptr + pid * N + (N - 1 - o)) * 2, sem="relaxed")
    seen = tl.atomic_add(counter_ptr, 0, sem="relaxed")
    found = tl.atomic_cas(counter_ptr, seen, seen + 1)
    while found != seen:
        seen = found
        found = tl.atomic_cas(counter_ptr, seen, seen + 1)
    if found == PROGRAMS - 1:
        tl.store(out_ptr + o, tl.load(part_ptr + o).to(tl.float32))


def run_last(kernel, name: str, size: int, num_warps: int, seed: int | None) -> None:
    programs = 7
    x = np.random.default_rng(size).integers(-8, 8, (programs, size)).astype(dtype(name))
    part = np.zeros((programs, size), dtype(name))
    counter, out = np.zeros(1, np.int32), np.full(size, np.nan, np.float32)
    with triton.launch_options(schedule=seed):
        kernel[(programs,)](x, part, counter, out, PROGRAMS=programs, N=size, num_warps=num_warps)
    assert counter[0] == programs
    np.testing.assert_array_equal(out, (x.astype(np.float32) * 2).sum(0)[::-1])


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
@pytest.mark.parametrize(("name", "size"), [("float32", 256), ("int32", 32), ("float16", 1024)])
def test_last_program(name: str, size: int, num_warps: int) -> None:
    for seed in (None, *range(12)):
        run_last(last_kernel, name, size, num_warps, seed)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("kernel", [halves_kernel, split_kernel])
def test_last_program_by_other_atomics(kernel, num_warps: int) -> None:
    for seed in (None, *range(12)):
        run_last(kernel, "int32", 128, num_warps, seed)


def test_the_schedule_shows_a_missing_barrier(tmp_path: Path) -> None:
    """Without the barrier in front of the counter, seeds find the program that counts itself too early."""
    programs, size = 7, 256
    x = np.ones((programs, size), np.float32)
    part, counter, out = np.zeros_like(x), np.zeros(1, np.int32), np.zeros(size, np.float32)
    kernel = last_kernel[(programs,)](x, part, counter, out, PROGRAMS=programs, N=size, num_warps=4)
    text = kernel.asm["metal"]
    assert (text.count(FENCE), text.count(BARRIER)) == (4, 2)
    assert "coherent(device) device float *part_ptr_shared" in text
    assert "device float *part_ptr [[buffer(1)]]" in text
    broken = text.replace(BARRIER, "", 1)

    def results(source: str) -> list[bool]:
        right = []
        for seed in range(8):
            (found,) = metal_run.run(
                source,
                tmp_path,
                {"x_ptr": x, "part_ptr": part * 0, "counter_ptr": counter * 0, "out_ptr": out},
                ["out_ptr"],
                f"--threadgroups={programs}",
                "--group=128",
                f"--schedule={seed}",
            )
            right.append(bool((found == 2 * programs).all()))
        return right

    assert all(results(text))
    assert not all(results(broken))


def test_barriers_of_the_last_program() -> None:
    """What is found at the counter goes to all threads with the barrier that they need anyway."""
    programs, size = 4, 256
    x = np.ones((programs, size), np.float32)
    part, counter, out = np.zeros_like(x), np.zeros(1, np.int32), np.zeros(size, np.float32)
    with counting() as counts:
        last_kernel[(programs,)](x, part, counter, out, PROGRAMS=programs, N=size, num_warps=4)
    assert counts.barriers_per_program == 2


@triton.jit
def accumulate_kernel(x_ptr, sum_ptr, bins_ptr, dx_ptr, n, N: tl.constexpr):
    """Gradients, a histogram and a loss, with the default order."""
    o = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + o, mask=o < n, other=0.0)
    tl.store(dx_ptr + o, x * 2, mask=o < n)
    tl.atomic_add(bins_ptr + x.to(tl.int32) % 8, 1, mask=o < n)
    tl.atomic_add(sum_ptr + tl.arange(0, N), x)
    tl.atomic_add(sum_ptr, tl.sum(x))


@triton.jit
def tickets_kernel(counter_ptr, out_ptr, N: tl.constexpr):
    ticket = tl.atomic_add(counter_ptr, 1)
    o = tl.arange(0, N)
    tl.store(out_ptr + ticket * N + o, ticket * N + o)


@triton.jit
def threadgroup_kernel(x_ptr, flag_ptr, N: tl.constexpr):
    """Within the program alone."""
    o = tl.arange(0, N)
    tl.store(x_ptr + o, o)
    old = tl.atomic_xchg(flag_ptr, 1, scope="cta")
    tl.store(x_ptr + o, tl.load(x_ptr + (N - 1 - o)) + old)


def test_orders_that_nobody_can_tell() -> None:
    x, ints = np.ones(64, np.float32), np.zeros(256, np.int32)
    for kernel in (
        accumulate_kernel[(1,)](x, x.copy(), ints, x.copy(), 64, N=64),
        tickets_kernel[(1,)](ints, ints.copy(), N=64),
        threadgroup_kernel[(1,)](ints, np.zeros(1, np.int32), N=64),
    ):
        assert FENCE not in kernel.asm["metal"]
        assert "coherent" not in kernel.asm["metal"]


def test_targets_without_fences() -> None:
    """They take what needs no order, and refuse the rest by name, with what to do instead."""
    x, counter = np.ones((1, 64), np.float32), np.zeros(1, np.int32)
    last = last_kernel[(1,)](x, x.copy(), counter, x[0].copy(), PROGRAMS=1, N=64)
    sums = accumulate_kernel[(1,)](x, x.copy(), np.zeros(8, np.int32), x.copy(), 64, N=64)
    old, new = apple("14.4", "Apple M1"), apple("15.0", "Apple M1")
    compile_ttir(sums.asm["ttir"], target=old)
    compile_ttir(last.asm["ttir"], target=new)
    with pytest.raises(CompileError) as caught:
        compile_ttir(last.asm["ttir"], target=old)
    message = str(caught.value)
    assert Path(__file__).name in message
    assert (
        "uses memory orders other than relaxed, which the target (Metal 3.1) does not have"
        in message
    )
    assert 'sem="relaxed"' in message
    assert "second launch" in message


@triton.jit
def lock_kernel(lock_ptr, count_ptr, x_ptr, out_ptr, N: tl.constexpr):
    """The group lock of Triton's layer norm tutorial."""
    o = tl.arange(0, N)
    x = tl.load(x_ptr + tl.program_id(0) * N + o)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(count_ptr) == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        x += tl.load(out_ptr + o)
    tl.store(out_ptr + o, x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("programs", [1, 2, 9])
def test_locks_make_a_kernel_serial(programs: int, num_warps: int) -> None:
    """A program gives the lock back that it takes, so that the next one finds it free."""
    x = np.random.default_rng(programs).integers(-8, 8, (programs, 128)).astype(np.float32)
    for seed in (None, 0, 1):
        lock, count, out = np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(128, 7, np.float32)
        with triton.launch_options(schedule=seed):
            kernel = lock_kernel[(programs,)](lock, count, x, out, N=128, num_warps=num_warps)
        np.testing.assert_array_equal(out, x.sum(0))
        assert (lock[0], count[0]) == (0, 1)
    assert (
        "tl.atomic_cas(lock_ptr, 0, 1) == 1"
        in Path(__file__)
        .read_text()
        .splitlines()[int(kernel.metadata.serial[0].split(":")[-2]) - 1]
    )


@triton.jit
def kept_lock_kernel(lock_ptr, out_ptr):
    """What it leaves there does not end the next program's loop."""
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, 1)
    tl.atomic_xchg(lock_ptr, 1)


@triton.jit
def turns_kernel(turn_ptr, out_ptr, n):
    """Each program waits for its own turn: not for a lock."""
    while tl.atomic_cas(turn_ptr, n - tl.program_id(0), 0) == 0:
        pass
    tl.atomic_xchg(turn_ptr, 1)


@triton.jit
def exchange_kernel(lock_ptr, out_ptr):
    while tl.atomic_xchg(lock_ptr + tl.program_id(0), 1, sem="acquire") != 0:
        tl.store(out_ptr, 1)


@triton.jit
def poll_kernel(flag_ptr, out_ptr):
    value = tl.load(flag_ptr, volatile=True)
    while value == 0:
        value = tl.load(flag_ptr, volatile=True)
    tl.store(out_ptr, value)


@pytest.mark.parametrize(
    ("launch", "what"),
    [
        (
            lambda ints, x: kept_lock_kernel[(2,)](ints, ints.copy()),
            "tl.atomic_cas waits here until another program changes memory",
        ),
        (
            lambda ints, x: turns_kernel[(2,)](ints, ints.copy(), 2),
            "tl.atomic_cas waits here until another program changes memory",
        ),
        (
            lambda ints, x: exchange_kernel[(2,)](ints, ints.copy()),
            "the atomic access waits here until another program changes memory",
        ),
        (
            lambda ints, x: poll_kernel[(1,)](ints, ints.copy()),
            "tl.load waits here until another program changes memory",
        ),
    ],
)
def test_waiting_for_another_program(launch, what: str) -> None:
    with pytest.raises(CompileError) as caught:
        launch(np.zeros(8, np.int32), np.zeros(32, np.float32))
    assert what in str(caught.value)
    assert Path(__file__).name in str(caught.value)


@triton.jit
def queue_kernel(counter_ptr, x_ptr, out_ptr, n, N: tl.constexpr):
    """A work queue: no program waits for another."""
    ticket = tl.atomic_add(counter_ptr, 1)
    while ticket < n:
        o = ticket * N + tl.arange(0, N)
        tl.store(out_ptr + o, tl.load(x_ptr + o) + 1)
        ticket = tl.atomic_add(counter_ptr, 1)


def test_work_queue() -> None:
    x, out = np.arange(640, dtype=np.int32), np.zeros(640, np.int32)
    for seed in (None, 0, 1, 2):
        counter = np.zeros(1, np.int32)
        with triton.launch_options(schedule=seed):
            queue_kernel[(5,)](counter, x, out, 10, N=64, num_warps=2)
        assert counter[0] == 15
        np.testing.assert_array_equal(out, x + 1)


@pytest.mark.own_target
def test_stages_are_visible() -> None:
    """More stages than can be made are a hint; the kernel says what became of it."""

    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr):
        o = tl.arange(0, N)
        total = tl.zeros((N, N), tl.float32)
        for k in range(0, K, N):
            a = tl.load(a_ptr + o[:, None] * K + k + o[None, :])
            total += tl.dot(a, tl.load(b_ptr + (k + o[:, None]) * N + o[None, :]))
        tl.store(c_ptr + o[:, None] * N + o[None, :], total)

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, 128), np.float32), rng.standard_normal((128, 32), np.float32)
    for asked, made in ((1, 1), (2, 2), (3, 2), (4, 2)):
        c = np.zeros((32, 32), np.float32)
        kernel = product[(1,)](a, b, c, 128, N=32, num_stages=asked)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-4)
        assert (kernel.metadata.num_stages, kernel.metadata.pipeline_stages) == (asked, made)
