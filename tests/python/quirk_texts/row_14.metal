#include <metal_stdlib>
using namespace metal;
// Fast math: no pragma asks for the safe mode.
kernel void clamps(device half *h [[buffer(0)]], device float *f [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  h[t] = min(h[t], 65504.0h); // HIT 14
  const half most = HALF_MAX;
  h[t] = clamp(h[t], -most, most); // HIT 14
  f[t] = fmax(f[t], -INFINITY); // HIT 14
}
kernel void masks(device float *f [[buffer(0)]], device const float *m [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  f[t] = f[t] * m[t] + (-1e10f) * (1.0f - m[t]); // HIT 14
}
inline bool is_nan(float x) { return x != x; } // HIT 14
kernel void tests(device float *f [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  if (isnan(f[t])) // HIT 14
    f[t] = 0.0f;
  if (is_nan(f[t + 1]))
    f[t] = 1.0f;
  float limit = INFINITY;
  if (f[t] == limit) // HIT 14
    f[t] = 2.0f;
}
kernel void plain(device float *f [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  f[t] = min(f[t], 6.0f) + (f[t] > 1.0f ? 2.0f : 3.0f);
}
