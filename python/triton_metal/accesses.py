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

#: Operations whose result points into what their first operand points into.
_SAME_MEMORY = {
    f"tt.{name}"
    for name in (
        "addptr",
        "bitcast",
        "broadcast",
        "expand_dims",
        "make_tensor_descriptor",
        "reshape",
        "splat",
        "trans",
    )
}


class _Pointers:
    """Where the pointers of a module come from, as far as the analysis follows them."""

    def __init__(self, module: Any) -> None:
        self.makers: dict[int, tuple[Any, int]] = {}
        self.ends: dict[int, Any] = {}  # the last operation of each block
        self.blocks: dict[int, dict[int, Any]] = {}  # those of each region
        self.loops: list[Any] = []
        module.walk(self._add)

    def _add(self, operation: Any) -> None:
        for index in range(operation.get_num_results()):
            self.makers[operation.get_result(index).id()] = operation, index
        if block := operation.get_block():
            self.ends[block.id()] = operation
            self.blocks.setdefault(block.get_parent().id(), {})[block.id()] = block
        name = operation.get_name()
        if name in ("scf.for", "scf.while"):
            self.loops.append(operation)
        elif name in _JUMPS and operation.get_num_operands() > _JUMPS[name]:
            raise NotImplementedError(
                "a value of the kernel depends on a branch with a return: what it points to is not followed"
            )

    def check(self) -> None:
        """Refuses a loop that puts another pointer in the place of one that it carries.

        The analysis takes what a loop carries for what it begins with. Where it raises an error, PyTorch takes all
        tensors for written.
        """
        for loop in self.loops:
            regions = [self._block(loop, index) for index in range(loop.get_num_regions())]
            if loop.get_name() == "scf.for":
                self._check(loop, 3, regions[0], 1, self.ends[regions[0].id()], 0)
            else:
                before, after = regions
                self._check(loop, 0, before, 0, self.ends[before.id()], 1)
                self._check(loop, 0, after, 0, self.ends[after.id()], 0)

    def _check(self, loop: Any, start: int, block: Any, first: int, end: Any, skipped: int) -> None:
        for index in range(end.get_num_operands() - skipped):
            value = end.get_operand(skipped + index)
            if not value.is_pointer():
                continue
            known = {self.origin(loop.get_operand(start + index))}
            if first + index < block.get_num_arguments():
                known.add(block.get_argument(first + index).id())
            if self.origin(value) not in known:
                raise NotImplementedError(
                    "a loop of the kernel puts another pointer in a variable: what it points to is not followed"
                )

    def origin(self, value: Any) -> int:
        """The value that a pointer was made from."""
        while value.id() in self.makers:
            operation, index = self.makers[value.id()]
            name = operation.get_name()
            if name in _SAME_MEMORY:
                value = operation.get_operand(0)
            elif name == "scf.for":
                value = operation.get_operand(3 + index)
            elif name == "scf.while":
                value = operation.get_operand(index)
            elif name == "scf.if":
                ends = [self.ends[self._block(operation, i).id()] for i in range(2)]
                one, other = (self.origin(end.get_operand(index)) for end in ends)
                return one if one == other else value.id()
            else:
                break
        return value.id()

    def _block(self, operation: Any, region: int) -> Any:
        return next(iter(self.blocks[operation.get_region(region).id()].values()))


def extend(analysis: ModuleType) -> None:
    """Lets the analysis see every access."""
    found = analysis.ttir_to_functions
    if hasattr(found, "__wrapped__"):
        return

    @functools.wraps(found)
    def ttir_to_functions(module: Any) -> Any:
        _Pointers(module).check()
        functions = found(module)
        for function in functions.values():
            for operations in function.values():
                operations[:] = map(_known, operations)
        return functions

    analysis.ttir_to_functions = ttir_to_functions  # type: ignore[attr-defined]


def _known(operation: Any) -> Any:
    name = SAME_ACCESS.get(operation.name)
    return operation if name is None else dataclasses.replace(operation, name=name)
