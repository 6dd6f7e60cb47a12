#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Atomics through casts of threadgroup pointers.
typedef atomic_uint counter;
kernel void bytes(device uint *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uchar pool[256];
  threadgroup atomic_uint *cell = (threadgroup atomic_uint *)(pool + 64);
  atomic_fetch_add_explicit(cell, 1u, memory_order_relaxed); // HIT 21
  atomic_store_explicit(reinterpret_cast<threadgroup counter *>(&pool[t]), 0u, memory_order_relaxed); // HIT 21
  threadgroup float numbers[8];
  out[t] = atomic_load_explicit((threadgroup counter *)numbers + t, memory_order_relaxed); // HIT 21
}
template <typename T> void bump(threadgroup T *at) {
  atomic_fetch_add_explicit((threadgroup atomic_uint *)at, 1u, memory_order_relaxed); // HIT 21
}
kernel void calls(device uint *out [[buffer(0)]]) {
  threadgroup ushort halves[8];
  bump(halves);
  out[0] = halves[1];
}

kernel void safe(device uint *out [[buffer(0)]], device uint *bins [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint cells[32];
  atomic_store_explicit(&cells[t], 0u, memory_order_relaxed);
  atomic_fetch_add_explicit(cells + (t ^ 1), 1u, memory_order_relaxed);
  atomic_fetch_add_explicit((device atomic_uint *)bins, 1u, memory_order_relaxed);
  out[t] = atomic_load_explicit(&cells[t], memory_order_relaxed);
  threadgroup uint words[32];
  atomic_fetch_add_explicit((threadgroup atomic_uint *)words, 1u, memory_order_relaxed);
}
