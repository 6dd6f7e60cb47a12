"""MLX's tiled convolutions of two and three dimensions against sums that NumPy makes."""

from __future__ import annotations

from math import lcm, prod

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import NEEDS_MLX
from mlx_kernels.convolution import Convolution
from mlx_kernels.running import assert_close, blank, checked, encode, i32, launch, metal

pytestmark = NEEDS_MLX


def tile_of(c: Convolution) -> tuple[int, ...]:
    return (32, 8, 16, 4, 1) if c.outputs // c.groups <= 16 else (32, 32, 16, 2, 2)


def counts(c: Convolution, tile: tuple[int, ...]) -> tuple[int, int]:
    return -(-c.outputs // c.groups // tile[1]), -(-c.batch * prod(c.size) // tile[0])


def filters(c: Convolution, tile: tuple[int, ...]) -> np.ndarray:
    """The filters, and memory for those that tiles read behind the last one and ignore."""
    w = encode(c.arrays()[1], c.t)
    more = 0 if tile[1] == 8 else -(c.outputs // c.groups) % tile[1]
    return np.concatenate([w, np.zeros((more, *w.shape[1:]), w.dtype)])


CASES_2D = {
    "few_outputs": Convolution(2, 32, 5, (9, 11), (3, 2), padding=(1, 1)),
    "strided": Convolution(1, 16, 48, (13, 10), (3, 3), (2, 3), (2, 1), t="float16"),
    "spread": Convolution(2, 48, 32, (12, 9), (2, 3), (1, 2), (1, 2), (3, 2), t="bfloat16"),
    "flipped": Convolution(1, 16, 16, (7, 8), (3, 4), padding=(1, 2), flip=True),
    "groups": Convolution(2, 64, 96, (6, 7), (3, 3), padding=(1, 1), groups=2, t="float16"),
    "one_channel": Convolution(2, 1, 7, (10, 11), (5, 3), (2, 1), (2, 1)),
    "two_channels": Convolution(1, 2, 32, (9, 9), (3, 3), padding=(1, 0), t="bfloat16"),
    "three_channels": Convolution(2, 3, 24, (11, 8), (4, 3), (2, 2), (1, 1), (1, 2), t="float16"),
    "four_channels": Convolution(1, 4, 64, (8, 9), (3, 3), flip=True),
    "long_filter": Convolution(1, 16, 32, (4, 40), (1, 18), padding=(0, 3), t="float16"),
}
#: Tiles that MLX takes for large images.
LARGE = [("strided", (64, 64, 16, 2, 2)), ("groups", (64, 32, 16, 2, 2))]
LARGE += [("spread", (32, 64, 16, 2, 2)), ("few_outputs", (64, 8, 16, 4, 1))]


def convolve_2d(c: Convolution, tile: tuple[int, ...], w: np.ndarray) -> None:
    columns, rows = counts(c, tile)
    few, gemm = c.gemm(tile)
    x, _ = c.arrays()
    small = not few and max(c.filter) <= 16
    (out,) = launch(
        "steel_conv",
        ("implicit_gemm_conv_2d", metal(c.t), *tile, few, small),
        {
            0: encode(x, c.t),
            1: w,
            2: blank((c.batch, *c.size, c.outputs), c.t),
            3: c.params(),
            4: gemm,
        },
        [2],
        threadgroups=(columns, rows, c.groups),
        group=(32, tile[4], tile[3]),
    )
    assert_close(out, c.exact(), c.t, terms=prod(c.filter) * c.channels // c.groups)


@pytest.mark.parametrize(
    ("case", "tile"), [(case, tile_of(c)) for case, c in CASES_2D.items()] + LARGE
)
def test_conv_2d(case: str, tile: tuple[int, ...]) -> None:
    c = CASES_2D[case]
    convolve_2d(c, tile, filters(c, tile))


def test_defect_filters_are_read_behind_the_last() -> None:
    """MLX asks for as many filters as the tile has, unless that is 8, and checks none of them."""
    c = CASES_2D["strided"]
    with (
        checked("bounds"),
        pytest.raises(
            metal_api.LaunchError, match=r"loader_channel_l\.h.*of 'B' \(buffer 1\), element 6912"
        ),
    ):
        convolve_2d(c, tile_of(c), encode(c.arrays()[1], c.t))


CASES_3D = {
    "few_outputs": Convolution(1, 16, 6, (5, 6, 7), (2, 3, 2), padding=(1, 1, 0)),
    "strided": Convolution(2, 32, 48, (5, 6, 4), (3, 2, 2), (2, 1, 3), (1, 0, 1), t="float16"),
    "spread": Convolution(
        1, 16, 32, (6, 5, 7), (2, 2, 3), (1, 2, 1), (1, 2, 1), (2, 3, 1), t="bfloat16"
    ),
    "flipped": Convolution(1, 16, 32, (4, 5, 4), (2, 3, 3), padding=(1, 1, 1), flip=True),
    "groups": Convolution(1, 64, 64, (4, 3, 5), (2, 2, 2), groups=2),
    "long_filter": Convolution(1, 16, 16, (2, 3, 40), (1, 2, 18), t="float16"),
}


@pytest.mark.parametrize("case", CASES_3D)
def test_conv_3d(case: str) -> None:
    c = CASES_3D[case]
    tile = tile_of(c)
    columns, rows = counts(c, tile)
    inputs = c.channels // c.groups
    taps = prod(c.filter)
    m, n, steps = c.batch * prod(c.size), c.outputs // c.groups, taps * -(-inputs // tile[2])
    x, _ = c.arrays()
    w = filters(c, tile)
    (out,) = launch(
        "steel_conv_3d",
        ("implicit_gemm_conv_3d", metal(c.t), *tile, max(c.filter) <= 16),
        {
            0: encode(x, c.t),
            1: w,
            2: blank((c.batch, *c.size, c.outputs), c.t),
            3: c.params(),
            4: i32(m, n, taps * inputs, steps, *c.jumps(tile[2]), columns, rows, 0),
        },
        [2],
        threadgroups=(columns, rows, c.groups),
        group=(32, tile[4], tile[3]),
    )
    assert_close(out, c.exact(), c.t, terms=taps * inputs)


CASES_GENERAL = {
    "ragged": Convolution(2, 21, 37, (9, 8), (3, 2), (1, 2), (1, 1)),
    "widened": Convolution(1, 32, 48, (5, 6), (3, 3), (1, 1), (2, 2), (1, 1), (2, 3), t="float16"),
    "widened_strided": Convolution(
        2, 10, 20, (5, 4), (4, 3), (3, 2), (2, 3), (1, 2), (2, 4), t="bfloat16"
    ),
    "flipped": Convolution(
        1, 16, 33, (6, 5), (3, 2), (1, 1), (2, 1), (1, 1), (2, 2), flip=True, t="float16"
    ),
}


def steps_of(c: Convolution, axis: int) -> tuple[list[int], int, int]:
    """The first tap and the number of taps for each of the results that differ, how many these are, and the taps' step."""
    widening, spread, stride = c.widening[axis], c.spread[axis], c.stride[axis]
    taps, jump = c.filter[axis], -spread if c.flip else spread
    step, results = lcm(widening, spread) // spread, lcm(widening, stride) // stride
    bases = []
    for i in range(results):
        place = i * stride - c.padding[axis] + ((taps - 1) * spread if c.flip else 0)
        first = 0
        while first < taps and place % widening:
            first, place = first + 1, place + jump
        bases += [first, (taps - first + step - 1) // step]
    return bases, results, step


@pytest.mark.parametrize("tile", [(32, 32, 16, 2, 2), (64, 64, 16, 2, 2)])
@pytest.mark.parametrize("case", CASES_GENERAL)
def test_conv_2d_general(case: str, tile: tuple[int, ...]) -> None:
    """Zeros between the pixels, and channels that tiles do not divide."""
    c = CASES_GENERAL[case]
    bm, bn, bk, wm, wn = tile
    height, width = steps_of(c, 0), steps_of(c, 1)
    rows = [-(-c.size[axis] // each[1]) for axis, each in enumerate((height, width))]
    m = c.batch * rows[0] * rows[1]
    columns = -(-c.outputs // bn)
    taps = prod(c.filter)
    gemm = i32(
        *(c.batch * prod(c.size), c.outputs, taps * c.channels, -(-c.channels // bk)),
        *(*c.jumps(bk), columns, -(-m // bm), 0),
    )
    jumps = i32(height[2], width[2], height[1], width[1], *rows, rows[0] * rows[1], m)
    x, w = c.arrays()
    (out,) = launch(
        "steel_conv_general",
        ("implicit_gemm_conv_2d_general", metal(c.t), *tile),
        {
            **{0: encode(x, c.t), 1: encode(w, c.t), 3: c.params(), 4: gemm, 5: jumps},
            **{2: blank((c.batch, *c.size, c.outputs), c.t), 6: i32(*height[0])},
            **{7: i32(*width[0])},
        },
        [2],
        threadgroups=(columns, -(-m // bm), height[1] * width[1]),
        group=(32, wn, wm),
        constants={200: c.channels % bk == 0},
    )
    assert_close(out, c.exact(), c.t, terms=taps * c.channels)
