"""benchmarks/against_mlx.py counts both sides of a problem, and takes no count of a wrong result."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import ops
from triton_metal.ops._choices import forced
from triton_metal.ops._groups import GROUPS

from mlx_kernels import NEEDS_MLX
from mlx_kernels.convolution import Convolution
from mlx_kernels.family import source_folder

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import against_mlx  # noqa: E402
from against import (  # noqa: E402
    along_rows,
    composing,
    convolving,
    judge,
    matrices,
    quantizing,
    reducing,
    reports,
    vectors,
)
from against.counting import JUDGED, Measured, Text, compare, ours, ratio  # noqa: E402
from against.launching import block_dims  # noqa: E402
from against.problem import Problem, equal  # noqa: E402

# The rows name their targets, and are counted on the host device.
pytestmark = [NEEDS_MLX, pytest.mark.own_target, pytest.mark.own_route]


def row(name: str) -> reports.Row:
    (case,) = (case for case in against_mlx.cases() if case.name == name)
    (result,) = against_mlx.results([case], silent=True)
    assert not result.error
    return result


@pytest.mark.parametrize(
    "name",
    [
        "softmax 256×1024 float32",
        "GEMM nn 500×300×200 float16",
        "attention causal 2×512×64 float16",
        "quantised 4 bits, vector 1×1024×1024 float16",
    ],
)
def test_both_sides_solve_the_problem_and_are_counted(name: str) -> None:
    compared = row(name).compared
    assert compared is not None
    for measured in (compared.ours, compared.mlx):
        assert measured.counts["device bytes"] > 0
        assert measured.counts["float"] > 0
    assert compared.ratios()["device bytes"] <= 1.005
    assert compared.ratios()["multiplies"] <= 1.005


@pytest.mark.parametrize(
    "name",
    [
        "softmax 16×16384 float32",
        "cumsum of rows 256×1024 float32",
        "sum of rows 256×1024 float32",
        "sum of columns 8×200×512 float32",
        "max of all 1048576 float32",
        "GEMV 1024×1024 float32",
        "decode, 8 : 2 heads 1000×64 float16",
        "logsumexp 256×1024 float32",
        "cumsum of rows 16×16384 float32",
        "cumsum of columns 1024×512 float32",
        "cummax of rows 256×1024 float32",
        "sort 64×1000 float16",
        "sort 8×5000 float32",
        "argsort 8×5000 float32",
        "topk, 16 8×5000 float32",
        "sum of rows 1000×500 float32",
        "max of rows 1000×500 float16",
        "variance of rows 256×1024 float32",
        "length of rows 128×4096 float32",
        "embedding 256 of 1000×512 float16",
        "quantised 4 bits, vector 1×1024×1024 float32",
        "quantised 4 bits, vector, not transposed 1×1024×512 float16",
        "quantised 8 bits, vector, not transposed 1×1024×512 float16",
        "quantised 4 bits, matrix, not transposed 512×1024×512 float16",
        "convolution 1D 2×512×64 by 128×3, stride 1 float16",
    ],
)
def test_functions_of_ops_count_no_more_than_mlx(name: str) -> None:
    compared = row(name).compared
    assert compared is not None
    assert compared.ours.configuration == "default"
    assert not compared.above()


@pytest.mark.parametrize(
    ("make", "shape", "t"),
    [
        (along_rows._logsumexp, (512, 634), "float32"),
        (along_rows._logsumexp, (512, 128), "float16"),
        (along_rows._logsumexp, (372, 1408), "float16"),
        (partial(along_rows._norm, "RMS norm"), (512, 128), "float32"),
        (partial(along_rows._norm, "layer norm"), (356, 1472), "float32"),
        (partial(along_rows._norm, "layer norm"), (208, 2514), "float16"),
        (partial(reducing._rows, "prod"), (512, 133), "float32"),
        (partial(reducing._rows, "max"), (512, 133), "bfloat16"),
        (partial(reducing._rows, "all"), (512, 512), "float32"),
        (partial(reducing._rows, "sum"), (215, 2432), "float16"),
        (lambda *a: along_rows._scan("cumsum", a[0], 1, a[1]), (512, 634), "float16"),
        (lambda *a: along_rows._scan("cummax", a[0], 1, a[1]), (512, 952), "bfloat16"),
    ],
)  # fmt: skip
def test_rows_of_any_length_count_no_more_than_mlx(
    make: Callable[..., Problem], shape: tuple[int, int], t: str
) -> None:
    """Rows that are no power of two are held in pieces."""
    if "norm" in str(make) and source_folder() is None:
        pytest.skip("TRITON_METAL_MLX_SOURCE names no checkout")
    with forced(GROUPS.name, (0,)):
        compared = compare(make(shape, t))
    assert not compared.ours.error
    assert not compared.mlx.error
    assert not compared.above()


@pytest.mark.parametrize(
    "make",
    [
        partial(composing._variance, "variance", (128, 4096), "float32"),
        partial(composing._variance, "deviation", (150, 1277), "float16"),
        partial(composing._log_softmax, (208, 2520), "float32"),
        partial(composing._cross_entropy, (512, 80), "float16"),
        partial(composing._cross_entropy, (100, 5237), "float16"),
        partial(reducing._all, "sum", 4096, "float16"),
        partial(reducing._all, "max", 5376, "float32"),
        partial(vectors._gemv, 512, 64, "float32", False),
        partial(vectors._gemv, 512, 128, "float16", False),
        partial(vectors._gemv, 333, 250, "bfloat16", False),
        partial(vectors._gemv, 512, 328, "float16", False),
        partial(quantizing._product, 1, 256, 64, 4, "float16", True),
        partial(quantizing._product, 1, 256, 256, 4, "float32", True),
        partial(quantizing._product, 1, 256, 320, 8, "bfloat16", True),
    ],
    ids=lambda make: "-".join(str(each) for each in (make.func.__name__[1:], *make.args)),
)
def test_short_and_joined_rows_count_no_more_than_mlx(make: Callable[[], Problem]) -> None:
    """What MLX makes of several kernels, and rows that lanes of a SIMD-group share with others."""
    with forced(GROUPS.name, (0,)):
        compared = compare(make())
    assert not compared.ours.error
    assert not compared.mlx.error
    assert not compared.above()


@pytest.mark.parametrize("shape", [(306, 1712), (145, 3592), (1023, 300)], ids=str)
def test_no_row_is_read_twice_to_fill_a_program(shape: tuple[int, int]) -> None:
    """MLX's kernel is in its source only; ours reads each number once, and stores a place of 32 bits for each row."""
    problem = along_rows._place("argmax", shape, "float16")
    ((name, launch),) = problem.ours.items()
    with forced(GROUPS.name, (0,)):
        measured = ours(name, launch, problem.check)
    assert not measured.error
    assert measured.counts["device bytes"] == shape[0] * (2 * shape[1] + 4)
    if source_folder() is not None:
        with forced(GROUPS.name, (0,)):
            compared = compare(problem)
        assert compared.ratios()
        assert not compared.above()


