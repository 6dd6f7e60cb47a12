"""What programs ask of Triton's runtime: kernels' attributes, compiling without a launch, specialisations, arguments."""

from __future__ import annotations

import ctypes
import json
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal.backends.compiler import NOMINAL_REGISTERS
from triton_metal.compiler import ASTSource, IRSource, LazyDict, make_backend
from triton_metal.compiler.compiler import GPUTarget, max_shared_mem
from triton_metal.runtime import jit as runtime_jit
from triton_metal.runtime.driver import driver

from process_support import fresh_kernel

torch = pytest.importorskip("torch")


@triton_metal.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * factor, i < n)


TYPES = {"x": "*fp32", "y": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}
KNOWN = {(0,): 16, (1,): 16, (2,): 4}
ALIGNED = {path: [["tt.divisibility", divisor]] for path, divisor in KNOWN.items()}


@pytest.mark.own_route  # what is compiled for the host is compared
def test_a_source_compiles_to_what_a_launch_compiles_to() -> None:
    x = torch.arange(100.0)
    y = torch.zeros(100)
    launched = scale[(2,)](x, y, 100, 0.5, 64)
    compiled = triton_metal.compile(ASTSource(scale, TYPES, {"BLOCK": 64}, ALIGNED))
    assert compiled.hash == launched.hash
    assert compiled.asm["ttir"] == launched.asm["ttir"]
    y.zero_()
    compiled[(2, 1, 1)](x, y, 100, 0.25, 64)
    assert torch.equal(y, x / 4)
    y.zero_()
    compiled[(2,)](x, y, 100, 2.0)  # without the constant
    assert torch.equal(y, x * 2)
    compiled.run(
        1, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None, x, y, 3, 9.0, 64
    )
    assert y[:4].tolist() == [0, 9, 18, 6]


def test_arrays_that_share_memory_are_compiled_for_that() -> None:
    @triton_metal.jit
    def shift(x, y, BLOCK: tl.constexpr):
        for k in range(4):
            tl.store(y + k, tl.load(x + k) + 1)

    types = {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}
    compiled = triton_metal.compile(ASTSource(shift, types, {"BLOCK": 1}))
    for memory in (torch.zeros(6), np.zeros(6, np.float32)):
        compiled[(1,)](memory[:5], memory[1:], 1)
        assert memory.tolist() == [0, 1, 2, 3, 4, 0]


def test_metadata_has_tritons_names_and_the_contract() -> None:
    kernel = triton_metal.compile(ASTSource(scale, TYPES, {"BLOCK": 64}), options={"num_warps": 2})
    metadata = kernel.metadata
    assert (metadata.num_warps, metadata.num_ctas, metadata.shared, metadata.warp_size) == (
        2,
        1,
        0,
        32,
    )
    assert metadata.target == driver.active.get_current_target()
    assert (metadata.name, kernel.name, metadata.threads) == ("scale", "scale", 64)
    assert metadata.hash == kernel.hash == metadata._asdict()["hash"]
    assert {"args", "num_stages", "cluster_dims"} <= set(metadata._fields)
    assert kernel.packed_metadata == (2, 1, 0)
    assert (kernel.n_regs, kernel.n_spills) == (NOMINAL_REGISTERS, 0)
    assert kernel.n_max_threads >= 64
    assert json.loads(kernel.kernel)["metal"] == kernel.asm["metal"]
    with pytest.raises(AttributeError, match="no 'registers'"):
        _ = metadata.registers


def test_a_compiled_kernel_can_be_pickled() -> None:
    kernel = triton_metal.compile(ASTSource(scale, TYPES, {"BLOCK": 64}))
    kernel.src.fn = None
    other = pickle.loads(pickle.dumps(kernel))
    x, y = torch.ones(64), torch.zeros(64)
    other.src.fn = scale
    other[(1,)](x, y, 64, 3.0, 64)
    assert other.hash == kernel.hash
    assert torch.equal(y, x * 3)


