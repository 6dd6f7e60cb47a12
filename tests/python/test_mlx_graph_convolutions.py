"""Shifted sums of products become convolutions in MLX graphs, where all of their places are a convolution's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl

mx = pytest.importorskip("mlx.core")

from triton_metal.mlx import graph  # noqa: E402

from test_mlx_graph_loops import compare, normal  # noqa: E402

pytestmark = [pytest.mark.own_route, pytest.mark.own_check]

#: As MLX's convolution, and as sums of slices.
FORMS = [pytest.param(True, id="conv_general"), pytest.param(False, id="slices")]


def is_raised(summary: Any, what: str = "a convolution of ") -> bool:
    return any(what in note for note in summary.raised)


@triton_metal.jit
def images_kernel(
    x, w, out, pixels, outputs, height, width, out_height, out_width,
    CHANNELS: tl.constexpr, TAPS_H: tl.constexpr, TAPS_W: tl.constexpr,
    STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr, PAD_H: tl.constexpr, PAD_W: tl.constexpr,
    DILATION_H: tl.constexpr, DILATION_W: tl.constexpr, FORM: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """An implicit product of matrices: pixels (n, h, w, c) and filters (outputs, h, w, c)."""
    pixel = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    column = pixel % out_width
    row = pixel // out_width % out_height
    image = pixel // (out_width * out_height)
    y0, x0 = row * STRIDE_H - PAD_H, column * STRIDE_W - PAD_W
    acc = tl.zeros((BM, BN), tl.float32)
    if FORM == "taps":
        STEPS: tl.constexpr = (CHANNELS + BC - 1) // BC
        for step in range(TAPS_H * TAPS_W * STEPS):
            tap, c = step // STEPS, step % STEPS * BC + tl.arange(0, BC)
            y, x_ = y0 + tap // TAPS_W * DILATION_H, x0 + tap % TAPS_W * DILATION_W
            inside = (pixel < pixels) & (y >= 0) & (y < height) & (x_ >= 0) & (x_ < width)
            at = ((image * height + y) * width + x_) * CHANNELS
            taps = (n * (TAPS_H * TAPS_W) + tap) * CHANNELS
            mask = inside[:, None] & (c[None, :] < CHANNELS)
            a = tl.load(x + at[:, None] + c[None, :], mask, other=0.0)
            mask = (n[:, None] < outputs) & (c[None, :] < CHANNELS)
            b = tl.load(w + taps[:, None] + c[None, :], mask, other=0.0)
            acc = tl.dot(a, tl.trans(b), acc, input_precision="ieee")
    elif FORM == "nested":
        c = tl.arange(0, BC)
        for tap_h in range(TAPS_H):
            y = y0 + tap_h * DILATION_H
            for tap_w in range(TAPS_W):
                x_ = x0 + tap_w * DILATION_W
                inside = (pixel < pixels) & (y >= 0) & (y < height) & (x_ >= 0) & (x_ < width)
                at = ((image * height + y) * width + x_) * CHANNELS
                taps = ((n * TAPS_H + tap_h) * TAPS_W + tap_w) * CHANNELS
                mask = inside[:, None] & (c[None, :] < CHANNELS)
                a = tl.load(x + at[:, None] + c[None, :], mask, other=0.0)
                mask = (n[None, :] < outputs) & (c[:, None] < CHANNELS)
                b = tl.load(w + taps[None, :] + c[:, None], mask, other=0.0)
                acc += tl.dot(a, b, input_precision="ieee")
    else:
        K: tl.constexpr = TAPS_H * TAPS_W * CHANNELS
        for step in range((K + BC - 1) // BC):
            k = step * BC + tl.arange(0, BC)
            tap, c = k // CHANNELS, k % CHANNELS
            y = y0[:, None] + (tap // TAPS_W * DILATION_H)[None, :]
            x_ = x0[:, None] + (tap % TAPS_W * DILATION_W)[None, :]
            inside = (pixel < pixels)[:, None] & (k < K)[None, :]
            inside = inside & (y >= 0) & (y < height) & (x_ >= 0) & (x_ < width)
            at = ((image[:, None] * height + y) * width + x_) * CHANNELS + c[None, :]
            a = tl.load(x + at, inside, other=0.0)
            mask = (n[None, :] < outputs) & (k[:, None] < K)
            b = tl.load(w + n[None, :] * K + k[:, None], mask, other=0.0)
            acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (pixel[:, None] < pixels) & (n[None, :] < outputs)
    tl.store(out + pixel[:, None] * outputs + n[None, :], acc.to(out.dtype.element_ty), mask)


class Images:
    """One convolution of images, as the kernel's arguments and as MLX's."""

    def __init__(
        self, x: tuple[int, ...], w: tuple[int, ...], stride: Any = (1, 1), padding: Any = (0, 0),
        dilation: Any = (1, 1), form: str = "taps", blocks: Any = (32, 16, 16),
    ) -> None:  # fmt: skip
        self.shapes, self.stride, self.padding, self.dilation = (x, w), stride, padding, dilation
        (batch, height, width, channels), (outputs, taps_h, taps_w, _) = x, w
        size = [
            (n + 2 * p - d * (t - 1) - 1) // s + 1
            for n, p, d, t, s in zip(x[1:3], padding, dilation, w[1:3], stride, strict=True)
        ]
        self.out = (batch, *size, outputs)
        pixels = batch * size[0] * size[1]
        self.scalars = (pixels, outputs, height, width, *size)
        self.constants = (channels, taps_h, taps_w, *stride, *padding, *dilation, form, *blocks)
        self.grid = (triton_metal.cdiv(outputs, blocks[1]), triton_metal.cdiv(pixels, blocks[0]))

    def arrays(self, dtype: Any = None) -> list[Any]:
        return [
            mx.array(normal(*shape, seed=seed)).astype(dtype or mx.float32)
            for seed, shape in enumerate(self.shapes)
        ]

    def call(self, function: Any, x: Any, w: Any, dtype: Any = None) -> Any:
        return function(
            x, w, *self.scalars, *self.constants, grid=self.grid,
            outputs={"out": (self.out, dtype or x.dtype)},
        )  # fmt: skip

    def mlx(self, x: Any, w: Any) -> Any:
        # Where filters are longer than the image, MLX reads outside of it.
        widths = [(0, 0), *((size, size) for size in self.padding), (0, 0)]
        return mx.conv_general(
            mx.pad(x, widths), w, stride=self.stride, kernel_dilation=self.dilation
        )


IMAGES = {
    "same": Images((2, 8, 8, 16), (16, 3, 3, 16), padding=(1, 1)),
    "valid": Images((2, 9, 7, 16), (16, 3, 3, 16)),
    "strided": Images((2, 9, 11, 16), (16, 3, 3, 16), (2, 2), (1, 1)),
    "stride beyond the filter": Images((1, 13, 13, 16), (16, 2, 2, 16), (3, 3), (1, 1)),
    "dilated": Images((2, 12, 10, 16), (16, 3, 3, 16), (1, 1), (2, 2), (2, 2)),
    "strided and dilated alike": Images((1, 16, 15, 16), (16, 3, 3, 16), (2, 2), (2, 2), (2, 2)),
    "different in each dimension": Images((2, 11, 33, 16), (16, 5, 3, 16), (1, 2), (2, 0), (1, 3)),
    "blocks of channels": Images((2, 8, 8, 32), (16, 3, 3, 32), padding=(1, 1)),
    "odd sizes": Images((3, 7, 5, 19), (21, 3, 3, 19), (2, 1), (1, 1)),
    "one image": Images((1, 6, 6, 16), (16, 3, 3, 16), padding=(1, 1)),
    "one row of taps": Images((2, 6, 9, 16), (16, 1, 5, 16), padding=(0, 2)),
    "padding beyond a row of taps": Images((2, 6, 9, 16), (16, 1, 5, 16), (1, 2), padding=(2, 2)),
    "filters longer than images": Images((1, 5, 4, 8), (20, 5, 3, 8), (2, 1), (5, 0), (3, 1)),
    "taps and channels together": Images((2, 8, 8, 3), (16, 3, 3, 3), (1, 1), (1, 1), form="flat"),
    "together, with a rest": Images((2, 9, 7, 5), (17, 3, 2, 5), (2, 2), (1, 1), form="flat"),
    "nested loops": Images((2, 8, 7, 16), (16, 3, 3, 16), (2, 1), (1, 1), form="nested"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_implicit_products_are_convolutions(dtype: str, name: str, form: bool) -> None:
    images = IMAGES[name]
    x, w = images.arrays(getattr(mx, dtype))
    kernel = graph(images_kernel, convolutions=form)
    summary = images.call(kernel.summary, x, w, mx.float32)
    assert is_raised(summary)
    assert summary.gathered == 0
    result = images.call(kernel, x, w, mx.float32)
    wanted = images.mlx(x.astype(mx.float32), w.astype(mx.float32))
    np.testing.assert_allclose(np.array(result), np.array(wanted), rtol=1e-4, atol=1e-4)


def test_the_note_has_the_size_of_the_filter() -> None:
    images = IMAGES["different in each dimension"]
    summary = images.call(graph(images_kernel).summary, *images.arrays())
    (note,) = [note for note in summary.raised if "a convolution of" in note]
    assert note.endswith("a convolution of 5x3")
    assert "test_mlx_graph_convolutions.py" in note


def test_the_device_and_the_graph_agree_on_images() -> None:
    images = IMAGES["odd sizes"]
    x, w = (np.array(array) for array in images.arrays())
    compare(
        images_kernel, images.grid, [x, w, np.zeros(images.out, "float32")],
        *images.scalars, *images.constants, tolerance=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "name", ["same", "strided", "dilated", "different in each dimension", "odd sizes"]
)
def test_transforms_take_convolutions_of_images(name: str, form: bool) -> None:
    images = IMAGES[name]
    x, w = images.arrays()
    kernel = graph(images_kernel, convolutions=form)

    def ours(x: Any, w: Any) -> Any:
        return images.call(kernel, x, w)

    weights = mx.array(normal(*images.out, seed=7))
    for argument in (0, 1):
        found, wanted = (
            mx.grad(lambda x, w, f=f: (f(x, w) * weights).sum(), argnums=argument)(x, w)
            for f in (ours, images.mlx)
        )
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-3, atol=1e-3)
    xs, ws = mx.stack([x, 2 * x, x - 1]), mx.stack([w, w + 1, 3 * w])
    for axes, arrays in [((0, None), (xs, w)), ((None, 0), (x, ws)), ((0, 0), (xs, ws))]:
        found = mx.vmap(ours, in_axes=axes)(*arrays)
        wanted = mx.stack(
            [images.mlx(*(a if axis is None else a[i] for a, axis in zip(arrays, axes, strict=True)))
             for i in range(3)]
        )  # fmt: skip
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-3, atol=1e-3)
    compiled = mx.compile(ours)
    for _ in range(2):
        np.testing.assert_allclose(
            np.array(compiled(x, w)), np.array(images.mlx(x, w)), rtol=1e-4, atol=1e-4
        )


@triton_metal.jit
def stencil_kernel(
    x, w, y, n, length, start, TAPS: tl.constexpr, STRIDE: tl.constexpr, DILATION: tl.constexpr,
    PADDING: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if KIND == "tile":
        P: tl.constexpr = triton_metal.next_power_of_2(TAPS)
        k = tl.arange(0, P)
        at = i[:, None] * STRIDE + k[None, :] * DILATION - PADDING
        values = tl.load(x + at, (at >= 0) & (at < n) & (k[None, :] < TAPS), other=0.0)
        filters = tl.load(w + k, k < TAPS, other=0.0)
        acc = tl.sum(values.to(tl.float32) * filters.to(tl.float32)[None, :], 1) + start
    else:
        acc = tl.zeros((BLOCK,), tl.float32) + start
        for k in range(TAPS):
            at = i * STRIDE + k * DILATION - PADDING
            if KIND == "backwards":
                at = i * STRIDE - k * DILATION + PADDING
            values = tl.load(x + at, (at >= 0) & (at < n), other=0.0)
            if KIND == "backward filter":
                filters = tl.load(w + TAPS - 1 - k)
            else:
                filters = tl.load(w + k)
            if KIND == "difference":
                acc -= values.to(tl.float32) * filters.to(tl.float32)
            else:
                acc += filters.to(tl.float32) * values.to(tl.float32)
    tl.store(y + i, acc, i < length)


def stencil(taps: int, stride: int, dilation: int, padding: int, kind: str, size: int) -> Any:
    """A call of the kernel, and MLX's convolution."""
    length = (size + 2 * padding - dilation * (taps - 1) - 1) // stride + 1

    def call(function: Any, x: Any, w: Any, start: float = 0.0) -> Any:
        return function(
            x, w, size, length, start, taps, stride, dilation, padding, kind, 64,
            grid=(triton_metal.cdiv(length, 64),), outputs={"y": ((length,), mx.float32)},
        )  # fmt: skip

    def mlx(x: Any, w: Any) -> Any:
        if kind in ("backward filter", "backwards"):
            w = w[::-1]
        if kind == "difference":
            w = -w
        # Backwards, the first place is `padding` and not `-padding`.
        low, high = padding, max(0, (length - 1) * stride + dilation * (taps - 1) + 1 - size)
        if kind == "backwards":
            low = dilation * (taps - 1) - padding
            high = (length - 1) * stride + padding + 1 - size
        x, w = (a.astype(mx.float32)[None, :, None] for a in (x, w))
        # MLX's gradient is wrong where the padding differs on both sides.
        x = mx.pad(x, [(0, 0), (max(0, low), max(0, high)), (0, 0)])
        return mx.conv_general(x, w, stride=stride, kernel_dilation=dilation)[0, :length, 0]

    return call, mlx


