"""Kernels that only MLX's source has: norms, rotary embedding, random bits, positions of extremes, fences, convolutions."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import source_folder
from mlx_kernels.convolution import Convolution
from mlx_kernels.parameters import threads_for
from mlx_kernels.running import (
    assert_close,
    blank,
    checked,
    decode,
    encode,
    f32,
    function_of,
    i32,
    i64,
    launch,
    numbers,
)

pytestmark = pytest.mark.skipif(
    source_folder() is None,
    reason="these kernels are in MLX's source, not in its package: TRITON_METAL_MLX_SOURCE names no checkout",
)
FLOATS = ("float32", "float16", "bfloat16")
ALL_FLOATS = pytest.mark.parametrize("t", FLOATS)
BOUND = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
EPSILON = 1e-3


def u32(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def u64(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def assert_near(out: np.ndarray, exact: np.ndarray, t: str) -> None:
    np.testing.assert_allclose(
        decode(out, t).reshape(exact.shape),
        exact,
        rtol=BOUND[t],
        atol=BOUND[t] * np.abs(exact).max(),
    )


#: Elements of a row, with a whole row in a threadgroup and in a loop; a multiple of what a thread reads, or not.
ROWS = pytest.mark.parametrize(("looped", "size"), [(False, 1000), (False, 77), (True, 4999)])


@ALL_FLOATS
@ROWS
@pytest.mark.parametrize("weighted", [True, False])
def test_rms_norm(t: str, looped: bool, size: int, weighted: bool) -> None:
    x, g = numbers((3, size), t, 1), numbers((3, size), t, 3)
    w = numbers((size,) if weighted else (1,), t, 2)
    suffix = ("_looped" if looped else "") + t
    common = {0: encode(x, t), 1: encode(w, t)}
    scalars = {3: f32(EPSILON), 4: u32(size), 5: u32(int(weighted))}
    threads = threads_for(size, looped, 4)
    options = {"grid": (3 * threads,), "group": (threads,)}
    (out,) = launch(
        "rms_norm", "rms" + suffix, {**common, **scalars, 2: blank(x.shape, t)}, [2], **options
    )
    norm = 1 / np.sqrt((x**2).mean(1, keepdims=True) + EPSILON)
    assert_near(out, x * norm * w, t)
    gx, gw = launch(
        "rms_norm",
        "vjp_rms" + suffix,
        {
            **common,
            **{2: encode(g, t), 3: blank(x.shape, t), 4: blank(x.shape, t)},
            **{key + 2: value for key, value in scalars.items()},
        },
        [3, 4],
        constants={20: weighted},
        **options,
    )
    assert_near(gx, g * w * norm - x * (g * w * x).mean(1, keepdims=True) * norm**3, t)
    if weighted:
        assert_near(gw, g * x * norm, t)
    else:
        np.testing.assert_array_equal(gw, blank(x.shape, t))


@ALL_FLOATS
@pytest.mark.parametrize(("looped", "size"), [(False, 1021), (False, 250), (True, 6998)])
@pytest.mark.parametrize("weighted", [True, False])
def test_layer_norm(t: str, looped: bool, size: int, weighted: bool) -> None:
    layer_norm(t, looped, size, weighted)


def test_defect_layer_norm_stores_before_its_array() -> None:
    """The number of elements that are left for a thread behind the row is negative."""
    with (
        checked("bounds"),
        pytest.raises(
            metal_api.LaunchError,
            match=r"line 101:19.*: a store of 4 bytes outside its array .*in thread memory",
        ),
    ):
        layer_norm("float32", False, 1000, True)


def layer_norm(t: str, looped: bool, size: int, weighted: bool) -> None:
    x, g = numbers((3, size), t, 1) + 2, numbers((3, size), t, 3)
    x = decode(encode(x, t), t)
    w, b = (numbers((size,) if weighted else (1,), t, seed) for seed in (2, 4))
    suffix = ("_looped" if looped else "") + t
    threads = threads_for(size, looped, 8)
    options = {"grid": (3 * threads,), "group": (threads,)}
    stride = u32(int(weighted))
    (out,) = launch(
        "layer_norm",
        "layer_norm" + suffix,
        {
            **{0: encode(x, t), 1: encode(w, t), 2: encode(b, t), 3: blank(x.shape, t)},
            **{4: f32(EPSILON), 5: u32(size), 6: stride, 7: stride},
        },
        [3],
        **options,
    )
    centred = x - x.mean(1, keepdims=True)
    norm = 1 / np.sqrt((centred**2).mean(1, keepdims=True) + EPSILON)
    assert_near(out, centred * norm * w + b, t)
    gx, gw = launch(
        "layer_norm",
        "vjp_layer_norm" + suffix,
        {
            **{0: encode(x, t), 1: encode(w, t), 2: encode(g, t), 3: blank(x.shape, t)},
            **{4: blank(x.shape, t), 5: f32(EPSILON), 6: u32(size), 7: stride},
        },
        [3, 4],
        constants={20: weighted},
        **options,
    )
    wg = w * g
    mean = (wg * centred).mean(1, keepdims=True)
    exact = norm * (wg - wg.mean(1, keepdims=True)) - centred * norm**3 * mean
    assert_near(gx, exact, t)
    if weighted:
        assert_near(gw, g * centred * norm, t)


def rotated(x: np.ndarray, angles: np.ndarray, traditional: bool, forward: bool) -> np.ndarray:
    """Rotates pairs of the last axis: neighbours, or elements of the two halves."""
    half = x.shape[-1] // 2
    first, second = (
        (slice(None, None, 2), slice(1, None, 2))
        if traditional
        else (slice(None, half), slice(half, None))
    )
    out, sine = np.empty_like(x), np.sin(angles) * (1 if forward else -1)
    out[..., first] = x[..., first] * np.cos(angles) - x[..., second] * sine
    out[..., second] = x[..., first] * sine + x[..., second] * np.cos(angles)
    return out


@ALL_FLOATS
@pytest.mark.parametrize("traditional", [True, False])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("frequencies", [True, False])
def test_rope(t: str, traditional: bool, forward: bool, frequencies: bool) -> None:
    """Two batches of five heads, of which a thread takes four, with an offset each; also with heads and time exchanged."""
    batch, heads, time, size = 2, 5, 7, 20
    x = numbers((batch, heads, time, size), t, 1)
    offsets, scale, base = i32(3, 11), 0.5, 100.0
    frequency = base ** -(np.arange(10) / 10)
    if frequencies:
        frequency = 1 / np.repeat(np.linspace(1, 9, 10), 1)
    positions = scale * (offsets[:, None, None, None] + np.arange(time)[:, None])
    exact = rotated(x, positions * frequency, traditional, forward)
    tail = {10: np.repeat(f32(*(1 / frequency)), 2), 11: i64(2)}
    if not frequencies:
        tail = {10: f32(np.log2(base))}
    for transposed in (False, True):
        name = f"rope_{'freqs_' if frequencies else ''}{'large_' if transposed else ''}{t}"
        stored = np.swapaxes(x, 1, 2) if transposed else x
        steps = (size, heads * size, 1) if transposed else (time * size, size, 1)
        (out,) = launch(
            "rope",
            name,
            {
                **{0: encode(stored, t), 1: blank(x.shape, t), 2: offsets, 3: f32(scale)},
                **{4: i64(*steps), 5: i64(time * size, size, 1), 6: i64(1), 7: i32(heads)},
                **tail,
            },
            [1],
            grid=(size // 2, time, batch * 2),
            group=(4, 4, 1),
            constants={1: forward, 2: traditional, 3: transposed},
        )
        assert_near(out, exact, t)
    # One step of inference.
    single = x[:, :, 0].reshape(-1, size)
    (out,) = launch(
        "rope",
        f"rope_single_{'freqs_' if frequencies else ''}{t}",
        {
            **{0: encode(single, t), 1: blank(single.shape, t), 2: i32(5), 3: f32(scale)},
            **{4: i64(size)},
            **tail,
        },
        [1],
        grid=(size // 2, batch * heads),
        group=(8, 4),
        constants={1: forward, 2: traditional, 3: False},
    )
    assert_near(out, rotated(single, scale * 5 * frequency, traditional, forward), t)


def threefry(key: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 of 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3)."""
    schedule = [int(key[0]), int(key[1]), int(key[0]) ^ int(key[1]) ^ 0x1BD11BDA]
    mask = np.uint64(0xFFFFFFFF)
    x, y = (
        (v.astype(np.uint64) + np.uint64(k)) & mask
        for v, k in zip((low, high), schedule, strict=False)
    )
    for block in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[block % 2]:
            x = (x + y) & mask
            y = (y << np.uint64(turn) | y >> np.uint64(32 - turn)) & mask
            y ^= x
        x = (x + np.uint64(schedule[(block + 1) % 3])) & mask
        y = (y + np.uint64(schedule[(block + 2) % 3] + block + 1)) & mask
    return x.astype(np.uint32), y.astype(np.uint32)


