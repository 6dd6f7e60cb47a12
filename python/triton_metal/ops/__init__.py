"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .matmuls import linear, matmul
from .quantized import dequantize, quantize, quantized_matmul
from .scaled_matmuls import scaled_matmul
from .softmaxes import log_softmax, softmax

__all__ = [
    "dequantize",
    "linear",
    "log_softmax",
    "matmul",
    "quantize",
    "quantized_matmul",
    "scaled_matmul",
    "softmax",
]