def test_ir_in_a_file_is_compiled(tmp_path: Path) -> None:
    text = triton_metal.compile(ASTSource(scale, TYPES, {"BLOCK": 64})).asm["ttir"]
    path = tmp_path / "scale.ttir"
    path.write_text(text)
    source = IRSource(path)
    assert source.name == "@scale"
    assert list(source.signature.values())[:2] == ["*fp32", "*fp32"]
    kernel = triton_metal.compile(str(path))
    x, y = torch.ones(64), torch.zeros(64)
    kernel[(1,)](x, y, 64, 3.0)
    assert torch.equal(y, x * 3)
    with pytest.raises(ValueError, match=r"its name ends in \.ttir"):
        triton_metal.compile(str(tmp_path / "scale.ptx"))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"signature": {0: "*fp32"}}, TypeError, "Signature keys must be string"),
        ({"signature": {"x": "*fp32"}}, TypeError, "the parameter y has neither a type"),
        ({"constexprs": {}}, TypeError, "the constant BLOCK has no value"),
        ({"options": {"num_warps": 3}}, AssertionError, "num_warps is 3"),
        ({"options": {"num_warps": 64}}, triton_metal.OutOfResources, "threads, Required: 2048"),
        ({"target": "metal"}, TypeError, "it must be a GPUTarget"),
        ({"target": GPUTarget("cuda", 90, 32)}, RuntimeError, "0 compatible backends"),
    ],
)
def test_what_cannot_be_compiled_is_refused(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"signature": TYPES, "constexprs": {"BLOCK": 64}} | change
    options = {name: given.pop(name) for name in ("options", "target") if name in given}
    with pytest.raises(error, match=message):
        triton_metal.compile(ASTSource(scale, **given), **options)


def test_a_kernel_that_does_not_fit_says_how_much_it_needs() -> None:
    @triton_metal.jit
    def wide(x, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(x + i, tl.sort(tl.load(x + i)))

    config = triton_metal.set_kernel_config(shared_memory=64)
    try:
        assert config.shared_memory == 64
        with pytest.raises(triton_metal.OutOfResources) as caught:
            triton_metal.compile(
                ASTSource(wide, {"x": "*fp32", "BLOCK": "constexpr"}, {"BLOCK": 4096}),
                options={"num_warps": 4},
            )
    finally:
        triton_metal.set_kernel_config(shared_memory=None)
    error = caught.value
    assert isinstance(error, triton_metal.CompilationError)
    assert (error.limit, error.name) == (64, "shared memory")
    assert error.required > 64
    assert "test_runtime_interface.py" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.required, str(copy)) == (error.required, str(error))


def test_the_driver_answers_as_a_gpus_does() -> None:
    active = driver.active
    assert (active.get_current_device(), active.get_current_stream(0)) == (0, 0)
    properties = active.utils.get_device_properties(active.get_current_device())
    assert properties["max_shared_mem"] == max_shared_mem(0) == 32768
    assert properties["warpSize"] == 32
    assert properties["multiprocessor_count"] >= 1
    assert active.get_active_torch_device() == torch.device("cpu")
    assert active.map_python_to_cpp_type("*kfp16") == "device half *"
    interface = active.get_device_interface()
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    end.record()
    interface.synchronize()
    assert start.elapsed_time(end) > 0
    active.set_current_device(0)
    with pytest.raises(ValueError, match="there is no device 1"):
        active.set_current_device(1)
    assert make_backend(active.get_current_target()).hash().startswith("metal-host-")


def test_backends_are_found_by_name() -> None:
    from triton_metal.backends import backends

    before = driver.active
    host = backends["cpu"].driver()
    driver.set_active(host)
    try:
        assert driver.active is host
        assert backends["cpu"].driver.is_active()
        assert driver.active.get_current_target().arch == "host"
    finally:
        driver.reset_active()
    assert driver.active is before


