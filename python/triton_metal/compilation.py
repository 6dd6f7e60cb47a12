"""From a module of Triton IR to a compiled kernel: the cache on disk, dumps and overrides, and who is told."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _native, cache, knobs, profiling
from .backends.compiler import GPUTarget
from .backends.metal.compiler import excess_of
from .backends.metal.options import DEFAULTS, OTHERS, MetalOptions
from .compiled import CompiledKernel, KernelMetadata
from .errors import CompilationError, DoesNotFit, compile_error
from .runtime.cache import get_dump_manager, get_override_manager
from .stages import Stages


@dataclass
class Job:
    """A kernel that is to be compiled."""

    src: Any
    name: str
    options: MetalOptions
    spec: str  # the target as the compiler reads it
    target: GPUTarget
    signature: dict[str, str]
    constants: dict[str, Any]
    aligned: list[str]
    device: str = "host"
    began: float = field(default_factory=time.perf_counter)


def key_of(job: Job, text: str) -> str:
    """The key of a kernel in the cache. The module is all that the compiler sees."""
    warps, stages = warps_of(job.options), stages_of(job.options)
    return cache.key_of(text, repr((warps, stages, other_options(job.options))), job.spec)


def other_options(options: MetalOptions) -> list[tuple[str, Any]]:
    """The options that are not Metal's, where they are not the default."""
    return [
        (name, getattr(options, name))
        for name in sorted(OTHERS)
        if getattr(options, name) != DEFAULTS[name]
    ]


def warps_of(options: MetalOptions) -> int:
    """The SIMD-groups that the compiler takes: 0 has it choose."""
    return options.num_warps or 0


def stages_of(options: MetalOptions) -> int:
    """The stages that the compiler takes, which has at most 16: 0 has it choose."""
    return 0 if options.num_stages is None else min(max(options.num_stages, 1), 16)


def arguments_of(job: Job) -> tuple[int, int, str, str]:
    """What the compiler takes besides a module: warps, stages, the target's text and the words on arithmetic."""
    options = job.options
    return warps_of(options), stages_of(options), job.spec, options.arithmetic


def build(
    job: Job,
    key: str,
    lower: Callable[[int, int, str, str], dict[str, str]],
    known: tuple[dict[str, str], Any] | None = None,
) -> CompiledKernel:
    """The kernel with this key: what is ``known`` in this process, or from the disk, or from the compiler.

    ``lower(warps, stages, target, arithmetic)`` compiles the job's module.
    """
    walked = time.perf_counter()
    settings = knobs.compilation
    arguments = arguments_of(job)
    replaced = _overridden(job, arguments)
    entry, native = known if known is not None and replaced is None else (replaced, None)
    if entry is None and not settings.always_compile:
        entry = cache.load(key)
    was_cached = entry is not None and replaced is None
    stored = lowered = walked
    if entry is None:
        entry = lower(*arguments)
        lowered = time.perf_counter()
        cache.store(key, entry)
        stored = time.perf_counter()
    kernel = make(job, key, entry, native)
    if settings.dump_ir:
        _dump(job, kernel)
    steps = [walked - job.began, lowered - walked, stored - lowered]
    if profiling.is_active():
        profiling.add_compilation(job.name, *steps, was_cached)
    if settings.listener is not None:
        first, lowering, storing = (int(step * 1e6) + (step > 0) for step in steps)
        settings.listener(
            src=job.src,
            metadata=kernel.metadata._asdict(),
            metadata_group=kernel.metadata_group,
            times=knobs.CompileTimes(first, [("metal", lowering)] if lowering else [], storing),
            cache_hit=was_cached,
        )
    return kernel


def make(job: Job, key: str, entry: dict[str, str], native: Any = None) -> CompiledKernel:
    """A kernel from its texts."""
    options, contract = job.options, json.loads(entry["metadata"])
    if options.num_stages is not None:
        contract["num_stages"] = options.num_stages
    metadata = KernelMetadata(
        contract,
        vars(options)
        | {
            "hash": key,
            "target": job.target,
            "shared": contract["threadgroup_bytes"],
            "global_scratch_size": 0,
            "global_scratch_align": 1,
            "profile_scratch_size": 0,
            "profile_scratch_align": 1,
            "tmem_size": 0,
        },
    )
    return CompiledKernel(
        src=job.src,
        hash=key,
        asm=Stages(entry["ttir"], entry["metal"], taken(options, contract, job.spec)),
        contract=entry["metadata"],
        metadata=metadata,
        packed_metadata=(metadata.num_warps, metadata.num_ctas, metadata.shared),
        signature=job.signature,
        constants=job.constants,
        aligned=job.aligned,
        name=job.name,
        device=job.device,
        native=native or _native.Kernel(entry["metal"], entry["metadata"], job.aligned),
        metadata_group={f"{job.name}.json": str(cache.cache_dir() / f"{key}.json")},
    )


def taken(
    options: MetalOptions, contract: Mapping[str, Any], spec: str
) -> tuple[int, int, str, str]:
    """What a kernel was compiled with: what its launch names, and what the compiler chose of the rest."""
    stages = stages_of(options) or contract["num_stages"]
    return warps_of(options) or contract["num_warps"], stages, spec, options.arithmetic


def refusal(diagnostics: str) -> CompilationError:
    """The compiler's diagnostics as an exception; for a kernel that needs too much of the device as a `DoesNotFit`."""
    error = compile_error(diagnostics)
    if excess := excess_of(diagnostics):
        return DoesNotFit(error.error_message, error.location, error.callers, excess)
    return error


def compile_text(
    text: str, name: str, num_warps: int, num_stages: int, target: str, arithmetic: str = ""
) -> dict[str, str]:
    """The texts of a kernel from one of Triton IR."""
    try:
        made = _native.compile_text(text, name, num_warps, num_stages, target, arithmetic)
    except ValueError as error:
        raise refusal(str(error)) from cause(error)
    return {"ttir": made.ttir, "metal": made.metal, "metadata": made.metadata}


def compile_module(
    module: _native.Module, num_warps: int, num_stages: int, target: str, arithmetic: str = ""
) -> dict[str, str]:
    """The texts of a kernel from the module that the front end made."""
    try:
        made = _native.compile_module(module, num_warps, num_stages, target, arithmetic)
    except ValueError as error:
        raise refusal(str(error)) from cause(error)
    return {"ttir": made.ttir, "metal": made.metal, "metadata": made.metadata}


def cause(error: Exception) -> Exception | None:
    """The cause of a refusal: none, unless ``knobs.compilation.front_end_debugging`` asks for it."""
    return error if knobs.compilation.front_end_debugging else None


def _overridden(job: Job, arguments: tuple[int, int, str, str]) -> dict[str, str] | None:
    """The kernel from the file of Triton IR that takes the place of the source's, if there is one."""
    path = job.options.ir_override
    if path is None and knobs.compilation.override:
        path = get_override_manager(job.src.hash()).get_file(f"{job.name[:150]}.ttir")
        if path is not None:
            print(f"\nOverriding kernel with file {path}")
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        return compile_text(file.read(), str(path), *arguments)


def _dump(job: Job, kernel: CompiledKernel) -> None:
    """Writes the text of each stage to ``knobs.cache.dump_dir``."""
    manager = get_dump_manager(job.src.hash())
    for stage, text in kernel.asm.items():
        manager.put(text, f"{job.name[:150]}.{stage}", binary=False)
