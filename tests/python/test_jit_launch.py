"""Launching: arguments, specialisation, the kernel object, options, overhead."""

from __future__ import annotations

import array
import threading

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@triton.jit
def scalars(out, a, b, c, d, e):
    tl.store(out, a.to(tl.int64))
    tl.store(out + 1, b.to(tl.int64))
    tl.store(out + 2, c.to(tl.int64))
    tl.store(out + 3, (d * 4).to(tl.int64))
    tl.store(out + 4, e.to(tl.int64))


@triton.jit
def copy_strided(x, out, stride, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.load(x + offs * stride, mask=offs < n), mask=offs < n)


@triton.jit
def programs(out):
    i = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(
        0
    ) + tl.program_id(0)
    tl.store(out + i, tl.program_id(0) + 10 * tl.program_id(1) + 100 * tl.program_id(2))


@triton.jit(do_not_specialize=["n"])
def plain(out, n):
    tl.store(out, n)


@triton.jit(do_not_specialize_on_alignment=["n"])
def unaligned(out, n):
    tl.store(out, n)


@triton.jit
def filled(out, VALUE: tl.constexpr, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.full((BLOCK,), VALUE, DTYPE))


@triton.jit
def twice(v):
    return v * 2


@triton.jit
def thrice(v):
    return v * 3


@triton.jit
def apply(x, FN: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x + offs, FN(tl.load(x + offs)))


def pair(n=300):
    rng = np.random.default_rng(0)
    return rng.standard_normal(n).astype(np.float32), rng.standard_normal(n).astype(np.float32)


def test_numpy_in_place():
    x, y = pair()
    out = np.zeros_like(x)
    kernel = add[(triton.cdiv(300, 128),)](x, y, out, 300, BLOCK=128)
    assert (out == x + y).all()
    assert isinstance(kernel, triton.CompiledKernel)


def test_grid_from_constants():
    x, y = pair()
    out = np.zeros_like(x)
    add[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, n=300, BLOCK=64)
    assert (out == x + y).all()


def test_three_dimensions():
    out = np.full(24, -1, np.int32)
    programs[(2, 3, 4)](out)
    expected = [a + 10 * b + 100 * c for c in range(4) for b in range(3) for a in range(2)]
    assert out.tolist() == expected
    programs[[np.int64(2), 3]](out)
    programs[5](out)


def test_torch():
    torch = pytest.importorskip("torch")
    x, y = (torch.from_numpy(v) for v in pair())
    out = torch.zeros_like(x)
    add[(3,)](x, y, out, 300, BLOCK=128)
    assert torch.equal(out, x + y)
    for dtype in (torch.float16, torch.bfloat16):
        a, b = x.to(dtype), y.to(dtype)
        c = torch.zeros_like(a)
        add[(3,)](a, b, c, 300, BLOCK=128)
        assert torch.equal(c, a + b)


@pytest.mark.own_route
def test_a_tensor_with_the_negative_bit_is_refused():
    """Its numbers lie in memory with the other sign, which a kernel would read, and write."""
    torch = pytest.importorskip("torch")
    x, out = torch.ones(100), torch.zeros(100)
    negated = torch.complex(x, x).conj().imag
    for arguments, name in (((negated, x, out), "x"), ((x, x, torch._neg_view(out)), "out")):
        with pytest.raises(triton.LaunchValueError, match=rf"argument {name} is a tensor with the negative bit.*resolve_neg\(\)"):  # fmt: skip
            add[(1,)](*arguments, 100, BLOCK=128)
    add[(1,)](negated.resolve_neg(), x, out, 100, BLOCK=128)
    assert not out.any()


def test_other_buffers():
    x, y = pair(100)
    out = array.array("f", [0.0] * 100)
    add[(1,)](memoryview(x), y, out, 100, BLOCK=128)
    assert (np.array(out, np.float32) == x + y).all()


