"""A pytest plugin that runs Triton's own tests on the backend "metal", and tells apart what becomes of each.

With ``--own CHECKOUT`` they run under triton_metal's own front end (own_front_end.py).

A test is *right* if it passes after a kernel of it was launched, *refused* if triton_metal did not compile one of its
kernels, *wrong* if it fails after a launch, and *stock* (or *front*, under the own front end) if it fails before a
kernel reaches the backend. It is *foreign* if it asks for the text of another backend, or for a limit of one: what the kernel computes was not looked at.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import own_front_end
import pytest

_KEY = "metal"


@dataclass
class Observed:
    """What the backend was asked for in one test."""

    compiled: int = 0
    launched: int = 0
    refused: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    largest: int = 0


_observed = Observed()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, default=1, help="run every K-th test only")
    parser.addoption("--offset", type=int, default=0, help="the first test of the sample")
    parser.addoption("--results", help="the file for the results, one JSON object a line")
    parser.addoption("--limit", type=int, default=300, help="seconds for one test")
    parser.addoption(
        "--own", metavar="CHECKOUT", help="the own front end, with this checkout's helpers"
    )


def _take_share(worker: dict[str, Any]) -> None:
    """Gives a worker its part of the processors. The host device and PyTorch start a thread for each that they may use,
    and threads that wait for those of other workers would take the processors from all of them.
    """
    processors = sorted(os.sched_getaffinity(0))
    number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    first = number % len(processors)
    os.sched_setaffinity(0, processors[first::workers])


def pytest_configure(config: pytest.Config) -> None:
    if worker := getattr(config, "workerinput", None):
        _take_share(worker)
    own = config.getoption("--own")
    if own:
        own_front_end.install(Path(own))
    import torch
    import triton._internal_testing as internal

    config.addinivalue_line("filterwarnings", "ignore")
    # The folder whose conftest.py adds the option differs between forks; some add none.
    config.option.device = "cpu"
    setattr(config.option, "--device", "cpu")
    # Tests ask for the kind of GPU. This backend is no CPU backend, and its dots take what an A100's do.
    internal.is_cpu = lambda: False
    internal.__getattr__ = _question
    torch.cuda.get_device_capability = lambda *device: (8, 0)
    if own:
        own_front_end.observe(lambda: _observed)
    else:
        _observe()
    path = config.getoption("--results")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Results(path), "metal-results")


def _question(name: str) -> Any:
    """What a fork's tests ask of a GPU that stock Triton does not know: it is not here."""
    if name.startswith("is_"):
        return lambda *_: False
    raise AttributeError(f"module 'triton._internal_testing' has no attribute {name!r}")


def _observe() -> None:
    """Counts what reaches the backend."""
    import time

    from triton_metal.backends.metal import launch
    from triton_metal_backend import compiler

    make_metal = compiler.make_metal

    def observed_make_metal(*arguments: Any) -> str:
        _observed.compiled += 1
        start = time.perf_counter()
        try:
            metal = make_metal(*arguments)
        except Exception as error:
            cause = error.__cause__ or error
            _observed.refused.append(getattr(cause, "error_message", None) or str(cause))
            raise
        _observed.milliseconds.append((time.perf_counter() - start) * 1e3)
        _observed.largest = max(_observed.largest, len(metal))
        return metal

    launch_kernel = launch.MetalLauncher._launch

    def observed_launch(*arguments: Any) -> None:
        _observed.launched += 1
        try:
            launch_kernel(*arguments)
        except Exception as error:
            _observed.failed.append(str(error))
            raise

    compiler.make_metal = observed_make_metal
    launch.MetalLauncher._launch = observed_launch


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    every, first = config.getoption("--sample"), config.getoption("--offset")
    if every > 1:
        chosen = items[first % every :: every]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _observed
    _observed = Observed()

    def stop(*_: Any) -> None:
        raise TimeoutError(f"the test took more than {item.config.getoption('--limit')} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(item.config.getoption("--limit"))
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if call.when != "call" and report.outcome == "passed":
        return
    own = bool(item.config.getoption("--own"))
    if own and (found := own_front_end.loaded_foreign()):
        raise RuntimeError(f"modules of an installed Triton were imported: {', '.join(found)}")
    result = vars(_observed) | {"kind": _kind(report, call, own), "error": ""}
    if call.excinfo is not None and report.outcome == "failed":
        result["error"] = f"{call.excinfo.typename}: {call.excinfo.value}"[:600]
    report.user_properties.append((_KEY, result))


def _kind(report: pytest.TestReport, call: pytest.CallInfo[None], own: bool) -> str:
    if report.outcome == "skipped":
        return "skipped"
    reached = _observed.compiled or _observed.launched
    if report.outcome == "passed":
        return "right" if _observed.launched else "passed"
    if _observed.refused and (reached or own):
        return "refused"
    if not reached:
        return "front" if own else "stock"
    return "foreign" if _is_foreign(call.excinfo) else "wrong"


#: The stages of other backends, as keys of ``kernel.asm``.
_FOREIGN_STAGES = re.compile(r"'(ttgir|llir|ptx|cubin|sass|amdgcn|hsaco|asm|tttcir|so)'")


#: The reproducers that MLIR leaves of them.
_FOREIGN_REPRODUCERS = re.compile(r"make_(ttgir|llir|tttcir).*repro\.mlir")


def _is_foreign(error: pytest.ExceptionInfo[BaseException] | None) -> bool:
    if error is None:
        return False
    if isinstance(error.value, KeyError):
        return bool(_FOREIGN_STAGES.search(str(error.value)))
    text = str(error.value)
    if _FOREIGN_REPRODUCERS.search(text):
        return True
    # The text of the stage `ttir` is that of stock Triton's front end and passes; other versions print others.
    if not _observed.launched and ("error: CHECK" in text or "FileCheck" in text):
        return True
    return "Torch not compiled with CUDA" in text or (
        error.typename == "Failed" and "DID NOT RAISE" in text
    )


class _Results:
    """Writes what became of each test, in the process that gathers the reports."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "w", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = dict(report.user_properties).get(_KEY)
        if found is None and report.outcome == "failed":
            # The worker died.
            found = vars(Observed()) | {"kind": "crashed", "error": str(report.longrepr)[:600]}
        if found is not None:
            self.file.write(
                json.dumps({"test": report.nodeid, "seconds": report.duration} | found) + "\n"
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.outcome == "failed":
            lines = re.findall(r"^E\s+(.*)$", str(report.longrepr), re.MULTILINE)
            result = vars(Observed()) | {"kind": "uncollected", "error": lines[-1] if lines else ""}
            self.file.write(json.dumps({"test": report.nodeid, "seconds": 0} | result) + "\n")

    def pytest_unconfigure(self) -> None:
        self.file.close()


assert os.environ.get("TRITON_METAL") != "0", "TRITON_METAL=0 turns the backend off"
