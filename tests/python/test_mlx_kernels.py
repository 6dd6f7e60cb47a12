"""MLX's own Metal kernels, as an installed MLX has them, on the host device: text that was written for Apple's compiler."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metal_run import invoke, run
from mlx_kernels import NEEDS_MLX, include_folder

K = "mlx/backend/metal/kernels"


INCLUDE = include_folder()
pytestmark = NEEDS_MLX


def text(headers: list[str], name: str, function: str, *arguments: str) -> str:
    includes = "".join(f'#include "{K}/{header}"\n' for header in ["utils.h", *headers])
    return f'{includes}instantiate_kernel("{name}", {", ".join([function, *arguments])})\n'


def raw(*parts: np.ndarray) -> np.ndarray:
    """Bytes of a parameter struct."""
    return np.frombuffer(b"".join(part.tobytes() for part in parts), np.uint8)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def bfloat(array: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize("columns", [1000, 4096])
@pytest.mark.parametrize("dtype", ["float", "half", "bfloat16_t"])
def test_softmax(tmp_path: Path, columns: int, dtype: str) -> None:
    x = rng().standard_normal((5, columns)).astype(np.float32) * 3
    stored = {"float": x, "half": x.astype(np.float16), "bfloat16_t": bfloat(x)}[dtype]
    exact_input = {"float": x, "half": x.astype(np.float16), "bfloat16_t": widened(bfloat(x))}[
        dtype
    ].astype(np.float64)
    threads = -(-columns // 4 // 32) * 32
    (out,) = run(
        text(["softmax.h"], "k", "softmax_single_row", dtype, "float"),
        tmp_path,
        {"0": stored, "1": np.zeros_like(stored), "2": i32(columns)},
        ["1"],
        f"--threadgroups={5}",
        f"--group={threads}",
        f"-I{INCLUDE}",
        "--check",
    )
    exact = np.exp(exact_input - exact_input.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    got = widened(out) if dtype == "bfloat16_t" else out
    relative = {"float": 1e-5, "half": 2e-3, "bfloat16_t": 8e-3}[dtype]
    np.testing.assert_allclose(got, exact, rtol=relative, atol=1e-7)


@pytest.mark.parametrize(
    ("dtype", "transposed"), [("float", False), ("half", True), ("bfloat16_t", False)]
)
@pytest.mark.parametrize("shape", [(64, 64, 64), (50, 70, 33)])
def test_steel_gemm(
    tmp_path: Path, dtype: str, transposed: bool, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    a = rng().integers(-4, 5, (m, k)).astype(np.float32)
    b = rng().integers(-4, 5, (k, n)).astype(np.float32)
    stored = {"float": np.asarray, "half": lambda v: v.astype(np.float16), "bfloat16_t": bfloat}[
        dtype
    ]
    second = b.T if transposed else b
    tiles_n, tiles_m = -(-n // 32), -(-m // 32)
    params = raw(
        i32(m, n, k, k, k if transposed else n, n, tiles_n, tiles_m),
        i64(m * k, k * n, m * n),
        i32(0, k // 16, 1),
        i32(0),
    )
    (out,) = run(
        text(
            ["steel/gemm/gemm.h", "steel/gemm/kernels/steel_gemm_fused.h"],
            "k",
            "gemm",
            dtype,
            "32",
            "32",
            "16",
            "2",
            "2",
            "false",
            str(transposed).lower(),
            "float",
        ),
        tmp_path,
        {
            "0": stored(a),
            "1": stored(second),
            "3": np.zeros_like(stored(np.zeros((m, n), np.float32))),
            "4": params,
        },
        ["3"],
        f"--threadgroups={tiles_n},{tiles_m}",
        "--group=32,2,2",
        f"-I{INCLUDE}",
        "--check",
        "--constant=10=false",
        "--constant=100=false",
        "--constant=110=false",
        f"--constant=200={str(m % 32 == 0).lower()}",
        f"--constant=201={str(n % 32 == 0).lower()}",
        f"--constant=202={str(k % 16 == 0).lower()}",
    )
    exact = a.astype(np.float64) @ b.astype(np.float64)
    got = widened(out) if dtype == "bfloat16_t" else out
    np.testing.assert_allclose(got, exact, rtol=4e-3 if dtype == "bfloat16_t" else 0, atol=0)


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        ("float", rng().standard_normal((3, 300)).astype(np.float32)),
        ("int", rng().integers(-100, 100, (3, 512)).astype(np.int32)),
    ],
)
def test_block_sort(tmp_path: Path, dtype: str, array: np.ndarray) -> None:
    rows, columns = array.shape
    (out,) = run(
        text(["sort.h"], "k", "block_sort", dtype, dtype, "false", "128", "4"),
        tmp_path,
        {
            "0": array,
            "1": np.zeros_like(array),
            "2": i32(columns),
            "3": i32(1),
            "4": i32(1),
            "5": i32(columns),
            "6": i32(columns),
        },
        ["1"],
        f"--threadgroups=1,{rows}",
        "--group=128",
        f"-I{INCLUDE}",
        "--check",
    )
    np.testing.assert_array_equal(out, np.sort(array, axis=1))


@pytest.mark.parametrize(
    ("op", "exact"), [("CumSum<float>", np.cumsum), ("CumMax<float>", np.maximum.accumulate)]
)
def test_contiguous_scan(tmp_path: Path, op: str, exact) -> None:
    x = rng().integers(-9, 10, (4, 1500)).astype(np.float32)
    kernel = text(["scan.h"], "k", "contiguous_scan", "float", "float", op, "4", "true", "false")
    (out,) = run(
        kernel,
        tmp_path,
        {"0": x, "1": np.zeros_like(x), "2": i64(1500)},
        ["1"],
        "--threadgroups=1,4",
        "--group=256",
        f"-I{INCLUDE}",
        # It reads elements that no thread has written, which does not matter (docs/checks.md).
        "--check=bounds,races,divergence,arithmetic,steps",
    )
    np.testing.assert_array_equal(out, exact(x, axis=1))


@pytest.mark.parametrize(
    ("dtype", "op", "exact"), [("float", "Sum<float>", np.sum), ("int", "Max<int>", np.max)]
)
def test_row_reduce(tmp_path: Path, dtype: str, op: str, exact) -> None:
    x = rng().integers(-50, 50, (10, 700)).astype(np.float32 if dtype == "float" else np.int32)
    (out,) = run(
        text(
            ["atomic.h", "reduction/ops.h", "reduce.h"], "k", "row_reduce_simple", dtype, dtype, op
        ),
        tmp_path,
        {"0": x, "1": np.zeros(10, x.dtype), "2": i64(700), "3": i64(10)},
        ["1"],
        "--threadgroups=1,3",
        "--group=64",
        f"-I{INCLUDE}",
        "--check",
    )
    np.testing.assert_array_equal(out, exact(x, axis=1))


@pytest.mark.parametrize(
    ("op", "exact", "bound"),
    [
        ("Exp", np.exp, 1e-6),
        ("Log", np.log, 1e-6),
        ("Sin", np.sin, 1e-6),
        ("Tanh", np.tanh, 1e-6),
        ("Sigmoid", lambda v: 1 / (1 + np.exp(-v)), 1e-6),
        ("Rsqrt", lambda v: 1 / np.sqrt(v), 1e-6),
        ("Expm1", np.expm1, 2e-5),
        ("Log1p", np.log1p, 1e-5),
        ("Square", np.square, 1e-6),
        ("Round", np.rint, 0),
    ],
)
def test_unary(tmp_path: Path, op: str, exact, bound: float) -> None:
    x = np.linspace(0.01, 8, 1001, dtype=np.float32)
    (out,) = run(
        text(["unary_ops.h", "unary.h"], "k", "unary_v", "float", "float", op),
        tmp_path,
        {"0": x, "1": np.zeros_like(x), "2": np.array([x.size], np.uint32)},
        ["1"],
        f"--grid={-(-x.size // 2)}",
        "--group=64",
        f"-I{INCLUDE}",
        "--check",
    )
    np.testing.assert_allclose(out, exact(x.astype(np.float64)), rtol=bound)


@pytest.mark.parametrize("shape", [(64, 64), (45, 77)])
def test_attention(tmp_path: Path, shape: tuple[int, int]) -> None:
    queries, keys = shape
    heads, width = 2, 64
    q = rng().standard_normal((1, heads, queries, width)).astype(np.float16)
    k = rng().standard_normal((1, heads, keys, width)).astype(np.float16)
    v = rng().standard_normal((1, heads, keys, width)).astype(np.float16)
    blocks_q, blocks_k = -(-queries // 32), -(-keys // 32)
    scale = np.float32(width**-0.5)
    strides = [
        i64(heads * length * width, length * width, width)
        for length in (queries, keys, keys, queries)
    ]
    params = raw(
        i32(1, heads, width, queries, keys, 1),
        np.array([scale]),
        i32(blocks_q, blocks_k, queries // 32, keys // 32, queries % 32, keys % 32, keys - queries),
        *strides,
    )
    (out,) = run(
        text(
            ["steel/attn/attn.h", "steel/attn/kernels/steel_attention.h"],
            "k",
            "attention",
            "half",
            "32",
            "32",
            "64",
            "4",
            "1",
            "half",
            "float",
        ),
        tmp_path,
        {"0": q, "1": k, "2": v, "3": np.zeros_like(q), "4": params},
        ["3"],
        f"--threadgroups={blocks_q},{heads},1",
        "--group=32,4,1",
        f"-I{INCLUDE}",
        "--check",
        f"--constant=200={str(queries % 32 == 0).lower()}",
        f"--constant=201={str(keys % 32 == 0).lower()}",
        *(f"--constant={index}=false" for index in (300, 301, 302)),
    )
    scores = np.einsum("bhqd,bhkd->bhqk", q.astype(np.float64), k.astype(np.float64)) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    exact = weights @ v.astype(np.float64)
    np.testing.assert_allclose(out, exact, atol=2e-3, rtol=0)


@pytest.mark.parametrize(
    ("headers", "function", "arguments"),
    [
        (["binary_ops.h", "binary.h"], "binary_vv", ["bfloat16_t", "bfloat16_t", "Add"]),
        (["binary_ops.h", "binary.h"], "binary_vv", ["complex64_t", "complex64_t", "Multiply"]),
        (["copy.h"], "copy_v", ["half", "bfloat16_t"]),
        (["arange.h"], "arange", ["half"]),
        (["gemv.h"], "gemv", ["half", "4", "1", "1", "32", "4", "4", "false", "false"]),
        (["logsumexp.h"], "logsumexp", ["bfloat16_t", "float"]),
        (
            ["steel/gemm/gemm.h", "quantized_utils.h", "quantized.h"],
            "affine_qmv_fast",
            ["bfloat16_t", "64", "4", "false"],
        ),
        (
            ["steel/gemm/gemm.h", "quantized_utils.h", "quantized.h"],
            "affine_qmm_t",
            ["half", "64", "4", "true", "false"],
        ),
        (
            [
                "steel/gemm/gemm.h",
                "steel/conv/conv.h",
                "steel/conv/params.h",
                "steel/utils.h",
                "steel/conv/kernels/steel_conv.h",
            ],
            "implicit_gemm_conv_2d",
            ["half", "32", "32", "16", "2", "2", "1", "false"],
        ),
    ],
)
def test_compiles(headers: list[str], function: str, arguments: list[str]) -> None:
    result = invoke(["--list", f"-I{INCLUDE}", "-"], text(headers, "k", function, *arguments))
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[0] == "k"
