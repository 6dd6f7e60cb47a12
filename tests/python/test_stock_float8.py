"""Floats of 8 bits in kernels of stock Triton, on torch's CPU tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from float8_model import FORMATS
from stock_support import MARKS, metal_backend  # noqa: F401 - a fixture

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

pytestmark = MARKS


@triton.jit
def convert(x, out, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(out + i, value.to(out.dtype.element_ty, fp_downcast_rounding=ROUNDING))


def launch(x: Any, out: Any, rounding: str | None = None) -> None:
    convert[(x.shape[0] // 1024,)](x, out, ROUNDING=rounding, BLOCK=1024)


@pytest.mark.parametrize("to", ["float16", "float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", FORMATS)
def test_each_code_is_widened(name: str, to: str) -> None:
    x = torch.arange(1024, dtype=torch.int32).to(torch.uint8)
    out = torch.zeros(1024, dtype=getattr(torch, to))
    launch(triton.reinterpret(x, getattr(tl, name)), out)
    expected = FORMATS[name].values()[x.numpy()]
    np.testing.assert_array_equal(out.double().numpy(), expected)


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", FORMATS)
def test_floats_are_narrowed(name: str, source: str, rounding: str) -> None:
    format = FORMATS[name]
    rng = np.random.default_rng(0)
    near = rng.normal(size=1 << 14) * np.exp2(rng.integers(-format.bias - 4, 18, 1 << 14))
    ties = format.ties().astype(np.float64)
    # Doubles beside the ties, which no float tells from them.
    doubles = [np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)]
    x = np.concatenate([near, ties, *doubles, [np.inf, -np.inf, np.nan, 1e300, 1e-300]])
    x = np.concatenate([x, np.zeros(-x.size % 1024)])
    tensor = torch.tensor(x).to(getattr(torch, source))
    out = torch.zeros(x.size, dtype=torch.uint8)
    launch(tensor, triton.reinterpret(out, getattr(tl, name)), rounding)
    wide = tensor.double().numpy()
    format.assert_codes(out.numpy(), format.encode(wide, rounding), wide)


@triton.jit
def scaled(a, scale, b, out, S: tl.constexpr, K: tl.constexpr):
    i, k, g = tl.arange(0, S), tl.arange(0, K), tl.arange(0, K // 16)
    x = tl.load(a + i[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    y = tl.load(b + k[:, None] * S + i[None, :])
    s = tl.load(scale + i[:, None] * (K // 16) + g[None, :])
    tl.store(out + i[:, None] * S + i[None, :], tl.dot_scaled(x, s, "e2m1", y, None, "e4m3"))


def test_nvfp4() -> None:
    s, k = 32, 64
    rng = np.random.default_rng(1)
    code = rng.integers(0, 16, (s, k), dtype=np.uint8)
    a = torch.tensor(code[:, ::2] | (code[:, 1::2] << 4))
    scale = torch.tensor(rng.integers(0x28, 0x48, (s, k // 16), dtype=np.uint8))
    b = torch.tensor(rng.integers(0x28, 0x48, (k, s), dtype=np.uint8))
    out = torch.zeros(s, s)
    scaled[(1,)](
        a, scale.view(torch.float8_e4m3fn), b.view(torch.float8_e4m3fn), out, S=s, K=k
    )  # fmt: skip
    e2m1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = FORMATS["float8e4nv"].values()
    x = np.concatenate([e2m1, -e2m1])[code] * np.repeat(values[scale.numpy()], 16, axis=1)
    y = values[b.numpy()]
    bound = np.abs(x) @ np.abs(y) * (k + 1) * 2.0**-24
    assert (np.abs(out.numpy() - x @ y) <= bound).all()
