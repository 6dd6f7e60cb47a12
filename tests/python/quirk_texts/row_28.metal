#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Local arrays without a value.
typedef float numbers[8];
kernel void arrays(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], constant uint &n [[buffer(2)]]) {
  float x[8]; // HIT 28
  for (uint i = 0; i < n; ++i)
    x[i] = in[i];
  numbers y; // HIT 28
  y[n] = 1.0f;
  float3 v[4]; // HIT 28
  v[n & 3] = float3(1.0f);
  #pragma unroll
  for (uint i = 0; i < 8; ++i)
    out[i] = x[i] + y[i];
  out[0] = v[1].x;
  float registers[4]; // HIT 28
  #pragma unroll
  for (uint i = 0; i < 4; ++i)
    registers[i] = in[i];
  out[1] = registers[2];
}
template <typename T, int N> T last(device const T *in, uint n) {
  T all[N]; // HIT 28
  for (int i = 0; i < N; ++i)
    all[i] = in[i];
  return all[n];
}
kernel void templates(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], constant uint &n [[buffer(2)]]) {
  out[0] = last<float, 16>(in, n);
}
kernel void short_loops(device float *out [[buffer(0)]], device const float *in [[buffer(1)]]) {
  float x[8]; // HIT 28
  for (uint i = 0; i < 8; ++i)
    x[i] = in[i];
  for (uint i = 0; i < 8; ++i)
    out[i] = x[i];
}
kernel void safe(device float *out [[buffer(0)]], device const float *in [[buffer(1)]], constant uint &n [[buffer(2)]]) {
  float x[8] = {};
  float y[2] = {1.0f, 2.0f};
  numbers z = {0.0f};
  threadgroup float shared[8];
  simdgroup_float8x8 acc[2];
  float one;
  one = in[0];
  for (uint i = 0; i < n; ++i) {
    x[i] = in[i];
    z[i] = y[i & 1];
    shared[i] = x[i];
  }
  simdgroup_store(acc[0], out, 8);
  out[0] = x[n] + z[n] + one + shared[n];
}
