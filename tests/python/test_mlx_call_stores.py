"""triton_metal.mlx.call: which stores write an output wholly, also through descriptors and other pointers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import LaunchTypeError, LaunchValueError, coverage
from triton_metal.testing import contract_device
from triton_metal.tools.tensor_descriptor import TensorDescriptor

mx = pytest.importorskip("mlx.core")
from triton_metal.mlx import graph  # noqa: E402
from triton_metal.mlx.functional import call  # noqa: E402

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("launch_options keeps launches away from the routes"),
]


@pytest.fixture(params=["contract", "contract without host", "host"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both ways of `call`, and who runs the kernel that tells what is written: the host device, or MLX alone."""
    if request.param == "host":
        yield
        return
    if request.param == "contract without host":
        monkeypatch.setattr(coverage._native, "host_device_problem", lambda: "not installed")
    with contract_device("mlx"):
        yield


@triton_metal.jit
def copy_block_kernel(x_ptr, out_ptr, n, OFFSET: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])
    out = tl.make_tensor_descriptor(out_ptr, [n], [1], [BLOCK])
    at = tl.program_id(0) * BLOCK
    out.store([at + OFFSET], x.load([at + OFFSET]))


def test_descriptors_in_the_kernel_write_all_or_not() -> None:
    x = mx.arange(100, dtype=mx.int32) - 50  # one of them is 0
    outputs = {"out_ptr": x}
    copied = call(copy_block_kernel, x, 100, 0, 64, grid=(2,), outputs=outputs)
    assert copied.tolist() == x.tolist()
    for offset, grid in ((0, 1), (1, 2)):
        with pytest.raises(LaunchValueError, match="may not write all of out_ptr"):
            call(copy_block_kernel, x, 100, offset, 64, grid=(grid,), outputs=outputs)


@triton_metal.jit
def masked_by_block_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK])
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i + 5, mask=x.load([0]) == 0)


@triton_metal.jit
def low_bytes_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr.to(tl.pointer_type(tl.uint8)) + 4 * i, i.to(tl.uint8))


@triton_metal.jit
def all_bits_kernel(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr.to(tl.pointer_type(tl.uint16)) + i, i.to(tl.uint16))


def test_stores_of_parts_of_elements_are_no_whole_output() -> None:
    x = mx.zeros(16, dtype=mx.int32)
    outputs = {"out_ptr": x}
    with pytest.raises(LaunchValueError, match="may not write all of out_ptr"):
        call(masked_by_block_kernel, x, 16, 16, grid=(1,), outputs=outputs)
    with pytest.raises(LaunchValueError, match="may not write all of out_ptr"):
        call(low_bytes_kernel, 16, grid=(1,), outputs=outputs)
    # Two stores of 16 bits are an element.
    words = call(all_bits_kernel, 32, grid=(1,), outputs=outputs)
    assert np.array(words).view(np.uint16).tolist() == list(range(32))


@triton_metal.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.assume(n > 0)
    tl.debug_barrier()
    tl.store(out_ptr + i, tl.full((BLOCK,), 1, out_ptr.dtype.element_ty), i < n)


@pytest.mark.parametrize(
    "dtype",
    ["bool_", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
    + ["float16", "bfloat16", "float32"],
)
def test_elements_of_every_type(dtype: str) -> None:
    outputs = {"out_ptr": ((33,), getattr(mx, dtype))}
    filled = call(fill_kernel, 33, 64, grid=(1,), outputs=outputs)
    assert filled.tolist() == [1] * 33
    with pytest.raises(LaunchValueError, match="may not write all of out_ptr"):
        call(fill_kernel, 32, 64, grid=(1,), outputs=outputs)


@triton_metal.jit
def scaled_kernel(x, scale, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    at = (row + tl.arange(0, ROWS))[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + at, x.load([row, 0]) * scale)


@triton_metal.jit
def scaled_pair_kernel(pair, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    at = (row + tl.arange(0, ROWS))[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + at, pair[0].load([row, 0]) * pair[1])


@pytest.mark.parametrize("form", [call, lambda kernel, *a, **b: graph(kernel)(*a, **b)])
def test_descriptors_are_arguments(form: Any) -> None:
    x = mx.arange(64 * 16, dtype=mx.float32).reshape(64, 16) + 1

    def scaled(x: Any) -> Any:
        block = TensorDescriptor.from_tensor(x, [16, 16])
        return form(scaled_kernel, block, 3.0, 16, 16, grid=(4,), outputs={"out_ptr": x})

    assert mx.array_equal(scaled(x), 3 * x)
    pair = TensorDescriptor.from_tensor(x, [16, 16]), 2.0
    doubled = form(scaled_pair_kernel, pair, 16, 16, grid=(4,), outputs={"out_ptr": x})
    assert mx.array_equal(doubled, 2 * x)
    if form is not call:
        gradient = mx.grad(lambda x: (scaled(x) ** 2).sum())(x)
        assert mx.array_equal(gradient, 18 * x)
        assert mx.array_equal(mx.vmap(scaled)(mx.stack([x, 2 * x])), mx.stack([3 * x, 6 * x]))
    foreign = TensorDescriptor.from_tensor(np.zeros((64, 16), np.float32), [16, 16])
    with pytest.raises(LaunchTypeError, match="argument x is a ndarray, not an array of MLX"):
        form(scaled_kernel, foreign, 3.0, 16, 16, grid=(4,), outputs={"out_ptr": x})


def test_what_is_no_kernel_and_what_is_no_output() -> None:
    with pytest.raises(
        LaunchTypeError, match=r"call\(\) takes a @triton_metal.jit kernel, also with"
    ):
        call(len, 33, grid=(1,), outputs={"out_ptr": ((33,), mx.float32)})
    with pytest.raises(LaunchTypeError, match=r"output pair\.0 is an element of a tuple"):
        call(scaled_pair_kernel, 16, 16, grid=(1,), outputs={"pair.0": ((33,), mx.float32)})
