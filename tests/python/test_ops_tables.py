"""The configurations that triton_metal.ops takes by default: tables, choices by chip and shape, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
from triton_metal import LaunchValueError, knobs, ops
from triton_metal.__main__ import main
from triton_metal.cost import CHIPS, ranking_chip
from triton_metal.cost.model import sums_of
from triton_metal.ops import _family
from triton_metal.ops._choices import FOLDER, MOST_REGISTERS, asked, forced, read_table
from triton_metal.ops._decode_family import DECODE
from triton_metal.ops._families import FAMILIES
from triton_metal.ops._product_families import (
    ADD_PARTS,
    MATMUL,
    QUANTIZED,
    fragment_lines,
    held,
    parts_with_work,
)
from triton_metal.ops._row_family import QUANTIZED_ROWS
from triton_metal.ops._scaled_family import SCALED
from triton_metal.ops._table_counts import coefficients, counted, entry_of

from kernel_support import ON_STOCK

pytestmark = [
    pytest.mark.own_check,
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the model is no part of stock Triton"),
]
TABLED = [name for name, family in FAMILIES.items() if family.has_table]


def sizes(m: int, n: int, k: int, split: int = 0) -> tuple[int, ...]:
    """Those of one product of float16."""
    return (m, n, k, 1, 2, 2, 2, split)


@pytest.mark.parametrize("name", TABLED)
def test_tables_are_whole(name: str) -> None:
    family = FAMILIES[name]
    table = read_table(FOLDER / f"{name}.json", name, family.names, family.kinds())
    assert list(table) == list(family.kinds())
    for kind, entries in table.items():
        known = set(family.configs(kind))
        assert {entry.config for entry in entries} <= known, kind
        # SIMD-groups that cannot hold a kernel's numbers, or that are more than these, have no row.
        alone = kind.startswith("column_scan_kernel")  # a SIMD-group goes along 32 columns
        assert len(entries) > (not alone if name == "groups" else len(known) // 2)
        assert len({entry.config for entry in entries}) == len(entries)


#: One configuration of some kinds: more would take long.
RECOUNTED = [
    ("matmul", "float16 nn", (64, 64, 16, 4)),
    ("matmul", "float32 tt ragged", (32, 32, 32, 4)),
    ("matmul", "bfloat16 nt tensor", (64, 64, 32, 4)),
    ("add_parts", "float16", (1024, 8)),
    ("matmul", "float8 nt", (32, 32, 32, 4)),
    ("scaled", "fp16:e2m1", (32, 32, 64, 8)),
    ("scaled", "e4m3:e4m3 cut", (16, 64, 64, 4)),
    ("decode", "float16 128", (1,)),
    ("quantized", "affine4 float16 t", (64, 64, 32, 4)),
    ("quantized_rows", "mxfp4 bfloat16 n", (4,)),
    ("quantized", "mxfp8 float32 n", (16, 32, 32, 1)),
]


@pytest.mark.parametrize(("name", "kind", "config"), RECOUNTED)
def test_tables_are_what_the_command_counts(name: str, kind: str, config: Any) -> None:
    """Within a tenth: a change of the compiler that moves a count further needs `python -m triton_metal tune-ops`."""
    family = FAMILIES[name]
    [kept] = [entry for entry in family.table[kind] if entry.config == config]
    if kind.endswith("tensor"):
        from triton_metal.ops._table_counts import apple10

        with apple10():
            found = entry_of(family, kind, config)
    else:
        found = entry_of(family, kind, config)
    assert found.threads == kept.threads
    assert found.registers == pytest.approx(kept.registers, rel=0.1)
    assert found.threadgroup_bytes == pytest.approx(kept.threadgroup_bytes, rel=0.1)
    scale = np.maximum(np.abs(kept.step), 1)
    assert np.all(np.abs(np.subtract(found.step, kept.step)) <= 0.1 * scale), (
        found.step,
        kept.step,
    )


@pytest.mark.parametrize("kind", ["activation_kernel float16", "vector_along_rows_kernel float32 even 128"])  # fmt: skip
def test_coefficients_are_what_the_command_counts(kind: str) -> None:
    """Of what a program does in its tile and 4 steps, within a tenth."""
    table = {entry.config: entry for entry in FAMILIES["groups"].table[kind]}
    for found in coefficients(kind):
        kept = table[found.config]
        assert found.threads == kept.threads
        here, there = (np.array(e.once) + 4096 * np.array(e.step) for e in (found, kept))
        assert np.all(np.abs(here - there) <= 0.1 * np.maximum(np.abs(there), 50)), (found, kept)


def test_the_command_keeps_other_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("int32", "float32"):
        arguments = ["tune-ops", "--family", "add_parts", "--kind", kind, "--folder", str(tmp_path)]
        assert main(arguments) == 0
    written = json.loads((tmp_path / "add_parts.json").read_text())
    assert list(written["kinds"]) == ["float32", "int32"]
    assert "add_parts int32: 2 configurations" in capsys.readouterr().out


def test_the_command_says_what_is_wrong_before_it_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for words, said in (
        (["--family", "add_parts", "--kind", "float8"], "such as 'float32' and 'int32', but is 'float8'"),
        (["--kind", "nothing"], "but is 'nothing'"),
        (["--folder", str(tmp_path / "file")], "file cannot be created: File exists"),
        (["--folder", str(tmp_path / "file" / "in")], "in cannot be created: Not a directory"),
    ):  # fmt: skip
        assert main(["tune-ops", *words]) == 2
        found = capsys.readouterr()
        assert said in found.err
        assert not found.out


def test_the_command_names_the_families(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune-ops", "--family", "matmull"]) == 2
    said = capsys.readouterr().err
    assert "matmull" in said
    assert "add_parts, decode, groups, matmul, quantized, quantized_rows, scaled" in said


def test_choices_for_all_chips() -> None:
    """A chip with more cores gets no larger tiles of a small product, and no choice spills."""
    for forms in CHIPS.values():
        for form in forms:
            chip = ranking_chip(f"{form.name} {form.cores} cores")
            config = MATMUL.best(chip, "float16 nn", sizes(512, 512, 256))
            registers = {entry.config: entry.registers for entry in MATMUL.table["float16 nn"]}
            assert registers[config[:-1]] <= MOST_REGISTERS
    small, large = (
        MATMUL.best(ranking_chip(name), "float16 nn", sizes(512, 512, 256))
        for name in ("M1", "M2 Ultra")
    )
    assert small[0] * small[1] > large[0] * large[1]


def test_choices_follow_the_shape() -> None:
    chip = ranking_chip("M2 Max")
    tall = MATMUL.best(chip, "float16 nn", sizes(4096, 16, 512))
    assert tall[1] == 16, "columns that are not there are not multiplied"
    assert MATMUL.best(chip, "float16 nn", sizes(64, 64, 8192))[-1] > 1, "K is split"
    assert MATMUL.best(chip, "float16 nn", sizes(64, 64, 8192, split=3))[-1] == 3
    assert MATMUL.best(chip, "float16 nn", sizes(4096, 4096, 4096))[-1] == 1


def test_the_chip_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.zeros((512, 256), np.float16)
    chips = {}
    for name in ("M1", "M2 Ultra"):
        monkeypatch.setenv("TRITON_METAL_CHIP", name)
        with triton.launch_options(count=True) as log:
            ops.matmul(a, a, transpose_b=True)
        chips[name] = log.launches[0].counters["threadgroups"]
    assert chips["M1"] < chips["M2 Ultra"]


def test_an_unknown_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.zeros((32, 32), np.float16)
    with knobs.autotuning.scope():
        monkeypatch.setenv("TRITON_METAL_CHIP", "M17 Max")
        with pytest.raises(LaunchValueError, match=r"TRITON_METAL_CHIP .*M1, M1 Pro.*'M17 Max'"):
            ops.matmul(a, a)


def test_a_choice_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second lookup of a shape asks no model."""
    chip, shape = ranking_chip("M1"), sizes(123, 456, 789)
    first = MATMUL.best(chip, "float16 nn", shape)
    monkeypatch.setattr(_family, "seconds", None)
    assert MATMUL.best(chip, "float16 nn", shape) == first
    with pytest.raises(TypeError):
        MATMUL.best(chip, "float16 nn", sizes(124, 456, 789))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("m", "n", "k"), [(70, 50, 90), (128, 128, 64)])
