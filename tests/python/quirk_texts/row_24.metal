#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Arrays of simdgroup matrices: passed to functions, indexed at run time, and matrix types in threadgroup memory.
void set(thread simdgroup_float8x8 *m) { m[0] = simdgroup_float8x8(1.0f); }
template <int N> void fill(thread simdgroup_half8x8 (&m)[N]) {
  #pragma unroll
  for (int i = 0; i < N; ++i)
    m[i] = simdgroup_half8x8(1.0h);
}
struct Tile {
  simdgroup_float8x8 parts[4];
  void clear() {
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      parts[i] = simdgroup_float8x8(0.0f);
  }
  METAL_FUNC void clear_inline() {
    #pragma unroll
    for (int i = 0; i < 4; ++i)
      parts[i] = simdgroup_float8x8(0.0f);
  }
};
inline __attribute__((always_inline)) void set_inline(thread simdgroup_float8x8 *m) { m[0] = simdgroup_float8x8(1.0f); }
void one(thread simdgroup_float8x8 &m) { m = simdgroup_float8x8(1.0f); }
kernel void passed(device float *out [[buffer(0)]]) {
  simdgroup_float8x8 acc[4];
  simdgroup_half8x8 halves[4];
  Tile tile;
  set(acc); // HIT 24
  fill(halves); // HIT 24
  tile.clear(); // HIT 24
  set_inline(acc);
  tile.clear_inline();
  one(acc[1]);
  simdgroup_store(acc[0], out, 8);
  simdgroup_store(tile.parts[0], out, 8);
}
constexpr constant int count = 4;
kernel void indexed(device float *out [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  simdgroup_float8x8 acc[4];
  for (int i = 0; i < count; ++i)
    simdgroup_store(acc[i], out + i * 64, 8); // HIT 25
  uint k = 0;
  while (k < 4) {
    simdgroup_multiply_accumulate(acc[0], acc[k], acc[1], acc[0]); // HIT 25
    ++k;
  }
  #pragma unroll
  for (int i = 0; i < count; ++i)
    simdgroup_store(acc[i], out + i * 64, 8);
  #pragma clang loop unroll(full)
  for (int i = 0; i < 2; ++i)
    simdgroup_store(acc[i * 2 + 1], out + i * 64, 8);
  simdgroup_store(acc[3], out, 8);
}
kernel void types(device half *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup half4x4 tiles[8]; // HIT 26
  threadgroup float2x2 tile; // HIT 26
  threadgroup half numbers[8 * 16];
  threadgroup half4x4 *good = (threadgroup half4x4 *)numbers;
  half4x4 local = half4x4(1.0h);
  tiles[t] = local;
  out[t] = tiles[0][0].x + half(tile[0].x) + good[t][0].x;
}
