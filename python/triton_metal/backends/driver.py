"""What a driver has: which device is there, and how kernels are loaded and launched on it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from .._utils import find_paths_if, is_iterable


class Benchmarker(Protocol):
    """Measures calls: milliseconds, or one number for each quantile."""

    def __call__(
        self, kernel_call: Callable[..., Any], *, quantiles: list[float], **kwargs: Any
    ) -> Sequence[float]: ...


class DriverBase(ABC):
    """A driver."""

    @classmethod
    @abstractmethod
    def is_active(cls) -> bool:
        """Whether its device is there."""

    @abstractmethod
    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type of an argument in the text of a kernel, for one such as "*fp32"."""

    @abstractmethod
    def get_current_target(self) -> Any:
        """The target of kernels for the current device."""

    @abstractmethod
    def get_active_torch_device(self) -> Any:
        """torch's name for the device."""

    @abstractmethod
    def get_benchmarker(self) -> Benchmarker:
        """The function that measures calls."""

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        """Memory for profilers' instrumentation."""
        import torch

        return torch.zeros(size, dtype=torch.int8, device=self.get_active_torch_device())


class GPUDriver(DriverBase):
    """A driver of GPUs that torch has as "cuda". No such GPU is driven here; the class is for programs that name it."""

    def __init__(self) -> None:
        import torch

        self.get_device_capability = torch.cuda.get_device_capability
        self.get_current_device = torch.cuda.current_device
        self.set_current_device = torch.cuda.set_device
        self.get_current_stream = lambda device: torch.cuda.current_stream(device).cuda_stream

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        return args

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        import torch

        device, interface = self.get_active_torch_device(), self.get_device_interface()
        if stream is None:
            return torch.zeros(size, dtype=torch.int8, device=device)
        if stream == 0:
            with interface.stream(interface.default_stream(device)):
                return torch.zeros(size, dtype=torch.int8, device=device)
        external = interface.ExternalStream(stream, device=device)
        with interface.stream(external):
            scratch = torch.zeros(size, dtype=torch.int8, device=device)
        scratch.record_stream(external)
        return scratch


def decompose_descriptor(arg: Any) -> list[Any]:
    """A tensor descriptor as the arguments that Triton's front end makes of it."""
    sizes = [*arg.shape, *arg.strides]
    return [arg.base, *sizes, arg.padding == "nan", arg.round_f32_to_tf32, *sizes]


def _is_descriptor(type: Any) -> bool:
    return isinstance(type, str) and type.startswith("tensordesc")


def _descriptor_types(type: str, described: bool, descriptor_type: str) -> list[str]:
    found = re.match(r"tensordesc(?:_im2col)?<([^[>]*)\[([^\]]*)\]", type)
    if found is None:
        raise AssertionError(f"{type!r} is not the type of a tensor descriptor")
    given = re.search(r",input_rank=(\d+)", type)
    rank = int(given[1]) if given else found[2].count(",") + 1
    first = [descriptor_type] if described else ["*" + found[1], *["i64"] * 2 * rank, "i1", "i1"]
    return [*first, *["i32"] * rank, *["i64"] * rank]


def expand_signature(
    signature: Iterable[Any], tensordesc_meta: Any, descriptor_type: str
) -> list[Any]:
    """A signature with the parts of each tensor descriptor in its place."""

    def parts(types: Iterable[Any]) -> list[Any]:
        result: list[Any] = []
        for type in types:
            if _is_descriptor(type):
                result += _descriptor_types(type, bool(tensordesc_meta), descriptor_type)
            else:
                result.append(tuple(parts(type)) if isinstance(type, tuple) else type)
        return result

    return parts(signature)


def wrap_handle_tensordesc_impl(
    launcher: Callable[..., Any],
    signature: dict[Any, Any],
    tensordesc_meta: Any,
    make_tensordesc_arg: Callable[..., list[Any]],
) -> Callable[..., Any]:
    """A launcher that takes tensor descriptors, from one that takes their parts.

    The last argument of a call is the sequence of the kernel's arguments. ``make_tensordesc_arg(descriptor, meta,
    others)`` gives the parts of one; ``tensordesc_meta`` has an entry for each, or is empty.
    """
    types = tuple(signature.values())
    if not find_paths_if(types, lambda _, type: _is_descriptor(type)):
        return launcher

    def launch(*arguments: Any) -> Any:
        others, metas = arguments[:-1], iter(tensordesc_meta or ())

        def parts(types: Iterable[Any], values: Iterable[Any]) -> list[Any]:
            result: list[Any] = []
            for type, value in zip(types, values, strict=False):
                if _is_descriptor(type):
                    result += make_tensordesc_arg(value, next(metas, None), others)
                else:
                    result.append(tuple(parts(type, value)) if is_iterable(type) else value)
            return result

        return launcher(*others, parts(types, arguments[-1]))

    return launch
