"""kernel.report: pages, their pictures, and how they look in a browser."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
import shutil
import stat
from collections.abc import Iterator
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.cost import bound, chip, counting
from triton_metal.cost.model import memory_bytes
from triton_metal.devices.selection import device
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.files import replace
from triton_metal.report import page_of, recording, text
from triton_metal.report.access import accesses_of, is_of_matrices, pattern_of, touched
from triton_metal.report.findings import findings_of
from triton_metal.report.layouts import Layout, layouts_of
from triton_metal.report.memory import buffers_of
from triton_metal.report.roofline import counted_of, notes_of, peak_of, roofline_picture
from triton_metal.report.sources import sources_of
from triton_metal.stages import renamed

# A report launches on the host device, whatever the arrays are.
pytestmark = pytest.mark.own_route

ROOT = Path(__file__).resolve().parents[2]


@triton.jit
def column_kernel(x, out, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.load(x + i * STRIDE, i < n)
    tl.store(out + i, column * 2, i < n)


@triton.jit
def product_kernel(a, b, out, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    total = tl.zeros([SIZE, SIZE], tl.float32)
    for start in range(0, n, SIZE):
        left = tl.load(a + i[:, None] * n + start + i[None, :])
        right = tl.load(b + (start + i[:, None]) * SIZE + i[None, :])
        total += tl.dot(left, right)
    tl.store(out + i[:, None] * SIZE + i[None, :], total)


def column_arguments(stride: int = 8) -> tuple[Any, ...]:
    return np.ones(1000 * stride, np.float32), np.zeros(1000, np.float32), 1000, stride, 128


def product_arguments() -> tuple[Any, ...]:
    a, b = (np.ones(shape, np.float16) for shape in ((32, 128), (128, 32)))
    return a, b, np.zeros((32, 32), np.float32), 128, 32


def recorded(kernel: Any, grid: tuple[int, ...], *args: Any) -> Any:
    with device("host"), recording() as found:
        kernel[grid](*args)
    return found.recorded[0]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "column": column_kernel.report(
            folder / "c.html", (8,), *column_arguments(), chips=["M1", "M3 Max"]
        ),
        "product": product_kernel.report(folder / "p.html", (1,), *product_arguments()),
    }


# --- What is found ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 2, 8, 32])
def test_the_lines_of_a_strided_load(stride: int) -> None:
    launch = recorded(column_kernel, (8,), *column_arguments(stride))
    sources = sources_of(launch.kernel)
    load, store = accesses_of(launch, sources)
    first = load.executions[0]
    assert first.offsets == tuple(range(0, 32 * 4 * stride, 4 * stride))
    assert touched(first.offsets, 4) == (stride, 128)
    assert (load.kind, load.array, store.kind, store.array) == ("load", "x", "store", "out")
    assert "tl.load" in sources.python[load.python].text
    assert "tl.store" in sources.python[store.python].text
    assert load.use == pytest.approx(1 / stride, rel=0.07)  # the last program has masked lanes


def owners_of(layout: Layout) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """The SIMD-group, the lane and the register that hold each element; the lowest where there are several."""
    found: dict[tuple[int, ...], tuple[int, int, int]] = {}
    bases = [layout.bases.get(name, []) for name in ("simdgroup", "lane", "register")]
    for owner in product(*(range(1 << len(each)) for each in bases)):
        place = [0] * len(layout.shape)
        for value, vectors in zip(owner, bases, strict=True):
            for bit, vector in enumerate(vectors):
                if value >> bit & 1:
                    place = [a ^ b for a, b in zip(place, vector, strict=True)]
        found.setdefault(tuple(place), owner)
    return found


def test_each_element_of_a_tile_has_its_owner() -> None:
    launch = recorded(product_kernel, (1,), *product_arguments())
    layouts = layouts_of(launch.kernel, sources_of(launch.kernel))
    assert {(32, 32)} == {layout.shape for layout in layouts if layout.names}
    for layout in layouts:
        assert len(owners_of(layout)) == np.prod(layout.shape)


def test_threadgroup_memory_is_inside_what_is_allocated() -> None:
    launch = recorded(product_kernel, (1,), *product_arguments())
    buffers = buffers_of(launch.kernel)
    assert buffers
    metal = launch.kernel.asm["metal"].split("\n")
    for buffer in buffers:
        assert (
            0
            <= buffer.offset
            < buffer.offset + buffer.bytes
            <= launch.kernel.metadata.threadgroup_bytes
        )
        assert 1 <= buffer.first <= buffer.last <= len(metal)
        assert buffer.bytes >= 32 * 32 * 2
        assert any(buffer.name in metal[line - 1] for line in buffer.lines)


def test_what_lanes_have_in_common() -> None:
    rows = [128 * (lane % 8) + 8 * (lane // 8) for lane in range(32)]
    text = pattern_of(tuple(rows), 8)
    assert text == "rows of 32 bytes, 128 bytes apart, the lanes in another order"
    in_order = tuple(256 * (lane // 8) + 4 * (lane % 8) for lane in range(32))
    assert pattern_of(in_order, 4) == "rows of 8 lanes side by side, 256 bytes apart"
    assert pattern_of((0, 12, 4, 100), 4) == "no regular pattern"


def share_of_the_roof(launch: Any, name: str) -> float:
    """Where a launch's point lies in the picture: 1 on the roof."""
    cost = bound(chip(name), launch.work)
    counted = counted_of([cost])
    moved = sum(memory_bytes(launch.work))
    peak = peak_of(cost.chip, launch.work, counted.kind)
    roof = min(peak, counted.operations / moved * cost.chip.bandwidth * 1e9)
    return counted.operations / cost.seconds / roof


