"""Records each kernel that a process compiles, with the TTIR of both front ends."""

from __future__ import annotations

import hashlib
import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from translate import Untranslatable
from triton.compiler.errors import CompilationError
from triton_metal.errors import CompileError

#: Names the current part of the program, such as a test.
place = ""

#: Parts of messages of kernels that the comparison leaves out, and what it says of them.
_OUTSIDE = {
    # Classes of aggregates check their members against one front end's types.
    "<class 'triton.language.core.": "a class that stock's @aggregate made",
}


class Recorder:
    """Writes one JSON object a line: the kernel, its specialisation, both texts, or why there is no second one."""

    def __init__(self, path: Path) -> None:
        worker = os.environ.get("PYTEST_XDIST_WORKER")
        # A process that pytest-xdist starts has a file of its own.
        path = path.with_suffix(f".{worker}{path.suffix}") if worker else path
        self._file = open(path, "a", encoding="utf-8")
        self._seen: set[str] = set()

    def record(
        self, source: Any, known: str, text: str, unknown: str, other: Callable[[], str]
    ) -> None:
        """Writes the row of a kernel, whose ``known`` text is there, and which makes the ``unknown`` one."""
        name = f"{source.fn.__module__}.{source.fn.__qualname__}"
        digest = hashlib.sha256(f"{name} {text}".encode()).hexdigest()
        if digest in self._seen:
            return
        self._seen.add(digest)
        row = {
            "kernel": name,
            "place": place,
            "signature": {name: str(kind) for name, kind in source.signature.items()},
            "constants": {str(path): repr(value)[:200] for path, value in source.constants.items()},
            known: text,
        }
        try:
            row[unknown] = other()
        except Untranslatable as error:
            row["untranslatable"] = str(error)
        except (CompileError, CompilationError) as error:
            outside = [why for part, why in _OUTSIDE.items() if part in str(error)]
            row["untranslatable" if outside else "refused"] = outside[0] if outside else str(error)
        except Exception:
            row["failed"] = traceback.format_exc()
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def install(path: Path) -> None:
    """Records into a file. TRITON_METAL_RECORD_SIDE says whose kernels the program has."""
    recorder = Recorder(path)
    if os.environ.get("TRITON_METAL_RECORD_SIDE") == "own":
        import own_kernels

        own_kernels.install(recorder)
    else:
        import stock_kernels

        stock_kernels.install(recorder)


def start() -> None:
    """Does what the environment asks for."""
    if os.environ.get("TRITON_METAL_RECORD_DRY") == "1":
        import dry

        dry.install()
    install(Path(os.environ["TRITON_METAL_RECORD"]))
