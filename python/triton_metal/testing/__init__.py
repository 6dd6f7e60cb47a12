"""Measurements, comparisons, helpers for tests, and devices that stand in for a Mac's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..codegen import CodegenOptions, RuntimeLeaf, generate_module
from ..functions import KernelFunction
from ..signatures import type_of
from .bench import do_bench, do_bench_cudagraph
from .close import assert_close
from .perf import Benchmark, Mark, perf_report
from .vendors import (
    cublas,
    cuda_graph_without_gc,
    cuda_memcheck,
    do_bench_cudagraph_proton,
    do_bench_proton,
    get_dram_gbps,
    get_max_simd_tflops,
    get_max_tensorcore_tflops,
    nvsmi,
    set_gpu_clock,
)

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "contract_device",
    "cublas",
    "cuda_graph_without_gc",
    "cuda_memcheck",
    "do_bench",
    "do_bench_cudagraph",
    "do_bench_cudagraph_proton",
    "do_bench_proton",
    "find_quirks",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "refusing",
    "set_gpu_clock",
    "ttir",
]


def ttir(
    kernel: KernelFunction,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any] | None = None,
    divisibility: Mapping[str, int] | None = None,
) -> Any:
    """The TTIR module of a kernel, without compiling it further.

    ``signature`` names the type of each run-time parameter ("*fp32", "i32", ...).
    """
    constants = dict(constexprs or {})
    arguments: dict[str, Any] = {}
    for param in kernel.params:
        if param.name in constants:
            arguments[param.name] = constants[param.name]
        elif param.name in signature:
            arguments[param.name] = RuntimeLeaf(type_of(signature[param.name]))
        else:
            arguments[param.name] = param.default
    return generate_module(
        kernel, arguments, dict(divisibility or {}), CodegenOptions(debug=kernel.debug)
    )


def contract_device(name: str, **options: Any) -> Any:
    """In this block, launches use the route of "mps" or "mlx" on a Mac, and run on the host Metal device.

    "mlx-graph" runs them as MLX's own operations instead. Stand-ins replace `torch.mps.compile_shader` and `mx.fast.metal_kernel`. They accept and refuse the same
    arguments. CPU tensors and NumPy arrays stand in for the framework's arrays.

    >>> import numpy as np, triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def fill(x, value):
    ...     tl.store(x + tl.program_id(0), value)
    >>> x = np.zeros(3, np.float32)
    >>> with triton_metal.testing.contract_device("mps"):
    ...     kernel = fill[(3,)](x, 1.5)
    >>> x.tolist()
    [1.5, 1.5, 1.5]
    """
    from .contract import contract_device

    return contract_device(name, **options)


def find_quirks(text: str, *, file_name: str = "kernel.metal", safe_math: bool = False) -> Any:
    """What Apple's compilers and GPUs are known to get wrong in a Metal text, as a list of `QuirkHit`.

    ``safe_math`` says that the program that compiles the text sets the safe math mode. The text is parsed by the host
    device's front end; a text that does not parse raises ValueError. docs/apple-quirks.md explains the rows.

    >>> import triton_metal
    >>> hits = triton_metal.testing.find_quirks(
    ...     "kernel void k(device uint *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {\\n"
    ...     "  x[i] = (i / 65536) % 6;\\n"
    ...     "}")
    >>> [(hit.row, hit.line) for hit in hits]
    [(2, 2)]
    """
    from .quirks import find_quirks

    return find_quirks(text, file_name=file_name, safe_math=safe_math)


def refusing(kind: str, **options: Any) -> Any:
    """In this block the contract devices refuse kernels as Apple's compiler and GPUs do.

    ``kind`` is "text", "language", "no function", "pipeline", "internal", "threads" and others. The result lists
    the texts that were refused.

    >>> import numpy as np, triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def fill(x, value, BLOCK: tl.constexpr):
    ...     tl.store(x + tl.arange(0, BLOCK), value)
    >>> x = np.zeros(256, np.float32)
    >>> with contract_device("mps"), refusing("pipeline") as state:
    ...     try:
    ...         fill[(1,)](x, 1.5, BLOCK=256, num_warps=1)
    ...     except triton_metal.DeviceRefusal as error:
    ...         print(error.kind, len(state.refused) > 0, x.any())
    pipeline True False
    """
    from .refused import refusing

    return refusing(kind, **options)
