"""Rows of the table that convolve images."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from triton_metal import ops
from triton_metal.ops._choices import forced
from triton_metal.ops._convolving import BLOCKS

from against.along_rows import typed
from against.problem import Case, Launch, Problem, default, near
from mlx_kernels.convolution import Convolution
from mlx_kernels.parameters import tiles
from mlx_kernels.running import blank, decode, encode, i32, launch, metal


def mlx_tile(c: Convolution) -> tuple[int, ...]:
    """MLX's tile, the same on all chips."""
    pixels = c.batch * prod(c.size)
    bm = 64 if pixels >= 8192 and c.channels >= 64 else 32
    if c.outputs <= 16:
        return bm, 8, 16, 4, 1
    return bm, 64 if bm == 64 or c.outputs >= 64 else 32, 16, 2, 2


def shipped(product: Launch, c: Convolution) -> dict[str, Launch]:
    """The convolution with other blocks of the sizes that it chooses from: steps of 16 inputs, as MLX's, and no fewer pixels and outputs
    than MLX's tile of 32×32, where there are as many outputs.
    """
    found: dict[str, Launch] = {}
    widths = [n for n in (16, 32, 64) if min(32, c.outputs) <= n <= c.outputs]
    for m, n in ((m, n) for m in (32, 64) for n in widths):

        def launch(config: tuple[int, ...] = (m, n, 16)) -> np.ndarray:
            with forced(BLOCKS, config):
                return product()

        found[f"blocks ({m}, {n}, 16)"] = launch
    return found


def _convolution(c: Convolution) -> Problem:
    x, w = c.arrays()
    tile, t = mlx_tile(c), c.t
    few, gemm = c.gemm(tile)
    # The last tile reads filters behind the last one, and ignores them.
    more = 0 if tile[1] == 8 else -c.outputs % tile[1]
    stored = encode(w, t)
    filters = np.concatenate([stored, np.zeros((more, *w.shape[1:]), stored.dtype)])
    out_shape = (c.batch, *c.size, c.outputs)

    def run() -> np.ndarray:
        (out,) = launch(
            "steel_conv",
            ("implicit_gemm_conv_2d", metal(t), *tile, few, not few and max(c.filter) <= 16),
            {0: encode(x, t), 1: filters, 2: blank(out_shape, t), 3: c.params(), 4: gemm},
            [2],
            threadgroups=(tiles(c.outputs, tile[1]), tiles(c.batch * prod(c.size), tile[0]), 1),
            group=(32, tile[4], tile[3]),
        )
        return decode(out, t)

    images, weights = typed(x, t), typed(w, t)
    product: Launch = lambda: ops.conv2d(images, weights, stride=c.stride, padding=c.padding)  # noqa: E731
    ours = default(product)
    if c.channels >= 16:
        ours |= shipped(product, c)
    theirs = {"×".join(map(str, tile)): run}
    return Problem(ours, theirs, near(c.exact(), t, terms=prod(c.filter) * c.channels))


def _convolution_3d(c: Convolution) -> Problem:
    x, w = c.arrays()
    tile, t = mlx_tile(c), c.t
    more = 0 if tile[1] == 8 else -c.outputs % tile[1]
    stored = encode(w, t)
    filters = np.concatenate([stored, np.zeros((more, *w.shape[1:]), stored.dtype)])
    taps, pixels = prod(c.filter), c.batch * prod(c.size)
    rows, columns = tiles(pixels, tile[0]), tiles(c.outputs, tile[1])
    steps = taps * tiles(c.channels, tile[2])
    sizes = pixels, c.outputs, taps * c.channels, steps, *c.jumps(tile[2]), columns, rows, 0

    def run() -> np.ndarray:
        (out,) = launch(
            "steel_conv_3d",
            ("implicit_gemm_conv_3d", metal(t), *tile, max(c.filter) <= 16),
            {
                0: encode(x, t),
                1: filters,
                2: blank((c.batch, *c.size, c.outputs), t),
                3: c.params(),
                4: i32(*sizes),
            },
            [2],
            threadgroups=(columns, rows, 1),
            group=(32, tile[4], tile[3]),
        )
        return decode(out, t)

    images, weights = typed(x, t), typed(w, t)
    ours = default(lambda: ops.conv3d(images, weights, stride=c.stride, padding=c.padding))
    check = near(c.exact(), t, terms=taps * c.channels)
    return Problem(ours, {"×".join(map(str, tile)): run}, check)


def _convolution_1d(c: Convolution) -> Problem:
    """A convolution of two dimensions of which the second is 1, as MLX has it."""
    problem = _convolution(c)
    x, w = c.arrays()
    signals, weights = typed(x[:, :, 0], c.t), typed(w[:, :, 0], c.t)
    ours = default(lambda: ops.conv1d(signals, weights, stride=c.stride[0], padding=c.padding[0]))
    return Problem(ours, problem.mlx, problem.check)


def cases() -> Iterator[Case]:
    for batch, size, channels, outputs, taps, stride, t, quick in (
        (1, 32, 64, 64, 3, 1, "float16", True),
        (2, 31, 32, 48, 3, 2, "float16", False),
        (1, 28, 64, 128, 1, 1, "float32", False),
    ):
        pad = taps // 2
        c = Convolution(
            *(batch, channels, outputs, (size, size), (taps, taps), (stride, stride), (pad, pad)),
            t=t,
        )
        shape = f"{batch}×{size}×{size}×{channels} by {outputs}×{taps}×{taps}, stride {stride}"
        yield Case("convolution", shape, t, lambda c=c: _convolution(c), quick=quick)
    for batch, length, channels, outputs, taps, stride, t in (
        (2, 512, 64, 128, 3, 1, "float16"),
        (1, 1000, 32, 64, 5, 2, "float32"),
    ):
        pad = taps // 2
        c = Convolution(
            *(batch, channels, outputs, (length, 1), (taps, 1), (stride, 1), (pad, 0)), t=t
        )
        shape = f"{batch}×{length}×{channels} by {outputs}×{taps}, stride {stride}"
        yield Case("convolution 1D", shape, t, lambda c=c: _convolution_1d(c))
    c = Convolution(1, 32, 64, (8, 14, 14), (3, 3, 3), (1, 1, 1), (1, 1, 1), t="float16")
    shape = "1×8×14×14×32 by 64×3×3×3, stride 1"
    yield Case("convolution 3D", shape, c.t, lambda c=c: _convolution_3d(c))