@triton.jit
def polynomial_kernel(x, out, n, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    total = value
    for _ in range(ORDER):
        total = total * value + 1.5
    tl.store(out + i, total)


@triton.jit
def powers_kernel(x, out, n, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + i)
    for _ in range(ORDER):
        total = tl.exp(total) / 3.0
    tl.store(out + i, total)


@triton.jit
def tiled_product_kernel(a, b, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, n, K):
        k = start + tl.arange(0, K)
        left = tl.load(a + i * n + k[None, :])
        right = tl.load(b + k[:, None] * n + j)
        total = tl.dot(left, right, total)
    tl.store(out + i * n + j, total.to(out.dtype.element_ty))


def tiled_product(m: int, n: int, k: int, out: type = np.float32, size: int = 256) -> Any:
    a, b = np.ones((2, size, size), np.float16)
    c = np.zeros((size, size), out)
    return recorded(tiled_product_kernel, (size // m, size // n), a, b, c, size, m, n, k)


def test_a_launch_that_takes_its_bound_lies_on_the_roof() -> None:
    product = tiled_product(64, 64, 32)
    x, out = np.ones((2, 1 << 16), np.float32)
    launches = {
        "matrices": product,
        "simple": recorded(polynomial_kernel, (256,), x, out, 1 << 16, 500, 256),
        "slow": recorded(powers_kernel, (256,), x, out, 1 << 16, 50, 256),
    }
    for kind, launch in launches.items():
        cost = bound(chip("M1"), launch.work)
        assert counted_of([cost]).kind == kind
        assert cost.binds == ("matrices" if kind == "matrices" else "arithmetic")
        assert share_of_the_roof(launch, "M1") == pytest.approx(1, rel=1e-3)
        assert len(notes_of([cost])) == 1
    # A bound of matrices is the roof of matrices, right of the knee.
    m1 = chip("M1")
    peak = peak_of(m1, product.work, "matrices")
    assert peak == pytest.approx(8 * 1.278e9 * 102.5)
    assert (
        512 * product.counters["simdgroup_matrix_multiplies"] / sum(memory_bytes(product.work))
        > peak / m1.bandwidth / 1e9
    )


def test_a_launch_under_the_roof_says_why() -> None:
    product = tiled_product(64, 64, 32)
    (_, idle) = notes_of([bound(chip("M1 Ultra"), product.work)])
    assert "16 programs on 64 cores" in idle
    assert share_of_the_roof(product, "M1 Ultra") == pytest.approx(0.25, rel=1e-3)
    assert "the point is at 25% of the roof" in idle
    small = tiled_product(16, 16, 16)
    assert bound(chip("M1"), small.work).binds == "cache"
    (_, cache) = notes_of([bound(chip("M1"), small.work)])
    assert "the cache of the cores, which the roof leaves out, takes longest" in cache
    column = recorded(column_kernel, (8,), *column_arguments())
    for launch in (product, small, column):
        for name in ("M1", "M2 Max"):
            assert 0 < share_of_the_roof(launch, name) <= 1.0001


@pytest.mark.parametrize("out", [np.float32, np.float16])
@pytest.mark.parametrize("tile", [(64, 64, 32), (32, 128, 32), (16, 256, 32)])
def test_the_advice_for_a_store_of_a_product_is_true(tile: tuple[int, int, int], out: type) -> None:
    launch = tiled_product(*tile, out)
    # Whatever the tile and the type, each piece of 8 by 8 numbers touches 8 lines.
    assert launch.counters["device_lines_written"] == 256 * 256 / 8
    sources = sources_of(launch.kernel)
    accesses = accesses_of(launch, sources)
    store = next(access for access in accesses if access.kind == "store")
    assert is_of_matrices(store.fullest.offsets)
    assert not any(is_of_matrices(a.fullest.offsets) for a in accesses if a.kind == "load")
    found = findings_of(accesses, [bound(chip("M1"), launch.work)])
    (about,) = [finding for finding in found if finding.what.startswith("store")]
    assert "the tile's shape, its type, num_warps and a descriptor do not change that" in about.todo
    assert "innermost dimension" not in about.todo


@triton.jit
def hash_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, (tl.load(x + i, i < n) ^ 77) * 1_000_003, i < n)


def test_a_launch_without_floats_has_a_roof_of_integers_or_of_bytes() -> None:
    x, out = np.arange(1000, dtype=np.int32), np.zeros(1000, np.int32)
    floats = recorded(column_kernel, (8,), *column_arguments())
    integers = recorded(hash_kernel, (8,), x, out, 1000, 128)
    # Even a copy compares its lanes with the grid on the host device.
    moves = {n: c for n, c in integers.work.counters.items() if not n.startswith("optimized_")}
    bytes_alone = dataclasses.replace(integers.work, counters=moves)
    works = (floats.work, integers.work, bytes_alone)
    kinds = [counted_of([bound(chip("M1"), work)]).kind for work in works]
    assert kinds[0] == "simple"
    assert kinds[1] in ("simple", "slow")
    assert kinds[2] == ""
    for name in ("M1", "M2 Max"):
        assert 0 < share_of_the_roof(integers, name) <= 1.0001
    for work, words in zip(
        works, ("float and integer operations a byte", "integer", "of 68.3 GB/s"), strict=True
    ):
        picture = roofline_picture([bound(chip("M1"), work)])
        assert words in picture
        assert ("polyline" in picture) is (work is not bytes_alone)
    nothing = dataclasses.replace(bytes_alone, counters={}, read_bytes=None, written_bytes=None)
    assert roofline_picture([bound(chip("M1"), nothing)]) == ""


def test_every_statement_of_the_metal_text_is_linked() -> None:
    x, y = np.ones((2, 64), np.float32)
    for launch in (
        recorded(product_kernel, (1,), *product_arguments()),
        recorded(column_kernel, (8,), *column_arguments()),
        recorded(reduced_kernel, (1,), x, y, 64, 64),
    ):
        sources = sources_of(launch.kernel)
        begin = next(i for i, line in enumerate(sources.metal) if line.text.startswith("[[kernel"))
        for line in sources.metal[begin:]:
            is_statement = line.text.strip() not in ("", "}") or line.text.startswith(" ")
            is_position = re.search(r"\[\[(thread|simdgroup)|constant uint \*", line.text)
            if is_statement and not is_position:
                assert line.links, line.text
        assert not sources.metal[0].links


def linked_texts(launch: Any, words: str) -> list[str]:
    """The lines of Python of the first line of the Metal text with these words."""
    sources = sources_of(launch.kernel)
    line = next(line for line in sources.metal if words in line.text)
    return [sources.python[link].text.strip() for link in line.links]


def test_a_line_is_linked_to_what_it_comes_from() -> None:
    launch = recorded(product_kernel, (1,), *product_arguments())
    assert linked_texts(launch, "simdgroup_multiply_accumulate") == ["total += tl.dot(left, right)"]
    assert linked_texts(launch, "for (uint start") == ["for start in range(0, n, SIZE):"]
    assert linked_texts(launch, "half left_tile[")[-1] == "total += tl.dot(left, right)"
    column = recorded(column_kernel, (8,), *column_arguments())
    assert "tl.store(out + i, column * 2, i < n)" in linked_texts(column, "* 2.0f")
    assert linked_texts(column, "[[kernel")[0].startswith("def column_kernel(")
    assert linked_texts(column, "device float *out")[0].startswith("def column_kernel(")
    # The function of the language that a reduction goes through is none of the program's lines.
    x, y = np.ones((2, 64), np.float32)
    reduced = recorded(reduced_kernel, (1,), x, y, 64, 64)
    assert linked_texts(reduced, "simd_sum") == ["total = tl.sum(tl.load(x + i, i < n), axis=0)"]


@triton.jit
def reduced_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x + i, i < n), axis=0)
    tl.store(out, total)


