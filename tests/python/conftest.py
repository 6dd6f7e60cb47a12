"""Options of the whole suite: `--route=mps`, `--route=mlx` and `--route=mlx-in-place` run every launch the way of a framework on a Mac,
and `--route=mlx-graph` as an MLX graph: a test is skipped where its kernel is refused, and the run fails where over 5 % are.
`--portable=SEED` runs every launch on the host device with check="portable", and `--check=all` with all checks. `--share=1/3`
runs a third of the cases of each test function.

TRITON_METAL_TEST_DEVICE=cpu keeps MLX's arrays off a GPU, where there is one that is not to be tested.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import graph_refusals
import quirk_check
import shares

ROUTES = ("mps", "mlx", "mlx-in-place", "mlx-graph")
_launches: dict[str, int] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--dump-ttir",
        metavar="FOLDER",
        help="write every text of Triton IR that is compiled to a folder, for tests/fuzz/fuzz_ttir.py --corpus",
    )
    parser.addoption(
        "--route",
        choices=ROUTES,
        help="run launches through torch.mps.compile_shader's or mx.fast.metal_kernel's contract device, or as MLX graphs",
    )
    parser.addoption(
        "--share",
        type=shares.share,
        metavar="K/N",
        help="run the K-th of N shares of each test function's cases, at least one of them",
    )
    parser.addoption(
        "--no-quirks",
        action="store_true",
        help="do not scan the kernels' texts for what Apple's compilers and GPUs are known to get wrong",
    )
    parser.addoption(
        "--quirks-report",
        metavar="FILE",
        help="append what the scanner finds in the kernels' texts to a file, one JSON object a line",
    )
    parser.addoption(
        "--least-target",
        action="store_true",
        help="compile for the least Metal: no simdgroup matrices, SIMD-group reductions or bfloat, 16 KB",
    )
    parser.addoption(
        "--target",
        choices=("apple10",),
        help="compile for another target than the host device's own: apple10 multiplies matrices by tensor operations",
    )
    parser.addoption(
        "--portable",
        type=int,
        metavar="SEED",
        help='run launches on the host device with check="portable", and this seed',
    )
    parser.addoption(
        "--check",
        metavar="CHECKS",
        help="run launches on the host device with these checks, as of launch_options(check=...)",
    )


@pytest.fixture(autouse=True)
def _route(request: pytest.FixtureRequest) -> Iterator[None]:
    """Takes the launches of a test to the route that the command line names."""
    route = request.config.getoption("--route")
    if route is None or request.node.get_closest_marker("own_route"):
        yield
        return
    from triton_metal.testing import contract_device

    launches: dict[str, int] = {}
    with contract_device(route, launches=launches):
        yield
    for name, count in launches.items():
        _launches[name] = _launches.get(name, 0) + count
    if route == "mlx-graph":
        graph_refusals.count_test(launches)


@pytest.fixture
def as_graph(request: pytest.FixtureRequest) -> bool:
    """Whether the launches of the test are MLX graphs, whose operations choose the signs of zeros."""
    return request.config.getoption("--route") == "mlx-graph"


@pytest.fixture(params=["contract", "host"])
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """Both ways of `triton_metal.mlx.call`: mx.fast.metal_kernel's stand-in, and MLX without a GPU."""
    if request.param == "host":
        yield "host"
        return
    from triton_metal.testing import contract_device

    with contract_device("mlx"):
        yield "contract"


