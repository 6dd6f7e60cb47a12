"""What the launcher reads of a tensor on "mps", which has no address here."""

from __future__ import annotations

import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal.testing import contract_device

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.own_route


class MpsTensor:
    """A CPU tensor that answers as one on mps does."""

    is_cpu = False
    is_mps = True

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.dtype = tensor.dtype
        self.data_ptr = tensor.data_ptr
        self.storage_offset = tensor.storage_offset
        self.element_size = tensor.element_size
        self.untyped_storage = tensor.untyped_storage
        self.shape = tensor.shape
        self.stride = tensor.stride


@triton_metal.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i))


@pytest.mark.parametrize(
    ("dtype", "offset", "vector"),
    [("float32", 0, True), ("float32", 4, True), ("float32", 1, False), ("float32", 6, False)]
    + [
        ("float16", 8, True),
        ("float16", 4, False),
        ("int64", 2, True),
        ("int8", 16, True),
        ("int8", 8, False),
    ],
)
def test_wide_accesses_where_the_storage_offset_allows_them(
    dtype: str, offset: int, vector: bool
) -> None:
    """Metal's buffers begin at 16 bytes, and PyTorch binds a storage at the tensor's offset."""
    x = MpsTensor(torch.zeros(2048, dtype=getattr(torch, dtype))[offset : offset + 1024])
    out = MpsTensor(torch.zeros(1024, dtype=getattr(torch, dtype)))
    kernel = copy_kernel.warmup(x, out, BLOCK=1024)
    types = {"float32": "float4", "float16": "uint4", "int64": "long2", "int8": "int2"}
    loads = f"*(device const {types[dtype]} *)(x_ptr"
    assert (loads in kernel.asm["metal"]) == vector, kernel.asm["metal"]


def test_a_tensor_with_the_negative_bit_is_refused() -> None:
    """PyTorch binds the memory behind it, where its numbers have the other sign."""
    x, out = torch.ones(1024), torch.zeros(1024)
    with contract_device("mps"):
        for arguments, name in (((torch._neg_view(x), out), "x_ptr"), ((x, torch._neg_view(out)), "out_ptr")):  # fmt: skip
            with pytest.raises(triton_metal.LaunchValueError, match=rf"argument {name} is a tensor with the negative bit.*resolve_neg\(\)"):  # fmt: skip
                copy_kernel[(1,)](*arguments, BLOCK=1024)
        copy_kernel[(1,)](torch._neg_view(x).resolve_neg(), out, BLOCK=1024)
    assert (out == -1).all()
