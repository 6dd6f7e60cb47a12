"""Has each kernel recorded that stock Triton's front end compiles in this process."""

from __future__ import annotations

from typing import Any

from recorder import Recorder
from specialisation import generate
from to_own import ToOwn
from triton.compiler import ASTSource


def install(recorder: Recorder) -> None:
    translator = ToOwn()
    make_ir = ASTSource.make_ir

    def recorded(self: Any, target: Any, options: Any, *arguments: Any) -> Any:
        module = make_ir(self, target, options, *arguments)
        if self.ext == "ttir":
            recorder.record(
                self,
                "stock",
                module.str_nodebug(),
                "own",
                lambda: generate(self, options, translator).str(False),
            )
        return module

    ASTSource.make_ir = recorded