@pytest.fixture(autouse=True)
def _portable(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs the launches of a test portably."""
    seed = request.config.getoption("--portable")
    if seed is None or request.node.get_closest_marker("own_check"):
        yield
        return
    import triton_metal

    with triton_metal.launch_options(check="portable", seed=seed):
        yield


@pytest.fixture(autouse=True)
def _check(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks the launches of a test."""
    check = request.config.getoption("--check")
    if check is None or request.node.get_closest_marker("own_check"):
        yield
        return
    import triton_metal

    with triton_metal.launch_options(check=check):
        yield


@pytest.fixture(autouse=True)
def _least_target(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compiles the kernels of a test for what every target has, or for the target that is named."""
    least, named = (request.config.getoption(name) for name in ("--least-target", "--target"))
    if not (least or named) or request.node.get_closest_marker("own_target"):
        yield
        return
    from triton_metal.devices.target import APPLE10, Target

    from host_target import host_target

    features = ("float_atomics", "memory_orders")
    target = (
        Target("least", "3.2", dict.fromkeys(features, True), threadgroup_bytes=16384)
        if least
        else APPLE10
    )
    with host_target(target):
        yield


@pytest.fixture(autouse=True)
def _quirks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test whose kernels' texts have what Apple's compilers and GPUs are known to get wrong."""
    yield
    if not request.config.getoption("--no-quirks"):
        quirk_check.check(request.config.getoption("--quirks-report"), request.node.nodeid)


@pytest.fixture
def cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of the test's own, which is not made yet."""
    from triton_metal import cache

    path = tmp_path / "cache"
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(path))
    monkeypatch.setattr(cache, "_warned", False)
    return path


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--no-quirks"):
        quirk_check.install()
    if config.getoption("--dump-ttir"):
        from ttir_texts import dump_texts

        dump_texts(Path(config.getoption("--dump-ttir")))
    if os.environ.get("TRITON_METAL_TEST_DEVICE") == "cpu" and importlib.util.find_spec("mlx"):
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
    config.addinivalue_line(
        "markers", "own_route: the test chooses its route, whatever --route says"
    )
    config.addinivalue_line(
        "markers",
        "own_check(reason): the test chooses its check, or wants what the host device promises beyond Metal; "
        "--portable and --check leave it alone",
    )
    config.addinivalue_line(
        "markers",
        "not_as_graph(reason): the test wants what MLX's operations do not promise; --route=mlx-graph leaves it alone",
    )
    config.addinivalue_line(
        "markers",
        "own_target: the test needs its own target, whatever --least-target and --target say",
    )


# These give Metal texts to the device itself: no route launches them.
DEVICE_TESTS = (
    "test_metal_",
    "test_mlx_kernels",
    "test_mlx_runs_",
    "test_mlx_tables",
    "test_planted_defects",
    "test_tensor_operations",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = config.getoption("--share")
    if share is not None:
        kept = shares.in_share([item.nodeid.partition("[")[0] for item in items], *share)
        left = [item for item, keep in zip(items, kept, strict=True) if not keep]
        items[:] = [item for item, keep in zip(items, kept, strict=True) if keep]
        config.hook.pytest_deselected(items=left)
    for item in items:
        if item.path.name.startswith(DEVICE_TESTS):
            item.add_marker(pytest.mark.own_route)
            item.add_marker(pytest.mark.own_check("the test launches Metal texts itself"))
        mark = item.get_closest_marker("not_as_graph")
        if mark is not None and config.getoption("--route") == "mlx-graph":
            item.add_marker(pytest.mark.skip(reason=f"not as a graph: {mark.args[0]}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.getoption("--route") == "mlx-graph":
        graph_refusals.skip_refused(item, call, report)
    if any(item.config.getoption(name) is not None for name in ("--portable", "--check")):
        _skip_traced(item, call, report)
    return report


def _skip_traced(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Skips a test in which MLX traces a launch: there are no values to check then, and it says so."""
    from triton_metal.errors import DeviceError

    error = call.excinfo.value if call.excinfo is not None else None
    told = "launch_options() needs the arrays' values, and there are none while"
    if report.failed and isinstance(error, DeviceError) and told in str(error):
        graph_refusals.skip(item, report, str(error))


def pytest_sessionfinish(session: pytest.Session) -> None:
    # A worker of pytest-xdist hands its counts to the process that reports.
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["route_launches"] = dict(_launches)
        output["graph_tests"] = dict(graph_refusals.tests)
    elif graph_refusals.too_many() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    for name, count in output.get("route_launches", {}).items():
        _launches[name] = _launches.get(name, 0) + count
    graph_refusals.tests.update(output.get("graph_tests", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    route = config.getoption("--route")
    if route is not None:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(_launches.items()))
        terminalreporter.write_line(f"launches with --route={route}: {counts or 'none'}")
    if route == "mlx-graph":
        terminalreporter.write_line(graph_refusals.told())
