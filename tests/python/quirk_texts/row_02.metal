#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// The remainder of a quotient.
constant uint six = 6;
typedef uint word;
kernel void plain(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = (i / 65536) % 6; // HIT 2
  out[i] = (i >> 16) % 3; // HIT 2
  out[i] = i / 65536u % 5u; // HIT 2
}
kernel void variables(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  word quotient = i >> 16;
  word row = quotient;
  const word columns = 7;
  out[i] = row % columns; // HIT 2
  uint later;
  later = i / 1024;
  out[i] = later % six; // HIT 2
  quotient %= 5; // HIT 2
  out[i] = quotient;
}
inline uint part(uint x, uint by) { return x / by; }
inline uint wrap(uint x, uint n) { return x % n; } // HIT 2
#define MODULO(x, n) ((x) % (n))
template <uint D, uint M> uint modular(uint x) {
  return (x / D) % M; // HIT 2
}
kernel void calls(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = part(i, 65536) % 6; // HIT 2
  out[i] = wrap(i >> 16, 6);
  out[i] = MODULO(i / 65536, 6); // HIT 2
  out[i] = modular<65536, 12>(i);
}
kernel void vectors(device uint *out [[buffer(0)]], uint3 at [[thread_position_in_grid]]) {
  uint2 two = at.xy / 65536u;
  uint2 rest = two % 3u; // HIT 2
  out[at.x] = rest.x + rest.y;
  out[at.y] = (at.z >> 16) % 3; // HIT 2
}

kernel void safe(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]], constant uint &n [[buffer(1)]]) {
  volatile uint quotient = i / 65536;
  out[i] = quotient % 6;
  out[i] = (i / 65536) % 8;
  out[i] = i % 6;
  out[i] = (i / n) % 6;
  out[i] = (i / 65536) % n;
  out[i] = (i % 65536) / 6;
  out[i] = modular<65536, 16>(i);
}
