"""Constructs that published Metal texts use: each kernel here is small, and its result is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import triton_metal_host as metal

from metal_run import invoke

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


def run(
    device: metal.Device, text: str, count: int, dtype: type = np.float32, **options
) -> np.ndarray:
    """Runs the kernel `k` of a text, whose only buffer gets `count` numbers, once under all checks and once without."""
    library = device.library(HEAD + text)
    results = []
    for checks in (True, ()):
        out = np.zeros(count, dtype)
        device.pipeline(library.function("k"), checks=checks)(
            metal.Buffer(out), threads=count, **options
        )
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    return results[1]


def test_a_file_includes_what_lies_beside_it(device: metal.Device, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "shared.h").write_text('#include "inner/amount.h"\n')
    (tmp_path / "inner" / "amount.h").write_text(
        '#include "../unit.h"\nconstant float amount = 2 * unit;\n'
    )
    (tmp_path / "unit.h").write_text("constant float unit = 1.5;\n")
    file = tmp_path / "k.metal"
    file.write_text(
        HEAD + '#include "shared.h"\nkernel void k(device float *o) { o[0] = amount; }\n'
    )
    out = np.zeros(1, np.float32)
    device.pipeline(device.library(file).function("k"))(out, threads=1)
    assert out[0] == 3


def test_a_text_without_a_file_includes_nothing_from_the_current_folder(
    device: metal.Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared.h").write_text("constant float amount = 2;\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(metal.CompileError, match=r"'shared\.h' file not found"):
        device.library(
            HEAD + '#include "shared.h"\nkernel void k(device float *o) { o[0] = amount; }\n'
        )


def test_names_of_simd_h(device: metal.Device) -> None:
    text = """
#include <simd/simd.h>
#include <TargetConditionals.h>
#include <stdint.h>
struct Shared {
  matrix_float2x2 m;
  vector_float3 v;
  simd_uint2 n;
  simd::float4 w;
};
kernel void k(device float *o) {
  Shared s = {simd_float2x2(simd_float2(1, 2), simd_float2(3, 4)), {5, 6, 7}, simd_uint2(8, 9), 10};
  o[0] = s.m[1].x + s.v.z + s.n.y + s.w.w + sizeof(Shared) + TARGET_OS_OSX + uint8_t(1);
}
"""
    assert run(device, text, 1)[0] == 3 + 7 + 9 + 10 + 64 + 2


def test_packed_vectors_have_operators_swizzles_and_colours(device: metal.Device) -> None:
    text = """
kernel void k(device int *o) {
  packed_char4 p = packed_char4(char4(0x12, 0x34, 0x56, 0x78));
  packed_char4 low = p & packed_char4(15), high = (p >> 4) & char4(15);
  packed_char4 both = low | high;
  packed_float4 f = packed_float4(low);
  f.xy = f.yx;
  f.a += 1;
  p ^= char4(p);
  o[0] = low.x; o[1] = high.w; o[2] = both.b; o[3] = int(f.x) * 10 + int(f.w); o[4] = p.r;
  o[5] = all(packed_int2(1, 2) == packed_int2(1, 2)) + any(packed_int2(1, 2) > int2(1)) + (~packed_int2(1, 2)).y;
  o[6] = packed_uint3(7, 8, 9).zyx.x + (packed_int3(7, 8, 9) % 4).y;
}
"""
    assert run(device, text, 7, np.int32).tolist() == [2, 7, 7, 4 * 10 + 9, 0, 1 + 1 - 3, 9]


def test_numbers_among_vectors_become_vectors(device: metal.Device) -> None:
    text = """
