"""Atomic updates of 8, 16 and 64 bits, of every float, through any pointer: many programs and threads at one address."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from triton_metal.compiler import compile_ttir
from triton_metal.devices.target import BASELINE, Target
from triton_metal.errors import DeviceError

import metal_run
from kernel_support import dtype, needs_counters, tl, triton

NARROW = ("float16", "bfloat16")
WIDE = ("int64", "uint64")
SEEDS = (None, 1, 2, 5)


@triton.jit
def add_kernel(x_ptr, values_ptr, places_ptr, n, N: tl.constexpr):
    """Every program adds its values at places that it shares with others."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    places = tl.load(places_ptr + at, mask=at < n, other=0)
    values = tl.load(values_ptr + at, mask=at < n, other=0)
    tl.atomic_add(x_ptr + places, values, mask=at < n)


def exact_sums(name: str, values: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    sums = np.zeros(size, values.dtype if name in WIDE else np.float64)
    np.add.at(sums, places, values.astype(sums.dtype))
    return sums.astype(values.dtype)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("name", [*NARROW, "float32", "float64", *WIDE])
def test_sums_at_shared_places(name: str, size: int, num_warps: int, seed: int | None) -> None:
    rng = np.random.default_rng(size)
    n, block = 1000, 128
    if name in WIDE:
        values = rng.integers(0, 2**64, n, np.uint64).astype(name)
    else:
        # Every sum of them is exact, in any order.
        values = rng.integers(-1, 2, n).astype(dtype(name))
        if size < 8:
            values[100 * size :] = 0
    places = rng.integers(0, size, n).astype(np.int32)
    x = np.zeros(size, values.dtype)
    with triton.launch_options(schedule=seed):
        add_kernel[(triton.cdiv(n, block),)](x, values, places, n, N=block, num_warps=num_warps)
    np.testing.assert_array_equal(x, exact_sums(name, values, places, size))


@triton.jit
def tickets_kernel(counter_ptr, out_ptr, N: tl.constexpr):
    """Every thread draws tickets from one counter."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    ticket = tl.atomic_add(counter_ptr + at * 0, tl.full((N,), 1, counter_ptr.dtype.element_ty))
    tl.store(out_ptr + at, ticket)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(
    ("name", "size"), [("float16", 64), ("bfloat16", 16), ("int64", 64), ("uint64", 256)]
)
def test_each_ticket_is_drawn_once(name: str, size: int, num_warps: int, seed: int | None) -> None:
    counter = np.zeros(3, dtype(name))
    out = np.zeros(8 * size, dtype(name))
    with triton.launch_options(schedule=seed):
        tickets_kernel[(8,)](counter[1:2], out, N=size, num_warps=num_warps)
    assert counter.astype(np.float64).tolist() == [0, 8 * size, 0]
    np.testing.assert_array_equal(np.sort(out.astype(np.float64)), np.arange(8 * size))


@triton.jit
def extremes_kernel(x_ptr, least_ptr, greatest_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.atomic_min(least_ptr + at % 3, x)
    tl.atomic_max(greatest_ptr + at % 3, x)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint32", *WIDE])
def test_extremes(name: str, num_warps: int) -> None:
    rng = np.random.default_rng(3)
    bits = 64 if name.endswith("64") else 32
    x = rng.integers(0, 2**bits, 192, f"uint{bits}").astype(name)
    if name.startswith("float"):
        x = rng.normal(0, 1e6, 192).astype(name)
        x[::7] *= 0
    info = np.finfo(name) if name.startswith("float") else np.iinfo(name)
    least, greatest = np.full(3, info.max, name), np.full(3, info.min, name)
    for seed in SEEDS:
        low, high = least.copy(), greatest.copy()
        with triton.launch_options(schedule=seed):
            extremes_kernel[(3,)](x, low, high, N=64, num_warps=num_warps)
        np.testing.assert_array_equal(low, [x[k::3].min() for k in range(3)])
        np.testing.assert_array_equal(high, [x[k::3].max() for k in range(3)])


@triton.jit
def bits_kernel(x_ptr, and_ptr, or_ptr, xor_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.atomic_and(and_ptr, tl.sum(x, 0) | 5)
    tl.atomic_and(and_ptr + 1 + at % 2, x | 1)
    tl.atomic_or(or_ptr + at % 2, x)
    tl.atomic_xor(xor_ptr + at % 2, x)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("name", WIDE)
def test_bits(name: str, num_warps: int) -> None:
    x = np.random.default_rng(9).integers(0, 2**64, (4, 64), np.uint64).astype(name)
    ands, ors, xors = np.full(3, -1, np.int64).astype(name), np.zeros(2, name), np.zeros(2, name)
    kernel = bits_kernel[(4,)](x, ands, ors, xors, N=64, num_warps=num_warps)
    assert ands[0] == np.bitwise_and.reduce(x.sum(1, dtype=name) | np.array(5, name))
    for k in range(2):
        assert ands[1 + k] == np.bitwise_and.reduce((x[:, k::2] | np.array(1, name)).ravel())
        assert ors[k] == np.bitwise_or.reduce(x[:, k::2].ravel())
        assert xors[k] == np.bitwise_xor.reduce(x[:, k::2].ravel())
    # Nobody asks what the updates of an array found, and they are of one kind.
    assert not hasattr(kernel.metadata, "serial")


@triton.jit
def chain_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Exchanges: what all programs find and what is left are what there was and what they brought."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.atomic_xchg(x_ptr + at % 2, (at + 1).to(x_ptr.dtype.element_ty)))


@pytest.mark.parametrize("name", ["int32", "float32", "float64", *WIDE])
def test_exchanges(name: str) -> None:
    for seed in SEEDS:
        x, out = np.zeros(2, name), np.zeros(5 * 64, name)
        with triton.launch_options(schedule=seed):
            chain_kernel[(5,)](x, out, N=64)
        for k in range(2):
            found = np.sort(np.append(out[k::2], x[k]).astype(np.int64))
            np.testing.assert_array_equal(found, [0, *range(k + 1, 5 * 64 + 1, 2)])


@triton.jit
def claim_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Each element is claimed by one program of all that want it."""
    at = tl.arange(0, N)
    mine = (at * 0 + tl.program_id(0) + 1).to(x_ptr.dtype.element_ty)
    old = tl.atomic_cas(x_ptr + at, (at * 0).to(x_ptr.dtype.element_ty), mine)
    tl.store(out_ptr + tl.program_id(0) * N + at, old)


@pytest.mark.parametrize("name", [*NARROW, "int16", "uint16", "int32", "float32", "float64", *WIDE])
def test_compare_and_exchange(name: str) -> None:
    for seed in SEEDS:
        x, out = np.zeros(100, dtype(name)), np.zeros((6, 64), dtype(name))
        view = x[17:81]
        with triton.launch_options(schedule=seed):
            claim_kernel[(6,)](view, out, N=64)
        found, owner = out.astype(np.float64), view.astype(np.float64)
        assert ((owner >= 1) & (owner <= 6)).all()
        np.testing.assert_array_equal((found == 0).sum(0), 1)
        np.testing.assert_array_equal(found.argmin(0) + 1, owner)
        assert not x[:17].astype(bool).any()
        assert not x[81:].astype(bool).any()


@triton.jit
def one_cas_kernel(x_ptr, out_ptr, compare_ptr, value_ptr):
    tl.store(out_ptr, tl.atomic_cas(x_ptr, tl.load(compare_ptr), tl.load(value_ptr)))


@pytest.mark.own_route("MLX has no float64")
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_bits_of_floats_are_compared(name: str) -> None:
    nan = np.array([np.nan], name)
    for there, compared, changes in [
        (nan, nan, True),
        ([0.0], [-0.0], False),
        ([2.0], [2.0], True),
    ]:
        x, out = np.array(there, name), np.zeros(1, name)
        one_cas_kernel[(1,)](x, out, np.array(compared, name), np.array([7], name))
        np.testing.assert_array_equal(x, [7] if changes else np.array(there, name))
        np.testing.assert_array_equal(out, np.array(there, name))


@triton.jit
def half_update_kernel(x_ptr, value_ptr, out_ptr):
    tl.store(out_ptr, tl.atomic_add(x_ptr, tl.load(value_ptr)))


@pytest.mark.parametrize("name", NARROW)
def test_special_halves(name: str) -> None:
    """One update rounds as an addition does: to nearest even, with NaN, infinities and subnormals."""
    kind = dtype(name)
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2**16, 300, np.uint16).view(kind)
    b = rng.integers(0, 2**16, 300, np.uint16).view(kind)
    with np.errstate(all="ignore"):
        expected = (a.astype(np.float32) + b.astype(np.float32)).astype(kind)
    # fp32 subnormals need not survive on Metal; a bfloat's are such.
    tiny = np.finfo(np.float32).tiny
    for k in range(300):
        operands = np.array([a[k], b[k], expected[k]], np.float32)
        if name == "bfloat16" and ((operands != 0) & (abs(operands) < 2 * tiny)).any():
            continue
        x, out = a[k : k + 1].copy(), np.zeros(1, kind)
        half_update_kernel[(1,)](x, b[k : k + 1], out, num_warps=1)
        np.testing.assert_array_equal(out.astype(np.float32), a[k : k + 1].astype(np.float32))
        np.testing.assert_array_equal(x.astype(np.float32), expected[k : k + 1].astype(np.float32))