STENCILS = {
    "same": (3, 1, 1, 1, "loop", 200),
    "valid": (5, 1, 1, 0, "loop", 131),
    "strided": (3, 2, 1, 1, "loop", 333),
    "dilated": (4, 1, 3, 4, "loop", 190),
    "strided and dilated": (3, 2, 3, 2, "loop", 190),
    "a tile of taps": (5, 1, 1, 2, "tile", 300),
    "a strided tile of taps": (7, 3, 1, 2, "tile", 300),
    "a filter read backwards": (5, 1, 1, 2, "backward filter", 150),
    "backwards": (5, 1, 1, 2, "backwards", 150),
    "a difference": (3, 1, 1, 1, "difference", 150),
    "many taps": (90, 1, 1, 45, "loop", 150),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_stencils_are_convolutions(dtype: str, name: str, form: bool) -> None:
    call, mlx = stencil(*STENCILS[name])
    taps, size = STENCILS[name][0], STENCILS[name][-1]
    x, w = (mx.array(normal(n, seed=i, dtype=dtype)) for i, n in enumerate((size, taps)))
    kernel = graph(stencil_kernel, convolutions=form)
    summary = call(kernel.summary, x, w)
    assert is_raised(summary, f"a convolution of {taps}")
    assert summary.gathered == 0
    np.testing.assert_allclose(
        np.array(call(kernel, x, w, 0.5)), np.array(mlx(x, w) + 0.5), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["same", "strided and dilated", "a filter read backwards"])
def test_transforms_take_stencils(name: str, form: bool) -> None:
    call, mlx = stencil(*STENCILS[name])
    x, w = mx.array(normal(STENCILS[name][-1])), mx.array(normal(STENCILS[name][0], seed=1))
    kernel = graph(stencil_kernel, convolutions=form)

    def ours(x: Any, w: Any) -> Any:
        return call(kernel, x, w)

    for argument in (0, 1):
        found, wanted = (
            mx.grad(lambda x, w, f=f: (f(x, w) ** 2).sum(), argnums=argument)(x, w)
            for f in (ours, mlx)
        )
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-3, atol=1e-3)
    xs, ws = mx.stack([x, 2 * x]), mx.stack([w, w + 1])
    for axes, arrays in [((0, None), (xs, w)), ((None, 0), (x, ws)), ((0, 0), (xs, ws))]:
        found = mx.vmap(ours, in_axes=axes)(*arrays)
        wanted = mx.stack(
            [mlx(*(a if axis is None else a[i] for a, axis in zip(arrays, axes, strict=True)))
             for i in range(2)]
        )  # fmt: skip
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-4, atol=1e-4)


