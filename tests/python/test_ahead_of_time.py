"""triton.tools.compile and triton.tools.link: kernels as Metal texts, descriptions and headers for C and Objective-C."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from triton_metal.testing.compile_shader import compile_shader
from triton_metal.tools import compile as ahead
from triton_metal.tools import link

torch = pytest.importorskip("torch")

KERNELS = """
import triton_metal as triton
import triton_metal.language as tl

@triton.jit
def scale(x, y, n, step, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i * step, tl.load(x + i, mask=i < n) * factor, mask=i < n)

@triton.jit
def shouts(x):
    print("x", tl.load(x))

@triton.jit
def doubled(grid, int):
    row = tl.program_id(0) * 16
    grid.store([row, 0], grid.load([row, 0]) * 2)

@triton.autotune([triton.Config({})], key=[])
@triton.jit
def negated(x, n):
    tl.store(x, -n)
"""

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


def compiled(file: Path, signature: str, **options: Any) -> tuple[str, dict[str, Any], Path]:
    """The text, the description and the path of the header of ``scale``."""
    given = {"kernel_name": "scale", "grid": "cdiv(n, BLOCK)", "target": "metal"} | options
    given["out_path"] = given.get("out_path") or file.parent / "out"
    args = ahead.CompileArgs(path=str(file), signature=signature, **given)
    text, description, header = ahead.compile_kernel(args)
    return text.read_text(), json.loads(description.read_text()), header


def shared(header: Path, exported: str) -> Any:
    """A library of C functions on a header."""
    source, library = header.with_suffix(".c"), header.with_suffix(".so")
    source.write_text(f'#include "{header.name}"\n{exported}\n', encoding="utf-8")
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable"]
    subprocess.run([*command, "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


@needs_cc
def test_a_kernel_runs_with_what_its_header_packs(file: Path) -> None:
    text, described, header = compiled(file, "*fp32:16, *fp32, i64, i32:1, fp32, 64", num_warps=2)
    name = described["function"]
    library = shared(
        header,
        f"void pack(uint32_t *to, int64_t n, float f) {{ {name}_numbers p = {name}_pack(n, f);\n"
        f"  memcpy(to, &p, sizeof p); }}\n"
        f"void grid(uint32_t *to, int64_t n, float f) {{ {name}_grid(to, n, f); }}\n"
        f"int threads(void) {{ return {name}_threads; }}",
    )
    words, sizes = (ctypes.c_uint32 * described["scalar_words"])(), (ctypes.c_uint32 * 3)()
    library.pack(words, ctypes.c_int64(150), ctypes.c_float(2.5))
    library.grid(sizes, ctypes.c_int64(150), ctypes.c_float(2.5))
    assert list(sizes) == [3, 1, 1]
    assert library.threads() == described["threads"] == 64
    x, y = torch.arange(150.0), torch.zeros(150)
    launch = getattr(compile_shader(text), name)
    numbers = torch.tensor(np.frombuffer(words, np.int32).copy())
    arguments: list[Any] = [None, None, None]
    for one, value in zip(described["arguments"][:2], (x, y), strict=True):
        arguments[one["buffer"]] = value
    arguments[described["scalar_buffer"]] = numbers
    launch(*arguments, threads=sizes[0] * 64, group_size=64)
    assert torch.equal(y, x * 2.5)


def test_the_description_says_what_a_launch_needs(file: Path) -> None:
    text, described, header = compiled(file, "*fp32:16, *fp16, i32:16, i32, fp32, 128")
    assert described["kernel"] == "scale"
    assert described["function"].startswith("scale_")
    assert f"void {described['function']}(" in text
    assert described["constants"] == {"BLOCK": 128}
    assert described["grid"][0] == "(((int64_t)n + INT64_C(128) - 1) / INT64_C(128))"
    assert described["conditions"] == [
        {"name": "x", "multiple_of": 16},
        {"name": "n", "multiple_of": 16},
    ]
    kinds = {one["name"]: one["kind"] for one in described["arguments"]}
    assert kinds == {
        "x": "buffer", "y": "buffer", "n": "scalar", "step": "scalar", "factor": "scalar",
    }  # fmt: skip
    assert "setBuffer:x offset:x_offset atIndex:0" in header.read_text()


def test_a_descriptor_is_a_buffer_with_sizes_and_strides(file: Path) -> None:
    given = {"kernel_name": "doubled", "grid": "int"}
    _, described, header = compiled(file, "tensordesc<fp32[16, 16]>, i32", **given)
    names = [one["name"] for one in described["arguments"]]
    assert names == ["grid", "grid.shape.0", "grid.shape.1", "grid.stride.0", "int"]
    assert described["conditions"] == [{"name": "grid", "multiple_of": 16}]
    # Names that C or the header have taken get another one.
    assert "id<MTLBuffer> grid_, NSUInteger grid__offset" in header.read_text()
    assert described["grid"][0] == "(int64_t)int_"


def test_a_target_is_a_mac(file: Path) -> None:
    signature = "*fp32, *fp32, i32, i32, fp32, 64"
    _, old, _ = compiled(file, signature, target="metal:13.0:Apple M1")
    _, new, _ = compiled(file, signature, target="metal:26.0:Apple M5")
    assert "msl=3.0" in old["target"]
    assert "msl=4.0" in new["target"]
    assert old["function"] != new["function"]


@needs_cc
def test_variants_are_joined_with_their_conditions(file: Path) -> None:
    signatures = [
        "*fp32, *fp32, i32, i32, fp32, 64",
        "*fp32:16, *fp32:16, i32, i32, fp32, 64",
        "*fp32:16, *fp32:16, i32:16, i32:1, fp32, 64",
        "*fp32:16, *fp32, i32, i32, fp32, 128",
        "*fp32, *fp32, i32:4, i32, fp32, 256",
        "*fp32, *fp32, i32:16, i32, fp32, 256",
        "*fp32, *fp32, i32:8, i32, fp32, 256",
    ]
    paths = [compiled(file, signature)[2].with_suffix(".json") for signature in signatures]
    description, header = link.link(paths, file.parent / "joined", prefix="my_")
    joined = json.loads(description.read_text())
    assert [a["constants"]["BLOCK"] for a in joined["algorithms"]] == [64, 128, 256]
    assert [len(a["variants"]) for a in joined["algorithms"]] == [3, 1, 3]
    library = shared(
        header,
        "int choose(int a, uint64_t x, uint64_t y, int32_t n, int32_t s) "
        "{ return my_scale_variant(a, x, y, n, s, 1.0f); }\n"
        "const char *name(int v) { return my_scale_functions[v]; }",
    )
    cases = {
        (0, 0, 32, 64, 1): 0,
        (0, 0, 32, 64, 2): 1,
        (0, 0, 32, 63, 1): 1,
        (0, 4, 0, 64, 1): 2,
        (1, 16, 4, 3, 3): 3,
        (1, 4, 4, 3, 3): -1,
        (2, 0, 0, 32, 1): 4,
        (2, 0, 0, 24, 1): 5,
        (2, 0, 0, 12, 1): 6,
        (2, 0, 0, 1, 1): -1,
        (3, 0, 0, 1, 1): -1,
    }
    for (algorithm, x, y, n, step), expected in cases.items():
        found = library.choose(algorithm, ctypes.c_uint64(x), ctypes.c_uint64(y), n, step)
        assert found == expected, (algorithm, x, y, n, step)
    library.name.restype = ctypes.c_char_p
    assert library.name(0).decode() == joined["algorithms"][0]["variants"][0]["function"]
    with pytest.raises(ValueError, match="given twice"):
        link.link([paths[0], paths[0]], file.parent / "twice")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"signature": "*fp32, *fp32"}, "has 2 entries, and the kernel has 6 parameters"),
        ({"signature": "*fp33, *fp32, i32, i32, fp32, 64"}, "x: '\\*fp33' is no type"),
        ({"signature": "*fp32:8, *fp32, i32, i32, fp32, 64"}, "the hint '8'"),
        (
            {"signature": "*fp32, *fp32, i32:2, i32, fp32, 64"},
            "are 1, for the number 1, and 4, 8 or 16",
        ),
        (
            {"signature": "*fp32, *fp32, i32, i32, fp32:8, 64"},
            "a multiple of 8, which only integers are",
        ),
        ({"signature": "*fp32:1, *fp32, i32, i32, fp32, 64"}, "the hint of a pointer is 16"),
        (
            {"kernel_name": "doubled", "signature": "tensordesc<fp32[16, 16]>:1, i32"},
            "the hint of a pointer is 16",
        ),
        ({"signature": "*fp32, *fp32, i32, i32, fp32:16, 64"}, "which only integers are"),
        (
            {"signature": "*fp32, *fp32, i32, i32, fp8e4nv, 64"},
            "factor: a program in C cannot pass a number of the type 'fp8e4nv'; types of numbers are i1",
        ),
        ({"signature": "*fp32, *fp32, int, i32, fp32, 64"}, "n: a program in C cannot pass"),
        *(
            ({"kernel_name": "doubled", "signature": f"{type}, i32"}, "a descriptor's type is as")
            for type in (
                "tensordesc<fp32>",
                "tensordesc<fp32[]>",
                "tensordesc<fp32[a, 8]>",
                "tensordesc<fp33[8, 8]>",
                "tensordesc<>",
                "tensordesc<fp32[8]>x",
                "tensordesc",
            )
        ),
        ({"grid": "n, 1 << 3"}, "holds '1 << 3'"),
        ({"grid": "99999999999999999999"}, "which exceeds 64 bits"),
        ({"grid": "cdiv(n, 0)"}, "divides by 0"),
        ({"grid": "n % (0)"}, "divides by 0"),
        ({"out_name": "a b"}, "the name 'a b' is no identifier of C"),
        ({"out_path": Path(".")}, "the path '.' ends in no file's name"),
        ({"grid": "1, 1, 1, 1"}, "has 4 sizes"),
        ({"grid": "m"}, "holds 'm': its sizes are"),
        ({"grid": "factor"}, "holds 'factor'"),
        ({"grid": "(n"}, "which is no expression"),
        ({"target": "cuda:80:32"}, "the target 'cuda:80:32' is none of Metal"),
        ({"kernel_name": "shrink"}, "has no kernel shrink; its kernels are scale, shouts"),
        ({"kernel_name": "shouts", "signature": "*fp32", "grid": "1"}, "prints or asserts"),
    ],
)
def test_what_cannot_be_compiled_is_refused(
    file: Path, options: dict[str, Any], words: str
) -> None:
    given = {"signature": "*fp32, *fp32, i32, i32, fp32, 64"} | options
    with pytest.raises(ValueError, match=words):
        compiled(file, given.pop("signature"), **given)
    assert not list(file.parent.glob("out*"))


@needs_cc
@pytest.mark.parametrize("language", ["c", "c++"])
def test_every_name_of_python_has_one_of_c(tmp_path: Path, language: str) -> None:
    names = "int int_ new template this true NULL uint32_t INT64_MAX memset _Complex __LINE__ grid valid x x_offset é è _ __"
    words = names.split()
    file = tmp_path / "names.py"
    file.write_text(
        "import triton_metal as triton\nimport triton_metal.language as tl\n\n@triton.jit\n"
        f"def total(y, {', '.join(words)}):\n    tl.store(y, {' + '.join(words)})\n",
        encoding="utf-8",
    )
    signature = ", ".join(["*i32", *["i32"] * len(words)])
    given = {"kernel_name": "total", "grid": "int + int_ * new"}
    text, described, header = compiled(file, signature, **given)
    joined = link.link([header.with_suffix(".json")], tmp_path / "joined")[1]
    numbers = ", ".join(str(1 << n) for n in range(len(words)))
    name, many = described["function"], len(words)
    source = tmp_path / "program.cpp"
    source.write_text(
        f'#include "{joined.name}"\n#include <stdio.h>\nint main() {{\n'
        f"  {name}_numbers packed = {name}_pack({numbers});\n  uint32_t grid[3];\n"
        f"  {name}_grid(grid, {numbers});\n  for (int i = 0; i < {many}; ++i)\n"
        '    printf("%u ", (unsigned)packed.words[i]);\n'
        f'  printf("%u %d\\n", (unsigned)grid[0], total_variant(0, 0, {numbers}));\n}}\n'
    )
    program = tmp_path / "program"
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable", "-Wno-unused-variable"]
    subprocess.run(["cc", "-x", language, *flags, "-o", program, source], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert [int(word) for word in done.stdout.split()] == [*(1 << n for n in range(many)), 9, 0]
    packed = torch.tensor([1 << n for n in range(many)], dtype=torch.int32)
    y = torch.zeros(1, dtype=torch.int32)
    getattr(compile_shader(text), name)(y, packed, threads=described["threads"], group_size=described["threads"])  # fmt: skip
    assert y.item() == (1 << many) - 1


@needs_cc
def test_a_grid_that_cannot_be_launched_is_told(file: Path) -> None:
    given = {"kernel_name": "sized", "target": "metal"}
    file.write_text(
        KERNELS + "\n@triton.jit\ndef sized(x, n, m, u):\n    tl.store(x, n + m)\n", "utf-8"
    )
    cases = {
        "cdiv(n, m)": {
            (10, 3, 0): 4, (10, 0, 0): None, (-1, 3, 0): 0, (-5, 3, 0): None, (2**63 - 1, 2, 0): None,
        },
        "n * m": {(2**31 - 1, 1, 0): 2**31 - 1, (2**31, 1, 0): None, (2**32, 2**32, 0): None, (2**32 + 1, 1, 0): None},
        "n / m": {(7, 2, 0): 3, (7, 0, 0): None, (-(2**63), -1, 0): None},
        "n % m": {(7, 4, 0): 3, (7, 0, 0): None},
        "n - m": {(7, 4, 0): 3, (4, 7, 0): None, (-(2**63), 1, 0): None},
        "n + m": {(7, 4, 0): 11, (2**63 - 1, 1, 0): None},
        "u": {(0, 0, 5): 5, (0, 0, 2**63): None, (0, 0, 2**64 - 1): None},
        "min(n, m), max(n, m)": {(3, 4, 0): 3},
    }  # fmt: skip
    for number, (grid, found) in enumerate(cases.items()):
        out = file.parent / f"grid{number}"
        _, described, header = compiled(file, "*i64, i64, i64, u64", grid=grid, out_path=out, **given)  # fmt: skip
        name = described["function"]
        library = shared(
            header,
            f"int grid(uint32_t *to, int64_t n, int64_t m, uint64_t u) {{ return {name}_grid(to, n, m, u); }}",
        )
        for values, expected in found.items():
            sizes = (ctypes.c_uint32 * 3)(9, 9, 9)
            types = (ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64)
            valid = library.grid(sizes, *(one(v) for one, v in zip(types, values, strict=True)))
            second = 4 if "," in grid.partition(")")[2] else 1
            wanted = [expected, second, 1] if expected is not None else [0, 0, 0]
            assert (list(sizes), valid) == (wanted, int(expected is not None)), (grid, values)


def test_constants_that_are_not_finite_are_texts(file: Path) -> None:
    for text, written in (("nan", "nan"), ("1e400", "inf"), ("-inf", "-inf"), ("2.5", 2.5)):
        given = {"kernel_name": "filled", "grid": "1"}
        file.write_text(
            KERNELS + "\n@triton.jit\ndef filled(x, c: tl.constexpr):\n    tl.store(x, c)\n",
            "utf-8",
        )
        assert compiled(file, f"*fp32, {text}", **given)[1]["constants"] == {"c": written}


def test_variants_may_lie_in_other_folders(file: Path) -> None:
    paths = []
    for folder, block in (("a", 64), ("b c", 128)):
        (file.parent / folder).mkdir()
        out = file.parent / folder / "scale"
        signature = f"*fp32, *fp32, i32, i32, fp32, {block}"
        paths.append(compiled(file, signature, out_path=out)[2].with_suffix(".json"))
    _, header = link.link(paths, file.parent / "b c" / "all")
    includes = [line for line in header.read_text().splitlines() if line.startswith("#include")]
    assert includes == [
        f'#include "../a/{paths[0].stem}.h"', f'#include "{paths[1].stem}.h"',
    ]  # fmt: skip
    before = paths[0].read_bytes()
    with pytest.raises(ValueError, match="would be overwritten"):
        link.link(paths, paths[0].with_suffix(""))
    assert paths[0].read_bytes() == before
    with pytest.raises(ValueError, match="the name 'a-scale' is no identifier of C"):
        link.link(paths, file.parent / "all", prefix="a-")


def test_algorithms_are_told_apart(file: Path) -> None:
    signature = "*fp32, *fp32, i32, i32, fp32, 64"
    made = [
        compiled(file, signature, **options)[2].with_suffix(".json")
        for options in ({}, {"precise_math": True}, {"target": "metal:26.0:Apple M5"})
    ]
    description, header = link.link(made, file.parent / "joined")
    shown = [line for line in header.read_text().splitlines() if "  case " in line and "/*" in line]
    assert len({line.partition("/*")[2] for line in shown}) == len(shown) == 3
    algorithms = json.loads(description.read_text())["algorithms"]
    assert [one["arithmetic"] for one in algorithms] == ["", "precise", ""]
    # Two SIMD-groups are what the first one took by itself.
    warps = json.loads(made[0].read_text())["num_warps"]
    same = compiled(file, signature, num_warps=warps)[2].with_suffix(".json")
    with pytest.raises(ValueError, match="no launch would take the second"):
        link.link([made[0], same], file.parent / "joined")


@pytest.mark.parametrize("key", [None, "kernel", "function", "arguments", "conditions", "target"])
def test_foreign_descriptions_are_refused(file: Path, key: str | None) -> None:
    path = compiled(file, "*fp32, *fp32, i32, i32, fp32, 64")[2].with_suffix(".json")
    found = json.loads(path.read_text())
    if key:
        del found[key]
    else:
        found["arguments"] = [{"name": 3}]
    path.write_text(json.dumps(found))
    with pytest.raises(ValueError, match="is no description that"):
        link.link([path], file.parent / "joined")
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="cannot be read"):
        link.link([path], file.parent / "joined")


def test_files_of_any_name_are_read(file: Path) -> None:
    other = file.rename(file.with_name("kernels.txt"))
    assert compiled(other, "*fp32, *fp32, i32, i32, fp32, 64")[1]["source"] == "kernels.txt"
    other.write_text("")
    with pytest.raises(ValueError, match="has no kernel scale; it has none"):
        compiled(other, "*fp32, *fp32, i32, i32, fp32, 64")


def test_a_folder_that_is_not_there_is_named(file: Path) -> None:
    out = file.parent / "missing" / "out"
    with pytest.raises(
        ValueError, match=r"missing/out\.\w+\.metal cannot be written: No such file"
    ):
        compiled(file, "*fp32, *fp32, i32, i32, fp32, 64", out_path=out)


def test_the_commands(file: Path) -> None:
    stock = file.with_name("stock.py")
    stock.write_text(KERNELS.replace("triton_metal", "triton"), encoding="utf-8")
    command = [sys.executable, "-m", "triton_metal.tools.compile", str(stock), "-n", "negated"]
    command += ["-s", "*i32, i32", "-g", "1,1,1", "-w", "4", "-ns", "1", "-o", "one"]
    made = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=True)
    paths = [file.parent / line for line in made.stdout.split()]
    assert [path.suffix for path in paths] == [".metal", ".json", ".h"]
    assert json.loads(paths[1].read_text())["num_warps"] == 4
    command = [sys.executable, "-m", "triton_metal.tools.link", str(paths[1]), "-o", "all"]
    subprocess.run(command, cwd=file.parent, check=True)
    assert "negated_variant(int algorithm" in (file.parent / "all.h").read_text()
    failed = subprocess.run(
        [*command[:3], str(stock), "-o", "all"], cwd=file.parent, capture_output=True, text=True
    )
    assert failed.returncode == 1
    assert "cannot be read" in failed.stderr
