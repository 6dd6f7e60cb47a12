"""Prints the TTIR of every kernel in kernels.py with the stock Triton on the path, no GPU needed.

PYTHONPATH=<a Triton> python generate.py <folder for the .ttir files> [kernel ...]
"""

import inspect
import pathlib
import re
import sys

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

import kernels

RUN = (
    "// RUN: triton-metal-opt --mlir-print-debuginfo --mlir-use-nameloc-as-prefix %s"
    " | %python %S/../same.py %s\n"
)


def ttir(fn, signature, constexprs, attrs, staged=True) -> str:
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    names = list(inspect.signature(fn.fn).parameters)
    types = {name: signature.get(name, "constexpr") for name in names}
    hints = {(names.index(name),): [["tt.divisibility", value]] for name, value in attrs.items()}
    source = ASTSource(fn, types, constexprs, hints)
    options = backend.parse_options({"num_warps": 4, "debug": True, "sanitize_overflow": False})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target,
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    if staged:
        stages = {}
        backend.add_stages(stages, options, source.language)
        module = stages["ttir"](module, {})
    text = str(module)
    # The fixtures do not depend on where this ran.
    return re.sub(r'"[^"]*/(kernels\.py|triton/[a-z_/]*\.py)"', r'"\1"', text)


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, (fn, signature, constexprs, attrs) in kernels.KERNELS.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        try:
            text = ttir(fn, signature, constexprs, attrs, name not in kernels.UNSTAGED)
        except Exception as error:  # one version lacks what another has: no fixture then
            print(f"{triton.__version__} {name}: {error}", file=sys.stderr)
            continue
        (out / f"{name}.ttir").write_text(RUN + text)


if __name__ == "__main__":
    main()
