"""Launches with tensor descriptors: each becomes its array, its sizes and strides, and what is known when compiling."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from .functions import KernelFunction, Param
from .language.blocks import encode, tensor_descriptor
from .launcher import Launcher


class DescriptorLauncher(Launcher):
    """Launches a kernel whose parameters at these positions are descriptors of these ranks."""

    def __init__(self, function: KernelFunction, ranks: dict[int, int]) -> None:
        self.ranks = ranks
        super().__init__(function)

    def params(self) -> list[Param]:
        result: list[Param] = []

        def add(param: Param, **changes: Any) -> None:
            result.append(dataclasses.replace(param, index=len(result), **changes))

        for param in self.function.params:
            rank = self.ranks.get(param.index)
            if rank is None:
                add(param)
                continue
            empty = inspect.Parameter.empty
            add(param, default=empty, annotation="", is_constexpr=False)
            number = dataclasses.replace(
                param, default=empty, is_constexpr=False, is_const=False, specialize=False
            )
            for dim in range(rank):
                add(number, name=f"{param.name}.shape.{dim}", annotation="i32")
            for dim in range(rank - 1):
                add(number, name=f"{param.name}.stride.{dim}", annotation="i64")
            add(number, name=f"{param.name}.layout", annotation="", is_constexpr=True)
        return result

    def grouped(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of the function's parameters."""
        result: dict[str, Any] = {}
        for param in self.function.params:
            name, rank = param.name, self.ranks.get(param.index)
            if rank is None:
                result[name] = values[name]
                continue
            result[name] = tensor_descriptor(
                values[name],
                tuple(values[f"{name}.shape.{dim}"] for dim in range(rank)),
                tuple(values[f"{name}.stride.{dim}"] for dim in range(rank - 1)),
                values[f"{name}.layout"],
            )
        return result


def parts_of(value: Any) -> list[Any]:
    """A descriptor as the arguments of a launch."""
    value.check()
    tf32 = ["tf32"] if value.round_f32_to_tf32 else []
    layout = encode(list(map(int, value.block_shape)), value.padding, *tf32)
    strides = list(map(int, value.strides))
    return [value.base, *map(int, value.shape), *strides[:-1], layout]


def has_parts(value: Any) -> bool:
    """Whether a launch takes the value apart, as the native launcher decides it."""
    return hasattr(type(value), "__triton_parts__")


class KernelLauncher(Launcher):
    """Launches a kernel. The native launcher asks here where an argument is a descriptor."""

    def __init__(self, function: KernelFunction) -> None:
        super().__init__(function)
        self._with_descriptors: dict[tuple[tuple[int, int], ...], DescriptorLauncher] = {}

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
        ranks = {
            param.index: len(values[param.name].shape)
            for param in params
            if has_parts(values[param.name])
        }
        key = tuple(ranks.items())
        launcher = self._with_descriptors.get(key)
        if launcher is None:
            launcher = self._with_descriptors.setdefault(
                key, DescriptorLauncher(self.function, ranks)
            )
        flat: list[Any] = []
        for param in params:
            value = values[param.name]
            flat.extend(parts_of(value) if param.index in ranks else [value])
        if not run:
            return launcher.native.warmup(*flat, **options)
        if callable(grid):
            grid = grid(values)
        return launcher.at(grid)(*flat, **options)
