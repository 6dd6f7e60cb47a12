"""The kernels under `convolutions`. All arrays are seen with three dimensions; absent ones have one place.

A convolution goes from a *wide* array to a *narrow* one: narrow[o] = Σ wide[o * stride - padding + tap * dilation] · w[tap]. A
transposed one goes back: wide[i] = Σ narrow[(i + padding - tap * dilation) / stride] · w[tap], over the taps where the division
leaves nothing. These are the same for all i with one remainder by the stride, a *phase*: among the places of a phase it is a
convolution of stride 1 with some of the taps.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from ._far import far_steps, index


@triton.jit
def _taps(
    phase,
    TAPS: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    DILATION: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    STEP: tl.constexpr,
):
    """One dimension: the first tap and their number; the place of the first tap for place 0, and how far it moves with each tap.

    STEP is the distance of taps that fall on places of the input: STRIDE / gcd(STRIDE, DILATION).
    """
    if not TRANSPOSED:
        return 0, TAPS, -PADDING, DILATION
    if STRIDE == 1:
        return 0, TAPS, PADDING, -DILATION
    first = phase * 0 + TAPS
    for tap in tl.static_range(min(TAPS, STEP)):
        first = tl.where((phase + PADDING - tap * DILATION) % STRIDE == 0, tap, first)
    place = (phase + PADDING - first * DILATION) // STRIDE
    # Steps that are longer than the filter are as long, so that the sum is no larger than 31 bits.
    LENGTH: tl.constexpr = min(STEP, TAPS)
    return first, (TAPS - first + LENGTH - 1) // LENGTH, place, -(DILATION * STEP // STRIDE)


@triton.jit
def convolution_kernel(
    x_ptr,
    w_ptr,
    bias_ptr,
    y_ptr,
    n_pixels,
    pixels_z,
    pixels_y,
    pixels_x,
    x_depth,
    x_height,
    x_width,
    y_depth,
    y_height,
    y_width,
    x_steps,
    y_steps,
    w_steps,
    INPUTS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    GROUPS: tl.constexpr,
    TAPS: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    DILATION: tl.constexpr,
    PHASES: tl.constexpr,
    STEP: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    IN_ORDER: tl.constexpr,
    FORM: tl.constexpr,
    WIDE: tl.constexpr,
    MANY: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """BLOCK_M pixels of one of the PHASES and BLOCK_N outputs of one group; INPUTS and OUTPUTS are those of a group.

    FORM "tile": each step multiplies a tile of one tap. "flat": of all taps, where there are few inputs. "narrow": groups too
    small for products of tiles; the outputs are those of all groups. WIDE: offsets need 64 bits; MANY: numbers of pixels do, too.
    """
    if WIDE:
        x_steps, y_steps, w_steps = far_steps(x_steps), far_steps(y_steps), far_steps(w_steps)
    if MANY:
        pixels_x = tl.cast(pixels_x, tl.int64)
    # Pixels of this phase, in the dimensions of y divided by the stride.
    pixel = index(tl.program_id(1), MANY) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    x = pixel % pixels_x
    y = pixel // pixels_x % pixels_y
    z = pixel // (pixels_x * pixels_y) % pixels_z
    image = pixel // (pixels_x * pixels_y * pixels_z)
    SPREAD_Z: tl.constexpr = STRIDE[0] if TRANSPOSED else 1
    SPREAD_Y: tl.constexpr = STRIDE[1] if TRANSPOSED else 1
    SPREAD_X: tl.constexpr = STRIDE[2] if TRANSPOSED else 1
    phase = tl.program_id(2)
    phase_x = phase % PHASES[2] if PHASES[2] > 1 else 0
    phase_y = phase // PHASES[2] % PHASES[1] if PHASES[1] > 1 else 0
    phase_z = phase // (PHASES[2] * PHASES[1]) if PHASES[0] > 1 else 0
    tap_z, taps_z, at_z, move_z = _taps(
        phase_z, TAPS[0], STRIDE[0], PADDING[0], DILATION[0], TRANSPOSED, STEP[0]
    )
    tap_y, taps_y, at_y, move_y = _taps(
        phase_y, TAPS[1], STRIDE[1], PADDING[1], DILATION[1], TRANSPOSED, STEP[1]
    )
    tap_x, taps_x, at_x, move_x = _taps(
        phase_x, TAPS[2], STRIDE[2], PADDING[2], DILATION[2], TRANSPOSED, STEP[2]
    )
    to_z, to_y, to_x = z * SPREAD_Z + phase_z, y * SPREAD_Y + phase_y, x * SPREAD_X + phase_x
    if IN_ORDER:  # the pixels lie side by side in y
        out = pixel * y_steps[3]
    else:
        out = image * y_steps[0] + to_z * y_steps[1] + to_y * y_steps[2] + to_x * y_steps[3]
    written = pixel < n_pixels
    if TRANSPOSED:  # the last places of a phase may be none of y's
        written &= (to_z < y_depth) & (to_y < y_height) & (to_x < y_width)
    from_z = at_z + z * (1 if TRANSPOSED else STRIDE[0])
    from_y = at_y + y * (1 if TRANSPOSED else STRIDE[1])
    from_x = at_x + x * (1 if TRANSPOSED else STRIDE[2])
    origin = image * x_steps[0] + from_z * x_steps[1] + from_y * x_steps[2] + from_x * x_steps[3]

    if FORM == "narrow":
        n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        group, inner, kept = n // OUTPUTS, n % OUTPUTS, n < OUTPUTS * GROUPS
        STEPS: tl.constexpr = INPUTS
    else:
        TILES: tl.constexpr = (OUTPUTS + BLOCK_N - 1) // BLOCK_N
        group = tl.program_id(0) // TILES if GROUPS > 1 else 0
        tile = tl.program_id(0) % TILES if GROUPS > 1 else tl.program_id(0)
        inner = tile * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        n, kept = group * OUTPUTS + inner, inner < OUTPUTS
        STEPS: tl.constexpr = (INPUTS + BLOCK_K - 1) // BLOCK_K
    n_taps = taps_z * taps_y * taps_x
    steps = (n_taps * INPUTS + BLOCK_K - 1) // BLOCK_K if FORM == "flat" else n_taps * STEPS
    filters = group * w_steps[0] + inner * w_steps[1]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(steps):
        if FORM == "flat":
            k = step * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
            tap, c = k // INPUTS, k % INPUTS
            filled = tap < n_taps
        elif FORM == "tile":
            tap, c = step // STEPS, step % STEPS * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
            filled = c < INPUTS
        else:
            tap, c = step // STEPS, step % STEPS
            filled = kept
        k_z = tap // (taps_y * taps_x) if TAPS[0] > 1 else 0
        k_y = (tap // taps_x % taps_y if TAPS[0] > 1 else tap // taps_x) if TAPS[1] > 1 else 0
        k_x = tap % taps_x if TAPS[2] > 1 else 0
        z_in, y_in, x_in = from_z + k_z * move_z, from_y + k_y * move_y, from_x + k_x * move_x
        inside = (pixel < n_pixels) & filled
        if TRANSPOSED or PADDING[0] > 0:
            inside &= (z_in >= 0) & (z_in < x_depth)
        if TRANSPOSED or PADDING[1] > 0:
            inside &= (y_in >= 0) & (y_in < x_height)
        if TRANSPOSED or PADDING[2] > 0:
            inside &= (x_in >= 0) & (x_in < x_width)
        moved = k_z * move_z * x_steps[1] + k_y * move_y * x_steps[2] + k_x * move_x * x_steps[3]
        channel = (group * INPUTS + c) * x_steps[4]
        pixels = tl.load(x_ptr + (origin + (moved + channel)), mask=inside, other=0.0)
        # Taps of the filters in their own order.
        w_tap = (tap_z + k_z * STEP[0]) * TAPS[1] + tap_y + k_y * STEP[1]
        w_at = (w_tap * TAPS[2] + tap_x + k_x * STEP[2]) * w_steps[3] + c * w_steps[2]
        if FORM == "narrow":
            w = tl.load(w_ptr + (filters + w_at), mask=kept, other=0.0)
            acc += pixels.to(tl.float32) * w.to(tl.float32)
        else:
            mask = tl.trans(kept) & filled
            w = tl.load(w_ptr + (tl.trans(filters) + w_at), mask=mask, other=0.0)
            acc = tl.dot(pixels, tl.trans(w), acc, input_precision="ieee")
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + n, mask=kept, other=0.0).to(tl.float32)
    tl.store(y_ptr + out + n * y_steps[4], acc.to(y_ptr.dtype.element_ty), mask=written & kept)


@triton.jit
def filter_gradient_kernel(
    wide_ptr,
    narrow_ptr,
    dw_ptr,
    n_pixels,
    part_pixels,
    part_step,
    depth,
    height,
    width,
    pixels_z,
    pixels_y,
    pixels_x,
    wide_steps,
    narrow_steps,
    w_steps,
    WIDES: tl.constexpr,
    NARROWS: tl.constexpr,
    GROUPS: tl.constexpr,
    TAPS: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    DILATION: tl.constexpr,
    FORM: tl.constexpr,
    WIDE: tl.constexpr,
    MANY: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """dw[n, tap, c] = Σ narrow[pixel, n] · wide[pixel at tap, c] over one part of the narrow array's pixels.

    BLOCK_N channels of the narrow array by BLOCK_M of the wide one, WIDES and NARROWS being those of a group. WIDE and MANY are as in
    `convolution_kernel`.
    """
    if WIDE:
        wide_steps, narrow_steps = far_steps(wide_steps), far_steps(narrow_steps)
        w_steps = far_steps(w_steps)
    part = tl.program_id(2)
    if MANY:
        part, pixels_x = part.to(tl.int64), tl.cast(pixels_x, tl.int64)
    COLUMNS: tl.constexpr = WIDES * TAPS[0] * TAPS[1] * TAPS[2] if FORM == "flat" else WIDES
    if FORM == "narrow":
        n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        group, kept = n // NARROWS, n < NARROWS * GROUPS
        tap, c = tl.program_id(1) // WIDES, tl.program_id(1) % WIDES
        filled = kept
        acc = tl.zeros((BLOCK_K, BLOCK_N), tl.float32)
    else:
        TILES_M: tl.constexpr = (COLUMNS + BLOCK_M - 1) // BLOCK_M
        TILES_N: tl.constexpr = (NARROWS + BLOCK_N - 1) // BLOCK_N
        tile = tl.program_id(0)
        group = tile // (TILES_M * TILES_N)
        n = tile // TILES_M % TILES_N * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        kept = n < NARROWS
        n += group * NARROWS
        column = tile % TILES_M * BLOCK_M + tl.arange(0, BLOCK_M)[None, :]
        filled = column < COLUMNS
        if FORM == "flat":
            tap, c = column // WIDES, column % WIDES
        else:
            tap, c = tl.program_id(1), column
        acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    k_z = tap // (TAPS[1] * TAPS[2])
    k_y = tap // TAPS[2] % TAPS[1]
    k_x = tap % TAPS[2]
    channel = (group * WIDES + c) * wide_steps[4]
    for start in range(part * part_pixels, min(n_pixels, (part + 1) * part_pixels), BLOCK_K):
        pixel = start + tl.arange(0, BLOCK_K)[:, None]
        x = pixel % pixels_x
        y = pixel // pixels_x % pixels_y
        z = pixel // (pixels_x * pixels_y) % pixels_z
        image = pixel // (pixels_x * pixels_y * pixels_z)
        given = pixel < min(n_pixels, (part + 1) * part_pixels)
        at = image * narrow_steps[0] + z * narrow_steps[1] + y * narrow_steps[2]
        at += x * narrow_steps[3]
        grads = tl.load(narrow_ptr + at + n * narrow_steps[4], mask=given & kept, other=0.0)
        z = z * STRIDE[0] - PADDING[0] + k_z * DILATION[0]
        y = y * STRIDE[1] - PADDING[1] + k_y * DILATION[1]
        x = x * STRIDE[2] - PADDING[2] + k_x * DILATION[2]
        inside = given & filled & (z >= 0) & (z < depth) & (y >= 0) & (y < height)
        inside &= (x >= 0) & (x < width)
        at = image * wide_steps[0] + z * wide_steps[1] + y * wide_steps[2] + x * wide_steps[3]
        pixels = tl.load(wide_ptr + (at + channel), mask=inside, other=0.0)
        if FORM == "narrow":
            acc += grads.to(tl.float32) * pixels.to(tl.float32)
        else:
            acc = tl.dot(tl.trans(grads), pixels, acc, input_precision="ieee")
    dw = dw_ptr + part.to(tl.int64) * part_step + tap * w_steps[3] + c * w_steps[2]
    at = group * w_steps[0] + n % NARROWS * w_steps[1]
    if FORM == "narrow":
        total = tl.sum(acc, axis=0)[None, :].to(dw_ptr.dtype.element_ty)
        tl.store(dw + at, total, mask=kept)
    else:
        mask = tl.trans(kept) & filled
        tl.store(dw + tl.trans(at), acc.to(dw_ptr.dtype.element_ty), mask=mask)
