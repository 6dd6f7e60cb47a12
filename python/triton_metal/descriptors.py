"""Launches with tensor descriptors: each becomes its array, its sizes and strides, and what is known when compiling."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from ._native import dtype
from .codegen import RuntimeLeaf
from .functions import KernelFunction, Param
from .language.blocks import descriptor_parts, encode, read_layout, tensor_descriptor
from .launcher import Launcher

#: What a launch knows of a descriptor and the compiler does not: attributes of an argument.
PADS_WITH_NAN = "tt.pads_with_nan"
ROUNDS_TO_TF32 = "tt.rounds_to_tf32"


@dataclasses.dataclass(frozen=True)
class Given:
    """A parameter at which a launch passes a descriptor."""

    rank: int
    #: Its base and strides are multiples of 16 bytes, as the compiler expects of its own descriptors.
    is_aligned: bool


class DescriptorLauncher(Launcher):
    """Launches a kernel whose parameters at these positions are descriptors."""

    def __init__(self, function: KernelFunction, given: dict[int, Given]) -> None:
        self.given = given
        super().__init__(function)

    def params(self) -> list[Param]:
        result: list[Param] = []

        def add(param: Param, **changes: Any) -> None:
            result.append(dataclasses.replace(param, index=len(result), **changes))

        for param in self.function.params:
            given = self.given.get(param.index)
            if given is None:
                add(param)
                continue
            empty = inspect.Parameter.empty
            add(param, default=empty, annotation="", is_constexpr=False)
            number = dataclasses.replace(
                param, default=empty, is_constexpr=False, is_const=False, specialize=False
            )

            def numbers(kind: str, count: int, annotation: str, like: Param = number) -> None:
                for dim in range(count):
                    add(like, name=f"{like.name}.{kind}.{dim}", annotation=annotation)

            if given.is_aligned:
                # The parts of the compiler's descriptor, and then the numbers that the kernel may ask for.
                for part, annotation in compiler_parts(param.name, given.rank):
                    add(number, name=part, annotation=annotation)
                numbers("shape", given.rank, "i32")
                numbers("stride", given.rank, "i64")
            else:
                numbers("shape", given.rank, "i32")
                numbers("stride", given.rank - 1, "i64")
            add(number, name=f"{param.name}.layout", annotation="", is_constexpr=True)
        return result

    def gathered(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of a launch by the function's parameters: the parts of a descriptor together."""
        result: dict[str, Any] = {}
        for param in self.function.params:
            name, given = param.name, self.given.get(param.index)
            if given is None:
                result[name] = values[name]
                continue
            strides = given.rank if given.is_aligned else given.rank - 1
            result[name] = descriptor_parts(
                values[name],
                tuple(values[f"{name}.shape.{dim}"] for dim in range(given.rank)),
                tuple(values[f"{name}.stride.{dim}"] for dim in range(strides)),
                values[f"{name}.layout"],
            )
        return result

    def grouped(self, values: dict[str, Any]) -> dict[str, Any]:
        """What the function's parameters are in the kernel, from the values of a launch."""
        result = self.gathered(values)
        for param in self.function.params:
            given = self.given.get(param.index)
            if given is None or not given.is_aligned:
                continue
            base, shape, strides, layout = result[param.name]
            block, padding, rounds = read_layout(layout)
            kind = dtype.descriptor(base.type.element_ty, block, param.is_const)
            known = {PADS_WITH_NAN: padding == "nan", ROUNDS_TO_TF32: rounds}
            result[param.name] = tensor_descriptor(RuntimeLeaf(kind, known), shape, strides)
        return result


def compiler_parts(name: str, rank: int) -> list[tuple[str, str]]:
    """The names and types that the compiler gives to the parts of a descriptor, behind its base."""
    return [
        *((f"{name}_size_{dim}", "i32") for dim in range(rank)),
        *((f"{name}_stride_{dim}", "i64") for dim in range(rank)),
        (f"{name}_pads_with_nan", "i1"),
        (f"{name}_rounds_to_tf32", "i1"),
    ]


def parts_of(value: Any, given: Given) -> list[Any]:
    """A descriptor as the arguments of a launch."""
    value.check()
    tf32 = ["tf32"] if value.round_f32_to_tf32 else []
    layout = encode(list(map(int, value.block_shape)), value.padding, *tf32)
    sizes, strides = list(map(int, value.shape)), list(map(int, value.strides))
    if not given.is_aligned:
        return [value.base, *sizes, *strides[:-1], layout]
    flags = value.padding == "nan", bool(value.round_f32_to_tf32)
    return [value.base, *sizes, *strides, *flags, *sizes, *strides, layout]


def is_aligned(value: Any) -> bool:
    """Whether the base and the strides of a descriptor are known to be multiples of 16 bytes."""
    base = value.base
    if hasattr(base, "data_ptr"):
        address = base.data_ptr()
    elif hasattr(base, "__array_interface__"):
        address = base.__array_interface__["data"][0]
    else:
        return False
    size = getattr(base.dtype, "itemsize", 1)
    return address % 16 == 0 and all(int(step) * size % 16 == 0 for step in value.strides[:-1])


def has_parts(value: Any) -> bool:
    """Whether a launch takes the value apart, as the native launcher decides it."""
    return hasattr(type(value), "__triton_parts__")


class KernelLauncher(Launcher):
    """Launches a kernel. The native launcher asks here where an argument is a descriptor."""

    def __init__(self, function: KernelFunction) -> None:
        super().__init__(function)
        self._with_descriptors: dict[tuple[tuple[int, Given], ...], DescriptorLauncher] = {}

    def given(self, name: str, value: Any) -> Given:
        """How the kernel takes a descriptor."""
        rank = len(value.shape)
        # Launches know arguments by name, and another parameter may have the name of a part.
        own = {param.name for param in self.function.params}
        is_free = own.isdisjoint(part for part, _ in compiler_parts(name, rank))
        return Given(rank, is_free and is_aligned(value))

    def launch_parts(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: bool
    ) -> Any:
        """A launch of which the native launcher has checked the names of its arguments."""
        params = self.function.params
        options = dict(kwargs)
        values: dict[str, Any] = {}
        for param in params:
            given = args[param.index] if param.index < len(args) else param.default
            values[param.name] = options.pop(param.name, given)
        descriptors = {
            param.index: self.given(param.name, values[param.name])
            for param in params
            if has_parts(values[param.name])
        }
        key = tuple(descriptors.items())
        launcher = self._with_descriptors.get(key)
        if launcher is None:
            launcher = self._with_descriptors.setdefault(
                key, DescriptorLauncher(self.function, descriptors)
            )
        flat: list[Any] = []
        for param in params:
            value = values[param.name]
            given = descriptors.get(param.index)
            flat.extend(parts_of(value, given) if given else [value])
        if not run:
            return launcher.native.warmup(*flat, **options)
        if callable(grid):
            grid = grid(values)
        return launcher.at(grid)(*flat, **options)
