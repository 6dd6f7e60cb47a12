"""The examples in the docstrings of triton_metal.ops."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re

import pytest
import triton_metal.ops as ops

MODULES = sorted(each.name for each in pkgutil.iter_modules(ops.__path__))


@pytest.mark.own_check(reason="examples show the last digits")
@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings(module: str) -> None:
    found = importlib.import_module(f"{ops.__name__}.{module}")
    assert doctest.testmod(found).failed == 0


@pytest.mark.parametrize("name", ops.__all__)
def test_every_function_has_an_example(name: str) -> None:
    assert ">>> " in (getattr(ops, name).__doc__ or "")


@pytest.mark.parametrize("name", ops.__all__)
@pytest.mark.parametrize(
    "said", ["[Rr]aises", "[Dd]ifferentiable|[Gg]radient", r"\b[Ee]rrors?\b|[Ee]xact"]
)
def test_every_docstring_says_what_is_raised_differentiated_and_how_far_off(
    name: str, said: str
) -> None:
    text = (getattr(ops, name).__doc__ or "").split(">>>")[0]
    assert re.search(said, text)
