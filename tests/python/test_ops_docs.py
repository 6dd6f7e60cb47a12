"""The examples in the docstrings of triton_metal.ops print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import triton_metal.ops as ops

MODULES = sorted(each.name for each in pkgutil.iter_modules(ops.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name: str) -> None:
    module = importlib.import_module(f"triton_metal.ops.{name}")
    assert doctest.testmod(module).failed == 0


def test_every_function_has_an_example() -> None:
    for name in ops.__all__:
        assert ">>> " in (getattr(ops, name).__doc__ or ""), name
