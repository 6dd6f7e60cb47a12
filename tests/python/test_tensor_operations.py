"""Metal 4's tensor operations on the host device: products of tensors in memory and in registers, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metal_run import invoke, run

HEADER = """
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;
typedef matmul2d_descriptor D;
template <typename T> using Matrix = tensor<device T, dextents<int, 2>, tensor_inline>;
"""
#: Operands in memory, cut at their ends, on several SIMD-groups.
TILES = """
kernel void product(device A *a, device B *b, device C *c, constant int3 &size, uint2 tile [[threadgroup_position_in_grid]]) {
  constexpr auto d = D(M, N, static_cast<int>(dynamic_extent), TA, TB, false, D::mode::multiply_accumulate);
  matmul2d<d, SCOPE> op;
  Matrix<A> left(a, TA ? dextents<int, 2>(size.x, size.z) : dextents<int, 2>(size.z, size.x));
  auto right = tensor(b, TB ? dextents<int, 2>{size.z, size.y} : dextents<int, 2>{size.y, size.z},
                      array<int, 2>{1, TB ? size.z : size.y});
  Matrix<C> result(c, dextents<int, 2>(size.y, size.x));
  int row = tile.y * M, column = tile.x * N;
  auto l = TA ? left.slice(row, 0) : left.slice(0, row);
  auto r = TB ? right.slice(0, column) : right.slice(column, 0);
  auto to = result.slice(column, row);
  op.run(l, r, to);
}
"""
#: All operands in registers, filled and read by their indices.
REGISTERS = """
kernel void product(device A *a, device B *b, device C *c) {
  constexpr auto d = D(M, N, K, TA, TB, true, D::mode::multiply);
  matmul2d<d, SCOPE> op;
  auto left = op.get_left_input_cooperative_tensor<A, B, C>();
  auto right = op.get_right_input_cooperative_tensor<A, B, C>();
  auto result = op.get_destination_cooperative_tensor<decltype(left), decltype(right), C>();
  for (ushort i = 0; i < left.get_capacity(); ++i) {
    auto at = left.get_multidimensional_index(i);
    left[i] = left.is_valid_element(i) ? a[at[1] * (TA ? M : K) + at[0]] : A(77);
  }
  for (auto it = right.begin(); it != right.end(); ++it) {
    auto at = it.get_multidimensional_index();
    *it = it.is_valid_element() ? b[at[1] * (TB ? K : N) + at[0]] : B(77);
  }
  op.run(left, right, result);
  result.store(Matrix<C>(c, dextents<int, 2>(N, M)));
}
"""
NUMPY = {"half": np.float16, "float": np.float32, "int8_t": np.int8, "int": np.int32}


def product(
    directory: Path,
    body: str,
    size: tuple[int, int, int],
    tile: tuple[int, int],
    transposed: tuple[bool, bool],
    types: tuple[str, str, str],
    simdgroups: int,
    *options: str,
) -> None:
    m, n, k = size
    g = np.random.default_rng(m * n + k)
    a = g.integers(-9, 10, (m, k)).astype(NUMPY[types[0]])
    b = g.integers(-9, 10, (k, n)).astype(NUMPY[types[1]])
    c = g.integers(-9, 10, (m, n)).astype(NUMPY[types[2]])
    scope = f"execution_simdgroups<{simdgroups}>" if simdgroups else "execution_thread"
    values = dict(zip(("A", "B", "C"), types, strict=True)) | {
        "M": tile[0],
        "N": tile[1],
        "K": k,
        "TA": int(transposed[0]),
        "TB": int(transposed[1]),
        "SCOPE": scope,
    }
    defines = "".join(f"#define {name} {value}\n" for name, value in values.items())
    groups = -(-n // tile[1]), -(-m // tile[0])
    (out,) = run(
        HEADER + defines + body,
        directory,
        {
            "0": a.T if transposed[0] else a,
            "1": b.T if transposed[1] else b,
            "2": c,
            **({"3": np.array([*size, 0], np.int32)} if body is TILES else {}),
        },
        ["2"],
        f"--threadgroups={groups[0]},{groups[1]}",
        f"--group={simdgroups * 32 or 1}",
        "--check",
        *options,
    )
    exact = a.astype(np.int64) @ b.astype(np.int64) + (c if body is TILES else 0)
    np.testing.assert_array_equal(out.astype(np.int64), exact)


TRANSPOSED = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("transposed", TRANSPOSED)
@pytest.mark.parametrize(
    ("size", "tile", "types", "simdgroups"),
    [
        ((70, 45, 37), (64, 32), ("half", "half", "float"), 4),
        ((30, 61, 20), (16, 48), ("int8_t", "int8_t", "int"), 3),
        ((20, 9, 5), (8, 8), ("half", "float", "float"), 1),
        ((5, 6, 7), (4, 3), ("float", "float", "float"), 0),
    ],
)
def test_tensors_in_memory(
    tmp_path: Path,
    size: tuple[int, int, int],
    tile: tuple[int, int],
    types: tuple[str, str, str],
    simdgroups: int,
    transposed: tuple[bool, bool],
) -> None:
    product(tmp_path, TILES, size, tile, transposed, types, simdgroups)


@pytest.mark.parametrize("transposed", TRANSPOSED)
@pytest.mark.parametrize(
    ("size", "types", "simdgroups"),
    [
        ((16, 32, 16), ("half", "half", "float"), 1),
        ((32, 48, 40), ("half", "half", "half"), 2),
        ((24, 20, 9), ("int8_t", "int8_t", "int"), 1),
        ((3, 4, 5), ("float", "float", "float"), 0),
    ],
)
def test_cooperative_tensors(
    tmp_path: Path,
    size: tuple[int, int, int],
    types: tuple[str, str, str],
    simdgroups: int,
    transposed: tuple[bool, bool],
) -> None:
    product(tmp_path, REGISTERS, size, size[:2], transposed, types, simdgroups)


def test_reductions_and_chained_products(tmp_path: Path) -> None:
    """softmax(a @ b) @ v, with rows reduced in registers and the first result as the second product's operand."""
    text = (
        HEADER
        + """
kernel void attention(device half *q, device half *k, device half *v, device float *out, device float *columns) {
  constexpr auto first = D(16, 32, 24), second = D(16, 16, 32);
  matmul2d<first, execution_simdgroup> scores;
  matmul2d<second, execution_simdgroup> mix;
  Matrix<half> a(q, dextents<int, 2>(24, 16)), b(k, dextents<int, 2>(32, 24)), c(v, dextents<int, 2>(16, 32));
  auto s = scores.get_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  scores.run(a, b, s);
  auto top = scores.get_row_reduction_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  auto sum = scores.get_row_reduction_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  auto column = scores.get_column_reduction_destination_cooperative_tensor<decltype(a), decltype(b), float>();
  reduce_columns(s, column, reduction_operation::min, reduction_operation_identity<float>::min_identity);
  for (ushort i = 0; i < column.get_capacity(); ++i)
    columns[column.get_multidimensional_index(i)[0]] = column[i];
  reduce_rows(s, top, reduction_operation::max, reduction_operation_identity<float>::max_identity);
  for (auto it = s.begin(); it != s.end(); ++it)
    *it = exp(*it - *top.map_iterator(it));
  reduce_rows(s, sum);
  if (is_iterator_compatible(s, sum))
    for (auto it = s.begin(); it != s.end(); ++it)
      *it /= *sum.map_iterator(it);
  if (!mix.is_compatible_as_left_input<half, half, float>(s))
    return;
  auto weights = mix.get_left_input_cooperative_tensor<half, half, float>(s);
  Matrix<float> to(out, dextents<int, 2>(16, 16));
  mix.run(weights, c, to);
}
"""
    )
    g = np.random.default_rng(3)
    q, k, v = (
        g.standard_normal(shape).astype(np.float16) for shape in ((16, 24), (24, 32), (32, 16))
    )
    out, columns = run(
        text,
        tmp_path,
        {
            "0": q,
            "1": k,
            "2": v,
            "3": np.zeros((16, 16), np.float32),
            "4": np.zeros(32, np.float32),
        },
        ["3", "4"],
        "--threadgroups=1",
        "--group=32",
        "--check",
    )
    scores = q.astype(np.float64) @ k.astype(np.float64)
    np.testing.assert_allclose(columns, scores.min(0), rtol=1e-5)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    np.testing.assert_allclose(out, weights @ v.astype(np.float64), atol=2e-3)


