"""Every family of MLX's Metal kernels compiles to machine code, with all of its types; the tables are what MLX's build makes.

`make mlx-kernels` compiles every kernel of the tables.
"""

from __future__ import annotations

import re

import pytest
import triton_metal_host as metal

from metal_run import invoke
from mlx_kernels import FAMILIES, NEEDS_MLX, Family, compile_kernel, include_folder, source_folder
from mlx_kernels.family import KERNELS

pytestmark = NEEDS_MLX
WITH_SOURCE = pytest.mark.skipif(
    source_folder() is None, reason="TRITON_METAL_MLX_SOURCE names no checkout of MLX"
)


EMPTY_KERNELS = """
#include <metal_stdlib>
using namespace metal;
template <int n> [[kernel]] void named(device int *p [[buffer(0)]]) { *p = n; }
#define instantiate_kernel(name, ...) \\
  template [[host_name(name)]] [[kernel]] decltype(named<__COUNTER__>) named<__COUNTER__ - 1>;
"""


def listed(stdout: str) -> list[str]:
    return [line.split()[0] for line in stdout.splitlines() if line and not line.startswith(" ")]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_compiles(family: Family) -> None:
    instances = family.sample()
    folder = include_folder()
    assert folder is not None
    library = metal.Device().library(family.text(instances), include=[folder])
    assert library.function_names == [each.name for each in instances]
    for name in library.function_names:
        assert compile_kernel(library, name).name == name


@WITH_SOURCE
@pytest.mark.parametrize(
    "family", [each for each in FAMILIES if each.source], ids=lambda family: family.name
)
def test_table_has_the_kernels_of_the_build(family: Family) -> None:
    """MLX's own file; where it makes all kernels by one macro, that macro makes empty ones."""
    path = source_folder() / KERNELS / f"{family.source}.metal"
    text = path.read_text()
    if "instantiate_kernel" in text:
        text = EMPTY_KERNELS + re.sub(r"^\s*#include.*$", "", text, flags=re.M)
    result = invoke(["--list", f"-I{source_folder()}", "-"], text)
    assert result.returncode == 0, result.stderr
    assert sorted(listed(result.stdout)) == sorted(each.name for each in family.instances())
