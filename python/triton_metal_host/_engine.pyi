"""The engine: clang, LLVM and the device. Capsules stand for its objects."""

from collections.abc import Callable, Sequence
from typing import Any

class CompileError(Exception):
    """Metal text that cannot be compiled. The text is clang's diagnostics: file:line:column."""

class LaunchError(Exception):
    """A launch that was refused or that failed: what it exceeded, or what a check found."""

table: Any
check_names: tuple[str, ...]
default_max_steps: int
language_versions: tuple[str, ...]

def find_quirks(text: str, file_name: str, safe_math: bool) -> str: ...
def quirk_rows() -> str: ...
def scanner_version() -> str: ...
def includes_beside(text: str) -> bool: ...
def library(
    source: str, file_name: str, macros: Sequence[str], include: Sequence[str]
) -> tuple[Any, str]:
    """(library, the names of its kernels as JSON). ``macros`` are names and values alternately."""

def describe(library: Any, name: str) -> str:
    """The description of a kernel as a JSON list of one."""

def function(
    library: Any, name: str, constants: Sequence[tuple[str | int, tuple[float, ...]]]
) -> tuple[Any, str]:
    """(function, its description as a JSON list of one)."""

def pipeline(
    function: Any,
    checks: str,
    max_steps: int,
    whole_buffers: int,
    portable: bool,
    counters: bool,
    parameters: Sequence[Any],
    convert: Callable[[Any, Any, bool], tuple[int, int, bool, Any] | None],
) -> tuple[Any, int, int]:
    """(pipeline, bytes of static threadgroup memory, bits of the written buffers)."""

def queue() -> Any: ...
def wait_idle(queue: Any, seconds: float) -> bool: ...
def launch(
    queue: Any,
    pipeline: Any,
    arguments: tuple[Any, ...],
    grid: Any,
    in_threads: bool,
    group: Any,
    lengths: Sequence[int] | None,
    seed: int | None,
    trace: tuple[Any, ...] = ...,
    kept: int = ...,
    /,
) -> tuple[float, tuple[int, ...] | None, Any, str | None]:
    """Runs a kernel to its end: (seconds, counters or None, profile or None, trace as JSON or None)."""

def commands(queue: Any, /) -> Any: ...
def add(
    commands: Any,
    pipeline: Any,
    arguments: tuple[Any, ...],
    grid: Any,
    in_threads: bool,
    group: Any,
    lengths: Sequence[int] | None,
    seed: int | None,
    /,
) -> None: ...
def commit(commands: Any, handler: Callable[[], object] | None) -> None: ...
def wait(commands: Any, seconds: float) -> bool: ...
def result(commands: Any, /) -> tuple[int, float, float, str | None, tuple[int, ...]]:
    """(status, start, end, error, counters); the status is 3 when it has completed and 4 when it has failed."""

def profile(commands: Any, /) -> Any: ...
def profile_text(profile: Any, form: str) -> str:
    """The profile as "text", "table", "json" or "html"."""

def raise_error(text: str, /) -> None: ...
def configure(cache_directory: str, threads: int) -> None: ...
def stop_on_interrupt() -> None: ...
def metal_run(arguments: Sequence[str], /) -> int:
    """Runs the tool; its exit status."""

def counter_names() -> tuple[str, ...]: ...
def view(value: Any, /) -> tuple[int, int, bool, str | None, int, int, bool, Any]:
    """(address, bytes, read-only, format, item size, dimensions, contiguous, holder) of a bytes-like object."""

def dlpack_view(capsule: Any, /) -> tuple[int, int, bool, str | None, int, int, bool, Any]: ...
