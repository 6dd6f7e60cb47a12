"""From a kernel's Python to Triton IR."""

from .generator import CodeGenerator, generate_module
from .values import CodegenOptions, Memory, RuntimeLeaf

__all__ = ["CodeGenerator", "CodegenOptions", "Memory", "RuntimeLeaf", "generate_module"]
