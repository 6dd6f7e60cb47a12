#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Accesses of one byte with chained offsets.
typedef uchar byte;
kernel void chained(device char *in [[buffer(0)]], device byte *out [[buffer(1)]], uint i [[thread_position_in_grid]],
                    uint j [[thread_index_in_threadgroup]]) {
  device char *row = in + i;
  out[i] = byte(row[j]); // HIT 8
  device byte *to = &out[i];
  *(to + 1) = 3; // HIT 8
  to[j] += 1; // HIT 8
  (out + i)[j] = 2; // HIT 8
}
inline bool flag(device const bool *flags, uint at) { return flags[at]; } // HIT 8
template <typename T> void put(device T *to, uint at, T value) {
  to[at] = value; // HIT 8
}
kernel void calls(device const bool *flags [[buffer(0)]], device char *out [[buffer(1)]], device float *wide [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  if (flag(flags + i, 1))
    put(out + i, i, char(1));
  put(wide + i, i, 1.0f);
}

kernel void safe(device char *in [[buffer(0)]], device byte *out [[buffer(1)]], uint i [[thread_position_in_grid]],
                 uint j [[thread_index_in_threadgroup]], device half *halves [[buffer(2)]]) {
  out[i + j] = byte(in[i + j]);
  device char *row = in + i;
  out[i] = byte(row[0]) + byte(*row);
  device char *block = in + (i + j);
  out[j] = byte(*block);
  device half *h = halves + i;
  h[j] = 1.0h;
  device char *fixed = in + 16;
  out[0] = byte(fixed[4]);
  device const uchar4 *four = (device const uchar4 *)(in + i);
  out[1] = four[j].x;
}
