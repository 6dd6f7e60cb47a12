"""Has each kernel recorded that triton_metal's front end compiles in this process."""

from __future__ import annotations

from typing import Any

from recorder import Recorder
from specialisation import generate
from to_stock import ToStock
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_metal import launcher
from triton_metal.compiler import compiler
from triton_metal.errors import CompileError
from triton_metal.sources import ASTSource as OwnASTSource
from triton_metal_backend.compiler import MetalBackend


def stock_text(source: OwnASTSource, options: Any, translator: ToStock) -> str:
    """The module that stock Triton generates for the same function and specialisation."""
    translator.next_round()
    target = GPUTarget("metal", "host", 32)
    backend = MetalBackend(target)
    chosen = backend.parse_options(
        {"debug": options.debug, "sanitize_overflow": options.sanitize_overflow}
    )
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    constants = {path: translator.value(value) for path, value in source.constants.items()}
    translated = ASTSource(
        translator.value(source.fn), dict(source.signature), constants, dict(source.attrs)
    )
    implementation = backend.get_codegen_implementation(chosen)
    module = translated.make_ir(target, chosen, implementation, backend.get_module_map(), context)
    return module.str_nodebug()


def install(recorder: Recorder) -> None:
    translator = ToStock()
    build = launcher.build

    def recorded(job: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(job.src, OwnASTSource):
            try:
                # Without what a launch knows besides the specialisation, such as arrays that overlap.
                own = generate(job.src, job.options).str(False)
            except CompileError:
                own = ""  # a launch's own arguments, which the specialisation does not carry
            if own:
                recorder.record(
                    job.src,
                    "own",
                    own,
                    "stock",
                    lambda: stock_text(job.src, job.options, translator),
                )
        return build(job, *arguments, **options)

    launcher.build = compiler.build = recorded
