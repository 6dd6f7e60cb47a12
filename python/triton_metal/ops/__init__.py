"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .attentions import attention, attention_decode, attention_varlen, paged_attention
from .softmaxes import log_softmax, softmax

__all__ = [
    "attention",
    "attention_decode",
    "attention_varlen",
    "log_softmax",
    "paged_attention",
    "softmax",
]
