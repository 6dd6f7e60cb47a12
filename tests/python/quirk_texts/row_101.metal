#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// What is not promised of a SIMD-group's functions.
kernel void types(device float *out [[buffer(0)]], device const long *wide [[buffer(1)]], device const bfloat *b [[buffer(2)]],
                  device const half2 *h [[buffer(3)]], device const uchar *bytes [[buffer(4)]], device const float4 *v [[buffer(5)]],
                  ushort lane [[thread_index_in_simdgroup]]) {
  out[0] = float(simd_shuffle(wide[lane], 0)); // HIT 101
  out[1] = float(simd_shuffle_xor(b[lane], 1)); // HIT 101
  ulong big = ulong(wide[lane]);
  out[2] = float(simd_broadcast(big, 3)); // HIT 101
  half2 other = simd_shuffle_down(h[lane], 1); // HIT 102
  out[3] = other.x;
  out[4] = float(simd_shuffle(bytes[lane], 2)); // HIT 102
  out[5] = simd_shuffle_xor(v[lane], 1).x; // HIT 102
}
template <typename T> T spread(T x) {
  return simd_broadcast(x, 0); // HIT 101
}
kernel void templates(device long *out [[buffer(0)]]) {
  out[0] = spread<long>(out[1]);
}
kernel void most(device float *out [[buffer(0)]], ushort lane [[thread_index_in_simdgroup]]) {
  float value = out[lane];
  out[0] = simd_max(value); // HIT 103
  out[1] = float(simd_min(int(lane)));
}
kernel void safe(device float *out [[buffer(0)]], device const float2 *v [[buffer(1)]], device const half *h [[buffer(2)]],
                 ushort lane [[thread_index_in_simdgroup]]) {
  float2 other = simd_shuffle_xor(v[lane], 1);
  uint2 bits = simd_shuffle(as_type<uint2>(other), 3);
  float value = out[lane];
  bool any = simd_any(isnan(value));
  out[0] = any ? NAN : simd_max(value);
  out[1] = other.x + float(bits.x) + float(simd_shuffle(h[lane], 1)) + simd_sum(value);
}
