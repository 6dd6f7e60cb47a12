"""The backend "metal" of stock Triton: kernels written for stock Triton, on torch's CPU tensors."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

import triton_metal  # noqa: E402
from triton_metal import hints  # noqa: E402

from stock_support import MARKS, metal_backend  # noqa: E402, F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]

pytestmark = MARKS


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


def test_a_launch_on_cpu_tensors_runs_on_the_host_device() -> None:
    x, y, out = torch.randn(1000), torch.randn(1000), torch.full((1000,), torch.nan)
    add[(triton.cdiv(1000, 256),)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)


def test_the_kernel_has_the_text_of_each_stage_and_its_metadata() -> None:
    out = torch.zeros(64)
    kernel = add[(1,)](out, out, out, 64, BLOCK=64, num_warps=2)
    assert {"ttir", "metal", "binary"} <= set(kernel.asm)
    assert "tt.func public @add" in kernel.asm["ttir"]
    assert "void add(" in kernel.asm["metal"]
    assert json.loads(kernel.asm["binary"])["metal"] == kernel.asm["metal"]
    assert kernel.metadata.num_warps == 2
    assert kernel.metadata.name == kernel.name == "add"
    assert kernel.metadata.shared == 0
    assert kernel.metadata.target.backend == "metal"
    assert kernel.n_max_threads == 1024


def test_a_kernel_reaches_the_storage_behind_a_view() -> None:
    @triton.jit
    def column(x, out, stride, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, tl.load(x + i * stride))

    table = torch.arange(64 * 8, dtype=torch.int32).reshape(64, 8)
    out = torch.zeros(64, dtype=torch.int32)
    # The view itself is 1 element wide; its rows lie behind it in the storage.
    column[(1,)](table[0, 3:4], out, 8, N=64)
    assert torch.equal(out, table[:, 3])


def test_a_store_through_a_view_changes_the_tensor_at_its_offset() -> None:
    @triton.jit
    def fill(x, N: tl.constexpr):
        tl.store(x + tl.arange(0, N), 7)

    x = torch.zeros(19, dtype=torch.int16)
    fill[(1,)](x[3:], N=8)
    assert x.tolist() == [0] * 3 + [7] * 8 + [0] * 8


@pytest.mark.parametrize("grid", [(0,), (2, 0), (1, 3, 0)])
def test_a_grid_without_programs_launches_nothing(grid: tuple[int, ...]) -> None:
    out = torch.zeros(64)
    add[grid](out + 1, out + 1, out, 64, BLOCK=64)
    assert not out.any()


def test_tensors_that_share_memory_keep_the_order_of_loads_and_stores() -> None:
    @triton.jit
    def shift(x, y, N: tl.constexpr):
        i = tl.arange(0, N)
        for _ in range(3):
            tl.store(y + i, tl.load(x + i) + 1)
            tl.debug_barrier()

    x = torch.zeros(64)
    shift[(1,)](x, x, N=64)
    assert torch.equal(x, torch.full((64,), 3.0))
    # The same kernel on tensors of their own adds to the same input three times.
    x, y = torch.zeros(64), torch.zeros(64)
    shift[(1,)](x, y, N=64)
    assert torch.equal(y, torch.ones(64))


def test_views_of_one_storage_share_memory() -> None:
    @triton.jit
    def kernel(x, y, N: tl.constexpr):
        first = tl.load(x + 1)
        tl.store(y, first + 1)
        tl.store(y + 8, tl.load(x + 1))

    storage = torch.zeros(32)
    kernel[(1,)](storage, storage[1:], N=8)
    assert storage[1] == 1
    assert storage[9] == 1


def test_tuples_constants_and_reinterpreted_tensors_are_arguments() -> None:
    @triton.jit
    def kernel(pair, scale, out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, (tl.load(pair[0] + i) + pair[1]) * scale)

    x = torch.arange(32, dtype=torch.int32)
    out = torch.zeros(32, dtype=torch.int32)
    kernel[(1,)]((x, 5), 3, triton.reinterpret(out, tl.uint32), N=32)
    assert torch.equal(out, (x + 5) * 3)


@pytest.mark.parametrize("value", [0, 1, 16, -(2**31), 2**31 - 1, 2**40, 2**63, -(2**63)])
def test_integers_reach_the_kernel(value: int) -> None:
    @triton.jit
    def kernel(out, value):
        tl.store(out, tl.cast(value, tl.int64))

    out = torch.zeros(1, dtype=torch.int64)
    kernel[(1,)](out, value)
    assert out.item() % 2**64 == value % 2**64


@pytest.mark.parametrize("value", [0.1, float("inf"), -0.0, 1e-45, True, False])
def test_numbers_reach_the_kernel(value: float | bool) -> None:
    @triton.jit
    def kernel(out, value):
        tl.store(out, value)

    out = torch.full((1,), 9.0)
    kernel[(1,)](out, value)
    assert torch.equal(out, torch.tensor([value], dtype=torch.float32))


def test_a_host_tensor_descriptor_is_an_argument() -> None:
    descriptors = pytest.importorskip("triton.tools.tensor_descriptor")

    @triton.jit
    def kernel(source, out, M: tl.constexpr, N: tl.constexpr):
        tile = source.load([8, 16])
        i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
        tl.store(out + i * N + j, tile)

    x = torch.arange(20 * 40, dtype=torch.float32).reshape(20, 40)
    out = torch.full((16, 32), torch.nan)
    kernel[(1,)](descriptors.TensorDescriptor.from_tensor(x, [16, 32]), out, M=16, N=32)
    wanted = torch.zeros(16, 32)
    wanted[:12, :24] = x[8:, 16:]
    assert torch.equal(out, wanted)


def test_a_device_tensor_descriptor_loads_and_stores() -> None:
    @triton.jit
    def kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
        source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
        target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [M, N])
        at = [tl.program_id(0) * M, tl.program_id(1) * N]
        target.store(at, source.load(at) * 2)

    x = torch.randn(20, 40)
    out = torch.zeros(20, 40)
    kernel[(2, 2)](x, out, 20, 40, M=16, N=32)
    assert torch.equal(out, x * 2)


OTHERS = {
    "num_ctas": 2,
    "maxnreg": 128,
    "launch_cooperative_grid": True,
    "launch_pdl": True,
}


def test_options_of_other_gpus_are_accepted_and_named_once() -> None:
    hints._said.clear()
    out = torch.zeros(64)
    ones = torch.ones(64)
    for name, value in OTHERS.items():
        with pytest.warns(UserWarning, match=f"{name}={value} changes nothing on Metal") as said:
            add[(1,)](out, ones, out, 64, BLOCK=64, **{name: value})
        assert said[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            add[(1,)](out, ones, out, 32, BLOCK=64, **{name: value})
    assert torch.equal(out[:32], torch.full((32,), 8.0))


@triton.jit
def add_in_loop(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in tl.range(n, warp_specialize=True):
        tl.store(out + k * BLOCK + i, tl.load(x + k * BLOCK + i) + 1)


def test_a_loop_that_asks_for_specialized_warps_is_named_once() -> None:
    hints._said.clear()
    x, out = torch.randn(256), torch.zeros(256)
    with pytest.warns(UserWarning, match="warp_specialize=True changes nothing on Metal"):
        add_in_loop[(1,)](x, out, 4, BLOCK=64)
    assert torch.equal(out, x + 1)


@pytest.mark.parametrize(
    "option",
    [
        {"num_stages": 5},
        {"enable_fp_fusion": False},
        {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2},
        {"debug": False, "sanitize_overflow": False},
        {"max_num_imprecise_acc_default": 32},
        {"allowed_dot_input_precisions": ("ieee", "tf32")},
    ],
)
def test_options_without_an_effect_on_the_result_are_accepted(option: dict[str, Any]) -> None:
    out = torch.zeros(64)
    add[(1,)](out, out + 1, out, 64, BLOCK=64, **option)
    assert torch.equal(out, torch.ones(64))


@pytest.mark.parametrize("warps", [0, 3, -4, "four"])
def test_a_number_of_warps_that_is_no_power_of_two_is_refused(warps: Any) -> None:
    out = torch.zeros(64)
    with pytest.raises(AssertionError, match=r"num_warps is .*; it must be a power of 2 from 1"):
        add[(1,)](out, out, out, 64, BLOCK=64, num_warps=warps)


@triton.jit
def copy_constant(x: tl.const, y: tl.const, out, pick: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = x if pick else y
    tl.store(out + i, tl.load(source + i))


@pytest.mark.parametrize("pick", [True, False])
def test_pointers_to_constant_memory_are_read(pick: bool) -> None:
    x, y, out = torch.randn(64), torch.randn(64), torch.zeros(64)
    copy_constant[(1,)](x, y, out, pick, BLOCK=64)
    assert torch.equal(out, x if pick else y)


def store_bit(out, bit):
    tl.store(out, bit)


# Triton has a name for this type only in annotations.
store_bit.__annotations__["bit"] = "tl.uint1"
store_bit = triton.jit(store_bit)


@pytest.mark.parametrize("value", [0, 1, 2, 3, True, False])
def test_an_argument_of_one_bit_takes_the_lowest(value: int) -> None:
    out = torch.full((1,), 7, dtype=torch.int32)
    store_bit[(1,)](out, value)
    assert out.item() == value & 1


def test_more_threads_than_a_threadgroup_has_are_out_of_resources() -> None:
    out = torch.zeros(64)
    with pytest.raises(triton.runtime.errors.OutOfResources, match="threads, Required: 2048"):
        add[(1,)](out, out, out, 64, BLOCK=64, num_warps=64)


def test_a_refusal_names_the_python_line() -> None:
    @triton.jit
    def kernel(out):
        one = tl.inline_asm_elementwise("mov $0, 1;", "=r", [], tl.int32, True, 1)
        tl.store(out, one)

    with pytest.raises(triton_metal.CompileError) as error:
        kernel[(1,)](torch.zeros(1))
    assert error.value.location is not None
    assert error.value.location.file == __file__
    assert "inline assembler" in str(error.value)


def test_autotuning_passes_over_configurations_that_do_not_fit() -> None:
    configurations = [
        triton.Config({"BLOCK": 64}, num_warps=64),
        triton.Config({"BLOCK": 64}, num_warps=2),
    ]

    @triton.autotune(configurations, key=["n"])
    @triton.jit
    def tuned(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

    x, out = torch.randn(100), torch.zeros(100)
    tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    assert torch.equal(out, x + 1)
    assert tuned.best_config.num_warps == 2


def test_launch_options_hold_for_launches_of_stock_triton() -> None:
    out = torch.zeros(64)
    with triton_metal.launch_options(count=True) as log:
        add[(1,)](out, out, out, 64, BLOCK=64)
    assert log.counters["device_bytes_written"] == 256
    with (
        triton_metal.launch_options(check="bounds"),
        pytest.raises(triton_metal.DeviceError, match="a load of 4 bytes at byte 256 of 'x'"),
    ):
        add[(1,)](out, out, out, 128, BLOCK=128)


def test_a_compiled_kernel_is_launched_again_by_itself() -> None:
    out = torch.zeros(64)
    kernel = add.warmup(torch.float32, torch.float32, torch.float32, 64, BLOCK=64, grid=(1,))
    kernel[(1, 1, 1)](out, out + 1, out, 64)
    assert torch.equal(out, torch.ones(64))


def test_triton_ir_from_a_file_is_compiled_and_launched(tmp_path: Path) -> None:
    out = torch.zeros(64)
    kernel = add[(1,)](out, out, out, 64, BLOCK=64)
    source = tmp_path / "add.ttir"
    source.write_text(kernel.asm["ttir"])
    compiled = triton.compile(str(source), options={"num_warps": 4})
    compiled[(1, 1, 1)](out, out + 1, out, 64)
    assert torch.equal(out, torch.ones(64))


def test_launch_hooks_are_called() -> None:
    calls: list[str] = []
    runtime = triton.knobs.runtime
    out = torch.zeros(64)

    def enter(metadata: Any) -> None:
        calls.append("enter " + metadata.get()["name"])

    def leave(metadata: Any) -> None:
        calls.append("exit")

    runtime.launch_enter_hook.add(enter)
    runtime.launch_exit_hook.add(leave)
    try:
        add[(1,)](out, out, out, 64, BLOCK=64)
    finally:
        runtime.launch_enter_hook.remove(enter)
        runtime.launch_exit_hook.remove(leave)
    assert calls == ["enter add", "exit"]


def test_do_bench_measures_with_the_devices_own_events() -> None:
    out = torch.zeros(64)
    time = triton.testing.do_bench(lambda: add[(1,)](out, out, out, 64, BLOCK=64), warmup=1, rep=2)
    assert 0 < time < 1000
    driver = triton.runtime.driver.active
    assert driver.get_benchmarker() is triton.testing.do_bench
    assert driver.utils.get_device_properties(0)["max_shared_mem"] == 32768


def test_a_tensor_on_another_device_is_refused() -> None:
    meta = torch.zeros(64, device="meta")
    with pytest.raises(triton_metal.LaunchValueError, match="tensors on the CPU and on mps"):
        add[(1,)](meta, meta, meta, 64, BLOCK=64)


def test_a_tensor_with_the_negative_bit_is_refused() -> None:
    """Its numbers lie in memory with the other sign, which a kernel would read, and write."""
    x, out = torch.ones(64), torch.zeros(64)
    negated = torch.complex(x, x).conj().imag
    for arguments, name in (((negated, x, out), "x"), ((x, x, torch._neg_view(out)), "out")):
        with pytest.raises(triton_metal.LaunchValueError, match=rf"argument {name} is a tensor with the negative bit.*resolve_neg\(\)"):  # fmt: skip
            add[(1,)](*arguments, 64, BLOCK=64)
    add[(1,)](negated.resolve_neg(), x, out, 64, BLOCK=64)
    assert not out.any()


def test_the_hash_changes_with_the_compiler_and_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.backends.compiler import GPUTarget
    from triton_metal import cache
    from triton_metal_backend.compiler import MetalBackend

    before = MetalBackend(GPUTarget("metal", "host", 32)).hash()
    assert MetalBackend(GPUTarget("metal", "host", 32)).hash() == before
    assert MetalBackend(GPUTarget("metal", "Apple M2", 32)).hash() != before
    monkeypatch.setattr(cache, "build_id", lambda: "another build")
    assert MetalBackend(GPUTarget("metal", "host", 32)).hash() != before


def test_a_launch_takes_the_route_of_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_metal.testing import contract_device

    launches: list[str] = []
    from triton_metal import mps

    encode = mps.encode
    monkeypatch.setattr(
        mps, "encode", lambda *launch: (launches.append(launch[0].name), encode(*launch))
    )
    x, out = torch.randn(300), torch.zeros(300)
    with contract_device("mps"):
        add[(2,)](x, x[1:], out, 299, BLOCK=256)
    assert torch.equal(out[:299], x[:299] + x[1:])
    assert launches == ["add"]


PROGRAM = """
import triton
from triton.backends import backends

