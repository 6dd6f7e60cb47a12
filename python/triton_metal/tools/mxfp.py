"""The numbers of the OCP microscaling formats as torch tensors, on the host: fp4 (e2m1), and scales (e8m0)."""

from __future__ import annotations

import itertools
from typing import Any

import torch

# The magnitudes of fp4 by their code, and the middles between them.
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_MIDDLES = tuple((a + b) / 2 for a, b in itertools.pairwise(_MAGNITUDES))

_BIAS = 127
_NAN_SCALE = 255


class _Packed:
    """Codes of one byte each, made from numbers or at random."""

    data: torch.Tensor

    def __init__(
        self,
        data: torch.Tensor | None = None,
        size: int | tuple[int, ...] | None = None,
        device: Any = None,
    ) -> None:
        """Converts `data` (float32), or prepares `random` for a `size`. Raises ValueError if neither is given."""
        self.device = device
        if data is not None:
            if not isinstance(data, torch.Tensor):
                raise AssertionError(f"data must be a torch tensor, not {type(data).__name__}")
            self.device = data.device
            self.data = self._from_float(data)
        elif size is not None:
            self.size = size if isinstance(size, tuple) else (size,)
        else:
            raise ValueError(f"{type(self).__name__} needs data or a size")

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class MXFP4Tensor(_Packed):
    """Numbers of fp4 (e2m1), one in each byte of `data`: a sign, two bits of exponent, one of mantissa."""

    def random(self) -> MXFP4Tensor:
        """Draws every code with the same probability."""
        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The numbers as float32, which is the only dtype that there is."""
        if dtype != torch.float32:
            raise AssertionError(f"fp4 converts to torch.float32 only, not to {dtype}")
        magnitudes = torch.tensor(_MAGNITUDES, device=self.data.device)[(self.data & 7).long()]
        return torch.where(self.data & 8 != 0, -magnitudes, magnitudes)

    def to_packed_tensor(self, dim: int) -> torch.Tensor:
        """Two numbers in each byte, neighbours along `dim`, the first in the low bits. An odd one out gets a zero."""
        if not 0 <= dim < self.data.ndim:
            raise AssertionError(
                f"dim is {dim}; a tensor of {self.data.ndim} dimensions is packed along one of them"
            )
        low = self.data[(slice(None),) * dim + (slice(0, None, 2),)]
        high = torch.zeros_like(low)
        odd = self.data[(slice(None),) * dim + (slice(1, None, 2),)]
        high.narrow(dim, 0, odd.shape[dim]).copy_(odd)
        return high << 4 | low

    def unpack_packed_tensor(
        self, packed_tensor: torch.Tensor, dim: int, original_shape: Any
    ) -> torch.Tensor:
        """What `to_packed_tensor(dim)` made of a tensor of `original_shape`, one number in each byte again."""
        pairs = torch.stack((packed_tensor & 15, packed_tensor >> 4), dim + 1)
        return pairs.flatten(dim, dim + 1).narrow(dim, 0, original_shape[dim])

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        """The nearest codes, ties to even. What is too large, infinite or NaN becomes the largest magnitude."""
        middles = torch.tensor(_MIDDLES, dtype=values.dtype, device=values.device)
        magnitudes = values.abs().nan_to_num(nan=_MAGNITUDES[-1]).contiguous()
        below = torch.bucketize(magnitudes, middles)
        at_most = torch.bucketize(magnitudes, middles, right=True)
        # The two differ in the middle of two codes: the even one of them is it.
        codes = torch.where(below % 2 == 0, below, at_most)
        return (codes + 8 * torch.signbit(values)).to(torch.uint8)


def fp8e8m0_to_float32(scale: torch.Tensor) -> torch.Tensor:
    """The powers of 2 that bytes of e8m0 mean, as float32; 255 is NaN."""
    codes = scale.view(torch.uint8)
    powers = torch.ldexp(torch.ones_like(codes, dtype=torch.float32), codes.to(torch.int32) - _BIAS)
    return powers.masked_fill(codes == _NAN_SCALE, float("nan"))


class MXScaleTensor(_Packed):
    """Scales of e8m0, one in each byte of `data`: powers of 2 from 2**-127 to 2**127, and NaN."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Draws powers of 2 from `low` to `high`, both included, and no NaN."""
        first = 0 if low is None else max(0, _exponent(low) + _BIAS)
        last = 254 if high is None else min(254, max(0, _exponent(high) + _BIAS))
        if first > last:
            raise AssertionError(f"low is {low!r}, and high is {high!r}")
        self.data = torch.randint(first, last + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The scales as float32, which is the only dtype that there is."""
        if dtype != torch.float32:
            raise AssertionError(f"e8m0 converts to torch.float32 only, not to {dtype}")
        return fp8e8m0_to_float32(self.data)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        """The powers of 2 at or below the numbers. What is not positive and finite becomes NaN."""
        valid = torch.isfinite(values) & (values > 0)
        exponents = torch.frexp(values.where(valid, torch.ones_like(values)))[1] - 1
        codes = (exponents + _BIAS).clamp(0, 254)
        return codes.where(valid, torch.full_like(codes, _NAN_SCALE)).to(torch.uint8)


def _exponent(value: float) -> int:
    """The exponent of a number's power of 2, toward zero."""
    return int(torch.log2(torch.tensor(float(value))))
