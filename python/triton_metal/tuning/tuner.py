"""The kernel that `autotune` makes: it searches for the best configuration once for each key."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import itertools
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import knobs
from ..array_copies import ArrayCopies
from ..cost import full_name
from ..devices import device as on_device
from ..devices import target_spec
from ..errors import AutotunerError, LaunchTypeError, LaunchValueError
from ..interface import KernelInterface
from ..jit import JITFunction
from ..launcher import searches
from . import arrays, files, measure, store
from .config import Config
from .digest import digest_of
from .heuristics import Heuristics
from .interface import kernel_of
from .key import KeyReader
from .lookup import Found, look_of, reader_of
from .measure import Measurement, device_of, expected_time, figures_of, label_of, ordered
from .memory import Memory
from .model import Model, chip_for, described, read_chip
from .options import read_configs, read_names, read_prune
from .progress import Progress
from .ranking import Ranking
from .results import Results
from .rows import Row, Tuning, shown_key
from .search import Plan
from .space import Space, read_constraints


class Autotuner(KernelInterface):
    """A kernel that is launched with the best of several configurations; `autotune` makes it.

    ``cache`` has the best configuration for each key, ``best_config`` that of the latest launch. ``results`` has what
    the searches found, ``bench_time`` the seconds and ``configs_timings`` the timings of the latest one.
    """

    best_config: Config
    bench_time: float
    configs_timings: dict[Config, Any]

    def __init__(
        self,
        fn: Any,
        arg_names: list[str],
        configs: Any,
        key: Any,
        reset_to_zero: Any,
        restore_value: Any,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
        *,
        space: Mapping[str, Any] | None = None,
        search: str = "grid",
        budget: int | None = None,
        seconds: float | None = None,
        seed: int = 0,
        constraints: Any = None,
        results: str | os.PathLike[str] | None = None,
        chip: str | None = None,
        measure_all: bool = False,
    ) -> None:
        kernel = kernel_of("autotune", fn)
        name = kernel.name
        self._kernel = kernel
        self.fn = fn
        self.base_fn = kernel.function
        self.arg_names = arg_names
        self.__name__ = name
        self.__qualname__ = kernel.__qualname__
        self.__module__ = kernel.__module__
        self.__doc__ = kernel.__doc__
        self._space = None if space is None else Space(name, arg_names, space)
        self.configs = read_configs(name, configs, self._space)
        self.keys = read_names(name, "key", key, arg_names)
        self.reset_to_zero = read_names(name, "reset_to_zero", reset_to_zero, arg_names)
        self.restore_value = read_names(name, "restore_value", restore_value, arg_names)
        self.early_config_prune, self.perf_model, self.configs_top_k = read_prune(
            name, prune_configs_by
        )
        self.restore_copies: dict[str, Any] = {}
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook = pre_hook or self._prepare
        self.post_hook = post_hook or self._restore
        self._do_bench = do_bench
        self.num_warmups = warmup
        self.num_reps = rep
        self.use_cuda_graph = use_cuda_graph
        if warmup is not None or rep is not None or use_cuda_graph:
            warnings.warn(
                "autotune's warmup, rep and use_cuda_graph are deprecated: give do_bench=... in their place",
                DeprecationWarning,
                stacklevel=3,
            )
        self.cache_results = cache_results or knobs.autotuning.cache
        self._plan = Plan(name, search, budget, seconds, seed, self._space)
        self._constraints = read_constraints(name, constraints)
        self._chip = None if chip is None else read_chip(f"autotune of {name}: chip", chip)
        if not isinstance(measure_all, bool):
            raise LaunchTypeError(
                f"autotune of {name}: measure_all must be True or False, not {measure_all!r}"
            )
        self._measure_all = measure_all
        self._shipped = {} if results is None else files.read(results, name, arg_names)
        self.results = Results(name)
        self.nargs: dict[str, Any] | None = None
        self._keys = KeyReader(name, arg_names, self.keys)
        self._lock = threading.RLock()
        self._readers: dict[tuple[Any, ...], Callable[[Any, Any], tuple[Any, ...]]] = {}
        self._has_key = False
        self._numbers = itertools.count()
        self._fast: dict[tuple[Any, ...], Found] = {}
        self._memory: Any = Memory(self._fast.clear)
        self._measurement: Measurement | None = None
        self._row: Row | None = None
        # A subclass may have its own `run`, which sees every launch.
        self._at = self._launch if type(self).run is Autotuner.run else self._run_at
        # Only a plain kernel is launched past `run`, which a class around one may have overridden.
        self._is_plain = type(fn) is JITFunction
        self._is_direct = self._is_plain or hasattr(fn, "_at")
        # Another class may launch where it is asked to compile.
        self._may_compile = _is_known(fn)

    def __repr__(self) -> str:
        return f"Autotuner({self.fn!r})"

    @property
    def do_bench(self) -> Callable[..., Any]:
        """The function that measures configurations: the given one, or `triton_metal.testing.do_bench`."""
        if self._do_bench is not None:
            return self._do_bench
        from ..testing import do_bench

        return do_bench

    @do_bench.setter
    def do_bench(self, value: Callable[..., Any] | None) -> None:
        self._do_bench = value

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """Without arguments: the results of all searches as tables, each configuration with its median and percentiles, the
        number of launches, the compile time, and why it was refused.

        ``report(path, grid, *args, chips=, **kwargs)`` writes a page about a launch with the best configuration, as that of
        a kernel does."""
        if not args and not kwargs:
            return str(self.results)
        return super().report(*args, **kwargs)

    # --- Launches -----------------------------------------------------------------------------------

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches the kernel with the best configuration, which it searches for if it is not
        known."""
        return functools.partial(self._at, grid)

    def _run_at(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, grid=grid, warmup=False, **kwargs)

    def _launch(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        # This is the whole cost of a look-up.
        look = (
            (*map(type, args), *kwargs, *map(type, kwargs.values()))
            if kwargs
            else tuple(map(type, args))
        )
        read = self._readers.get(look)
        if read is not None:
            try:
                found = self._fast.get(read(args, kwargs))
            except Exception:  # a value that cannot be hashed, say: `run` looks closer
                found = None
            if found is not None and (not found.is_only or self._is_only(found.config)):
                self.best_config = found.config
                if self._is_direct:
                    return self.fn[grid](*args, *found.positional, **kwargs, **found.keywords)
                return self.fn.run(*args, grid=grid, warmup=False, **kwargs, **found.keywords)
        return self.run(*args, grid=grid, warmup=False, **kwargs)

    def _is_only(self, config: Config) -> bool:
        return len(self.configs) == 1 and self.configs[0] is config

    @property
    def cache(self) -> dict[tuple[Any, ...], Config]:
        """The best configuration for each key. A program may change it."""
        return self._memory

    @cache.setter
    def cache(self, value: dict[tuple[Any, ...], Config]) -> None:
        self._fast.clear()
        if type(value) is dict:
            self._memory = Memory(self._fast.clear)
            self._memory.update(value)
        else:
            self._memory = value  # a program's own kind of dictionary

    def run(self, *args: Any, grid: Any = None, warmup: bool = False, **kwargs: Any) -> Any:
        """Launches the kernel over a grid with the best configuration."""
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        given = {"grid": grid, "warmup": False, **kwargs}
        if len(self.configs) > 1:
            key = self._keys.read(args, kwargs)
            config = self._config_of(key, lambda: self._tune(key, args, given))
        else:
            key, config = None, self.configs[0]
        self._check_conflicts(config, args, kwargs)
        self.best_config = config
        keywords = config.all_kwargs()
        if config.pre_hook is not None:
            config.pre_hook({**self._named(args), **given, **keywords})
        elif type(self._memory) is Memory:  # it says when it changes
            self._remember(key, config, args, kwargs)
        return self.fn.run(*args, **given, **keywords)

    def _config_of(self, key: tuple[Any, ...], find: Callable[[], Config]) -> Config:
        """The best configuration for a key: the known one, or what ``find`` gives."""
        config = self.cache.get(key)
        if config is None:
            with self._lock:
                config = self.cache.get(key)
                if config is None:
                    config = find()
        return config

    @property
    def added_names(self) -> set[str]:
        """The parameters that configurations give."""
        return {name for config in self.configs for name in config.kwargs}

    def added(
        self, named: Mapping[str, Any], grid: Any, arrays: Callable[[], dict[str, Any]] | None
    ) -> dict[str, Any]:
        """What a launch with these arguments by name has besides them: the keywords of the best configuration that is known.

        If none is known, it is searched for with the arguments that ``arrays()`` makes, which launches may change. Without
        ``arrays`` it is the first one that pruning leaves. The configuration's hook is called with ``named``.
        """

        def find() -> Config:
            values = named if arrays is None else arrays()
            # As a launch gives them: functions for pruning look into positional arguments and keywords.
            args = [
                values[name] for name in itertools.takewhile(values.__contains__, self.arg_names)
            ]
            given = {"grid": grid, "warmup": False}
            given |= {n: v for n, v in values.items() if n not in self.arg_names[: len(args)]}
            if arrays is not None:
                return self._tune(key, args, given)
            before, self.nargs = self.nargs, self._named(args)
            try:
                return self.prune_configs(given)[0]
            finally:
                self.nargs = before

        config = self.configs[0]
        if len(self.configs) > 1:
            key = self._keys.read((), named)
            config = self._config_of(key, find)
        self._check_conflicts(config, (), named)
        self.best_config = config
        keywords = config.all_kwargs()
        if config.pre_hook is not None:
            config.pre_hook({**named, "grid": grid, "warmup": False, **keywords})
        return keywords

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> list[Any]:
        """Compiles all configurations that pruning leaves for these arguments, without a launch."""
        given = {"grid": grid, "warmup": True, **kwargs}
        with self._lock:
            before, self.nargs = self.nargs, self._named(args)
            try:
                configs = self.prune_configs(given)
                return [self.fn.run(*args, **given, **c.all_kwargs()) for c in configs]
            finally:
                self.nargs = before

    def _named(self, args: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args, strict=False))

    def _check_conflicts(
        self, config: Config, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        keywords = config.all_kwargs()
        twice = [n for n in keywords if n in kwargs or n in self.arg_names[: len(args)]]
        if twice:
            raise LaunchValueError(
                f"{self.__name__}: {', '.join(twice)} is given by the caller and by autotune's configuration "
                f"({config}): leave it out of one of them"
            )

    def _remember(
        self,
        key: tuple[Any, ...] | None,
        config: Config,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Lets later launches that look like this one find the configuration at once."""
        if self._has_key is not (key is not None):
            self._has_key = key is not None
            self._readers.clear()
            self._fast.clear()
        look = look_of(args, kwargs)
        keys = self.keys if self._has_key else []
        read = self._readers.get(look) or reader_of(
            next(self._numbers), self.arg_names, keys, args, kwargs
        )
        if read is None:
            return
        keywords = config.all_kwargs()
        following: Sequence[str] = ()
        if self._is_direct:
            following = self.arg_names[len(args) :]
            if self._is_plain and keywords.get("num_ctas") == 1:
                del keywords["num_ctas"]  # what every launch has
        try:
            self._fast[read(args, kwargs)] = Found(config, keywords, following, key is None)
        except TypeError:  # a dtype that cannot be hashed
            return
        self._readers[look] = read

    # --- Hooks --------------------------------------------------------------------------------------

    def _prepare(self, kwargs: Mapping[str, Any], reset_only: bool = False) -> None:
        """The hook before each launch of a search."""
        for name in self.reset_to_zero:
            if kwargs.get(name) is not None:
                arrays.set_to_zero(name, kwargs[name])
        if not reset_only:
            self.restore_copies = {
                name: arrays.copy_of(name, kwargs[name])
                for name in self.restore_value
                if kwargs.get(name) is not None
            }

    def _restore(self, kwargs: Mapping[str, Any], exception: Exception | None) -> None:
        """The hook after each launch of a search."""
        for name, copy in self.restore_copies.items():
            arrays.restore(kwargs[name], copy)
        self.restore_copies = {}

    # --- The search ---------------------------------------------------------------------------------

    def prune_configs(self, kwargs: dict[str, Any]) -> list[Config]:
        """The configurations to measure for a launch, of which ``nargs`` has the positional arguments."""
        nargs = self.nargs or {}
        configs = self.configs
        if self.early_config_prune is not None:
            configs = self.early_config_prune(configs, nargs, **kwargs)
            if not configs:
                raise AutotunerError(
                    "No valid autotuner configs after pruning. `early_config_prune` should return at least one config."
                )
            configs = read_configs(self.__name__, configs, None)
        if self.perf_model is not None:
            top_k = self.configs_top_k
            if isinstance(top_k, float):
                top_k = max(1, int(len(configs) * top_k))
            if len(configs) > top_k:
                expected = [
                    expected_time(self.perf_model(**nargs, **kwargs, **config.all_kwargs()))
                    for config in configs
                ]
                order = sorted(range(len(configs)), key=expected.__getitem__)
                configs = [configs[i] for i in order[:top_k]]
        if self._constraints:
            arguments = {**nargs, **kwargs}
            configs = [
                config
                for config in configs
                if all(c({**arguments, **config.all_kwargs()}) for c in self._constraints)
            ]
            if not configs:
                raise AutotunerError(
                    f"{self.__name__}: the constraints exclude every configuration of autotune"
                )
        return configs

    def _tune(self, key: tuple[Any, ...], args: Sequence[Any], given: dict[str, Any]) -> Config:
        """Finds the best configuration for a key: in a file, or by a search."""
        before, self.nargs = self.nargs, self._named(args)
        try:
            configs = self.prune_configs(given)
            for config in configs:
                self._check_conflicts(config, args, given)
            if len(configs) == 1:
                self.cache[key] = configs[0]
                return configs[0]
            device = device_of({**self.nargs, **given}.values())
            model = self._model_on(device)
            label = label_of(device)
            labels = [label]
            on_gpu = measure.is_gpu(device)
            chip = chip_for(self._chip, device if on_gpu else None)
            if chip is not None:
                labels.append(f"model of {full_name(chip)}")
            if model is not None and not on_gpu:
                label = labels[-1]
                labels.reverse()
            shown = shown_key(key)
            found = [
                self._shipped[name, shown] for name in labels if (name, shown) in self._shipped
            ]
            tuning = found[0] if found else None
            if tuning is None:
                tuning = self._search(key, args, given, configs, device, label, model)
            else:
                tuning = dataclasses.replace(tuning, key=key)
                self._keep(tuning, configs)
            if knobs.autotuning.listener is not None:
                found = tuning.source != "search"
                knobs.autotuning.listener(
                    fn=self._kernel,
                    key=key,
                    best_config=self.cache[key],
                    configs_timings=self.configs_timings,
                    duration=None if found else self.bench_time,
                    cache_hit=found,
                )
            return self.cache[key]
        finally:
            self.nargs = before

    def _keep(self, tuning: Tuning, configs: Sequence[Config]) -> None:
        """Takes results that were found earlier."""
        # The program's own object has its hook.
        own = {repr(config): config for config in configs}
        best = own.get(repr(tuning.best), tuning.best)
        self.cache[tuning.key] = best
        self.results.add(tuning)
        self.configs_timings = {
            own.get(repr(row.config), row.config): [row.value, row.low, row.high]
            for row in tuning.rows
            if not row.left_out
        }

    def _model_on(self, device: Any) -> Model | None:
        """The model that ranks configurations where there is no GPU, and says which ones a GPU measures; None if all are measured."""
        on_gpu = measure.is_gpu(device)
        if self._do_bench is not None and not on_gpu:
            return None
        if on_gpu and (self._measures_all() or self.perf_model is not None):
            return None
        chip = chip_for(self._chip, device if on_gpu else None)
        return None if chip is None else Model(chip)

    def _measures_all(self) -> bool:
        return self._measure_all or knobs.autotuning.measure_all

    def _search(
        self,
        key: tuple[Any, ...],
        args: Sequence[Any],
        given: dict[str, Any],
        configs: Sequence[Config],
        device: Any,
        label: str,
        model: Model | None,
    ) -> Tuning:
        measurement = self._new_measurement(device, model)
        limit = _limit_of_environment()
        prunes = model is not None and measurement.unit != "model"
        name = ""
        if self.cache_results and not any(config.pre_hook for config in configs):
            name = store.name_of(
                label,
                target_spec(device.name),
                measurement.unit,
                self._digest(),
                shown_key(key),
                repr((self._plan, limit, described(model.chip) if model else "", prunes)),
                *map(str, configs),
            )
            kept = store.load(name, self.__name__, self.arg_names, key)
            if kept is not None:
                if repr(kept.best) in map(repr, configs):
                    self._keep(kept, configs)
                    return kept
                store.warn_damaged(f"{name} has {kept.best} as the best, which is none of them")
        start = time.perf_counter()
        rows: list[Row] = []
        timings: dict[Config, Any] = {}

        def bench(config: Config) -> float:
            self._row = None
            timing = timings[config] = self._bench(*args, config=config, **given)
            row = self._row or Row(config, *figures_of(timing))  # a subclass may measure itself
            rows.append(row)
            return row.value

        before, self._measurement = self._measurement, measurement
        how = self._how(measurement, model, device)
        searches.depth += 1
        try:
            ranking = None
            if prunes and model is not None:
                ranking = self._ranking(model, device, args, given, configs, limit)
                if ranking.problem:
                    how = f"all that could be measured, since {ranking.problem}"
            if ranking is not None and not ranking.problem:
                left_out = self._measure_first(ranking, bench, rows, start)
                how = (
                    f"measured {len(rows)} of {len(rows) + len(left_out)}, those that the model for "
                    f"{described(ranking.model.chip)} puts first"
                )
                rows += left_out
            else:
                what = described(model.chip) if model and not prunes else ""
                title = f"{self.__name__}: model for {what}" if what else self.__name__
                with Progress(title, self._plan.count(configs, limit)) as progress:
                    for _ in self._plan.run(configs, bench, limit):
                        progress.advance()
                how = how.replace("all ", f"measured all {len(rows)} ", 1).rstrip()
        finally:
            searches.depth -= 1
            self._measurement = before
        self.bench_time = time.perf_counter() - start
        if measurement.errors and len(measurement.errors) == len(rows):
            raise self._failure(measurement.errors, rows)
        # A refused configuration has three figures, and the given do_bench may return one.
        best = builtins.min(timings, key=lambda config: ordered(timings[config]))
        self.cache[key] = best
        self.configs_timings = timings
        tuning = Tuning(key, best, tuple(rows), measurement.unit, label, self.bench_time, how=how)
        self.results.add(tuning)
        self.pre_hook({**(self.nargs or {}), **given, **best.all_kwargs()}, reset_only=True)
        if name:
            store.store(name, self.__name__, tuning)
        if knobs.autotuning.print:
            print(
                f"Triton autotuning of {self.__name__} with key {key}: {self.bench_time:.2f} s, "
                f"{how}, best config: {best}"
            )
        return tuning

    def _new_measurement(self, device: Any, model: Model | None) -> Measurement:
        return Measurement(
            device, self._do_bench, self.num_warmups or 25, self.num_reps or 100, model
        )

    def _how(self, measurement: Measurement, model: Model | None, device: Any) -> str:
        """What a search compares, in words; "all" becomes the number of measurements."""
        if measurement.unit == "model" and model is not None:
            return f"ranked by the model for {described(model.chip)}"
        by = " by do_bench" if measurement.unit == "benchmark" else ""
        if not measure.is_gpu(device):
            return f"all{by} "
        if self._measures_all():
            return f"all{by}, as measure_all says"
        if self.perf_model is not None:
            return f"all{by} that the given perf_model leaves"
        return f"all{by}, since the model does not know the chip {device.properties().chip!r}"

    def _ranking(
        self,
        model: Model,
        device: Any,
        args: Sequence[Any],
        given: dict[str, Any],
        configs: Sequence[Config],
        limit: int | None,
    ) -> Ranking:
        """What the model says of the configurations: launches on copies, on the host device."""
        ranking = Ranking(model)
        try:
            device.wait_for([*args, *given.values()])
            copies = ArrayCopies([*args, *given.values()])
            own_args = [copies.of(value) for value in args]
            own = {name: copies.of(value) for name, value in given.items()}
        except Exception as error:  # an array that the host cannot have
            ranking.problem = (
                f"the arguments cannot be copied for the model ({type(error).__name__}: {error})"
            )
            return ranking

        def estimate(config: Config) -> float:
            if knobs.autotuning.print:
                print(f"Triton autotuning of {self.__name__}: model for config {config}")
            current = {**own, **config.all_kwargs()}
            named = {**self._named(own_args), **current}

            def prepare() -> None:
                if config.pre_hook is not None:
                    config.pre_hook(named)
                for name in self.reset_to_zero:
                    if named.get(name) is not None:
                        arrays.set_to_zero(name, named[name])

            with on_device("host"):
                return ranking.add(config, prepare, self._launcher(own_args, current), named)

        title = f"{self.__name__}: model for {described(model.chip)}"
        with Progress(title, self._plan.count(configs, limit)) as progress:
            for _ in self._plan.run(configs, estimate, limit, share=0.5):
                progress.advance()
        return ranking

    def _measure_first(
        self,
        ranking: Ranking,
        bench: Callable[[Config], float],
        rows: list[Row],
        start: float,
    ) -> list[Row]:
        """Measures what the model puts first, and more if none of that runs; returns the rows of what is left out."""
        seconds = self._plan.seconds
        left_out: list[Row] = []
        with Progress(f"{self.__name__}: measuring", ranking.first) as progress:
            for place, ranked in enumerate(ranking.ordered()):
                runs = any(row.ok for row in rows)
                late = seconds is not None and time.perf_counter() - start >= seconds
                if runs and (place >= ranking.first or late):
                    left_out.append(ranking.row_left_out(place, late))
                    continue
                bench(ranked.config)
                rows[-1] = dataclasses.replace(
                    rows[-1], estimate=ranked.estimate, counted=ranked.counted
                )
                progress.advance()
        return left_out

    def _launcher(self, args: Sequence[Any], current: Mapping[str, Any]) -> Callable[..., Any]:
        """Launches over the grid that ``turn`` makes of the launch's, or compiles only."""

        def launch(warmup: bool, turn: Callable[[Any], Any] | None = None) -> Any:
            if warmup and not self._may_compile:
                return None
            grid = current.get("grid")
            if turn is not None:
                chosen = functools.partial(_turned, grid, turn)
                return self.fn.run(*args, **{**current, "warmup": warmup, "grid": chosen})
            return self.fn.run(*args, **{**current, "warmup": warmup})

        return launch

    def _bench(self, *args: Any, config: Config, **given: Any) -> Any:
        """The timing of one configuration: the median and two percentiles, or what ``do_bench`` returns."""
        measurement = self._measurement
        if measurement is None:  # a subclass measures by itself
            device = device_of([*args, *given.values()])
            measurement = self._new_measurement(device, self._model_on(device))
        if knobs.autotuning.print:
            print(f"Triton autotuning of {self.__name__}: config {config}")
        current = {**given, **config.all_kwargs()}
        named = {**self._named(args), **current}

        def hooked(call: Callable[[], Any]) -> Any:
            if config.pre_hook is not None:
                config.pre_hook(named)
            self.pre_hook(named)
            try:
                result = call()
            except Exception as error:
                try:
                    self.post_hook(named, exception=error)
                finally:
                    raise error
            except BaseException:  # an interrupt: no launch follows that would need the hook
                self._restore(named, None)
                raise
            self.post_hook(named, exception=None)
            return result

        try:
            launch = self._launcher(args, current)
            row, timing = measurement.measure(config, hooked, launch, named)
        except LaunchTypeError as error:
            unknown = [name for name in config.kwargs if name not in self.arg_names]
            if not unknown:
                raise
            raise LaunchTypeError(f"{error} (autotune's configuration is {config})") from error
        if row.reason and knobs.autotuning.print:
            print(f"Triton autotuning of {self.__name__}: refused, {row.reason}")
        self._row = row
        return timing

    def _failure(self, errors: Sequence[Exception], rows: Sequence[Any]) -> Exception:
        """The error of a search in which every configuration was refused."""
        first = errors[0]
        if all(type(error) is type(first) and str(error) == str(first) for error in errors):
            return first  # it has nothing to do with the configurations
        lines = [f"  {row.config}\n    {row.reason}".replace("\n", "\n    ") for row in rows]
        failure = AutotunerError(
            f"{self.__name__}: none of the {len(rows)} configurations can be compiled and launched:\n"
            + "\n".join(lines)
        )
        failure.__cause__ = first
        return failure

    def _digest(self) -> str:
        """What the results depend on besides the configurations: the kernel, and the functions around it."""
        functions, fn = [], self.fn
        while fn is not self._kernel:
            functions.append(getattr(fn, "values", None))
            fn = fn.fn
        hooks = (self._constraints, self.early_config_prune, self.perf_model)
        return digest_of(self._kernel, *functions, *hooks)


def _turned(grid: Any, turn: Callable[[Any], Any], meta: dict[str, Any]) -> Any:
    return turn(grid(meta) if callable(grid) else grid)


def _is_known(fn: Any) -> bool:
    """Whether only the classes of this package are around a kernel."""
    while type(fn) is Heuristics:
        fn = fn.fn
    return type(fn) is JITFunction


def _limit_of_environment() -> int | None:
    """TRITON_METAL_AUTOTUNE_BUDGET: the most configurations that any search of this process tries."""
    text = os.environ.get("TRITON_METAL_AUTOTUNE_BUDGET", "")
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise LaunchValueError(
            f"TRITON_METAL_AUTOTUNE_BUDGET must be a number of configurations, 1 or more, not {text!r}"
        )
    return int(text)
