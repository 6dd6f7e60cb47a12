"""The texts of docs/metal-language.md: what the page says is read compiles, and the rest is refused by its sentence."""

import re

import pytest

from kernel_support import ROOT
from metal_run import invoke

PAGE = (ROOT / "docs" / "metal-language.md").read_text()
BLOCKS = re.findall(r"^```metal(?: refused: ([^\n]*))?\n(.*?)^```", PAGE, re.M | re.S)
READ = [text for sentence, text in BLOCKS if not sentence]
REFUSED = [(sentence, text) for sentence, text in BLOCKS if sentence]


@pytest.mark.parametrize("text", READ, ids=lambda text: re.search(r"kernel void (\w+)", text)[1])
def test_what_is_read_compiles(text):
    result = invoke(["--list", "-"], text)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(("sentence", "text"), REFUSED, ids=[s[:30] for s, _ in REFUSED])
def test_what_is_refused_names_the_construct(sentence, text):
    """The kernel is refused, and another kernel of the same library runs."""
    other = "\nkernel void other(device int *done) { done[0] = 1; }\n"
    refused = invoke(["--kernel=k", "--grid=1", "-"], text + other)
    assert refused.returncode != 0
    assert f"kernel 'k': {sentence}" in refused.stderr
    ran = invoke(["--kernel=other", "--grid=1", "--buffer=done=zeros:int:1", "-"], text + other)
    assert ran.returncode == 0, ran.stderr


def test_the_page_has_texts_of_both_kinds():
    assert len(READ) >= 5
    assert len(REFUSED) >= 5
