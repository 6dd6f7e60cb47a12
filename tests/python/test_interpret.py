"""Programs that run with TRITON_INTERPRET=1: their kernels run on the host device, and every access is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import host_copies, knobs
from triton_metal.cost import counting
from triton_metal.runtime import interpreter

torch = pytest.importorskip("torch")


@pytest.fixture
def interpreted() -> Iterator[Callable[..., Any]]:
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        yield triton.jit


def doubled(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def unmasked(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def asserted(x, out, n, BLOCK: tl.constexpr):
    tl.device_assert(tl.load(x) == 0, "x begins with 0")


def test_kernels_are_interpreted_functions_and_compute(interpreted: Callable[..., Any]) -> None:
    kernel = interpreted(doubled)
    assert isinstance(kernel, interpreter.InterpretedFunction)
    x, out = torch.arange(60.0), torch.zeros(60)
    kernel[lambda meta: (triton.cdiv(60, meta["BLOCK"]),)](x, out, 60, BLOCK=32)
    assert torch.equal(out, 2 * x)
    kernel.run(out, x, 60, 32, grid=(2,), warmup=False)
    assert torch.equal(x, 2 * out)
    compiled = kernel.run(x, out, 60, 32, grid=(2,), warmup=True)
    assert "kernel" in compiled.asm["metal"]


def test_other_kernels_are_not(interpreted: Callable[..., Any]) -> None:
    with knobs.runtime.scope():
        knobs.runtime.interpret = False
        kernel = triton.jit(doubled)
    assert not isinstance(kernel, interpreter.InterpretedFunction)


def test_a_block_that_counts_has_its_launches(interpreted: Callable[..., Any]) -> None:
    kernel = interpreted(doubled)
    x, out = torch.arange(60.0), torch.zeros(60)
    with triton.launch_options(count=True) as log, counting() as counted:
        kernel[(2,)](x, out, 60, BLOCK=32)
    assert [launch.kernel.name for launch in log.launches] == ["doubled"]
    assert [work.programs for work in counted.works] == [2]


def test_an_access_outside_of_an_array_is_an_error(interpreted: Callable[..., Any]) -> None:
    with pytest.raises(triton.DeviceError, match="a load of 4 bytes at byte 240 of 'x'"):
        interpreted(unmasked)[(1,)](torch.zeros(60), torch.zeros(60), 60, BLOCK=64)


def test_assertions_are_checked(interpreted: Callable[..., Any]) -> None:
    x = torch.ones(4)
    with pytest.raises(triton.DeviceError, match="x begins with 0"):
        interpreted(asserted)[(1,)](x, x, 4, BLOCK=4)


def test_it_goes_with_autotune_and_heuristics(interpreted: Callable[..., Any]) -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], ["n"])
    kernel = tuned(interpreted(doubled))
    x, out = torch.arange(60.0), torch.zeros(60)
    kernel[lambda meta: (triton.cdiv(60, meta["BLOCK"]),)](x, out, 60)
    assert torch.equal(out, 2 * x)
    chosen = triton.heuristics({"BLOCK": lambda args: 64})(interpreted(doubled))
    chosen[(1,)](out, x, 60)
    assert torch.equal(x, 2 * out)


def test_tensors_of_a_gpu_are_copied_and_keep_sharing_memory(
    interpreted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With CPU tensors in the place of a GPU's, which are copied as those are."""
    moved: list[int] = []

    class Storage:
        def __init__(self, storage: Any) -> None:
            self.data_ptr, self.storage = storage.data_ptr, storage

        def cpu(self) -> Any:
            moved.append(self.storage.nbytes())
            return self.storage.clone()

        def copy_(self, other: Any) -> None:
            self.storage.copy_(other)

    class Remote(torch.Tensor):
        def untyped_storage(self) -> Any:
            return Storage(torch.Tensor.untyped_storage(self))

        def new_empty(self, *sizes: Any, device: str) -> Any:
            return torch.empty(*sizes, dtype=self.dtype, device=device)

    monkeypatch.setattr(host_copies, "is_elsewhere", lambda value: isinstance(value, Remote))
    memory = torch.arange(64.0)
    x, out = memory[:32].as_subclass(Remote), memory[32:].as_subclass(Remote)
    interpreted(doubled)[(1,)](x, out, 32, BLOCK=32)
    assert moved == [256]
    assert memory[:32].tolist() == [float(i) for i in range(32)]
    assert memory[32:].tolist() == [2.0 * i for i in range(32)]


def test_there_are_no_handles_of_single_tensors() -> None:
    with pytest.raises(triton.runtime.InterpreterError, match="the host device runs the whole"):
        interpreter.TensorHandle(None, None)
    with pytest.raises(AttributeError, match="does not run the operations of a kernel one by one"):
        interpreter.interpreter_builder
    with pytest.raises(ImportError):
        from triton_metal.runtime.interpreter import GridExecutor  # noqa: F401
