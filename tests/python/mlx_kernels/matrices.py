"""Products of matrices and vectors, and convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product

from mlx_kernels.family import FLOATS, TYPES, Family, Instance, instance

TRANSPOSITIONS = {
    "nn": (False, False),
    "nt": (False, True),
    "tn": (True, False),
    "tt": (True, True),
}
Tile = tuple[int, int, int, int, int]


def tile_name(tile: Iterable[int], names: str = "bm bn bk wm wn") -> str:
    return "".join(f"_{name}{size}" for name, size in zip(names.split(), tile, strict=True))


def gemv() -> Iterator[Instance]:
    shape = "bm bn sm sn tm tn"
    plain = [(1, 8, 1, 32, 4, 4), (1, 8, 1, 32, 1, 4), (1, 1, 8, 4, 4, 4), (1, 1, 8, 4, 1, 4)]
    gathered = [(4, 1, 1, 32, 1, 4), (4, 1, 1, 32, 4, 4), (8, 1, 1, 32, 4, 4)]
    transposed = [
        (1, 2, 8, 4, 4, 1),
        (1, 2, 8, 4, 4, 4),
        (1, 4, 8, 4, 4, 4),
        (1, 16, 8, 4, 4, 4),
        (1, 16, 4, 8, 4, 4),
    ]
    for t in [*FLOATS, "complex64"]:
        for name, tiles in (("gemv", plain + gathered), ("gemv_t", transposed)):
            for tile, batched, scaled in product(tiles, (0, 1), (0, 1)):
                suffix = f"_nc{batched}_axpby{scaled}"
                yield instance(
                    f"{name}_{t}{tile_name(tile, shape)}{suffix}",
                    name,
                    TYPES[t],
                    *tile,
                    batched,
                    scaled,
                )
        for name, tiles in (("gemv_gather", gathered), ("gemv_t_gather", transposed)):
            for tile in tiles:
                yield instance(f"{name}_{t}{tile_name(tile, shape)}", name, TYPES[t], *tile)


def masks(t: str) -> Iterator[tuple[str, str, str, str]]:
    """Names and types of the masks of results and of operands; there is at least one."""
    names = {"bool_": "bool", t: TYPES[t], "nomask": "nomask_t"}
    for (out, out_type), (operand, operand_type) in product(names.items(), names.items()):
        if (out, operand) != ("nomask", "nomask"):
            yield out, out_type, operand, operand_type


def gemv_masked() -> Iterator[Instance]:
    shape = "bm bn sm sn tm tn nc"
    plain = [
        (2, 1, 4, 8, 1, 4),
        (2, 1, 4, 8, 4, 4),
        (2, 1, 2, 16, 1, 4),
        (2, 1, 2, 16, 4, 4),
        (4, 1, 2, 16, 4, 4),
    ]
    transposed = [
        (1, 1, 8, 4, 4, 1),
        (1, 2, 8, 4, 4, 4),
        (1, 1, 8, 4, 8, 1),
        (1, 1, 8, 4, 8, 4),
        (1, 2, 8, 4, 8, 4),
        (1, 4, 8, 4, 8, 4),
    ]
    for t in FLOATS:
        for name, tiles in (("gemv", plain), ("gemv_t", transposed)):
            for tile, batched, (out, out_type, operand, operand_type) in product(
                tiles, (0, 1), masks(t)
            ):
                yield instance(
                    f"{name}_outmask_{out}_opmask_{operand}_{t}{tile_name((*tile, batched), shape)}",
                    f"{name}_masked",
                    TYPES[t],
                    out_type,
                    operand_type,
                    *tile,
                    batched,
                )


BASE_TILES: list[Tile] = [
    (64, 64, 16, 2, 2),
    (64, 64, 16, 1, 2),
    (64, 32, 32, 2, 2),
    (32, 64, 16, 1, 2),
    (32, 32, 16, 2, 2),
]


def products(
    prefix: str,
    function: str,
    tiles: list[Tile],
    types: list[str] = FLOATS,
    transpositions: Iterable[str] = TRANSPOSITIONS,
    result: str = "",
    extra: tuple[object, ...] = ("float",),
) -> Iterator[Instance]:
    for t, tile, transposition in product(types, tiles, transpositions):
        name = f"{prefix}_{transposition}_{t}_{result or t}{tile_name(tile)}"
        yield instance(name, function, TYPES[t], *tile, *TRANSPOSITIONS[transposition], *extra)


def gemm_fused() -> Iterator[Instance]:
    tiles = [*BASE_TILES, (64, 32, 8, 4, 1)]
    return products("steel_gemm_fused", "gemm", tiles, [*FLOATS, "complex64"])


def gemm_gather() -> Iterator[Instance]:
    yield from products(
        "steel_gather_mm_rhs", "gather_mm_rhs", [(16, 64, 16, 1, 2)], transpositions=("nn", "nt")
    )
    yield from products("steel_gather_mm", "gather_mm", BASE_TILES)


def gemm_segmented() -> Iterator[Instance]:
    return products("steel_segmented_mm", "segmented_mm", BASE_TILES)


def alignments() -> Iterator[tuple[str, tuple[bool, bool]]]:
    for mn, k in product((True, False), (True, False)):
        yield f"_MN_{'nt'[mn]}aligned_K_{'nt'[k]}aligned", (mn, k)


def gemm_masked() -> Iterator[Instance]:
    tiles: list[Tile] = [(32, 32, 16, 2, 2), (64, 64, 16, 2, 2)]
    for t in FLOATS:
        for tile, (suffix, aligned), transposition, mask in product(
            tiles, alignments(), TRANSPOSITIONS, masks(t)
        ):
            out, out_type, operand, operand_type = mask
            yield instance(
                f"steel_gemm_block_outmask_{out}_opmask_{operand}_{transposition}_{t}_{t}{tile_name(tile)}{suffix}",
                "block_masked_gemm",
                TYPES[t],
                out_type,
                operand_type,
                *tile,
                *TRANSPOSITIONS[transposition],
                *aligned,
            )


def gemm_splitk() -> Iterator[Instance]:
    tiles: list[Tile] = [
        (16, 16, 16, 2, 2),
        (16, 32, 16, 2, 2),
        (32, 16, 16, 2, 2),
        (32, 32, 16, 2, 2),
    ]
    for t in [*FLOATS, "complex64"]:
        result = "complex64" if t == "complex64" else "float32"
        for tile, (suffix, aligned), transposition in product(tiles, alignments(), TRANSPOSITIONS):
            yield instance(
                f"steel_gemm_splitk_{transposition}_{t}_{result}{tile_name(tile)}{suffix}",
                "gemm_splitk",
                TYPES[t],
                TYPES[result],
                *tile,
                *TRANSPOSITIONS[transposition],
                *aligned,
            )
        yield instance(
            f"steel_gemm_splitk_accum_{t}_{result}", "gemm_splitk_accum", TYPES[result], TYPES[t]
        )
        yield instance(
            f"steel_gemm_splitk_accum_{t}_{result}_axbpy",
            "gemm_splitk_accum_axpby",
            TYPES[result],
            TYPES[t],
        )


def gemm_fused_nax() -> Iterator[Instance]:
    tiles: list[Tile] = [
        (64, 64, 256, 2, 2),
        (64, 128, 64, 2, 4),
        (64, 128, 256, 2, 4),
        (128, 128, 64, 4, 4),
        (128, 128, 256, 4, 4),
        (128, 128, 512, 4, 4),
    ]
    return products("steel_gemm_fused_nax", "gemm", tiles)


def gemm_gather_nax() -> Iterator[Instance]:
    tiles: list[Tile] = [(16, 128, 128, 1, 4), (32, 128, 128, 1, 4), (64, 128, 128, 2, 4)]
    return products(
        "steel_gather_mm_rhs_nax", "gather_mm_rhs_nax", tiles, transpositions=("nn", "nt")
    )


def gemm_segmented_nax() -> Iterator[Instance]:
    tiles: list[Tile] = [(64, 64, 256, 2, 2), (64, 64, 128, 2, 2), (64, 64, 64, 2, 2)]
    return products("steel_segmented_mm_nax", "segmented_mm_nax", tiles)


def gemm_splitk_nax() -> Iterator[Instance]:
    tiles: list[Tile] = [(64, 64, 256, 2, 2), (128, 128, 512, 4, 4)]
    return products("steel_gemm_splitk_nax", "gemm_splitk_nax", tiles, result="float32")


CONV_TILES: list[Tile] = [
    (32, 8, 16, 4, 1),
    (64, 8, 16, 4, 1),
    (32, 32, 16, 2, 2),
    (32, 64, 16, 2, 2),
    (64, 32, 16, 2, 2),
    (64, 64, 16, 2, 2),
]


def conv() -> Iterator[Instance]:
    variants = [
        ("l", 0, "s", True),
        ("l", 0, "l", False),
        *((str(n), n, "l", False) for n in (1, 2, 3, 4)),
    ]
    for t, tile, (channel, channels, filters, small) in product(FLOATS, CONV_TILES, variants):
        yield instance(
            f"implicit_gemm_conv_2d_{t}{tile_name(tile)}_channel_{channel}_filter_{filters}",
            "implicit_gemm_conv_2d",
            TYPES[t],
            *tile,
            channels,
            small,
        )


def conv_3d() -> Iterator[Instance]:
    for t, tile, (filters, small) in product(FLOATS, CONV_TILES, (("s", True), ("l", False))):
        name = f"implicit_gemm_conv_3d_{t}{tile_name(tile)}_filter_{filters}"
        yield instance(name, "implicit_gemm_conv_3d", TYPES[t], *tile, small)


def conv_general() -> Iterator[Instance]:
    for t, tile in product(FLOATS, CONV_TILES):
        name = f"implicit_gemm_conv_2d_general_{t}{tile_name(tile)}"
        yield instance(name, "implicit_gemm_conv_2d_general", TYPES[t], *tile)


def gemm_family(name: str, make: Callable[[], Iterable[Instance]], nax: bool = False) -> Family:
    base = "steel/gemm/gemm_nax.h" if nax else "steel/gemm/gemm.h"
    kernels = f"steel/gemm/kernels/steel_{name}"
    return Family(f"steel_{name}", ("utils.h", base, f"{kernels}.h"), make, kernels)


CONV = ("utils.h", "steel/gemm/mma.h", "steel/conv/conv.h", "steel/conv/params.h", "steel/utils.h")
FAMILIES = [
    Family("gemv", ("utils.h", "steel/utils.h", "gemv.h"), gemv, "gemv"),
    Family("gemv_masked", ("utils.h", "gemv_masked.h"), gemv_masked, "gemv_masked"),
    gemm_family("gemm_fused", gemm_fused),
    gemm_family("gemm_gather", gemm_gather),
    gemm_family("gemm_masked", gemm_masked),
    gemm_family("gemm_segmented", gemm_segmented),
    gemm_family("gemm_splitk", gemm_splitk),
    gemm_family("gemm_fused_nax", gemm_fused_nax, nax=True),
    gemm_family("gemm_gather_nax", gemm_gather_nax, nax=True),
    gemm_family("gemm_segmented_nax", gemm_segmented_nax, nax=True),
    gemm_family("gemm_splitk_nax", gemm_splitk_nax, nax=True),
    Family(
        "steel_conv",
        (*CONV, "steel/conv/kernels/steel_conv.h"),
        conv,
        "steel/conv/kernels/steel_conv",
    ),
    Family(
        "steel_conv_3d",
        (*CONV, "steel/conv/kernels/steel_conv_3d.h"),
        conv_3d,
        "steel/conv/kernels/steel_conv_3d",
    ),
    Family(
        "steel_conv_general",
        (*CONV, "steel/conv/kernels/steel_conv_general.h"),
        conv_general,
        "steel/conv/kernels/steel_conv_general",
    ),
]
