"""The printer keeps to the constructs of docs/msl-constructs.md."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
from triton_metal.devices.target import APPLE10, apple

import matmul
from host_target import host_target
from kernel_support import ROOT

DOCUMENT = ROOT / "docs" / "msl-constructs.md"
TOKEN = re.compile(
    r"#[^\n]*|\[\[[^\]]*\]\]|0x[0-9a-fA-F]+u?l?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fhul]*|\w+"
    r"|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|\+\+|--|::|->|[^\s\w]"
)
TYPE = (
    r"(?:u?(?:char|short|int|long)[234]?|(?:bool|half|float|bfloat)[234]?|simdgroup_\w+8x8|void|T"
    r"|atomic_\w+|vec<T, [24]>|simdgroup_matrix<T, 8, 8>|auto|mpp::tensor_ops::matmul2d<[^<>]*>)"
)
# A name right behind a type is declared there, and so are those behind its commas.
DECLARED = re.compile(rf"\b{TYPE}(?: const)? *[*&]*(\w+) *(?=[=;\[,){{(:])")
DECLARATION = re.compile(rf"^ *(?:for \()?(?:const |thread )*{TYPE} [^;\n]*", re.M)
TEMPLATE = re.compile(r"template <([^>]*)>")


def documented():
    """The code spans of the first columns of the tables, with n for every number in an attribute."""
    allowed = set()
    for line in DOCUMENT.read_text().splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) > 2 and not line.startswith("|---"):
            allowed |= {code.replace("\\|", "|") for code in re.findall(r"`([^`]+)`", cells[1])}
    return allowed


def constructs(text):
    """What a Metal text uses beside the names that it declares itself."""
    text = re.sub(r"//[^\n]*", "", text)
    declared = set(DECLARED.findall(text))
    for declaration in DECLARATION.findall(text):
        declared |= set(re.findall(r", \*?(\w+)(?= =|\[|,|$)", declaration))
    for parameters in TEMPLATE.findall(text):
        declared |= {parameter.split()[-1] for parameter in parameters.split(",")}
    found = set()
    for token in TOKEN.findall(text):
        if token[0] == "#":
            found.add(token.strip())
        elif token.startswith("[["):
            found.add(re.sub(r"\d+", "n", token))
        elif token[0].isdigit() or (token[0] == "." and len(token) > 1):
            continue
        elif token not in declared:
            found.add(token)
    return found


def check(texts):
    allowed = documented()
    assert texts
    unknown = {}
    for name, text in texts.items():
        for construct in constructs(text) - allowed:
            unknown.setdefault(construct, name)
    assert unknown == {}


def test_unknown_constructs_are_found():
    """The test can fail: names that Metal has and the list has not, and nothing that is declared."""
    text = """#include <metal_stdlib>
#pragma METAL fp contract(fast)
[[kernel]] void k(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup float tile[4];
  float a = 1.0e-3f, b = quad_sum(x[i]);
  simdgroup_barrier(mem_flags::mem_texture);
  for (ushort n = 0; n < 4; ++n) {
    tile[n] = a ->* b;
  }
}
"""
    assert constructs(text) - documented() == {
        "#pragma METAL fp contract(fast)",
        "[[kernel]]",
        "[[thread_position_in_grid]]",
        "quad_sum",
        "simdgroup_barrier",
        "mem_texture",
        "->",
    }


@pytest.fixture
def only_compile(monkeypatch):
    """Launches compile and do not run; the dictionary has the texts."""
    texts = {}

    def at(self, grid):
        def compile(*args, **kwargs):
            kernel = self.warmup(*args, **kwargs)
            texts[f"{kernel.name} {kernel!r}"] = kernel.asm["metal"]
            return kernel

        return compile

    monkeypatch.setattr(triton.JITFunction, "__getitem__", at)
    return texts


def test_examples(only_compile):
    import demo
    import digits
    import dropout

    for case in demo.cases():
        case.run()
    dropout.random("integers", 100, 1)
    dropout.random("uniform", 100, 1)
    network = digits.Classifier()
    rng = np.random.default_rng(0)
    network.train_step(
        rng.random((32, 64), dtype=np.float32), rng.integers(0, 10, 32).astype(np.int32), 0.01
    )
    network.predict(rng.random((32, 64), dtype=np.float32))
    assert len(only_compile) > 25
    check(only_compile)


@pytest.mark.own_target
@pytest.mark.own_route
@pytest.mark.parametrize("transposed", [False, True])
def test_products_by_tensor_operations(only_compile, transposed):
    """Whose names are not in the list either, unless they are Metal's."""
    a, b = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
    with host_target(APPLE10):
        matmul.matmul(a, b.T if transposed else b)
    assert "matmul2d" in "".join(only_compile.values())
    check(only_compile)


