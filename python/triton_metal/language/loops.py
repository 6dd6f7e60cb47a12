"""What `for` and `while` in a kernel may go over."""

from __future__ import annotations

import builtins
from typing import Any

from ..constexpr import unwrap
from ..hints import say_ignored
from .building import read_int, read_static


class static_range:
    """A loop that is unrolled while compiling. Its bounds must be constexpr."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = 1) -> None:
        start, end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.range = builtins.range(
            read_int("the start of static_range", start),
            read_int("the end of static_range", end),
            read_int("the step of static_range", step),
        )


class range:
    """A loop like Python's, with hints for pipelining and unrolling."""

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = 1,
        num_stages: int | None = None,
        loop_unroll_factor: int | None = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ) -> None:
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step
        self.num_stages = read_static("num_stages", num_stages)
        self.loop_unroll_factor = read_static("loop_unroll_factor", loop_unroll_factor)
        self.disallow_acc_multi_buffer = bool(read_static("", disallow_acc_multi_buffer))
        self.flatten = bool(read_static("flatten", flatten))
        self.warp_specialize = bool(read_static("warp_specialize", warp_specialize))
        if self.warp_specialize:
            say_ignored("warp_specialize", True)
        self.disable_licm = bool(read_static("disable_licm", disable_licm))


class condition:
    """The condition of a while loop, with hints: ``while tl.condition(more, disable_licm=True)``."""

    def __init__(self, arg1: Any, disable_licm: bool = False) -> None:
        self.condition = unwrap(arg1)
        self.disable_licm = bool(read_static("disable_licm", disable_licm))
