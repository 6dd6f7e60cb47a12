"""Compiles a Metal text and launches its kernels on the host device, in this process."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import triton_metal_host as metal
from triton_metal_host.device import Device
from triton_metal_host.library import Function

KERNELS = 3  # of a text are launched
BUFFER_BYTES = 1 << 16
SPACE = (
    1 << 34
)  # bytes from a buffer to the next: an index of 32 bits that is too large meets no memory
VERSIONS = ("2.4", "3.0", "3.1", "3.2", "4.0")


@dataclass
class Plan:
    """How a text is compiled and launched. What `drawn` makes of a number is the same each time."""

    checks: str = ""
    grid: tuple[int, int, int] = (64, 1, 1)
    in_threads: bool = True
    group: tuple[int, int, int] = (64, 1, 1)
    buffer_bytes: int = BUFFER_BYTES
    fill: int = 16  # each 32-bit number of the buffers
    lengths: int = 256  # of threadgroup arguments
    constants: float = 1
    seed: int | None = None
    effort: str = "quick"
    options: dict[str, Any] = field(default_factory=dict)  # of the pipeline
    version: str | None = None

    @property
    def is_checked(self) -> bool:
        """Whether launches cannot write outside of their buffers and variables."""
        return bool(self.checks) or bool(self.options.get("portable"))

    @classmethod
    def drawn(cls, seed: int, number: int) -> Plan:
        """Odd numbers run under all checks. Half of the plans are the usual one otherwise."""
        plan = cls(checks="all" if number % 2 else "")
        draw = random.Random(f"{seed}/{number}/plan")
        plan.effort = draw.choice(("quick", "quick", "full"))
        plan.fill = draw.choice((3, 16))
        if draw.random() < 0.5:
            return plan
        choose = draw.choice
        sizes = (1, 2, 3, 7, 8, 31, 32, 33, 64, 65, 100)
        plan.grid = choose(((1, 1, 1), (100, 1, 1), (16, 3, 2), (choose(sizes), choose(sizes), choose(sizes[:6])), (4000, 1, 1)))  # fmt: skip
        plan.group = choose(
            (
                *((32, 1, 1), (33, 1, 1), (8, 8, 2), (1024, 1, 1)) * 3,
                *((0, 1, 1), (4096, 1, 1)),
                *((choose(sizes), choose(sizes[:6]), choose(sizes[:4])),) * 4,
            )
        )
        plan.in_threads = draw.random() < 0.7
        plan.buffer_bytes = choose((*(BUFFER_BYTES,) * 4, 4096, 4096, 1000, 68, 16, 1))
        plan.fill = choose((plan.fill, 0, 1, 64, 0x3F800000, 0xFFFFFFFF))
        plan.lengths = choose((256, 16, 1, 1000, 32768, 32769, 1 << 31))
        plan.constants = choose((0, 1, 3, -1, 1e9, 0.5))
        plan.seed = choose((None, None, 1, 1 << 63))
        plan.effort = choose((plan.effort, "adaptive"))
        plan.version = choose((None, None, *VERSIONS))
        if number % 4 == 1:
            plan.checks = choose(("bounds", "races", "initialized", "bounds,races", "all,nans,same-values", "steps,divergence"))  # fmt: skip
        plan.options = choose(({}, {"counters": True}, {"max_steps": 100}))
        if draw.random() < 0.2:
            plan.options, plan.checks = {"portable": True}, ""
        return plan


class Arena:
    """Memory for the buffers of a launch, with nothing that is mapped around each of them."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
        libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        count = Device.max_buffers
        no_access, no_reserve = 0, 0x4000
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
        start = libc.mmap(None, (count + 1) * SPACE, no_access, flags, -1, 0)
        if start in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), "there is no address space for the buffers")
        self.addresses = [start + SPACE // 2 + index * SPACE for index in range(count)]
        for address in self.addresses:
            if libc.mprotect(address, BUFFER_BYTES, mmap.PROT_READ | mmap.PROT_WRITE):
                raise OSError(ctypes.get_errno(), "there is no memory for the buffers")

    def buffers(self, count: int, fill: int) -> list[metal.Buffer]:
        """Buffers of so many bytes, filled with one number. Small buffers end where memory does."""
        content = fill.to_bytes(4, "little") * (BUFFER_BYTES // 4)
        result = []
        for address in self.addresses:
            ctypes.memmove(address, content, BUFFER_BYTES)
            size = -(-count // 16) * 16
            memory = (ctypes.c_uint8 * count).from_address(address + BUFFER_BYTES - size)
            result.append(metal.Buffer(memory))
        return result


def constants_of(function: metal.FunctionInfo, value: float) -> dict[str | int, Any]:
    """A value for each function constant, the same but for its type."""
    values: dict[str | int, Any] = {}
    for constant in function.constants:
        scalar = constant.scalar or "int"
        number: Any = value if scalar in ("half", "float", "bfloat") else int(value)
        if scalar == "bool":
            number = value > 0
        if scalar == "half":
            number = min(number, 60000)
        if scalar.startswith("u"):
            number = abs(number)
        if scalar.endswith(("char", "short")):
            number = min(number, 100)
        values[constant.index] = (number,) * constant.components if constant.components > 1 else number  # fmt: skip
    return values


class Runner:
    """Compiles and launches texts, one after another."""

    def __init__(self) -> None:
        metal.configure(cache_directory=None)
        self.device = metal.Device()
        self.arena = Arena()

    def run(self, text: str, plan: Plan, tell: Callable[[str], None]) -> str:
        """What became of a text: "ran", "error" or "surprise" with a message, or "stopped" by an interrupt.

        ``tell`` is called with "compile" and "launch" when the one or the other begins.
        """
        os.environ["TRITON_METAL_HOST_EFFORT"] = plan.effort if plan.effort != "adaptive" else ""
        problem = ""
        try:
            tell("compile")
            library = self.device.library(text, language_version=plan.version)
            for name in library.function_names[:KERNELS]:
                tell("compile")
                try:
                    self.launch(library, name, plan, tell)
                except (metal.CompileError, metal.LaunchError, ValueError, TypeError) as error:
                    problem = problem or str(error)
        except KeyboardInterrupt:
            return "stopped"
        except metal.CompileError as error:
            problem = str(error)
        except Exception as error:  # which the device does not promise
            return f"surprise {error!r}"
        return f"error {problem}" if problem else "ran"

    def launch(
        self, library: metal.Library, name: str, plan: Plan, tell: Callable[[str], None]
    ) -> None:
        info = library.functions[name]
        function: Function = library.function(name, constants_of(info, plan.constants))
        checks = plan.checks.split(",") if plan.checks else ()
        pipeline = self.device.pipeline(function, checks=checks, **plan.options)
        most = pipeline.max_total_threads_per_threadgroup
        group = (min(64, most), 1, 1) if plan.group == (64, 1, 1) else plan.group
        named = {"threads" if plan.in_threads else "threadgroups": plan.grid}
        buffers = self.arena.buffers(plan.buffer_bytes, plan.fill)
        tell("launch")
        pipeline(
            arguments={p.index: buffers[p.index] for p in function.info.buffers if p.exists},
            threads_per_threadgroup=group,
            threadgroup_memory={p.index: plan.lengths for p in info.threadgroup_arguments},
            seed=plan.seed,
            **named,
        )


def stopwatch(tell: Callable[[str], None]) -> tuple[Callable[[str], None], dict[str, float]]:
    """``tell`` with the seconds of each stage, which are summed up until the stage "end"."""
    spent: dict[str, float] = {"compile": 0.0, "launch": 0.0}
    began: list[tuple[str, float]] = []

    def measured(stage: str) -> None:
        now = time.monotonic()
        if began:
            last, start = began.pop()
            spent[last] += now - start
        if stage != "end":
            began.append((stage, now))
            tell(stage)

    return measured, spent
