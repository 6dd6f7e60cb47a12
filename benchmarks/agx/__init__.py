"""What Mesa's open compiler for Apple's G13 (the M1) makes of Metal texts.

`measure` compiles one kernel and says what it takes: registers, threads in flight, spills, instructions by loop. No
GPU is asked: docs/agx.md says how to build the compiler, what the figures are good for, and what they are not.
"""

from benchmarks.agx.measure import AgxError, available, measure
from benchmarks.agx.report import Loop, Stats

__all__ = ["AgxError", "Loop", "Stats", "available", "measure"]
