"""Numbers of the microscaling formats (OCP MX) as torch tensors of their codes: E2M1 values and E8M0 scales."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

#: The magnitudes of E2M1 by their three low bits.
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
#: Where rounding to the nearest goes from one magnitude to the next; a tie goes to the even code.
_BETWEEN = tuple((low + high) / 2 for low, high in itertools.pairwise(_E2M1))
_BIAS, _NAN = 127, 255


class _Codes:
    """A tensor of codes, one in each byte."""

    data: torch.Tensor

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        """``data`` is a float32 tensor that is converted; ``size`` is the shape that `random` fills."""
        self.device = device
        if data is not None:
            if not isinstance(data, torch.Tensor):
                raise AssertionError(f"data must be a torch tensor, not {data!r}")
            self.device = data.device
            self.data = self._from_float(data)
        elif size is None:
            raise ValueError("Either parameter data or size must be provided")
        else:
            self.size = size if isinstance(size, tuple) else (size,)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    @staticmethod
    def _only_float32(dtype: torch.dtype) -> None:
        if dtype != torch.float32:
            raise AssertionError(f"codes are decoded to float32, not {dtype}")


class MXFP4Tensor(_Codes):
    """Values in E2M1: a sign, two bits of exponent and one of mantissa in the low bits of a uint8."""

    def random(self) -> MXFP4Tensor:
        """Fills the tensor with random codes."""
        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The values as float32."""
        self._only_float32(dtype)
        table = torch.tensor(_E2M1, dtype=dtype, device=self.data.device)
        magnitude = table[(self.data & 7).long()]
        return torch.where(self.data & 8 != 0, -magnitude, magnitude)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        # Infinities, NaN and what is too large become the largest magnitude.
        magnitude = torch.nan_to_num(values.abs(), nan=math.inf, posinf=math.inf)
        code = torch.zeros(values.shape, dtype=torch.uint8, device=values.device)
        for lower, between in enumerate(_BETWEEN):
            up = magnitude > between if lower % 2 == 0 else magnitude >= between
            code += up.to(torch.uint8)
        return code | (torch.signbit(values).to(torch.uint8) << 3)

    def to_packed_tensor(self, dim: int) -> torch.Tensor:
        """Two codes in each byte along a dimension, the first one in the low bits. An odd size is filled up with 0."""
        if not 0 <= dim < self.data.ndim:
            raise AssertionError(f"dim is {dim}, and the tensor has {self.data.ndim} dimensions")
        codes = self.data.movedim(dim, -1)
        if codes.shape[-1] % 2:
            codes = torch.nn.functional.pad(codes, (0, 1))
        return ((codes[..., 1::2] << 4) | codes[..., 0::2]).movedim(-1, dim).contiguous()

    def unpack_packed_tensor(
        self, packed_tensor: torch.Tensor, dim: int, original_shape: Any
    ) -> torch.Tensor:
        """The codes of a packed tensor, one in each byte."""
        packed = packed_tensor.movedim(dim, -1)
        codes = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)
        return codes[..., : original_shape[dim]].movedim(-1, dim).contiguous()


def fp8e8m0_to_float32(scale: torch.Tensor) -> torch.Tensor:
    """Scales in E8M0 as float32: 2 to the power of the code less 127; 255 is NaN."""
    codes = scale.view(torch.uint8)
    powers = torch.ldexp(torch.ones_like(codes, dtype=torch.float32), codes.int() - _BIAS)
    return powers.masked_fill(codes == _NAN, math.nan)


class MXScaleTensor(_Codes):
    """Scales in E8M0: powers of two."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Fills the tensor with random scales from ``low`` to ``high``, without NaN."""
        least = 0 if low is None else max(0, int(math.log2(low)) + _BIAS)
        most = _NAN - 1 if high is None else min(_NAN - 1, max(0, int(math.log2(high)) + _BIAS))
        if least > most:
            raise AssertionError(f"low is {low}, which is more than high, {high}")
        self.data = torch.randint(least, most + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: torch.dtype) -> torch.Tensor:
        """The scales as float32."""
        self._only_float32(dtype)
        return fp8e8m0_to_float32(self.data)

    def _from_float(self, values: torch.Tensor) -> torch.Tensor:
        # frexp's fraction is from 1/2 on, so that its exponent is one more than the power of two below the value.
        exponent = torch.frexp(values).exponent - 1 + _BIAS
        valid = torch.isfinite(values) & (values > 0)
        return torch.where(valid, exponent.clamp(0, _NAN - 1), _NAN).to(torch.uint8)
