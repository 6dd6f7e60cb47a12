"""What `convolutions` does: how a convolution of any kind becomes launches of the kernels of `_convolution`, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import triton_metal as triton

from ._arrays import Array, contiguous, dtype_name, is_whole, reshaped, size_of, strides
from ._axes import as_rows, is_wide
from ._choices import named
from ._convolution import convolution_kernel, filter_gradient_kernel
from ._far import FAR_FROM, reach
from ._launch import launch
from ._operators import Operator
from ._reduce import reduce_rows

#: The choice of a convolution's blocks of pixels, outputs and inputs, for `_choices.forced`.
BLOCKS = "convolution blocks"
#: Groups with fewer channels than this on a side are no products of tiles.
SMALLEST = 8


def spatial(shape: Sequence[int], last: bool) -> tuple[int, ...]:
    """The sizes between batch and channels, which are last or second."""
    return tuple(shape[1:-1] if last else shape[2:])


def _three(sizes: Sequence[int], absent: int = 1) -> tuple[int, ...]:
    return (absent,) * (3 - len(sizes)) + tuple(sizes)


def _steps(x: Array, last: bool) -> tuple[int, ...]:
    """The steps of batch, depth, height, width and channels."""
    found = strides(x)
    between = spatial(found, last)
    return (found[0], *_three(between, 0), found[-1] if last else found[1])


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size_of(tuple(shape[i + 1 :])) for i in range(len(shape)))


def _filter_steps(
    shape: Sequence[int], found: Sequence[int], groups: int, last: bool, whole: bool
) -> tuple[int, int, int, int]:
    """The steps of filters from group to group, along channels of all groups, of one group, and from tap to tap.

    The first axis is that of all groups' channels; `whole` says that it belongs to what the caller counts as the second
    (the kernel's outputs, or the narrow array's channels).
    """
    first, inside = found[0], found[-1] if last else found[1]
    taps = found[-2] if last else found[-1]
    group = first * (shape[0] // groups)
    return (group, first, inside, taps) if whole else (group, inside, first, taps)


def _with_plain_taps(w: Array, last: bool) -> tuple[Array, Sequence[int]]:
    """Filters whose taps lie in even steps, and their steps: themselves, or a copy."""
    shape, found = tuple(w.shape), list(strides(w))
    first = 1 if last else 2
    taps = range(first, first + len(shape) - 2)
    step = found[max((i for i in taps if shape[i] > 1), default=first)]
    even = step
    for i in reversed(taps):
        if shape[i] > 1 and found[i] != even:
            return contiguous(w), _row_major(shape)
        found[i] = even
        even *= shape[i]
    return (w, found) if _is_forward(w) else (contiguous(w), _row_major(shape))


def _is_forward(x: Array) -> bool:
    """Whether all steps are whole elements forwards."""
    return is_whole(x) and all(step >= 0 for step in strides(x))


def _is_wide(*arrays: Array) -> bool:
    """Whether an offset may need 64 bits."""
    return any(reach(x.shape, strides(x)) >= FAR_FROM - 1 for x in arrays)


def _block(size: int, largest: int) -> int:
    """The largest block that leaves no more of itself empty than blocks of 32; of fewer channels a smaller one."""
    if size < 32:
        return min(largest, max(SMALLEST, triton.next_power_of_2(size)))
    padded = triton.cdiv(size, 32) * 32
    return next(b for b in (64, 32, 16) if b <= largest and triton.cdiv(size, b) * b <= padded)


def _padded(size: int, block: int) -> int:
    return triton.cdiv(size, block) * block


def _form(inputs: int, outputs: int, groups: int) -> str:
    if groups > 1 and min(inputs, outputs) < SMALLEST:
        return "narrow"
    return "flat" if inputs < SMALLEST else "tile"


def _forward(
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    size: Sequence[int],
    transposed: bool,
    wide_first: bool,
    last: bool,
) -> tuple[Array, ...]:
    [(shape, dtype)] = convolved(
        x, w, bias, stride, padding, dilation, groups, size, transposed, wide_first, last
    )
    w, w_strides = _with_plain_taps(w, last)
    if not _is_forward(x):
        x = contiguous(x)
    channels, outputs = (x.shape[-1], shape[-1]) if last else (x.shape[1], shape[1])
    inputs, outputs = channels // groups, outputs // groups
    stride3, taps = _three(stride), _three(spatial(w.shape, last))
    spread = stride3 if transposed else (1, 1, 1)
    pixels = [triton.cdiv(n, step) for n, step in zip(_three(size), spread, strict=True)]
    n_pixels = shape[0] * math.prod(pixels)
    # A phase whose first place is outside of the result has none.
    phases = tuple(min(n, step) for n, step in zip(_three(size), spread, strict=True))
    form = _form(inputs, outputs, groups)
    if form == "narrow":
        block_m, block_n, block_k = 64, min(32, triton.next_power_of_2(outputs * groups)), 1
        tiles = triton.cdiv(outputs * groups, block_n)
    else:
        block_n = _block(outputs, 64)
        most = 32 if dtype != "float32" else 16
        block_k = _block(inputs if form == "tile" else inputs * math.prod(taps), most)
        # Smaller blocks where there would be few programs.
        programs = groups * triton.cdiv(outputs, block_n) * triton.cdiv(n_pixels, 64)
        block_m = 64 if programs * math.prod(phases) >= 64 else 32
        # Many programs have shorter steps where these multiply a quarter less, as with 48 inputs; few wait for each step.
        if (
            block_m == 64
            and form == "tile"
            and 4 * _padded(inputs, 16) <= 3 * _padded(inputs, block_k)
        ):
            block_k = 16
        block_m, block_n, block_k = named(BLOCKS) or (block_m, block_n, block_k)
        tiles = groups * triton.cdiv(outputs, block_n)
    dilation3 = _three(dilation)
    from_first = wide_first != transposed  # whether the first axis of w is that of the inputs
    return launch(
        convolution_kernel,
        (tiles, triton.cdiv(n_pixels, block_m), math.prod(phases)),
        {"y_ptr": (shape, dtype)},
        like=x,
        x_ptr=x,
        w_ptr=w,
        bias_ptr=None if bias is None else contiguous(bias),
        n_pixels=n_pixels,
        pixels_z=pixels[0],
        pixels_y=pixels[1],
        pixels_x=pixels[2],
        **dict(zip(("x_depth", "x_height", "x_width"), _three(spatial(x.shape, last)), strict=True)),
        **dict(zip(("y_depth", "y_height", "y_width"), _three(size), strict=True)),
        x_steps=_steps(x, last),
        y_steps=_of_shape(shape, last),
        w_steps=_filter_steps(w.shape, w_strides, groups, last, not from_first),
        INPUTS=inputs,
        OUTPUTS=outputs,
        GROUPS=groups,
        TAPS=taps,
        STRIDE=stride3,
        PADDING=_three(padding, 0),
        DILATION=dilation3,
        PHASES=phases,
        STEP=_tap_steps(stride3, dilation3) if transposed else (1, 1, 1),
        TRANSPOSED=transposed,
        IN_ORDER=last and math.prod(spread) == 1,
        FORM=form,
        WIDE=_is_wide(x, w) or size_of(shape) >= FAR_FROM,
        MANY=is_wide((n_pixels,)),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        # More would compute the same addresses for fewer products each.
        **({} if form == "narrow" else {"num_warps": 4}),
    )  # fmt: skip


def _of_shape(shape: Sequence[int], last: bool) -> tuple[int, ...]:
    found = _row_major(shape)
    return (found[0], *_three(spatial(found, last), 0), found[-1] if last else found[1])


def _tap_steps(stride: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    return tuple(s // math.gcd(s, d) for s, d in zip(stride, dilation, strict=True))


def convolved(
    x: Array,
    w: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    size: Sequence[int],
    transposed: bool,
    wide_first: bool,
    last: bool,
) -> list[tuple[tuple[int, ...], str]]:
    """The shape and dtype of a convolution's result."""
    outputs = w.shape[0]
    if (
        wide_first != transposed
    ):  # the first axis of w has the inputs, so another has the outputs of one group
        outputs = (w.shape[-1] if last else w.shape[1]) * groups
    shape = (x.shape[0], *size, outputs) if last else (x.shape[0], outputs, *size)
    return [(tuple(shape), dtype_name(x))]


