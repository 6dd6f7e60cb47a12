"""The machine code that Mesa's compiler for Apple's G13 (the M1) makes of a kernel, where `benchmarks/agx` has been built.

Without it, these columns stay empty.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from against.counting import Measured, Text

#: Kinds of a loop's instructions that do the work; all others come with it.
WORK = ("multiply", "float", "special function")


def compiler() -> ModuleType | None:
    """`benchmarks.agx`, or None if it or what it needs is not there."""
    try:
        agx = importlib.import_module("benchmarks.agx")
    except ImportError:
        return None
    return None if agx.available() else agx


def judge(agx: ModuleType, text: Text) -> dict[str, Any]:
    """Registers (of 32 bits), threads in flight on a core, spills, and the mix of the loop that multiplies most.

    With matrix multiplies, also the instructions for each that come with them. {"error": …} if the text is refused.
    """
    try:
        stats = agx.measure(
            text.text,
            include=[] if text.include is None else [text.include],
            constants={index: int(value) for index, value in text.constants},
            threads=text.threads,
            kernel=text.name,
        )
    except agx.AgxError as error:
        return {"error": str(error).splitlines()[0][-200:]}
    said: dict[str, Any] = {
        "registers": stats.registers,
        "in flight": stats.in_flight,
        "spills": stats.spills,
    }
    loop = stats.main_loop
    if loop is not None:
        said["loop"] = dict(loop.mix)
        others = loop.per("multiply", *(kind for kind in loop.mix if kind not in WORK))
        if others is not None:
            said["others a multiply"] = round(others, 2)
    return said


def judged(agx: ModuleType, measured: Measured) -> dict[str, Any]:
    """What is said of the configuration's first kernel, which does the most; the others only join its results."""
    return judge(agx, measured.texts[0]) if measured.texts and not measured.error else {}
