#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Barriers in divergent flow.
kernel void branches(device float *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]], uint2 at [[thread_position_in_threadgroup]]) {
  threadgroup float shared[64];
  if (t < 3) {
    shared[t] = out[t];
    threadgroup_barrier(mem_flags::mem_threadgroup); // HIT 104
  }
  uint n = at.x + 1u;
  for (uint i = 0; i < n; ++i)
    threadgroup_barrier(mem_flags::mem_threadgroup); // HIT 104
  if (out[t] > 0.0f)
    return;
  threadgroup_barrier(mem_flags::mem_none); // HIT 104
  out[t] = shared[0];
}
inline void sync() { threadgroup_barrier(mem_flags::mem_device); } // HIT 104
kernel void calls(device float *out [[buffer(0)]], ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  bool first = simdgroup == 0;
  uint turns = 0;
  if (first)
    turns = 2;
  while (turns > 0) {
    sync();
    --turns;
  }
  out[0] = 1.0f;
}
kernel void lanes(device float *out [[buffer(0)]], ushort lane [[thread_index_in_simdgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  if (simdgroup == 0)
    simdgroup_barrier(mem_flags::mem_none);
  if (lane == 0)
    simdgroup_barrier(mem_flags::mem_none); // HIT 104
  out[0] = 1.0f;
}
kernel void safe(device float *out [[buffer(0)]], constant uint *args [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                 uint3 group [[threadgroup_position_in_grid]]) {
  threadgroup float shared[64];
  if (t < 3)
    shared[t] = out[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (group.x == args[0])
    return;
  for (uint i = 0; i < args[1]; ++i) {
    if (shared[i] > 1.0f)
      break;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (args[2] > 4)
    threadgroup_barrier(mem_flags::mem_device);
  out[t] = shared[0];
}
kernel void written_later(device short *x [[buffer(0)]], constant uint *args [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  short before = x[args[0]];
  if (before > 3) {
    threadgroup_barrier(mem_flags::mem_device);
    if (t == 0)
      x[args[0]] = before + 1;
  }
  for (uint i = 0; i < args[1]; ++i) {
    if (x[args[0]] > 3) // HIT 5
      threadgroup_barrier(mem_flags::mem_device); // HIT 104
    if (t == 0)
      x[args[0]] = t;
  }
}
kernel void written_before(device short *x [[buffer(0)]], constant uint *args [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  if (t == 0)
    x[args[0]] = 7;
  if (x[args[0]] > 3)
    threadgroup_barrier(mem_flags::mem_device); // HIT 104
}
// Nothing here tells SIMD-groups apart, so the threadgroup has one.
kernel void alone(device float *out [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  float most = simd_sum(out[lane]);
  if (most > 1.0f)
    threadgroup_barrier(mem_flags::mem_device);
  if (out[lane] > 1.0f)
    threadgroup_barrier(mem_flags::mem_device); // HIT 104
  out[lane] = most;
}
kernel void several(device float *out [[buffer(0)]], ushort lane [[thread_index_in_simdgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  if (simd_sum(out[simdgroup * 32 + lane]) > 1.0f)
    threadgroup_barrier(mem_flags::mem_device); // HIT 104
  out[simdgroup * 32 + lane] = 1.0f;
}