def _filter_gradient(
    wide: Array,
    narrow: Array,
    shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    wide_first: bool,
    last: bool,
) -> tuple[Array, ...]:
    wide, narrow = (x if _is_forward(x) else contiguous(x) for x in (wide, narrow))
    dtype, shape = dtype_name(wide), tuple(shape)
    wides, narrows = (x.shape[-1 if last else 1] // groups for x in (wide, narrow))
    pixels, taps = _three(spatial(narrow.shape, last)), _three(spatial(shape, last))
    n_pixels = narrow.shape[0] * math.prod(pixels)
    form, n_taps = _form(wides, narrows, groups), math.prod(taps)
    if form == "narrow":
        block_n, block_m, block_k = min(32, triton.next_power_of_2(narrows * groups)), 1, 64
        tiles, columns = triton.cdiv(narrows * groups, block_n), n_taps * wides
    else:
        block_n = _block(narrows, 64)
        block_m = _block(wides * n_taps if form == "flat" else wides, 64)
        block_k = 32 if dtype != "float32" else 16
        tiles = groups * triton.cdiv(narrows, block_n)
        tiles *= triton.cdiv(wides * n_taps if form == "flat" else wides, block_m)
        columns = 1 if form == "flat" else n_taps
    # So many parts that there are some 128 programs, but each of at least 8 blocks.
    parts = min(triton.cdiv(128, max(1, tiles * columns)), triton.cdiv(n_pixels, 8 * block_k))
    part_pixels = triton.cdiv(triton.cdiv(n_pixels, max(parts, 1)), block_k) * block_k
    parts = triton.cdiv(n_pixels, part_pixels) if n_pixels else 1
    whole = size_of(shape)
    (dw,) = launch(
        filter_gradient_kernel,
        (tiles, columns, parts),
        {"dw_ptr": ((parts, *shape), dtype if parts == 1 else "float32")},
        like=wide,
        wide_ptr=wide,
        narrow_ptr=narrow,
        n_pixels=n_pixels,
        part_pixels=part_pixels,
        part_step=whole,
        **dict(zip(("depth", "height", "width"), _three(spatial(wide.shape, last)), strict=True)),
        **dict(zip(("pixels_z", "pixels_y", "pixels_x"), pixels, strict=True)),
        wide_steps=_steps(wide, last),
        narrow_steps=_steps(narrow, last),
        w_steps=_filter_steps(shape, _row_major(shape), groups, last, not wide_first),
        WIDES=wides,
        NARROWS=narrows,
        GROUPS=groups,
        TAPS=taps,
        STRIDE=_three(stride),
        PADDING=_three(padding, 0),
        DILATION=_three(dilation),
        FORM=form,
        WIDE=_is_wide(wide, narrow) or whole >= FAR_FROM,
        MANY=is_wide((n_pixels,)),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        **({} if form == "narrow" else {"num_warps": 4}),
    )
    if parts > 1:
        dw = reduce_rows(dw, (1, parts, whole), "sum", dtype)
    return (reshaped(dw, shape),)


def _bias_gradient(dy: Array, last: bool) -> tuple[Array, ...]:
    channel = dy.ndim - 1 if last else 1
    x, sizes, _ = as_rows(dy, [axis for axis in range(dy.ndim) if axis != channel])
    total = reduce_rows(x, sizes, "sum", dtype_name(dy))
    return (reshaped(total, (dy.shape[channel],)),)


_BIAS_GRADIENT = Operator(
    "convolution_bias_gradient(Tensor dy, bool last) -> (db)",
    _bias_gradient,
    lambda dy, last: [((dy.shape[-1 if last else 1],), dtype_name(dy))],
)


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    how = (kept.stride, kept.padding, kept.dilation, kept.groups)
    found = {}
    if "x" in kept.needs:
        size = list(spatial(kept.x.shape, kept.last))
        back = (size, not kept.transposed, kept.wide_first, kept.last)
        found["x"] = CONVOLUTION(dy, kept.w, None, *how, *back)[0]
    if "w" in kept.needs:
        wide, narrow = (dy, kept.x) if kept.transposed else (kept.x, dy)
        shape = list(kept.w.shape)
        found["w"] = FILTER_GRADIENT(wide, narrow, shape, *how, kept.wide_first, kept.last)[0]
    if "bias" in kept.needs:
        found["bias"] = _BIAS_GRADIENT(dy, kept.last)[0]
    return found


def _gradient_of_filter_gradient(kept: Any, dw: Array) -> dict[str, Array]:
    how = (kept.stride, kept.padding, kept.dilation, kept.groups)
    found = {}
    for name, source, transposed in (("wide", kept.narrow, True), ("narrow", kept.wide, False)):
        if name in kept.needs:
            size = list(spatial(getattr(kept, name).shape, kept.last))
            back = (size, transposed, kept.wide_first, kept.last)
            found[name] = CONVOLUTION(source, dw, None, *how, *back)[0]
    return found


_HOW = "int[] stride, int[] padding, int[] dilation, int groups"
CONVOLUTION = Operator(
    f"convolution(Tensor x, Tensor w, Tensor? bias, {_HOW}, int[] size, bool transposed, bool wide_first, bool last) -> (y)",
    _forward,
    convolved,
    _gradient,
    keeps="x w",
)
FILTER_GRADIENT = Operator(
    f"convolution_filter_gradient(Tensor wide, Tensor narrow, int[] shape, {_HOW}, bool wide_first, bool last) -> (dw)",
    _filter_gradient,
    lambda wide, narrow, shape, *_: [(tuple(shape), dtype_name(wide))],
    _gradient_of_filter_gradient,
    keeps="wide narrow",
)
