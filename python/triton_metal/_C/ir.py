"""Triton IR to read: `ASTSource.make_ir` returns a module, whose ``walk`` calls a function with each operation.

>>> import triton_metal, triton_metal.language as tl
>>> @triton_metal.jit
... def fill(x, value):
...     tl.store(x, value)
>>> from triton_metal.backends.metal.options import read_options
>>> source = triton_metal.compiler.ASTSource(fill, {"x": "*fp32", "value": "fp32"})
>>> names = []
>>> source.make_ir(None, read_options({}, "host")).walk(lambda operation: names.append(operation.get_name()))
>>> names
['tt.store', 'tt.return', 'tt.func', 'builtin.module']
"""

from __future__ import annotations

from .._native.ir import block, module, operation, region, value


class context:
    """What programs make before a module. It holds nothing: each module has a context of its own."""


def load_dialects(context: context) -> None:
    """Makes a context ready, as programs ask for it: each module comes with the dialects of its operations."""


__all__ = ["block", "context", "load_dialects", "module", "operation", "region", "value"]
