"""Compiles a kernel ahead of time: to a Metal text, a description in JSON, and a header for C and Objective-C.

    python -m triton_metal.tools.compile KERNELS.py -n NAME -s SIGNATURE -g GRID [-w WARPS] [-ns STAGES] [-o OUT] [-t TARGET]

SIGNATURE has an entry for each parameter: a type (``*fp32``, ``i32``), with ``:16`` for a pointer or an integer that is a
multiple of 16, ``:8`` or ``:4`` for an integer that is one of 8 or 4 and ``:1`` for one that is 1, or the value of a
constant. GRID has one to three sizes, of integer parameters and constants: ``"cdiv(n, BLOCK), 1, 1"``.

The files are OUT.HASH.metal, .json and .h; the kernel's function is NAME_HASH. ``xcrun metal -o NAME.metallib *.metal``
makes a library of them on a Mac, and ``newLibraryWithSource:`` compiles the text at run time. `triton_metal.tools.link`
joins variants of one kernel.

The text is for buffers of which none overlaps one that the kernel writes.

TARGET is ``metal`` for every Mac that has what the newest baseline has (macOS 15, M3), ``metal:MACOS:CHIP`` (such as
``metal:14.0:Apple M1``), or the current device's if it is left out.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import cache, devices
from ..as_triton import install
from ..backends.metal.options import read_options
from ..compilation import compile_module, stages_of, warps_of
from ..devices.target import BASELINE, Target, apple
from ..errors import TritonError
from ..functions import KernelFunction
from ..generation import module_of
from ..runtime.driver import driver
from ..sources import ASTSource
from .c_names import identifiers, is_identifier
from .grid import Size, plain, read_grid
from .header import kernel_header
from .signature import Entry, digest, read_signature
from .written import print_written, write_files


@dataclass
class CompileArgs:
    """What is compiled, and where the files go. The fields are those of the command line."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int | None = None
    num_stages: int | None = None
    precise_math: bool = False
    enable_fp_fusion: bool | None = None
    out_name: str | None = None
    out_path: Path | None = None


def target_named(name: str | None) -> str:
    """A target as the compiler reads it."""
    if name is None:
        host = driver.active.get_current_target().backend == "cpu"
        return devices.target_spec("host" if host else "mps")
    backend, _, rest = name.partition(":")
    if backend != "metal":
        raise ValueError(
            f"the target {name!r} is none of Metal: it is metal, or metal:MACOS:CHIP such as metal:14.0:Apple M1"
        )
    macos, _, chip = rest.partition(":")
    target: Target = apple(macos, chip or "Apple M1") if rest else BASELINE
    return target.spec()


