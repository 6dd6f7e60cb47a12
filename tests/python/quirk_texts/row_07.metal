#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// A multiply-and-shift remainder, shifted, as an address in a branch.
kernel void choice(device uchar *out [[buffer(0)]], device const ushort *order [[buffer(1)]],
                   device const uchar *data [[buffer(2)]], uint t [[thread_position_in_grid]]) {
  int from = order[t];
  long wide = (long)from + 1ll;
  int other = (int)(wide - 5ll * ((wide * 1717986919ll) >> 33ll));
  bool take = other < 2;
  int next = from + 1;
  out[t] = take ? *(data + ((next - (5 * ((int)(((long)(next)) * 1717986919ll >> 33ll)))) << 3)) : (uchar)0; // HIT 7
}
kernel void branch(device uint *out [[buffer(0)]], device const ushort *order [[buffer(1)]],
                   device const uint *data [[buffer(2)]], uint t [[thread_position_in_grid]]) {
  uint x = order[t];
  uint quotient = mulhi(x, 0xCCCCCCCDu) >> 2;
  uint rest = x - quotient * 5u;
  if (x < 7)
    out[t] = data[rest * 8]; // HIT 7
  else
    out[t] = 0;
}
inline uint mod5(uint x) { return x - 5u * uint((ulong(x) * 3435973837ul) >> 34); }
kernel void calls(device uint *out [[buffer(0)]], device const ushort *order [[buffer(1)]],
                  device const uint *data [[buffer(2)]], uint t [[thread_position_in_grid]]) {
  uint x = order[t];
  if (order[t + 1] != 0) {
    uint place = (mod5(x) << 3) + 1u;
    out[t] = data[place]; // HIT 7
  }
}

kernel void safe(device uint *out [[buffer(0)]], device const ushort *order [[buffer(1)]],
                 device const uint *data [[buffer(2)]], uint t [[thread_position_in_grid]]) {
  uint x = order[t];
  uint rest = mod5(x);
  uint first = rest < 2 ? data[rest << 3] : 0u;
  uint second = x < 7 ? data[(x % 5u) << 3] : 0u;
  uint third = data[mod5(x) << 3];
  volatile uint hidden = mod5(x);
  uint fourth = x < 7 ? data[hidden << 3] : 0u;
  uint fifth = x < 7 ? data[rest] : 0u;
  out[t] = first + second + third + fourth + fifth;
}
