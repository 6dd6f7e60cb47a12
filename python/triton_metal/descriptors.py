"""Launches whose arguments are taken apart: tuples into their elements, and tensor descriptors into their array, their
sizes and strides, and what is known when compiling."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from ._native import dtype
from .arguments import is_descriptor
from .codegen import RuntimeLeaf
from .errors import LaunchTypeError
from .functions import KernelFunction, Param
from .language.blocks import (
    NON_OVERLAPPING,
    PADS_WITH_NAN,
    ROUNDS_TO_TF32,
    SHAPE_FOLLOWS,
    descriptor_parts,
    encode,
    read_layout,
    tensor_descriptor,
)
from .launcher import Launcher
from .tuples import element_name, rebuild_tuple

#: How a value is taken apart: None (not at all), `Given`, or a class of tuples with the structures of its elements.
Structure = Any


@dataclasses.dataclass(frozen=True)
class Given:
    """A parameter at which a launch passes a descriptor."""

    rank: int
    #: Its base and strides are multiples of 16 bytes, as the compiler expects of its own descriptors.
    is_aligned: bool


class PartsLauncher(Launcher):
    """Launches a kernel whose arguments have these structures."""

    def __init__(self, function: KernelFunction, structures: tuple[Structure, ...]) -> None:
        self.structures = structures
        super().__init__(function)

    def params(self) -> list[Param]:
        result: list[Param] = []
        for param, structure in zip(self.function.params, self.structures, strict=True):
            # What stands behind *args is one constant where it is a constexpr.
            add_parts(dataclasses.replace(param, is_variadic=False), structure, result)
        return result

    def gathered(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of a launch by the function's parameters: the parts of an argument together."""
        params = self.function.params
        return {
            param.name: gather(param.name, structure, values)
            for param, structure in zip(params, self.structures, strict=True)
        }

    def grouped(self, values: dict[str, Any]) -> dict[str, Any]:
        """What the function's parameters are in the kernel, from the values of a launch."""
        gathered = self.gathered(values)
        params = self.function.params
        return {
            param.name: in_kernel(gathered[param.name], structure, param.is_const)
            for param, structure in zip(params, self.structures, strict=True)
        }


def add_parts(param: Param, structure: Structure, result: list[Param]) -> None:
    """The parameters of a launch that a parameter becomes."""
    empty = inspect.Parameter.empty

    def add(param: Param, **changes: Any) -> None:
        result.append(dataclasses.replace(param, index=len(result), **changes))

    if structure is None:
        add(param)
        return
    if isinstance(structure, tuple):
        kind, elements = structure
        for index, element in enumerate(elements):
            name = element_name(param.name, kind, index)
            part = dataclasses.replace(param, name=name, default=empty, annotation="")
            add_parts(part, element, result)
        return
    add(param, default=empty, annotation="", is_constexpr=False)
    number = dataclasses.replace(
        param, default=empty, is_constexpr=False, is_const=False, specialize=False
    )

    def numbers(kind: str, count: int, annotation: str) -> None:
        for dim in range(count):
            add(number, name=f"{param.name}.{kind}.{dim}", annotation=annotation)

    if structure.is_aligned:
        # The parts of the compiler's descriptor, and then the numbers that the kernel may ask for.
        for part_name, annotation in compiler_parts(param.name, structure.rank):
            add(number, name=part_name, annotation=annotation)
        numbers("shape", structure.rank, "i32")
        numbers("stride", structure.rank, "i64")
    else:
        numbers("shape", structure.rank, "i32")
        numbers("stride", structure.rank - 1, "i64")
    add(number, name=f"{param.name}.layout", annotation="", is_constexpr=True)


def gather(name: str, structure: Structure, values: dict[str, Any]) -> Any:
    """The value of a parameter, from those of a launch, with the parts of descriptors together."""
    if structure is None:
        return values[name]
    if isinstance(structure, tuple):
        kind, elements = structure
        parts = [
            gather(element_name(name, kind, index), element, values)
            for index, element in enumerate(elements)
        ]
        return rebuild_tuple(kind, parts)
    strides = structure.rank if structure.is_aligned else structure.rank - 1
    return descriptor_parts(
        values[name],
        tuple(values[f"{name}.shape.{dim}"] for dim in range(structure.rank)),
        tuple(values[f"{name}.stride.{dim}"] for dim in range(strides)),
        values[f"{name}.layout"],
    )


