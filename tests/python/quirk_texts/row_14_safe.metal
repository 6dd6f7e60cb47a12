#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// The same in safe mode; a compare-exchange on a float is wrong in any mode.
kernel void clamps(device half *h [[buffer(0)]], device float *f [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  h[t] = min(h[t], 65504.0h);
  f[t] = f[t] * f[t + 1] + (-1e10f) * (1.0f - f[t + 1]);
  if (isnan(f[t]) || f[t] == INFINITY)
    f[t] = 0.0f;
}
kernel void exchange(device atomic_float *cell [[buffer(0)]], device float *out [[buffer(1)]]) {
  float old = 0.0f;
  atomic_compare_exchange_weak_explicit(cell, &old, 1.0f, memory_order_relaxed, memory_order_relaxed); // HIT 14
  out[0] = old;
}
template <typename T> bool swap(device atomic<T> *cell, thread T &old, T value) {
  return atomic_compare_exchange_weak_explicit(cell, &old, value, memory_order_relaxed, memory_order_relaxed); // HIT 14
}
kernel void templates(device atomic<float> *cell [[buffer(0)]], device atomic_uint *bits [[buffer(1)]]) {
  float old = 0.0f;
  swap(cell, old, 1.0f);
  uint word = 0;
  atomic_compare_exchange_weak_explicit(bits, &word, as_type<uint>(1.0f), memory_order_relaxed, memory_order_relaxed);
}
