"""What Apple's compiler and GPUs refuse, recognised by what MLX and PyTorch report.

A framework passes on the words of Metal's errors, with words of its own around them. The table below is searched from
the top. docs/apple.md has it in words, with the sources.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .config import warps_within
from .errors import DeviceError, DeviceRefusal, kernel_places

FRAMEWORKS = {"mlx": "MLX", "mps": "PyTorch", "host": "the host device"}


@dataclass(frozen=True)
class Kind:
    """A kind of refusal: its name, what it means, and what to do when no other form of the kernel helps."""

    name: str
    cause: str
    advice: str
    patterns: tuple[str, ...]
    ran: bool = False
    """Whether the GPU had begun, so that what the launch was to write is not defined."""
    changes: tuple[str, ...] = ()
    """The other forms that may be accepted, the best one first."""


KINDS = (
    Kind(
        "language",
        "this macOS does not have the Metal language version that {framework} asks for",
        "install another version of {framework} (pip install -U), or update macOS",
        (
            r"invalid value '(?:macos-)?metal[\d.]+' in '-std=",
            r"using language version [\d.]+,? which is (?:incompatible with|not supported on) this OS",
            r"language version .{0,40}not supported",
        ),
        changes=("language",),
    ),
    Kind(
        "threads",
        "the kernel needs more registers than so many threads have",
        "launch it with a smaller num_warps",
        (
            r"Thread group size \(\d+\) is greater than\s+the maximum allowed threads",
            r"threads are more than the \d+ that this GPU runs",
            r"Threadgroup size exceeds \d+ limit",
            r"has \d+ threads a threadgroup, but this GPU supports at most \d+",
            r"exceeds available temporary registers",
        ),
        changes=("warps", "rolled"),
    ),
    Kind(
        "threadgroup memory",
        "the kernel needs more threadgroup memory than this GPU has",
        "use smaller blocks",
        (r"[Tt]hreadgroup memory (?:size|length).{0,80}exceeds",),
    ),
    Kind(
        "internal",
        "Apple's compiler failed on the kernel's Metal text without saying why",
        "use smaller blocks, and please report it with the file of `python -m triton_metal doctor --report report.md`",
        (
            r"[Cc]ompiler encountered an internal error",
            r"XPC_ERROR_CONNECTION_INTERRUPTED",
            r"[Cc]onnection (?:was )?interrupted",
            r"MTLCompilerService.{0,60}(?:crashed|interrupted|terminated)",
            r"Failed to compile metallib",
        ),
        changes=("rolled", "warps"),
    ),
    Kind(
        "service",
        "macOS's compiler service does not answer",
        "start the program anew, and do not launch kernels after os.fork()",
        (r"XPC_ERROR_CONNECTION_INVALID", r"Unable to reach MTLCompilerService"),
    ),
    Kind(
        "watchdog",
        "macOS ended the launch because it kept the GPU too long",
        "use a smaller grid or fewer iterations for each launch",
        (
            r"Impacting Interactivity",
            r"CallbackErrorImpactingInteractivity",
            r"CallbackErrorTimeout",
            r"Caused GPU (?:Timeout|Hang) Error",
            r"CallbackErrorHang",
        ),
        ran=True,
    ),
    Kind(
        "ignored",
        "macOS ignores this process's launches after an earlier one failed",
        "start the program anew, and look for the launch that failed first",
        (
            r"Ignored \(for causing prior/excessive GPU errors\)",
            r"CallbackErrorSubmissionsIgnored",
            r"[Ii]nnocent [Vv]ictim",
            r"Discarded \(victim of GPU error/recovery\)",
        ),
        ran=True,
    ),
    Kind(
        "fault",
        "the launch accessed memory that belongs to no array",
        "run it with launch_options(check='bounds') on NumPy arrays, which names the line",
        (r"Address Fault", r"CallbackErrorPageFault"),
        ran=True,
    ),
    Kind(
        "memory",
        "the GPU had not enough memory for the launch",
        "use smaller arrays, or free others first",
        (
            r"CallbackErrorOutOfMemory",
            r"Insufficient Memory",
        ),
        ran=True,
    ),
    Kind(
        "allocation",
        "there is no memory for an array of the launch",
        "use smaller arrays, or free others first",
        (r"\[metal::malloc\]", r"MPS backend out of memory"),
    ),
    Kind(
        "stopped",
        "the GPU stopped before the launch had ended",
        "launch it again; if it stops again, use a smaller grid or fewer iterations for each launch",
        (
            r"Command buffer execution failed",
            r"command buffer exited with error status",
            r"MTLCommandBufferStatusError",
            r"command buffer was aborted",
        ),
        ran=True,
    ),
    Kind(
        "no function",
        "Apple's compiler reported no error, but made a library without the kernel",
        "start the program anew; if it stays, this macOS cannot compile Metal text, and an update may help",
        (
            r"Failed to create function state object for",
            r"Unable to load function",
            r"Unable to load kernel \S+\s*\Z",
            r"no functions? in (?:the|this) library",
            r"object has no attribute",
        ),
    ),
    Kind(
        "text",
        "Apple's compiler does not accept the kernel's Metal text",
        "please report it with the file of `python -m triton_metal doctor --report report.md`",
        (
            r"Unable to build metal library from source",
            r"program_source:\d+:\d+: error:",
            r"Failed to create metal library",
        ),
        changes=("language",),
    ),
    Kind(
        "pipeline",
        "Metal makes no pipeline of the kernel",
        "use smaller blocks or fewer warps, and please report it with the file of "
        "`python -m triton_metal doctor --report report.md`",
        (r"Unable to load kernel", r"Failed to created? pipeline state"),
        changes=("rolled", "warps", "language"),
    ),
)

_BY_NAME = {kind.name: kind for kind in KINDS}
_PATTERNS = [(kind, re.compile("|".join(kind.patterns), re.S)) for kind in KINDS]


@dataclass(frozen=True)
class Refusal:
    """A refusal that was recognised."""

    kind: Kind
    framework: str
    said: str
    """The framework's whole message."""

    @property
    def fits(self) -> int | None:
        """The number of threads that the pipeline can have, if the message says it."""
        found = re.search(
            r"threads per threadgroup \((\d+)\)|more than the (\d+) that|exceeds (\d+) limit|at most (\d+)",
            self.said,
        )
        return int(next(g for g in found.groups() if g)) if found else None

    def summary(self) -> str:
        """The words of the message that say most, in one line."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        errors = [line for line in lines if "error:" in line]
        for line in errors or lines[::-1]:
            if re.search(r"note:|^\^|Unable to build metal library|Unable to load", line):
                continue
            return line if len(line) <= 200 else line[:197] + "..."
        return lines[0] if lines else ""

    def error(self, kernel: str, metadata: Any = None) -> DeviceRefusal:
        """The exception: one sentence that names the kernel, the cause and the next step."""
        name = FRAMEWORKS.get(self.framework, self.framework)
        cause = self.kind.cause.format(framework=name)
        advice = self.kind.advice.format(framework=name)
        if self.kind.name == "threads" and self.fits:
            advice = f"launch it with num_warps={warps_within(max(32, self.fits))} or fewer"
        how = f" ({self.summary()})" if self.summary() else ""
        text = f"{kernel}: {cause}{how}: {advice}"
        if self.kind.ran:
            text += "; what the launch was to write is not defined now"
        places = kernel_places(metadata, self.said)
        return DeviceRefusal(
            text,
            places[0] if places else None,
            tuple(places[1:]),
            kind=self.kind.name,
            framework=self.framework,
            said=self.said,
        )


def recognise(error: BaseException | str, framework: str) -> Refusal | None:
    """What a framework's exception or message says of a refusal; None if it is something else."""
    if isinstance(error, DeviceRefusal):
        return Refusal(_BY_NAME[error.kind], error.framework, error.said)
    message = error if isinstance(error, str) else str(error)
    # The host device is not Apple's: its errors are not refusals.
    for kind, pattern in _PATTERNS:
        if pattern.search(message):
            return Refusal(kind, framework, message)
    if isinstance(error, SyntaxError) and framework == "mps":
        return Refusal(_BY_NAME["text"], framework, message)
    return None


@contextlib.contextmanager
def reporting(framework: str) -> Iterator[None]:
    """In this block, exceptions of a framework that report a refusal are DeviceRefusals.

    It is for waiting: the framework does not say which launch the GPU ended.
    """
    try:
        yield
    except (RuntimeError, ValueError) as error:
        found = None if isinstance(error, DeviceError) else recognise(error, framework)
        if found is None:
            raise
        raise found.error("a launch") from error
