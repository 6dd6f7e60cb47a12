"""The two front ends."""

from __future__ import annotations

import triton
import triton_metal
from translate import FrontEnd
from triton.runtime.jit import ConstexprFunction, JITFunction
from triton_metal.functions import ConstexprFunction as OwnConstexprFunction
from triton_metal.functions import KernelFunction

STOCK = FrontEnd("triton", triton, triton.language, JITFunction, ConstexprFunction)
OWN = FrontEnd(
    "triton_metal", triton_metal, triton_metal.language, KernelFunction, OwnConstexprFunction
)
