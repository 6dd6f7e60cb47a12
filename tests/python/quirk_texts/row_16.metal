#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Loops without a visible end.
kernel void endless(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]]) {
  bool stop = false;
  while (true) { // HIT 16
    if (in[0] > 3)
      stop = true;
    else
      stop = false;
    if (stop)
      break;
  }
  for (;;) { // HIT 16
    if (in[1] != 0)
      break;
  }
  do { // HIT 16
    if (in[2] == 4)
      return;
  } while (1);
  out[0] = 1;
}
#define FOREVER for (;;)
inline void wait(device atomic_uint *flag) {
  while (atomic_load_explicit(flag, memory_order_relaxed) == 0) { // HIT 16
  }
}
kernel void spins(device atomic_uint *flag [[buffer(0)]], device const uint *in [[buffer(1)]], device uint *out [[buffer(2)]]) {
  wait(flag);
  bool go = in[0] > 1;
  while (go) // HIT 16
    out[0] = 1;
  while (in[1] == 0) { // HIT 16
  }
  FOREVER { // HIT 16
    if (out[1])
      break;
  }
}

kernel void safe(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]], device atomic_uint *cell [[buffer(2)]]) {
  uint n = 0;
  while (true) {
    if (n >= 1000)
      break;
    if (in[0] > 3)
      break;
    ++n;
  }
  for (ulong i = 0; i < ULONG_MAX; ++i)
    if (in[1])
      break;
  uint left = 4294967295u;
  while (left-- > 0)
    if (in[2])
      break;
  uint x = in[3];
  while (x != 0)
    x >>= 1;
  uint old = 0;
  while (!atomic_compare_exchange_weak_explicit(cell, &old, old + 1u, memory_order_relaxed, memory_order_relaxed)) {
  }
  uint k = in[4];
  do {
    k -= 1;
  } while (k > 3);
  do {
    out[0] = k;
  } while (false);
  for (uint i = 0;; ++i) {
    if (i == 64)
      break;
    out[i] = x;
  }
}
kernel void bounded_by_vectors(device uint *out [[buffer(0)]], device const uint *in [[buffer(1)]]) {
  uint2 bound = uint2(4294967295u);
  while (true) {
    if (metal::all(bound == uint2(0u)))
      break;
    bound -= uint2(bound.y == 0u, 1u);
    if (in[0] > out[0])
      break;
  }
  while (true) {
    if (in[1] > out[0])
      break;
    volatile bool leave = false;
    if (leave)
      break;
  }
}
