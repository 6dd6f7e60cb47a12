"""Rows in pieces, with as many SIMD-groups as a table may give a launch of few rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.ops._choices import forced
from triton_metal.ops._pieces import pieces, spread

#: What is computed of rows, NumPy's result in float64, and the times that all threads of a row's program meet.
FUNCTIONS: dict[str, tuple[Callable, Callable, int]] = {
    "rms_norm": (
        lambda x: ops.rms_norm(x, eps=0.0),
        lambda x: x / np.sqrt((x * x).mean(1, keepdims=True)),
        1,
    ),
    "layer_norm": (
        lambda x: ops.layer_norm(x, eps=0.0),
        lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
        2,
    ),
    "log_softmax": (
        ops.log_softmax,
        lambda x: x - np.log(np.exp(x).sum(1, keepdims=True)),
        2,
    ),
    "logsumexp": (lambda x: ops.logsumexp(x, axis=1), lambda x: np.log(np.exp(x).sum(1)), 2),
    "var": (lambda x: ops.var(x, axis=1), lambda x: x.var(1), 2),
    "sum": (lambda x: ops.sum(x, axis=1), lambda x: x.sum(1), 1),
}


@pytest.mark.own_target
@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("length", [65, 100, 500, 1000, 1024])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_threads_of_a_launch_have_neighbours_of_the_row(
    name: str, length: int, groups: int
) -> None:
    """They exchange nothing but what a row's SIMD-groups have found, once for each reduction."""
    function, exact, meetings = FUNCTIONS[name]
    x = np.random.default_rng(length).standard_normal((5, length)).astype(np.float32)
    with triton.launch_options(count=True) as report, forced("groups", (groups,)):
        y = function(x)
    np.testing.assert_allclose(y, exact(x.astype(np.float64)), rtol=2e-5, atol=2e-5)
    (launch,) = report.launches
    counters = launch.counters
    assert counters["threads"] == 5 * 32 * groups
    assert counters["threadgroup_barriers"] == (5 * meetings if groups > 1 else 0)


@pytest.mark.parametrize("length", [1, 31, 65, 130, 500, 1000, 4097, 16_384])
@pytest.mark.parametrize("groups", [1, 2, 8, 32])
def test_pieces_cover_a_row_and_only_the_last_one_is_cut(length: int, groups: int) -> None:
    held = spread(pieces(length, most=16), groups)
    assert held["num_warps"] == groups
    whole = held["UNIT"] * sum(held["WIDTHS"][:-1])
    assert whole < length <= whole + held["UNIT"] * held["WIDTHS"][-1]
    assert held["UNIT"] >= 32 * groups


def test_blocks_keep_their_length() -> None:
    given = {"BLOCK": 512, "BLOCK_WIDTHS": (4, 4, 4, 4)} | pieces(300, most=64)
    for groups in (1, 2, 4, 8, 16, 32):
        held = spread(given, groups)
        assert held["UNIT"] * sum(held["BLOCK_WIDTHS"]) == 512
        assert held["num_warps"] == groups
