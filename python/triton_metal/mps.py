"""PyTorch's tensors on the device "mps". Kernels run through ``torch.mps.compile_shader``.

docs/apple.md lists the assumptions and their sources in PyTorch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from . import refit
from .array_memory import check_sign
from .errors import DeviceError, LaunchTypeError, LaunchValueError
from .metal_text import MetalText, threads_of
from .refusals import recognise

# dispatchThreads: counts threads; a thread's place in the grid is a 32-bit number in Metal.
MAX_GRID_THREADS = (1 << 32) - 1
# setBytes: copies at most so many bytes.
MAX_BYTES_BY_VALUE = 4096

_lock = threading.RLock()


class Shaders:
    """PyTorch's compiled forms of one kernel: its text unchanged, and folded for grids that are too wide."""

    def __init__(self, compiled: Any) -> None:
        self.name: str = compiled.metadata.name
        self.threads: int = compiled.metadata.threads
        self.arguments = [
            (index, argument["slot"], argument["name"])
            for index, argument in enumerate(compiled.metadata.args)
            if argument["kind"] == "buffer"
        ]
        self.metadata = compiled.metadata
        self.scalar_buffer: int = compiled.metadata.scalar_buffer
        self.metal: str = compiled.asm["metal"]
        self.text = MetalText.of(self.metal, compiled.metadata)
        self.compile = compile_shader()
        self.kernels: dict[bool, Any] = {}

    def kernel(self, folded: bool) -> Any:
        """The function that launches. It is compiled at its first use."""
        found = self.kernels.get(folded)
        if found is None:
            with _lock:
                found = self.kernels.get(folded)
                if found is None:
                    text = self.text.folded() if folded else self.metal
                    start = time.perf_counter()
                    try:
                        library = self.compile(text)
                        found = getattr(library, self.name)
                    except (RuntimeError, SyntaxError, AttributeError) as error:
                        refusal = recognise(error, "mps")
                        if refusal is not None:
                            raise refusal.error(self.name, self.metadata) from error
                        raise DeviceError(
                            f"{self.name}: PyTorch does not compile the kernel's Metal text: {error}"
                        ) from error
                    refit.warn_if_slow(self.name, time.perf_counter() - start)
                    limit = found.max_threads_per_threadgroup
                    if limit < self.threads:
                        said = f"has {self.threads} threads a threadgroup, but this GPU supports at most {limit}"
                        threads = recognise(said, "mps")
                        assert threads is not None
                        raise threads.error(self.name, self.metadata)
                    self.kernels[folded] = found
        return found


_compile_shader: Callable[[str], Any] | None = None


def compile_shader() -> Callable[[str], Any]:
    """``torch.mps.compile_shader``, or a contract device's stand-in for it."""
    if _compile_shader is not None:
        return _compile_shader
    import torch

    function = getattr(torch.mps, "compile_shader", None)
    if function is None:
        raise DeviceError(
            f"torch {torch.__version__} has no torch.mps.compile_shader: pip install -U torch"
        )
    return function


def launch(
    compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
) -> None:
    """Runs a compiled kernel over a grid of programs, in the current MPS stream.

    ``arguments`` are in the kernel's order and include the tensors; ``scalar_words`` holds the scalars. The launch
    does not wait for the GPU: PyTorch orders it with its own work on the same tensors. A kernel that Apple's compiler
    refuses is compiled again in another form.
    """
    try:
        encode(compiled, grid, arguments, scalar_words)
    except refit.REPORTS as error:
        refit.after(error, "mps", compiled, lambda: encode(compiled, grid, arguments, scalar_words))


def encode(
    compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
) -> None:
    """Encodes a launch in the current MPS stream. Nothing is encoded if the kernel is refused."""
    shaders = vars(compiled).get("_mps_shaders")
    if shaders is None or shaders.compile is not compile_shader():
        with refit.lock:
            shaders = compiled._mps_shaders = Shaders(compiled)
    bound: list[Any] = [None] * len(shaders.text.buffers)
    for position, slot, name in shaders.arguments:
        bound[slot] = check_tensor(shaders.name, name, arguments[position])
    casts = {}
    if shaders.scalar_buffer >= 0:
        bound[shaders.scalar_buffer], casts = words_argument(
            shaders.name, scalar_words, shaders.scalar_buffer
        )
    threads = threads_of(grid, shaders.threads, MAX_GRID_THREADS)
    if threads.folded:
        sizes, cast = words_argument(shaders.name, threads.words, len(bound))
        bound.append(sizes)
        casts |= cast
    shaders.kernel(threads.folded)(
        *bound, threads=threads.size, group_size=threads.group, arg_casts=casts or None
    )


def words_argument(kernel: str, words: bytes, binding: int) -> tuple[Any, dict[int, str]]:
    """The words of the scalars as an argument by value.

    PyTorch has no unsigned numbers here. The words are passed as signed numbers with the same bits, narrowed by
    ``arg_casts``.
    """
    if len(words) > MAX_BYTES_BY_VALUE:
        raise LaunchValueError(
            f"{kernel} has {len(words)} bytes of scalars; Metal takes {MAX_BYTES_BY_VALUE} by value"
        )
    values = [
        int.from_bytes(words[i : i + 4], "little", signed=True) for i in range(0, len(words), 4)
    ]
    return values, {binding: "int32"}


def check_tensor(kernel: str, name: str, tensor: Any) -> Any:
    """Checks that a tensor may be bound. PyTorch itself would pass a CPU scalar tensor by its first bytes."""
    device = getattr(getattr(tensor, "device", None), "type", None)
    if device != "mps" and not is_stand_in(tensor):
        raise LaunchTypeError(
            f"{kernel}: argument {name} is on the device {device}, but others are on mps: "
            "a launch takes tensors of one device"
        )
    if getattr(tensor, "is_complex", lambda: False)():
        raise LaunchTypeError(f"{kernel}: argument {name} is complex; a kernel takes real numbers")
    check_sign(kernel, name, tensor)
    return tensor


_is_stand_in: Callable[[Any], bool] | None = None


def is_stand_in(tensor: Any) -> bool:
    """Whether a contract device takes this object for a tensor on mps."""
    return _is_stand_in is not None and _is_stand_in(tensor)


__all__ = ["MAX_GRID_THREADS", "Shaders", "compile_shader", "launch"]
