#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Very long unrolled bodies, wide loads and nested literals.
kernel void unrolled(device float *out [[buffer(0)]], constant float *in [[buffer(1)]]) {
  float sum = 0.0f;
  #pragma unroll
  for (uint i = 0; i < 128; ++i) // HIT 23
    #pragma unroll
    for (uint j = 0; j < 128; ++j) {
      float value = in[i * 128 + j];
      sum += value * value;
    }
  out[0] = sum;
}
struct Wide { float a[8]; };
struct Narrow { float a, b; };
inline float first(Wide wide) { return wide.a[0]; }
kernel void loads(device float *out [[buffer(0)]], device const Wide *wide [[buffer(1)]], device const Narrow *narrow [[buffer(2)]],
                  uint t [[thread_position_in_grid]]) {
  Wide one = wide[t]; // HIT 23
  out[t] = one.a[1] + first(*wide); // HIT 23
  Narrow two = narrow[t];
  out[t] = two.a + wide[t].a[3];
}
kernel void literals(device float4 *out [[buffer(0)]], constant float *in [[buffer(1)]]) {
  out[0] = float4(float3(float2(in[0], in[1]), in[2]), in[3]); // HIT 23
  out[1] = float4(float2(in[0], in[1]), in[2], in[3]);
}
kernel void rolled(device float *out [[buffer(0)]], constant float *in [[buffer(1)]]) {
  float sum = 0.0f;
  for (uint i = 0; i < 128; ++i)
    #pragma unroll
    for (uint j = 0; j < 128; ++j)
      sum += in[i * 128 + j];
  out[0] = sum;
}
