"""What a target lacks is refused, with the place; what it has is printed for it."""

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import devices
from triton_metal.devices.target import BASELINE, FEATURES, Target, apple, features_of
from triton_metal.errors import CompileError


@triton.jit
def axpb_kernel(x_ptr, y_ptr, b_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    product = tl.load(x_ptr + offsets, mask=mask) * factor
    tl.store(y_ptr + offsets, product + tl.load(b_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def total_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.atomic_add(out_ptr, tl.sum(x))


@triton.jit
def last_kernel(x_ptr, counter_ptr, out_ptr, BLOCK: tl.constexpr):
    """The last program reads what the others have stored, so that the counter's order matters."""
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + at, tl.load(x_ptr + at))
    if tl.atomic_add(counter_ptr, 1) == 7:
        tl.store(out_ptr + 8 * BLOCK + at, tl.load(out_ptr + at))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places))
    tl.store(c_ptr + places, c)


def text_of(kernel, *arguments, **constants):
    return kernel.warmup(*arguments, **constants).asm["ttir"]


def without(*names, msl="3.2", **limits):
    features = dict(BASELINE.features)
    for name in names:
        features[name] = False
    return Target("test", msl, features, **limits)


AXPB = lambda dtype: text_of(axpb_kernel, dtype, dtype, dtype, 1000, 2.0, BLOCK=256)  # noqa: E731


def test_lacking_features_are_refused():
    ttir = text_of(last_kernel, tl.float32, tl.int32, tl.float32, BLOCK=256)
    assert triton.compile_ttir(ttir).asm["metal"]
    assert triton.compile_ttir(ttir, target=without()).asm["metal"]
    with pytest.raises(CompileError) as caught:
        triton.compile_ttir(ttir, target=without("memory_orders"))
    assert caught.value.error_message.startswith(
        "uses memory orders other than relaxed, which the target (Metal 3.2) does not have: it takes "
        "Metal 3.2, which macOS 15 has first; "
    )
    assert str(caught.value).count("error:") == 0
    assert caught.value.location.file == __file__
    assert caught.value.location.text.strip()


@pytest.mark.parametrize(
    ("text", "lacking", "word"),
    [
        (lambda: AXPB(tl.bfloat16), "bfloat", "bfloat"),
        (
            lambda: text_of(total_kernel, tl.int32, tl.int32, BLOCK=256),
            "simd_reductions",
            "simd_sum",
        ),
        (
            lambda: text_of(total_kernel, tl.float32, tl.float32, BLOCK=256),
            "float_atomics",
            "atomic_float",
        ),
        (
            lambda: text_of(product_kernel, tl.float16, tl.float16, tl.float32, N=32),
            "simdgroup_matrix",
            "simdgroup_multiply",
        ),
    ],
)
def test_lacking_features_are_done_without(text, lacking, word):
    ttir = text()
    assert word in triton.compile_ttir(ttir).asm["metal"]
    without_it = triton.compile_ttir(ttir, target=without(lacking))
    assert word not in without_it.asm["metal"]
    # Launchers still see the arrays' types.
    assert without_it.metadata["args"] == triton.compile_ttir(ttir).metadata["args"]


def test_integer_atomics_need_no_float_atomics():
    ttir = text_of(total_kernel, tl.int32, tl.int32, BLOCK=256)
    text = triton.compile_ttir(ttir, target=without("float_atomics", "bfloat", "simdgroup_matrix"))
    assert "atomic_fetch_add_explicit" in text.asm["metal"]


def test_limits_of_a_target():
    ttir = AXPB(tl.float32)
    with pytest.raises(CompileError) as caught:
        triton.compile_ttir(ttir, num_warps=16, target=without(max_threads=256))
    assert caught.value.error_message == (
        "has num_warps=16, which is 512 threads in a threadgroup, and the target takes 256: launch it "
        "with num_warps=8"
    )
    product = text_of(product_kernel, tl.float16, tl.float16, tl.float32, N=64)
    needed = triton.compile_ttir(product).metadata["threadgroup_bytes"]
    assert needed > 4096
    # Tiles become smaller where there is less memory; where the smallest do not fit, all sizes are told.
    for limit in (needed, needed - 16, needed // 2):
        fitting = triton.compile_ttir(product, target=without(threadgroup_bytes=limit))
        assert 0 < fitting.metadata["threadgroup_bytes"] <= limit
    with pytest.raises(
        CompileError,
        match=r"needs \d+ bytes of threadgroup memory, .* has 1024: use smaller blocks",
    ) as caught:
        triton.compile_ttir(product, target=without(threadgroup_bytes=1024))
    assert str(caught.value).count(" of them") == 2


@pytest.mark.parametrize("macos", ["13.6", "14.5"])
def test_floating_point_before_the_pragmas(macos):
    """The other pragma keeps products and sums apart, on the host device too."""
    ttir = AXPB(tl.float32)
    result = triton.compile_ttir(ttir, target=apple(macos, "Apple M1"), enable_fp_fusion=False)
    text = result.asm["metal"]
    assert "#pragma METAL fp" not in text
    assert "#pragma STDC FP_CONTRACT OFF" in text
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((2, 1000)).astype(np.float32)
    y = np.empty_like(x)
    factor = np.float32(1.1)
    device = devices.get("host")
    device.launch(device.compile(text, result.metadata), 4, [x, y, b, 1000, float(factor)])
    assert np.array_equal(y, x * factor + b)
    fused = (x.astype(np.float64) * factor + b).astype(np.float32)
    assert (y != fused).any()


def test_newer_targets_print_the_same():
    ttir = AXPB(tl.bfloat16)
    texts = {
        triton.compile_ttir(ttir, target=apple(macos, chip)).asm["metal"]
        for macos, chip in (("15.0", "Apple M1"), ("26.0", "Apple M3 Max"), ("27.0", "Apple M5"))
    }
    assert texts == {triton.compile_ttir(ttir).asm["metal"]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("msl=3.1,fast_math", "there is no feature 'fast_math' that a target may have"),
        ("msl=three", "the target's 'msl=three' is no version of Metal, such as msl=3.1"),
        ("msl=2.4", "the target's Metal is 2.4; kernels need Metal 3 (macOS 13)"),
        ("bfloat", "the target 'bfloat' names no version of Metal: add msl=3.2"),
        ("msl=3.1,threads=many", "the target's 'threads=many' is no number"),
    ],
)
def test_bad_targets(spec, words):
    class Spec:
        def spec(self):
            return spec

    with pytest.raises(CompileError) as caught:
        triton.compile_ttir(AXPB(tl.float32), target=Spec())
    assert caught.value.error_message.endswith(words)


def test_compiler_knows_every_feature():
    """The names in Python are the names in the compiler."""
    spec = Target("all", "4.0", dict.fromkeys(FEATURES, True)).spec()
    assert triton.compile_ttir(
        AXPB(tl.float32), target=Target("all", "4.0", dict.fromkeys(FEATURES, True))
    )
    assert set(spec.split(",")[3:]) == set(FEATURES)


def test_features_by_family_only_grow():
    for msl in ("3.0", "3.1", "3.2", "4.0"):
        before = set()
        for family in (7, 8, 9, 10):
            now = {name for name, there in features_of(msl, family).items() if there}
            assert before <= now
            before = now
    assert features_of("4.0", 10) == dict.fromkeys(FEATURES, True)