def in_kernel(value: Any, structure: Structure, is_const: bool) -> Any:
    """What a parameter is in the kernel: the compiler's descriptor in the place of its parts, where it may have one."""
    if structure is None:
        return value
    if isinstance(structure, tuple):
        kind, elements = structure
        parts = [
            in_kernel(part, element, is_const)
            for part, element in zip(value, elements, strict=True)
        ]
        return rebuild_tuple(kind, parts)
    if not structure.is_aligned:
        return value
    base, shape, strides, layout = value
    block, padding, true = read_layout(layout)
    kind = dtype.descriptor(base.type.element_ty, block, is_const)
    known = {PADS_WITH_NAN: padding == "nan", SHAPE_FOLLOWS: True}
    known |= {name: name in true for name in (ROUNDS_TO_TF32, NON_OVERLAPPING)}
    return tensor_descriptor(RuntimeLeaf(kind, known), shape, strides)


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
    sizes, strides = list(map(int, value.shape)), list(map(int, value.strides))
    flags = {
        ROUNDS_TO_TF32: value.round_f32_to_tf32,
        NON_OVERLAPPING: is_non_overlapping(sizes, strides),
    }
    true = [name for name, is_true in flags.items() if is_true]
    layout = encode(list(map(int, value.block_shape)), value.padding, *true)
    if not given.is_aligned:
        return [value.base, *sizes, *strides[:-1], layout]
    numbers = value.padding == "nan", bool(value.round_f32_to_tf32)
    return [value.base, *sizes, *strides, *numbers, *sizes, *strides, layout]


def is_non_overlapping(sizes: list[int], strides: list[int]) -> bool:
    """Whether each place in a tensor is memory of its own: each stride is at least what lies within it."""
    extent = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if stride < extent:
            return False
        extent = stride * size
    return True


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


def has_descriptor(value: Any) -> bool:
    """Whether a value is a descriptor, or a tuple that has one."""
    if isinstance(value, tuple):
        return any(map(has_descriptor, value))
    return is_descriptor(value)


def flat_parts(value: Any, structure: Structure, into: list[Any]) -> None:
    """The arguments of a launch that a value becomes."""
    if structure is None:
        into.append(value)
    elif isinstance(structure, tuple):
        for part, element in zip(value, structure[1], strict=True):
            flat_parts(part, element, into)
    else:
        into.extend(parts_of(value, structure))


class KernelLauncher(Launcher):
    """Launches a kernel. The native launcher asks here where an argument is taken apart."""

    def __init__(self, function: KernelFunction) -> None:
        super().__init__(function)
        self._with_parts: dict[tuple[Structure, ...], PartsLauncher] = {}

    def structure_of(self, name: str, value: Any, known_addresses: bool = True) -> Structure:
        """How a launch takes the value of a parameter apart."""
        if isinstance(value, tuple):
            return type(value), tuple(self.structure_of("", part) for part in value)
        if not is_descriptor(value):
            return None
        rank = len(value.shape)
        # Launches know arguments by name, and another parameter may have the name of a part.
        own = {param.name for param in self.function.params}
        is_free = own.isdisjoint(part for part, _ in compiler_parts(name, rank))
        return Given(rank, bool(name) and is_free and known_addresses and is_aligned(value))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The value of each parameter. Removes them from ``kwargs``, where the options stay."""
        function = self.function
        named = {name: kwargs.pop(name) for name in function.arg_names if name in kwargs}
        try:
            bound = function.signature.bind(*args, **named)
        except TypeError as error:
            raise LaunchTypeError(f"{function.name}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def parts_launcher(self, values: list[Any], known_addresses: bool = True) -> PartsLauncher:
        """What launches the parts of these values, which the native launcher takes apart itself from then on."""
        structures = tuple(
            None if param.is_constexpr else self.structure_of(param.name, value, known_addresses)
            for param, value in zip(self.function.params, values, strict=True)
        )
        launcher = self._with_parts.get(structures)
        if launcher is None:
            launcher = PartsLauncher(self.function, structures)
            launcher = self._with_parts.setdefault(structures, launcher)
        return launcher

    def taken_apart(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What compiles a launch of arrays whose addresses are not known, and the values that it takes, by name.

        ``values`` has one for each of the function's parameters.
        """
        given = [values[name] for name in self.function.arg_names]
        if not any(has_descriptor(value) for value in given):
            return self.native, dict(values)
        launcher = self.parts_launcher(given, known_addresses=False)
        flat: list[Any] = []
        for value, structure in zip(given, launcher.structures, strict=True):
            flat_parts(value, structure, flat)
        names = [param.name for param in launcher.params()]
        return launcher.native, dict(zip(names, flat, strict=True))

    def launch_parts(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: bool
    ) -> Any:
        """A launch with descriptors or ``*args`` among its arguments."""
        options = dict(kwargs)
        values = self.bind(args, options)
        launcher = self.parts_launcher([values[name] for name in self.function.arg_names])
        flat: list[Any] = []
        for value, structure in zip(values.values(), launcher.structures, strict=True):
            flat_parts(value, structure, flat)
        if not run:
            return launcher.native.warmup(*flat, **options)
        if callable(grid):
            grid = grid(values)
        return launcher.at(grid)(*flat, **options)