@triton.jit
def at_kernel(x_ptr, index, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_add(x_ptr + at * 0 + index, tl.full((N,), 1, x_ptr.dtype.element_ty))


@pytest.mark.own_check("asks for the check of bounds")
@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("start", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_words_beyond_an_array(size: int, start: int, name: str) -> None:
    """The word of the first or the last number may be partly outside of the array; the number is not."""
    whole = np.full(12, 3, dtype(name))
    x = whole[start : start + size]
    with triton.launch_options(check="bounds"):
        for index in (0, size - 1):
            at_kernel[(1,)](x, index, N=32)
        for index in (-1, size):
            with pytest.raises(DeviceError, match="an atomic operation of 2 bytes"):
                at_kernel[(1,)](x, index, N=32)
    expected = np.full(12, 3.0)
    expected[start] += 32
    expected[start + size - 1] += 32
    np.testing.assert_array_equal(whole.astype(np.float64), expected)


@triton.jit
def shifted_kernel(x_ptr, T: tl.constexpr, SHIFT: tl.constexpr):
    p = (x_ptr.to(tl.pointer_type(tl.int8)) + SHIFT).to(tl.pointer_type(T))
    tl.atomic_add(p, tl.full((), 1, T))


@needs_counters
@pytest.mark.own_check("asks for the check of bounds")
@pytest.mark.parametrize(("kind", "shift", "bytes"), [
    (tl.float16, 1, 2), (tl.float16, 3, 2), (tl.bfloat16, 7, 2), (tl.int32, 2, 4), (tl.float32, 1, 4), (tl.int64, 2, 4),
])  # fmt: skip
def test_misaligned_addresses(kind, shift: int, bytes: int) -> None:
    with (
        triton.launch_options(check="bounds"),
        pytest.raises(
            DeviceError, match=f"an atomic operation of {bytes} bytes at byte .* not aligned"
        ),
    ):
        shifted_kernel[(1,)](np.zeros(4, np.int64), T=kind, SHIFT=shift)


@triton.jit
def pointers_kernel(x_ptr, y_ptr, target_ptr, addresses_ptr, out_ptr, N: tl.constexpr):
    """Pointers into two arrays, from integers and from memory; in a loop too. What they reach is an argument."""
    at = tl.arange(0, N)
    kind: tl.constexpr = x_ptr.dtype.element_ty
    p = tl.where(at % 2 == 0, x_ptr + at, y_ptr + at)
    old = tl.atomic_add(p, (at * 0 + 1).to(kind))
    tl.store(out_ptr + at, old)
    q = tl.load(addresses_ptr + at).to(tl.pointer_type(kind))
    for _ in range(3):
        tl.atomic_add(q, (at * 0 + 1).to(kind), mask=at < N - 1)
        q += N
    tl.atomic_cas(p, (at * 0).to(kind), (at * 0).to(kind))


@needs_counters
@pytest.mark.own_route("addresses of arrays in place are in memory")
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [16, 256])
@pytest.mark.parametrize("name", ["float16", "float32", "int32", "int64"])
def test_pointers_computed_any_way(name: str, size: int, num_warps: int) -> None:
    x, y = (np.arange(size).astype(dtype(name)) * k for k in (1, 2))
    before = [x.copy(), y.copy()]
    target, out = np.zeros((3, size), dtype(name)), np.zeros(size, dtype(name))
    places = np.random.default_rng(2).permutation(size)
    addresses = target.ctypes.data + places * target.itemsize
    pointers_kernel[(1,)](
        x, y, target, addresses.astype(np.int64), out, N=size, num_warps=num_warps
    )
    even = np.arange(size) % 2 == 0
    np.testing.assert_array_equal(out, np.where(even, *before))
    np.testing.assert_array_equal(x, before[0] + even)
    np.testing.assert_array_equal(y, before[1] + ~even)
    np.testing.assert_array_equal(target, np.broadcast_to(np.arange(size) != places[-1], (3, size)))


@triton.jit
def grid_kernel(counter_ptr, out_ptr, N: tl.constexpr):
    """Each program draws a ticket of 64 bits and writes where it is, in a grid of three dimensions."""
    ticket = tl.atomic_add(counter_ptr, 1)
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    here = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(out_ptr + ticket * N + tl.arange(0, N), here)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("grid", [(1,), (5,), (3, 4), (2, 3, 4), (1, 1, 6)])
def test_serial_programs(grid: tuple[int, ...], num_warps: int) -> None:
    programs = int(np.prod(grid))
    for seed in SEEDS:
        counter, out = np.zeros(1, np.int64), np.zeros((programs, 64), np.int32)
        with triton.launch_options(schedule=seed):
            kernel = grid_kernel[grid](counter, out, N=64, num_warps=num_warps)
        assert counter[0] == programs
        assert (out == out[:, :1]).all()
        np.testing.assert_array_equal(np.sort(out[:, 0]), np.arange(programs))
    (place,) = kernel.metadata.serial
    assert Path(place.rsplit(":", 2)[0]).name == Path(__file__).name


@triton.jit
def chain_of_programs_kernel(x_ptr, state_ptr, N: tl.constexpr):
    """Serial programs: each works on what the one before has left, through other threads."""
    at = tl.arange(0, N)
    tl.atomic_max(state_ptr, tl.program_id(0).to(tl.int64) + 1)
    value = tl.load(x_ptr + at)
    tl.debug_barrier()
    tl.store(x_ptr + (N - 1 - at), value + at)


@needs_counters
@pytest.mark.own_check("the order of programs is no promise of Triton's")
def test_serial_programs_see_each_other() -> None:
    x, state = np.zeros(64, np.int32), np.zeros(1, np.int64)
    expected = x.copy()
    for _ in range(5):
        expected = (expected + np.arange(64, dtype=np.int32))[::-1]
    for seed in SEEDS:
        x[:], state[:] = 0, 0
        with triton.launch_options(schedule=seed):
            chain_of_programs_kernel[(5,)](x, state, N=64)
        np.testing.assert_array_equal(x, expected)
        assert state[0] == 5


@triton.jit
def mixed_kernel(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    one = (at * 0 + 1).to(tl.int64)
    tl.atomic_add(x_ptr + at % 4, one)
    tl.atomic_xor(x_ptr + at % 4, one * 0)
    tl.atomic_add(y_ptr + at % 4, one << 32)


@needs_counters
def test_kinds_that_do_not_commute_are_serial() -> None:
    x, y = np.zeros(4, np.int64), np.zeros(4, np.int64)
    kernel = mixed_kernel[(7,)](x, y, N=64)
    assert hasattr(kernel.metadata, "serial")
    assert x.tolist() == [7 * 16] * 4
    assert y.tolist() == [7 * 16 << 32] * 4


@triton.jit
def flags_kernel(x_ptr, flags_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_store(x_ptr + at, (at + 3).to(x_ptr.dtype.element_ty), mask=at != 5)
    tl.debug_barrier()
    got = tl.atomic_load(x_ptr + (N - 1 - at), mask=at != 7)
    tl.store(out_ptr + at, tl.where(at == 7, 0, got))
    tl.atomic_store(flags_ptr, True)
    tl.store(out_ptr + N, tl.atomic_load(flags_ptr, sem="relaxed").to(x_ptr.dtype.element_ty))


@needs_counters
@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32"]
)
def test_atomic_loads_and_stores(name: str) -> None:
    x, flags, out = np.full(64, 99, dtype(name)), np.zeros(3, bool), np.zeros(65, dtype(name))
    flags_kernel[(1,)](x, flags, out, N=64)
    expected = np.where(np.arange(64) == 5, 99, np.arange(64) + 3)
    np.testing.assert_array_equal(x.astype(np.float64), expected)
    found = expected[::-1].copy()
    found[7] = 0
    np.testing.assert_array_equal(out.astype(np.float64), [*found, 1])
    assert flags.tolist() == [True, False, False]


NARROW_TEXT = """
module {{
  tt.func public @update(%x: !tt.ptr<{type}>, %v: !tt.ptr<{type}>, %out: !tt.ptr<{type}>) {{
    %c64 = arith.constant 64 : i32
    %four = arith.constant dense<4> : tensor<64xi32>
    %true = arith.constant dense<true> : tensor<64xi1>
    %id = tt.get_program_id x : i32
    %first = arith.muli %id, %c64 : i32
    %s = tt.splat %first : i32 -> tensor<64xi32>
    %r = tt.make_range {{start = 0 : i32, end = 64 : i32}} : tensor<64xi32>
    %at = arith.addi %s, %r : tensor<64xi32>
    %vs = tt.splat %v : !tt.ptr<{type}> -> tensor<64x!tt.ptr<{type}>>
    %vp = tt.addptr %vs, %at : tensor<64x!tt.ptr<{type}>>, tensor<64xi32>
    %value = tt.load %vp : tensor<64x!tt.ptr<{type}>>
    %k = arith.remui %at, %four : tensor<64xi32>
    %xs = tt.splat %x : !tt.ptr<{type}> -> tensor<64x!tt.ptr<{type}>>
    %p = tt.addptr %xs, %k : tensor<64x!tt.ptr<{type}>>, tensor<64xi32>
    %old = tt.atomic_rmw {kind}, relaxed, gpu, %p, %value, %true
        : (tensor<64x!tt.ptr<{type}>>, tensor<64x{type}>, tensor<64xi1>) -> tensor<64x{type}>
    %os = tt.splat %out : !tt.ptr<{type}> -> tensor<64x!tt.ptr<{type}>>
    %op = tt.addptr %os, %at : tensor<64x!tt.ptr<{type}>>, tensor<64xi32>
    tt.store %op, %old : tensor<64x!tt.ptr<{type}>>
    tt.return
  }}
}}
"""

UPDATES = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "max": np.maximum, "min": np.minimum, "umax": np.maximum, "umin": np.minimum, "exch": None,
}  # fmt: skip


@needs_counters
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("kind", UPDATES)
def test_narrow_integers(kind: str, bits: int, tmp_path: Path) -> None:
    """Kinds of narrow integers, which no front end prints today: neighbours in one word, from all programs."""
    name = f"{'u' if kind.startswith('u') else ''}int{bits}"
    module = NARROW_TEXT.format(type=f"i{bits}", kind=kind)
    text = compile_ttir(module, num_warps=4).asm["metal"]
    v = np.random.default_rng(bits).integers(0, 2**bits, 5 * 64).astype(name)
    start = np.arange(4).astype(name)
    buffers = {"x": start, "v": v, "out": np.zeros_like(v)}
    for check in (
        ["--schedule=0"],
        ["--schedule=1"],
        *(["--portable", f"--seed={k}"] for k in range(4)),
    ):
        x, out = metal_run.run(
            text, tmp_path, buffers, ["x", "out"], "--threadgroups=5", "--group=128", *check
        )
        for k in range(4):
            mine = v[k::4]
            if kind == "exch":
                found = np.sort(np.append(out[k::4], x[k]))
                np.testing.assert_array_equal(found, np.sort(np.append(mine, start[k])))
            else:
                assert x[k] == UPDATES[kind].reduce(np.append(mine, start[k]), dtype=name)
                assert start[k] in out[k::4]


@needs_counters
@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize(
    ("type", "name"), [("f16", "float16"), ("bf16", "bfloat16"), ("f32", "float32")]
)
def test_extremes_of_floats(type: str, name: str, kind: str, tmp_path: Path) -> None:
    """What a reduction into a tensor descriptor is. NaN counts as missing."""
    text = compile_ttir(NARROW_TEXT.format(type=type, kind=kind), num_warps=4).asm["metal"]
    v = np.random.default_rng(4).normal(0, 100, 5 * 64).astype(dtype(name))
    v[::9] = np.nan
    start = np.array([0, np.nan, 0, 0], v.dtype)
    views = {key: a.view(np.uint16) if name == "bfloat16" else a
             for key, a in {"x": start, "v": v, "out": np.zeros_like(v)}.items()}  # fmt: skip
    (x,) = metal_run.run(text, tmp_path, views, ["x"], "--threadgroups=5", "--group=128")
    reduce = np.nanmax if kind == "max" else np.nanmin
    expected = [reduce(np.append(v[k::4], start[k]).astype(np.float32)) for k in range(4)]
    np.testing.assert_array_equal(x.view(v.dtype).astype(np.float32), expected)


@needs_counters
def test_bfloats_on_a_target_without_them() -> None:
    target = Target("test", "3.0", {**BASELINE.features, "bfloat": False})
    text = compile_ttir(NARROW_TEXT.format(type="bf16", kind="fadd"), target=target)
    assert "fetch_add_bfloat((device ushort *)" in text.asm["metal"]
