#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Fast tanh.
#define TANH fast::tanh
using namespace metal;
inline float gelu(float x) { return 0.5f * x * (1.0f + fast::tanh(0.79788456f * x)); } // HIT 15
kernel void tanhs(device float *f [[buffer(0)]], device float4 *v [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  f[t] = fast::tanh(f[t]); // HIT 15
  f[t] = TANH(f[t + 1]); // HIT 15
  v[t] = fast::tanh(v[t]); // HIT 15
  f[t] = gelu(f[t]);
}
kernel void safe(device float *f [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  f[t] = precise::tanh(f[t]);
  f[t] = tanh(f[t]);
  f[t] = fast::tanh(clamp(f[t], -10.0f, 10.0f));
  float bounded = min(f[t], 20.0f);
  f[t] = fast::tanh(bounded) + fast::exp(f[t]);
}
