"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .activations import gelu, gelu_mul, relu, sigmoid, silu, silu_mul, tanh
from .cross_entropies import cross_entropy
from .dropouts import dropout
from .embeddings import embedding
from .linear_cross_entropies import linear_cross_entropy
from .norms import layer_norm, rms_norm
from .rotary import rotary_embedding
from .softmaxes import log_softmax, softmax

__all__ = [
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "gelu_mul",
    "layer_norm",
    "linear_cross_entropy",
    "log_softmax",
    "relu",
    "rms_norm",
    "rotary_embedding",
    "sigmoid",
    "silu",
    "silu_mul",
    "softmax",
    "tanh",
]
