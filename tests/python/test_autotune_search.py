"""Searches over a declared space, and their results as tables and files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config
from triton_metal.tuning.search import Plan
from triton_metal.tuning.space import Space

pytestmark = pytest.mark.own_check


@triton.jit
def fill_kernel(x_ptr, n, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, value, at < n)


SPACE = {"BLOCK": [32, 64, 128], "num_warps": [1, 2], "num_stages": [2]}


def launch(kernel: Any, n: int = 100) -> Any:
    x = np.zeros(n, np.float32)
    compiled = kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n, 3.0)
    assert (x == 3).all()
    return compiled


def tried(kernel: Any) -> list[tuple[int, int]]:
    [tuning] = kernel.results.values()
    return [(row.config.kwargs["BLOCK"], row.config.num_warps) for row in tuning.rows]


def test_a_space_has_every_combination() -> None:
    kernel = triton.autotune(space=SPACE, key=["n"])(fill_kernel)
    assert len(kernel.configs) == 6
    launch(kernel)
    assert tried(kernel) == [(b, w) for b in (32, 64, 128) for w in (1, 2)]
    assert all(config.num_stages == 2 for config in kernel.configs)
    [tuning] = kernel.results.values()
    assert tuning.best == min(tuning.rows, key=lambda row: row.value).config


def test_constraints_see_the_configuration_and_the_arguments() -> None:
    def fits(values: dict[str, Any]) -> bool:
        return values["BLOCK"] <= values["n"] and values["num_warps"] == 1

    kernel = triton.autotune(space=SPACE, key=["n"], constraints=fits)(fill_kernel)
    launch(kernel, 100)
    assert tried(kernel) == [(32, 1), (64, 1)]
    both = [fits, lambda values: values["BLOCK"] != 32]
    kernel = triton.autotune(space=SPACE, key=["n"], constraints=both)(fill_kernel)
    launch(kernel, 200)
    assert tried(kernel) == [(64, 1), (128, 1)]


def test_a_budget_ends_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = triton.autotune(space=SPACE, budget=4)(fill_kernel)
    launch(kernel)
    assert len(tried(kernel)) == 4
    kernel = triton.autotune([Config({"BLOCK": b}) for b in (32, 64, 128)], [], budget=2)
    kernel = kernel(fill_kernel)
    launch(kernel)
    assert tried(kernel) == [(32, 4), (64, 4)]
    monkeypatch.setenv("TRITON_METAL_AUTOTUNE_BUDGET", "3")
    kernel = triton.autotune(space=SPACE, budget=4)(fill_kernel)
    launch(kernel)
    assert len(tried(kernel)) == 3


def test_seconds_end_a_search_after_a_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton_metal.tuning.search as search

    clock = iter(range(100))
    monkeypatch.setattr(search.time, "monotonic", lambda: next(clock))
    plan = Plan("k", "grid", None, 2.5, 0, None)
    configs = [Config({"BLOCK": n}) for n in range(10)]
    assert list(plan.run(configs, lambda config: 1.0)) == configs[:3]
    # It goes on until one configuration has run.
    value = lambda config: 1.0 if config.kwargs["BLOCK"] == 7 else float("inf")  # noqa: E731
    plan = Plan("k", "grid", None, 0.5, 0, None)
    assert list(plan.run(configs, value)) == configs[:8]


def test_a_random_search_depends_on_its_seed_alone() -> None:
    def order(seed: int) -> list[tuple[int, int]]:
        kernel = triton.autotune(space=SPACE, search="random", budget=4, seed=seed)(fill_kernel)
        launch(kernel)
        return tried(kernel)

    assert order(0) == order(0)
    assert len({tuple(order(seed)) for seed in range(4)}) > 1
    assert len(set(order(3))) == 4  # none twice


def minimum(config: Config) -> float:
    """A smooth function with a single best configuration."""
    values = config.kwargs
    return (
        abs(values["A"].bit_length() - 8)
        + abs(values["B"].bit_length() - 6)
        + 2 * (values["C"] != "y")
    )


def big_space() -> Space:
    values = {"A": [1 << i for i in range(12)], "B": [1 << i for i in range(12)], "C": list("xyz")}
    return Space("k", ["A", "B", "C"], values)


def best_of(search: str, seed: int, budget: int) -> float:
    space = big_space()
    found: list[float] = []

    def measure(config: Config) -> float:
        found.append(minimum(config))
        return found[-1]

    asked = list(Plan("k", search, budget, None, seed, space).run(space.configs(), measure))
    assert len(asked) == budget == len(set(map(str, asked)))
    return min(found)


def test_a_bayesian_search_finds_better_configurations_than_a_random_one() -> None:
    pytest.importorskip("optuna")
    bayes = [best_of("bayes", seed, 40) for seed in range(4)]
    drawn = [best_of("random", seed, 40) for seed in range(4)]
    assert sum(bayes) < sum(drawn)
    assert bayes == [best_of("bayes", seed, 40) for seed in range(4)]


def test_a_bayesian_search_tries_all_of_a_small_space_once() -> None:
    pytest.importorskip("optuna")
    kernel = triton.autotune(
        space=SPACE, search="bayes", budget=100, constraints=lambda c: c["BLOCK"] != 64
    )(fill_kernel)
    launch(kernel)
    assert sorted(tried(kernel)) == [(32, 1), (32, 2), (128, 1), (128, 2)]


def test_a_bayesian_search_learns_from_refusals() -> None:
    pytest.importorskip("optuna")
    space = Space("k", ["A"], {"A": list(range(60))})
    asked: list[int] = []

    def measure(config: Config) -> float:
        asked.append(config.kwargs["A"])
        return float("inf") if asked[-1] > 20 else abs(asked[-1] - 10)

    list(Plan("k", "bayes", 25, None, 0, space).run(space.configs(), measure))
    assert sum(a <= 20 for a in asked) >= 14  # of 25; a random search tries 9


def test_optuna_stays_as_talkative_as_it_was() -> None:
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    best_of("bayes", 0, 3)
    assert optuna.logging.get_verbosity() == before


def test_exported_results_replace_a_search(tmp_path: Path) -> None:
    kernel = triton.autotune(space=SPACE, key=["n"])(fill_kernel)
    for n in (100, 300):
        launch(kernel, n)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)

    def no_search(call: Any, quantiles: Any) -> float:
        raise AssertionError("there is a result for this key")

    shipped = triton.autotune(space=SPACE, key=["n"], results=path, do_bench=no_search)(fill_kernel)
    for n in (100, 300):
        compiled = launch(shipped, n)
        known = kernel.results[(n, "float32")]
        assert compiled.constants["BLOCK"] == known.best.kwargs["BLOCK"]
        found = shipped.results[(n, "float32")]
        assert found.source == "file"
        assert found.rows == known.rows
        assert shipped.configs_timings == {r.config: [r.value, r.low, r.high] for r in known.rows}
    with pytest.raises(AssertionError, match="there is a result"):
        launch(shipped, 200)


def test_results_of_another_device_are_not_used(tmp_path: Path) -> None:
    kernel = triton.autotune(space=SPACE, key=["n"])(fill_kernel)
    launch(kernel)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)
    fields = json.loads(path.read_text())
    fields["tunings"][0]["device"] = "mps Apple M9"
    path.write_text(json.dumps(fields))
    other = triton.autotune(space=SPACE, key=["n"], results=path)(fill_kernel)
    launch(other)
    assert [tuning.source for tuning in other.results.values()] == ["search"]


def test_refused_rows_travel_in_files(tmp_path: Path) -> None:
    configs = [Config({"BLOCK": 32}), Config({"BLOCK": 64}, num_warps=64), Config({"BLOCK": 128})]
    kernel = triton.autotune(configs, ["n"])(fill_kernel)
    launch(kernel)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)
    shipped = triton.autotune(configs, ["n"], results=path)(fill_kernel)
    launch(shipped)
    rows = shipped.results[(100, "float32")].rows
    assert [row.ok for row in rows] == [True, False, True]
    assert "num_warps must be" in rows[1].reason
    assert rows == kernel.results[(100, "float32")].rows


def test_a_table_has_a_row_for_each_configuration_best_first() -> None:
    values = iter([[3.0, 2.5, 3.5], [1.25, 1.0, 1.5], [2.0, 1.0, 4.0]])

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        call()
        return next(values)

    configs = [Config({"BLOCK": block}) for block in (32, 64, 128)]
    kernel = triton.autotune(configs, ["n"], do_bench=bench)(fill_kernel)
    assert kernel.report() == "fill_kernel: no search has been made yet"
    launch(kernel)
    title, head, *rows = kernel.report().splitlines()
    assert (
        title
        == "fill_kernel, key (100, 'float32') on host: what the given do_bench returned; measured all 3 by do_bench"
    )
    assert head.split() == [
        "configuration",
        "benchmark",
        "20",
        "%",
        "80",
        "%",
        "runs",
        "compile",
        "ms",
    ]
    assert [row.partition(",")[0] for row in rows] == ["BLOCK: 64", "BLOCK: 128", "BLOCK: 32"]
    assert rows[0].split("maxnreg: None")[1].split()[:4] == ["1.25", "1", "1.5", "2"]
    assert rows[0].endswith("<- best")
    assert str(kernel.results) == kernel.report()


def test_a_long_search_shows_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    import triton_metal.tuning.progress as progress

    begun: list[bool] = []
    monkeypatch.setattr(progress.Progress, "_begin", lambda self: begun.append(True))
    now = iter(range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))

    def search(total: int, terminal: bool) -> bool:
        begun.clear()
        monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: terminal, raising=False)
        bar = progress.Progress("k", total)
        for _ in range(total):
            bar.advance()
        bar.close()
        return bool(begun)

    assert search(5, terminal=True)
    assert not search(5, terminal=False)
    assert not search(1, terminal=True)


def test_a_bar_is_drawn_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    import triton_metal.tuning.progress as progress

    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    bar = progress.Progress("k", 3)
    bar.advance()
    assert bar._bar is not None
    bar.advance()
    bar.close()
    assert bar._bar is None


def test_spaces_give_coordinates_back() -> None:
    space = big_space()
    configs = space.configs()
    random.Random(1).shuffle(configs)
    for config in configs[:20]:
        at = space.coordinates(config)
        values = [choices[i] for choices, i in zip(space.values.values(), at, strict=True)]
        assert dict(zip(space.values, values, strict=True)) == config.kwargs
