"""The names of Triton's `testing` that ask NVIDIA's tools or GPUs: each says what to use in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import DeviceError


def _absent(name: str, reason: str) -> DeviceError:
    return DeviceError(f"triton_metal.testing.{name} is not available: {reason}")


_PEAKS = (
    "Apple does not publish the figures that it is computed from; measure with do_bench, and see "
    "triton_metal.devices.current().properties() for what is known about the device"
)


def nvsmi(attrs: Any) -> list[int]:
    """Raises DeviceError: it asks nvidia-smi."""
    raise _absent("nvsmi", "it asks nvidia-smi about a GPU of NVIDIA")


def cublas() -> Any:
    """Raises DeviceError: it is NVIDIA's library."""
    raise _absent("cublas", "cuBLAS runs on NVIDIA's GPUs; compare with torch or MLX")


def get_dram_gbps(device: Any = None) -> float:
    """Raises DeviceError: the bandwidth of the memory is not known."""
    raise _absent("get_dram_gbps", _PEAKS)


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: Any = None) -> float:
    """Raises DeviceError: Apple's GPUs have no tensor cores of known speed."""
    raise _absent("get_max_tensorcore_tflops", _PEAKS)


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: Any = None) -> float:
    """Raises DeviceError: the peak is not known."""
    raise _absent("get_max_simd_tflops", _PEAKS)


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Iterator[Any]:
    """Raises DeviceError: a Mac sets the clock of its GPU itself."""
    raise _absent("set_gpu_clock", "a Mac sets the clock of its GPU itself")
    yield  # a context manager even so


@contextmanager
def cuda_graph_without_gc(*args: Any, **kwargs: Any) -> Iterator[Any]:
    """Raises DeviceError: Metal has no CUDA graphs."""
    raise _absent("cuda_graph_without_gc", "Metal has no CUDA graphs")
    yield  # a context manager even so


def cuda_memcheck(**target_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of tests. The test runs unless it asks for the check, which raises DeviceError."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def call(*args: Any, **kwargs: Any) -> Any:
            if target_kwargs.items() <= kwargs.items():
                raise _absent(
                    "cuda_memcheck",
                    'it runs NVIDIA\'s checker; use triton_metal.launch_options(check="bounds")',
                )
            return test(*args, **kwargs)

        return call

    return decorate


def do_bench_proton(*args: Any, **kwargs: Any) -> Any:
    """Raises DeviceError: Proton measures other vendors' GPUs."""
    raise _absent("do_bench_proton", "Proton measures NVIDIA's and AMD's GPUs; use do_bench")


def do_bench_cudagraph_proton(*args: Any, **kwargs: Any) -> Any:
    """Raises DeviceError: Proton measures other vendors' GPUs."""
    raise _absent("do_bench_cudagraph_proton", "Proton measures NVIDIA's GPUs; use do_bench")
