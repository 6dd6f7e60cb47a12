"""triton_metal has every public name of stock Triton, where that is installed, and what older programs use."""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton_metal.as_triton
import triton_metal.language as tl

MODULES = (
    "triton",
    "triton.errors",
    "triton.language",
    "triton.language.core",
    "triton.language.extra.libdevice",
    "triton.language.math",
    "triton.language.random",
    "triton.language.semantic",
    "triton.language.standard",
    "triton.language.target_info",
)
CLASSES = ("tensor", "dtype", "constexpr", "tuple_type", "constexpr_type", "tensor_descriptor_type")

#: Names that tell nothing to a program: type variables, helpers of stock Triton's own modules.
INTERNAL = {
    "triton.language.core": {
        "CAT_CAN_REORDER_WARNING",
        "CONSTEXPR_0",
        "RESHAPE_CAN_REORDER_WARNING",
        "T",
        "check_bit_width",
        "get_primitive_bitwidth",
        "is_enabled",
        "is_negative_zero",
        "JITCallable",
        "TYPE_CHECKING",
        "dataclass_transform",
        "validate_block_shape",
        "warn_once",
    },
    "triton.language.math": {"T"},
    "triton.language.semantic": {"T", "TensorTy", "driver", "annotations"},
    "triton.language.standard": {"jit", "sort_impl"},
    "triton.language.random": {"jit"},
    "triton.language.target_info": {"driver", "constexpr_function"},
    "triton.language.core:dtype": {"to_ir"},
    # Steps of its own operations, and what only NVIDIA's GPUs have.
    "triton.language.semantic:TritonSemantic": {
        "atom_red_typechecking_impl",
        "binary_op_sanitize_overflow_impl",
        "deduce_scale_factor",
        "grid_dependency_launch_dependents",
        "grid_dependency_wait",
        "map_elementwise",
        "to_inline_asm_operand",
        "validate_store_like",
        "verify_scaled_shape",
        "wrap_tensor",
    },
}


HAS_STOCK = importlib.util.find_spec("triton") is not None and (
    "metal" not in importlib.metadata.version("triton")
)


def stock_names() -> dict[str, list[str]]:
    asked = [*MODULES, *(f"triton.language.core:{name}" for name in CLASSES)]
    asked.append("triton.language.semantic:TritonSemantic")
    script = Path(__file__).parent / "stock_names.py"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(script), *asked],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(not HAS_STOCK, reason="stock Triton is not installed")
def test_no_public_name_of_stock_triton_is_missing():
    missing = {}
    for place, names in stock_names().items():
        module, _, cls = place.partition(":")
        own = importlib.import_module(module.replace("triton", "triton_metal", 1))
        own = getattr(own, cls) if cls else own
        absent = {name for name in names if not hasattr(own, name)} - INTERNAL.get(place, set())
        if absent:
            missing[place] = sorted(absent)
    assert missing == {}


@pytest.mark.parametrize("name", ["tanh", "pow", "log1p", "erfinv", "fast_dividef"])
def test_functions_of_older_programs_are_in_math_and_libdevice(name):
    assert getattr(tl.math, name) is getattr(tl.libdevice, name)
    assert getattr(tl.extra.libdevice, name) is getattr(tl.libdevice, name)


@pytest.mark.parametrize("name", sorted(triton_metal.as_triton.ABSENT))
def test_absent_modules_say_why(name):
    finder = triton_metal.as_triton._Finder()
    with pytest.raises(ModuleNotFoundError, match="triton-metal has no module") as caught:
        finder.find_spec(name)
    assert triton_metal.as_triton.ABSENT[name] in str(caught.value)
