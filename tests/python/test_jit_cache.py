"""The cache on disk: found again, never trusted, safe under many processes."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import triton_metal as triton
from triton_metal import cache, launcher

from process_support import ROOT, entries, fresh_kernel, run_program

# Every test has a cache of its own.
pytestmark = pytest.mark.usefixtures("cache_directory")

SOURCE = """
import numpy as np
import triton_metal as triton
import triton_metal.language as tl

FACTOR = tl.constexpr({factor})

@triton.jit
def helper(v):
    return v * {inner}

@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, helper(tl.load(x + offs)) * FACTOR)

x = np.ones(16, np.float32)
kernel[(1,)](x, BLOCK=16)
print(x[0])
"""


def run_once(kernel):
    x = np.zeros(32, np.float32)
    kernel[(1,)](x, BLOCK=32)
    assert (x == 1).all()


@pytest.fixture
def lowerings(monkeypatch):
    """Counts how often the compiler runs."""
    calls = []
    original = launcher.compile_module

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(launcher, "compile_module", counted)
    return calls


def test_found_again(cache_directory, lowerings):
    run_once(fresh_kernel())
    assert len(entries(cache_directory)) == 1
    run_once(fresh_kernel())
    assert len(lowerings) == 1


def test_options_and_types_have_their_own(cache_directory):
    kernel = fresh_kernel()
    run_once(kernel)
    x = np.zeros(32, np.float32)
    kernel[(1,)](x, BLOCK=32, num_warps=2)
    kernel[(1,)](x, BLOCK=16)
    kernel[(1,)](x.astype(np.float16), BLOCK=32)
    assert len(entries(cache_directory)) == 4


def test_targets_have_their_own(cache_directory, lowerings):
    kernel = fresh_kernel()
    run_once(kernel)
    try:
        triton.set_kernel_config(shared_memory=16384)
        run_once(kernel)
        assert len(lowerings) == len(entries(cache_directory)) == 2
        triton.set_kernel_config(shared_memory=None)
        # Found again: in the process by its own number, on disk by what it was compiled for.
        run_once(kernel)
        assert len(lowerings) == len(entries(cache_directory)) == 2
    finally:
        triton.set_kernel_config(shared_memory=None)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"null",
        b'{"key": "x"}',
        b"\xff\xfe",
    ],
)
def test_damaged_entries_are_rebuilt(cache_directory, lowerings, damage):
    run_once(fresh_kernel())
    (entry,) = entries(cache_directory)
    good = entry.read_bytes()
    entry.write_bytes(damage)
    run_once(fresh_kernel())
    assert len(lowerings) == 2
    assert json.loads(entry.read_bytes()) == json.loads(good)


def test_changed_text_is_not_trusted(cache_directory, lowerings):
    run_once(fresh_kernel())
    (entry,) = entries(cache_directory)
    fields = json.loads(entry.read_text())
    fields["metal"] = fields["metal"].replace("+", "-")
    entry.write_text(json.dumps(fields))
    run_once(fresh_kernel())
    assert len(lowerings) == 2


def test_entry_of_another_key_is_not_trusted(cache_directory, lowerings):
    run_once(fresh_kernel())
    (entry,) = entries(cache_directory)
    fields = json.loads(entry.read_text())
    fields["key"] = "0" * 64
    entry.write_text(json.dumps(fields))
    run_once(fresh_kernel())
    assert len(lowerings) == 2


def test_no_temporary_files_stay(cache_directory):
    run_once(fresh_kernel())
    assert [path.name for path in cache_directory.iterdir() if path.suffix == ".tmp"] == []


def run_script(path, cache_directory):
    result = run_program(path, TRITON_METAL_CACHE_DIR=cache_directory)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()[-1]


def test_every_dependency_is_in_the_key(tmp_path, cache_directory):
    script = tmp_path / "script.py"
    for factor, inner, expected in [(2, 3, "6.0"), (2, 5, "10.0"), (7, 5, "35.0"), (2, 3, "6.0")]:
        script.write_text(SOURCE.format(factor=factor, inner=inner))
        assert run_script(script, cache_directory) == expected
    assert len(entries(cache_directory)) == 3


def test_stressed_kernels_have_their_own(tmp_path, cache_directory):
    """A process that stresses the compiler takes nothing from the others, and leaves them nothing."""
    script = tmp_path / "script.py"
    script.write_text(SOURCE.format(factor=2, inner=3))
    sliced = {"TRITON_METAL_STRESS": "slices"}
    for count, stress in ((1, {}), (2, {"TRITON_METAL_STRESS": "1"}), (3, sliced), (3, {})):
        done = run_program(script, TRITON_METAL_CACHE_DIR=cache_directory, **stress)
        assert done.stdout.split()[-1] == "6.0", done.stderr
        assert len(entries(cache_directory)) == count


def test_many_processes(tmp_path, cache_directory):
    script = tmp_path / "script.py"
    script.write_text(SOURCE.format(factor=2, inner=3))
    environment = {
        "PYTHONPATH": str(ROOT / "python"),
        "TRITON_METAL_CACHE_DIR": str(cache_directory),
        "PATH": "/usr/bin:/bin",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    outputs = [process.communicate()[0].split()[-1] for process in processes]
    assert outputs == ["6.0"] * 4
    assert len(entries(cache_directory)) == 1


def test_key_depends_on_the_build(monkeypatch):
    before = cache.key_of("a", "b")
    assert before == cache.key_of("a", "b")
    assert before != cache.key_of("ab", "")
    monkeypatch.setattr(cache, "build_id", lambda: "another build")
    assert before != cache.key_of("a", "b")


def test_default_directory_is_the_users(monkeypatch):
    monkeypatch.delenv("TRITON_METAL_CACHE_DIR")
    assert cache.cache_dir().name == "triton-metal"


def test_nothing_is_imported_that_is_not_used():
    code = (
        "import sys, triton_metal; "
        "print([m for m in ('numpy', 'torch', 'triton', 'mlx', 'ml_dtypes') if m in sys.modules])"
    )
    result = run_program("-c", code)
    assert result.stdout.strip() == "[]"