print(sorted(backends), backends["metal"].driver.is_active())
"""

OTHER = """
import triton.backends as found
from types import SimpleNamespace

class Driver:
    @staticmethod
    def is_active():
        return True

backend = found.backends["metal"]
found.backends["cuda"] = SimpleNamespace(driver=Driver, compiler=found.backends["nvidia"].compiler)
print(backend.driver.is_active())
import triton
try:
    print(type(triton.runtime.driver.active).__name__)
except Exception as error:
    print(type(error).__name__)
"""


def run(program: str, **environment: str) -> list[str]:
    import os

    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRITON")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=clean | {"PYTHONPATH": str(ROOT / "python")} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[:-1]


def test_triton_finds_the_backend_through_its_entry_point() -> None:
    (line,) = run(PROGRAM)
    assert "'metal'" in line
    assert line.endswith("True")
    assert run(PROGRAM, TRITON_METAL="0")[0].endswith("False")


WITHOUT_TORCH = """
import array, sys
import triton, triton.language as tl

class Pointer:
    dtype = tl.float32
    def __init__(self, numbers):
        self.numbers = numbers
    def data_ptr(self):
        return self.numbers.buffer_info()[0]

@triton.jit
def twice(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * 2)

numbers = array.array("f", range(64))
twice[(1,)](Pointer(numbers), N=64)
print(numbers.tolist() == [2.0 * i for i in range(64)], "torch" in sys.modules)
"""


def test_addresses_are_arguments_where_there_is_no_torch(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WITHOUT_TORCH)
    environment = {"TRITON_METAL": "1", "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    assert run(
        f"exec(compile(open({str(program)!r}).read(), {str(program)!r}, 'exec'))", **environment
    ) == ["True False"]


def test_importing_triton_does_not_load_the_compiler() -> None:
    program = "import sys, triton; print('triton_metal' in sys.modules)"
    assert run(program) == ["False"]


@pytest.mark.parametrize(
    ("environment", "active", "driver"),
    [
        ({}, "False", "Driver"),
        ({"TRITON_METAL": "1"}, "True", "MetalDriver"),
        ({"TRITON_DEFAULT_BACKEND": "metal"}, "True", "MetalDriver"),
        ({"TRITON_METAL": "0"}, "False", "Driver"),
    ],
)
def test_the_backend_stays_out_of_the_way_of_another_gpu(
    environment: dict[str, str], active: str, driver: str
) -> None:
    assert run(OTHER, **environment) == [active, driver]


def test_properties_of_a_mac_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton_metal.backends.metal.driver import MetalDriver, MetalUtils

    known = SimpleNamespace(
        threadgroup_bytes=32768, gpu_cores=10, simd_width=32, max_threads=1024, chip="Apple M2"
    )
    device = SimpleNamespace(properties=lambda: known, name="mps")
    driver = object.__new__(MetalDriver)
    driver.device, driver.on_mps, driver.utils = device, True, MetalUtils(device)
    assert driver.get_current_target().arch == "Apple M2"
    assert driver.get_active_torch_device() == torch.device("mps")
    assert driver.utils.get_device_properties()["multiprocessor_count"] == 10
