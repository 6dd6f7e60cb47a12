"""The route of MLX graphs: which launches take it, and what becomes of tests whose kernels are refused."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal.errors import CompilationError, GraphRefusal, LaunchValueError
from triton_metal.mlx import graph_launches
from triton_metal.testing import contract_device

import graph_refusals

pytest.importorskip("mlx.core")
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check(reason="a launch with checks is no graph"),
]


@triton_metal.jit
def add_one_kernel(x, out, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + 1)


@triton_metal.jit
def neighbours_kernel(x, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(x + i + N, tl.load(x + i))


def test_launches_on_numpy_arrays_become_graphs() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    launches: dict[str, int] = {}
    with contract_device("mlx-graph", launches=launches):
        add_one_kernel[(2,)](x, out, N=4)
    assert launches == {"mlx-graph": 1}
    np.testing.assert_array_equal(out, x + 1)


def test_tensors_become_graphs() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(9)
    launches: dict[str, int] = {}
    with contract_device("mlx-graph", launches=launches):
        add_one_kernel[(2,)](x[1:], x[1:], N=4)
    assert launches == {"mlx-graph": 1}
    assert x.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9]


def test_arrays_longer_than_an_axis_of_mlx_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_launches, "MOST_ELEMENTS", 7)
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with (
        triton_metal.device("mlx-graph"),
        pytest.raises(LaunchValueError, match=r"argument x has 8 elements, but .* at most 7"),
    ):
        add_one_kernel[(2,)](x, out, N=4)
    assert not out.any()


def test_arrays_that_share_a_part_of_their_memory_stay_on_the_host() -> None:
    x = np.arange(9, dtype=np.int32)
    launches: dict[str, int] = {}
    with contract_device("mlx-graph", launches=launches):
        add_one_kernel[(1,)](x[1:], x[:8], N=4)
    assert launches == {"host": 1}


def refused() -> GraphRefusal:
    x = np.arange(12, dtype=np.float32)
    launches: dict[str, int] = {}
    with contract_device("mlx-graph", launches=launches), pytest.raises(GraphRefusal) as caught:
        neighbours_kernel[(2,)](x, N=4)
    assert launches == {"refused": 1}
    np.testing.assert_array_equal(x, np.arange(12))
    return caught.value


def test_a_refusal_is_an_error_of_its_own_kind_with_its_place() -> None:
    error = refused()
    assert isinstance(error, CompilationError)
    assert error.location is not None
    assert "tl.store(x + i + N" in error.location.text
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is GraphRefusal
    assert str(again) == str(error)


def failed(error: BaseException, when: str = "call") -> Any:
    """The report of a test that has failed by an error."""
    report = SimpleNamespace(failed=True, when=when, outcome="failed", longrepr=None)
    item = SimpleNamespace(location=("test_x.py", 4, "test"))
    graph_refusals.skip_refused(item, SimpleNamespace(excinfo=SimpleNamespace(value=error)), report)
    return report


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Any:
    tests: Any = graph_refusals.Counter()
    monkeypatch.setattr(graph_refusals, "tests", tests)
    return tests


def test_a_refused_test_is_skipped_with_the_reason(counts: Any) -> None:
    error = refused()
    report = failed(error)
    assert report.outcome == "skipped"
    path, line, reason = report.longrepr
    assert (path, line) == ("test_x.py", 5)
    assert reason.startswith(f"refused: test_graph_route.py:{error.location.line}: ")
    assert counts["refused"] == 1
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = error
    assert failed(wrapped).outcome == "skipped"


@pytest.mark.parametrize(
    "error", [AssertionError("wrong"), CompilationError("other"), ValueError()]
)
def test_other_failures_stay_failures(counts: Any, error: BaseException) -> None:
    assert failed(error).outcome == "failed"
    assert failed(refused(), when="setup").outcome == "failed"
    assert not counts["refused"]


def test_more_than_a_twentieth_of_refused_tests_is_too_many(counts: Any) -> None:
    for launches in [{"mlx-graph": 3}] * 19 + [{"mlx-graph": 1, "refused": 1}, {"host": 1}, {}]:
        graph_refusals.count_test(launches)
    assert counts["launched"] == 20
    counts["refused"] = 1
    assert not graph_refusals.too_many()
    assert graph_refusals.told() == "refused as graphs: 1 of 20 tests (5.0 %)"
    counts["refused"] = 2
    assert graph_refusals.too_many()
    assert graph_refusals.told().endswith("more than 5 %")