def test_names_may_differ_from_the_text_that_the_compiler_makes_again() -> None:
    assert renamed("int x = 1;\n", "int y = 1;\n") == {"int": "int", "x": "y"}
    assert renamed("int x = 1;\n", "int x = 2;\n") is None
    assert renamed("int x = 1;\n", "int x = 1;\nx = 1;\n") is None
    assert renamed("x = y;", "x = 1;") is None


def test_a_report_leaves_the_arrays_as_they_are(tmp_path: Path) -> None:
    x, out, *rest = column_arguments()
    column_kernel.report(tmp_path / "k.html", (8,), x, out, *rest)
    assert not out.any()


def test_a_report_is_no_launch_of_the_program(tmp_path: Path) -> None:
    with counting() as counted:
        column_kernel.report(tmp_path / "k.html", (8,), *column_arguments())
        column_kernel[(4,)](*column_arguments())
    assert [work.programs for work in counted.works] == [4]


# --- Pages ------------------------------------------------------------------------------------------


def test_a_page_stands_alone(pages: dict[str, Path]) -> None:
    for path in pages.values():
        text = path.read_text()
        assert len(text) < 2_000_000
        assert not re.search(r"https?://|<script[^>]+src|<link[^>]+stylesheet|@import|url\(", text)
        assert "default-src 'none'" in text


