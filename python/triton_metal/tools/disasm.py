"""The machine code of kernels. Apple publishes none, so that these functions say where the kernel's text is."""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse() -> NoReturn:
    raise RuntimeError(
        "triton_metal has no machine code to show: SASS is NVIDIA's, and Apple does not publish that of its GPUs. "
        'kernel.asm["metal"] has the kernel\'s Metal text'
    )


def get_sass(cubin_asm: Any, fun: Any = None) -> str:
    """Raises RuntimeError."""
    _refuse()


def extract(file_path: Any, fun: Any) -> str:
    """Raises RuntimeError."""
    _refuse()


def path_to_cuobjdump() -> str:
    """Raises RuntimeError."""
    _refuse()
