"""Whatever the cache directory is, a launch goes on; that nothing can be kept is told once."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
from triton_metal import files

from kernel_support import ON_STOCK
from process_support import fresh_kernel, run_program

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the interpreter compiles nothing"),
]


def launches(block=32):
    """Launches a new kernel; returns the messages of the warnings."""
    kernel = fresh_kernel()
    x = np.zeros(block, np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel[(1,)](x, BLOCK=block)
    assert (x == 1).all()
    return [str(w.message) for w in caught if issubclass(w.category, triton.CacheWarning)]


def told_once(cache_directory, capfd):
    (message,) = launches()
    assert f"the cache directory {cache_directory} cannot be written" in message
    assert "TRITON_METAL_CACHE_DIR" in message
    assert launches(block=64) == []
    assert "warning" not in capfd.readouterr().err


def test_a_path_that_is_a_file(cache_directory, capfd):
    cache_directory.write_text("no directory")
    told_once(cache_directory, capfd)
    assert cache_directory.read_text() == "no directory"


def test_a_path_below_a_file(cache_directory, monkeypatch, capfd):
    cache_directory.write_text("no directory")
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(cache_directory / "below"))
    told_once(cache_directory / "below", capfd)


def test_a_loop_of_links(cache_directory, capfd):
    cache_directory.symlink_to(cache_directory)
    told_once(cache_directory, capfd)


def test_a_link_to_nowhere(cache_directory, capfd):
    cache_directory.symlink_to(cache_directory.parent / "nowhere" / "deeper")
    told_once(cache_directory, capfd)


@pytest.mark.parametrize("name", ["x" * 300, "/proc/nothing/here", "/dev/null/cache"])
def test_a_path_that_cannot_be(cache_directory, monkeypatch, name, capfd):
    path = cache_directory.parent / name
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(path))
    told_once(path, capfd)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_ours(cache_directory, capfd):
    cache_directory.mkdir(mode=0o500)
    told_once(cache_directory, capfd)


def entry_path(cache_directory):
    launches()
    (entry,) = cache_directory.glob("*.json")
    return entry


def make_directory(path):
    path.mkdir()
    (path / "inside").write_text("x")


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)
        made.bind(path.name)


OBSTACLES = {
    "directory": make_directory,
    "pipe": os.mkfifo,
    "socket": make_socket,
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to(path.parent / "nowhere"),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "null": lambda path: path.symlink_to("/dev/null"),
    "deep": lambda path: path.write_text("[" * 100_000),
    "binary": lambda path: path.write_bytes(os.urandom(999)),
    "unreadable": lambda path: (path.write_text("{}"), path.chmod(0)),
    "list": lambda path: path.write_text("[]"),
    "number": lambda path: path.write_text("1"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_stands_where_an_entry_belongs(cache_directory, obstacle, monkeypatch):
    monkeypatch.chdir(cache_directory.parent)
    entry = entry_path(cache_directory)
    entry.unlink()
    OBSTACLES[obstacle](entry)
    messages = launches()
    # Only a directory cannot be replaced.
    assert len(messages) == (obstacle == "directory")
    assert launches() == []
    if obstacle != "directory":
        assert json.loads(entry.read_text())["key"] == entry.stem


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_an_entry_that_is_cut(cache_directory, share):
    entry = entry_path(cache_directory)
    good = entry.read_bytes()
    entry.write_bytes(good[: int(len(good) * share)])
    assert launches() == []
    assert entry.read_bytes() == good


def test_the_devices_folder_is_a_file(cache_directory):
    cache_directory.mkdir()
    (cache_directory / "device").write_text("no directory")
    assert len(launches()) == 1
    assert len(list(cache_directory.glob("*.json"))) == 1


SCRIPT = """
import sys, warnings
import numpy as np
import triton_metal as triton
import triton_metal.language as tl

@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, tl.load(x + offs) + 1)

for block in (16, 32):
    x = np.zeros(block, np.float32)
    kernel[(1,)](x, BLOCK=block)
    assert (x == 1).all()
"""


def run(tmp_path, before=None, **environment):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return run_program(script, cwd=tmp_path, before=before, **environment)


def test_a_disk_that_is_full(tmp_path):
    def limit():
        # Files stay empty, as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    cache_directory = tmp_path / "cache"
    result = run(tmp_path, limit, TRITON_METAL_CACHE_DIR=str(cache_directory))
    assert result.returncode == 0, result.stderr
    assert list(cache_directory.glob("*.json")) == list(cache_directory.glob(".*.tmp")) == []
    assert not [path for path in (cache_directory / "device").iterdir() if path.stat().st_size]


def test_without_a_home(tmp_path):
    result = run(tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.glob("xdg/triton-metal/*.json"))


def test_a_home_that_is_none(tmp_path):
    for home in ("", "relative", "/proc/nowhere"):
        result = run(tmp_path, HOME=home, TMPDIR=str(tmp_path))
        assert result.returncode == 0, result.stderr
        assert result.stderr.count("CacheWarning") <= 1
        # Nothing is left where the process happened to run.
        assert not (tmp_path / "relative").exists()
        assert not (tmp_path / "~").exists()


METAL_PROGRAM = """
import sys
if sys.argv[1]:
    import triton_metal
    triton_metal.knobs.cache.dir = sys.argv[1]
import numpy as np
import triton_metal_host as metal

device = metal.Device()
library = device.library("kernel void k(device int *o) { *o = 1; }")
out = np.zeros(1, np.int32)
device.pipeline(library.function("k"), checks="bounds")(out, threads=1)
print(out[0])
"""


@pytest.mark.parametrize("named", ["", "own"], ids=["alone", "with triton_metal"])
def test_metal_kernels_are_kept_where_triton_metal_keeps_its_own(
    tmp_path: Path, named: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(METAL_PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / named) if named else ""],
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TRITON_METAL_CACHE_DIR": str(tmp_path / "variable"),
        },
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    kept = tmp_path / (named or "variable") / "device"
    assert any(path.is_file() for path in kept.rglob("*"))


def test_the_name_of_the_directory_may_have_a_percent_sign(tmp_path):
    directory = tmp_path / "100% %41"
    program = tmp_path / "program.py"
    program.write_text(METAL_PROGRAM)
    done = run_program(program, "", TRITON_METAL_CACHE_DIR=directory)
    assert (done.stdout, done.stderr) == ("1\n", "")
    kept = {path.name.partition("-")[0] for path in (directory / "device").iterdir()}
    assert {"kernel", "library"} <= kept


def test_a_pipe_where_an_entry_of_the_device_belongs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(METAL_PROGRAM)
    environment = {"TRITON_METAL_CACHE_DIR": tmp_path / "cache"}
    assert run_program(program, "", **environment).stdout == "1\n"
    for path in list((tmp_path / "cache" / "device").iterdir()):
        path.unlink()
        os.mkfifo(path)
    assert run_program(program, "", **environment).stdout == "1\n"


def test_a_user_of_whom_no_home_is_known(tmp_path, monkeypatch):
    def find(*_, **__):
        raise RuntimeError("could not determine the home directory for '~/.cache'")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert files.user_folder(find) == tmp_path / f"triton-metal-{os.getuid()}"
    assert files.user_folder(lambda *_, **__: Path("~/.cache")).parent == tmp_path
    assert files.user_folder(lambda *_, **__: tmp_path / "own") == tmp_path / "own"
