"""Records each kernel that stock Triton's front end compiles in this process, with the TTIR of both front ends."""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from pathlib import Path
from typing import Any

from specialisation import generate
from translate import Translator, Untranslatable
from triton.compiler import ASTSource
from triton_metal.errors import CompileError

#: Names the current part of the program, such as a test.
place = ""


class Recorder:
    """Writes one JSON object a line: the kernel, its specialisation, both texts, or why there is no second one."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "a", encoding="utf-8")
        self._translator = Translator()
        self._seen: set[str] = set()

    def record(self, source: Any, options: Any, module: Any) -> None:
        text = module.str_nodebug()
        digest = hashlib.sha256(f"{source.fn.__module__}.{source.name} {text}".encode()).hexdigest()
        if digest in self._seen:
            return
        self._seen.add(digest)
        row = {
            "kernel": f"{source.fn.__module__}.{source.fn.__qualname__}",
            "place": place,
            "signature": {name: str(kind) for name, kind in source.signature.items()},
            "constants": {str(path): repr(value)[:200] for path, value in source.constants.items()},
            "stock": text,
        }
        try:
            row["own"] = generate(source, options, self._translator).str(False)
        except Untranslatable as error:
            row["untranslatable"] = str(error)
        except CompileError as error:
            # Classes of aggregates check their members against stock's own types.
            outside = "<class 'triton.language.core." in str(error)
            row["untranslatable" if outside else "refused"] = (
                "a class that stock's @aggregate made" if outside else str(error)
            )
        except Exception:
            row["failed"] = traceback.format_exc()
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def install(path: Path) -> None:
    """Records into a file. A process that pytest-xdist starts has a file of its own beside it."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    recorder = Recorder(path.with_suffix(f".{worker}{path.suffix}") if worker else path)
    make_ir = ASTSource.make_ir

    def recorded(self: Any, target: Any, options: Any, *arguments: Any) -> Any:
        module = make_ir(self, target, options, *arguments)
        if self.ext == "ttir":
            recorder.record(self, options, module)
        return module

    ASTSource.make_ir = recorded
