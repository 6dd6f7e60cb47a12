#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// The else branch of simd_is_first().
kernel void ballots(device uint *out [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  ulong votes;
  if (simd_is_first())
    votes = 3u;
  else
    votes = (ulong)simd_ballot(true); // HIT 27
  bool first = simd_is_first();
  uint sum = first ? 0u : simd_sum(t); // HIT 27
  if (!first)
    sum += uint((ulong)simd_active_threads_mask()); // HIT 27
  out[t] = uint(votes) + sum;
}
inline bool leads() { return simd_is_first(); }
kernel void leaves(device uint *out [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  if (leads()) {
    out[0] = 1;
    return;
  }
  out[t] = simd_all(t > 3) ? 1 : 0; // HIT 27
}
kernel void safe(device uint *out [[buffer(0)]], uint t [[thread_position_in_grid]]) {
  ulong votes;
  if (simd_is_first() && (ulong)simd_ballot(true))
    votes = 3u;
  else
    votes = (ulong)simd_ballot(true);
  uint sum = simd_sum(t);
  if (simd_is_first())
    out[0] = sum;
  out[t] = uint(votes) + simd_sum(sum);
  if (t == 0)
    out[1] = 1;
  else
    out[2] = uint((ulong)simd_ballot(true));
}
