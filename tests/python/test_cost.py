"""triton_metal.cost: the table of chips, the lower bound of a launch's time, and the command."""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import cost
from triton_metal.cost import chips, command, model
from triton_metal.errors import DeviceError, LaunchTypeError, LaunchValueError
from triton_metal.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.own_route


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)


@triton.jit
def column_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    """Lanes read numbers that lie apart."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * stride, i < n), i < n)


@triton.jit
def product_kernel(a, b, c, K, BLOCK: tl.constexpr):
    m, n = (
        tl.program_id(0) * BLOCK + tl.arange(0, BLOCK),
        tl.program_id(1) * BLOCK + tl.arange(0, BLOCK),
    )
    N = tl.num_programs(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = tl.load(a + m[:, None] * K + k[None, :])
        right = tl.load(b + k[:, None] * N + n[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))


def work(**changes: object) -> cost.Work:
    counters = {
        "device_lines_read": 100,
        "device_lines_written": 0,
        "device_distinct_bytes_read": 12800,
    }
    base = cost.Work("k", counters, programs=64, threads=128, registers=40, threadgroup_bytes=0)
    return dataclasses.replace(base, **changes)


def test_chips_by_name() -> None:
    assert cost.chip("M1").cores == 8
    assert cost.chip("apple m4 max") is cost.chip("M4 Max")
    assert (cost.chip("M4 Max 32 cores").bandwidth, cost.chip("M4 Max").bandwidth) == (410, 546)
    assert cost.chip("M3 Max, 30-core").cores == 30
    assert doctest.testmod(chips).failed == 0


@pytest.mark.parametrize("name", ["M9", "M3 Extreme", "", "A17 Pro"])
def test_a_chip_that_the_model_does_not_know(name: str) -> None:
    with pytest.raises(LaunchValueError, match=r"\[cost\] chip must be one of M1, M1 Pro,.*but is"):
        cost.chip(name)


def test_bad_chips() -> None:
    with pytest.raises(LaunchValueError, match=r"M3 Max has 30 or 40 GPU cores, not 12"):
        cost.chip("M3 Max 12 cores")
    with pytest.raises(LaunchTypeError, match=r"chip must be a name such as 'M3 Max' but is 3"):
        cost.chip(3)


def test_every_figure_has_its_source() -> None:
    for forms in cost.CHIPS.values():
        for form in forms:
            wanted = {"cores", "bandwidth", "units"}
            wanted |= {"clock"} if form.clock is not None else set()
            wanted |= {"last_level"} if form.last_level is not None else set()
            assert set(form.sources) == wanted
            assert all(form.sources.values())


@triton.jit
def increment_kernel(d):
    d.store([0, 0], d.load([0, 0]) + 1)


@pytest.mark.parametrize("how", ["cost", "report"])
def test_launches_that_are_only_looked_at_change_no_array(how: str, tmp_path: Path) -> None:
    """Neither one behind a tensor descriptor, nor one that is read-only, which a launch refuses to write."""
    x = np.zeros((16, 16), np.float32)
    look = {
        "cost": lambda *args, **named: increment_kernel.cost("M1", (1,), *args, **named),
        "report": lambda *args: increment_kernel.report(tmp_path / "page.html", (1,), *args),
    }[how]
    look(TensorDescriptor.from_tensor(x, [16, 16]))
    assert not x.any()
    same = np.broadcast_to(np.float32(1), (16, 16))
    with pytest.raises(LaunchValueError, match=r"argument d is a read-only array"):
        look(TensorDescriptor(same, [16, 16], [16, 1], [16, 16]))


def test_adding_is_bound_by_memory() -> None:
    x, y, out = (np.ones(1 << 18, np.float32) for _ in range(3))
    found = add_kernel.cost("M2", (256,), x, y, out, x.size, BLOCK=1024)
    assert found.binds == "memory"
    assert found.seconds == pytest.approx(3 * x.nbytes / 100e9)
    assert out[0] == 1  # the launch was on copies
    assert "bound by memory" in str(found)


def test_products_are_bound_by_the_matrix_units() -> None:
    n = 256
    a, b, c = (np.ones((n, n), np.float16) for _ in range(3))
    found = product_kernel.cost("M1", (4, 4), a, b, c, n, BLOCK=64)
    assert found.binds == "matrices"
    chip = cost.chip("M1")
    assert chip.clock is not None
    assert chip.units.matrix_half is not None
    assert found.seconds == pytest.approx(
        n**3 / chip.units.matrix_half / chip.cores / chip.clock / 1e9
    )
    alone = cost.chip("M1 Ultra")  # 16 programs on 64 cores
    uneven = cost.bound(alone, found.work)
    assert uneven.parts[0].unit == "matrices"
    assert any("16 programs on 64 cores" in text for text in uneven.advice)


def test_numbers_that_lie_apart_cost_the_cache() -> None:
    x, out = np.ones(64 * 4096, np.float32), np.ones(4096, np.float32)
    found = column_kernel.cost("M1", (4,), x, out, 4096, 64, BLOCK=1024)
    assert found.binds == "cache"
    assert any("of each line is used" in text for text in found.advice)


def test_no_array_counts_twice_in_memory() -> None:
    """Many programs read the same array; memory gives it once."""
    n = 256
    a, b, c = (np.ones((n, n), np.float16) for _ in range(3))
    found = product_kernel.cost("M1", (8, 8), a, b, c, n, BLOCK=32)
    assert found.work.counters["device_distinct_bytes_read"] > 2 * a.nbytes
    assert model.memory_bytes(found.work) == (2 * a.nbytes, a.nbytes)


def test_what_is_not_published_is_left_out_and_said() -> None:
    chip = next(form for forms in cost.CHIPS.values() for form in forms if form.clock is None)
    found = cost.bound(chip, work())
    assert [part.unit for part in found.parts] == ["memory"]
    assert any("no clock is published" in text for text in found.missing)
    known = dataclasses.replace(chip, clock=1.0)
    assert "cache" in [part.unit for part in cost.bound(known, work()).parts]


@pytest.mark.parametrize(
    ("registers", "threadgroup_bytes", "threads", "expected"),
    [
        (40, 0, 128, 1024),
        (68, 0, 128, 768),
        (128, 0, 128, 384),
        (40, 20_000, 128, 384),
        (128, 0, 1024, 1024),
    ],
)
def test_threads_in_flight(
    registers: int, threadgroup_bytes: int, threads: int, expected: int
) -> None:
    given = work(registers=registers, threadgroup_bytes=threadgroup_bytes, threads=threads)
    assert model.threads_in_flight(cost.chip("M1"), given) == expected


def test_a_core_with_few_threads_is_slower() -> None:
    counters = {"optimized_f32_fma": 10**9}
    fast = cost.bound(cost.chip("M1"), work(counters=counters))
    slow = cost.bound(cost.chip("M1"), work(counters=counters, threadgroup_bytes=32_000))
    assert slow.in_flight < fast.in_flight
    assert slow.seconds > 1.5 * fast.seconds
    assert any("too few to hide its latency" in text for text in slow.advice)


def test_registers_that_a_thread_lacks_cost_accesses_to_memory() -> None:
    """The bound is what the launch cannot beat whatever a compiler makes of it; the estimate ranks."""
    m1 = chips.chip("M1")
    counters = {"optimized_f32_add": 1 << 20, "device_lines_read": 100}
    fits, lacks, lacks_many = (
        cost.bound(m1, work(counters=counters, registers=registers))
        for registers in (128, 160, 400)
    )
    assert fits.seconds == lacks.seconds == lacks_many.seconds
    assert fits.estimate < lacks.estimate < lacks_many.estimate
    assert not any("registers and has" in text for text in fits.advice)
    assert any("needs about 400 registers and has 128" in text for text in lacks_many.advice)


def test_spills_grow_with_the_registers_and_begin_with_none() -> None:
    m1 = chips.chip("M1")
    sums = model.Sums(operations=32000.0, lines=10.0)
    assert model.with_spills(m1, sums, 128, 128) == sums
    lines = [
        model.with_spills(m1, sums, registers, 128).lines for registers in (129, 160, 256, 4096)
    ]
    assert 10 < lines[0] < lines[1] < lines[2] < lines[3] < 10 + 0.43 * 1000
    assert lines[0] < 13
    # A core must hold all threads of a threadgroup.
    assert model.with_spills(m1, sums, 52, 1024) == sums
    assert model.with_spills(m1, sums, 104, 1024).lines == lines[2]


def test_a_bound_grows_with_the_work_and_falls_with_the_chip() -> None:
    x, y, out = (np.ones(1 << 16, np.float32) for _ in range(3))
    small = add_kernel.cost("M1", (32,), x, y, out, 1 << 15, BLOCK=1024).work
    large = add_kernel.cost("M1", (64,), x, y, out, 1 << 16, BLOCK=1024).work
    for name in cost.CHIPS:
        assert (
            cost.bound(cost.chip(name), large).seconds > cost.bound(cost.chip(name), small).seconds
        )
    assert (
        cost.bound(cost.chip("M1 Max"), large).seconds < cost.bound(cost.chip("M1"), large).seconds
    )


def test_counting_has_the_launches_of_inner_blocks_but_not_those_of_models() -> None:
    x, y, out = (np.ones(64, np.float32) for _ in range(3))

    def launch(programs: int) -> None:
        add_kernel[(programs,)](x, y, out, 64, BLOCK=64 // programs)

    with triton.launch_options(count=True) as log, cost.counting() as outer:
        launch(1)
        add_kernel.cost("M1", (2,), x, y, out, 64, BLOCK=32)
        with cost.counting() as inner, triton.launch_options(check="bounds"):
            launch(4)
            add_kernel.cost("M1", (2,), x, y, out, 64, BLOCK=32)
        cost.sampled(lambda grid: add_kernel[grid((32,))](x, y, out, 64, BLOCK=2))
        with triton.launch_options(count=True):
            launch(8)
        launch(16)
    assert [each.programs for each in outer.works] == [1, 4, 8, 16]
    assert [each.programs for each in inner.works] == [4]
    assert [each.counters["threadgroups"] for each in log.launches] == [1, 4, 8, 16]


def test_counting_leaves_other_threads_out() -> None:
    x, y, out = (np.ones(64, np.float32) for _ in range(3))
    with cost.counting() as counted:
        other = threading.Thread(target=lambda: add_kernel[(2,)](x, y, out, 64, BLOCK=32))
        other.start()
        other.join()
        add_kernel[(1,)](x, y, out, 64, BLOCK=64)
    assert [each.programs for each in counted.works] == [1]


@pytest.mark.parametrize("framework", ["torch", "mlx.core"])
def test_arrays_of_other_frameworks_keep_their_contents(framework: str) -> None:
    module = pytest.importorskip(framework)
    x, y, out = module.ones(64), module.ones(64), module.zeros(64)
    assert add_kernel.cost("M1", (1,), x, y, out, 64, BLOCK=64).seconds > 0
    assert float(out.sum()) == 0


def test_an_empty_grid_has_no_cost() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(LaunchValueError, match=r"the grid has no programs"):
        add_kernel.cost("M1", (0,), x, x, x.copy(), 0, BLOCK=16)


PROGRAM = """
import numpy as np, triton, triton.language as tl, sys

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, i < n), i < n)

