"""Compiles what stock Triton's front end prints, in the stages ttir, metal and binary."""

from __future__ import annotations

import json
import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

from triton import knobs
from triton._C.libtriton import ir, passes
from triton.backends.compiler import BaseBackend, GPUTarget

from .float8 import convert_custom_types

if TYPE_CHECKING:
    from triton_metal.backends.metal.options import MetalOptions


class MetalBackend(BaseBackend):
    """Compiles kernels for ``GPUTarget("metal", arch, 32)``. ``arch`` is the chip, or "host" for the host device."""

    binary_ext = "binary"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "metal"

    def hash(self) -> str:
        from triton_metal import cache

        return f"metal-{self.target.arch}-{cache.build_id()}-{self._spec()}"

    def _spec(self) -> str:
        """The target as triton_metal's compiler reads it."""
        from triton_metal import devices

        return devices.target_spec("host" if self.target.arch == "host" else "mps")

    def parse_options(self, opts: dict[str, Any]) -> MetalOptions:
        # Only now: Triton imports this module whenever it is imported itself.
        from triton_metal.backends.metal.options import read_options

        return read_options(opts, str(self.target.arch))

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: MetalOptions) -> dict[str, Any]:
        # Dots of any size are compiled; small ones are padded.
        return {
            "convert_custom_types": convert_custom_types,
            "min_dot_size": lambda lhs, rhs: (1, 1, 1),
        }

    def get_module_map(self) -> dict[str, ModuleType]:
        from . import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    def load_dialects(self, context: Any) -> None:
        """Needs none besides Triton's own."""

    def add_stages(
        self, stages: dict[str, Any], options: MetalOptions, language: Any = None
    ) -> None:
        if language is not None and getattr(language, "name", "TRITON") != "TRITON":
            raise ValueError(
                "Gluon kernels name layouts and memories of other GPUs; the backend metal compiles Triton kernels"
            )
        # Stock Triton then keeps the files of its own backends alone.
        if getattr(knobs.compilation, "store_binary_only", False):
            raise ValueError(
                "TRITON_STORE_BINARY_ONLY leaves nothing of a kernel of the backend metal: unset it, or set it to 0"
            )
        stages["ttir"] = lambda source, metadata: make_ttir(source)
        stages["metal"] = lambda source, metadata: make_metal(
            source, metadata, options, self._spec()
        )
        stages["binary"] = make_binary


def make_ttir(module: Any) -> Any:
    """Stock Triton's own passes on Triton IR."""
    manager = ir.pass_manager(module.context)
    manager.enable_debug()
    passes.common.add_inliner(manager)
    passes.common.add_canonicalizer(manager)
    passes.ttir.add_combine(manager)
    passes.ttir.add_reorder_broadcast(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    passes.ttir.add_loop_unroll(manager)
    manager.run(module, "make_ttir")
    return module


#: A descriptor among a kernel's arguments, and what begins its attributes if it has some.
_DESCRIPTOR = re.compile(r"(%[\w.$-]+: !tt\.tensordesc<(?:[^<>]|<[^<>]*>)*>)(?: \{)?")


def with_shapes(text: str) -> str:
    """Triton IR in which the kernel's descriptors have an attribute for what Triton's front end passes behind them: their
    sizes and strides.
    """

    def marked(found: re.Match[str]) -> str:
        more = ", " if found[0].endswith("{") else "}"
        return f"{found[1]} {{tt.shape_follows = true{more}"

    head, public, rest = text.partition("tt.func public ")
    arguments, line, body = rest.partition("\n")
    return head + public + _DESCRIPTOR.sub(marked, arguments) + line + body


def make_metal(module: Any, metadata: dict[str, Any], options: MetalOptions, target: str) -> str:
    """The Metal text of a module. Completes the metadata."""
    from triton.runtime.errors import OutOfResources
    from triton_metal import _native
    from triton_metal.backends.metal.compiler import excess_of
    from triton_metal.compilation import stages_of, taken, warps_of
    from triton_metal.errors import compile_error
    from triton_metal.hints import say_ignored

    text = with_shapes(str(module))
    stages = stages_of(options)
    if "tt.warp_specialize" in text:
        say_ignored("warp_specialize", True)
    if options.num_warps is not None and options.num_warps > 32:
        raise OutOfResources(options.num_warps * 32, 1024, "threads")
    try:
        made = _native.compile_text(
            text, "<ttir>", warps_of(options), stages, target, options.arithmetic
        )
    except ValueError as error:
        refusal = compile_error(str(error))
        # Autotuning passes over configurations that need too much of the device.
        if excess := excess_of(str(error)):
            raise OutOfResources(*excess) from refusal
        raise refusal from None
    contract = json.loads(made.metadata)
    metadata["name"] = contract["name"]
    metadata["shared"] = contract["threadgroup_bytes"]
    metadata["num_warps"] = contract["num_warps"]
    if options.num_stages is None:
        metadata["num_stages"] = contract["num_stages"]
    metadata["global_scratch_size"] = metadata["profile_scratch_size"] = 0
    metadata["global_scratch_align"] = metadata["profile_scratch_align"] = 1
    metadata["tmem_size"] = 0
    metadata["metal"] = {
        "ttir": text,
        "metadata": made.metadata,
        "options": taken(options, contract, target),
    }
    return made.metal


def make_binary(metal: str | None, metadata: dict[str, Any]) -> bytes:
    """What a device loads: the Metal text with its launch contract, and what it was made of, from which a launch on
    tensors that share memory makes another text.
    """
    if metal is None:  # which is what stock Triton reads from a file that it does not know
        raise ValueError(
            "TRITON_KERNEL_OVERRIDE takes a kernel's .ttir with the backend metal: remove the .metal of this kernel from "
            "TRITON_OVERRIDE_DIR"
        )
    return json.dumps({"metal": metal} | metadata.pop("metal")).encode()