def test_counts_of_a_matrix_product_are_those_of_its_tiles() -> None:
    """Each tile of 512×512×256 reads its rows and columns once and writes itself; MLX's are 64×64."""
    compared = row("GEMM nn 512×512×256 float16").compared
    assert compared is not None
    with triton.launch_options(count=True) as report:
        ops.matmul(np.ones((512, 256), np.float16), np.ones((256, 512), np.float16))
    constants = report.launches[0].kernel.constants
    own = constants["BLOCK_M"], constants["BLOCK_N"]
    for measured, (m, n) in ((compared.ours, own), (compared.mlx, (64, 64))):
        tiles = (512 // m) * (512 // n)
        assert measured.counts["multiplies"] == tiles * (m // 8) * (n // 8) * (256 // 8)
        assert measured.counts["device bytes"] == tiles * (256 * (m + n) + m * n) * 2


def test_a_shipped_tile_stands_where_the_default_counts_more() -> None:
    """The default of a ragged product has more SIMD-groups than MLX's kernel; of a large one, nothing else is counted."""
    ragged = row("GEMM nn 500×300×200 float16").compared
    assert ragged is not None
    assert ragged.default is not None
    assert ragged.ours.configuration.startswith("tile (")
    assert not ragged.above()
    assert ragged.ratios(ragged.default)["tg read"] > 1.005
    assert len(ragged.all_ours) > 2
    large = row("GEMM nn 512×512×256 float16").compared
    assert large is not None
    assert large.default is None
    assert [each.configuration for each in large.all_ours] == ["default"]


def test_a_shipped_tile_of_a_quantised_product_stands_where_the_default_counts_more() -> None:
    """Eight SIMD-groups of 16×16 read more fragments of bfloats than four of 16×32, which the table has, too."""
    compared = compare(quantizing._product(112, 640, 704, 4, "bfloat16", transpose=False))
    assert compared.default is not None
    assert compared.ratios(compared.default)["float"] > 1.005
    assert compared.ours.configuration.startswith("tile (")
    assert not compared.above()


def test_what_counts_no_more_stands_before_what_exceeds_less_elsewhere() -> None:
    """Blocks of 64×32 have fewer barriers than MLX's tiles and no more of anything, if fewer programs than the default's."""
    c = Convolution(1, 16, 96, (12, 12), (5, 5), (1, 1), (2, 2), t="float16")
    with forced(GROUPS.name, (0,)):  # each with the SIMD-groups that its kernel has
        compared = compare(convolving._convolution(c))
    assert compared.default is not None
    assert compared.above() == []
    assert compared.ratios(compared.default)["barriers"] > 1.005
    assert compared.ours.configuration.startswith("blocks (")


def test_other_tiles_of_a_linear_layer_are_counted_too() -> None:
    problem = matrices._product(500, 300, 200, "float16", "nt", bias=True)
    assert "default" in problem.ours
    assert any(name.startswith("tile (") for name in problem.ours)
    assert not compare(problem).above()


def test_a_wrong_default_is_no_row_whatever_else_is_right() -> None:
    problem = Problem(
        {"default": lambda: copied(1.0), "other": lambda: copied(0.0)},
        {"mlx": lambda: np.arange(256)},
        equal(np.arange(256)),
    )
    compared = compare(problem)
    assert compared.ours.error.startswith("AssertionError")
    assert compared.ratios() == {}


@triton.jit
def copy_kernel(x_ptr, out_ptr, amount, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + amount)


def copied(amount: float, block: int = 128) -> np.ndarray:
    x = np.arange(256, dtype=np.float32)
    out = np.empty_like(x)
    copy_kernel[(256 // block,)](x, out, amount, BLOCK=block)
    return out


def test_a_wrong_result_has_no_counts() -> None:
    check = equal(np.arange(256))
    assert ours("right", lambda: copied(0.0), check).counts["device bytes"] == 2048
    wrong = ours("wrong", lambda: copied(1.0), check)
    assert not wrong.counts
    assert wrong.error.startswith("AssertionError")


def test_a_row_without_a_right_result_says_so() -> None:
    problem = Problem(
        {"wrong": lambda: copied(1.0)}, {"mlx": lambda: np.arange(256)}, equal(np.arange(256))
    )
    compared = compare(problem)
    case = against_mlx.cases()[0]
    result = reports.Row(case, compared)
    assert "AssertionError" in result.error
    assert compared.ratios() == {}
    (entry,) = reports.as_json([result])
    assert entry["error"] == result.error


def test_a_ratio_to_nothing_is_infinite_and_null_in_json() -> None:
    assert ratio(0, 0) == 1.0
    assert math.isinf(ratio(3, 0))
    assert ratio(3, 2) == 1.5
    assert reports.number(math.inf) == "∞"
    result = row("sum of rows 256×1024 float32")
    (entry,) = reports.as_json([result])
    json.dumps(entry, allow_nan=False)
    assert set(JUDGED) <= set(entry["ratios"])
    assert len(entry["all_mlx"]) == 1


def test_what_the_compiler_for_g13_says_becomes_columns(tmp_path: Path) -> None:
    """It is asked about the kernel by its name, with its constants and the threads of the launch."""

    class AgxError(RuntimeError):
        pass

    asked: list[dict[str, object]] = []

    def measure(text: str, **options: object) -> SimpleNamespace:
        asked.append(options)
        if "refused" in text:
            raise AgxError("metal-ir: no\nand why")
        mix = {"multiply": 4, "integer": 6, "float": 9, "branch": 2}
        loop = SimpleNamespace(
            mix=mix, per=lambda kind, *of: sum(mix[each] for each in of) / mix[kind]
        )
        return SimpleNamespace(registers=63.5, in_flight=768, spills=1, main_loop=loop)

    agx = ModuleType("agx")
    agx.__dict__.update(AgxError=AgxError, measure=measure)
    text = Text("kernel", tmp_path, "f", ((200, True), (26, 7)), 64)
    said = judge.judged(agx, Measured("any", {"float": 1}, [text]))
    constants = {200: 1, 26: 7}
    assert asked == [{"include": [tmp_path], "constants": constants, "threads": 64, "kernel": "f"}]
    assert said["others a multiply"] == 2.0
    refused = Text("refused", None, "f", (), 64)
    assert judge.judge(agx, refused) == {"error": "metal-ir: no"}
    g13 = {"ours": said, "mlx": judge.judge(agx, refused)}
    cells = reports.g13_cells(reports.Row(against_mlx.cases()[0], g13=g13))
    assert cells == ["63.5 : refused", "768 : –", "1 : –", "2 : –"]


def test_threads_of_a_grid_are_mlx_s() -> None:
    assert block_dims(32, 256, 2) == (32, 16, 2)
    assert block_dims(1, 3, 1) == (1, 2, 1)


def test_the_page_has_each_row_of_the_table() -> None:
    """`--docs` writes the page; each of its rows is a case, and the families are its headings."""
    page = (ROOT / "docs" / "against-mlx.md").read_text(encoding="utf-8")
    counts, configurations = page.split("## Configurations\n")
    configurations, defaults = configurations.split("## Defaults that count more\n")
    tables, on_g13 = counts.split("## On G13")
    cases = against_mlx.cases()
    written = re.findall(r"^\| (?!shape |---)([^|]+) \| (\w+) \|", tables, re.M)
    assert written == [(case.shape, case.dtype) for case in cases]
    headings = re.findall(r"^## (.*)$", tables, re.M)
    families = list(dict.fromkeys(case.family for case in cases))
    assert [heading.lower() for heading in headings] == [family.lower() for family in families]
    judged = re.findall(r"^\| (?!problem |---)([^|]+) \| ([^|]+) \| (\w+) \|", on_g13, re.M)
    assert judged == [(case.family, case.shape, case.dtype) for case in cases]
    assert configurations.count("\n| ") == 1 + len(cases)
    stands = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (\w+) \| tile ", configurations, re.M)
    others = [row for row in stands if not re.search("tensor operations|K split", row[0])]
    assert re.findall(r"^\| (?!problem )([^|]+) \| ([^|]+) \| (\w+) \|", defaults, re.M) == others


def test_rows_are_chosen_by_name() -> None:
    assert len(against_mlx.cases(quick=True)) >= 10
    assert {case.family for case in against_mlx.cases(only=["decode"])} == {
        "decode, 8 : 2 heads",
        "decode, 8 : 8 heads",
    }
    with pytest.raises(SystemExit):
        against_mlx.main(["--only", "no such row"])
