"""triton_metal.profile: what it records of launches and compilations, its table and its trace."""

from __future__ import annotations

import doctest
import json
import threading
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import profiling
from triton_metal.errors import LaunchTypeError, LaunchValueError


def make_kernel():
    """A kernel that no launch has compiled in this process."""

    @triton.jit
    def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        total = tl.load(x + i, i < n) + tl.load(y + i, i < n)
        tl.store(out + i, total, i < n)

    return add_kernel


def arrays(n: int) -> tuple[np.ndarray, ...]:
    return tuple(np.ones(n, np.float32) for _ in range(3))


@pytest.mark.own_route
def test_launches_have_their_grid_bytes_and_times() -> None:
    kernel, (x, y, out) = make_kernel(), arrays(1000)
    with triton.profile() as p:
        kernel[(4,)](x, y, out, 1000, BLOCK=256)
        kernel[(2, 1)](x, y[:500], out, 500, BLOCK=256)
    first, second = p.launches
    assert (first.kernel, first.device, first.grid) == ("add_kernel", "host", (4, 1, 1))
    assert (first.bytes_read, first.bytes_written) == (8000, 4000)
    assert (second.bytes_read, second.grid) == (6000, (2, 1, 1))
    assert first.first
    assert 0 <= first.begin < second.begin
    assert first.begin + first.seconds <= second.begin
    assert second.begin + second.seconds <= p.seconds
    assert first.seconds > 0
    assert first.device_seconds is None  # the host device compiled
    with triton.profile() as p:
        kernel[(4,)](x, y, out, 1000, BLOCK=256)
    [again] = p.launches
    assert again.device_seconds == again.seconds > 0
    assert first.thread == threading.get_ident()
    assert not p.dropped


@pytest.mark.own_route
def test_compilations_and_hits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(tmp_path))
    (x, y, out), profiles = arrays(64), []
    for _ in range(2):  # the second one finds the first one's kernel on the disk
        kernel = make_kernel()
        with triton.profile() as p:
            for _ in range(3):
                kernel[(1,)](x, y, out, 64, BLOCK=64)
        profiles.append(p)
    compiled, found = profiles
    assert [each.cached for each in compiled.compilations] == [False]
    assert [each.cached for each in found.compilations] == [True]
    assert (compiled.disk_hits, found.disk_hits) == (0, 1)
    assert compiled.memory_hits == found.memory_hits == 2
    (made,) = compiled.compilations
    assert made.kernel == "add_kernel"
    assert made.lowering > 0
    assert made.begin >= 0
    assert made.seconds == made.walking + made.lowering + made.storing
    assert made.begin + made.seconds <= compiled.launches[0].begin + 1e-3


@pytest.mark.own_route
def test_nested_profiles_have_what_happens_in_them() -> None:
    kernel, (x, y, out) = make_kernel(), arrays(64)

    def launch() -> None:
        kernel[(1,)](x, y, out, 64, BLOCK=64)

    with triton.profile() as outer:
        launch()
        with triton.profile() as inner:
            launch()
            launch()
        launch()
    launch()
    assert (len(outer.launches), len(inner.launches)) == (4, 2)
    assert len(outer.compilations) == 1
    assert not inner.compilations


@pytest.mark.own_route
def test_all_threads_are_recorded() -> None:
    kernel = make_kernel()

    def work() -> None:
        x, y, out = arrays(64)
        for _ in range(50):
            kernel[(1,)](x, y, out, 64, BLOCK=64)

    work()
    with triton.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(p.launches) == 200
    tracks = {event["tid"] for event in p.trace()["traceEvents"] if event["ph"] == "X"}
    assert tracks == {each.thread for each in p.launches}


@pytest.mark.own_route
def test_launches_beyond_the_limit_are_counted() -> None:
    kernel, (x, y, out) = make_kernel(), arrays(64)
    with triton.profile(max_launches=3) as p:
        for _ in range(5):
            kernel[(1,)](x, y, out, 64, BLOCK=64)
    assert (len(p.launches), p.dropped) == (3, 2)
    assert "2 launches beyond max_launches=3" in str(p)


@pytest.mark.own_route
def test_a_launch_that_fails_is_not_recorded() -> None:
    kernel, (x, y, out) = make_kernel(), arrays(64)
    out.setflags(write=False)
    with triton.profile() as p, pytest.raises(LaunchValueError, match="read-only"):
        kernel[(1,)](x, y, out, 64, BLOCK=64)
    assert not p.launches
    with triton.profile() as p:  # nor does an exception leave a profile open
        pass
    assert not p.launches


