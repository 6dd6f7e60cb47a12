"""Hints of kernels written for other GPUs that change nothing on Metal: each is named once in a process."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

#: Hints without a counterpart in Metal, and why each changes nothing.
IGNORED = {
    "num_ctas": "Metal has no clusters of threadgroups",
    "cluster_dims": "Metal has no clusters of threadgroups",
    "launch_cluster": "Metal has no clusters of threadgroups",
    "maxnreg": "Apple's compiler decides how many registers a thread has",
    "launch_cooperative_grid": "Metal does not promise that all threadgroups run at the same time",
    "launch_pdl": "Metal orders launches by the memory that they use",
    "clc": "Metal distributes threadgroups itself",
    "extern_libs": "Metal links no LLVM bitcode",
    "warp_specialize": "Metal has no copies that one SIMD-group could start for the others",
}

_said: set[str] = set()


def say_ignored(name: str, value: object) -> None:
    """Warns that this hint changes nothing, the first time that it is met."""
    if name not in _said:
        _said.add(name)
        message = f"{name}={value!r} changes nothing on Metal: {IGNORED[name]}"
        warnings.warn(message, stacklevel=depth_of_program())


def depth_of_program() -> int:
    """How many frames lie between the caller's caller and the program, which is in none of the packages that launch kernels."""
    packages = [Path(__file__).parent, Path(__file__).parent.with_name("triton_metal_backend")]
    stock = getattr(sys.modules.get("triton"), "__file__", None)
    if stock:
        packages.append(Path(stock).parent)
    depth = 2
    frame = sys._getframe(2)
    while frame.f_back is not None and any(
        Path(frame.f_code.co_filename).is_relative_to(package) for package in packages
    ):
        frame = frame.f_back
        depth += 1
    return depth
