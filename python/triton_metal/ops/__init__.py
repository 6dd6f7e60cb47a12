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
from .histograms import bincount, histogram
from .indexing import gather, index_add, scatter_add, take, take_along_axis
from .optimisers import adamw_step, sgd_step
from .reductions import all, any, logsumexp, max, mean, min, norm, prod, std, sum, var
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
    "bincount",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cummax",
    "cumprod",
    "cumsum",
    "gather",
    "histogram",
    "index_add",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "scatter_add",
    "sgd_step",
    "softmax",
    "sort",
    "std",
    "sum",
    "take",
    "take_along_axis",
    "topk",
    "var",
]
