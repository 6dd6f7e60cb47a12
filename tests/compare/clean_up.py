"""The clean-up that both texts go through before they are compared: stock Triton's own passes on TTIR."""

from __future__ import annotations

import tempfile
from pathlib import Path

from triton._C.libtriton import ir
from triton_metal_backend.compiler import make_ttir


class Cleaner:
    """Parses texts of TTIR and runs stock's passes on them."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "kernel.ttir"

    def clean(self, text: str) -> str:
        """The module after the passes, without locations. Raises RuntimeError if stock does not parse the text."""
        self._file.write_text(text, encoding="utf-8")
        context = ir.context()
        ir.load_dialects(context)
        module = ir.parse_mlir_module(str(self._file), context)
        module.context = context
        return make_ttir(module).str_nodebug()
