"""What a launch should do better, with the lines of Python that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cost.model import Cost
from .access import LINE, Access

#: Accesses that use less of their lines than this are warned of.
LITTLE = 0.5


@dataclass(frozen=True)
class Finding:
    """A warning: what is found, what to do, and the place in `Sources.python`, None for the whole kernel."""

    what: str
    todo: str
    line: int | None


def findings_of(accesses: Sequence[Access], costs: Sequence[Cost]) -> list[Finding]:
    """The warnings of a launch: those of accesses first, the most lines first, then the advice of the chips' models."""
    multiplies = any(cost.work.counters.get("simdgroup_matrix_multiplies") for cost in costs)
    found = [
        Finding(
            f"{access.kind} of {access.array or 'memory'}: {access.use:.0%} of each 128-byte line is used "
            f"({access.pattern})",
            _MATRICES if multiplies and access.is_of_matrices else _todo(access),
            access.python,
        )
        for access in sorted(accesses, key=lambda access: -access.moved)
        if uses_little(access)
    ]
    advice: dict[str, list[str]] = {}
    for cost in costs:
        for text in cost.advice:
            advice.setdefault(text, []).append(cost.chip.name)
    found += [
        Finding(f"Time on {', '.join(dict.fromkeys(names))}", text, None)
        for text, names in advice.items()
    ]
    return list(dict.fromkeys(found))


_MATRICES = (
    "The tile is a matrix product's result, or is computed with one. Matrix instructions spread pieces of 8 by 8 numbers over a "
    "SIMD-group, so that an access touches rows of 8 numbers: the tile's shape, its type, num_warps and a descriptor do not change "
    "that. If a row of the tile has 128 bytes or more, the accesses that follow touch the rest of the lines, and the cache may "
    "make up for it. More products for each such access, as by a longer loop over K, make it a smaller part of the time."
)


def uses_little(access: Access) -> bool:
    """Whether the lanes could touch half as many lines for the same bytes."""
    least = sum(-(-needed // LINE) for _, needed in access.touches)
    return access.use < LITTLE and access.touched >= 2 * least


def _todo(access: Access) -> str:
    if "rows" in access.pattern or access.bytes >= 8:
        return (
            "Make the innermost dimension of the tile longer, so that a row fills its lines. Where other executions "
            "touch the rest of the lines soon after, the cache may make up for it."
        )
    if "stride" in access.pattern:
        return (
            "Let neighbouring lanes access neighbouring elements: lay the array out so that its last dimension is the "
            "one that tl.arange runs over, or transpose it once beforehand."
        )
    return (
        "Sort the indices, or load whole rows and pick from them, so that lanes that are neighbours touch the same "
        "lines."
    )