def test_products_are_counted_in_8x8_matrices() -> None:
    """A product of 16x32x16 is 16 of them, and its moves between lanes are no shuffles."""
    defines = "".join(
        f"#define {name} {value}\n"
        for name, value in {
            **{"A": "half", "B": "half", "C": "float", "M": 16, "N": 32, "K": 16, "TA": 0, "TB": 1},
            "SCOPE": "execution_simdgroup",
        }.items()
    )
    result = invoke(
        [f"--buffer={i}=zeros:{kind}:1024" for i, kind in enumerate(("half", "half", "float"))]
        + ["--threadgroups=1", "--group=32", "--count", "-"],
        HEADER + defines + REGISTERS,
    )
    assert result.returncode == 0, result.stderr
    counts = dict(line.split()[:2] for line in result.stdout.splitlines() if len(line.split()) >= 2)
    assert counts["simdgroup_matrix_multiplies"] == "16"
    assert counts.get("simd_shuffles", "0") == "0"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "kernel void f(tensor<device half, dextents<int, 2>> a [[buffer(0)]]) {}",
            "make a tensor_inline of a pointer",
        ),
        (
            "kernel void f(device half *p) { constexpr auto d = D(16, 16); matmul2d<d, execution_simdgroup> op; "
            "auto l = op.get_left_input_cooperative_tensor<half, half, float>(); p[0] = l[0]; }",
            "a descriptor with a constant k",
        ),
        (
            "kernel void f(device half *p) { constexpr auto d = D(16, 16, 16), e = D(16, 32, 32); "
            "matmul2d<d, execution_simdgroup> op; matmul2d<e, execution_simdgroup> other; "
            "auto l = other.get_left_input_cooperative_tensor<half, half, float>(); "
            "Matrix<half> m(p, dextents<int, 2>(16, 16)); op.run(l, m, m); }",
            "was made for another operation",
        ),
    ],
)
def test_refusals(body: str, message: str) -> None:
    result = invoke(["--list", "-"], HEADER + body)
    assert result.returncode != 0
    assert message in result.stderr
