"""Names of kernels and of their parameters that mean something in Metal's standard library."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import pytest
import triton_metal
import triton_metal_host as metal

STDLIB = Path(__file__).parents[2] / "host_device" / "stdlib"

pytestmark = [pytest.mark.own_route, pytest.mark.own_check("no kernel is launched")]


def words() -> list[str]:
    """All identifiers of the standard library's files, without those that a kernel of another name gets."""
    found: set[str] = set()
    for file in STDLIB.iterdir():
        found |= set(re.findall(r"\b[A-Za-z](?:\w*[^\W_])?\b", file.read_text()))
    return sorted(word for word in found if not keyword.iskeyword(word))


def test_kernels_and_parameters_may_have_any_name() -> None:
    """One text has a kernel of each name, whose parameters have it, too. The front end compiles it."""
    kernels = []
    for word in words():
        text = f"""module {{ tt.func public @{word}(%p: !tt.ptr<i32> loc("{word}"), %n: i32 loc("{word}")) {{
          tt.store %p, %n : !tt.ptr<i32>
          tt.return
        }} }}"""
        made = triton_metal.compile_ttir(text, num_warps=1, name=word)
        header, begin, kernel = made.asm["metal"].partition("[[kernel")
        kernels.append(begin + kernel)
    assert len(kernels) > 1000
    library = metal.Device().library(header + "\n".join(kernels))
    assert len(library.functions) == len(kernels)