kernel void k(device float *o) {
  float3 v = float3(1, 2, 3);
  o[0] = dot(v, 1.0f); o[1] = distance(v, 0); o[2] = distance_squared(1, v); o[3] = fast::pow(v, 2.0f).z;
  o[4] = precise::pow(v, 2).y; o[5] = ldexp(v, 3).x; o[6] = float(absdiff(uint3(1, 2, 3), 5).x);
  o[7] = reflect(v, 1).x; o[8] = faceforward(v, v, 1.0f).x; o[9] = nextafter(v, 2.0f).y;
  o[10] = float3(float4(4, 5, 6, 7)).z + int2(int4(1, 2, 3, 4)).y;
  o[11] = (float2x2(6) / 3.0f)[1].y;
}
"""
    expected = [6, math.sqrt(14), 5, 9, 4, 8, 4, 1 - 12, -1, 2, 8, 2]
    np.testing.assert_allclose(run(device, text, 12), expected, rtol=1e-6)


def test_conditionals_with_constants_of_vector_type(device: metal.Device) -> None:
    text = """
constant float4 zero = float4(0, 1, 2, 3);
float4 pick(bool c, constant float4 &other, float4 mine) { return c ? other : mine; }
kernel void k(device float *o, uint i [[thread_position_in_grid]]) {
  threadgroup float4 shared[1];
  shared[0] = 5;
  float4 v = i < 2 ? shared[0] : zero;
  float4 w = i < 1 ? zero : float4(i);
  float4 x = i < 3 ? v : zero;
  o[i] = v.y + 10 * w.y + 100 * x.z + pick(i > 1, zero, v).x;
}
"""
    assert run(device, text, 4).tolist() == [
        5 + 10 + 500 + 5,
        5 + 10 + 500 + 5,
        1 + 20 + 200,
        1 + 30 + 200,
    ]


def test_constants_that_are_computed(device: metal.Device) -> None:
    text = """
constant float3 ways[2] = {normalize(float3(3, 4, 0)), normalize(float3(1, pow(2.0f, 3), 3))};
constant int million = 1.0f * pow(10.0f, 6);
constant packed_float3 packed = packed_float3(normalize(float3(0, 0, 9)));
constant float angle = atan2(1.0f, 1.0f);
kernel void k(device float *o, uint i [[thread_position_in_grid]]) {
  o[i] = i == 0 ? ways[0].y : i == 1 ? ways[1].y : i == 2 ? million : i == 3 ? packed.z : angle;
}
"""
    expected = [0.8, 8 / math.sqrt(74), 1e6, 1, math.pi / 4]
    np.testing.assert_allclose(run(device, text, 5), expected, rtol=1e-6)


def test_an_instantiation_by_a_macro_of_several_lines(device: metal.Device) -> None:
    text = """