@triton_metal.jit
def plane_kernel(x, w, y, height, width, TAPS: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    row = tl.program_id(0) * BY + tl.arange(0, BY)[:, None]
    column = tl.program_id(1) * BX + tl.arange(0, BX)[None, :]
    acc = tl.zeros((BY, BX), tl.float32)
    for tap in range(TAPS * TAPS):
        i, j = row + tap // TAPS - TAPS // 2, column + tap % TAPS - TAPS // 2
        inside = (i >= 0) & (i < height) & (j >= 0) & (j < width)
        acc += tl.load(w + tap) * tl.load(x + i * width + j, inside, other=0.0)
    tl.store(y + row * width + column, acc, (row < height) & (column < width))


@pytest.mark.parametrize("form", FORMS)
def test_stencils_of_planes_are_convolutions(form: bool) -> None:
    x, w = mx.array(normal(37, 50)), mx.array(normal(3, 3, seed=1))
    kernel = graph(plane_kernel, convolutions=form)
    arguments = {
        "height": 37,
        "width": 50,
        "TAPS": 3,
        "BY": 8,
        "BX": 16,
        "grid": (5, 4),
        "outputs": {"y": ((37, 50), mx.float32)},
    }
    summary = kernel.summary(x, w, **arguments)
    assert is_raised(summary, "a convolution of 3x3")
    assert summary.gathered == 0
    wanted = mx.conv_general(x[None, :, :, None], w[None, :, :, None], padding=1)[0, :, :, 0]
    found = kernel(x, w, **arguments)
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-5, atol=1e-5)
    arrays = [np.array(x), np.array(w), np.zeros((37, 50), "float32")]
    compare(plane_kernel, (5, 4), arrays, 37, 50, 3, 8, 16, tolerance=1e-5)


