"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .convolutions import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from .softmaxes import log_softmax, softmax

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "log_softmax",
    "softmax",
]