def kernel_in(path: str, name: str) -> KernelFunction:
    """The kernel of this name in a file, which is run as a module."""
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {path}")
    # Whatever the file's name ends in.
    loader = importlib.machinery.SourceFileLoader(file.stem, str(file))
    spec = importlib.util.spec_from_loader(file.stem, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    sys.path.insert(0, str(file.parent))
    try:
        loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    found = getattr(module, name, None)
    while found is not None and not isinstance(found, KernelFunction):
        found = getattr(found, "fn", None)  # of autotune or heuristics
    if found is None:
        kernels = [key for key, value in vars(module).items() if isinstance(value, KernelFunction)]
        known = f"its kernels are {', '.join(kernels)}" if kernels else "it has none"
        raise ValueError(f"{path} has no kernel {name}; {known}")
    return found


def compile_kernel(args: CompileArgs) -> list[Path]:
    """Compiles a kernel and writes its files; returns their paths: the text, the description and the header.

    Raises ValueError for a signature, grid or target that cannot be read, and CompilationError.
    """
    if args.out_name is not None and not is_identifier(args.out_name):
        raise ValueError(f"the name {args.out_name!r} is no identifier of C")
    if args.out_path is not None and not args.out_path.name:
        raise ValueError(f"the path {str(args.out_path)!r} ends in no file's name")
    kernel = kernel_in(args.path, args.kernel_name)
    entries = read_signature(args.signature, kernel.arg_names)
    constants = {e.name: e.value for e in entries if e.is_constant}
    ones = {e.name: 1 for e in entries if e.hint == 1}
    names = ("num_warps", "num_stages", "precise_math", "enable_fp_fusion")
    options = read_options({name: getattr(args, name) for name in names}, "apple")
    out_name = args.out_name or args.kernel_name
    suffix = "".join(
        f"{index}{'c' if e.hint == 1 else 'd'}" for index, e in enumerate(entries) if e.hint
    )
    target = ",".join(filter(None, (args.target, options.arithmetic))) or None
    unique = digest(entries, args.num_warps, args.num_stages, target)
    unique += f"_{suffix}" if suffix else ""
    source = ASTSource(
        kernel,
        {e.name: "constexpr" if e.hint == 1 else e.type for e in entries},
        constants | ones,
        {
            (index,): [["tt.divisibility", e.hint]]
            for index, e in enumerate(entries)
            if (e.hint or 0) > 1 and not e.type.startswith("tensordesc")
        },
    )
    spec = target_named(args.target)
    cache.configure_host_device()
    module, _, _ = module_of(source, options, name=f"{out_name}_{unique}")
    text = compile_module(module, warps_of(options), stages_of(options), spec, options.arithmetic)
    contract = json.loads(text["metadata"])
    if "messages" in contract:
        raise ValueError(
            f"{args.kernel_name} prints or asserts, which needs Python at the launch: take that out, or put it "
            "behind a constant"
        )
    described, grid = describe(args, contract, entries)
    described["target"] = spec
    described["arithmetic"] = options.arithmetic
    out = args.out_path or Path(out_name)
    paths = [out.with_name(f"{out.name}.{unique}.{ending}") for ending in ("metal", "json", "h")]
    described["metal"] = paths[0].name
    written = json.dumps(described, indent=2, allow_nan=False) + "\n"
    texts = [text["metal"], written, kernel_header(described, grid)]
    write_files(dict(zip(paths, texts, strict=True)))
    return paths


def describe(
    args: CompileArgs, contract: dict[str, Any], entries: Sequence[Entry]
) -> tuple[dict[str, Any], list[Size]]:
    """What a program needs to launch a kernel, which `link` reads; and the sizes of its grid."""
    types = {e.name: e.type for e in entries}
    arguments: list[dict[str, Any]] = []
    for one in contract["args"]:
        name, kind = one["name"], one["kind"]
        type = types.get(name, one["type"])
        if kind == "buffer":
            flags = {
                key: one[key] or (key == "writes" and one["atomic"]) for key in ("reads", "writes")
            }
            arguments.append(
                {"name": name, "kind": kind, "type": type, "buffer": one["slot"]} | flags
            )
        else:
            place = {"word": one["slot"], "words": one["words"]}
            arguments.append({"name": name, "kind": kind, "type": type} | place)
    integers = [a for a in arguments if a["kind"] == "scalar" and a["type"][0] in "iu"]
    constants = {e.name: e.value for e in entries if e.is_constant}
    ones = {e.name: 1 for e in entries if e.hint == 1}
    grid = read_grid(args.grid, {a["name"]: a["type"] for a in integers}, constants | ones)
    own = identifiers(a["name"] for a in arguments)
    described = {
        "format": 1,
        "kernel": args.out_name or args.kernel_name,
        "function": contract["name"],
        "source": Path(args.path).name,
        "constants": {name: _in_json(value) for name, value in constants.items()},
        "num_warps": args.num_warps or contract["num_warps"],
        "num_stages": args.num_stages or contract["num_stages"],
        "threads": contract["threads"],
        "threadgroup_bytes": contract["threadgroup_bytes"],
        "grid": [plain(size, own) for size in grid],
        "arguments": arguments,
        "scalar_buffer": contract.get("scalar_buffer"),
        "scalar_words": sum(a["words"] for a in arguments if a["kind"] == "scalar"),
        "parameters": [{"name": e.name, "type": e.type} for e in entries if not e.is_constant],
        "conditions": [
            {"name": e.name, "equals" if e.hint == 1 else "multiple_of": e.hint or 16}
            for e in entries
            if e.hint or e.type.startswith("tensordesc")  # whose base is aligned
        ],
    }
    return described, grid


def _in_json(value: Any) -> Any:
    """A constant; JSON has no numbers that are not finite, which are the texts "nan", "inf" and "-inf"."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m triton_metal.tools.compile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="a Python file with the kernel; it is run")
    parser.add_argument("--kernel-name", "-n", required=True, help="the kernel's name")
    parser.add_argument("--signature", "-s", required=True, help="types, hints and constants")
    parser.add_argument("--grid", "-g", required=True, help="the sizes of the grid")
    parser.add_argument("--target", "-t", help="metal, or metal:MACOS:CHIP")
    parser.add_argument("--num-warps", "-w", type=int, help="SIMD-groups of a program")
    parser.add_argument("--num-stages", "-ns", type=int, help="stages of loops")
    parser.add_argument(
        "--precise-math", action="store_true", help="functions and / as precise as Metal's"
    )
    parser.add_argument(
        "--no-fp-fusion",
        dest="enable_fp_fusion",
        action="store_const",
        const=False,
        help="no fma of a product and a sum",
    )
    parser.add_argument("--out-name", "-on", help="the function's name, in place of the kernel's")
    parser.add_argument("--out-path", "-o", type=Path, help="the files' name without its ending")
    given = CompileArgs(**vars(parser.parse_args(argv)))
    install()  # the file may import triton
    refusals = (ValueError, AssertionError, TritonError)
    return print_written(parser.prog, lambda: compile_kernel(given), *refusals)


if __name__ == "__main__":
    sys.exit(main())