@triton_metal.jit
def depthwise_kernel(x, w, y, length, channels, TAPS: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):  # fmt: skip
    """The causal convolution of state-space models: each channel has a filter of its own."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    image = tl.program_id(2)
    acc = tl.zeros((BT, BC), tl.float32)
    for k in range(TAPS):
        at = t + k - (TAPS - 1)
        mask = (at >= 0)[:, None] & (at < length)[:, None] & (c < channels)[None, :]
        values = tl.load(
            x + (image * length + at)[:, None] * channels + c[None, :], mask, other=0.0
        )
        acc += values * tl.load(w + k * channels + c, c < channels, other=0.0)[None, :]
    mask = (t < length)[:, None] & (c < channels)[None, :]
    tl.store(y + (image * length + t)[:, None] * channels + c[None, :], acc, mask)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("length", "channels"), [(64, 32), (50, 19)])
def test_convolutions_of_single_channels(length: int, channels: int, form: bool) -> None:
    x, w = mx.array(normal(3, length, channels)), mx.array(normal(4, channels, seed=1))
    kernel = graph(depthwise_kernel, convolutions=form)

    def call(function: Any, x: Any, w: Any) -> Any:
        return function(
            x, w, length, channels, 4, 16, 16,
            grid=(triton_metal.cdiv(length, 16), triton_metal.cdiv(channels, 16), 3),
            outputs={"y": x},
        )  # fmt: skip

    def mlx(x: Any, w: Any) -> Any:
        return mx.conv_general(
            mx.pad(x, [(0, 0), (3, 0), (0, 0)]), w.T[:, :, None], groups=channels
        )

    def ours(x: Any, w: Any) -> Any:
        return call(kernel, x, w)

    summary = call(kernel.summary, x, w)
    assert is_raised(summary, "a convolution of 4")
    assert summary.gathered == 0
    np.testing.assert_allclose(np.array(ours(x, w)), np.array(mlx(x, w)), rtol=1e-4, atol=1e-4)
    for argument in (0, 1):
        found, wanted = (
            mx.grad(lambda x, w, f=f: (f(x, w) ** 2).sum(), argnums=argument)(x, w)
            for f in (ours, mlx)
        )
        np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-3, atol=1e-3)
    # MLX's own vmap is wrong where only the filters of groups are mapped.
    ws = mx.stack([w, w + 1])
    found = mx.vmap(ours, in_axes=(None, 0))(x, ws)
    wanted = mx.stack([mlx(x, w), mlx(x, w + 1)])
    np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=1e-4, atol=1e-4)


def test_results_around_a_convolution_are_those_of_zeros() -> None:
    """Pixels that the mask excludes are 0 times the filters: no number, where one of those is infinite."""
    x, w = np.ones(100, "float32"), np.array([1.0, np.inf, 1.0], "float32")
    arrays = [x, w, np.zeros(128, "float32")]
    compare(limited_kernel, (2,), arrays, 98, 3, 64)
    summary = graph(limited_kernel).summary(
        mx.array(x), mx.array(w), n=98, TAPS=3, BLOCK=64, grid=(2,), outputs={"y": ((128,), mx.float32)}
    )  # fmt: skip
    assert is_raised(summary)


@triton_metal.jit
def limited_kernel(x, w, y, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(TAPS):
        acc += tl.load(x + i + k, i < n, other=0.0) * tl.load(w + k)
    tl.store(y + i, acc)


@triton_metal.jit
def other_kernel(x, w, y, n, TAPS: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Sums that look like convolutions and are none."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(TAPS):
        at = i + k - 1
        mask = (at >= 0) & (at < n)
        if KIND == "wraps around":
            at = (i + k) % n
            mask = at >= 0
        elif KIND == "other shifts":
            at = i + k * k
            mask = at < n
        elif KIND == "cut askew":
            mask = (at >= 0) & (at < n) & (i + 2 * k < n)
        elif KIND == "cut by the tap":
            mask = (at >= 0) & (at < n) & (k < TAPS - 1)
        elif KIND == "every second":
            mask = (at >= 0) & (at < n) & (i % 2 == 0)
        if KIND == "padded with ones":
            values = tl.load(x + at, mask, other=1.0)
        else:
            values = tl.load(x + at, mask, other=0.0)
        if KIND == "filters of each pixel":
            filters = tl.load(w + i * TAPS + k)
        elif KIND == "filters of later taps":
            filters = tl.load(w + k * k)
        else:
            filters = tl.load(w + k)
        if KIND == "decays":
            acc = acc * 0.5 + values * filters
        elif KIND == "is used":
            acc += values * filters
            values = acc
            tl.store(y + BLOCK * 8 + k * BLOCK * 4 + i, values)
        elif KIND == "half products":
            acc += (values.to(tl.float16) * filters.to(tl.float16)).to(tl.float32)
        elif KIND == "squares":
            acc += values * values * filters
        elif KIND == "changes":
            acc += (values + 1) * filters
        else:
            acc += values * filters
    tl.store(y + i, acc)


OTHERS = [
    "wraps around", "other shifts", "cut askew", "cut by the tap", "every second", "padded with ones",
    "filters of each pixel", "filters of later taps", "decays", "is used", "half products", "squares", "changes",
]  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_other_sums_stay_what_they_are(kind: str) -> None:
    arrays = [normal(100), normal(4 * 128, seed=1), np.zeros(128 * 16, "float32")]
    compare(
        other_kernel, (2,), arrays, 100, 4, kind, 64, tolerance=1e-3 if "half" in kind else 1e-5
    )
    summary = graph(other_kernel).summary(
        *(mx.array(array) for array in arrays[:2]), n=100, TAPS=4, KIND=kind, BLOCK=64, grid=(2,),
        outputs={"y": ((128 * 16,), mx.float32)},
    )  # fmt: skip
    assert not is_raised(summary)


@triton_metal.jit
def rolled_kernel(
    x, w, out, pixels, height, width, KIND: tl.constexpr, BM: tl.constexpr, C: tl.constexpr
):
    """Images whose borders are not 0, and whose rows are counted otherwise."""
    pixel = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, C)
    row, column = pixel // width, pixel % width
    acc = tl.zeros((BM, C), tl.float32)
    for tap in range(9):
        y, x_ = row + tap // 3 - 1, column + tap % 3 - 1
        inside = (y >= 0) & (y < height)
        if KIND == "rolled":
            x_ = (x_ + width) % width
        elif KIND == "held":
            x_ = tl.minimum(tl.maximum(x_, 0), width - 1)
        elif KIND == "one row less":
            # The mask is that of images with one more column.
            inside = inside & (x_ >= 0) & (x_ < width) & (pixel % (width + 1) > 0)
        elif KIND == "the pixel after":
            # Without a mask at the sides, a row continues in the next one.
            inside = inside & (y * width + x_ >= 0) & (y * width + x_ < height * width)
        inside = inside & (pixel < pixels)
        a = tl.load(x + ((y * width + x_) * C)[:, None] + n[None, :], inside[:, None], other=0.0)
        b = tl.load(w + tap * C * C + n[:, None] * C + n[None, :])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(out + pixel[:, None] * C + n[None, :], acc, (pixel < pixels)[:, None])


@pytest.mark.parametrize("kind", ["rolled", "held", "one row less", "the pixel after"])
def test_other_borders_are_no_padding(kind: str) -> None:
    x, w = normal(6, 10, 16), normal(9, 16, 16, seed=1)
    arrays = [x, w, np.zeros((60, 16), "float32")]
    compare(rolled_kernel, (2,), arrays, 60, 6, 10, kind, 32, 16, tolerance=1e-4)
    summary = graph(rolled_kernel).summary(
        mx.array(x), mx.array(w), pixels=60, height=6, width=10, KIND=kind, BM=32, C=16, grid=(2,),
        outputs={"out": ((60, 16), mx.float32)},
    )  # fmt: skip
    assert not is_raised(summary, "a convolution of 3x3")


def test_products_of_matrices_are_no_convolutions() -> None:
    images = Images((2, 8, 8, 16), (16, 1, 1, 16))
    x, w = images.arrays()
    assert not is_raised(images.call(graph(images_kernel).summary, x, w))
    found = images.call(graph(images_kernel), x, w)
    np.testing.assert_allclose(np.array(found), np.array(images.mlx(x, w)), rtol=1e-4, atol=1e-4)


def test_a_convolution_outside_of_an_array_is_refused() -> None:
    from triton_metal.errors import GraphRefusal

    x, w = mx.array(normal(60)), mx.array(normal(3))
    with pytest.raises(GraphRefusal, match="place 97 of an array of 60 elements"):
        graph(limited_kernel)(
            x, w, n=98, TAPS=3, BLOCK=64, grid=(2,), outputs={"y": ((128,), mx.float32)}
        )


def test_the_form_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLX's convolution on a GPU, and slices on the CPU."""
    call, _ = stencil(*STENCILS["same"])
    x, w = mx.array(normal(200)), mx.array(normal(3))
    on_cpu = call(graph(stencil_kernel).summary, x, w).primitives

    class Gpu:
        type = mx.DeviceType.gpu

    monkeypatch.setattr(mx, "default_device", Gpu)
    on_gpu = call(graph(stencil_kernel).summary, x, w).primitives
    assert on_gpu == call(graph(stencil_kernel, convolutions=True).summary, x, w).primitives
    assert on_cpu == call(graph(stencil_kernel, convolutions=False).summary, x, w).primitives
    assert on_gpu < on_cpu


