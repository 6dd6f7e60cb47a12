"""Messages name the file of a line where it is not the text itself: headers, also the kernel's own, and what #line says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import triton_metal_host as metal

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = """inline void put(device float *o, uint t) {
  o[t + 1] = 1;
}
kernel void k(device float *o, uint t [[thread_index_in_threadgroup]]) {
  put(o, t);
}
"""


def said(library: metal.Library) -> str:
    pipeline = metal.Device(checks="bounds").pipeline(library.function("k"))
    with pytest.raises(metal.LaunchError) as error:
        pipeline(np.zeros(32, np.float32), threads=32)
    return str(error.value)


def test_lines_of_the_text_have_no_file() -> None:
    message = said(metal.Device().library(HEAD + KERNEL))
    assert message.startswith("kernel 'k', line 4:12 (called in line 7:3): a store of 4 bytes")


def test_the_kernels_own_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(HEAD + KERNEL)
    (tmp_path / "text.metal").write_text('#include "own.h"\n')
    message = said(metal.Device().library(tmp_path / "text.metal"))
    assert message.startswith("kernel 'k', line 4:12 of own.h (called in line 7:3 of own.h): ")


def test_the_header_of_a_function_is_named(tmp_path: Path) -> None:
    (tmp_path / "put.h").write_text(KERNEL.split("kernel")[0])
    text = HEAD + '#include "put.h"\nkernel' + KERNEL.split("kernel")[1]
    (tmp_path / "text.metal").write_text(text)
    message = said(metal.Device().library(tmp_path / "text.metal"))
    assert message.startswith("kernel 'k', line 2:12 of put.h (called in line 5:3): ")


def test_line_directives_are_followed() -> None:
    message = said(metal.Device().library(HEAD + '#line 100 "template.txt"\n' + KERNEL))
    assert message.startswith(
        "kernel 'k', line 101:12 of template.txt (called in line 104:3 of template.txt): "
    )
    message = said(metal.Device().library(HEAD + "#line 100\n" + KERNEL))
    assert message.startswith("kernel 'k', line 101:12 (called in line 104:3): ")


def test_compiler_errors_follow_line_directives() -> None:
    text = HEAD + '#line 7 "template.txt"\nkernel void k(device float *o) {\n  o[0] = y;\n}\n'
    with pytest.raises(metal.CompileError) as error:
        metal.Device().library(text, file_name="mine.metal")
    assert str(error.value).startswith("template.txt:8:10: error: use of undeclared identifier 'y'")
    assert "  o[0] = y;\n         ^" in str(error.value)
