"""Compiles Triton IR text to Metal text, without a Python kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import _native
from ..backends.metal.options import MetalOptions
from ..devices.target import Target
from ..errors import compile_error
from ..stages import Stages


@dataclass(frozen=True)
class CompiledText:
    """A kernel at each stage of the compiler.

    `asm` has "ttir", "ttm", "msl" (the dialects) and "metal" (the text); `metadata` is the launch contract.
    """

    asm: Mapping[str, str]
    metadata: dict[str, Any]


def compile_ttir(
    ttir: str,
    *,
    num_warps: int | None = None,
    num_stages: int | None = None,
    name: str = "<ttir>",
    target: Target | None = None,
    precise_math: bool = False,
    enable_fp_fusion: bool = True,
) -> CompiledText:
    """Compiles a module of Triton IR, as stock Triton 3.7.1 to 3.9.0 or `kernel.asm["ttir"]` print it.

    `num_warps` is the number of SIMD-groups of a threadgroup (1, 2, 4, 8, 16 or 32). `num_stages` is a hint: with 1,
    a loop loads tiles when it needs them; with 2 or more, one iteration ahead if the tiles fit twice.
    `metadata["pipeline_stages"]` gives the result, 1 or 2. What is None the compiler chooses (docs/threads.md);
    `metadata["choice"]` says why. `name` names the text in messages. `target` is the target
    to compile for (`triton_metal.devices.target.apple("15.0", "Apple M2")`); the default is the newest baseline.
    `precise_math` and `enable_fp_fusion` are as in a launch (docs/arithmetic.md).
    Raises CompilationError with the location if the text does not parse or cannot be compiled.

    >>> compile_ttir("module { tt.func public @k() { tt.return } }").metadata["threads"]
    128
    """
    for option, value in (("num_warps", num_warps), ("num_stages", num_stages)):
        if value is not None and value < 1:
            raise ValueError(f"{option} is {value}; it must be 1 or more, or None")
    spec = target.spec() if target else ""
    arithmetic = MetalOptions(
        precise_math=precise_math, enable_fp_fusion=enable_fp_fusion
    ).arithmetic
    try:
        text = _native.compile_text(ttir, name, num_warps or 0, num_stages or 0, spec, arithmetic)
    except ValueError as error:
        raise compile_error(str(error)) from None
    metadata = json.loads(text.metadata)
    warps, stages = num_warps or metadata["num_warps"], num_stages or metadata["num_stages"]
    taken = (warps, stages, spec, arithmetic)
    return CompiledText(Stages(text.ttir, text.metal, taken), metadata)
