"""Each wrong use of `autotune`, `heuristics` and their files has one clear error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import Config

pytestmark = pytest.mark.own_check


@triton.jit
def fill_kernel(x_ptr, n, value, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, value, at < n)


TWO = [Config({"BLOCK": 32}), Config({"BLOCK": 64})]
SPACE = {"BLOCK": [32, 64], "num_warps": [1, 2]}


def tune(*args: Any, **options: Any) -> Any:
    return triton.autotune(*args, **options)(fill_kernel)


DECORATORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a chip that the model does not know": (
        lambda: tune(TWO, ["n"], chip="M9"),
        ValueError,
        r"autotune of fill_kernel: chip must be one of M1, M1 Pro, .* but is 'M9'",
    ),
    "a number of cores that a chip does not have": (
        lambda: tune(TWO, ["n"], chip="M3 Max 31 cores"),
        ValueError,
        "M3 Max has 30 or 40 GPU cores, not 31",
    ),
    "a chip that is no name": (
        lambda: tune(TWO, ["n"], chip=3),
        TypeError,
        "autotune of fill_kernel: chip must be a name such as 'M3 Max' but is 3",
    ),
    "a measure_all that is no truth value": (
        lambda: tune(TWO, ["n"], measure_all="yes"),
        TypeError,
        "autotune of fill_kernel: measure_all must be True or False, not 'yes'",
    ),
    "no configurations": (
        lambda: tune(key=["n"]),
        TypeError,
        r"autotune of fill_kernel needs configs=\[.*\] or space=",
    ),
    "a configuration in place of a list": (
        lambda: tune(TWO[0], ["n"]),
        TypeError,
        "configs must be a list of triton_metal.Config, not <Config BLOCK: 32",
    ),
    "a dictionary in place of a configuration": (
        lambda: tune([TWO[0], {"BLOCK": 64}], ["n"]),
        TypeError,
        r"configs\[1\] must be a triton_metal.Config, not \{'BLOCK': 64\}",
    ),
    "a configuration without a dictionary": (
        lambda: Config(64),
        TypeError,
        "Config takes a dictionary of the kernel's parameters and their values, not 64",
    ),
    "a key that is no parameter": (
        lambda: tune(TWO, ["n", "m"]),
        ValueError,
        "key names 'm'; the kernel's parameters are x_ptr, n, value, BLOCK",
    ),
    "a key that is no list": (
        lambda: tune(TWO, "n"),
        TypeError,
        "key must be a list of the names of parameters, not 'n'",
    ),
    "no key": (lambda: tune(TWO, None), TypeError, "key must be a list of .*, not None"),
    "reset_to_zero without such a parameter": (
        lambda: tune(TWO, [], reset_to_zero=["y_ptr"]),
        ValueError,
        "reset_to_zero names 'y_ptr'; the kernel's parameters are",
    ),
    "restore_value without such a parameter": (
        lambda: tune(TWO, [], restore_value=["y_ptr"]),
        ValueError,
        "restore_value names 'y_ptr'",
    ),
    "an unknown way of pruning": (
        lambda: tune(TWO, [], prune_configs_by={"early_prune": print}),
        ValueError,
        "prune_configs_by has 'early_prune'; it takes early_config_prune, perf_model, top_k",
    ),
    "pruning by a number": (
        lambda: tune(TWO, [], prune_configs_by={"perf_model": 3}),
        TypeError,
        r"prune_configs_by\['perf_model'\] must be a function, not 3",
    ),
    "pruning by a function": (
        lambda: tune(TWO, [], prune_configs_by=print),
        TypeError,
        "prune_configs_by must be a dictionary",
    ),
    "a share of configurations above 1": (
        lambda: tune(TWO, [], prune_configs_by={"perf_model": print, "top_k": 1.5}),
        TypeError,
        "'top_k'.* must be a number of configurations, .* not 1.5",
    ),
    "an unknown search": (
        lambda: tune(TWO, [], search="anneal"),
        ValueError,
        "there is no search 'anneal'; the searches are grid, random, bayes",
    ),
    "no budget": (
        lambda: tune(TWO, [], budget=0),
        ValueError,
        "budget must be at least 1 configuration, not 0",
    ),
    "a negative budget": (lambda: tune(TWO, [], budget=-3), ValueError, "budget .* not -3"),
    "a budget of seconds": (
        lambda: tune(TWO, [], budget=2.5),
        TypeError,
        "budget must be a number of configurations, not 2.5; seconds=... limits the time",
    ),
    "no seconds": (lambda: tune(TWO, [], seconds=0), ValueError, "seconds must be more than 0"),
    "seconds as text": (lambda: tune(TWO, [], seconds="5"), TypeError, "seconds must be a number"),
    "a seed that is no integer": (
        lambda: tune(TWO, [], search="random", budget=1, seed=0.5),
        TypeError,
        "seed must be an integer, not 0.5",
    ),
    "a random search without an end": (
        lambda: tune(space=SPACE, search="random"),
        ValueError,
        r"search='random' needs budget=... configurations or seconds=...",
    ),
    "a Bayesian search of a list": (
        lambda: tune(TWO, [], search="bayes", budget=3),
        TypeError,
        'search="bayes" needs space=',
    ),
    "a list and a space": (
        lambda: tune(TWO, [], space=SPACE),
        TypeError,
        r"takes either configs=\[...\] or space=\{...\}, not both",
    ),
    "an empty space": (lambda: tune(space={}), TypeError, "space must be a dictionary of names"),
    "a space that is a list": (
        lambda: tune(space=["BLOCK"]),
        TypeError,
        "space must be a dictionary of names and lists of values, not",
    ),
    "no values for a name": (
        lambda: tune(space={"BLOCK": [], "num_warps": [1]}),
        ValueError,
        r"space\['BLOCK'\] is empty: it needs at least one value",
    ),
    "a value in place of a list": (
        lambda: tune(space={"BLOCK": 64}),
        TypeError,
        r"space\['BLOCK'\] must be a list of values, not 64",
    ),
    "a space of something else": (
        lambda: tune(space={"BLOK": [64]}),
        ValueError,
        r"space names 'BLOK', which is neither a parameter of the kernel \(x_ptr, n, value, BLOCK\) nor",
    ),
    "a space without bounds": (
        lambda: tune(space={"BLOCK": range(1000), "value": range(1000)}),
        ValueError,
        "the space has 1,000,000 configurations; 100,000 are the most",
    ),
    "constraints that are no functions": (
        lambda: tune(space=SPACE, constraints=["BLOCK > 32"]),
        TypeError,
        "constraints must be a function of a dictionary, or a list of them",
    ),
    "a plain function": (
        lambda: triton.autotune(TWO, [])(lambda x: x),
        TypeError,
        "@autotune takes a kernel: put it above @jit, not on '<lambda>'",
    ),
    "heuristics of a plain function": (
        lambda: triton.heuristics({})(print),
        TypeError,
        "@heuristics takes a kernel: put it above @jit, not on 'print'",
    ),
    "heuristics that are no dictionary": (
        lambda: triton.heuristics([1])(fill_kernel),
        TypeError,
        "heuristics of fill_kernel takes a dictionary of parameters and functions",
    ),
    "heuristics that are no functions": (
        lambda: triton.heuristics({"BLOCK": 64})(fill_kernel),
        TypeError,
        "BLOCK must be a function of the arguments, not 64",
    ),
    "results that are not there": (
        lambda: tune(TWO, [], results="/nowhere/tuned.json"),
        ValueError,
        "the results /nowhere/tuned.json cannot be read: .*No such file",
    ),
}


@pytest.mark.parametrize("case", DECORATORS)
def test_a_wrong_decorator_is_refused_at_once(case: str) -> None:
    make, kind, message = DECORATORS[case]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert isinstance(caught.value, TypeError) or isinstance(caught.value, ValueError)


def launch(kernel: Any, *args: Any, **kwargs: Any) -> None:
    kernel[(1,)](np.zeros(64, np.float32), 64, *args, **kwargs)


LAUNCHES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a parameter of the configurations by keyword": (
        lambda: launch(tune(TWO, []), 1.0, BLOCK=32),
        ValueError,
        "fill_kernel: BLOCK is given by the caller and by autotune's configuration",
    ),
    "a parameter of the configurations by position": (
        lambda: launch(tune(TWO, []), 1.0, 32),
        ValueError,
        "BLOCK is given by the caller and by autotune's configuration",
    ),
    "a parameter of the only configuration": (
        lambda: launch(tune(TWO[:1], []), 1.0, BLOCK=32),
        ValueError,
        "BLOCK is given by the caller",
    ),
    "an option of the configurations": (
        lambda: launch(tune([Config({"BLOCK": 32}, num_warps=1)], []), 1.0, num_warps=2),
        ValueError,
        "num_warps is given by the caller",
    ),
    "a parameter that the kernel does not have": (
        lambda: launch(tune([TWO[0], Config({"BLOK": 64})], []), 1.0),
        TypeError,
        r"no parameter BLOK; .*autotune's configuration is BLOK: 64",
    ),
    "an argument that the kernel does not have": (
        lambda: launch(tune(TWO, []), 1.0, colour=3),
        TypeError,
        "fill_kernel has no parameter colour",
    ),
    "a missing argument": (lambda: launch(tune(TWO, [])), TypeError, "argument value is missing"),
    "a pruning function without a result": (
        lambda: launch(
            tune(TWO, [], prune_configs_by={"early_config_prune": lambda *a, **k: None}), 1.0
        ),
        triton.TritonError,
        "`early_config_prune` should return at least one config",
    ),
    "a pruning function with another result": (
        lambda: launch(
            tune(TWO, [], prune_configs_by={"early_config_prune": lambda *a, **k: [64]}), 1.0
        ),
        TypeError,
        r"configs\[0\] must be a triton_metal.Config, not 64",
    ),
    "constraints that nothing meets": (
        lambda: launch(tune(space=SPACE, constraints=lambda c: c["BLOCK"] > 64), 1.0),
        triton.TritonError,
        "fill_kernel: the constraints exclude every configuration of autotune",
    ),
    "a do_bench without a result": (
        lambda: launch(tune(TWO, [], do_bench=lambda call, quantiles: None), 1.0),
        TypeError,
        "autotune's do_bench must return a number, or a list of them for the quantiles, not None",
    ),
    "an array to restore that is none": (
        lambda: launch(tune(TWO, [], restore_value=["n"]), 1.0),
        TypeError,
        "restore_value names n, which is 64: it takes an array",
    ),
    "a number to reset": (
        lambda: launch(tune(TWO, [], reset_to_zero=["n"]), 1.0),
        TypeError,
        "reset_to_zero names n, which is 64: it takes an array",
    ),
    "a key that cannot be hashed": (
        lambda: launch(tune(TWO, ["value"]), [1.0]),
        TypeError,
        r"argument value is in autotune's key, so it must be .* not \[1.0\]",
    ),
}


@pytest.mark.parametrize("case", LAUNCHES)
def test_a_wrong_launch_is_refused(case: str) -> None:
    run, kind, message = LAUNCHES[case]
    with pytest.raises(kind, match=message):
        run()


def test_a_launch_is_refused_after_a_search_as_before_it() -> None:
    kernel = tune(TWO, ["n"])
    launch(kernel, 1.0)
    for _ in range(2):
        with pytest.raises(ValueError, match="BLOCK is given by the caller"):
            launch(kernel, 1.0, BLOCK=64)
        with pytest.raises(ValueError, match="BLOCK is given by the caller"):
            launch(kernel, 1.0, 64)
        launch(kernel, 1.0)


def test_one_error_lists_the_reasons_of_all_configurations() -> None:
    @triton.jit
    def kernel(x_ptr, BLOCK: tl.constexpr):
        tl.static_assert(BLOCK < 32, f"{BLOCK} is too much")
        tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

    tuned = triton.autotune([*TWO, Config({"BLOCK": 16}, num_warps=3)], [])(kernel)
    with pytest.raises(triton.AutotunerError) as caught:
        tuned[(1,)](np.zeros(64, np.float32))
    text = str(caught.value)
    assert "none of the 3 configurations can be compiled and launched" in text
    for part in ("BLOCK: 32", "32 is too much", "64 is too much", "num_warps must be 1, 2, 4"):
        assert part in text
    assert "tl.static_assert(BLOCK < 32" in text  # with the line of the kernel
    assert isinstance(caught.value.__cause__, triton.CompileTimeAssertionFailure)
    assert tuned.cache == {}


def test_an_error_of_the_kernel_itself_is_raised_as_without_a_search() -> None:
    @triton.jit
    def kernel(x_ptr, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), nothing)  # noqa: F821

    with pytest.raises(triton.CompilationError, match="nothing") as caught:
        triton.autotune(TWO, [])(kernel)[(1,)](np.zeros(64, np.float32))
    assert "^" in str(caught.value)


def test_bayes_without_optuna_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install triton-metal\[tune\]"):
        tune(space=SPACE, search="bayes", budget=2)


def test_a_budget_of_the_environment_must_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_METAL_AUTOTUNE_BUDGET", "many")
    with pytest.raises(ValueError, match="TRITON_METAL_AUTOTUNE_BUDGET must be a number"):
        launch(tune(TWO, []), 1.0)


def damage(path: tuple[Any, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(fields: Any) -> None:
        for part in path[:-1]:
            fields = fields[part]
        if value is KeyError:
            del fields[path[-1]]
        else:
            fields[path[-1]] = value

    return change


FIRST = ("tunings", 0)
FILES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "format": (damage(("format",), 7), "format must be 1 or 2, not 7"),
    "no format": (damage(("format",), KeyError), "format is missing"),
    "kernel": (
        damage(("kernel",), "other"),
        "kernel is 'other', but the results are for 'fill_kernel'",
    ),
    "tunings": (damage(("tunings",), {}), r"tunings must be a list, not \{\}"),
    "a tuning": (damage(FIRST, 3), r"tunings\[0\] must be an object, not 3"),
    "key": (damage((*FIRST, "key"), "n"), r"tunings\[0\].key must be a list"),
    "unit": (damage((*FIRST, "unit"), "parsec"), r"tunings\[0\].unit must be ms, model, benchmark"),
    "seconds": (damage((*FIRST, "seconds"), True), r"tunings\[0\].seconds must be a number"),
    "best": (damage((*FIRST, "best"), []), r"tunings\[0\].best must be an object"),
    "a parameter": (
        damage((*FIRST, "best", "kwargs", "BLOK"), 3),
        r"tunings\[0\].best.kwargs.BLOK is not a parameter of fill_kernel \(x_ptr, n, value, BLOCK\)",
    ),
    "a value": (damage((*FIRST, "best", "kwargs", "BLOCK"), [3]), "kwargs.BLOCK must be a value"),
    "num_warps": (damage((*FIRST, "best", "num_warps"), 5), "best.num_warps must be 1, 2, 4, 8"),
    "num_warps as text": (damage((*FIRST, "best", "num_warps"), "4"), "must be an integer or null"),
    "num_stages": (
        damage((*FIRST, "best", "num_stages"), 0),
        "best.num_stages must be from 1 to 16",
    ),
    "rows": (damage((*FIRST, "rows"), None), r"tunings\[0\].rows must be a list"),
    "a row": (
        damage((*FIRST, "rows", 1, "value"), "fast"),
        r"tunings\[0\].rows\[1\].value must be a number or null, not 'fast'",
    ),
    "runs": (damage((*FIRST, "rows", 0, "runs"), KeyError), r"rows\[0\].runs is missing"),
    "how": (damage((*FIRST, "how"), 3), r"tunings\[0\].how must be a string, not 3"),
    "left out": (
        damage((*FIRST, "rows", 0, "left_out"), KeyError),
        r"rows\[0\].left_out must be true or false, not None",
    ),
    "an estimate": (
        damage((*FIRST, "rows", 0, "estimate"), "low"),
        r"rows\[0\].estimate must be a number or null, not 'low'",
    ),
    "counted": (
        damage((*FIRST, "rows", 0, "counted"), [1]),
        r"rows\[0\].counted must be two numbers of programs, not \[1\]",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_damaged_file_of_results_is_refused_with_its_field(case: str, tmp_path: Path) -> None:
    kernel = tune(TWO, ["n"])
    launch(kernel, 1.0)
    path = tmp_path / "tuned.json"
    kernel.results.export(path)
    change, message = FILES[case]
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=message) as caught:
        tune(TWO, ["n"], results=path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", "[" * 100_000])
def test_a_text_that_is_no_file_of_results_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"tuned\.json"):
        tune(TWO, ["n"], results=path)


def test_values_that_a_file_cannot_hold_are_refused_at_the_export(tmp_path: Path) -> None:
    @triton.jit
    def kernel(x_ptr, OPTIONS: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, OPTIONS[0]), 1.0)

    tuned = triton.autotune([Config({"OPTIONS": (n,)}) for n in (16, 32)], [])(kernel)
    tuned[(1,)](np.zeros(64, np.float32))
    with pytest.raises(ValueError, match=r"OPTIONS=\(\d+,\), which a file of results cannot hold"):
        tuned.results.export(tmp_path / "tuned.json")
    assert not list(tmp_path.iterdir())


def test_a_time_that_is_no_number_is_not_the_best() -> None:
    times = iter([float("nan"), 3.0, 2.0])
    kernel = triton.autotune(
        [*TWO, Config({"BLOCK": 128})], ["n"], do_bench=lambda run, quantiles: next(times)
    )(fill_kernel)
    launch(kernel, 1.0)
    assert kernel.best_config.kwargs["BLOCK"] == 128


def test_a_model_that_gives_no_number() -> None:
    prune = {"perf_model": lambda **named: None, "top_k": 1}
    with pytest.raises(TypeError, match="perf_model must return a number, not None"):
        launch(tune(TWO, ["n"], prune_configs_by=prune), 1.0)


def test_a_launch_that_is_refused_says_why() -> None:
    x = np.zeros(100, np.float32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="argument x_ptr is a read-only array, but the kernel"):
        tune(TWO, ["n"])[(4,)](x, 100, 1.0)
