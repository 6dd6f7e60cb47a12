"""One kernel source through two front ends: stock Triton's and ours."""

from __future__ import annotations

import collections
import functools
import importlib.util
import itertools
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from triton_metal.testing import ttir

STOCK_HEADER = "import triton\nimport triton.language as tl\n"
OUR_HEADER = "import triton_metal as triton\nimport triton_metal.language as tl\n"
ROOT = Path(__file__).resolve().parents[2]

_counter = itertools.count()


def load_source(directory: Path, source: str, header: str) -> ModuleType:
    """The module that the text makes; kernels must be defined in a file."""
    name = f"front_end_case_{next(_counter)}"
    path = directory / f"{name}.py"
    path.write_text(header + source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def stock_parts() -> SimpleNamespace:
    pytest.importorskip("triton", reason="stock Triton is compared with")
    from triton._C.libtriton import ir
    from triton.compiler import ASTSource
    from triton.compiler.code_generator import ast_to_ttir

    options = SimpleNamespace(
        sanitize_overflow=False,
        debug=False,
        arch="",
        supported_fp8_dtypes=(),
        deprecated_fp8_dot_operand_dtypes=(),
        default_dot_input_precision="ieee",
        allowed_dot_input_precisions=("ieee", "tf32x3"),
        max_num_imprecise_acc_default=0,
        instrumentation_mode="",
        num_warps=4,
        num_stages=2,
    )
    return SimpleNamespace(ir=ir, source=ASTSource, generate=ast_to_ttir, options=options)


def stock_ttir(
    kernel: Any,
    signature: dict[str, str],
    constexprs: dict[str, Any],
    divisibility: dict[str, int] | None = None,
) -> str:
    """What stock Triton's front end makes of a kernel."""
    parts = stock_parts()
    context = parts.ir.context()
    parts.ir.load_dialects(context)
    full = {**signature, **dict.fromkeys(constexprs, "constexpr")}
    names = list(kernel.arg_names)
    attributes = {
        (names.index(name),): [["tt.divisibility", value]]
        for name, value in (divisibility or {}).items()
    }
    source = parts.source(kernel, full, constexprs, attributes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = parts.generate(
            kernel,
            source,
            context=context,
            options=parts.options,
            codegen_fns={"min_dot_size": lambda lhs, rhs: (1, 1, 1)},
            module_map={},
        )
    return str(module)


def our_ttir(
    kernel: Any,
    signature: dict[str, str],
    constexprs: dict[str, Any],
    divisibility: dict[str, int] | None = None,
) -> str:
    return str(ttir(kernel, signature, constexprs, divisibility))


def optimizer() -> str:
    path = shutil.which("triton-metal-opt") or str(ROOT / "build" / "bin" / "triton-metal-opt")
    if not Path(path).exists():
        pytest.skip("triton-metal-opt is not built")
    return path


def canonical(text: str) -> str:
    """The module after inlining and clean-up."""
    passes = ["--canonicalize", "--tt-lift-control-flow", "--tt-inline", "--canonicalize", "--cse"]
    result = subprocess.run(
        [optimizer(), *passes, "-"], input=text, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{result.stderr}\n{text}"
    return result.stdout


_OPERATION = re.compile(r"\"?\b((?:tt|arith|math|scf|cf|llvm|ub|gpu)\.[a-z_0-9.]+)\"?")


def histogram(text: str) -> dict[str, int]:
    """How often each operation stands in a module, with its result type or its predicate."""
    counts: collections.Counter[str] = collections.Counter()
    for line in text.splitlines():
        code = re.sub(r"loc\(.*?\)", "", line).strip()
        if code.startswith("#"):
            continue
        match = _OPERATION.search(code)
        if match is None or match[1] in ("tt.divisibility", "tt.ptr"):
            continue
        name = match[1]
        if name in ("arith.cmpi", "arith.cmpf"):
            name += " " + code.split(name, 1)[1].split(",")[0].strip().split()[0]
        kind = code.rsplit(":", 1)[1].strip().rstrip(" {") if ":" in code else ""
        if name == "arith.constant":
            kind = code.split(name, 1)[1].strip()
        counts[f"{name} : {kind}"] += 1
    return dict(counts)


def compare(
    directory: Path,
    source: str,
    signature: dict[str, str],
    constexprs: dict[str, Any] | None = None,
    divisibility: dict[str, int] | None = None,
    name: str = "kernel",
) -> None:
    """Asserts that both front ends give the same operations."""
    stock = load_source(directory, source, STOCK_HEADER)
    ours = load_source(directory, source, OUR_HEADER)
    theirs = stock_ttir(getattr(stock, name), signature, dict(constexprs or {}), divisibility)
    mine = our_ttir(getattr(ours, name), signature, dict(constexprs or {}), divisibility)
    assert histogram(canonical(mine)) == histogram(canonical(theirs))


def operations(text: str) -> list[str]:
    """The operations of a small kernel in order, with their types, without names and places."""
    result = []
    for line in text.splitlines():
        if line.startswith("#") or "tt.func" in line:
            continue
        code = re.sub(r"\s*loc\(.*", "", line).strip()
        if "=" in code and code.startswith("%"):
            code = code.split("=", 1)[1].strip()
        elif not code.startswith(("tt.", "scf.", "cf.", "llvm.")):
            continue
        same = re.fullmatch(r"(?:arith|tt)\.bitcast %\S+ : (\S+) (?:to|->) (\S+)", code)
        if same and same[1] == same[2]:
            continue  # a change of signedness only
        if code.startswith(("arith.constant", "tt.return")):
            continue
        code = re.sub(r"%[\w#.-]+", "%", code)
        code = re.sub(r"\{cachePolicy[^}]*\} ", "", code)
        result.append(code)
    return result