def test_strided_views():
    base = np.arange(64, dtype=np.float32)
    out = np.zeros(16, np.float32)
    view = base[1::3]
    copy_strided[(1,)](view, out, view.strides[0] // 4, 16, BLOCK=16)
    assert (out == view[:16]).all()
    backwards = base[::-2]
    copy_strided[(1,)](backwards, out, backwards.strides[0] // 4, 16, BLOCK=16)
    assert (out == backwards[:16]).all()


def test_nothing_to_do_on_empty_arrays():
    empty = np.zeros(0, np.float32)
    add[(1,)](empty, empty, empty, 0, BLOCK=16)


@pytest.mark.parametrize(
    "values",
    [
        (0, 1, 2, 0.25, True),
        (-1, 2**31 - 1, -(2**31), -1.5, False),
        (2**31, 2**40 + 3, -(2**63), 3.0, True),
        (np.int32(-5), np.uint8(200), np.int64(2**35), np.float32(0.5), np.bool_(True)),
        (2**63 - 1, 16, 32, 1e3, 1),
    ],
)
def test_scalars(values):
    out = np.zeros(5, np.int64)
    scalars[(1,)](out, *values)
    expected = [int(values[0]), int(values[1]), int(values[2]), int(values[3] * 4), int(values[4])]
    assert out.tolist() == expected


def test_scalars_of_other_packages_are_numbers():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = (-3, 1, 2, ml_dtypes.bfloat16(1.5), True)
    out = np.zeros(5, np.int64)
    scalars[(1,)](out, *values)
    assert out.tolist() == [-3, 1, 2, 6, 1]


def test_unsigned_64():
    out = np.zeros(1, np.uint64)
    plain[(1,)](out, 2**64 - 1)
    assert out[0] == 2**64 - 1


def ttir_of(kernel):
    return kernel.asm["ttir"]


@pytest.mark.own_route
def test_specialisation_on_alignment():
    raw = np.zeros(1024, np.float32)
    start = -(raw.ctypes.data // 4) % 4
    aligned, odd = raw[start : start + 64], raw[start + 1 : start + 65]
    by_16 = add[(1,)](aligned, aligned, aligned, 32, BLOCK=64)
    assert ttir_of(by_16).count("tt.divisibility = 16") == 4
    none = add[(1,)](odd, odd, odd, 31, BLOCK=64)
    assert "tt.divisibility" not in ttir_of(none)
    assert by_16 is add[(1,)](aligned, aligned, aligned, 48, BLOCK=64)
    assert by_16 is not none


def test_specialisation_on_one():
    out = np.zeros(4, np.int32)
    kernel = copy_strided[(1,)](np.arange(4, dtype=np.int32), out, 1, 4, BLOCK=4)
    assert "stride" not in kernel.signature
    assert kernel.constants["stride"] == 1
    assert out.tolist() == [0, 1, 2, 3]


def test_do_not_specialize():
    out = np.zeros(1, np.int32)
    kernels = {id(plain[(1,)](out, n)) for n in (1, 2, 16)}
    assert len(kernels) == 1
    kernels = {id(unaligned[(1,)](out, n)) for n in (3, 16, 32)}
    assert len(kernels) == 1
    assert "n" not in unaligned[(1,)](out, 1).signature


def test_constants_of_every_kind():
    out = np.zeros(8, np.float32)
    for value in (0.0, -0.0, 1, True, 2.5, float("inf"), float("nan"), np.float32(0.1)):
        filled[(1,)](out, value, tl.float32, BLOCK=8)
        expected = np.full(8, value, np.float32)
        assert out.tobytes() == expected.tobytes()
    ints = np.zeros(8, np.int32)
    filled[(1,)](ints, -3, DTYPE=tl.int32, BLOCK=tl.constexpr(8))
    assert (ints == -3).all()


def test_function_as_constant():
    x = np.ones(16, np.float32)
    apply[(1,)](x, twice, BLOCK=16)
    apply[(1,)](x, FN=thrice, BLOCK=16)
    assert (x == 6).all()


def test_kernel_object():
    x, y = pair(128)
    kernel = add[(1,)](x, y, x.copy(), 128, BLOCK=128, num_warps=2, num_stages=3)
    assert "tt.func public @add" in kernel.asm["ttir"]
    assert "ttm" in kernel.asm["ttm"]
    assert "msl." in kernel.asm["msl"]
    assert "metal_stdlib" in kernel.asm["metal"]
    assert kernel.metadata.name == "add"
    assert kernel.metadata.num_warps == 2
    assert kernel.metadata.threads == 64
    writes = {a["name"]: a["writes"] for a in kernel.metadata.args if a["kind"] == "buffer"}
    assert writes == {"x": False, "y": False, "out": True}


@pytest.mark.own_route
def test_warmup():
    kernel = add.warmup(tl.float32, tl.float32, tl.float32, 1000, BLOCK=512, grid=(1,))
    assert "tt.func public @add" in kernel.asm["ttir"]
    arrays = [np.zeros(512, np.float32) for _ in range(3)]
    if all(array.ctypes.data % 16 == 0 for array in arrays):
        assert add[(1,)](*arrays, 512 + 8, BLOCK=512) is kernel
    add.warmup(np.dtype("float16"), arrays[0], np.dtype("float16"), 7, BLOCK=16)


def test_counting():
    x, y = pair(256)
    out = np.zeros_like(x)
    with triton.launch_options(count=True) as log:
        add[(2,)](x, y, out, 256, BLOCK=128)
        add[(1,)](x, y, out, 128, BLOCK=128)
    assert [launch.kernel.name for launch in log.launches] == ["add", "add"]
    assert log.launches[0].counters["device_bytes_read"] == 2048
    assert log.counters["device_bytes_written"] == 512
    with triton.launch_options() as quiet:
        add[(1,)](x, y, out, 128, BLOCK=128)
    assert quiet.launches == []


@pytest.mark.parametrize(
    "options", [{}, {"count": True}, {"check": "bounds"}, {"check": "portable"}, {"schedule": 3}]
)
def test_a_block_counts_the_launches_of_blocks_inside_of_it(options):
    x, y = pair(64)
    out = np.zeros_like(x)

    def launch(programs):
        add[(programs,)](x, y, out, 64, BLOCK=64 // programs)

    with triton.launch_options(count=True) as outer:
        launch(1)
        with triton.launch_options(**options) as inner:
            launch(2)
            with triton.launch_options(count=True) as innermost:
                launch(4)
        launch(8)
    programs = [
        [each.counters["threadgroups"] for each in log.launches]
        for log in (outer, inner, innermost)
    ]
    assert programs == [[1, 2, 4, 8], [2, 4] if options == {"count": True} else [], [4]]


def test_a_block_inside_of_a_counting_one_keeps_its_checks():
    x, y = pair(100)
    with triton.launch_options(count=True) as outer, triton.launch_options(check="bounds"):
        with pytest.raises(triton.DeviceError, match="x"):
            add[(1,)](x, y, np.zeros(101, np.float32), 101, BLOCK=128)
        add[(1,)](x, y, np.zeros(100, np.float32), 100, BLOCK=128)
    assert len(outer.launches) == 1


def test_bounds():
    x, y = pair(100)
    out = np.zeros_like(x)
    with triton.launch_options(check="bounds"):
        add[(1,)](x, y, out, 100, BLOCK=128)
        with pytest.raises(triton.DeviceError, match="x"):
            add[(1,)](x, y, np.zeros(101, np.float32), 101, BLOCK=128)
    assert (out == x + y).all()


def test_bounds_of_arrays_that_begin_at_one_place():
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    with triton.launch_options(check="bounds"):
        for first, second in ((x[:50], x), (x, x[:50])):
            with pytest.raises(triton.DeviceError, match="'x'" if first.size == 50 else "'y'"):
                add[(1,)](first, second, out, 100, BLOCK=128)
            add[(1,)](first, second, out[:50], 50, BLOCK=128)


def test_bounds_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.zeros(200)[:100]
    with triton.launch_options(check="bounds"), pytest.raises(triton.DeviceError):
        add[(1,)](x, x, torch.zeros(200), 101, BLOCK=128)


def test_bounds_of_negative_strides():
    """Memory before the first element belongs to the array, and no byte more."""
    whole = np.arange(32, dtype=np.float32)
    base, out = whole[8:24], np.full(16, -7, np.float32)
    with triton.launch_options(check="bounds"):
        copy_strided[(1,)](base[::-1], out, -1, 16, BLOCK=16)
        assert (out == base[::-1]).all()
        copy_strided[(1,)](base[::-3], out, -3, 6, BLOCK=16)
        assert (out[:6] == base[::-3]).all()
        message = r"byte -64 of 'x' .*, which has 64 bytes, 60 of them before its first element"
        with pytest.raises(triton.DeviceError, match=message):
            copy_strided[(1,)](base[::-1], out, -1, 17, BLOCK=32)
        with pytest.raises(triton.DeviceError, match="byte 4 of 'x'"):
            copy_strided[(1,)](base[::-1], out, 1, 2, BLOCK=16)


def test_schedule_changes_no_result():
    x, y = pair()
    for seed in (0, 1, 2**64 - 1):
        out = np.zeros_like(x)
        with triton.launch_options(schedule=seed):
            add[(3,)](x, y, out, 300, BLOCK=128)
        assert (out == x + y).all()


def test_threads():
    x, y = pair(1000)
    outs = [np.zeros_like(x) for _ in range(8)]

    def work(out, block):
        for _ in range(20):
            add[(triton.cdiv(1000, block),)](x, y, out, 1000, BLOCK=block)

    threads = [
        threading.Thread(target=work, args=(out, 32 << (i % 4))) for i, out in enumerate(outs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((out == x + y).all() for out in outs)


SCALE = tl.constexpr(2)


@triton.jit
def scaled(x):
    tl.store(x, tl.load(x) * SCALE)


def test_global_constant_that_changes():
    global SCALE
    x = np.ones(1, np.float32)
    scaled[(1,)](x)
    assert x[0] == 2
    SCALE = tl.constexpr(5)
    scaled[(1,)](x)
    assert x[0] == 10
    SCALE = tl.constexpr(2)
    scaled[(1,)](x)
    assert x[0] == 20
