"""Whether a launch writes every element of its outputs.

The compiler derives a second kernel with the same arguments that stores a number without a zero byte wherever the
kernel stores anything. It runs over zeros, with the grid and the scalars of the launch, and leaves zeros where the
launch does not write. If the stores depend on what the kernel reads, there is no answer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from . import _native
from .compiler import compile_ttir
from .errors import LaunchValueError
from .metal_text import MetalText, threads_of

# Threads of a grid on the host device.
MAX_GRID_THREADS = (1 << 32) - 1
# Answers that are remembered for one kernel.
MAX_ANSWERS = 4096


class Coverage:
    """What the launches of one compiled kernel write.

    >>> import triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def fill(x, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(x + i, 2.5, i < n)
    >>> coverage = Coverage(fill.warmup(tl.float32, 100, BLOCK=64))
    >>> words = (100).to_bytes(4, "little")
    >>> coverage.whole((2, 1, 1), words, {"x": 100}), coverage.whole((1, 1, 1), words, {"x": 100})
    ({'x': True}, {'x': False})
    """

    def __init__(self, compiled: Any) -> None:
        self.name: str = compiled.metadata.name
        self.answers: dict[Any, dict[str, bool]] = {}
        text = _native.coverage_kernel(compiled.asm["ttir"], self.name)
        self.compiled: Any = None
        if text is None:
            return
        made = compile_ttir(text, num_warps=compiled.metadata.num_warps, name=self.name)
        self.compiled = SimpleNamespace(asm=made.asm, metadata=SimpleNamespace(**made.metadata))
        self.names = [argument["name"] for argument in compiled.metadata.args]
        self.text = MetalText.of(made.asm["metal"], made.metadata)
        self.libraries: dict[bool, Any] = {}

    def whole(
        self,
        grid: tuple[int, int, int],
        words: bytes,
        sizes: Mapping[str, int],
        elsewhere: Callable[..., dict[int, bool]] | None = None,
    ) -> dict[str, bool]:
        """Whether a launch is known to write every element of arrays with these numbers of elements.

        `elsewhere(compiled, positions, grid, words)` runs the derived kernel if there is no host device.
        """
        if self.compiled is None:
            return dict.fromkeys(sizes, False)
        key = (grid, words, tuple(sizes.items()))
        answer = self.answers.get(key)
        if answer is None:
            positions = {self.names.index(name): size for name, size in sizes.items()}
            found: dict[int, bool] = {}
            if _native.host_device_problem() is None:
                found = self.ask_host(grid, words, positions)
            elif elsewhere is not None:
                found = elsewhere(self.compiled, positions, grid, words)
            answer = {self.names[position]: whole for position, whole in found.items()}
            answer = dict.fromkeys(sizes, False) | answer
            if len(self.answers) >= MAX_ANSWERS:
                self.answers.clear()
            self.answers[key] = answer
        return answer

    def ask_host(
        self, grid: tuple[int, int, int], words: bytes, positions: Mapping[int, int]
    ) -> dict[int, bool]:
        """Runs the derived kernel on the host device."""
        metadata = self.compiled.metadata
        memories: dict[int, bytearray] = {}
        buffers: list[bytearray] = [bytearray(64) for _ in self.text.buffers]
        for position, size in positions.items():
            argument = metadata.args[position]
            size_of_one = bytes_of(argument["type"].removeprefix("*"))
            buffers[argument["slot"]] = memory = bytearray(max(size, 1) * size_of_one)
            memories[position] = memory
        if metadata.scalar_buffer >= 0:
            buffers[metadata.scalar_buffer] = bytearray(words)
        threads = threads_of(grid, metadata.threads, MAX_GRID_THREADS)
        if threads.folded:
            buffers.append(bytearray(threads.words))
        library = self.libraries.get(threads.folded)
        if library is None:
            metal = self.text.folded() if threads.folded else self.compiled.asm["metal"]
            library = _native.MetalLibrary(metal, checks="bounds")
            self.libraries[threads.folded] = library
        try:
            library.dispatch(metadata.name, bind(buffers), threads.size, threads.group)
        except (RuntimeError, ValueError) as error:
            raise LaunchValueError(
                f"{self.name}: this launch writes outside of its outputs: {error}"
            ) from None
        return {
            position: not positions[position] or 0 not in memory
            for position, memory in memories.items()
        }


def bind(buffers: Sequence[bytearray]) -> list[tuple[int, int, bool]]:
    """The addresses of buffers. The buffers must outlive them."""
    return [
        (ctypes.addressof(ctypes.c_char.from_buffer(buffer)), len(buffer), True)
        for buffer in buffers
    ]


def bytes_of(type: str) -> int:
    """The bytes of an element of a type of the launch contract.

    >>> bytes_of("i1"), bytes_of("u8"), bytes_of("bf16"), bytes_of("i64")
    (1, 1, 2, 8)
    """
    return max(1, int(type.lstrip("biuf")) // 8)


def of(compiled: Any) -> Coverage:
    """The coverage of a compiled kernel; it is computed once."""
    found = vars(compiled).get("_coverage")
    if found is None:
        found = compiled._coverage = Coverage(compiled)
    return found
