"""The examples in the docstrings of triton_metal.ops."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import triton_metal.ops as ops

MODULES = sorted(each.name for each in pkgutil.iter_modules(ops.__path__))


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings(module: str) -> None:
    found = importlib.import_module(f"{ops.__name__}.{module}")
    assert doctest.testmod(found).failed == 0


@pytest.mark.parametrize("name", ops.__all__)
def test_every_function_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(ops, name).__doc__ or "")