template <typename T, int N> kernel void fill(device T *o, uint i [[thread_position_in_grid]]) { o[i] = N; }
#define INSTANTIATE(T, N)       \\
template                        \\
[[host_name("fill_" #T "_" #N)]]\\
kernel void fill<T, N>(         \\
device T *, uint)
INSTANTIATE(float, 3);
INSTANTIATE(half, 4);
"""
    assert device.library(HEAD + text).function_names == ["fill_float_3", "fill_half_4"]


def test_atomics_by_their_other_name(device: metal.Device) -> None:
    text = """
kernel void k(device _atomic<uint> *o, threadgroup _atomic<int> *counts [[threadgroup(0)]],
              uint i [[thread_position_in_threadgroup]]) {
  if (i == 0)
    atomic_store_explicit(&counts[0], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(counts, 2, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0)
    atomic_store_explicit(o, uint(atomic_load_explicit(counts, memory_order_relaxed)), memory_order_relaxed);
}
"""
    out = run(device, text, 64, np.uint32, threads_per_threadgroup=64, threadgroup_memory={0: 4})
    assert out[0] == 128


def test_packing_to_565(device: metal.Device) -> None:
    text = """
kernel void k(device float *o) {
  o[0] = pack_float_to_unorm565(float3(1, 0.5f, 0));
  o[1] = pack_half_to_unorm565(half3(0, 0, 2));
  float3 v = unpack_unorm565_to_float(ushort(31 | 21 << 5 | 8 << 11));
  o[2] = v.x; o[3] = v.y; o[4] = v.z;
  o[5] = unpack_unorm565_to_half(ushort(63 << 5)).y;
}
"""
    expected = [31 | 32 << 5, 31 << 11, 1, 21 / 63, 8 / 31, 1]
    np.testing.assert_allclose(run(device, text, 6), expected, rtol=1e-6)


def test_kernels_beside_tiles_ray_tracing_and_sparse_textures_run(device: metal.Device) -> None:
    text = """
#include <metal_raytracing>
using namespace raytracing;
struct Pixel { half4 colour; };
struct Hit { bool accept [[accept_intersection]]; };
[[intersection(bounding_box, triangle_data, instancing)]]
Hit hit() { return {true}; }
kernel void tile(imageblock<Pixel, imageblock_layout_explicit> block, ushort2 at [[thread_position_in_threadgroup]]) {
  threadgroup_imageblock Pixel *pixel = block.data(at);
  pixel->colour = 0;
}
kernel void sparse(texture2d<float> image [[texture(0)]], device float *o) {
  constexpr sampler s;
  auto colour = image.sparse_sample(s, float2(0.5f));
  if (colour.resident())
    o[0] = colour.value().x;
}
kernel void k(device MTLDispatchThreadgroupsIndirectArguments *o, uint i [[thread_position_in_grid]]) {
  if (i == 0)
    o->threadgroupsPerGrid[1] = 7;
}
"""
    assert run(device, text, 3, np.uint32).tolist() == [0, 7, 0]
    with pytest.raises(ValueError, match="texture2d, which the host device does not have"):
        device.library(HEAD + text).function("sparse")


def test_traits_that_make_scalars_and_vectors(device: metal.Device) -> None:
    text = """
template <typename T> typename make_scalar<T>::type first(T v) { return v[0]; }
kernel void k(device float *o) {
  make_vector_t<float, 3> v = 4;
  o[0] = first(v) + is_same_v<make_scalar_t<half>, half> + sizeof(make_vector_t<short, 1>);
}
"""
    assert run(device, text, 1)[0] == 4 + 1 + 2


def test_default_constructors_by_address_space_leave_an_aggregate(device: metal.Device) -> None:
    text = """
template <typename T> struct Both {
  uint count;
  T mean;
  constexpr Both<T>() = default;
  constexpr Both<T>() threadgroup = default;
};
template <typename T> struct One {
  T value;
  constexpr One<T>() threadgroup = default;
};
struct Mixed {
  int v;
  Mixed() threadgroup = default;
  constexpr Mixed(int x) : v(x) {}
  Mixed(int x) threadgroup : v(x) {}
};
template <typename T> METAL_FUNC Both<T> start() { return {1, 2}; }
kernel void k(device float *o, uint i [[thread_position_in_threadgroup]]) {
  threadgroup Both<float> both[32];
  threadgroup One<int> one[32];
  threadgroup Mixed mixed[32];
  both[i] = start<float>();
  one[i] = One<int>{int(i)};
  mixed[i] = Mixed(3);
  o[i] = both[i].mean + one[i].value + mixed[i].v;
}
"""
    assert run(device, text, 3, threads_per_threadgroup=32).tolist() == [5, 6, 7]


def test_a_bfloat_that_simd_functions_reduce_stays_one(device: metal.Device) -> None:
    text = """
template <typename T> T total(T value) { return simd_sum(value); }
kernel void k(device float *o, uint i [[thread_position_in_grid]]) { o[i] = float(total(bfloat(i))) + total(half(i)); }
"""
    assert run(device, text, 4, threads_per_threadgroup=32).tolist() == [12] * 4


def test_the_version_of_the_language(device: metal.Device) -> None:
    text = HEAD + "kernel void k(device int *o) { o[0] = __METAL_VERSION__; }"
    out = np.zeros(1, np.int32)
    for version, number in ((None, 320), ("2.4", 240), ("3.1", 310), ("4.0", 400)):
        library = device.library(text, language_version=version)
        device.pipeline(library.function("k"))(out, threads=1)
        assert out[0] == number
        options = [f"--std=metal{version}"] if version else []
        ran = invoke(
            [*options, "--grid=1", "--buffer=o=zeros:int:1", "--print=o", "-"],
            text,
        )
        assert ran.stdout.strip() == f"o = {number}", ran.stderr
    with pytest.raises(ValueError, match=r"one of 2\.4, 3\.0, 3\.1, 3\.2, 4\.0, not '5'"):
        device.library(text, language_version="5")
    assert "--std takes metal2.4" in invoke(["--std=c++17", "--list", "-"], text).stderr


def test_factors_of_tessellated_patches(device: metal.Device) -> None:
    """A patch has as many halves as Metal's documentation lists."""
    text = """
        kernel void k(device uint *out, uint i [[thread_position_in_grid]]) {
          MTLQuadTessellationFactorsHalf quad;
          quad.edgeTessellationFactor[3] = half(i);
          quad.insideTessellationFactor[1] = 1.0h;
          MTLTriangleTessellationFactorsHalf triangle;
          triangle.edgeTessellationFactor[2] = half(2 * i);
          triangle.insideTessellationFactor = 1.0h;
          out[i] = sizeof(quad) * 100 + sizeof(triangle) * 10 +
                   uint(quad.edgeTessellationFactor[3] + triangle.edgeTessellationFactor[2]);
        }"""
    assert run(device, text, 3, np.uint32).tolist() == [1280, 1283, 1286]


def test_kernels_beside_meshes_patches_and_interpolants_run(device: metal.Device) -> None:
    text = """
struct Payload { float scale; uint first[4]; };
struct Point { float4 position [[position]]; float2 uv; };
struct Face { float3 normal [[flat]]; };
using Triangles = metal::mesh<Point, Face, 64, 126, metal::topology::triangle>;
static_assert(Triangles::max_indices == 378 && Triangles::indices_per_primitive == 3);
[[object, max_total_threads_per_threadgroup(32)]]
void objects(object_data Payload &payload [[payload]], mesh_grid_properties grid,
             uint i [[thread_index_in_threadgroup]]) {
  payload.scale = 2;
  if (i == 0)
    grid.set_threadgroups_per_grid(uint3(4, 1, 1));
}
[[mesh]] void meshes(const object_data Payload &payload [[payload]], Triangles out,
                     uint i [[thread_index_in_threadgroup]]) {
  Point point = {float4(payload.scale), float2(i)};
  out.set_vertex(i, point);
  out.set_primitive(i, Face{float3(1)});
  out.set_index(3 * i, uchar(i));
  if (i == 0)
    out.set_primitive_count(1);
}
struct Control { float3 position [[attribute(0)]]; };
[[patch(quad, 4)]] vertex float4 patches(patch_control_point<Control> points [[stage_in]], float2 at [[position_in_patch]]) {
  return float4(mix(points[0].position, points[3].position, at.x), 1);
}
struct Interpolated {
  float4 position [[position]];
  interpolant<float2, interpolation::perspective> uv;
  interpolant<float, interpolation::no_perspective> depth;
};
fragment float4 fragments(Interpolated in [[stage_in]]) {
  return float4(in.uv.interpolate_at_center(), in.depth.interpolate_at_offset(float2(0.5)), 1);
}
kernel void k(device float *o, uint i [[thread_position_in_grid]]) { o[i] = 2 * i; }
"""
    assert run(device, text, 4).tolist() == [0, 2, 4, 6]
    library = device.library(HEAD + text)
    for name in ("objects", "meshes", "patches", "fragments"):
        with pytest.raises(ValueError, match="is a function of a render stage"):
            library.function(name)


def test_a_vector_times_a_matrix_in_place(device: metal.Device) -> None:
    text = """
kernel void k(device float4 *o, threadgroup float2 *shared [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
  if (i > 0)
    return;
  float3x3 turned(float3(0, 1, 0), float3(0, 0, 1), float3(1, 0, 0));
  float3 v(1, 2, 3);
  v *= turned;
  o[0] = float4(v, 0);
  o[1] = float4(1, 2, 3, 4);
  o[1] *= float4x4(2);
  shared[0] = float2(1, 2);
  shared[0] *= float2x2(1, 2, 3, 4);
  o[2] = float4(shared[0], 0, 0);
}
"""
    out = run(device, text, 12, threadgroup_memory={0: 8})
    assert out.tolist() == [2, 3, 1, 0, 2, 4, 6, 8, 5, 11, 0, 0]


def test_a_threadgroup_argument_may_have_no_bytes(device: metal.Device) -> None:
    text = """
kernel void k(device float *o, constant bool &shares, threadgroup float *shared [[threadgroup(0)]],
              threadgroup float *further [[threadgroup(2)]], uint i [[thread_position_in_threadgroup]]) {
  if (shares)
    shared[i] = 1;
  further[i] = 3;
  o[i] = further[i];
}
"""
    library = device.library(HEAD + text)
    out = np.zeros(4, np.float32)
    lengths = {0: 0, 2: 16}
    for checks in ((), True):
        pipeline = device.pipeline(library.function("k"), checks=checks)
        pipeline(out, shares=np.bool_(False), threads=4, threadgroup_memory=lengths)
        assert out.tolist() == [3, 3, 3, 3]
    with pytest.raises(metal.LaunchError, match=r"'shared'.*of 0"):
        pipeline(out, shares=np.bool_(True), threads=4, threadgroup_memory=lengths)
    with pytest.raises(metal.LaunchError, match=r"'shared' \(0\) has no length"):
        pipeline(out, shares=np.bool_(False), threads=4, threadgroup_memory={2: 16})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "int count = 3;\nkernel void k(device int *o) { o[0] = count; }",
            r"3:5: error: variable 'count' lives as long as the program, so it must be in the constant",
        ),
        (
            "constant int *places[2];\nkernel void k(device int *o) { o[0] = 1; }",
            "3:15: error: variable 'places' lives as long as",
        ),
        (
            "template <typename T> struct S { static T sum; };\ntemplate <typename T> T S<T>::sum;\n"
            "kernel void k(device int *o) { o[0] = S<int>::sum; }",
            "error: variable 'sum' lives as long as",
        ),
        (
            "kernel void k(device int *o) {\n  static int calls = 0;\n  o[0] = ++calls;\n}",
            "4:14: error: variable 'calls' lives as long as",
        ),
        (
            "kernel void k(device int *o) {\n  int i = 0;\nagain:\n  if (++i < 3)\n    goto again;\n  o[0] = i;\n}",
            "7:5: error: 'goto' is not supported in Metal",
        ),
        (
            "kernel void one(device int *o) { o[0] = 1; }\nkernel void k(device int *o) { one(o); }",
            "4:32: error: kernel 'one' can only be launched; Metal functions cannot call it",
        ),
    ],
)
def test_what_metal_does_not_have_is_an_error(
    device: metal.Device, text: str, message: str
) -> None:
    with pytest.raises(metal.CompileError, match=message):
        device.library(HEAD + text)


def test_constants_that_live_as_long_as_the_program_are_none_of_these(
    device: metal.Device,
) -> None:
    text = """
constant float table[2][2] = {{1, 2}, {3, 4}};
static constant constexpr int amount = 2;
constexpr constant uint3 sizes = uint3(1, 2, 3);
struct Scale { static constexpr int amount = 5; static constexpr constant float half_of = 0.5; };
template <typename T> constant constexpr T twice = T(2);
namespace inner { constant bool flag [[function_constant(0)]]; }
constant bool is_given = is_function_constant_defined(inner::flag);
kernel void k(device float *o, uint i [[thread_position_in_grid]]) {
  static constexpr constant float steps[2] = {10, 20};
  threadgroup float shared[2];
  shared[i] = steps[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = shared[1 - i] + table[i][1] + amount + sizes[2] + Scale::amount * Scale::half_of + twice<float> + is_given;
}
"""
    out = run(device, text, 2, threads_per_threadgroup=2)
    assert out.tolist() == [20 + 2 + 2 + 3 + 2.5 + 2, 10 + 4 + 2 + 3 + 2.5 + 2]
