#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// A bound of at most 32 threads.
[[kernel, max_total_threads_per_threadgroup(32)]] void plain(device float *out [[buffer(0)]]) { // HIT 1
  out[0] = 1.0f;
}
#define GROUP 5 * 5
kernel void macro [[max_total_threads_per_threadgroup(GROUP)]](device float *out [[buffer(0)]]) { // HIT 1
  out[0] = 1.0f;
}
template <uint N>
[[kernel, max_total_threads_per_threadgroup(N)]] void sized(device float *out [[buffer(0)]]) { // HIT 1
  out[0] = float(N);
}
template [[host_name("small")]] [[kernel]] void sized<16>(device float *out [[buffer(0)]]);

[[kernel, max_total_threads_per_threadgroup(33)]] void enough(device float *out [[buffer(0)]]) {
  out[0] = 1.0f;
}
[[kernel, max_total_threads_per_threadgroup(1024)]] void usual(device float *out [[buffer(0)]]) {
  out[0] = 1.0f;
}
kernel void unbounded(device float *out [[buffer(0)]]) {
  out[0] = 1.0f;
}