def long_kernel(folder: Path, statements: int) -> Any:
    """A kernel of so many statements, each on a line of its own; half of them are loads and stores."""
    lines = [
        line
        for k in range(statements // 4)
        for line in (
            f"    value = tl.load(x + i * {k % 5 + 1} % n + {k})",
            f"    total = tl.where(value > {k}, total * value + {k}, total - value)",
            f"    total = total * 0.5 + {k}",
            f"    tl.store(out + i + {k}, total)",
        )
    ]
    head = (
        "import triton_metal as triton\nimport triton_metal.language as tl\n\n\n@triton.jit\n"
        "def long_kernel(x, out, n, BLOCK: tl.constexpr):\n"
        "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    total = tl.zeros((BLOCK,), tl.float32)\n"
    )
    file = folder / "long_kernels.py"
    file.write_text(head + "\n".join(lines) + "\n")
    found = importlib.util.spec_from_file_location("long_kernels", file)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.long_kernel


@pytest.mark.parametrize("statements", [300, 1_000])
def test_the_page_of_a_long_kernel_is_under_two_megabytes(tmp_path: Path, statements: int) -> None:
    x, out = np.ones((2, 1 << 12), np.float32)
    launch = recorded(long_kernel(tmp_path, statements), (4,), x, out, 1000, 256)
    page = page_of(launch, [chip("M1"), chip("M3 Max")])
    assert len(page.encode()) < 2_000_000
    # All accesses are there: those with pictures, and those of the table.
    kinds = page.count('<article class="card') - page.count('<article class="card chip')
    assert "kinds of accesses have pictures" in page
    assert kinds > 60
    python = page[page.index('id="python"') : page.index('id="ttir"')]
    assert python.count("tl.store") == statements // 4


def test_texts_without_room_are_shortened_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = recorded(product_kernel, (1,), *product_arguments())
    monkeypatch.setattr(text, "ROOM", 9_000)
    page = unescape(page_of(launch, [chip("M1")]))
    kernel = launch.kernel
    for name, pane in (("ttir", "Triton IR"), ("metal", "Metal")):
        part = page[page.index(f"<h3>{pane}</h3>") :]
        part = part[: part.index("</section>")]
        (said,) = re.findall(
            r"… ([\d,]+) lines are left out, so that the page has less than 2 MB", part
        )
        assert f'asm["{name}"] of the compiled kernel has them' in part
        lines = sources_of(kernel).ttir if name == "ttir" else sources_of(kernel).metal
        assert part.count("<p") + int(said) == len(lines)
        # The lines after the gap keep their numbers.
        number = int(re.findall(r"counter-reset:n (\d+)", part)[-1])
        after = part[part.index(f"counter-reset:n {number}") :]
        assert after.count("<p") == len(lines) - number
    assert (
        "total += tl.dot(left, right)" in page[page.index('id="python"') : page.index('id="ttir"')]
    )


@triton.jit
def unrolled_kernel(x, out, n, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(TIMES):
        total += tl.load(x + i * 4 + k * n)
    tl.store(out + i, total)


def test_accesses_that_are_alike_share_a_picture() -> None:
    x, out = np.ones((2, 1 << 14), np.float32)
    launch = recorded(unrolled_kernel, (2,), x, out, 1024, 8, 128)
    page = unescape(page_of(launch, [chip("M1")]))
    assert len(re.findall("<h3[^>]*>load of", page)) < 8
    lines = {a.line for a in accesses_of(launch, sources_of(launch.kernel)) if a.kind == "load"}
    for line in lines:
        assert re.search(rf"Metal lines? [\d, and]*\b{line}\b", page)


def test_numbers_have_the_right_words(tmp_path: Path) -> None:
    x, out = np.ones((2, 128), np.float32)
    page = unrolled_kernel.report(tmp_path / "k.html", (1,), x, out, 0, 1, 32, num_warps=1)
    text = page.read_text()
    assert "1 program (1 × 1 × 1) of 32 threads" in text
    assert not re.search(r"\b1 (programs|lines|elements|bytes a lane|buffers)\b", text)


def test_a_warning_says_where_and_what_to_do(pages: dict[str, Path]) -> None:
    text = pages["column"].read_text()
    warnings = text[
        text.index('<ul class="warnings">') : text.index("</ul>", text.index('"warnings"'))
    ]
    assert "load of x: 12% of each 128-byte line is used" in warnings
    assert "Let neighbouring lanes access neighbouring elements" in warnings
    assert "store of out" not in warnings
    assert "M3 Max (40 cores): at least" in text


def test_programs_cannot_write_into_the_page(tmp_path: Path) -> None:
    @triton.jit
    def tagged(x, TEXT: tl.constexpr):
        # </script><script>alert(1)</script> & <b>
        tl.store(x, 1.0)

    page = tagged.report(tmp_path / "k.html", (1,), np.zeros(1, np.float32), "a").read_text()
    assert page.count("<script") == 1
    assert "&lt;/script&gt;" in page


def test_a_tuned_kernel_reports_the_chosen_configuration(tmp_path: Path) -> None:
    tuner = triton.autotune(
        [triton.Config({"STRIDE": 8, "BLOCK": block}) for block in (64, 128)], key=["n"]
    )(column_kernel)
    x, out, n, *_ = column_arguments()

    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (triton.cdiv(n, meta["BLOCK"]),)

    text = tuner.report(tmp_path / "k.html", grid, x, out, n).read_text()
    block = tuner.best_config.kwargs["BLOCK"]
    assert f"{-(-n // block)} programs" in text
    assert isinstance(tuner.report(), str)
    assert "BLOCK" in tuner.report()


# --- Errors -----------------------------------------------------------------------------------------


def test_errors_are_clear_and_write_nothing(tmp_path: Path) -> None:
    args = column_arguments()
    file = tmp_path / "k.html"
    with pytest.raises(LaunchValueError, match=r"there is no folder '.*missing'"):
        column_kernel.report(tmp_path / "missing" / "k.html", (8,), *args)
    with pytest.raises(LaunchValueError, match=r"must be a file but '.*' is a directory"):
        column_kernel.report(tmp_path, (8,), *args)
    with pytest.raises(LaunchTypeError, match=r"path must be the name of a file .* but is 3"):
        column_kernel.report(3, (8,), *args)
    with pytest.raises(LaunchValueError, match=r"chip must be one of M1, .* but is 'M77'"):
        column_kernel.report(file, (8,), *args, chips=["M1", "M77"])
    with pytest.raises(LaunchValueError, match=r"chips is empty"):
        column_kernel.report(file, (8,), *args, chips=[])
    with pytest.raises(LaunchValueError, match=r"the grid has no programs"):
        column_kernel.report(file, (0,), *args)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.html"
    file.write_text("old")

    def refuse(*args: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(LaunchValueError, match=r"k\.html' cannot be written: Permission denied"):
        column_kernel.report(file, (8,), *column_arguments())
    monkeypatch.undo()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "said"), [("a" * 300, "File name too long"), ("a\0.html", "embedded null")]
)
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(
        LaunchValueError, match=rf"\[report\] path .* cannot be the name of a file: .*{said}"
    ):
        column_kernel.report(f"{tmp_path}/{name}", (8,), *column_arguments())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(tmp_path, os.W_OK):  # root may write anywhere
        monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(LaunchValueError, match=r"the folder '.*' cannot be written to"):
        column_kernel.report(tmp_path / "k.html", (8,), *column_arguments())
    assert list(tmp_path.iterdir()) == []


# --- In a browser -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium, missing = None, "playwright"
    else:
        missing = "chromium"
    if chromium is None:
        if os.environ.get("TRITON_METAL_REQUIRE_BROWSER"):
            pytest.fail(f"{missing} is missing, and TRITON_METAL_REQUIRE_BROWSER is set")
        pytest.skip(f"{missing} is not installed (scripts/setup.sh --tests)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


def opened(
    browser: Any, path: Path, width: int = 1280, scheme: str = "light"
) -> tuple[Any, list[str]]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:")) else said.append(request.url)
        ),
    )
    page.goto(path.as_uri())
    return page, said


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_scrolls_sideways_or_complains(
    browser: Any, pages: dict[str, Path], width: int, scheme: str
) -> None:
    for path in pages.values():
        page, said = opened(browser, path, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", back)[:3])) > 384
        assert light is (scheme == "light")
        assert said == []
        page.context.close()


def test_lines_that_belong_together_light_up_and_stay(browser: Any, pages: dict[str, Path]) -> None:
    page, _ = opened(browser, pages["column"])
    load = page.locator("#python .rows p", has_text="tl.load")
    load.hover()
    assert page.locator("#ttir .rows p.on", has_text="tt.load").count() == 1
    assert page.locator("#metal .rows p.on", has_text="x[").count() == 1
    assert page.locator("#metal .rows p.on", has_text="2.0f").count() == 0
    load.click()
    page.mouse.move(0, 0)
    assert page.locator("#metal .rows p.on").count() == 0
    assert page.locator("#metal .rows p.stuck", has_text="x[").count() == 1
    page.keyboard.press("Escape")
    assert page.locator(".stuck").count() == 0
    load.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#python .rows p.stuck", has_text="tl.store").count() == 1
    assert page.locator("#ttir .rows p.stuck", has_text="tt.store").count() == 1
    page.locator(".warnings li[data-l]").first.click()
    assert page.locator("#python .rows p.stuck", has_text="tl.load").count() == 1
    page.context.close()


def test_the_picture_has_a_piece_for_each_lane_and_line(
    browser: Any, pages: dict[str, Path]
) -> None:
    page, _ = opened(browser, pages["column"])
    load = page.locator("#accesses .card").first
    assert load.locator("rect.line").count() == 8
    lanes = load.locator("rect.lane").evaluate_all(
        "all => all.map(one => Number(one.dataset.lanes))"
    )
    assert lanes == list(range(32))
    boxes = [load.locator("rect.lane").nth(lane).bounding_box() for lane in (0, 1, 4)]
    assert boxes[0]["y"] == boxes[1]["y"] < boxes[2]["y"]
    assert boxes[0]["x"] == boxes[2]["x"] < boxes[1]["x"]
    page.context.close()


def test_the_picture_of_a_tile_shows_who_holds_what(browser: Any, pages: dict[str, Path]) -> None:
    launch = recorded(product_kernel, (1,), *product_arguments())
    layouts = layouts_of(launch.kernel, sources_of(launch.kernel))
    page, _ = opened(browser, pages["product"])
    pictures = page.locator("#layouts .picture.tile")
    assert pictures.count() == len(layouts[:6])
    for number, layout in enumerate(layouts[:6]):
        owners = owners_of(layout)
        titles = pictures.nth(number).locator("title").all_text_contents()
        seen = {}
        for title in titles:
            row, first, last, simdgroup, lane, register = map(
                int,
                re.findall(r"\d+", title.split(" to ")[0] + " " + title.split(" to ", 1)[1])[:6],
            )
            for column in range(first, last + 1):
                seen[row, column] = (simdgroup, lane)
            assert owners[row, first] == (simdgroup, lane, register)
        assert seen == {place: owner[:2] for place, owner in owners.items()}
    page.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_no_picture_is_wider_than_its_box(browser: Any, pages: dict[str, Path], width: int) -> None:
    for path in pages.values():
        page, _ = opened(browser, path, width)
        for box in page.locator(".picture").all():
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth + 1")
            assert box.locator("svg").count() == 1
            assert box.locator("svg").bounding_box()["width"] <= width
        page.context.close()


def test_pictures_follow_the_width_of_the_window(browser: Any, pages: dict[str, Path]) -> None:
    page, _ = opened(browser, pages["column"])
    before = page.locator("#accesses svg").first.bounding_box()["width"]
    page.set_viewport_size({"width": 390, "height": 900})
    page.wait_for_function(
        f"document.querySelector('#accesses svg').getBoundingClientRect().width < {before - 50}"
    )
    assert page.locator("#accesses .card").first.locator("rect.lane").count() == 32
    page.context.close()


def test_lines_have_the_numbers_of_their_file(browser: Any, pages: dict[str, Path]) -> None:
    page, _ = opened(browser, pages["column"])
    first = column_kernel.fn.__code__.co_firstlineno + 1  # the decorator's line comes first
    block = page.locator("#python .rows > div[style]").first
    assert block.get_attribute("style") == f"counter-reset:n {first - 1}"
    assert block.locator("p").first.text_content().startswith("def column_kernel")
    page.context.close()


def test_a_file_has_the_rights_that_the_umask_leaves(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    before = os.umask(0o027)
    try:
        replace(path, b"page")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]
