"""The options of a launch: what Triton 3.7 to 3.9 pass, and what kernels for other GPUs write."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import Any

from ... import knobs
from ...hints import IGNORED, say_ignored

FP8_TYPES = ("fp8e4b15", "fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16")
DOT_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


@dataclass(frozen=True)
class MetalOptions:
    """Options of a kernel. Those in ``triton_metal.hints.IGNORED`` have no counterpart in Metal and change nothing.

    ``enable_fp_fusion``: a product that is only added becomes ``fma``. ``precise_math``: functions and ``/`` are rounded
    as precisely as Metal can, where they otherwise keep to the bounds of docs/arithmetic.md.
    """

    num_warps: int | None = None  # the compiler chooses
    num_stages: int | None = None  # the compiler chooses
    debug: bool = False
    sanitize_overflow: bool = True
    enable_fp_fusion: bool = True
    precise_math: bool = False
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = DOT_PRECISIONS
    max_num_imprecise_acc_default: int = 0
    extern_libs: Any = None
    ir_override: str | None = None
    backend_name: str = "metal"
    arch: str | None = None
    warp_size: int = 32

    # Other backends' options.
    num_ctas: int = 1
    maxnreg: int | None = None
    cluster_dims: tuple[int, ...] = (1, 1, 1)
    launch_cooperative_grid: bool = False
    launch_cluster: bool = False
    launch_pdl: bool = False
    clc: bool = False
    sched4reg: bool = False
    ptx_version: int | None = None
    ptx_options: str | None = None
    enable_reflect_ftz: bool = True
    min_shared_mem: int | None = None
    waves_per_eu: int = 0
    matrix_instr_nonkdim: int = 0
    kpack: int = 1
    allow_flush_denorm: bool = False
    schedule_hint: str = ""
    llvm_fn_attrs: Any = ""
    wgp_cu_mode: str = "wgp"
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False

    def __post_init__(self) -> None:
        warps = self.num_warps
        if warps is not None and (
            isinstance(warps, bool)
            or not isinstance(warps, int)
            or warps < 1
            or warps & (warps - 1)
        ):
            # Triton's own backends raise this class, and programs expect it.
            raise AssertionError(f"num_warps is {warps!r}; it must be a power of 2 from 1 to 32")
        for name in ("enable_fp_fusion", "precise_math"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        if self.warp_size != 32:
            raise ValueError(
                f"warp_size is {self.warp_size!r}; a SIMD-group of an Apple GPU has 32 threads"
            )
        if self.instrumentation_mode:
            raise ValueError(
                f"instrumentation_mode is {self.instrumentation_mode!r}, which the backend metal does not have; "
                'triton_metal.launch_options(check="bounds") checks launches on the host device'
            )
        libraries = dict(self.extern_libs or {})
        object.__setattr__(self, "extern_libs", tuple(sorted(libraries.items())))

    @property
    def arithmetic(self) -> str:
        """What the compiler is told of both options of arithmetic.

        >>> MetalOptions(enable_fp_fusion=False, precise_math=True).arithmetic
        'precise,unfused'
        """
        words = ("precise", self.precise_math), ("unfused", not self.enable_fp_fusion)
        return ",".join(word for word, holds in words if holds)

    def hash(self) -> str:
        """A digest of all options."""
        values = sorted((name, repr(value)) for name, value in self.__dict__.items())
        return hashlib.sha256(repr(values).encode()).hexdigest()


DEFAULTS = {field.name: field.default for field in fields(MetalOptions)} | {"extern_libs": ()}


def read_options(given: dict[str, Any], arch: str) -> MetalOptions:
    """The options among a launch's keywords. A hint that means nothing on Metal is named once per process."""
    known = {name: given[name] for name in DEFAULTS if given.get(name) is not None}
    for name in ("supported_fp8_dtypes", "allowed_dot_input_precisions"):
        if name in known:
            known[name] = tuple(known[name])
    fusion = knobs.language
    if "enable_fp_fusion" not in known:
        known["enable_fp_fusion"] = bool(fusion.default_fp_fusion)
    if fusion.force_disable_fp_fusion:
        known["enable_fp_fusion"] = False
    options = MetalOptions(**{"arch": arch} | known)
    name_ignored(options)
    return options


def name_ignored(options: MetalOptions) -> None:
    """Says, once per process, which options mean nothing on Metal."""
    for name in IGNORED:
        if getattr(options, name, None) != DEFAULTS.get(name):
            say_ignored(name, getattr(options, name))


#: The options of other backends that a launch takes besides those that the native launcher reads.
OTHERS = frozenset(DEFAULTS) - {"num_warps", "num_stages", "debug", "sanitize_overflow", "arch"}
