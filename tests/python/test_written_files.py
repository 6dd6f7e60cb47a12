"""Files that a user names: pages, profiles and results of searches are written in one step, and take nothing else away."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
import triton_metal as triton
from triton_metal import files
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.tools.written import write_files


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("before")
    link.symlink_to(target.name)
    files.write(link, b"after")
    assert (link.is_symlink(), target.read_text()) == (True, "after")
    target.unlink()
    files.write(link, b"again")
    assert (link.is_symlink(), target.read_text()) == (True, "again")


def test_what_other_processes_read_is_replaced_whatever_it_was(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    files.replace(pipe, b"entry")
    assert pipe.read_bytes() == b"entry"


def test_pipes_and_devices_are_written_to_and_stay(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with triton.profile() as p:
        pass
    p.save(pipe)
    reader.join(20)
    assert found[0].startswith(b"{")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    p.save(link)
    assert stat.S_ISCHR(link.stat().st_mode)
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["null", "pipe"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("folder", r"\[profile\] '.*folder' cannot be written: Is a directory"),
        ("none/p.json", r"\[profile\] '.*none/p\.json' cannot be written: No such file"),
        (".", r"\[profile\] '.*' cannot be written: Is a directory"),
    ],
)
def test_what_cannot_be_written_is_named_as_the_user_named_it(
    tmp_path: Path, path: str, message: str
) -> None:
    (tmp_path / "folder").mkdir()
    with triton.profile() as p:
        pass
    with pytest.raises(LaunchValueError, match=message):
        p.save(tmp_path / path)
    assert os.listdir(tmp_path) == ["folder"]


def test_results_of_searches_go_to_files_that_can_be_written(tmp_path: Path) -> None:
    @triton.autotune([triton.Config({})], key=[])
    @triton.jit
    def kernel(x):
        pass

    for path, error, message in (
        (tmp_path, LaunchValueError, r"\[export\] '.*' cannot be written: Is a directory"),
        (tmp_path / "none" / "x", LaunchValueError, "No such file"),
        (None, LaunchTypeError, r"\[export\] path must be the name of a file"),
        ("", LaunchValueError, r"\[export\] path is empty"),
    ):
        with pytest.raises(error, match=message):
            kernel.results.export(path)
    assert os.listdir(tmp_path) == []


def test_several_files_are_written_all_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("before")
    second.mkdir()
    with pytest.raises(IsADirectoryError, match="second"):
        files.replace_all({first: b"after", second: b"after"})
    assert first.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]
    second.rmdir()
    files.replace_all({first: b"after", second: b"too"})
    assert (first.read_text(), second.read_text()) == ("after", "too")


def test_results_of_searches_are_the_name_of_a_file() -> None:
    with pytest.raises(LaunchTypeError, match="results must be the name of a file, not 3"):
        triton.autotune([triton.Config({})], key=[], results=3)(triton.jit(lambda x: None))


def test_what_commands_write_leaves_links(tmp_path: Path) -> None:
    link, target, other = (tmp_path / name for name in ("link.h", "target.h", "other.h"))
    link.symlink_to(target.name)
    write_files({link: "first", other: "second"})
    assert (link.is_symlink(), target.read_text(), other.read_text()) == (True, "first", "second")
