"""The SIMD-groups and tiles that triton_metal.ops takes, against the best of the grid by the cost model: counts of whole calls, no times.

`benchmarks/ops_defaults.py` compares hundreds of shapes; these are a few of each kind.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.ops_defaults import compared
from benchmarks.ops_shapes import FUNCTIONS, Shape, shapes, zeros
from triton_metal import ops
from triton_metal.cost import ranking_chip
from triton_metal.ops import _groups
from triton_metal.ops._choices import asked, forced
from triton_metal.ops._group_problems import PROBLEMS
from triton_metal.ops._groups import DTYPES, GROUPS, KERNELS
from triton_metal.ops._launch import forced_warps

from kernel_support import ON_STOCK

pytestmark = [
    pytest.mark.own_check,
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the model is no part of stock Triton"),
]
CHIPS = [ranking_chip(name) for name in ("M1", "M2 Ultra", "M4 Pro")]


def rows(count: int, length: int, dtype: str = "float32") -> np.ndarray:
    return zeros(count, length, dtype=dtype)


#: Few programs for a large chip, and how far without the table the defaults would be.
CALLS: dict[str, tuple[Callable[[], Any], float]] = {
    "sum 79×4096": (lambda: ops.sum(rows(79, 4096), axis=1), 1.5),
    "softmax 46×900": (lambda: ops.softmax(rows(46, 900)), 1.2),
    "layer norm 14×704 float16": (lambda: ops.layer_norm(rows(14, 704, "float16")), 1.05),
    "max of columns 256×176": (lambda: ops.max(rows(256, 176, "bfloat16"), axis=0), 3.0),
    "vector times matrix 1×121×578": (lambda: ops.matmul(rows(1, 578), rows(578, 121)), 2.0),
    "attention 2 heads of 288": (
        lambda: ops.attention(*(zeros(1, 2, 288, 64, dtype="float16"),) * 3),
        1.2,
    ),
    "conv2d 20×20×8": (lambda: ops.conv2d(zeros(1, 20, 20, 8), zeros(64, 3, 3, 8)), 1.2),
    "rope 12×26×80": (lambda: ops.rotary_embedding(zeros(12, 26, 80, dtype="float16")), 1.1),
    "AdamW 5000": (
        lambda: ops.adamw_step(
            [rows(1, 5000)], [rows(1, 5000)], [rows(1, 5000)], [rows(1, 5000)], step=1
        ),
        3.0,
    ),
    "histogram 20000": (lambda: ops.histogram(rows(1, 20_000), 40, range=(0.0, 1.0)), 2.0),
    "quantize 30×512": (lambda: ops.quantize(rows(30, 512)), 1.5),
    "embedding 20 of 300×700": (
        lambda: ops.embedding(rows(300, 700), np.arange(20, dtype=np.int32)),
        1.05,
    ),
    "softmax of columns 90×300": (lambda: ops.softmax(rows(90, 300), axis=0), 1.1),
    "argsort 400×200": (lambda: ops.argsort(rows(400, 200, "float16"), axis=1), 1.05),
    "depthwise 300×40": (lambda: ops.conv1d(zeros(1, 300, 40), zeros(40, 4, 1), groups=40), 1.5),
    "matmul 300×200×500": (lambda: ops.matmul(rows(300, 500), rows(500, 200)), 1.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_defaults_are_near_the_best_of_the_grid(name: str) -> None:
    """At most 1.1 times the best, on chips of 8 to 76 cores; without the table of SIMD-groups much more on the largest."""
    call, without = CALLS[name]
    found = list(compared(Shape(name, name, call), CHIPS, within=1.2))
    assert max(result.ratio for result in found) <= 1.1, found
    assert found[1].without >= without


def test_shapes_are_those_of_their_seed() -> None:
    """The first ones are the same for every count, and other seeds draw others."""
    few, many, others = ([(s.function, s.text) for s in shapes(n, seed)] for n, seed in ((5, 1), (9, 1), (5, 3)))  # fmt: skip
    assert few == many[:5]
    assert few != others
    assert len({s.function for s in shapes(200, 1)}) > 0.8 * len(FUNCTIONS)


def test_the_table_has_problems_for_all_its_kinds() -> None:
    wanted = set()
    for kind in GROUPS.kinds():
        kernel, *words = kind.split()
        without = [word for word in words if word not in DTYPES]
        wanted.add(" ".join([kernel, *without]))
    assert wanted == set(PROBLEMS)


def test_many_programs_keep_the_groups_that_they_name() -> None:
    kind = "softmax_kernel float32 False"
    for chip in CHIPS:
        most = _groups.MANY * chip.cores
        assert GROUPS.best(chip, kind, (most, 4096, 1, 8 * most * 4096, 8, 4096)) == (0,)
        assert GROUPS.best(chip, kind, (1, 4096, 1, 8 * 4096, 8, 4096))[0] >= 16


@pytest.mark.parametrize(
    ("kind", "tile", "steps"),
    [("sort_kernel float16 512", 512, 45), ("softmax_backward_kernel bfloat16", 256, 1)],
)
def test_many_programs_that_name_none_take_the_table(kind: str, tile: int, steps: int) -> None:
    """What the compiler would choose takes a fifth more, or a fourth: a short row's exchanges stay within a SIMD-group."""
    for chip in CHIPS:
        many = _groups.MANY * chip.cores
        found = GROUPS.best(chip, kind, (many, tile, steps, 4 * tile * many, 0, tile * steps))
        assert found[0] in (1, 2)


