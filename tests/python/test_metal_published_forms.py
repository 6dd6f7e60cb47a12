"""Further forms that published Metal texts use: each kernel here is small, and its result is known."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


def run(
    device: metal.Device, text: str, *buffers: np.ndarray, constants: dict | None = None, **options
) -> list[np.ndarray]:
    """Runs the kernel `k` of a text under all checks and without: the buffers afterwards, which must be the same."""
    library = device.library(HEAD + text)
    results = []
    for checks in (True, ()):
        copies = [buffer.copy() for buffer in buffers]
        pipeline = device.pipeline(library.function("k", constants or {}), checks=checks)
        pipeline(*map(metal.Buffer, copies), **{"threads": 1, **options})
        results.append(copies)
    for checked, unchecked in zip(*results, strict=True):
        np.testing.assert_array_equal(checked, unchecked)
    return results[1]


@pytest.mark.parametrize("width", ["uint", "size_t", "unsigned int", "ushort", "int"])
def test_the_width_of_a_vector_is_deduced_as_any_integer(device: metal.Device, width: str) -> None:
    text = f"""
    template <typename T, {width} N> T total(vec<T, N> v) {{
      T sum = 0;
      for (uint i = 0; i < N; ++i) sum += v[i];
      return sum;
    }}
    template <typename T> struct Width {{ static constexpr constant int value = 1; }};
    template <typename T, {width} Count> struct Width<vec<T, Count>> {{ static constexpr constant int value = Count; }};
    template <{width} A, {width} B, typename T> vec<T, A> cut(vec<T, B> v) {{ return vec<T, A>(v.x, v.y); }}
    kernel void k(device float *o) {{
      o[0] = total(float3(1, 2, 4)) + total(int2(8, 16));
      o[1] = Width<half4>::value * 10 + Width<float>::value;
      o[2] = cut<2>(float4(3, 5, 7, 9)).y;
    }}"""
    (out,) = run(device, text, np.zeros(3, np.float32))
    assert out.tolist() == [31, 41, 5]


def test_traits_of_numbers_are_true_for_their_vectors(device: metal.Device) -> None:
    text = """
    template <typename T, typename E = enable_if_t<is_integral<T>::value>>
    T halved(T v) { return v / T(2); }
    kernel void k(device int4 *o) {
      o[0] = halved(o[0]);
      o[1] = int4(is_floating_point_v<half3>, is_arithmetic<uint2>::value, is_signed_v<int4>, is_unsigned_v<ushort2>);
      o[2] = int4(is_integral_v<float2>, is_floating_point_v<int3>, is_scalar_v<float4>, is_signed_v<uint2>);
      o[3] = int4(is_integral_v<bool>, is_floating_point_v<bfloat>, is_signed_v<half>, is_unsigned_v<uchar>);
    }"""
    out = np.zeros((4, 4), np.int32)
    out[0] = [8, 9, -4, 1]
    (out,) = run(device, text, out)
    assert out.tolist() == [[4, 4, -2, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]


def test_a_conditional_between_two_places_is_a_place(device: metal.Device) -> None:
    text = """
    struct Camera { float3 eye; float width; };
    kernel void k(device Camera *left, device Camera *right, device float *o, uint i [[thread_position_in_grid]]) {
      bool odd = i & 1;
      device const Camera &camera = odd ? left[i] : right[i];
      device Camera *where = &(odd ? left[i] : right[i]);
      o[i] = camera.width + where->eye.y;
      (odd ? left[i] : right[i]).width = 5;
      (odd ? o[i + 4] : o[i + 8]) = 2;
    }"""
    cameras = [np.arange(32, dtype=np.float32).reshape(4, 8) + 100 * k for k in range(2)]
    left, right, out = run(device, text, *cameras, np.zeros(12, np.float32), threads=4)
    expected = [cameras[1 - (i & 1)][i, 4] + cameras[1 - (i & 1)][i, 1] for i in range(4)]
    assert out.tolist() == [*expected, 0, 2, 0, 2, 2, 0, 2, 0]
    assert left[:, 4].tolist() == [4, 5, 20, 5]
    assert right[:, 4].tolist() == [5, 112, 5, 128]


def test_a_conditional_between_a_place_and_a_value_is_a_value(device: metal.Device) -> None:
    text = """
    struct Pair { float a, b; };
    Pair made(float v) { Pair p; p.a = v; p.b = -v; return p; }
    kernel void k(device Pair *p, constant float4 &v, device float4 *o, uint i [[thread_position_in_grid]]) {
      const Pair q = i > 0 ? p[i] : made(9);
      float4 w = i > 0 ? v : o[0];
      o[i] = float4(q.a, q.b, w.xy);
    }"""
    out = np.zeros((2, 4), np.float32)
    out[0] = [6, 7, 8, 9]
    values = np.array([[1, 2], [3, 4]], np.float32)
    _, _, out = run(device, text, values, np.array([10, 11, 12, 13], np.float32), out, threads=2)
    assert out.tolist() == [[9, -9, 6, 7], [3, 4, 10, 11]]


def test_vectors_in_volatile_memory(device: metal.Device) -> None:
    text = """
    struct Block { float4 value; int2 counts; float3x3 turn; };
    kernel void k(volatile device Block &block, volatile device float4 *o, device float *sum) {
      threadgroup volatile float2 shared[2];
      shared[0] = float2(3, 4);
      block.value = float4(20);
      block.value.y = 2;
      block.counts = int2(5, 6);
      o[0] = block.value;
      o[1] = float4(float2(shared[0]), float2(block.counts));
      sum[0] = o[0].x + o[1].w;
    }"""
    _, out, total = run(
        device,
        text,
        np.zeros(20, np.float32),
        np.zeros((2, 4), np.float32),
        np.zeros(1, np.float32),
    )
    assert out.tolist() == [[20, 2, 20, 20], [3, 4, 5, 6]]
    assert total[0] == 26


def test_hints_to_the_compiler_change_nothing(device: metal.Device) -> None:
    text = """
    kernel void k(device int *o, uint i [[thread_position_in_grid]]) {
      __builtin_assume(i < 4);
      if (__builtin_expect(o[i] > 2, 0)) o[i] = __builtin_expect(o[i], 1) + 10;
    }"""
    (out,) = run(device, text, np.array([1, 2, 3, 4], np.int32), threads=4)
    assert out.tolist() == [1, 2, 13, 14]


def test_constants_made_of_constants_made_of_function_constants(device: metal.Device) -> None:
    text = """
    constant int given [[function_constant(0)]];
    constant int size = is_function_constant_defined(given) ? given : 3;
    template <typename T, size_t N> struct Table {
      T rows[N];
      constexpr const constant T &operator[](size_t i) const constant { return rows[i]; }
    };
    constant Table<Table<int, 2>, 2> table = Table<Table<int, 2>, 2>{{{{size, 1}}, {{2, size}}}};
    constant int corner = table[1][1];
    constant bool same = corner == table[0][0];
    constant int3 first = int3(size, corner, same);
    constant int3 second = int3(first.z, first.y, first.x);
    constant int3 third = second.zxy;
    constant int last = third.x * 100 + third.y * 10 + third.z;
    constant int difference = last - corner;
    kernel void k(device int *o) { o[0] = last; o[1] = difference; }"""
    (out,) = run(device, text, np.zeros(2, np.int32), constants={"given": 7})
    assert out.tolist() == [717, 710]
    (out,) = run(device, text, np.zeros(2, np.int32))
    assert out.tolist() == [313, 310]


@pytest.mark.parametrize("offset", range(0, 32, 8))
def test_an_array_at_any_address_is_one_value(device: metal.Device, offset: int) -> None:
    text = (
        "kernel void k(constant ulong4 &sizes, device ulong *o) { o[0] = sizes.x * 10 + sizes.w; }"
    )
    memory = np.zeros(16, np.uint64)
    start = -memory.ctypes.data % 32 + offset
    sizes = memory.view(np.uint8)[start : start + 32].view(np.uint64)
    sizes[:] = [4, 5, 6, 7]
    assert sizes.ctypes.data % 32 == offset
    out = np.zeros(1, np.uint64)
    device.pipeline(device.library(HEAD + text).function("k"))(sizes, out, threads=1)
    assert out[0] == 47


def test_one_condition_selects_whole_vectors(device: metal.Device) -> None:
    text = """
    kernel void k(device int3 *o, device half2 *h, uint i [[thread_position_in_grid]]) {
      o[i] = select(int3(1, 2, 3), int3(4, 5, 6), i == 1);
      h[i] = select(half2(1, 2), 3.0h, bool2(false, i == 1)) + select(half2(0), half2(10), i == 0);
    }"""
    out, halves = run(
        device, text, np.zeros((2, 4), np.int32), np.zeros((2, 2), np.float16), threads=2
    )
    assert out[:, :3].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert halves.tolist() == [[11, 12], [1, 3]]


def test_functions_of_vectors_take_packed_vectors(device: metal.Device) -> None:
    text = """
    struct Point { packed_float3 at, normal; packed_uint3 cell; packed_half2 weight; };
    constant packed_float3 up = packed_float3(0, 3, 4);
    kernel void k(device float *o, device Point *points, constant Point &other) {
      float3 v = float3(1, 2, 2);
      device Point &p = points[0];
      const packed_float3 n = p.normal;
      o[0] = dot(v, p.normal) + dot(p.normal, v) + dot(p.at, p.normal) + dot(n, v - 1.0f) + dot(v, -n) + dot(v, 2 * p.at);
      o[1] = length(up) + distance(p.at, v) + cross(v, p.normal).x + cross(n, v).y + normalize(up).z;
      o[2] = max(v, p.at).x + min(p.at, 1.0f).y + clamp(p.at, 0.0f, 2.0f).z + mix(p.at, v, 0.5f).x + mix(v, v, n).y;
      o[3] = fma(n, v, v).y + abs(-p.at).x + max(0.5f, n).z + fma(v, v, n).z + step(2.0f, p.at).y;
      o[4] = max(p.cell, uint3(4)).z + popcount(p.cell).x + float(dot(p.weight, half2(2))) + select(v, n, bool3(true)).x;
      o[5] = fast::exp(p.at - p.at).x + precise::sqrt(up * up).z + reflect(v, n).x + float(isnan(other.at).y);
      o[6] = (float3x3(2) * p.at).z + any(p.normal > v) + rotate(other.cell, uint3(1)).y + length(p.at.xy);
    }"""
    point = np.zeros(
        1, [("at", "f4", 3), ("normal", "f4", 3), ("cell", "u4", 3), ("weight", "f2", 2)]
    )
    at, n, v = np.array([1.0, 2, 3]), np.array([0.0, 1, 2]), np.array([1.0, 2, 2])
    point["at"], point["normal"], point["cell"], point["weight"] = at, n, [7, 8, 9], [3, 4]
    out, _, _ = run(device, text, np.zeros(7, np.float32), point, point)
    distance = np.linalg.norm(at - v)
    expected = [
        v @ n + n @ v + at @ n + n @ (v - 1) - v @ n + 2 * v @ at,
        5 + distance + np.cross(v, n)[0] + np.cross(n, v)[1] + 0.8,
        1 + 1 + 2 + 1 + 2,
        (n * v + v)[1] + 1 + 2 + (v * v + n)[2] + 1,
        9 + 3 + 14 + 0,
        1 + 4 + (v - 2 * (v @ n) * n)[0],
        6 + 0 + 16 + np.hypot(1, 2),
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-6)
