"""Random programs against NumPy: the same ones on every run. `make fuzz-programs` draws others.

One that fails: `make fuzz-programs ONLY=<its number>` writes it as a small Python file.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from triton_metal.errors import GraphRefusal

from random_programs.dtypes import F64
from random_programs.execute import Elsewhere, check
from random_programs.generate import generate

PROGRAMS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


# On each way of launching on a Mac a quarter of them runs again.
@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=pytest.mark.own_route) if n % 4 else n for n in range(PROGRAMS)],
)
def test_random_program(folder: Path, number: int, request: pytest.FixtureRequest) -> None:
    program = generate(number)
    route = request.config.getoption("--route")
    if route:  # No framework checks a launch, or orders its programs: one that asks for it runs on the host.
        program.config = replace(program.config, check=None, schedule=None)
    if route in ("mlx", "mlx-in-place") and any(
        memory.dtype == F64 for memory in program.machine.memory.values()
    ):
        pytest.skip("MLX has float64 on its CPU alone")
    try:
        wrong = check(program, folder, route="mlx-graph" if route == "mlx-graph" else None)
    except GraphRefusal:
        raise
    except Elsewhere as error:
        pytest.skip(str(error))
    except Exception as error:
        pytest.fail(f"program {number} with {program.config} of\n{program.text()}\n{error}")
    assert not wrong, "\n".join([f"program {number} with {program.config}", *wrong, program.text()])
