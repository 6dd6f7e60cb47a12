"""`autotune` and `heuristics`: decorators that choose the values of a kernel's parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import AutotunerError
from ..interface import KernelInterface
from ..tuning.config import Config
from ..tuning.heuristics import Heuristics
from ..tuning.interface import kernel_of
from ..tuning.tuner import Autotuner
from .errors import OutOfResources, PTXASError

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "KernelInterface",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]


def autotune(
    configs: Sequence[Config] | None = None,
    key: Sequence[str] = (),
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
    *,
    space: Mapping[str, Sequence[Any]] | None = None,
    search: str = "grid",
    budget: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    constraints: Any = None,
    results: str | os.PathLike[str] | None = None,
    chip: str | None = None,
    measure_all: bool = False,
) -> Callable[[Any], Autotuner]:
    """Launches a kernel with the configuration that is best for its arguments.

    The first launch with other values of the parameters that ``key`` names, or with arrays of other dtypes, compares the configurations.
    Where there is no GPU, the cost model (docs/cost.md) ranks them for a chip by what the host device counts of a launch; that is
    no time. On an Apple GPU it ranks them too, and the first third is timed, at least two. A configuration that cannot be compiled or
    launched is a row of the report with its reason; if that is so for all of them, AutotunerError lists the reasons.

    - ``configs``: a list of `Config`. Or ``space``: a dictionary of parameters and options (num_warps, num_stages) with
      the values to combine, and ``constraints``: functions of a dictionary of the configuration's values and the launch's
      arguments, which say whether to try it.
    - ``search``: "grid" tries all in order, "random" in an order that ``seed`` draws, "bayes" what promises most
      after the results so far (it needs a space, and Optuna: ``pip install triton-metal[tune]``). ``budget`` limits
      the number of configurations, ``seconds`` the time after which no other one begins.
    - ``prune_configs_by``: a dictionary of ``early_config_prune(configs, named_args, **kwargs)``, which returns the
      configurations to keep, and of ``perf_model(**arguments)``, which returns the expected time, with ``top_k``, the number or share
      of those to measure.
    - ``reset_to_zero`` and ``restore_value`` name arrays that each launch of the search finds zero, or as they were.
      ``pre_hook(arguments, reset_only=False)`` and ``post_hook(arguments, exception)`` replace both.
    - ``do_bench(function, quantiles)`` measures instead; it returns the median, or a list for the quantiles.
      ``warmup`` and ``rep`` are milliseconds for the default one on a GPU. ``use_cuda_graph`` changes nothing.
    - ``cache_results``: whether to keep results on disk, for each device and chip, build, kernel (with what it calls), key and
      list of configurations. ``results``: a file that ``kernel.results.export`` has written, used in place of a search
      for the devices and keys in it.
    - ``chip``: the chip of the model, such as "M3 Max" or "M3 Max 30 cores"; without it TRITON_METAL_CHIP, the GPU's own, or "M1" where there
      is no GPU. ``measure_all`` (TRITON_METAL_AUTOTUNE_MEASURE_ALL=1): whether a GPU measures all configurations.

    >>> import numpy as np, triton_metal, triton_metal.language as tl
    >>> configs = [triton_metal.Config({"BLOCK": n}) for n in (64, 256)]
    >>> @triton_metal.autotune(configs,
    ...     key=["n"], restore_value=["x"])
    ... @triton_metal.jit
    ... def double(x, n, BLOCK: tl.constexpr):
    ...     at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(x + at, 2 * tl.load(x + at, at < n), at < n)
    >>> x = np.ones(1000, np.float32)
    >>> kernel = double[lambda meta: (triton_metal.cdiv(1000, meta["BLOCK"]),)](x, 1000)
    >>> len(double.configs_timings), double.best_config in double.configs
    (2, True)
    >>> x[0], x[999]
    (np.float32(2.0), np.float32(2.0))
    """

    def decorate(fn: Any) -> Autotuner:
        names = kernel_of("autotune", fn).arg_names
        return Autotuner(
            fn,
            names,
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook=pre_hook,
            post_hook=post_hook,
            prune_configs_by=prune_configs_by,
            warmup=warmup,
            rep=rep,
            use_cuda_graph=use_cuda_graph,
            do_bench=do_bench,
            cache_results=cache_results,
            space=space,
            search=search,
            budget=budget,
            seconds=seconds,
            seed=seed,
            constraints=constraints,
            results=results,
            chip=chip,
            measure_all=measure_all,
        )

    return decorate


def heuristics(
    values: Mapping[str, Callable[[dict[str, Any]], Any]],
) -> Callable[[Any], Heuristics]:
    """Computes parameters of a kernel from the arguments of each launch.

    ``values`` has a function for each parameter. It takes a dictionary of the arguments by name, the ones that
    `autotune` or earlier functions have chosen among them.

    >>> import numpy as np, triton_metal, triton_metal.language as tl
    >>> @triton_metal.heuristics({"BLOCK": lambda args: triton_metal.next_power_of_2(args["n"])})
    ... @triton_metal.jit
    ... def fill(x, n, BLOCK: tl.constexpr):
    ...     tl.store(x + tl.arange(0, BLOCK), 1.0, tl.arange(0, BLOCK) < n)
    >>> x = np.zeros(5, np.float32)
    >>> fill[(1,)](x, 5).constants["BLOCK"]
    8
    """

    def decorate(fn: Any) -> Heuristics:
        return Heuristics(fn, kernel_of("heuristics", fn).arg_names, values)

    return decorate
