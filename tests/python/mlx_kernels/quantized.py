"""Products with quantized matrices: affine groups, and the modes with floating-point groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mlx_kernels.family import Family, Instance, instance

TYPES = ("float", "float16_t", "bfloat16_t")
MODES = {"nvfp4": (16, 4), "mxfp8": (32, 8), "mxfp4": (32, 4)}
NAX = "_bm64_bn64_bk64_wm2_wn2"


def groups() -> Iterator[tuple[str, int, int]]:
    yield from product(TYPES, (128, 64, 32), (2, 3, 4, 5, 6, 8))


def common(
    prefix: str, function: str, t: str, group: int, bits: int, lanes: int
) -> Iterator[Instance]:
    """What affine quantization and the other modes have alike. `lanes`: those along k of a wide product."""

    def kernel(name: str, suffix: str, *arguments: object) -> Instance:
        full = f"{prefix}_{name}_{t}_gs_{group}_b_{bits}{suffix}"
        return instance(full, f"{function}_{name}", t, group, bits, *arguments)

    for name in ("gather_qmv_fast", "gather_qmv", "gather_qvm", "gather_qmm_n"):
        yield kernel(name, "")
    for name, batched in product(("qmv_fast", "qmv", "qvm", "qmm_n"), (1, 0)):
        yield kernel(name, f"_batch_{batched}", batched)
    for aligned in (True, False):
        suffix = f"_alN_{str(aligned).lower()}"
        yield kernel("gather_qmm_t", suffix, aligned)
        yield kernel("qmm_t_splitk", suffix, aligned)
        for batched in (1, 0):
            yield kernel("qmm_t", f"{suffix}_batch_{batched}", aligned, batched)
    for width, batched in product((64, 128), (1, 0)):
        yield kernel("qmv_quad", f"_d_{width}_batch_{batched}", width, batched)
    for vectors, batched in product((2, 3, 4, 5), (0, 1)):
        yield kernel(
            "qmv_wide", f"_nv_{vectors}_kl_{lanes}_batch_{batched}", vectors, lanes, batched
        )
    for parts in (8, 32):
        yield kernel("qvm_split_k", f"_spk_{parts}", parts)
    for name, transposed in (("nt", True), ("nn", False)):
        yield instance(
            f"{prefix}_gather_qmm_rhs_{name}_{t}_gs_{group}_b_{bits}_bm_16_bn_32_bk_32_wm_1_wn_2",
            f"{function}_gather_qmm_rhs",
            *(t, group, bits, 16, 32, 32, 1, 2, transposed),
        )


def affine() -> Iterator[Instance]:
    for t, group, bits in groups():
        yield from common("affine", "affine", t, group, bits, 8)
        for name in ("affine_quantize", "affine_dequantize"):
            yield instance(f"{name}_{t}_gs_{group}_b_{bits}", name, t, group, bits)


def fp() -> Iterator[Instance]:
    for t, (mode, (group, bits)) in product(TYPES, MODES.items()):
        yield from common(mode, "fp", t, group, bits, 16)
        for name in ("quantize_dequantize", "quantize", "dequantize"):
            yield instance(f"{mode}_{name}_{t}_gs_{group}_b_{bits}", f"fp_{name}", t, group, bits)


def common_nax(
    prefix: str, function: str, t: str, group: int, bits: int, tile: tuple[int, ...]
) -> Iterator[Instance]:
    base = f"{t}_gs_{group}_b_{bits}"
    for aligned in (True, False):
        suffix = f"_alN_{str(aligned).lower()}"
        name = f"{prefix}_gather_qmm_t_nax_{base}{NAX}{suffix}"
        yield instance(name, f"{function}_gather_qmm_t_nax", t, group, bits, aligned, *tile)
        for batched in (1, 0):
            name = f"{prefix}_qmm_t_nax_{base}{NAX}{suffix}_batch_{batched}"
            yield instance(name, f"{function}_qmm_t_nax", t, group, bits, aligned, batched, *tile)
    for kind, transposed in (("nt", True), ("nn", False)):
        name = f"{prefix}_gather_qmm_rhs_nax_{kind}_{base}_bm_64_bn_64_bk_64_wm_2_wn_2"
        yield instance(
            name, f"{function}_gather_qmm_rhs_nax", t, group, bits, 64, 64, 64, 2, 2, transposed
        )


def affine_nax() -> Iterator[Instance]:
    tile = (64, 64, 64, 2, 2)
    for t, group, bits in groups():
        for batched in (1, 0):
            name = f"affine_qmm_n_nax_{t}_gs_{group}_b_{bits}{NAX}_batch_{batched}"
            yield instance(name, "affine_qmm_n_nax", t, group, bits, batched, *tile)
        yield from common_nax("affine", "affine", t, group, bits, tile)


def fp_nax() -> Iterator[Instance]:
    for t, (mode, (group, bits)) in product(TYPES, MODES.items()):
        yield from common_nax(mode, "fp", t, group, bits, ())


GEMM = ("utils.h", "steel/gemm/gemm.h", "quantized_utils.h")
FAMILIES = [
    Family("quantized", (*GEMM, "quantized.h"), affine, "quantized"),
    Family("fp_quantized", (*GEMM, "fp_quantized.h"), fp, "fp_quantized"),
    Family(
        "quantized_nax",
        (
            "utils.h",
            "steel/gemm/gemm.h",
            "steel/gemm/nax.h",
            "steel/gemm/loader.h",
            "quantized_nax.h",
        ),
        affine_nax,
        "quantized_nax",
    ),
    Family(
        "fp_quantized_nax",
        (*GEMM, "steel/gemm/nax.h", "fp_quantized_nax.h"),
        fp_nax,
        "fp_quantized_nax",
    ),
]
