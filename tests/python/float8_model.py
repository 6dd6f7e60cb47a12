"""What conversions to and from floats of 8 bits give: tables, in NumPy's float64."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Format:
    """One of Triton's floats of 8 bits; ``numpy`` is the name of ml_dtypes, which lacks one of them."""

    name: str
    numpy: str | None
    mantissa: int
    bias: int
    largest: int
    nan: int | None
    infinity: int | None = None

    @property
    def has_negative_zero(self) -> bool:
        return self.nan != 0x80

    def dtype(self) -> np.dtype:
        return np.dtype(getattr(ml_dtypes, self.numpy) if self.numpy else np.uint8)

    def values(self) -> np.ndarray:
        """The number of each of the 256 codes."""
        code = np.arange(256)
        exponent, fraction = (code & 0x7F) >> self.mantissa, code & ((1 << self.mantissa) - 1)
        digits = np.where(exponent > 0, fraction + (1 << self.mantissa), fraction)
        value = np.ldexp(
            digits.astype(np.float64), np.maximum(exponent, 1) - self.bias - self.mantissa
        )
        value = np.where(code & 0x80, -value, value)
        magnitude = code & 0x7F
        if self.infinity is not None:
            value[magnitude == self.infinity] = np.copysign(
                np.inf, value[magnitude == self.infinity]
            )
            value[magnitude > self.infinity] = np.nan
        elif self.nan is not None:
            value[code == self.nan if self.nan == 0x80 else magnitude == self.nan] = np.nan
        return value

    def encode(self, x: np.ndarray, rounding: str = "rtne") -> np.ndarray:
        """The codes of numbers: to nearest, all that is too large becomes the largest number."""
        with np.errstate(invalid="ignore"):
            x = np.asarray(x, np.float64)
        magnitudes = self.values()[: self.largest + 1]
        magnitude = np.abs(x)
        below = np.clip(np.searchsorted(magnitudes, magnitude, side="right") - 1, 0, self.largest)
        code = below
        if rounding == "rtne":
            above = np.minimum(below + 1, self.largest)
            middle = (magnitudes[below] + magnitudes[above]) / 2
            code = np.where(
                (magnitude > middle) | ((magnitude == middle) & (below % 2 == 1)), above, below
            )
        elif self.infinity is not None:
            code = np.where(np.isinf(magnitude), self.infinity, code)
        negative = np.signbit(x)
        signed = code | np.where(negative, 0x80, 0)
        if not self.has_negative_zero:
            signed = np.where(code == 0, 0, signed)
        nan = np.isnan(x)
        if self.nan is None:
            return np.where(nan, self.largest | np.where(negative, 0x80, 0), signed).astype(
                np.uint8
            )
        return np.where(nan, self.nan, signed).astype(np.uint8)

    def assert_codes(self, got: np.ndarray, expected: np.ndarray, x: np.ndarray) -> None:
        """The same codes; any NaN for a NaN, whose sign may be any where it becomes a number."""
        got = got.view(np.uint8)
        values = self.values()
        same = (got == expected) | (np.isnan(values[got]) & np.isnan(values[expected]))
        same |= np.isnan(x) & (got & 0x7F == expected & 0x7F)
        assert same.all(), [
            (float(n), hex(a), hex(b))
            for n, a, b in zip(x[~same][:8], got[~same][:8], expected[~same][:8], strict=True)
        ]

    def ties(self) -> np.ndarray:
        """All numbers, what is in the middle of two of them, and beyond the largest; with float32's neighbours."""
        values = self.values()[: self.largest + 1]
        step = values[-1] - values[-2]
        edges = np.concatenate(
            [values, (values[1:] + values[:-1]) / 2, values[-1] + step * np.array([0.5, 1, 2])]
        ).astype(np.float32)
        near = np.concatenate(
            [edges, np.nextafter(edges, np.float32(np.inf)), np.nextafter(edges, np.float32(0))]
        )
        return np.concatenate([near, -near])


FORMATS = {
    format.name: format
    for format in (
        Format("float8e5", "float8_e5m2", 2, 15, 0x7B, 0x7F, 0x7C),
        Format("float8e4nv", "float8_e4m3fn", 3, 7, 0x7E, 0x7F),
        Format("float8e5b16", "float8_e5m2fnuz", 2, 16, 0x7F, 0x80),
        Format("float8e4b8", "float8_e4m3fnuz", 3, 8, 0x7F, 0x80),
        Format("float8e4b15", None, 3, 15, 0x7E, None),
    )
}