@triton_metal.jit
def steps_kernel(y, w, out, n, STEPS: tl.constexpr, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Convolutions of what the kernel itself has written."""
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    if KIND == "one by one":
        for step in range(STEPS):
            acc = tl.zeros((BLOCK,), tl.float32)
            for k in range(3):
                at = i + k - 1
                values = tl.load(y + step * n + at, (at >= 0) & (at < n), other=0.0)
                acc += values * tl.load(w + k)
            tl.store(y + (step + 1) * n + i, acc, i < n)
    else:
        for k in range(STEPS):
            values = tl.load(y + i + k, i + k < n, other=0.0)
            tl.store(y + i + k + 1, values * 0.5, i + k + 1 < n)
            acc += values * tl.load(w + k)
    tl.store(out + i, acc)


@pytest.mark.parametrize("kind", ["one by one", "changed in between"])
def test_convolutions_of_arrays_that_change(kind: str) -> None:
    arrays = [normal(250), normal(4, seed=1), np.zeros(64, "float32")]
    compare(steps_kernel, (1,), arrays, 50, 4, kind, 64, tolerance=1e-5)
    kernel = graph(steps_kernel)
    y, w, out = (mx.array(array) for array in arrays)
    summary = kernel.summary(w=w, n=50, STEPS=4, KIND=kind, BLOCK=64, grid=(1,), outputs={"y": y, "out": out})  # fmt: skip
    assert is_raised(summary) == (kind == "one by one")


@triton_metal.jit
def carried_kernel(x, w, out, STEPS: tl.constexpr, KIND: tl.constexpr, B: tl.constexpr):
    """Products of loaded tiles, of which each step takes what the one before has left."""
    i = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for step in range(STEPS):
        a = tl.load(x + (i[:, None] + step) * B + i[None, :])
        b = tl.load(w + step * B * B + i[:, None] * B + i[None, :])
        if KIND == "decays":
            acc = acc * 0.5 + tl.dot(a, b, input_precision="ieee")
        elif KIND == "is taken":
            acc += tl.dot(tl.dot(a, b, input_precision="ieee"), acc, input_precision="ieee") + 1
        else:
            acc = tl.dot(tl.trans(tl.trans(a)), b, acc, input_precision="ieee")
            acc = tl.maximum(acc, -1.0)
    tl.store(out + i[:, None] * B + i[None, :], acc)


@pytest.mark.parametrize("kind", ["decays", "is taken", "is held"])
def test_products_of_rows_that_steps_take_one_by_one(kind: str) -> None:
    arrays = [normal(20, 16) / 4, normal(3, 16, 16, seed=1) / 4, np.zeros((16, 16), "float32")]
    compare(carried_kernel, (1,), arrays, 3, kind, 16, tolerance=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("x", "w", "options"),
    [
        ((2, 8, 8, 32), (32, 3, 3, 16), {"groups": 2}),
        ((2, 9, 8, 32), (32, 3, 3, 1), {"groups": 32, "stride": 2}),
        ((2, 8, 8, 3), (16, 3, 3, 3), {"padding": 1}),
        ((1, 5, 6, 6, 16), (16, 3, 3, 3, 16), {"padding": 1}),
        ((2, 50, 16), (16, 5, 16), {"padding": 4, "dilation": 2}),
    ],
)
def test_convolutions_of_the_library_are_raised(
    monkeypatch: pytest.MonkeyPatch, x: Any, w: Any, options: Any, form: bool
) -> None:
    from triton_metal.mlx import graph_programs
    from triton_metal.ops import convolutions

    summaries = []
    run = graph_programs.run

    def noted(*arguments: Any, **others: Any) -> Any:
        result = run(*arguments, **others, convolves=form)
        summaries.append(result[2])
        return result

    monkeypatch.setattr(graph_programs, "run", noted)
    arrays = normal(*x), normal(*w, seed=1)
    function = {3: convolutions.conv1d, 4: convolutions.conv2d, 5: convolutions.conv3d}[len(x)]
    results = []
    for device in ("host", "mlx-graph"):
        with triton_metal.device(device):
            results.append(np.array(function(*arrays, **options)))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-4)
    (summary,) = summaries
    assert is_raised(summary)
    assert summary.gathered == 0
