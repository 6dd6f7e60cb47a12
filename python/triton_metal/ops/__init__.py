"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .cross_entropies import cross_entropy
from .linear_cross_entropies import linear_cross_entropy
from .norms import layer_norm, rms_norm
from .softmaxes import log_softmax, softmax

__all__ = [
    "cross_entropy",
    "layer_norm",
    "linear_cross_entropy",
    "log_softmax",
    "rms_norm",
    "softmax",
]
