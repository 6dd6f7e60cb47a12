"""Kernels that a user calls, on arrays of NumPy, MLX and PyTorch alike."""

from __future__ import annotations

from .activations import gelu, gelu_mul, relu, sigmoid, silu, silu_mul, tanh
from .attentions import attention, attention_decode, attention_varlen, paged_attention
from .convolutions import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from .cross_entropies import cross_entropy
from .dropouts import dropout
from .embeddings import embedding
from .histograms import bincount, histogram
from .indexing import gather, index_add, scatter_add, take, take_along_axis
from .linear_cross_entropies import linear_cross_entropy
from .matmuls import linear, matmul
from .norms import layer_norm, rms_norm
from .optimisers import adamw_step, sgd_step
from .quantized import dequantize, quantize, quantized_matmul
from .reductions import all, any, logsumexp, max, mean, min, norm, prod, std, sum, var
from .rotary import rotary_embedding
from .scaled_matmuls import scaled_matmul
from .scans import argmax, argmin, cummax, cumprod, cumsum
from .softmaxes import log_softmax, softmax
from .sorts import argsort, sort, topk

__all__ = [
    "adamw_step",
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "attention",
    "attention_decode",
    "attention_varlen",
    "bincount",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "cummax",
    "cumprod",
    "cumsum",
    "dequantize",
    "dropout",
    "embedding",
    "gather",
    "gelu",
    "gelu_mul",
    "histogram",
    "index_add",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "log_softmax",
    "logsumexp",
    "matmul",
    "max",
    "mean",
    "min",
    "norm",
    "paged_attention",
    "prod",
    "quantize",
    "quantized_matmul",
    "relu",
    "rms_norm",
    "rotary_embedding",
    "scaled_matmul",
    "scatter_add",
    "sgd_step",
    "sigmoid",
    "silu",
    "silu_mul",
    "softmax",
    "sort",
    "std",
    "sum",
    "take",
    "take_along_axis",
    "tanh",
    "topk",
    "var",
]
