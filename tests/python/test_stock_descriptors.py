"""Tensor descriptors and block pointers as stock Triton prints them, against NumPy and torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
tools = pytest.importorskip("triton.tools.tensor_descriptor")

import triton_metal  # noqa: E402

from stock_support import MARKS, metal_backend  # noqa: E402, F401 - a fixture

pytestmark = MARKS


def window(x: Any, i: int, j: int, m: int, n: int, other: Any = 0) -> Any:
    """A block of a tensor, with another value outside."""
    out = torch.full((m, n), other, dtype=torch.float64).to(x.dtype)
    for a in range(max(0, -i), min(m, x.shape[0] - i)):
        for b in range(max(0, -j), min(n, x.shape[1] - j)):
            out[a, b] = x[i + a, j + b]
    return out


def same(a: Any, b: Any) -> bool:
    return np.array_equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


@triton.jit
def load_block(d, out, i, j, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + rows * N + columns, d.load([i, j]))


@triton.jit
def load_from_both(d, n, e, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = d.load([n, 0]) + e.load([0, n]).to(tl.float32) + d.shape[1]
    tl.store(out + rows * N + columns, tile)


def test_what_is_passed_twice_is_read_once() -> None:
    x = torch.arange(24 * 32, dtype=torch.float32).reshape(24, 32)
    y = torch.arange(8 * 16, dtype=torch.float16).reshape(8, 16)
    out = torch.zeros(8, 16)
    kernel = load_from_both[(1,)](
        tools.TensorDescriptor.from_tensor(x, [8, 16]),
        3,
        tools.TensorDescriptor.from_tensor(y, [8, 16]),
        out,
        M=8,
        N=16,
    )
    wanted = window(x, 3, 0, 8, 16) + window(y, 0, 3, 8, 16).float() + 32
    assert same(out, wanted)
    assert "_size_" not in kernel.asm["metal"]


@triton.jit
def store_block(source, d, i, j, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    d.store([i, j], tl.load(source + rows * N + columns))


DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64"
FLOAT8 = "float8_e5m2 float8_e4m3fn"


@pytest.mark.parametrize("name", [*DTYPES.split(), *FLOAT8.split()])
@pytest.mark.parametrize("place", [(0, 0), (3, 16), (-2, 40), (20, 0)])
@pytest.mark.parametrize("check", [None, "bounds", "portable"])
def test_host_descriptors_of_each_dtype(name: str, place: tuple[int, int], check: str) -> None:
    dtype = getattr(torch, name)
    # A view with padding between its rows.
    memory = torch.randint(0, 100, (14, 64), generator=torch.manual_seed(3)).to(dtype)
    x = memory[:13, :48]
    out = torch.full((8, 16), 7.0, dtype=torch.float64).to(dtype)
    padding = "nan" if dtype.is_floating_point else "zero"
    d = tools.TensorDescriptor.from_tensor(x, [8, 16], padding)
    with triton_metal.launch_options(check=check):
        load_block[(1,)](d, out, *place, M=8, N=16)
        wanted = window(x, *place, 8, 16, float("nan") if padding == "nan" else 0)
        assert torch.equal(out.double().nan_to_num(-3), wanted.double().nan_to_num(-3))
        tile = torch.randint(0, 100, (8, 16)).to(dtype)
        after = memory.clone()
        for a in range(8):
            for b in range(16):
                if 0 <= place[0] + a < 13 and 0 <= place[1] + b < 48:
                    after[place[0] + a, place[1] + b] = tile[a, b]
        store_block[(1,)](tile, d, *place, M=8, N=16)
    assert same(memory, after)


@triton.jit
def shift(a, b, n, BLOCK: tl.constexpr):
    for i in range(0, n, BLOCK):
        b.store([i + 4], a.load([i]) + 1)


def test_descriptors_that_share_memory_keep_their_order() -> None:
    x = torch.arange(64, dtype=torch.float32)
    wanted = x.clone()
    for i in range(0, 32, 16):
        wanted[i + 4 : i + 20] = wanted[i : i + 16] + 1
    shift[(1,)](
        tools.TensorDescriptor(x, [64], [1], [16]),
        tools.TensorDescriptor(x, [64], [1], [16]),
        32,
        BLOCK=16,
    )
    assert torch.equal(x, wanted)


@triton.jit
def store_first(d, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), d.load([0]))


@pytest.mark.skipif(
    "round_f32_to_tf32" not in tools.TensorDescriptor.__dataclass_fields__, reason="of Triton 3.9"
)
def test_a_host_descriptor_rounds_to_tf32() -> None:
    x = torch.tensor([1 + 2**-11, 1 + 3 * 2**-11, -torch.inf, torch.nan, 3.4e38, 1e-40, -0.0, 5])
    out = torch.zeros(8)
    d = tools.TensorDescriptor(x, [8], [1], [8], round_f32_to_tf32=True)
    store_first[(1,)](d, out, N=8)
    bits = x.numpy().view(np.uint32)
    rounded = ((bits + 0xFFF + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)).view(np.float32)
    np.testing.assert_array_equal(out.numpy(), np.where(np.isfinite(x.numpy()), rounded, x.numpy()))
    d.round_f32_to_tf32 = False
    store_first[(1,)](d, out, N=8)
    np.testing.assert_array_equal(out.numpy(), x.numpy())


@triton.jit
def in_loops(x, y, out, m, n, steps, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BM, BN], padding_option="nan")
    b = tl.make_tensor_descriptor(y, [m, n], [n, 1], [BM, BN])
    to = tl.make_tensor_descriptor(out, [m, n], [n, 1], [BM, BN])
    k = 0
    while k < steps:
        if k % 3 == 1:
            a = tl.make_tensor_descriptor(x + k * n, [m - k, n], [n, 1], [BM, BN])
        to.store([k, 0], a.load([k, -1]) + b.load([k - 1, 3]))
        a, b = b, a
        k += 1


def test_descriptors_change_in_loops() -> None:
    x, y = torch.randn(2, 12, 20)
    out, wanted = torch.zeros(12, 20), torch.zeros(12, 20)
    in_loops[(1,)](x, y, out, 12, 20, 7, BM=4, BN=16)
    # What a descriptor reads outside of its tensor goes with it.
    a, b = (x, float("nan")), (y, 0.0)
    for k in range(7):
        if k % 3 == 1:
            a = (x[k:], 0.0)
        tile = window(a[0], k, -1, 4, 16, a[1]) + window(b[0], k - 1, 3, 4, 16, b[1])
        wanted[k : k + 4, :16] = tile[: 12 - k]
        a, b = b, a
    torch.testing.assert_close(out, wanted, rtol=0, atol=0, equal_nan=True)


@triton.jit
def update_strange(d, v, N: tl.constexpr):
    d.atomic_xor([0], tl.load(v + tl.arange(0, N)))


def test_updates_through_a_host_descriptor() -> None:
    x = torch.arange(12, dtype=torch.int32)
    v = torch.full((16,), 5, dtype=torch.int32)
    update_strange[(3,)](tools.TensorDescriptor(x, [12], [1], [16]), v, N=16)
    assert torch.equal(x, torch.arange(12, dtype=torch.int32) ^ 5)


@triton.jit
def refused(x, n):
    d = tl.make_tensor_descriptor(x, [n], [1], [16])
    d.atomic_add([0], d.load([0]))


def test_a_refusal_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    x = torch.zeros(16, dtype=torch.float8_e5m2)
    with pytest.raises(Exception, match=r"Unsupported dtype|does not work on") as caught:
        refused[(1,)](x, 16)
    assert "d.atomic_add" in str(caught.value)


@pytest.mark.parametrize(
    ("strides", "first", "message"),
    [([18, 1], 0, "multiple of 16 bytes"), ([16, 2], 0, "is 2, not 1"), ([16, 1], 1, "aligned to")],
)
def test_descriptors_that_have_changed_are_checked(
    strides: list[int], first: int, message: str
) -> None:
    x, out = torch.zeros(300, dtype=torch.float16), torch.zeros(8, 16, dtype=torch.float16)
    d = tools.TensorDescriptor(x, [8, 16], [16, 1], [8, 16])
    d.strides, d.base = strides, x[first:]
    with pytest.raises(ValueError, match=message):
        load_block[(1,)](d, out, 0, 0, M=8, N=16)
