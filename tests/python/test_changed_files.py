"""A kernel is compiled from the text of its file, which must still be the text that was imported."""

import importlib.util
import sys
from pathlib import Path

import pytest
from triton_metal.source import read_source

PLAIN = '''
import functools
import operator as op


def decorated(function):
    return function


class Holder:
    @staticmethod
    def inner(x, __scale=2):
        return x * __scale


@decorated
def kernel(x, y, N: int = 4):
    """What it does.

    On two lines.
    """
    total = x * N + op.add(y, 1)
    for i in range(N):
        if i not in (1, 2) and total < 10.5:
            total -= functools.reduce(op.mul, [i, -y]) // 3
    return (lambda z: z + total)(x) if x is not None else f"{total}"
'''


def changed(tmp_path: Path, old: str, new: str, name: str = "kernel") -> None:
    """Imports a file, replaces a part of its text, and reads the source of a function."""
    file = tmp_path / "program.py"
    file.write_text(PLAIN)
    spec = importlib.util.spec_from_file_location("changed_program", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["changed_program"] = module
    try:
        spec.loader.exec_module(module)
        assert PLAIN.count(old) == 1
        file.write_text(PLAIN.replace(old, new))
        function = module.Holder.inner if name == "inner" else getattr(module, name)
        assert read_source(function).node.name == name
    finally:
        del sys.modules["changed_program"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * N", "x + N"),
        ("total < 10.5", "total <= 10.5"),
        ("10.5", "10.25"),
        ("i not in", "i in"),
        ("-y", "+y"),
        ("-y", "~y"),
        ("total -=", "total +="),
        ("// 3", "/ 3"),
        ("(1, 2)", "(1, 3)"),
        ("op.mul", "op.add"),
        ("z + total", "z - total"),
        ("is not None", "is None"),
        ("y, N: int", "N, y: int"),
        ('f"{total}"', 'f"{total}!"'),
        ("def kernel", "def other"),
        ("op.add(y, 1)", "op.add(y, 1.0)"),
        ("op.add(y, 1)", "op.add(y, True)"),
    ],
)
def test_a_changed_function_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(ValueError, match="is not the source of kernel"):
        changed(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("op.add(y, 1)\n", "op.add(y, 1)  # a comment\n"),
        ("x * N + op", "x*N  +  op"),
        ("return function", "return  function"),
    ],
)
def test_what_does_not_change_the_function_is_taken(tmp_path: Path, old: str, new: str) -> None:
    changed(tmp_path, old, new)


def test_methods_and_their_private_names_are_read(tmp_path: Path) -> None:
    changed(tmp_path, "x * N", "x + N", name="inner")
    with pytest.raises(ValueError, match=r"is not the source of Holder\.inner"):
        changed(tmp_path, "x * __scale", "x / __scale", name="inner")
