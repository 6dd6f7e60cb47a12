"""The texts of a compiled kernel at each stage of the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _native


class Stages(Mapping[str, str]):
    """The texts by stage: "ttir", "ttm", "msl" (the dialects) and "metal".

    A launch needs none of the dialects' texts between Triton IR and Metal. They are made when they are first asked for.
    """

    names = ("ttir", "ttm", "msl", "metal")

    def __init__(self, ttir: str, metal: str, options: tuple[int, int, str, str]) -> None:
        """``options`` are those of the compilation: warps, stages, the target's text and the words on arithmetic."""
        self._texts = {"ttir": ttir, "metal": metal}
        self.options = options

    def __getitem__(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(f"{name!r} is not a stage: the stages are {', '.join(self.names)}")
        if name not in self._texts:
            made: Any = _native.compile_text(
                self._texts["ttir"], "<ttir>", *self.options, stages=True
            )
            self._texts.update(ttm=made.ttm, msl=made.msl)
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Stages({', '.join(self.names)})"
