"""PyTorch's Inductor on kernels of triton_metal. This module imports Inductor; `triton_metal.torch` decides when.

Inductor's code generation for Triton is PyTorch's own. What is here keeps its kernels within what Metal binds, and makes
Triton's code generation one of the choices for "mps".
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch._inductor import config, decomposition, ir, lowering, select_algorithm, utils
from torch._inductor.codegen import common
from torch._inductor.codegen.mps_device_op_overrides import MPSDeviceOpOverrides
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.scheduler import ForeachKernelSchedulerNode

aten = torch.ops.aten

#: The arrays of a kernel. Metal binds 31 buffers; one holds the numbers, and a kernel with assertions has four more.
MAX_ARRAYS = 26


class MetalScheduling(TritonScheduling):
    """Inductor's code generation for Triton, with at most `MAX_ARRAYS` arrays in a kernel."""

    def can_fuse(self, node1: Any, node2: Any) -> bool:
        """Whether two nodes become one kernel."""
        groups = (ForeachKernelSchedulerNode,)
        # The nodes of a group are asked about one by one.
        if not isinstance(node1, groups) and not isinstance(node2, groups):
            exceeds = self.scheduler.fusion_prevent_too_many_reads_and_writes
            if exceeds(node1, node2, MAX_ARRAYS):
                return False
        return super().can_fuse(node1, node2)

    can_fuse_vertical = can_fuse
    can_fuse_horizontal = can_fuse

    def generate_combo_kernel_code(self, *args: Any, **kwargs: Any) -> Any:
        """The kernels for what could be one, such as a step of an optimiser on all parameters."""
        with config.patch(combo_kernel_max_num_args=MAX_ARRAYS):
            return super().generate_combo_kernel_code(*args, **kwargs)

    def create_kernel_choices(
        self, kernel_features: Any, kernel_args: list[Any], kernel_kwargs: dict[str, Any]
    ) -> Any:
        """The kernels for these nodes.

        None waits for other programs of its grid: Metal does not promise that they run at the same time, so no reduction
        is a cooperative one.
        """
        alone = kernel_kwargs | {"override_cooperative_reduction": False}
        return super().create_kernel_choices(kernel_features, kernel_args, alone)


def _generates(device: str) -> bool:
    """Whether kernels for a device are `MetalScheduling`'s."""
    return device in _before and (device != "cpu" or config.cpu_backend == "triton")


_lacks_atomic_add = utils.needs_fallback_due_to_atomic_add_limitations
_is_scatter_fallback = utils.use_scatter_fallback


def _lacks_addition(dtype: torch.dtype) -> bool:
    """Whether Triton has no atomic addition for a dtype, so that PyTorch itself adds at indices."""
    small = dtype in (torch.int8, torch.uint8, torch.int16, torch.uint16)
    return _lacks_atomic_add(dtype) or (small and any(map(_generates, _before)))


def _falls_back(*args: Any, **kwargs: Any) -> bool:
    """Whether PyTorch itself scatters: it is asked as Inductor asks itself."""
    if _is_scatter_fallback(*args, **kwargs):
        return True
    given = inspect.signature(_is_scatter_fallback).bind(*args, **kwargs).arguments
    return given["reduction_type"] is not None and _lacks_addition(given["self_dtype"])


_num_splits = ir.Scan.num_splits


def _splits_of_scan(device: Any, **kwargs: Any) -> Any:
    """Among how many programs a scan is split: one, as each would wait for those before it."""
    hint, splits = _num_splits(device=device, **kwargs)
    return hint, 1 if _generates(device.type) else splits


_select_algorithm = select_algorithm.AlgorithmSelectorCache.__call__


def _select_alone(
    self: Any, name: str, choices: Any, input_nodes: Any, layout: Any, *args: Any, **kwargs: Any
) -> Any:
    """Chooses an algorithm without what follows it: Inductor times that with programs that need a stream of CUDA."""
    if _generates(layout.device.type):
        kwargs["return_multi_template"] = False
    return _select_algorithm(self, name, choices, input_nodes, layout, *args, **kwargs)


_convolution = lowering.lowerings[aten.convolution]


def _convolve(x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    """A convolution whose bias is added behind it where Triton's templates, which take none, are tried. Inductor does so itself
    for all devices but the CPU.
    """
    on_cpu = x.get_device().type == "cpu" and _generates("cpu")
    if bias is None or not on_cpu or not (config.max_autotune or config.max_autotune_gemm):
        return _convolution(x, weight, bias, *args, **kwargs)
    result = _convolution(x, weight, None, *args, **kwargs)
    shape = [result.get_size()[1], *[1] * (len(result.get_size()) - 2)]
    lowered = lowering.lowerings
    return lowered[aten.add](result, lowered[aten.view](bias, shape))


class _MPSOverrides(MPSDeviceOpOverrides):
    """What Inductor writes into a program for the device "mps", which has one stream."""

    def import_get_raw_stream_as(self, name: str) -> str:
        return f"def {name}(_): return 0"

    def synchronize(self) -> str:
        return "torch.mps.synchronize()"


def register(device: str) -> None:
    """Makes Triton's code generation with Metal's limits that of a device: "cpu" or "mps".

    For "cpu" it takes the place of Triton's code generation, which ``torch._inductor.config.cpu_backend`` chooses. For
    "mps" it takes the place of PyTorch's own code generation until `unregister`.
    """
    common.init_backend_registration()
    if device not in _before:
        _before[device] = common.device_codegens[device]
    found = _before[device]
    for module in (decomposition, lowering, utils):
        module.needs_fallback_due_to_atomic_add_limitations = _lacks_addition
    lowering.use_scatter_fallback = _falls_back
    select_algorithm.AlgorithmSelectorCache.__call__ = _select_alone  # type: ignore[method-assign]
    for name in (aten.convolution, aten.convolution.default):
        lowering.lowerings[name] = _convolve
    ir.Scan.num_splits = staticmethod(_splits_of_scan)  # type: ignore[method-assign,assignment]

    def scheduling(scheduler: Any) -> Any:
        if device == "cpu" and config.cpu_backend != "triton":
            return found.scheduling(scheduler)
        return MetalScheduling(scheduler)

    common.register_backend_for_device(
        device,
        scheduling,
        found.wrapper_codegen,
        found.cpp_wrapper_codegen,
        found.fx_wrapper_codegen,
    )
    if device == "mps":
        common.register_device_op_overrides(device, _MPSOverrides())


def unregister(device: str) -> None:
    """Returns a device to PyTorch's own code generation."""
    found = _before.pop(device, None)
    if found is None:
        return
    common.register_backend_for_device(
        device,
        found.scheduling,
        found.wrapper_codegen,
        found.cpp_wrapper_codegen,
        found.fx_wrapper_codegen,
    )
    if device == "mps":
        common.register_device_op_overrides(device, MPSDeviceOpOverrides())


#: What Inductor had for a device before.
_before: dict[str, Any] = {}