x = np.ones(1000, np.float32)
for _ in range(3):
    double[(4,)](x, 1000, BLOCK=256)
print("the program's own", x[0])
sys.exit(int(sys.argv[1]))
"""


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "triton_metal", "cost", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


def test_the_command_counts_a_program(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = run("--chip", "M1", "--chip", "M4 Pro", str(path), "3")
    assert done.returncode == 3
    assert "the program's own 8.0" in done.stdout
    assert "3 launches, each:\ndouble on M1 (8 cores): at least" in done.stdout
    assert "all 3 launches on M4 Pro: at least" in done.stdout
    done = run("--json", "--chip", "M1", str(path), "0")
    found = json.loads(done.stdout)
    assert "the program's own" in done.stderr
    assert [each["kernel"] for each in found] == ["double"] * 3
    assert found[0]["seconds"] > 0


def test_the_command_counts_a_module_and_a_text(tmp_path: Path) -> None:
    """What follows -m and -c belongs to the program, also where it looks like an option of the command."""
    (tmp_path / "counted_module.py").write_text(PROGRAM.replace("argv[1]", "argv[2]"))
    for program in (["-m", "counted_module"], ["-c", "import counted_module"]):
        done = run("--chip", "M1", *program, "--chip", "3", cwd=tmp_path)
        assert done.returncode == 3, done.stderr
        assert "all 3 launches on M1: at least" in done.stdout
    assert run("-c").returncode == 2


def test_launches_before_an_error_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("sys.exit", "raise KeyError"))
    done = run("--chip", "M1", str(path), "3")
    assert done.returncode == 1
    assert "all 3 launches on M1: at least" in done.stdout
    assert done.stderr.splitlines()[-1] == "KeyError: 3"


def test_a_block_that_raises_has_what_it_counted() -> None:
    x = np.ones(8, np.float32)
    with contextlib.suppress(KeyError), cost.counting() as counted:
        add_kernel[(2,)](x, x.copy(), x.copy(), 8, BLOCK=4)
        raise KeyError
    assert [work.programs for work in counted.works] == [2]


def test_one_small_launch_has_a_time(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("range(3)", "range(1)"))
    done = run("--chip", "M1", str(path), "0")
    assert re.search(r"^the launch on M1: at least 0\.\d+ µs$", done.stdout, re.M)


def test_the_command_lists_chips_and_says_what_is_wrong() -> None:
    done = run("--chips")
    assert done.returncode == 0
    assert "M5 Max" in done.stdout
    sources = done.stdout.partition("Sources:\n")[2].splitlines()
    assert "  cores of all chips: Apple's announcement of the chip" in sources
    assert "  clock of M1 to M2 Max: philipturner/metal-benchmarks, README" in sources
    assert all(re.match(r"  [a-z -]+ of (all chips|M\d[^:]*): .", line) for line in sources)
    assert doctest.testmod(command).failed == 0
    assert run().returncode == 2
    done = run("--chip", "M1", "--bogus", "x.py")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m triton_metal ")
    done = run("--chip", "M9", "x.py")
    assert done.returncode == 2
    assert "chip must be one of" in done.stderr


@triton.jit
def sum_of_same_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), 0))


def test_memory_that_all_programs_read_comes_once() -> None:
    x, out = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
    of_all = sum_of_same_kernel.cost("M1", (1024,), x, out, BLOCK=1024)
    of_parts = sum_of_same_kernel.cost("M1", (1024,), x[:1024], out[:1024], BLOCK=1024)
    assert of_all.seconds == of_parts.seconds
    assert model.memory_bytes(of_all.work) == (4096, 4096)


@triton.jit
def three_views_kernel(a_ptr, b_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + i, i < n), tl.load(b_ptr + i, i < n)
    tl.store(out_ptr + i, a + b + tl.load(c_ptr + i, i < n), i < n)


def test_views_of_one_array_share_its_memory() -> None:
    n = 1 << 16
    x, out = np.ones(n + 2, np.float32), np.zeros(n, np.float32)
    views = three_views_kernel.cost("M1", (n // 1024,), x[:-2], x[1:-1], x[2:], out, n, BLOCK=1024)
    lines = -(-x.nbytes // 128)
    assert views.work.counters["device_memory_lines_read"] in (lines, lines + 1)
    assert model.memory_bytes(views.work)[0] <= (lines + 1) * 128
    apart = three_views_kernel.cost("M1", (n // 1024,), *(np.ones(n, np.float32) for _ in range(4)), n, BLOCK=1024)  # fmt: skip
    assert model.memory_bytes(apart.work)[0] == 3 * n * 4


def test_lines_are_counted_once_with_checks_and_in_portable_launches() -> None:
    x, out = np.ones(4096, np.float32), np.zeros(64, np.float32)
    for check in (None, "bounds", "all", "portable"):
        with triton.launch_options(count=True, check=check) as log:
            sum_of_same_kernel[(64,)](x, out, BLOCK=1024)
        counters = log.launches[0].counters
        assert counters["device_memory_lines_read"] == 32, check
        assert counters["device_memory_lines_written"] == 2, check


def test_advice_names_what_a_small_launch_lacks() -> None:
    @triton.jit
    def long_kernel(out_ptr, BLOCK: tl.constexpr):
        x = (tl.arange(0, BLOCK) + tl.program_id(0)).to(tl.float32)
        for _ in range(100):
            x = x * x + 0.5
        tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), x)

    one = long_kernel.cost("M1", (1,), np.zeros(32, np.float32), BLOCK=32, num_warps=1)
    assert (one.binds, one.held) == ("arithmetic", 32)
    text = str(one)
    assert "threads in flight on a core: 32 of 1024, as the launch has no more" in text
    assert "1 program on 8 cores leaves cores idle" in text
    assert "too few to hide its latency, as the launch has 1 program of 32:" in text
    assert "registers" not in text
    many = long_kernel.cost("M1", (512,), np.zeros(512 * 256, np.float32), BLOCK=256)
    assert many.held == many.in_flight
    assert "as the launch has" not in str(many)


@triton.jit
def unmasked_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)


def test_what_is_counted_has_the_checks_around_it() -> None:
    memory = np.zeros(4096, np.float32)
    x = memory[1024:2304]
    for around in ({"check": "bounds"}, {"check": "all"}, {"check": "portable", "seed": 1}):
        with triton.launch_options(**around):
            with pytest.raises(DeviceError, match="x_ptr"):
                unmasked_kernel.cost("M1", (3,), x, 1280, BLOCK=512)
            with cost.counting(), pytest.raises(DeviceError, match="x_ptr"):
                unmasked_kernel[(3,)](x, 1280, BLOCK=512)
            checked = unmasked_kernel.cost("M1", (5,), x, 1280, BLOCK=256)
        assert checked == unmasked_kernel.cost("M1", (5,), x, 1280, BLOCK=256)
    assert not memory.any()


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + i * N + j), tl.load(b_ptr + i * N + j))
    tl.store(c_ptr + i * N + j, c)


def test_products_on_a_chip_with_tensor_operations_are_left_out() -> None:
    a, b, c = (np.ones((64, 64), np.float16) for _ in range(3))
    older = dot_kernel.cost("M4 Pro", (1,), a, b, c.astype(np.float32), N=64)
    newer = dot_kernel.cost("M5 Max", (1,), a, b, c.astype(np.float32), N=64)
    assert "matrices" in {part.unit for part in older.parts}
    assert "matrices" not in {part.unit for part in newer.parts}
    assert "matrix products: no rate of the tensor operations is published" in newer.missing
    unknown = dot_kernel.cost("M2 Ultra", (1,), a, b, c.astype(np.float32), N=64)
    assert "bound by memory (no other unit has a published rate)" in str(unknown)


def test_launches_in_functions_that_mlx_traces_are_left_out() -> None:
    mx = pytest.importorskip("mlx.core")
    import triton_metal.mlx as tm

    x = mx.ones(64)

    def double(u):
        return tm.call(add_kernel, u, u, n=64, BLOCK=64, grid=(1,), outputs={"out": u})

    with cost.counting() as counted:
        assert double(x).tolist() == [2.0] * 64
        assert mx.compile(double)(x).tolist() == [2.0] * 64
        add_kernel[(1,)](np.ones(64, np.float32), np.ones(64, np.float32), np.zeros(64, np.float32), 64, BLOCK=64)  # fmt: skip
    assert ([work.kernel for work in counted.works], counted.left_out) == (["add_kernel"] * 2, 1)
    with (
        triton.launch_options(count=True),
        cost.counting(),
        pytest.raises(DeviceError, match="launch_options"),
    ):
        mx.compile(lambda u: double(u) + 1)(x)


def test_arrays_of_mlx_are_counted_as_aligned_as_on_a_gpu() -> None:
    mx = pytest.importorskip("mlx.core")
    import triton_metal.mlx as tm

    x = mx.ones(1024)
    mx.eval(x)
    y = x[1:]  # begins 4 bytes after a multiple of 16 on a GPU, too
    mx.eval(y)
    with cost.counting() as counted:
        tm.call(add_kernel, x, x, n=1024, BLOCK=1024, grid=(1,), outputs={"out": x})
        tm.call(add_kernel, y, y, n=1023, BLOCK=1024, grid=(1,), outputs={"out": y})
    whole, part = (work.counters["device_accesses_16"] for work in counted.works)
    assert whole == 3 * 256
    assert part < whole


def test_checks_are_named_or_all() -> None:
    memory = np.zeros(4096, np.float32)
    with triton.launch_options(check=True), pytest.raises(DeviceError, match="x_ptr"):
        unmasked_kernel[(3,)](memory[:1280], 1280, BLOCK=512)
    for wrong in (1, {"bounds": True}):
        with pytest.raises(LaunchTypeError, match="check takes True, a name or several names"), triton.launch_options(check=wrong):  # fmt: skip
            pass
