"""Attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from mlx_kernels.family import FLOATS, TYPES, Family, Instance, instance


def tiled(function: str, tiles: Iterable[tuple[int, int, int]]) -> Iterator[Instance]:
    for t, (queries, keys, width) in product(FLOATS, tiles):
        for mask in (t, "bool_"):
            name = f"steel_attention_{t}_bq{queries}_bk{keys}_bd{width}_wm4_wn1_mask{mask}"
            yield instance(
                name, function, TYPES[t], queries, keys, width, 4, 1, TYPES[mask], "float"
            )


def attention() -> Iterator[Instance]:
    return tiled("attention", [(32, 16, 128), (32, 32, 80), (32, 32, 64)])


def attention_nax() -> Iterator[Instance]:
    return tiled("attention_nax", [(64, 32, 128), (64, 32, 64), (64, 64, 128), (64, 64, 64)])


def sdpa_vector() -> Iterator[Instance]:
    for t in ("float", "bfloat16_t", "float16_t"):
        for keys, values in ((64, 64), (96, 96), (128, 128), (192, 128), (256, 256)):
            yield instance(f"sdpa_vector_{t}_{keys}_{values}", "sdpa_vector", t, keys, values)
            yield instance(
                f"sdpa_vector_2pass_1_{t}_{keys}_{values}", "sdpa_vector_2pass_1", t, keys, values
            )
        for values in (64, 96, 128, 256):
            yield instance(f"sdpa_vector_2pass_2_{t}_{values}", "sdpa_vector_2pass_2", t, values)


FOLDER = "steel/attn/kernels/steel_attention"
FAMILIES = [
    Family("steel_attention", ("utils.h", "steel/attn/attn.h", f"{FOLDER}.h"), attention, FOLDER),
    Family("steel_attention_nax", ("utils.h", f"{FOLDER}_nax.h"), attention_nax, f"{FOLDER}_nax"),
    Family(
        "sdpa_vector", ("utils.h", "sdpa_vector.h"), sdpa_vector, "scaled_dot_product_attention"
    ),
]
