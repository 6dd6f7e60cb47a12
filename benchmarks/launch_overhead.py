"""What launching a compiled kernel costs on top of the kernel, in microseconds.

python benchmarks/launch_overhead.py [--limit 20]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def nearly_nothing_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=1) for block in (32, 64)]
tuned_kernel = triton.autotune(CONFIGS, key=["n"])(nearly_nothing_kernel)


def median_us(function: Callable[[], object], repeat: int = 2000) -> float:
    """The median microseconds of a call."""
    for _ in range(50):
        function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        function()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


def mlx_figures() -> dict[str, float]:
    """Launches on MLX arrays: at once, where all of them are computed, and as a part of MLX's graph."""
    import mlx.core as mx
    from triton_metal.mlx import in_place

    mx.set_default_device(mx.cpu)
    x, y, out = (mx.ones((32,)) for _ in range(3))

    def launch() -> None:
        nearly_nothing_kernel[(1,)](x, y, out, 32, BLOCK=32, num_warps=1)

    figures = {"MLX arrays": median_us(launch)}
    at_once = in_place.native().run_at_once(False)
    try:
        figures["MLX's graph"] = median_us(launch)
    finally:
        mx.eval(out)
        in_place.native().run_at_once(at_once)
    return figures


def lookup_us(x: object, y: object, out: object) -> float:
    """What autotune's look-up adds to a launch with the same options."""
    tuned_kernel[(1,)](x, y, out, 32)
    keywords = {k: v for k, v in tuned_kernel.best_config.all_kwargs().items() if k != "num_ctas"}

    # In turn, so that both see the same machine.
    def tuned() -> float:
        return median_us(lambda: tuned_kernel[(1,)](x, y, out, 32), 1000)

    def plain() -> float:
        return median_us(lambda: nearly_nothing_kernel[(1,)](x, y, out, 32, **keywords), 1000)

    return statistics.median(tuned() - plain() for _ in range(5))


def profile_us(x: object, y: object, out: object) -> float:
    """What a profile adds to a launch."""

    def launch() -> None:
        nearly_nothing_kernel[(1,)](x, y, out, 32, BLOCK=32, num_warps=1)

    def profiled() -> float:
        with triton.profile():
            return median_us(launch, 1000)

    # In turn, so that both see the same machine.
    return statistics.median(profiled() - median_us(launch, 1000) for _ in range(7))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--limit", type=float, help="fail if a launch costs more than this many microseconds"
    )
    parser.add_argument(
        "--lookup-limit", type=float, help="fail if autotune's look-up adds more than this"
    )
    parser.add_argument(
        "--profile-limit", type=float, help="fail if a profile adds more microseconds to a launch"
    )
    arguments = parser.parse_args()
    x, y, out = (np.ones(32, np.float32) for _ in range(3))
    # One program of one SIMD-group that adds 32 numbers: some ten nanoseconds of work.
    figures = {
        "NumPy arrays": median_us(
            lambda: nearly_nothing_kernel[(1,)](x, y, out, 32, BLOCK=32, num_warps=1)
        )
    }
    lookups = {"NumPy arrays": lookup_us(x, y, out)}
    if find_spec("torch"):
        import torch

        a, b, c = (torch.ones(32) for _ in range(3))
        figures["torch tensors"] = median_us(
            lambda: nearly_nothing_kernel[(1,)](a, b, c, 32, BLOCK=32, num_warps=1)
        )
        lookups["torch tensors"] = lookup_us(a, b, c)
    if find_spec("mlx"):
        figures |= mlx_figures()
    for name, us in figures.items():
        print(f"{name:15} {us:6.1f} us a launch")
    profile = profile_us(x, y, out)
    print(f"{'NumPy arrays':15} {profile:6.2f} us more in a profile")
    for name, us in lookups.items():
        print(f"{name:15} {us:6.1f} us more for autotune's look-up")
    if arguments.lookup_limit and max(lookups.values()) > arguments.lookup_limit:
        sys.exit(f"a look-up takes more than {arguments.lookup_limit:g} us")
    if arguments.profile_limit and profile > arguments.profile_limit:
        sys.exit(f"a profile adds more than {arguments.profile_limit:g} us")
    if arguments.limit and max(figures.values()) > arguments.limit:
        sys.exit(f"more than {arguments.limit:g} us")


if __name__ == "__main__":
    main()
