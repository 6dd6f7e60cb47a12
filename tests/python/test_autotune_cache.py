"""The results of searches on disk: what they depend on, and that nothing damages them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import CacheWarning, Config

pytestmark = pytest.mark.own_check
ROOT = Path(__file__).resolve().parents[2]
SCALE = tl.constexpr(2)


@triton.jit
def helper(x):
    return x * SCALE


@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, helper(tl.load(x_ptr + at, at < n)), at < n)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(tmp_path))
    return tmp_path


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.autotune.json"))


def search(
    n: int = 100, sizes: tuple[int, ...] = (32, 64), kernel: Any = scale_kernel, **options: Any
) -> Any:
    """Whether a new tuner, with an empty memory, has made a search."""
    options = {"cache_results": True, **options}
    configs = [Config({"BLOCK": size}) for size in sizes]
    tuned = triton.autotune(configs, ["n"], restore_value=["x_ptr"], **options)(kernel)
    x = np.ones(n, np.float32)
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
    assert (x == SCALE.value).all()
    [tuning] = tuned.results.values()
    assert tuned.best_config in tuned.configs
    return tuning.source


def test_a_search_is_kept_if_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search(cache_results=False) == "search"
    assert not files(folder)
    assert search() == "search"
    assert len(files(folder)) == 1
    assert search() == "cache"
    monkeypatch.setenv("TRITON_CACHE_AUTOTUNING", "1")
    assert search(cache_results=False) == "cache"


def test_what_a_search_depends_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert search() == "search"
    assert search(n=200) == "search"
    assert search(sizes=(32, 128)) == "search"
    assert search(budget=1) == "search"
    assert search(do_bench=lambda call, quantiles: call() and 1.0) == "search"
    assert search() == "cache"
    assert len(files(folder)) == 5


def test_a_function_or_a_value_that_the_kernel_uses_makes_another_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert search() == "search"
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(3))
    assert search() == "search"
    assert search() == "cache"

    @triton.jit
    def other(x):
        return x + 2

    monkeypatch.setitem(globals(), "helper", other)
    assert search() == "search"
    assert search() == "cache"


def test_digests_follow_functions_values_and_attributes() -> None:
    import types

    from triton_metal.tuning.digest import digest_of

    def make(limit: Any, module: Any, default: int = 1) -> Any:
        def inner(x, y=default):
            return [module.scale(i) for i in range(limit)] + [x, y]

        return inner

    def module(factor: int) -> Any:
        result = types.ModuleType("settings")
        result.factor = factor
        exec("def scale(x):\n    return x * factor", vars(result))
        return result

    base = digest_of(make(3, module(1)))
    assert digest_of(make(3, module(1))) == base
    assert digest_of(make(4, module(1))) != base
    assert digest_of(make(3, module(2))) != base
    assert digest_of(make(3, module(1), 2)) != base
    assert digest_of(make((3, [4, {"a": 5}]), None)) != digest_of(make((3, [4, {"a": 6}]), None))


def test_configurations_with_hooks_are_not_kept(folder: Path) -> None:
    configs = [Config({"BLOCK": size}, pre_hook=lambda arguments: None) for size in (32, 64)]
    tuned = triton.autotune(configs, ["n"], cache_results=True)(scale_kernel)
    tuned[(4,)](np.ones(100, np.float32), 100)
    assert not files(folder)


@pytest.mark.parametrize("text", ["", "{", '{"format": 1}', "[]", "\xff"])
def test_a_damaged_file_is_ignored_with_a_warning(folder: Path, text: str) -> None:
    assert search() == "search"
    [path] = files(folder)
    path.write_bytes(text.encode("latin-1"))
    with pytest.warns(CacheWarning, match="are ignored, and the search is made again"):
        assert search() == "search"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search() == "cache"


def test_a_file_of_another_key_is_ignored(folder: Path) -> None:
    assert search(n=100) == "search"
    [first] = files(folder)
    text = first.read_text()
    assert search(n=200) == "search"
    [second] = [path for path in files(folder) if path != first]
    second.write_text(text)
    with pytest.warns(CacheWarning, match="holds no results for the key"):
        assert search(n=200) == "search"


def test_a_best_configuration_that_is_none_of_them_is_ignored(folder: Path) -> None:
    assert search(sizes=(128, 256)) == "search"
    [file] = files(folder)
    file.write_text(file.read_text().replace("128", "64").replace("256", "64"))
    with pytest.warns(CacheWarning, match="BLOCK: 64, .* as the best, which is none of them"):
        assert search(sizes=(128, 256)) == "search"
    assert search(sizes=(128, 256)) == "cache"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_cannot_be_written_is_no_failure(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CacheWarning)
            assert search() == "search"
    finally:
        folder.chmod(0o700)


def test_a_file_in_the_place_of_the_folder_is_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "file"
    path.write_text("")
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        assert search() == "search"


PROGRAM = """
import sys
import numpy as np
import triton_metal as triton, triton_metal.language as tl

@triton.autotune([triton.Config({"BLOCK": b}) for b in (32, 64, 128, 256)], ["n"], cache_results=True)
@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 1.0, at < n)

for n in range(100, 108):
    x = np.zeros(n, np.float32)
    fill[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
    assert x.all()
print([tuning.best.kwargs["BLOCK"] for tuning in fill.results.values()])
print({tuning.source for tuning in fill.results.values()})
"""


def test_processes_share_the_results(folder: Path) -> None:
    path = folder / "program.py"
    path.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONWARNINGS": "error"}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(path)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    together = [start() for _ in range(3)]
    outputs = [process.communicate(timeout=120) for process in together]
    assert all(process.returncode == 0 for process in together), outputs
    bests = {out.splitlines()[0] for out, _ in outputs}
    assert len(bests) == 1
    later = start()
    out, errors = later.communicate(timeout=120)
    assert later.returncode == 0, errors
    assert out.splitlines() == [bests.pop(), "{'cache'}"]
    assert len(files(folder)) == 8
    assert not list(folder.glob(".*.tmp"))