@pytest.mark.own_route  # what is compiled for the host is counted
def test_run_and_warmup_are_the_launch_by_another_name() -> None:
    kernel, x = fresh_kernel(), np.zeros(4, np.float32)
    compiled = kernel.run(x, 4, grid=(1,), warmup=True)
    assert x.tolist() == [0] * 4
    assert kernel.run(x, 4, grid=lambda meta: (meta["BLOCK"] // 4,), warmup=False) is compiled
    assert x.tolist() == [1] * 4
    assert kernel.warmup(torch.float32, 4, grid=(1,)).hash == compiled.hash
    assert kernel.warmup(runtime_jit.MockTensor(torch.float32), 4, grid=(1,)).hash == compiled.hash
    assert len(kernel.device_caches[0][0]) == 1


def test_hooks_before_a_launch_get_its_arguments() -> None:
    kernel, x = fresh_kernel(), np.full(4, 7, np.float32)
    kernel.add_pre_run_hook(lambda *args, **kwargs: args[0].fill(kwargs["BLOCK"]))
    kernel[(1,)](x, BLOCK=4)
    assert x.tolist() == [5] * 4
    kernel.pre_run_hooks = []
    kernel[(1,)](x, BLOCK=4)
    assert x.tolist() == [6] * 4
    with pytest.raises(TypeError, match="a hook is a function"):
        kernel.add_pre_run_hook(3)


@pytest.mark.own_route  # what is compiled for the host is counted
def test_a_specialisation_is_saved_and_loaded() -> None:
    kernel, told = fresh_kernel(), []
    knobs = triton_metal.knobs
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **given: told.append(
            given["compile"]["specialization_data"]
        )
        before = kernel.warmup(torch.float32, 4, grid=(1,))
        kernel.device_caches[0][0].clear()
        loaded = kernel.preload(told[0])
        assert loaded.hash == before.hash
        assert told[1:] == told[:1]  # the hook sees what is loaded, too
        x = np.zeros(4, np.float32)
        assert kernel[(1,)](x, 4).hash == before.hash
        assert x.tolist() == [1] * 4
        assert len(told) == 2  # nothing was compiled again
        kernel.device_caches[0][0].clear()
        knobs.runtime.jit_cache_hook = lambda **given: True
        assert kernel.preload(told[0]) is None  # the hook declines it
    with pytest.raises(
        RuntimeError, match=r"Specialization data is for .*kernel but trying .*scale"
    ):
        scale.preload(told[0])
    with pytest.raises(RuntimeError, match="'backend': 'cuda'"):
        kernel.preload(re.sub(r'"backend": "\w+"', '"backend": "cuda"', told[0]))


def test_a_saved_string_that_is_the_name_of_a_dtype_stays_a_string() -> None:
    @triton_metal.jit
    def kernel(x, NAME: tl.constexpr, DTYPE: tl.constexpr):
        tl.static_assert(NAME == "fp32")
        tl.store(x, tl.full((), 3, DTYPE))

    told: list[str] = []
    knobs = triton_metal.knobs
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **given: told.append(
            given["compile"]["specialization_data"]
        )
        before = kernel.warmup(torch.float32, "fp32", tl.int32, grid=(1,))
    kernel.device_caches[0][0].clear()
    assert kernel.preload(told[0]).hash == before.hash


def test_kernels_get_the_name_that_repr_gives() -> None:
    @triton_metal.jit(
        repr=lambda special: f"fill_{special.constants['BLOCK']}.{special.signature['x']}"
    )
    def fill(x, BLOCK: tl.constexpr):
        tl.store(x + tl.arange(0, BLOCK), 1)

    x = np.zeros(8, np.float32)
    kernel = fill[(1,)](x, BLOCK=8)
    assert kernel.metadata.name == kernel.name == "fill_8__fp32"
    assert "@fill_8__fp32(" in kernel.asm["ttir"]
    assert x.sum() == 8


def test_a_source_can_be_replaced() -> None:
    @triton_metal.jit
    def inner(x):
        return x + 1

    @triton_metal.jit
    def outer(x):
        tl.store(x, inner(tl.load(x)))

    x, key = np.zeros(1, np.float32), outer.cache_key
    outer[(1,)](x)
    text = inner.src
    inner._unsafe_update_src(text.replace("+ 1", "+ 10"))
    outer[(1,)](x)
    assert x[0] == 11
    outer.hash = None
    assert outer.cache_key != key
    inner._unsafe_update_src(text)
    outer.hash = None
    outer[(1,)](x)
    assert (x[0], outer.cache_key) == (12, key)
    assert outer.src.startswith("def outer(x):")
    assert repr(outer).startswith("JITFunction(test_runtime")


def test_options_of_other_backends_are_taken_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triton_metal.hints, "_said", set())
    kernel, x = fresh_kernel(), np.zeros(4, np.float32)
    with pytest.warns(UserWarning, match=r"maxnreg=64 changes nothing on Metal"):
        kernel[(1,)](x, 4, maxnreg=64, waves_per_eu=2, num_ctas=1)
    assert x.tolist() == [1] * 4
    with pytest.raises(triton_metal.LaunchTypeError, match="has no parameter maxreg"):
        kernel[(1,)](x, 4, maxreg=64)


class Addressed:
    """An object with an address and a dtype."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.dtype = torch.float32

    def data_ptr(self) -> int:
        return self.array.ctypes.data


@pytest.mark.own_check(
    reason="a portable launch copies its arrays, and one of them does not tell its size"
)
@pytest.mark.own_route  # memory of the host
def test_anything_that_shows_its_memory_is_an_array() -> None:
    class Interface:
        def __init__(self, array: np.ndarray) -> None:
            self.__array_interface__ = array.__array_interface__
            self.array = array

    class Dlpack:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    kernel = fresh_kernel()
    for wrap in (Interface, Dlpack, Addressed):
        x = np.zeros(8, np.float32)
        kernel[(1,)](wrap(x), 8)
        assert x.tolist() == [1] * 8, wrap.__name__
    x = np.zeros(8, np.float32)
    for check in ("portable", "bounds", "all"):
        with (
            triton_metal.launch_options(check=check),
            pytest.raises(triton_metal.DeviceError, match="the size of buffer 0 is not known"),
        ):
            kernel[(1,)](Addressed(x), 8)
    assert not x.any()


def test_a_tensor_is_read_as_another_dtype() -> None:
    kernel = fresh_kernel()
    x = torch.zeros(4, dtype=torch.float32)
    view = triton_metal.reinterpret(x, tl.int32)
    assert str(view).startswith("TensorWrapper[int32](tensor")
    compiled = kernel[(1,)](view, 4)
    assert "i32" in compiled.signature["x"] or "int32" in compiled.signature["x"]
    assert x.view(torch.int32).tolist() == [1] * 4
    assert triton_metal.reinterpret(view, torch.float32) is x
    with pytest.raises(TypeError, match="Cannot reinterpret"):
        triton_metal.reinterpret(3, tl.int32)


def test_threads_compile_and_launch_at_once() -> None:
    kernels = [fresh_kernel() for _ in range(4)]
    start = threading.Barrier(8)

    def work(number: int) -> float:
        start.wait()
        x = np.zeros(64, np.float32)
        for block in (4, 8, 16, 32, 64):
            kernels[number % 4][(1,)](x, block)
        return float(x[:4].sum())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [20.0] * 8


@pytest.mark.own_route  # what is compiled for the host is counted
def test_kernels_are_compiled_in_an_executor() -> None:
    kernel = fresh_kernel()
    x = np.zeros(64, np.float32)
    with ThreadPoolExecutor(2) as pool, triton_metal.AsyncCompileMode(pool):
        futures = [kernel.warmup(x, block, grid=(1,)) for block in (4, 8, 4)]
        assert futures[0] is futures[2] or futures[2].hash == futures[0].hash
        kernel[(1,)](x, 4)
    assert all(future.asm["metal"] for future in futures)
    assert len(kernel.device_caches[0][0]) == 2
    assert x[:4].tolist() == [1] * 4

    @triton_metal.jit
    def wrong(BLOCK: tl.constexpr):
        tl.static_assert(BLOCK == 3)

    with pytest.raises(triton_metal.CompileTimeAssertionFailure):
        with ThreadPoolExecutor(2) as pool, triton_metal.AsyncCompileMode(pool):
            wrong.warmup(2, grid=(1,))
    assert triton_metal.runtime._async_compile.active_mode.get() is None


def test_a_compiled_kernel_refuses_elements_of_another_width() -> None:
    kernel = triton_metal.compile(ASTSource(scale, TYPES, {"BLOCK": 64}))
    x, wide = torch.ones(64), torch.zeros(64, dtype=torch.float64)
    with pytest.raises(triton_metal.LaunchTypeError, match=r"argument y .*float64, .* 4 bytes"):
        kernel[(1,)](x, wide, 64, 2.0, 64)
    assert not wide.any()
    integers = torch.zeros(64, dtype=torch.int32)  # numbers of the same width may be read as others
    kernel[(1,)](x, integers, 64, 2.0, 64)
    assert torch.equal(integers.view(torch.float32), 2 * x)


def test_a_lazy_dictionary_asks_once() -> None:
    asked: list[int] = []
    lazy = LazyDict({"a": 1})
    lazy.add(lambda value: asked.append(value) or {"b": value}, (2,))
    assert (lazy.get(), lazy.get(), asked) == ({"a": 1, "b": 2}, {"a": 1, "b": 2}, [2])


@pytest.mark.own_check(
    reason="a portable launch copies its arrays, and this one does not tell its size"
)
@pytest.mark.own_route  # memory of the host
def test_the_address_of_foreign_memory_is_enough() -> None:
    memory = (ctypes.c_float * 8)()
    compiled = triton_metal.compile(ASTSource(scale, TYPES, {"BLOCK": 8}))
    source = np.arange(8, dtype=np.float32)
    compiled[(1,)](source, ctypes.addressof(memory), 8, 2.0, 8)
    assert list(memory) == [2.0 * i for i in range(8)]
