"""The cost of a launch from the counters of the host device, where no GPU can be timed.

A cost is no time, and says nothing about a certain Apple GPU. It is a weighted sum of what the launch did: the more
bytes, instructions and barriers, the higher it is, and the same launch always has the same cost.
"""

from __future__ import annotations

from collections.abc import Mapping

#: What one of each costs; the unit is an operation of one lane. A line has 128 bytes.
WEIGHTS: Mapping[str, float] = {
    "device_lines_read": 512,
    "device_lines_written": 512,
    "constant_lines_read": 128,
    "threadgroup_bytes_read": 0.5,
    "threadgroup_bytes_written": 0.5,
    "private_bytes_read": 2,
    "private_bytes_written": 2,
    "atomics": 64,
    "simdgroup_matrix_multiplies": 256,
    "simdgroup_barriers": 32,
    "simd_shuffles": 32,
    "simd_reductions": 160,
    "threadgroup_barriers": 256,
    **{
        f"{kind}_{operation}": 1
        for kind in ("f32", "f16", "bf16", "int")
        for operation in ("add", "mul", "fma", "other")
        if (kind, operation) != ("int", "fma")
    },
    "math_calls": 8,
    "simdgroups": 64,
    "threadgroups": 512,
}


def cost(counters: Mapping[str, int]) -> float:
    """The cost of a launch with these counters.

    >>> cost({"device_lines_read": 2, "f32_add": 64, "threadgroups": 1})
    1600.0
    """
    return float(sum(weight * counters.get(name, 0) for name, weight in WEIGHTS.items()))
