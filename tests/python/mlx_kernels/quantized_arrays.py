"""Matrices that MLX has quantised on the CPU, and the arguments that describe them to its kernels. Needs MLX itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlx_kernels.running import decode, encode, i32, numbers

#: Kind, numbers of a group, and bits.
MODES = {
    "affine2": ("affine", 32, 2),
    "affine3": ("affine", 64, 3),
    "affine4": ("affine", 64, 4),
    "affine5": ("affine", 32, 5),
    "affine6": ("affine", 128, 6),
    "affine8": ("affine", 32, 8),
    "nvfp4": ("nvfp4", 16, 4),
    "mxfp8": ("mxfp8", 32, 8),
    "mxfp4": ("mxfp4", 32, 4),
}


@dataclass
class Quantized:
    """Matrices as a kernel reads them, and the numbers that they stand for."""

    parts: list[np.ndarray]
    values: np.ndarray
    group: int
    bits: int
    kind: str

    def rows(self, more: int) -> list[np.ndarray]:
        """The parts with memory of so many rows behind them, which kernels read and ignore."""
        if not more:
            return self.parts
        return [
            np.concatenate([each.ravel(), np.zeros(more * each.shape[-1], each.dtype)])
            for each in self.parts
        ]


def quantized(shape: tuple[int, ...], mode: str | tuple[str, int, int], t: str) -> Quantized:
    """A random matrix in a mode of `MODES`, or in one that is given as those are."""
    import mlx.core as mx  # the tests of a machine without MLX import this module, too

    kind, group, bits = MODES[mode] if isinstance(mode, str) else mode
    mx.set_default_device(mx.cpu)
    matrix = mx.array(numbers(shape, "float32", 5).astype(np.float32))
    if kind == "affine":
        # Scales and biases are rounded to the type of the product.
        packed, scales, biases = mx.quantize(matrix, group_size=group, bits=bits)
        scales, biases = (encode(np.array(each), t) for each in (scales, biases))
        exact = [mx.array(decode(each, t).astype(np.float32)) for each in (scales, biases)]
        values = mx.dequantize(packed, *exact, group_size=group, bits=bits)
        parts = [np.array(packed), scales, biases]
        return Quantized(parts, np.array(values).astype(np.float64), group, bits, "affine")
    packed, scales = mx.quantize(matrix, group_size=group, bits=bits, mode=kind)
    values = mx.dequantize(packed, scales, group_size=group, bits=bits, mode=kind)
    parts = [np.array(packed), np.array(scales)]
    return Quantized(
        parts, np.array(values.astype(mx.float32)).astype(np.float64), group, bits, "fp"
    )


def strides(array: np.ndarray) -> np.ndarray:
    return np.array(array.strides, np.int64) // array.itemsize


def batch_of(x: np.ndarray, w: Quantized) -> list[np.ndarray]:
    """The arguments that describe the dimensions before the last two."""
    parts = w.parts
    described = [
        i32(x.ndim - 2),
        i32(*x.shape),
        strides(x),
        i32(parts[0].ndim - 2),
        i32(*parts[0].shape),
    ]
    return [*described, *(strides(each) for each in parts)]
