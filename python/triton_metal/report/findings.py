"""What a launch should do better, with the lines of Python that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cost.model import Cost
from .access import LINE, Access, touched

#: Accesses that use less of their lines than this are warned of.
LITTLE = 0.5


@dataclass(frozen=True)
class Finding:
    """A warning: what is found, what to do, and the place in `Sources.python`, None for the whole kernel."""

    what: str
    todo: str
    line: int | None


def findings_of(accesses: Sequence[Access], costs: Sequence[Cost]) -> list[Finding]:
    """The warnings of a launch: those of accesses first, then the advice of the chips' models."""
    found = [
        Finding(
            f"{access.kind} of {access.array or 'memory'}: {access.use:.0%} of each 128-byte line is used "
            f"({access.pattern})",
            _todo(access),
            access.python,
        )
        for access in accesses
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


def uses_little(access: Access) -> bool:
    """Whether the lanes could touch half as many lines for the same bytes."""
    least = sum(-(-touched(e.offsets, access.bytes)[1] // LINE) for e in access.executions)
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
