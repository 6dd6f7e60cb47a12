"""Runs a program's kernel, and compares what it leaves in memory with what the model says."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .machine import Memory
from .program import Program

HEAD = "import triton_metal as triton\nimport triton_metal.language as tl\n\n\n"
_numbers = itertools.count()


def differences(actual: np.ndarray, wanted: Memory, by_mlx: bool = False) -> np.ndarray:
    """The places where an array is not what it must be.

    `by_mlx` allows for what functions of MLX give: the sign of a zero is open, and the error of what is close is greater.
    """
    expected = wanted.data
    if wanted.dtype.is_int:
        wrong = actual != expected
    else:
        a, e = actual.astype(np.float64), expected.astype(np.float64)
        signs = (np.signbit(a) == np.signbit(e)) | ((e == 0) & by_mlx)
        same = (a == e) & signs | (np.isnan(a) & np.isnan(e))
        if wanted.error is not None:
            error = wanted.error
            if by_mlx:
                error = np.where(error > 0, np.maximum(error, 2.0**-18 * np.abs(e) + 2.0**-20), 0)
            with np.errstate(all="ignore"):
                # What is close may be a zero of the other sign only where it is close to zero, not at zero.
                near = (np.abs(a - e) <= error) & ((e != 0) | (a != 0)) & (error > 0)
            same |= near
        wrong = ~same
    return np.flatnonzero(wrong & wanted.known)


def load_module(text: str, folder: Path) -> Any:
    name = f"random_program_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


class Elsewhere(Exception):
    """A launch that the route which was asked for has left to the host device."""


#: What a portable launch says of a program that divides by zero: the model knows no result of that either.
OPEN = "depends on a value that Metal does not promise: an integer is divided by zero"


def run(
    program: Program, folder: Path, stock: bool = False, route: str | None = None
) -> dict[str, np.ndarray]:
    """The arrays after a launch. One on a route of `contract_device` has neither checks nor a schedule."""
    module = load_module(program.text(), folder)
    if stock:
        arrays, arguments = memory_of(program)
        module.kernel[program.config.grid](*arguments)
        return arrays
    from triton_metal.errors import DeviceError

    config = program.config
    try:
        return launched(program, module, route)
    except DeviceError as error:
        if config.check != "portable" or OPEN not in str(error):
            raise
    program.config = replace(config, check=None)
    return launched(program, module, route)


def memory_of(program: Program) -> tuple[dict[str, np.ndarray], list[Any]]:
    """The arrays as they begin, and the arguments of a launch."""
    arrays = {name: data.copy() for name, data in program.initial.items()}
    return arrays, [
        arrays[a.array][a.offset :] if a.array is not None else a.number for a in program.arguments
    ]


def launched(program: Program, module: Any, route: str | None) -> dict[str, np.ndarray]:
    import triton_metal as triton
    from triton_metal.testing import contract_device

    from host_processors import compiled_for, host_processors

    arrays, arguments = memory_of(program)
    config = program.config
    # One that this host is not runs for its own.
    processor = config.processor if config.processor in host_processors() else None
    launches: dict[str, int] = {}
    with (
        contract_device(route, launches=launches)
        if route
        else triton.launch_options(schedule=config.schedule, check=config.check, seed=config.seed),
        compiled_for(processor),
    ):
        # The model rounds each operation to nearest. What programs compare, convert and index with leaves no tolerance
        # for another rounding; test_arithmetic_bounds.py and test_fp_fusion.py have that.
        module.kernel[config.grid](
            *arguments,
            num_warps=config.num_warps,
            num_stages=config.num_stages,
            precise_math=True,
            enable_fp_fusion=False,
        )
    if "host" in launches:
        raise Elsewhere(f"{route} left the launch to the host device")
    return arrays


def mismatches(
    program: Program, arrays: dict[str, np.ndarray], route: str | None = None
) -> list[str]:
    """What is wrong, an array a line."""
    result = []
    for name, actual in arrays.items():
        wanted = program.machine.memory[name]
        places = differences(actual, wanted, by_mlx=route == "mlx-graph")
        if places.size:
            shown = ", ".join(
                f"[{i}] is {actual[i]}, must be {wanted.data[i]}" for i in places[:4].tolist()
            )
            names = "/".join(a.name for a in program.arguments if a.array == name)
            result.append(
                f"{names} ({wanted.dtype}): {places.size} of {actual.size} wrong: {shown}"
            )
    return result


def check(
    program: Program, folder: Path | None = None, stock: bool = False, route: str | None = None
) -> list[str]:
    """Runs a program; the list is empty if all of its results are right."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return check(program, Path(temporary), stock, route)
    return mismatches(program, run(program, folder, stock, route), route)