def random_bytes(keys: np.ndarray, size: int, apart: bool) -> np.ndarray:
    """So many bytes for each key."""
    words = -(-size // 4)
    buffers = {0: np.array(keys.T if apart else keys, order="C"), 3: u64(size)}
    buffers |= {1: np.zeros(len(keys) * size, np.uint8), 2: np.array([words % 2], np.bool_)}
    if apart:
        buffers |= {4: i32(2), 5: i32(3, 2), 6: i64(1, 3)}
    (out,) = launch(
        "random",
        "rbits" if apart else "rbitsc",
        buffers,
        [1],
        grid=(len(keys), -(-words // 2)),
        group=(2, 8),
    )
    return out.reshape(len(keys), size)


@pytest.mark.parametrize("apart", [False, True])
def test_random_bits(apart: bool) -> None:
    """Whole words and parts of one, from keys that lie together and apart."""
    keys = np.random.default_rng(1).integers(0, 2**32, (3, 2), np.uint32)
    for size in (4, 5, 7, 8, 30, 65, 1000):
        words = -(-size // 4)
        half = -(-words // 2)
        count = np.arange(half)
        # Of an odd number of words, the last hash gives one and counts from zero.
        second = np.where((words % 2 == 1) & (count == half - 1), 0, count + half)
        for key, out in zip(keys, random_bytes(keys, size, apart), strict=True):
            exact = np.concatenate(threefry(key, count, second)).tobytes()[:size]
            assert out.tobytes() == exact, size


def test_defect_short_keys_store_whole_words() -> None:
    """MLX cuts the last word of a key, unless it is the only one."""
    with (
        checked("bounds"),
        pytest.raises(metal_api.LaunchError, match=r"a store of 1 bytes at byte 6 of 'out'"),
    ):
        random_bytes(np.ones((3, 2), np.uint32), 2, False)


@pytest.mark.parametrize(
    "t",
    ["bool_", *(f"{s}int{bits}" for s in ("u", "") for bits in (8, 16, 32, 64)), *FLOATS],
)
def test_arg_reduce(t: str) -> None:
    """The first of equal extremes, along the last axis and along another one."""
    x = numbers((5, 300, 3), t, 1)
    for name, exact in (("argmin", np.argmin), ("argmax", np.argmax)):
        for axis in (1, 2):
            steps = [s // x.itemsize for s in x.strides]
            kept = [a for a in range(3) if a != axis]
            shape = [x.shape[a] for a in kept]
            threads = -(-x.shape[axis] // 128) * 32
            (out,) = launch(
                "arg_reduce",
                f"{name}_{t}",
                {
                    **{0: encode(x, t), 1: blank(tuple(shape), "uint32"), 2: i32(*shape)},
                    **{3: i64(*[steps[a] for a in kept]), 4: i64(shape[1], 1), 5: u64(2)},
                    **{6: i64(steps[axis]), 7: u64(x.shape[axis])},
                },
                [1],
                grid=(threads, shape[0], shape[1]),
                group=(threads,),
            )
            np.testing.assert_array_equal(out, exact(x, axis))


def test_fence() -> None:
    """One queue waits for what another one stores."""
    values = np.arange(2000, dtype=np.uint32)
    (out,) = launch(
        "fence", "input_coherent", {0: values, 1: u32(2000)}, [0], threadgroups=(2,), group=(1024,)
    )
    np.testing.assert_array_equal(out, values)
    device = metal_api.Device()
    stamp = np.zeros(1, np.uint32)
    wait, update = (
        device.pipeline(function_of("fence", name), checks="steps", max_steps=1 << 30)
        for name in ("fence_wait", "fence_update")
    )
    waiting = wait.submit(stamp, 7, threads=1, queue=device.queue())
    update(stamp, 6, threads=1, queue=device.queue())
    with pytest.raises(TimeoutError):
        waiting.wait(0.05)
    update(stamp, 7, threads=1, queue=device.queue())
    waiting.wait(20)


UNFOLDED = {
    1: Convolution(2, 5, 1, (19,), (4,), (2,), (3,), (2,), (3,)),
    2: Convolution(2, 3, 1, (6, 7), (3, 2), (1, 2), (1, 1), (2, 1), (2, 1), flip=True),
    3: Convolution(1, 6, 1, (4, 5, 3), (2, 3, 2), (1, 2, 1), (1, 1, 0), (1, 1, 2), (1, 2, 1)),
}


@ALL_FLOATS
@pytest.mark.parametrize("dimensions", UNFOLDED)
@pytest.mark.parametrize("transposed", [False, True])
def test_unfold(t: str, dimensions: int, transposed: bool) -> None:
    """What a product of matrices then makes a convolution of."""
    c = UNFOLDED[dimensions]
    c = Convolution(
        *(c.batch, c.channels, c.outputs, c.image, c.filter, c.stride, c.padding, c.spread),
        widening=c.widening,
        flip=c.flip,
        t=t,
    )
    taps, pixels = int(np.prod(c.filter)), c.batch * int(np.prod(c.size))
    x, w = c.arrays()
    (out,) = launch(
        "conv",
        f"naive_unfold{'_transpose' if transposed else ''}_nd_{t}_{dimensions}",
        {0: encode(x, t), 1: blank((pixels, taps * c.channels), t), 2: c.params()},
        [1],
        grid=(c.channels, taps, pixels),
        group=(2, 8, 1),
    )
    unfolded = decode(out, t).reshape(pixels, taps * c.channels)
    filters = w.reshape(c.outputs, taps, c.channels)
    if transposed:
        filters = np.swapaxes(filters, 1, 2)
    result = unfolded @ filters.reshape(c.outputs, -1).T
    np.testing.assert_allclose(result, c.exact().reshape(pixels, -1), atol=1e-12)


@ALL_FLOATS
@pytest.mark.parametrize("flip", [False, True])
def test_depthwise_convolutions(t: str, flip: bool) -> None:
    """A filter for each channel, of two dimensions and of one."""
    c = Convolution(
        2, 16, 16, (11, 13), (3, 5), (2, 1) if flip else (1, 2), (1, 2), groups=16, flip=flip, t=t
    )
    x, w = c.arrays()
    (out,) = launch(
        "conv",
        f"depthwise_conv_2d_{t}",
        {
            **{0: encode(x, t), 1: encode(w, t), 2: blank((2, *c.size, 16), t)},
            3: c.params(),
        },
        [2],
        threadgroups=(2, -(-c.size[1] // 8), -(-c.size[0] // 4) * 2),
        group=(8, 8, 4),
        constants={
            **{0: c.filter[0], 1: c.filter[1], 10: c.stride[0], 11: c.stride[1]},
            **{100: 4, 101: 8, 200: flip},
        },
    )
    assert_close(out, c.exact(), t, terms=15)
    x, w = numbers((2, 19, 11), t, 1), numbers((11, 4), t, 2)
    exact = sum(x[:, i : i + 16] * w[:, i] for i in range(4))
    for large in (False, True):
        strides = i64(19 * 11, 11, 1) if large else i32(19 * 11, 11, 1)
        (out,) = launch(
            "conv",
            f"depthwise_conv_1d_{t}{'_large' * large}",
            {0: encode(x, t), 1: encode(w, t), 2: blank(exact.shape, t), 3: strides, 4: i32(4)},
            [2],
            grid=(11, 16, 2),
            group=(4, 4, 2),
        )
        assert_close(out, exact, t, terms=4)


@ALL_FLOATS
def test_winograd_convolution(t: str) -> None:
    """The transforms of filters, input and output, with the products between them from NumPy."""
    c = Convolution(2, 32, 64, (9, 14), (3, 3), padding=(1, 1), t=t)
    x, w = c.arrays()
    tiles = [-(-size // 6) for size in c.size]
    padded = np.zeros((2, 6 * tiles[0] + 2, 6 * tiles[1] + 2, 32))
    padded[:, 1:10, 1:15] = x
    inner = Convolution(2, 32, 64, padded.shape[1:3], (3, 3), t=t)
    inner.size = c.size
    (filters,) = launch(
        "conv",
        f"winograd_conv_2d_weight_transform_{t}_bc32",
        {0: encode(w, t), 1: blank((64, 32, 64), t), 2: i32(32), 3: i32(64)},
        [1],
        threadgroups=(16,),
        group=(32, 4),
    )
    count = 2 * tiles[0] * tiles[1]
    options = {"threadgroups": (tiles[1], tiles[0], 2), "group": (32, 2, 2)}
    (parts,) = launch(
        "conv",
        f"winograd_conv_2d_input_transform_{t}_bc32",
        {0: encode(padded, t), 1: blank((64, count, 32), t), 2: inner.params()},
        [1],
        **options,
    )
    products = decode(parts, t).reshape(64, count, 32) @ decode(filters, t).reshape(64, 32, 64)
    (out,) = launch(
        "conv",
        f"winograd_conv_2d_output_transform_{t}_bo32",
        {0: encode(products, t), 1: blank((2, *c.size, 64), t), 2: inner.params()},
        [1],
        **options,
    )
    exact = c.exact()
    bound = {"float32": 2e-5, "float16": 2e-2, "bfloat16": 0.15}[t]
    np.testing.assert_allclose(
        decode(out, t).reshape(exact.shape), exact, atol=bound * np.abs(exact).max()
    )
