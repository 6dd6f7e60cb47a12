"""Stock Triton's interpreter in the place of triton_metal, for the same kernel files.

``use_stock_interpreter()`` must come before the kernels are imported. Afterwards ``import triton_metal`` and
``import triton_metal.language`` give stock Triton with TRITON_INTERPRET=1, and kernels take NumPy arrays as ours do.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import numpy as np


def _tensor(x: Any) -> Any:
    """A torch tensor on a NumPy array's memory; the interpreter only knows tensors."""
    if not isinstance(x, np.ndarray):
        return x
    import torch

    names = {
        "bfloat16": torch.bfloat16,
        "uint16": torch.uint16,
        "uint32": torch.uint32,
        "uint64": torch.uint64,
    }
    if any(s < 0 for s in x.strides):
        # torch has no negative strides, and the interpreter only needs the address of the first element.
        x = np.lib.stride_tricks.as_strided(x, shape=(1,), strides=(x.itemsize,))
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    if x.dtype.name in names:
        signed = {"uint16": np.int16, "uint32": np.int32, "uint64": np.int64}[x.dtype.name]
        return torch.from_numpy(x.view(signed)).view(names[x.dtype.name])
    return torch.from_numpy(x)


def use_stock_interpreter() -> None:
    """Replaces triton_metal by stock Triton's interpreter in this process."""
    os.environ["TRITON_INTERPRET"] = "1"
    import triton
    import triton.language as tl

    shim = types.ModuleType("triton_metal")
    shim.__dict__.update({k: v for k, v in vars(triton).items() if not k.startswith("__")})
    shim.jit = triton.jit
    shim.language = tl
    shim.__path__ = []
    sys.modules["triton_metal"] = shim
    sys.modules["triton_metal.language"] = tl
    _accept_numpy()


def _accept_numpy() -> None:
    from triton.runtime.interpreter import InterpretedFunction

    run = InterpretedFunction.run

    def run_with_numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(self, *map(_tensor, args), **{k: _tensor(v) for k, v in kwargs.items()})

    InterpretedFunction.run = run_with_numpy
