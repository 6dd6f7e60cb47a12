"""PyTorch's analysis of which tensors a program's kernel reads and writes, for what it does not know of Triton IR.

It is in ``torch._higher_order_ops.triton_kernel_wrap``. A tensor whose writes it does not see keeps its old value in a
compiled graph, so that what is missing there would give wrong results.
"""

from __future__ import annotations

import dataclasses
import functools
from types import ModuleType
from typing import Any

#: Operations that the analysis does not know, by one that it knows and that accesses memory through the same operand.
SAME_ACCESS = {
    "tt.atomic_load": "tt.load",
    "tt.atomic_store": "tt.store",
    "tt.descriptor_gather": "tt.descriptor_load",
    "tt.descriptor_reduce": "tt.descriptor_store",
    "tt.descriptor_scatter": "tt.descriptor_store",
}

#: Jumps, and how many of their operands are not values that a block takes.
_JUMPS = {"cf.br": 0, "cf.cond_br": 1}


def extend(analysis: ModuleType) -> None:
    """Lets the analysis see every access."""
    found = analysis.ttir_to_functions
    if hasattr(found, "__wrapped__"):
        return

    @functools.wraps(found)
    def ttir_to_functions(module: Any) -> Any:
        module.walk(_check_jump)
        functions = found(module)
        for function in functions.values():
            for operations in function.values():
                operations[:] = map(_known, operations)
        return functions

    analysis.ttir_to_functions = ttir_to_functions  # type: ignore[attr-defined]


def _known(operation: Any) -> Any:
    name = SAME_ACCESS.get(operation.name)
    return operation if name is None else dataclasses.replace(operation, name=name)


def _check_jump(operation: Any) -> None:
    """Refuses a jump that passes values: the analysis does not follow them. PyTorch then takes all tensors for written."""
    most = _JUMPS.get(operation.get_name())
    if most is not None and operation.get_num_operands() > most:
        raise NotImplementedError(
            "a value of the kernel depends on a branch with a return: what it points to is not followed"
        )
