"""`autotune`: which configuration a launch takes, and what its search leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config

from autotune_support import Bench, arrays, blocks, grid, increment_kernel, scale_kernel
from kernel_support import torch_or_skip

pytestmark = pytest.mark.own_check  # a search runs launches with counters, or not at all


def test_the_configuration_with_the_least_time_is_launched() -> None:
    bench = Bench([3.0, 2.0, 4.0], [1.0, 0.5, 2.0], [2.0, 1.0, 3.0])
    kernel = triton.autotune(blocks(32, 64, 128), ["n"], do_bench=bench)(scale_kernel)
    x, out = arrays(1000)
    compiled = kernel[grid](x, out, 1000, 2.0)
    assert (out == 2 * x).all()
    assert compiled.constants["BLOCK"] == 64
    assert kernel.best_config is kernel.configs[1]
    assert bench.quantiles == [(0.5, 0.2, 0.8)] * 3
    assert list(kernel.configs_timings.values()) == [
        [3.0, 2.0, 4.0],
        [1.0, 0.5, 2.0],
        [2.0, 1.0, 3.0],
    ]
    assert kernel.bench_time > 0
    assert kernel.cache == {(1000, "float32", "float32"): kernel.configs[1]}
    assert kernel.nargs is None


def test_a_search_is_made_once_for_each_key_and_dtype() -> None:
    bench = Bench(*range(20))
    kernel = triton.autotune(blocks(32, 64), ["n"], do_bench=bench)(scale_kernel)
    for n in (100, 100, 200, 100):
        for _ in range(3):
            kernel[grid](*arrays(n), n, 2.0)
    assert len(bench.quantiles) == 4
    kernel[grid](*arrays(100, "float16"), 100, 2.0)
    assert len(bench.quantiles) == 6
    # Neither a parameter that the key does not name nor the order of keywords starts another one.
    x, out = arrays(100)
    kernel[grid](factor=3.0, n=100, out_ptr=out, x_ptr=x)
    kernel[grid](n=100, x_ptr=x, out_ptr=out, factor=4.0)
    assert (out == 4 * x).all()
    assert len(bench.quantiles) == 6
    assert len(kernel.cache) == 3


def test_numbers_that_are_equal_share_a_key() -> None:
    bench = Bench(*range(20))
    kernel = triton.autotune(blocks(32, 64), ["factor"], do_bench=bench)(scale_kernel)
    for factor in (2.0, 2, np.float64(2)):
        x, out = arrays(100)
        kernel[grid](x, out, 100, factor)
        assert (out == 2 * x).all()
    assert len(kernel.cache) == 2  # NumPy's number has a dtype


def test_one_configuration_needs_no_search() -> None:
    bench = Bench()
    kernel = triton.autotune(blocks(64, num_warps=2), ["n"], do_bench=bench)(scale_kernel)
    x, out = arrays(100)
    for _ in range(3):
        compiled = kernel[grid](x, out, 100, 2.0)
        assert compiled.constants["BLOCK"] == 64
        assert compiled.metadata.num_warps == 2
    assert not bench.quantiles
    assert kernel.cache == {}
    kernel.configs[0] = Config({"BLOCK": 32})
    assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 32
    # A program that adds configurations gets a search for each key from then on.
    bench.values = [2, 1, 1, 2]
    kernel.configs.append(Config({"BLOCK": 128}))
    for _ in range(2):
        assert kernel[grid](x, out, 100, 2.0).constants["BLOCK"] == 128
        assert kernel[grid](x, out, 90, 2.0).constants["BLOCK"] == 32
    assert len(bench.quantiles) == 4


def test_an_empty_list_of_configurations_is_one_without_values() -> None:
    kernel = triton.autotune([], ["n"])(scale_kernel)
    x, out = arrays(64)
    kernel[(1,)](x, out, 64, 2.0, BLOCK=64)
    assert (out == 2 * x).all()
    assert kernel.configs == [Config({})]


def test_the_options_of_a_configuration_reach_the_launch() -> None:
    configs = [Config({"BLOCK": 256}, num_warps=w, num_stages=s) for w, s in ((1, 1), (8, 2))]
    kernel = triton.autotune(configs, ["n"], do_bench=Bench(2, 1))(scale_kernel)
    metadata = kernel[grid](*arrays(300), 300, 2.0).metadata
    assert (metadata.num_warps, metadata.num_stages) == (8, 2)


@pytest.mark.own_route
@pytest.mark.parametrize("framework", ["numpy", "torch", "mlx"])
def test_restore_value_and_reset_to_zero_on_arrays_of_each_framework(framework: str) -> None:
    if framework == "torch":
        torch = torch_or_skip()
        make = lambda: torch.full((100,), 2.0)  # noqa: E731
    elif framework == "mlx":
        mx = pytest.importorskip("mlx.core")
        make = lambda: mx.full((100,), 2.0)  # noqa: E731
    else:
        make = lambda: np.full(100, 2.0, np.float32)  # noqa: E731
    tune = triton.autotune(blocks(32, 64, 128), ["n"], restore_value=["x_ptr"])
    x = make()
    tune(increment_kernel)[grid](x, 100)
    assert x.tolist() == [3.0] * 100
    tune = triton.autotune(blocks(32, 64, 128), ["n"], reset_to_zero=["x_ptr"])
    x = make()
    tune(increment_kernel)[grid](x_ptr=x, n=100)
    assert x.tolist() == [1.0] * 100


def test_parameters_of_a_model_are_restored() -> None:
    torch = torch_or_skip()
    x = torch.nn.Parameter(torch.ones(100))
    triton.autotune(blocks(32, 64), ["n"], restore_value=["x_ptr"])(increment_kernel)[grid](x, 100)
    assert x.tolist() == [2.0] * 100
    triton.autotune(blocks(32, 64), ["n"], reset_to_zero=["x_ptr"])(increment_kernel)[grid](x, 100)
    assert x.tolist() == [1.0] * 100
    assert x.grad_fn is None


def test_hooks_surround_each_launch_of_a_search() -> None:
    calls: list[Any] = []

    def before(arguments: dict[str, Any], reset_only: bool = False) -> None:
        calls.append(("before", arguments["BLOCK"], reset_only))

    def after(arguments: dict[str, Any], exception: Exception | None) -> None:
        calls.append(("after", arguments["n"], exception))

    seen: list[dict[str, Any]] = []
    configs = [Config({"BLOCK": 32}, pre_hook=seen.append), Config({"BLOCK": 64})]
    tune = triton.autotune(configs, ["n"], pre_hook=before, post_hook=after, do_bench=Bench(1, 2))
    kernel = tune(scale_kernel)
    x, out = arrays(100)
    kernel[grid](x, out, 100, 2.0)
    assert calls == [
        ("before", 32, False),
        ("after", 100, None),
        ("before", 64, False),
        ("after", 100, None),
        ("before", 32, True),
    ]
    assert len(seen) == 2  # in the search, and before the launch
    assert seen[1]["x_ptr"] is x
    # What a configuration does not name no hook sees either.
    assert "num_warps" not in seen[1]
    assert seen[1]["grid"] is grid
    kernel[grid](x, out, 100, 2.0)
    assert len(seen) == 3  # a configuration's own hook goes before every launch
    assert len(calls) == 5


def test_a_hook_learns_of_the_error_of_a_configuration() -> None:
    errors = []

    @triton.jit
    def kernel(x_ptr, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK < 100, "too many")
        tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

    def after(arguments: dict[str, Any], exception: Exception | None) -> None:
        errors.append(exception)

    tuned = triton.autotune(blocks(64, 128), [], post_hook=after)(kernel)
    tuned[(1,)](np.zeros(128, np.float32))
    assert errors[0] is None
    assert isinstance(errors[1], triton.CompileTimeAssertionFailure)


def test_a_refused_configuration_is_a_row_and_no_failure() -> None:
    @triton.jit
    def kernel(x_ptr, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK != 128, "not this one")
        tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

    configs = [*blocks(128, 256, 32), *blocks(64, num_warps=64), Config({"BLOCK": 48})]
    tuned = triton.autotune(configs, [])(kernel)
    x = np.zeros(256, np.float32)
    tuned[(1,)](x)
    assert tuned.best_config.kwargs["BLOCK"] == 32
    [tuning] = tuned.results.values()
    assert [row.ok for row in tuning.rows] == [False, True, True, False, False]
    reasons = [row.reason for row in tuning.rows if not row.ok]
    assert "not this one" in reasons[0]
    assert "num_warps must be 1, 2, 4, 8, 16 or 32, not 64" in reasons[1]
    assert tuned.configs_timings[configs[0]] == [float("inf")] * 3
    report = tuned.report()
    assert "refused: CompileTimeAssertionFailure" in report
    assert "not times on an Apple GPU" in report


def test_heuristics_below_and_above_a_search() -> None:
    seen = []

    def warps(arguments: dict[str, Any]) -> int:
        seen.append(arguments["BLOCK"])
        return 1 if arguments["BLOCK"] == 32 else 2

    below = triton.autotune(blocks(32, 64), ["n"], do_bench=Bench(2, 1))(
        triton.heuristics({"factor": lambda arguments: 3.0})(scale_kernel)
    )
    x, out = arrays(100)
    below[grid](x, out, 100)
    assert (out == 3 * x).all()
    assert below.best_config.kwargs == {"BLOCK": 64}

    above = triton.heuristics({"factor": lambda arguments: arguments["n"] / 50})(
        triton.autotune(blocks(32, 64), ["n"], do_bench=Bench(2, 1))(scale_kernel)
    )
    above[grid](x, out, 100)
    assert (out == 2 * x).all()
    assert above.fn.best_config.kwargs == {"BLOCK": 64}

    both = triton.heuristics({"num_warps": warps})(scale_kernel)
    assert both[grid](x, out, 100, 2.0, BLOCK=32).metadata.num_warps == 1
    assert both[grid](x, out, 100, 2.0, BLOCK=64).metadata.num_warps == 2
    assert seen == [32, 64]


def test_heuristics_see_what_earlier_ones_computed() -> None:
    kernel = triton.heuristics(
        {"BLOCK": lambda a: triton.next_power_of_2(a["n"]), "factor": lambda a: float(a["BLOCK"])}
    )(scale_kernel)
    x, out = arrays(100)
    assert kernel[(1,)](x, out, 100).constants["BLOCK"] == 128
    assert (out == 128 * x).all()


def test_pruning_gets_the_arguments_and_leaves_what_it_returns() -> None:
    seen: dict[str, Any] = {}

    def prune(configs: list[Config], named: dict[str, Any], **keywords: Any) -> list[Config]:
        seen.update(named=set(named), keywords=set(keywords))
        return configs[1:]

    def model(**arguments: Any) -> float:
        return -arguments["BLOCK"] * arguments["n"]

    bench = Bench(1, 2)
    kernel = triton.autotune(
        blocks(32, 64, 128, 256),
        ["n"],
        prune_configs_by={"early_config_prune": prune, "perf_model": model, "top_k": 2},
        do_bench=bench,
    )(scale_kernel)
    x, out = arrays(100)
    kernel[grid](x, out, n=100, factor=2.0)
    assert seen == {
        "named": {"x_ptr", "out_ptr"},
        "keywords": {"n", "factor", "grid", "warmup"},
    }
    assert [config.kwargs["BLOCK"] for config in kernel.configs_timings] == [256, 128]
    kernel.configs_top_k = 0.1  # at least one, and then there is no search
    kernel[grid](x, out, n=101 - 1, factor=2.0)
    kernel[grid](*arrays(50), n=50, factor=2.0)
    assert len(bench.quantiles) == 2
    assert kernel.best_config.kwargs["BLOCK"] == 256


def test_without_a_model_of_the_performance_top_k_may_be_none() -> None:
    kernel = triton.autotune(
        blocks(32, 64),
        ["n"],
        prune_configs_by={
            "early_config_prune": lambda configs, *_, **__: configs[1:],
            "perf_model": None,
            "top_k": None,
        },
    )(scale_kernel)
    x, out = arrays(100)
    kernel[grid](x, out, n=100, factor=2.0)
    assert kernel.best_config.kwargs["BLOCK"] == 64
    assert out.tolist() == (2 * x).tolist()


def test_a_search_without_a_gpu_ranks_by_the_model_and_counts_each_text_once() -> None:
    configs = [Config({"BLOCK": b}, num_warps=4, num_stages=s) for b in (32, 256) for s in (2, 3)]
    kernel = triton.autotune(configs, ["n"])(scale_kernel)
    x, out = arrays(4096)
    kernel[grid](x, out, 4096, 2.0)
    [tuning] = kernel.results.values()
    assert (tuning.unit, tuning.device, tuning.source) == ("model", "model of M1", "search")
    assert tuning.how == "ranked by the model for M1"
    # The stages of a kernel without loops change nothing, so its second text is not launched.
    assert [row.runs > 0 for row in tuning.rows] == [True, False, True, False]
    costs = [row.value for row in tuning.rows]
    assert costs[0] == costs[1] != costs[2] == costs[3] > 0
    found = scale_kernel.cost("M1", grid, x, out, 4096, 2.0, BLOCK=256, num_warps=4)
    assert costs[2] == found.estimate * 1e6
    again = triton.autotune(configs, ["n"])(scale_kernel)
    again[grid](x, out, 4096, 2.0)
    assert [row.value for row in again.results[(4096, "float32", "float32")].rows] == costs


def test_times_are_measured_where_there_is_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton_metal.tuning.measure as measure

    monkeypatch.setattr(measure, "is_gpu", lambda device: True)
    with pytest.warns(DeprecationWarning, match="do_bench"):
        kernel = triton.autotune(blocks(32, 256), ["n"], warmup=1, rep=2)(scale_kernel)
    kernel[grid](*arrays(100), 100, 2.0)
    [tuning] = kernel.results.values()
    assert tuning.unit == "ms"
    for row in tuning.rows:
        assert 0 < row.low <= row.value <= row.high < 1000
        assert row.runs > 4
        assert row.compile_ms >= 0


@pytest.mark.own_route
def test_mlx_arrays_have_estimates_where_mlx_runs_on_the_cpu() -> None:
    mx = pytest.importorskip("mlx.core")
    if mx.metal.is_available():
        pytest.skip("MLX has a GPU")
    kernel = triton.autotune(blocks(32, 256), ["n"])(scale_kernel)
    x, out = mx.arange(100) * mx.array(1.0), mx.zeros((100,))
    kernel[grid](x, out, 100, 2.0)
    assert mx.array_equal(out, 2 * x)
    [tuning] = kernel.results.values()
    assert tuning.unit == "model"
    assert all(row.value > 0 for row in tuning.rows)
    costs = {row.config.kwargs["BLOCK"]: row.value for row in tuning.rows}
    assert costs.keys() == {32, 256}
    assert tuning.best.kwargs == {"BLOCK": min(costs, key=costs.__getitem__)}


def test_an_array_in_the_key_stands_for_its_shape() -> None:
    kernel = triton.autotune(blocks(32, 64), ["x_ptr"], do_bench=Bench(*range(9)))(scale_kernel)
    for n in (100, 100, 200):
        kernel[grid](*arrays(n), n, 2.0)
    assert list(kernel.cache) == [
        ((100,), "float32", "float32"),
        ((200,), "float32", "float32"),
    ]
