"""The families of kernels with a choice of configurations, by name."""

from __future__ import annotations

from ._decode_family import DECODE
from ._family import Family
from ._groups import GROUPS
from ._product_families import ADD_PARTS, MATMUL, QUANTIZED
from ._row_family import QUANTIZED_ROWS
from ._scaled_family import SCALED

FAMILIES: dict[str, Family] = {
    each.name: each
    for each in (ADD_PARTS, DECODE, GROUPS, MATMUL, QUANTIZED, QUANTIZED_ROWS, SCALED)
}
