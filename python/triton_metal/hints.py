"""Hints of kernels written for other GPUs that change nothing on Metal: each is named once in a process."""

from __future__ import annotations

import warnings

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
        # The warning is for who called the function that read the hint.
        warnings.warn(f"{name}={value!r} changes nothing on Metal: {IGNORED[name]}", stacklevel=3)
