"""Memory that arguments of stock Triton's kernels share, and what their launches refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from triton_metal import CacheError, DeviceError, LaunchTypeError, LaunchValueError  # noqa: E402
from triton_metal.backends.metal.launch import MetalFunction, overlapping, region_of  # noqa: E402
from triton_metal_backend.compiler import make_binary  # noqa: E402

from stock_support import MARKS, metal_backend  # noqa: E402, F401 - a fixture

pytestmark = MARKS


class Pointer:
    """An object of which only the address is known."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor, self.dtype = tensor, tensor.dtype

    def data_ptr(self) -> int:
        return self.tensor.data_ptr()


OTHERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda tensor: tensor,
    "numpy": lambda tensor: torch.from_numpy(tensor.numpy()),
    "dlpack": torch.from_dlpack,
    "address": Pointer,
}


@triton.jit
def reversed_sums(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    numbers = tl.load(x + i)
    tl.store(y + BLOCK - 1 - i, numbers + tl.sum(numbers, 0))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("other", OTHERS)
def test_memory_is_shared_through_any_object(other: str, compiled: bool) -> None:
    x = torch.arange(32768, dtype=torch.float32)
    expected = (x + x.sum()).flip(0)
    if compiled:
        kernel = reversed_sums.warmup(x, x.clone(), BLOCK=32768, num_warps=4, grid=(1, 1, 1))
        kernel[(1, 1, 1)](x, OTHERS[other](x), 32768)
    else:
        reversed_sums[(1,)](x, OTHERS[other](x), BLOCK=32768, num_warps=4)
    assert torch.allclose(x, expected, rtol=1e-6)


@triton.jit
def two_copies(a, b, c, d, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    first = tl.load(a + i)
    tl.store(b + BLOCK - 1 - i, first)
    tl.store(d + i, tl.load(c + i))


def test_one_group_of_sharing_arguments_does_not_undo_another() -> None:
    """a and b share memory, of which only an address is known of b; c and d are one tensor."""
    a, c = torch.arange(32768, dtype=torch.float32), torch.zeros(32768)
    expected = a.flip(0)
    two_copies[(1,)](a, Pointer(a), c, c, BLOCK=32768, num_warps=4)
    assert torch.equal(a, expected)


def test_regions_that_overlap_are_grouped() -> None:
    assert overlapping([(0, 4), (4, 8), (8, 8)]) == []
    assert overlapping([(16, 20), (0, 4), (3, 8), (7, 9), (18, 19), (5, 5)]) == [[1, 2, 3], [0, 4]]
    numbers = torch.arange(64, dtype=torch.int32).numpy()
    first = numbers.__array_interface__["data"][0]
    for view, region in (
        (numbers, (0, 256)),
        (numbers[4:8], (16, 32)),
        (numbers[::-1], (0, 256)),
        (numbers.reshape(8, 8)[::-2, 1:3], (36, 236)),
        (numbers[:0], (0, 0)),
    ):
        begin, end = region_of(view.__array_interface__)
        assert (begin - first, end - first) == region


class Seen(TorchDispatchMode):
    """Notes the operations of PyTorch that run under it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_launch_runs_no_operations_of_pytorch() -> None:
    x, y = torch.arange(64, dtype=torch.float32), torch.zeros(64)
    with Seen() as seen:
        reversed_sums[(1,)](x, y, BLOCK=64)
    assert seen.names == []
    assert torch.equal(y, (x + x.sum()).flip(0))


@triton.jit
def fill(out, value, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), value)


def test_empty_memory_is_never_written() -> None:
    with pytest.raises(DeviceError, match="memory that it was not given"):
        fill[(1,)](torch.zeros(0), 1.0, BLOCK=64)
    freed = torch.ones(64)
    freed.untyped_storage().resize_(0)
    with pytest.raises(LaunchValueError, match="argument out is a tensor without storage"):
        fill[(1,)](freed, 1.0, BLOCK=64)


def test_a_compiled_kernel_takes_its_own_arguments_only() -> None:
    out = torch.zeros(64, dtype=torch.int64)
    kernel = fill.warmup(out, 5, BLOCK=64, grid=(1,))
    for value in (2**31, 2**32 - 1, -(2**31) - 1):
        with pytest.raises(LaunchValueError, match=f"value is {value}, .* its type i32"):
            kernel[(1, 1, 1)](out, value, 64)
    kernel[(1, 1, 1)](out, -(2**31), 64)
    assert out.tolist() == [-(2**31)] * 64
    for arguments in ((out,), (out, 5, 64, 1)):
        with pytest.raises(LaunchTypeError, match=r"fill takes 2 arguments .*out, value"):
            kernel[(1, 1, 1)](*arguments)


def test_what_stock_triton_offers_to_other_backends_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = torch.zeros(64)
    with pytest.raises(CacheError, match="the binary of a kernel in Triton's cache is damaged"):
        MetalFunction.load(b'{"ttir": ""}')
    with monkeypatch.context() as context:
        context.setenv("TRITON_STORE_BINARY_ONLY", "1")
        with pytest.raises(ValueError, match="TRITON_STORE_BINARY_ONLY leaves nothing"):
            fill[(1,)](out, 1.0, BLOCK=32)
    # Stock Triton reads None from a file of TRITON_OVERRIDE_DIR that it does not know.
    with pytest.raises(ValueError, match=r"TRITON_KERNEL_OVERRIDE takes a kernel's \.ttir"):
        make_binary(None, {})
