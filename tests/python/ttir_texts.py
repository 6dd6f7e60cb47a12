"""Keeps the texts of Triton IR that are compiled, as a corpus for tests/fuzz/fuzz_ttir.py."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any


def dump_texts(folder: Path) -> None:
    """Has the compiler write what it is given before it compiles it. The first line has the options."""
    from triton_metal import _native

    folder.mkdir(parents=True, exist_ok=True)

    def dump(text: str, num_warps: int, num_stages: int) -> None:
        whole = f"// num_warps={num_warps} num_stages={num_stages}\n{text}"
        name = hashlib.sha256(whole.encode()).hexdigest()[:16]
        (folder / f"{name}.ttir").write_text(whole)

    compile_module, compile_text = _native.compile_module, _native.compile_text

    def dumped_module(module: Any, num_warps: int, num_stages: int, *rest: str) -> Any:
        dump(str(module), num_warps, num_stages)
        return compile_module(module, num_warps, num_stages, *rest)

    def dumped_text(
        ttir: str, name: str, num_warps: int, num_stages: int, *rest: str, **options: bool
    ) -> Any:
        dump(ttir, num_warps, num_stages)
        return compile_text(ttir, name, num_warps, num_stages, *rest, **options)

    _native.compile_module, _native.compile_text = dumped_module, dumped_text
