"""enable_fp_fusion makes one fma of a product and a sum, with one rounding on every device."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def combine(out, x, y, z, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    if KIND == "sum":
        r = a * b + c
    elif KIND == "swapped":
        r = c + a * b
    elif KIND == "difference":
        r = a * b - c
    elif KIND == "negated":
        r = c - a * b
    elif KIND == "constant":
        r = c - 3 * a
    elif KIND == "two":
        r = a * b + b * c
    else:
        p = a * b
        r = p + c
        tl.store(out + BLOCK + i, p)
    tl.store(out + i, r)


# What one rounding gives, in numbers that are exact in float64 up to one rounding to it.
ONCE = {
    "sum": lambda a, b, c: a * b + c,
    "swapped": lambda a, b, c: a * b + c,
    "difference": lambda a, b, c: a * b - c,
    "negated": lambda a, b, c: c - a * b,
    "constant": lambda a, b, c: c - 3 * a,
}


def operands(dtype: type) -> np.ndarray:
    """Numbers whose products and sums are exact in float64."""
    generator = np.random.default_rng(2)
    return generator.uniform(0.5, 2, (3, 1024)).astype(np.float16 if dtype is np.float16 else dtype)


twice_as_graph = pytest.mark.not_as_graph("MLX's products and sums are rounded one by one")


@twice_as_graph
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("kind", ONCE)
def test_a_product_and_a_sum_round_once(kind: str, dtype: type) -> None:
    x, y, z = operands(dtype)
    out = np.empty(1024, dtype)
    text = combine[(1,)](out, x, y, z, kind, BLOCK=1024).asm["metal"]
    assert "fma(" in text
    assert "fp contract(off)" in text
    wide = np.float64 if dtype is np.float16 else np.longdouble
    once = ONCE[kind](*(v.astype(wide) for v in (x, y, z))).astype(dtype)
    np.testing.assert_array_equal(out, once)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("kind", ONCE)
def test_without_fusion_they_round_twice(kind: str, dtype: type) -> None:
    x, y, z = operands(dtype)
    out = np.empty(1024, dtype)
    kernel = combine[(1,)](out, x, y, z, kind, BLOCK=1024, enable_fp_fusion=False)
    assert "fma(" not in kernel.asm["metal"]
    x, y, z = (v.astype(dtype) for v in (x, y, z))
    np.testing.assert_array_equal(out, ONCE[kind](x, y, z).astype(dtype))


@twice_as_graph
def test_of_two_products_the_first_is_fused() -> None:
    x, y, z = operands(np.float32)
    out = np.empty(1024, np.float32)
    combine[(1,)](out, x, y, z, "two", BLOCK=1024)
    wide = x.astype(np.longdouble) * y + (y * z).astype(np.longdouble)
    np.testing.assert_array_equal(out, wide.astype(np.float32))


def test_a_product_that_is_read_twice_stays() -> None:
    x, y, z = operands(np.float32)
    out = np.empty(2048, np.float32)
    text = combine[(1,)](out, x, y, z, "both", BLOCK=1024).asm["metal"]
    assert "fma(" not in text
    np.testing.assert_array_equal(out, np.concatenate([x * y + z, x * y]))


# MLX has no float64 on a GPU.
@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.own_route), np.int32])
def test_other_numbers_are_not_fused(dtype: type) -> None:
    x, y, z = (9 * operands(np.float64)).astype(dtype)
    out = np.empty(1024, dtype)
    text = combine[(1,)](out, x, y, z, "sum", BLOCK=1024).asm["metal"]
    assert "fma(" not in text.partition("kernel,")[2]
    np.testing.assert_array_equal(out, x * y + z)


def test_bfloats_round_after_each_operation() -> None:
    torch = pytest.importorskip("torch")
    x, y, z = torch.from_numpy(operands(np.float32)).to(torch.bfloat16)
    out = torch.empty(1024, dtype=torch.bfloat16)
    text = combine[(1,)](out, x, y, z, "sum", BLOCK=1024).asm["metal"]
    assert "fma(" not in text
    assert torch.equal(out, x * y + z)


def test_the_knobs_of_fusion_are_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = operands(np.float32)
    out = np.empty(1024, np.float32)

    def text(**options: bool) -> str:
        return combine[(1,)](out, x, y, z, "sum", BLOCK=1024, **options).asm["metal"]

    assert "fma(" in text()
    with triton.knobs.language.scope():
        triton.knobs.language.default_fp_fusion = False
        assert "fma(" not in text()
        assert "fma(" in text(enable_fp_fusion=True)
        triton.knobs.language.force_disable_fp_fusion = True
        assert "fma(" not in text(enable_fp_fusion=True)
    assert "fma(" in text()


@pytest.mark.parametrize("name", ["precise_math", "enable_fp_fusion"])
def test_the_options_are_true_or_false(name: str) -> None:
    x, y, z = operands(np.float32)
    with pytest.raises(ValueError, match=f"{name} is 2; it must be True or False"):
        combine[(1,)](x.copy(), x, y, z, "sum", BLOCK=1024, **{name: 2})


@triton.jit
def epilogue(out, a, b, c, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    at = i * N + j
    product = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(out + at, product * 0.37 + tl.load(c + j))


@twice_as_graph
def test_fragments_of_matrix_products_are_fused_in_place() -> None:
    generator = np.random.default_rng(8)
    a, b = generator.integers(-8, 9, (2, 32, 32)).astype(np.float32)
    c = generator.uniform(-1, 1, 32).astype(np.float32)
    out = np.empty((32, 32), np.float32)
    kernel = epilogue[(1,)](out, a, b, c, N=32)
    assert "fma(" in kernel.asm["metal"]
    wide = (a @ b).astype(np.float64) * np.float32(0.37) + c
    np.testing.assert_array_equal(out, wide.astype(np.float32))