def test_all_configurations_give_the_product(m: int, n: int, k: int, dtype: str) -> None:
    """Every tile of the table, and parts of K, give the same product within the rounding of its sums."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    with asked() as questions:
        ops.matmul(a, b)
    [(_, kind, asked_sizes)] = questions
    configs = MATMUL.configs(kind)
    for config in [*((*each, 1) for each in configs[:: 4 if k > 64 else 5]), (*configs[0], 3)]:
        with forced("matmul", config):
            found = ops.matmul(a, b)
        bound = 2.0**-24 * k * size + (2.0**-11 if dtype == "float16" else 2.0**-24) * np.abs(exact)
        assert np.all(np.abs(found - exact) <= bound), config
    assert asked_sizes[:3] == (m, n, k)


@pytest.mark.parametrize("transpose", [True, False])
def test_all_configurations_give_the_quantised_product(transpose: bool) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((96, 128)).astype(np.float32)
    parts = ops.quantize(w, 64, 4)
    exact = ops.dequantize(*parts, 64, 4).astype(np.float64)
    x = rng.standard_normal((40, 128 if transpose else 96)).astype(np.float32)
    right = exact.T if transpose else exact
    for config in QUANTIZED.grid(f"affine4 float32 {'t' if transpose else 'n'}", (40, 0, 0, 1, 64)):
        with forced("quantized", config):
            found = ops.quantized_matmul(x, *parts, transpose, 64, 4)
        assert np.all(np.abs(found - x @ right) <= 2.0**-20 * (np.abs(x) @ np.abs(right))), config


@pytest.mark.parametrize(
    ("mode", "bits"), [("affine", 4), ("affine", 8), ("mxfp4", 4), ("mxfp8", 8)]
)
def test_all_groups_give_the_product_of_few_rows(mode: str, bits: int) -> None:
    rng = np.random.default_rng(0)
    parts = ops.quantize(rng.standard_normal((203, 96)).astype(np.float32), 32, bits, mode)
    x = rng.standard_normal((3, 203)).astype(np.float32)
    right = ops.dequantize(
        *parts, *(() if mode == "affine" else (None,)), 32, bits, mode, "float32"
    ).astype(np.float64)
    for config in QUANTIZED_ROWS.configs(f"{mode}4 float32 n"):
        with forced("quantized_rows", config):
            found = ops.quantized_matmul(
                x, *parts, transpose=False, group_size=32, bits=bits, mode=mode
            )
        assert np.all(np.abs(found - x @ right) <= 2.0**-20 * (np.abs(x) @ np.abs(right))), config


@pytest.mark.parametrize("forms", [("mxfp4", "mxfp4"), (None, "mxfp8")])
def test_all_configurations_give_the_scaled_product(forms: tuple[str | None, str]) -> None:
    """Of whole tiles and cut ones, and of parts of K."""
    rng = np.random.default_rng(0)
    k, operands, scales, exact = 160, [], [], []
    for rows, form in zip((40, 72), forms, strict=True):
        x = rng.standard_normal((rows, k)).astype(np.float16 if form is None else np.float32)
        if form is None:
            operands, scales, exact = [*operands, x], [*scales, None], [*exact, x]
            continue
        words, scale = ops.quantize(x, mode=form)
        operands, scales = [*operands, words], [*scales, scale]
        exact.append(ops.dequantize(words, scale, None, 32, int(form[-1]), form, "float32"))
    a, b = (each.astype(np.float64) for each in exact)
    size = np.abs(a) @ np.abs(b).T
    how = {"a_format": forms[0], "b_format": forms[1], "out_dtype": "float32"}
    with asked() as questions:
        ops.scaled_matmul(*operands, *scales, **how)
    [(name, kind, sizes)] = [each for each in questions if each[0] == "scaled"]
    assert sizes == (40, 72, k, 4, 0)
    for config in [*((*each, 1) for each in SCALED.configs(kind)), (32, 32, 64, 4, 2)]:
        with forced(name, config):
            found = ops.scaled_matmul(*operands, *scales, **how)
        assert np.all(np.abs(found - a @ b.T) <= 2.0**-20 * size), config


def test_scaled_products_follow_the_shape() -> None:
    chip = ranking_chip("M2 Ultra")
    assert SCALED.best(chip, "e2m1:e2m1", (16, 4096, 512, 2, 0))[0] == 16, "rows that are not there"
    assert SCALED.best(chip, "e2m1:e2m1", (32, 32, 8192, 2, 0))[-1] > 1, "K is split"
    assert SCALED.best(chip, "e2m1:e2m1", (4096, 4096, 4096, 2, 0))[-1] == 1
    assert SCALED.kind("e5m2", "bf16") == "e4m3:bf16"


@pytest.mark.parametrize(("k", "wanted", "parts"), [(3520, 16, 14), (64, 8, 1), (1024, 16, 16), (0, 4, 1)])  # fmt: skip
def test_parts_without_work_are_not_launched(k: int, wanted: int, parts: int) -> None:
    """55 blocks of 64 in parts of four are 14 parts."""
    assert parts_with_work(k, 64, wanted) == parts


def test_cut_tiles_of_scaled_products_touch_more_lines() -> None:
    """A tile of whose rows some are not there reads its bytes one by one."""
    whole, cut = (
        next(
            each.launches[0].entry
            for each in SCALED.candidates("fp16:e2m1", (rows, 64, 4096, 2, 1))
            if each.config == (32, 32, 64, 8, 1)
        )
        for rows in (32, 24)
    )
    assert cut.step.lines > 1.3 * whole.step.lines


@pytest.mark.parametrize("size", [5, 128, 3000, ADD_PARTS.LARGE, ADD_PARTS.LARGE + 77])
def test_parts_are_added_up_in_both_forms(size: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((1, 64)), rng.standard_normal((64, size))
    a, b = a.astype(np.float32), b.astype(np.float32)
    with asked() as questions:
        found = ops.matmul(a, b, split_k=2)
    [(_, kind, sizes)] = [each for each in questions if each[0] == "add_parts"]
    assert (kind, sizes) == ("float32", (size, 2))
    for config in ADD_PARTS.configs(kind):
        with forced("add_parts", config):
            assert np.array_equal(ops.matmul(a, b, split_k=2), found), config
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)


def test_rows_that_are_short_share_lines_of_a_quantised_matrix() -> None:
    """Rows of 64 bytes lie two in a line, and of 48 rows of a step the third part is not there."""
    near = [
        next(iter(QUANTIZED_ROWS.candidates("mxfp8 float16 n", (1, n, k, 1, 32)))).launches[0].near
        for n, k in ((1024, 64), (64, 64), (1024, 48))
    ]
    assert near[0] == pytest.approx((1.0, 1.0))
    assert near[1][1] < 0.55
    assert near[2][1] == pytest.approx(0.75)


@pytest.mark.parametrize("kind", ["affine4 float16 t", "affine8 float16 t", "affine4 float16 n"])
def test_of_equal_quantised_tiles_the_one_with_more_threads_in_flight_is_taken(kind: str) -> None:
    """Both tiles have the same work and traffic, and four SIMD-groups the least bytes of threadgroup memory."""
    sizes, chip = (512, 1024, 512, 1, 64), ranking_chip("M1")
    found = {each.config: each for each in QUANTIZED.candidates(kind, sizes)}
    few, many = found[64, 64, 32, 4], found[64, 64, 32, 8]
    assert few.order[:2] == many.order[:2]
    assert held(few.launches[0].entry) < held(many.launches[0].entry)
    assert QUANTIZED.best(chip, kind, sizes) == many.config


def test_few_rows_of_a_long_matrix_have_more_groups_on_a_larger_chip() -> None:
    small, large = (
        QUANTIZED_ROWS.best(ranking_chip(name), "mxfp8 float16 n", (2, 8192, 704, 1, 32))
        for name in ("M1", "M2 Ultra")
    )
    assert small < large


@pytest.mark.parametrize("chip", ["M1", "M2 Ultra", "M5 Max"])
def test_few_queries_are_cut_into_more_parts(chip: str) -> None:
    """The more heads there are, the fewer parts; a cache that grows by a key asks for the same ones most of the time."""
    parts = [
        DECODE.best(ranking_chip(chip), "float16 128", (heads, 4096, heads, 128))[0]
        for heads in (1, 8, 64, 1024)
    ]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] >= 64
    assert parts[-1] <= 4
    with asked() as questions:
        for keys in range(1000, 1016):
            q, k = np.zeros((1, 1, 1, 16), np.float32), np.zeros((1, 1, keys, 16), np.float32)
            ops.attention_decode(q, k, k)
    assert len({sizes for name, _, sizes in questions if name == "decode"}) == 1


def test_all_parts_give_the_same_attention() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, rows, 48)).astype(np.float32) for rows in (3, 77, 77))
    wanted = ops.attention_decode(q, k, v, causal=True)
    for config in DECODE.grid("float32 64", (6, 77, 2, 48)):
        with forced("decode", config):
            found = ops.attention_decode(q, k, v, causal=True)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_rows_that_share_lines() -> None:
    """Rows of 16 numbers of 2 bytes: four lie in a line of 128 bytes. Of a result, a fragment of 8 rows has two lines and not eight, and
    three of four fragments of a tile of 64 columns are not there.
    """
    [short] = [
        each
        for each in MATMUL.candidates("float16 nn", (512, 16, 16, 1, 2, 2, 2, 0))
        if each.config == (64, 64, 16, 4, 1)
    ]
    assert short.launches[0].near == pytest.approx((0.25 / 4, 0.25))
    wide = {
        each.config: each.launches[0].near
        for each in MATMUL.candidates("float16 nn", (512, 512, 512, 1, 2, 2, 2, 0))
    }
    assert wide[64, 64, 16, 4, 1] == (1.0, 1.0)
    # Two tiles of 16 columns, which were counted, share lines as 512 columns do not.
    assert wide[64, 16, 32, 4, 1] == (2.0, 1.0)


@pytest.mark.parametrize(
    ("pitch", "inside", "lines"), [(256, 16, 8.0), (128, 32, 8.0), (64, 16, 4.0), (32, 16, 2.0), (258, 16, 8 * (1 + 14 / 128))]
)  # fmt: skip
def test_lines_of_a_fragment(pitch: int, inside: int, lines: float) -> None:
    """8 rows in lines of their own, or several in one; pieces that begin at every second byte straddle seven of 64 begins."""
    assert fragment_lines(pitch, inside) == pytest.approx(lines)


@pytest.mark.parametrize(
    "tile", [(64, 16, 32, 4), (16, 64, 32, 4), (32, 32, 32, 4), (64, 64, 16, 4)]
)
def test_a_small_product_touches_the_lines_that_its_table_says(tile: tuple[int, ...]) -> None:
    """Tiles of which some rows, columns and numbers of K are not there."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 96, 80), (3, 80, 144)))
    with forced(MATMUL.name, (*tile, 1)):
        [(work, _)] = counted(lambda: ops.matmul(a, b), 1 << 10)
    sizes = (96, 144, 80, 3, 2, 2, 2, 0)
    found = next(
        each for each in MATMUL.candidates("float16 nn", sizes) if each.config == (*tile, 1)
    )
    [launch] = found.launches
    once, step = launch.entry.once.lines, launch.entry.step.lines
    expected = once * launch.near[0] + step * launch.steps * launch.near[1]
    assert sums_of(work).lines / work.programs == pytest.approx(expected, rel=0.05)


