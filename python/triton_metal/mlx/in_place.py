"""Launches that change MLX arrays in place.

After ``kernel[grid](x, ...)`` the arrays that the kernel writes have their new values under the names that were
passed. Every other array has the value that it would have without the launch: a slice that was taken before and is
computed later, another array of the same memory, another name for the same node of MLX's graph, a constant. A launch
reuses memory that nothing else holds, by MLX's own counts, and copies it otherwise. The same array object for two
arguments is one piece of memory; two array objects never share memory.

Kernels see every array in row-major order. Other views (``x.T``) are copied first. If the kernel writes such a view,
the view gets the new values, and the original array keeps its own.

Exported memory (``memoryview(x)``, ``np.array(x, copy=False)``) only remains the array's memory if the launch could
reuse it, as after MLX's own ``x[i] = v``. Export it again after a launch.

A launch does not wait. If its arguments are still being computed, it is scheduled after them. Inside ``mx.compile``
it becomes a part of the graph. It has no derivative; use ``mx.custom_function`` to give one to the function that
launches it.
"""

from __future__ import annotations

import atexit
import importlib
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import _native, refit, refusals, traced
from ..errors import DeviceError
from ..interrupts import deferred

_module: Any = None
_problem: str | None = None


def built_for() -> list[str]:
    """The minor versions of MLX that this installation can launch in place with."""
    names = (path.name for path in Path(__file__).parent.parent.glob("_mlx_*"))
    found = {re.match(r"_mlx_(\d+)_(\d+)\.", name) for name in names}
    pairs = {(int(match[1]), int(match[2])) for match in found if match}
    return [f"{major}.{minor}" for major, minor in sorted(pairs)]


def _load() -> Any:
    """The extension module for the installed MLX; raises DeviceError if there is none."""
    import mlx.core as mx

    version = ".".join(mx.__version__.split(".")[:2])
    versions = built_for()
    instead = "triton_metal.mlx.call launches kernels with any MLX from 0.30 on"
    if version not in versions:
        built = f"is built for MLX {' and '.join(versions)}" if versions else "is built without MLX"
        raise DeviceError(
            f"this triton_metal {built}, and MLX {mx.__version__} is installed, so kernels cannot change its arrays "
            f"in place; {instead}"
        )
    try:
        with deferred():
            module = importlib.import_module(f"triton_metal._mlx_{version.replace('.', '_')}")
    except ImportError as error:
        raise DeviceError(
            f"triton_metal's module for MLX {version} does not load ({error}); {instead}"
        ) from error
    if not module.knows_arrays:
        raise DeviceError(
            f"MLX {mx.__version__} and triton_metal's module for it were built with versions of nanobind that do not "
            f"know each other's types, so kernels cannot change its arrays in place; {instead}"
        )
    return module


def native() -> Any:
    """The extension module, loaded once. DeviceError says why there is none."""
    global _module, _problem
    if _module is None:
        if _problem is None:
            try:
                _module = _load()
            except DeviceError as error:
                _problem = str(error)
            else:
                # Metal's buffers are aligned, and few arrays begin elsewhere; MLX's for CPUs are not.
                import mlx.core as mx

                has_gpu = mx.metal.is_available()
                # Only Apple's compiler refuses what the host device takes.
                _module.set_leave_out(traced.leaves_out)
                _native.set_route("mlx", launch if has_gpu else _module.launch)
                _native.align_mlx_arrays(has_gpu)
                atexit.register(_tell_last_error)
        if _module is None:
            raise DeviceError(_problem)
    return _module


def launch(
    kernel: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
) -> None:
    """Launches a compiled kernel on MLX arrays, as ``kernel[grid](...)`` does.

    MLX makes the kernel's pipeline before anything is bound to the arrays, so a kernel that Apple's compiler refuses
    has changed nothing; it is compiled again in another form.
    """
    start = time.perf_counter()
    try:
        run(kernel, grid, arguments, scalar_words)
    except refit.REPORTS as error:
        refit.after(error, "mlx", kernel, lambda: run(kernel, grid, arguments, scalar_words))
    seconds = time.perf_counter() - start
    if seconds >= refit.SLOW_SECONDS:
        refit.warn_if_slow(kernel.name, seconds)


def run(kernel: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes) -> None:
    """Launches a kernel once. The stand-ins for refusals replace this."""
    native().launch(kernel, grid, arguments, scalar_words)


def is_traced(values: Iterable[Any]) -> bool:
    """Whether an MLX array among the values belongs to a function that `mx.compile`, `mx.grad` or `mx.vmap` traces: it has no numbers."""
    core = sys.modules.get("mlx.core")
    arrays = [value for value in values if core is not None and isinstance(value, core.array)]
    return bool(arrays) and any(map(native().is_traced, arrays))


def synchronize() -> None:
    """Waits for all work on MLX's default stream, and raises the error of a launch.

    Launches on arrays that are still being computed run after their call has returned. If one fails, the next launch
    or this function raises its error.

    >>> import triton_metal.mlx
    >>> triton_metal.mlx.synchronize()
    """
    import mlx.core as mx

    with refusals.reporting("mlx"):
        mx.synchronize()
    if _module is not None and (message := _module.take_error()) is not None:
        raise DeviceError(message)


def _tell_last_error() -> None:
    import mlx.core as mx

    mx.synchronize()
    if (message := _module.take_error()) is not None:
        print(f"triton_metal: a launch failed: {message}", file=sys.stderr)