def test_no_fewer_groups_than_a_launch_names() -> None:
    for chip in CHIPS:
        for programs in (1, 20, 200):
            found = GROUPS.best(
                chip, "attention_kernel float32 256", (programs, 128, 40, 1, 8, 5120)
            )
            assert found == (0,) or found[0] > 8


def test_a_kind_that_the_table_has_not_keeps_its_own_groups() -> None:
    x = np.zeros((3, 50), np.int16)
    with asked() as questions:
        ops.sum(x, axis=1)
        ops.sum(x.astype(np.float32), axis=1)
        ops.sum(x.astype(np.int32), axis=1)
    assert [kind for _, kind, _ in questions] == ["reduce_kernel float32 rows 2 ragged"] * 2


def test_the_kernel_configuration_counts_more() -> None:
    x = np.zeros((4, 4096), np.float32)
    threads = []
    for warps in (None, 2):
        triton.set_kernel_config(num_warps=warps)
        try:
            with triton.launch_options(count=True) as log:
                ops.softmax(x)
        finally:
            triton.set_kernel_config(num_warps=None)
        threads.append(log.launches[0].kernel.metadata.threads)
    assert threads[0] > threads[1] == 64


@pytest.mark.parametrize("warps", _groups.WARPS)
def test_results_do_not_depend_on_the_groups(warps: int) -> None:
    """Not even where threads are more than numbers; sums are added in another order."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 300)).astype(np.float32)
    a, w = rng.standard_normal((2, 1, 300)).astype(np.float32), rng.standard_normal((300, 70)).astype(np.float32)  # fmt: skip
    image, filters = rng.standard_normal((1, 9, 9, 8)).astype(np.float32), rng.standard_normal((16, 3, 3, 8)).astype(np.float32)  # fmt: skip
    calls: list[Callable[[], Any]] = [
        lambda: ops.softmax(x), lambda: ops.layer_norm(x), lambda: ops.sum(x, axis=1), lambda: ops.max(x, axis=0),
        lambda: ops.argmax(x, axis=1), lambda: ops.cumsum(x, axis=1), lambda: ops.sort(x, axis=1), lambda: ops.logsumexp(x, axis=1),
        lambda: ops.matmul(a, w), lambda: ops.take(x, np.array([3, 0]), 0), lambda: ops.conv2d(image, filters),
    ]  # fmt: skip
    for call in calls:
        own = call()
        for context in (forced_warps(warps), forced(GROUPS.name, (warps,))):
            with context:
                found = call()
            np.testing.assert_allclose(found, own, rtol=2e-5, atol=2e-5)


def test_kernels_of_the_table_are_those_that_ops_launches() -> None:
    """A kernel that is renamed would lose its rows without a word."""
    names = {
        value.name
        for name, module in list(sys.modules.items())
        if name.startswith("triton_metal.ops.")
        for value in vars(module).values()
        if isinstance(value, triton.JITFunction)
    }
    assert set(KERNELS) <= names