def damaged(tmp_path: Path, change: Any) -> Path:
    """A copy of a small table that ``change`` has damaged."""
    found = json.loads((FOLDER / "add_parts.json").read_text())
    change(found)
    path = tmp_path / "add_parts.json"
    path.write_text(json.dumps(found))
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.update(format=9), "format 1"),
        (lambda t: t.update(family="matmul"), "that of add_parts"),
        (lambda t: t.update(sums=["lines"]), "sums lines, halves"),
        (lambda t: t["kinds"].pop("int32"), "no rows for 'int32'"),
        (lambda t: t["kinds"].update(float32=[]), "no rows for 'float32'"),
        (lambda t: t["kinds"]["float16"][0][2].pop(), "row 0 of 'float16'"),
        (lambda t: t["kinds"]["float16"][0][0].append("x"), "row 0 of 'float16'"),
        (lambda t: t.update(kinds={}), "no kinds"),
    ],
)  # fmt: skip
def test_a_damaged_table_is_an_error(tmp_path: Path, change: Any, says: str) -> None:
    path = damaged(tmp_path, change)
    family = FAMILIES["add_parts"]
    with pytest.raises(LaunchValueError, match=says) as raised:
        read_table(path, "add_parts", family.names, family.kinds())
    assert str(path) in str(raised.value)
    assert "tune-ops" in str(raised.value)


def test_a_missing_table_is_an_error(tmp_path: Path) -> None:
    family = FAMILIES["add_parts"]
    (tmp_path / "add_parts.json").write_text('{"format"')
    for path, says in ((tmp_path / "none.json", "is missing"), (tmp_path / "add_parts.json", "cannot be read")):  # fmt: skip
        with pytest.raises(LaunchValueError, match=says):
            read_table(path, "add_parts", family.names, family.kinds())
