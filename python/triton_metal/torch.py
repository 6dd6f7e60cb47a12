"""``torch.compile`` on kernels of triton_metal.

On CPU tensors nothing has to be registered: where ``import triton`` means triton_metal, the setting
``torch._inductor.config.cpu_backend = "triton"`` is enough. On a Mac, ``register("mps")`` makes Inductor generate Triton
kernels for tensors on "mps", in place of PyTorch's own code generation for Metal.
"""

from __future__ import annotations

import importlib

from .as_triton import install
from .errors import LaunchValueError

_DEVICES = ("cpu", "mps")


def register(device: str) -> None:
    """Has ``torch.compile`` generate Triton kernels, which triton_metal compiles, for tensors on "cpu" or "mps".

    This calls `triton_metal.install`. Raises RuntimeError if another Triton has been imported, and LaunchValueError for
    another device.
    """
    _check(device)
    install()
    inductor = importlib.import_module("triton_metal.inductor")
    if device == "cpu":
        importlib.import_module("torch._inductor.config").cpu_backend = "triton"
    inductor.register(device)


def unregister(device: str) -> None:
    """Returns to PyTorch's own code generation for a device."""
    _check(device)
    if device == "cpu":
        importlib.import_module("torch._inductor.config").cpu_backend = "cpp"
    importlib.import_module("triton_metal.inductor").unregister(device)


def _check(device: str) -> None:
    if device not in _DEVICES:
        raise LaunchValueError(
            f"torch.compile has no device {device!r} for triton_metal: it is one of {', '.join(_DEVICES)}"
        )
