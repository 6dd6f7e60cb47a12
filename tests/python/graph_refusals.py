"""Tests whose kernels cannot become MLX graphs: they are skipped with the reason, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

# The greatest share of tests that may be refused, of those whose launches are graphs.
MOST = 0.05

#: How many tests launched a graph, and how many of them were refused.
tests: Counter[str] = Counter()


def count_test(launches: Mapping[str, int]) -> None:
    """Counts a test with these launches."""
    if launches.get("mlx-graph", 0) + launches.get("refused", 0):
        tests["launched"] += 1


def skip_refused(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Reports a test that has failed by a refusal as skipped."""
    error = call.excinfo.value if call.excinfo is not None else None
    reason = refusal(error) if report.failed and report.when == "call" else None
    if reason is None:
        return
    tests["refused"] += 1
    skip(item, report, f"refused: {reason}")


def skip(item: pytest.Item, report: pytest.TestReport, reason: str) -> None:
    """Reports a test as skipped."""
    path, line, _ = item.location
    report.outcome = "skipped"
    report.longrepr = (path, (line or 0) + 1, reason)


def refusal(error: BaseException | None) -> str | None:
    """The place and the reason of a refusal that an error is, or comes from."""
    from triton_metal.errors import GraphRefusal

    while error is not None and not isinstance(error, GraphRefusal):
        # pytest.warns says that there was no warning where there was an error.
        is_told = isinstance(error, pytest.fail.Exception) and error.__cause__ is None
        error = error.__context__ if is_told else error.__cause__
    if error is None:
        return None
    where = error.location
    place = f"{Path(where.file).name}:{where.line}: " if where is not None else ""
    return place + error.error_message.partition("\n")[0]


def too_many() -> bool:
    """Whether a greater share of tests was refused than may be."""
    return tests["refused"] > MOST * tests["launched"]


def told() -> str:
    """How many tests were refused."""
    share = 100 * tests["refused"] / max(tests["launched"], 1)
    verdict = f", more than {100 * MOST:.0f} %" if too_many() else ""
    return f"refused as graphs: {tests['refused']} of {tests['launched']} tests ({share:.1f} %){verdict}"
