#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Plain accesses of a word that is also compared and exchanged.
kernel void mixed(device uint *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint words[16];
  words[t] = out[t];
  uint expected = 0;
  atomic_compare_exchange_weak_explicit((threadgroup atomic_uint *)&words[t], &expected, 42u, // HIT 22
                                        memory_order_relaxed, memory_order_relaxed);
  out[t] = words[t];
}
inline bool claim(threadgroup uint *word) {
  uint expected = 0;
  return atomic_compare_exchange_weak_explicit((threadgroup atomic_uint *)word, &expected, 1u, memory_order_relaxed, // HIT 22
                                               memory_order_relaxed);
}
kernel void calls(device uint *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint lock;
  if (t == 0)
    lock = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (claim(&lock))
    out[0] = t;
}

kernel void safe(device uint *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint words[16];
  threadgroup uint others[16];
  others[t] = t;
  atomic_store_explicit(&words[t], out[t], memory_order_relaxed);
  uint expected = others[t];
  atomic_compare_exchange_weak_explicit(&words[t], &expected, 42u, memory_order_relaxed, memory_order_relaxed);
  out[t] = atomic_load_explicit(&words[t], memory_order_relaxed);
}
