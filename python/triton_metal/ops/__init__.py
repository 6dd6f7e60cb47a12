"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .softmaxes import log_softmax, softmax

__all__ = ["log_softmax", "softmax"]
