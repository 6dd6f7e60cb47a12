"""A kernel's text does not depend on what its process has compiled before, in this thread or in another."""

from __future__ import annotations

import pathlib
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import triton_metal
from triton_metal import CompilationError

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = ROOT / "build" / "bin" / "triton-metal-compile"
TEXTS = sorted((ROOT / "tests" / "lit" / "tt" / "stock" / "3.9.0").glob("*.ttir"))
#: SIMD-groups and stages; None leaves them to the compiler.
OPTIONS = [(None, None), (1, 1), (4, None), (4, 2), (None, 2), (8, 1)]
#: More than a context serves.
COMPILATIONS = 300

pytestmark = [
    pytest.mark.skipif(
        not COMPILER.exists(), reason="the tools are not built (TRITON_METAL_BUILD_TOOLS)"
    ),
    # Nothing is launched.
    pytest.mark.own_route,
    pytest.mark.own_check,
]

Case = tuple[pathlib.Path, int | None, int | None]


def alone(case: Case) -> str:
    """The Metal text that a process makes which compiles nothing else, or what is wrong."""
    path, warps, stages = case
    named = {"num-warps": warps, "num-stages": stages}
    command = [COMPILER, path, *(f"--{name}={n}" for name, n in named.items() if n is not None)]
    made = subprocess.run(command, capture_output=True, text=True)
    return made.stdout if made.returncode == 0 else "refused"


def here(case: Case) -> str:
    path, warps, stages = case
    try:
        made = triton_metal.compile_ttir(path.read_text(), num_warps=warps, num_stages=stages)
    except CompilationError:
        return "refused"
    return made.asm["metal"]


@pytest.mark.parametrize("threads", [1, 3])
def test_text_is_that_of_a_process_of_its_own(threads: int) -> None:
    chosen = random.Random(7)
    cases = chosen.sample([(path, *options) for path in TEXTS for options in OPTIONS], 60)
    with ThreadPoolExecutor(2) as pool:
        expected = dict(zip(cases, pool.map(alone, cases), strict=True))
    assert len({text for text in expected.values() if text != "refused"}) > 30
    drawn = [chosen.choice(cases) for _ in range(COMPILATIONS)]
    with ThreadPoolExecutor(threads) as pool:
        for case, text in zip(drawn, pool.map(here, drawn), strict=True):
            assert text == expected[case], case


def test_refused_texts_leave_nothing_for_the_next() -> None:
    case = (TEXTS[0], 4, 2)
    good = case[0].read_text()
    expected = alone(case)
    for bad in (
        "module {",
        good.replace("tt.return", "tt.wrong"),
        "module {\n}",
        good[: len(good) // 2],
    ):
        with pytest.raises(CompilationError):
            triton_metal.compile_ttir(bad, num_warps=4, num_stages=2)
        assert here(case) == expected