def test_kernels_of_the_doctor(only_compile):
    from triton_metal.doctor.kernels import probes

    for probe in probes():
        probe.launch(probe.arrays())
    check(only_compile)


def tool(name):
    path = ROOT / "build" / "bin" / name
    found = str(path) if path.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not built")
    return found


def test_lit_tests_of_the_printer():
    """Each part of each file that prints Metal, as lit's own command prints it."""
    opt = tool("triton-metal-opt")
    texts = {}
    for file in sorted((ROOT / "tests" / "lit").rglob("*.mlir")):
        for line in file.read_text().splitlines():
            if "RUN:" not in line or "msl-print-metal" not in line or "verify-diagnostics" in line:
                continue
            options = line.split("triton-metal-opt", 1)[1].split("|")[0].replace("%s", str(file))
            done = subprocess.run([opt, *options.split()], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            # What is left of the module follows the text.
            texts[file.name] = done.stdout.partition("\nmodule")[0].replace("// -----", "")
    assert len(texts) >= 5
    check(texts)


def test_stock_triton():
    texts = {}
    for file in sorted((ROOT / "tests" / "lit" / "tt" / "stock" / "3.9.0").glob("*.ttir")):
        try:
            texts[file.name] = triton.compile_ttir(file.read_text(), name=file.name).asm["metal"]
        except triton.CompileError:
            continue  # refused, and tested where that is said
    check(texts)


def test_operations_one_by_one():
    """Every operation that the fixture below names, in every type that it takes, for two targets."""
    texts = {}
    functions = [
        "abs", "ceil", "cos", "exp", "exp2", "floor", "log", "log2", "rsqrt", "sin", "sqrt", "erf",
    ]  # fmt: skip
    for name in functions:
        for type in ("f32", "f16", "bf16"):
            operation = "absf" if name == "abs" else name
            ttir = f"""
tt.func public @k(%p: !tt.ptr<{type}>) {{
  %r = tt.make_range {{end = 128 : i32, start = 0 : i32}} : tensor<128xi32>
  %s = tt.splat %p : !tt.ptr<{type}> -> tensor<128x!tt.ptr<{type}>>
  %a = tt.addptr %s, %r : tensor<128x!tt.ptr<{type}>>, tensor<128xi32>
  %x = tt.load %a : tensor<128x!tt.ptr<{type}>>
  %y = math.{operation} %x : tensor<128x{type}>
  tt.store %a, %y : tensor<128x!tt.ptr<{type}>>
  tt.return
}}"""
            for macos in ("14.0", "26.0"):
                text = triton.compile_ttir(ttir, target=apple(macos, "Apple M2")).asm["metal"]
                texts[f"{name} {type} {macos}"] = text
    check(texts)
    assert any("#pragma STDC FP_CONTRACT OFF" in text for text in texts.values())


def test_list_has_nothing_that_no_source_stands_behind():
    for line in DOCUMENT.read_text().splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) == 5 and "`" in cells[1]:
            assert re.search(r"MSL|MLX|PyTorch|ggml|FST|C\+\+|clang", cells[3]), line
    assert sys.modules["kernel_support"].ROOT == Path(__file__).resolve().parents[2]
