"""Stand-ins for what Apple's compiler and GPUs refuse: they raise what MLX and PyTorch raise, at the same calls.

The messages are those of the frameworks around Metal's own words, as public reports have them; docs/apple.md names the
sources. Nothing here was seen on a Mac by this project.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..mlx import in_place
from . import compile_shader, metal_kernel

When = Callable[[str, int], bool]
Refuse = Callable[[str, str, str], Exception]

_INTERNAL = "Compiler encountered an internal error"
_LANGUAGE = "invalid value 'metal4.0' in '-std=metal4.0'"
_NEW_FUNCTION = "Function {name} is using language version 4.1 which is incompatible with this OS."
_HANG = "Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang)"

#: What Metal's error says, by the kind of refusal; "{name}" is the kernel.
WORDS = {
    "text": "program_source:3:9: error: unknown type name 'quad'",
    "language": _LANGUAGE,
    "language of a function": _NEW_FUNCTION,
    "internal": _INTERNAL,
    "interrupted": "Compiler failed with XPC_ERROR_CONNECTION_INTERRUPTED",
    "service": "Unable to reach MTLCompilerService. The process is unavailable because the compiler is no longer active.",
    "threadgroup memory": "Threadgroup memory size (49152) exceeds the maximum threadgroup memory allowed (32768)",
    "pipeline": "Function {name} could not be lowered",
    "watchdog": "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)",
    "hang": _HANG,
    "timeout": "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)",
    "ignored": "Ignored (for causing prior/excessive GPU errors) "
    "(00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)",
    "memory": "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
}

#: Refusals that show when the library is made, and those that show when its pipeline is.
LIBRARY = ("text", "language")
PIPELINE = (
    "language of a function",
    "internal",
    "interrupted",
    "service",
    "threadgroup memory",
    "pipeline",
)
#: Refusals that show when the GPU has the work. PyTorch does not report them.
RUN = ("watchdog", "hang", "timeout", "ignored", "memory")


@dataclass
class Refusing:
    """What the stand-ins refused under ``refusing()``."""

    kind: str
    limit: int
    when: When
    refused: list[str] = field(default_factory=list)

    def stage(self, name: str, text: str, threads: int, stage: str) -> str | None:
        """Metal's words if this stage of a kernel is refused, and None otherwise."""
        kinds = {"library": LIBRARY, "pipeline": PIPELINE, "function": ("no function",)}[stage]
        if self.kind not in kinds or not self.when(text, threads):
            return None
        self.refused.append(text)
        return WORDS.get(self.kind, "").format(name=name)


@contextlib.contextmanager
def refusing(
    kind: str, *, limit: int = 1024, when: When = lambda text, threads: True
) -> Iterator[Refusing]:
    """In this block the contract devices refuse kernels, as MLX and PyTorch would.

    ``kind`` is a key of WORDS, "no function" for a library that lacks its kernel, or "threads" for pipelines that take
    at most ``limit`` threads. ``when`` receives a kernel's text and its threads, and says whether it is refused.
    """
    if kind not in (*WORDS, "no function", "threads"):
        raise ValueError(
            f"there is no refusal {kind!r}: they are no function, threads, {', '.join(WORDS)}"
        )
    if kind in RUN:
        raise ValueError(f"{kind!r} is reported after a launch: raise metal_error(...) yourself")
    state = Refusing(kind, limit, when)
    with contextlib.ExitStack() as stack:
        for module, name, value in (
            (compile_shader, "refuse", _at_stage(state, _mps)),
            (metal_kernel, "refuse", _at_stage(state, _mlx)),
            (in_place, "run", _in_place(state, in_place.run)),
        ):
            stack.callback(setattr, module, name, getattr(module, name))
            setattr(module, name, value)
        yield state


def _at_stage(state: Refusing, refuse: Refuse) -> Callable[[str, str, str, int], int | None]:
    """What a framework does at a stage: raises ``refuse(...)``, or takes a smaller limit of threads."""

    def ask(stage: str, name: str, text: str, threads: int) -> int | None:
        if stage == "limit":
            return state.limit if state.kind == "threads" and state.when(text, threads) else None
        words = state.stage(name, text, threads, stage)
        if words is not None:
            raise refuse(stage, name, words)
        return None

    return ask


def _mps(stage: str, name: str, words: str) -> Exception:
    """What OperationUtils.mm raises at a stage."""
    if stage == "library":
        return SyntaxError(words)
    if stage == "function":
        return RuntimeError(f"Failed to create function state object for: {name}")
    return RuntimeError(
        f'Failed to created pipeline state object, error: Error Domain=CompilerError Code=2 "{words}" '
        f"UserInfo={{NSLocalizedDescription={words}}}"
    )


def _mlx(stage: str, name: str, words: str) -> Exception:
    """What device.cpp and custom_kernel.cpp raise at a stage."""
    if stage == "library":
        return RuntimeError(
            f"[metal::Device] Unable to build metal library from source\nerror: {words}\n"
        )
    # A function that is not there makes no error of its own.
    return RuntimeError(
        f"[metal::Device] Unable to load kernel {name}\n" + (words and f"{words}\n")
    )


def _in_place(state: Refusing, run: Callable[..., None]) -> Callable[..., None]:
    """What runtime/mlx/EvalGpu.cpp does before a launch is bound to arrays."""

    ask = _at_stage(state, _mlx)

    def refuse(kernel: Any, *launch: Any) -> None:
        if not hasattr(kernel, "asm"):
            # A kernel of the stand-in for mx.fast.metal_kernel, which has been asked before.
            run(kernel, *launch)
            return
        text, threads = kernel.asm["metal"], kernel.metadata.threads
        name = kernel.metadata.name
        for stage in ("library", "function", "pipeline"):
            ask(stage, name, text, threads)
        if state.kind == "threads" and threads > state.limit and state.when(text, threads):
            raise ValueError(
                f"{name}: {threads} threads are more than the {state.limit} that this GPU runs of this kernel "
                "together: launch it with a smaller num_warps"
            )
        run(kernel, *launch)

    return refuse


def metal_error(kind: str, framework: str = "mlx") -> RuntimeError:
    """The exception with which a framework reports that the GPU ended a launch.

    MLX from 0.32 on raises it when it waits; earlier versions end the process with the same words. Released versions
    of PyTorch report nothing.

    >>> print(metal_error("hang"))
    [METAL] Command buffer execution failed: Caused GPU Hang Error (00000003:kIOGPUCommandBufferCallbackErrorHang).
    """
    if framework == "mlx":
        return RuntimeError(f"[METAL] Command buffer execution failed: {WORDS[kind]}.")
    return RuntimeError(f"MPS: command buffer exited with error status: {WORDS[kind]}")
