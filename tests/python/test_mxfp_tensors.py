"""triton_metal.tools.mxfp: the codes of fp4 and of its scales, against their definition and against stock Triton."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from triton_metal.tools import mxfp  # noqa: E402

MAGNITUDES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def stock() -> Any:
    spec = importlib.util.find_spec("triton")
    if spec is None:
        pytest.skip("stock Triton is not installed")
    from triton.tools import mxfp as module

    return module


def test_every_code_of_fp4_comes_back() -> None:
    codes = mxfp.MXFP4Tensor(size=16)
    codes.data = torch.arange(16, dtype=torch.uint8)
    values = codes.to(torch.float32)
    assert values.tolist() == MAGNITUDES + [-x for x in MAGNITUDES]
    assert torch.equal(mxfp.MXFP4Tensor(data=values).data, codes.data)


def test_fp4_rounds_to_nearest_even() -> None:
    values = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 0.26, 4.99, 7.0, float("inf")])
    expected = [0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0, 0.5, 4.0, 6.0, 6.0]
    both = torch.cat([values, -values])
    result = mxfp.MXFP4Tensor(data=both).to(torch.float32)
    assert result.tolist() == expected + [-x for x in expected]


@pytest.mark.parametrize("shape", [(4, 6), (3, 5), (1, 7, 2)])
@pytest.mark.parametrize("dim", [0, 1])
def test_packing_is_undone(shape: tuple[int, ...], dim: int) -> None:
    x = mxfp.MXFP4Tensor(size=shape).random()
    packed = x.to_packed_tensor(dim)
    assert packed.shape[dim] == (shape[dim] + 1) // 2
    assert torch.equal(x.unpack_packed_tensor(packed, dim, shape), x.data)
    assert torch.equal(packed.select(dim, 0) & 15, x.data.select(dim, 0))


def test_scales_are_powers_of_2() -> None:
    values = torch.tensor([2.0**-127, 0.3, 1.0, 3.9, 2.0**127, 0.0, -1.0, float("nan")])
    scales = mxfp.MXScaleTensor(data=values)
    assert scales.data.tolist() == [0, 125, 127, 128, 254, 255, 255, 255]
    back = scales.to(torch.float32)
    assert back[:5].tolist() == [2.0**-127, 0.25, 1.0, 2.0, 2.0**127]
    assert back[5:].isnan().all()
    drawn = mxfp.MXScaleTensor(size=1000).random(low=0.5, high=8.0).to(torch.float32)
    assert set(drawn.tolist()) == {0.5, 1.0, 2.0, 4.0, 8.0}


def test_stock_triton_gives_the_same() -> None:
    module = stock()
    values = torch.randn(5000, generator=torch.Generator().manual_seed(0)) * 3
    assert torch.equal(mxfp.MXFP4Tensor(data=values).data, module.MXFP4Tensor(data=values).data)
    scales = values.abs() ** 8
    assert torch.equal(mxfp.MXScaleTensor(data=scales).data, module.MXScaleTensor(data=scales).data)
    codes = torch.arange(256, dtype=torch.uint8)
    ours, theirs = mxfp.fp8e8m0_to_float32(codes), module.fp8e8m0_to_float32(codes)
    assert torch.equal(ours.nan_to_num(1e38), theirs.nan_to_num(1e38))
    assert ours.isnan().nonzero().tolist() == theirs.isnan().nonzero().tolist() == [[255]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: mxfp.MXFP4Tensor(), ValueError, "needs data or a size"),
        (lambda: mxfp.MXFP4Tensor(data=[1.0]), AssertionError, "not list"),
        (lambda: mxfp.MXFP4Tensor(size=4).random().to(torch.float16), AssertionError, "float32"),
        (lambda: mxfp.MXFP4Tensor(size=4).random().to_packed_tensor(1), AssertionError, "dim is 1"),
        (lambda: mxfp.MXScaleTensor(size=4).random(4.0, 1.0), AssertionError, "low is 4.0"),
    ],
)
def test_bad_input_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