@pytest.mark.own_route
def test_mlx_arrays_and_calls() -> None:
    mx = pytest.importorskip("mlx.core")
    import triton_metal.mlx as tm

    kernel = make_kernel()
    x, y, out = (mx.ones(64) for _ in range(3))
    with triton.profile() as p:
        kernel[(1,)](x, y, out, 64, BLOCK=64)
        total = tm.call(kernel, x, y, n=64, BLOCK=64, grid=(1,), outputs={"out": x})
        mx.eval(out, total)
    in_place, call = [each for each in p.launches if each.device == "mlx"]
    assert (in_place.bytes_read, in_place.bytes_written) == (512, 256)
    assert (call.bytes_read, call.bytes_written) == (512, 256)
    assert call.device_seconds is None


@pytest.mark.own_route
def test_a_compiled_kernel_launched_by_itself() -> None:
    torch = pytest.importorskip("torch")
    kernel = make_kernel()
    x, y, out = (torch.ones(64) for _ in range(3))
    compiled = kernel.warmup(x, y, out, 64, BLOCK=64, grid=(1,))
    with triton.profile() as p:
        compiled[(1, 1, 1)](x, y, out, 64, 64)
    (launch,) = p.launches
    assert (launch.bytes_read, launch.bytes_written, launch.grid) == (512, 256, (1, 1, 1))


@pytest.mark.own_route
def test_the_table_and_the_trace(tmp_path: Path) -> None:
    kernel, (x, y, out) = make_kernel(), arrays(64)
    with triton.profile() as p:
        for _ in range(3):
            kernel[(1,)](x, y, out, 64, BLOCK=64)
    lines = str(p).splitlines()
    assert lines[0].split()[:3] == ["kernel", "device", "launches"]
    assert lines[1].split()[:3] == ["add_kernel", "host", "3"]
    assert lines[-1].startswith("3 launches in")
    path = tmp_path / "trace.json"
    p.save(path)
    events = json.loads(path.read_text())["traceEvents"]
    launches = [event for event in events if event.get("cat") == "launch"]
    assert [event["name"] for event in launches] == ["add_kernel"] * 3
    assert launches[0]["args"]["bytes_read"] == 512
    assert all(event["ph"] in "XM" and event["pid"] for event in events)
    for event in launches:
        assert event["ts"] >= 0
        assert event["dur"] > 0


def test_an_empty_profile() -> None:
    with triton.profile() as p:
        pass
    assert "0 launches" in str(p)
    assert [event["ph"] for event in p.trace()["traceEvents"]] == ["M"]


def test_bad_arguments(tmp_path: Path) -> None:
    with pytest.raises(LaunchValueError, match="max_launches must be at least 1 but is 0"):
        triton.profile(max_launches=0)
    with pytest.raises(LaunchTypeError, match=r"max_launches must be an integer but is 1\.5"):
        triton.profile(max_launches=1.5)
    with triton.profile() as p, pytest.raises(LaunchValueError, match="being made already"), p:
        pass
    missing = tmp_path / "missing" / "trace.json"
    with pytest.raises(
        LaunchValueError, match=r"\[profile\] .*trace.json' cannot be written: No such file"
    ):
        p.save(missing)
    assert not missing.parent.exists()
    for path, error, said in (
        (None, LaunchTypeError, r"path must be the name of a file such as 'trace.json' but is None"),
        (3, LaunchTypeError, "but is 3"),
        ("", LaunchValueError, r"path is empty"),
        (f"{tmp_path}/a\0", LaunchValueError, r"cannot be written: .*null"),
        (tmp_path / ("a" * 300), LaunchValueError, r"cannot be written: File name too long"),
        (tmp_path, LaunchValueError, r"cannot be written: Is a directory"),
    ):  # fmt: skip
        with pytest.raises(error, match=rf"\[profile\] .*{said}"):
            p.save(path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(LaunchValueError, match="this profile is not being made"):
        p.__exit__(None, None, None)


@pytest.mark.own_route
def test_the_docstring_is_true() -> None:
    results = doctest.testmod(profiling)
    assert results.failed == 0
    assert results.attempted > 4


@pytest.mark.own_route
def test_a_profile_has_what_has_happened_so_far_in_its_block(tmp_path: Path) -> None:
    kernel, (x, y, out) = make_kernel(), arrays(64)
    with triton.profile() as p:
        assert len(p.launches) == 0
        assert p.seconds > 0
        kernel[(1,)](x, y, out, 64, BLOCK=64)
        assert [launch.kernel for launch in p.launches] == ["add_kernel"]
        assert "1 launch in " in str(p)
        p.save(tmp_path / "trace.json")
        kernel[(1,)](x, y, out, 64, BLOCK=64)
        assert len(p.launches) == 2
    assert len(p.launches) == 2
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event.get("cat") == "launch" for event in events) == 1
