"""PyTorch's Inductor on kernels of triton_metal. This module imports Inductor; `triton_metal.torch` decides when.

Inductor's code generation for Triton is PyTorch's own. What is here keeps its kernels within what Metal binds, and makes
Triton's code generation one of the choices for "mps".
"""

from __future__ import annotations

from typing import Any

from torch._inductor import config
from torch._inductor.codegen import common
from torch._inductor.codegen.mps_device_op_overrides import MPSDeviceOpOverrides
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.scheduler import ForeachKernelSchedulerNode

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
