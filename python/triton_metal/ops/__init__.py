"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .activations import gelu, gelu_mul, relu, sigmoid, silu, silu_mul, tanh
from .attentions import attention, attention_decode, attention_varlen, paged_attention
from .cross_entropies import cross_entropy
from .dropouts import dropout
from .embeddings import embedding
from .linear_cross_entropies import linear_cross_entropy
from .matmuls import linear, matmul
from .norms import layer_norm, rms_norm
from .quantized import dequantize, quantize, quantized_matmul
from .rotary import rotary_embedding
from .scaled_matmuls import scaled_matmul
from .softmaxes import log_softmax, softmax

__all__ = [
    "attention",
    "attention_decode",
    "attention_varlen",
    "cross_entropy",
    "dequantize",
    "dropout",
    "embedding",
    "gelu",
    "gelu_mul",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "log_softmax",
    "matmul",
    "paged_attention",
    "quantize",
    "quantized_matmul",
    "relu",
    "rms_norm",
    "rotary_embedding",
    "scaled_matmul",
    "sigmoid",
    "silu",
    "silu_mul",
    "softmax",
    "tanh",
]
