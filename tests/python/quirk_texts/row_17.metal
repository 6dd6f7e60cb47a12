#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Signed arithmetic that may overflow, and remainders of negative numbers.
kernel void overflows(device int *out [[buffer(0)]], device const int *in [[buffer(1)]], constant uint *args [[buffer(2)]]) {
  int a = in[0], b = as_type<int>(args[0]);
  out[0] = a + b; // HIT 17
  out[1] = a - 1; // HIT 17
  out[2] = a * b; // HIT 17
  out[3] = a << 4; // HIT 17
  out[4] = a % 8; // HIT 17
  out[6] = a - a / b * b; // HIT 17
  out[7] = a - b / 6 * 6; // HIT 17
  a += b; // HIT 17
  out[5] = a;
}
template <typename T> T twice(T x) {
  return x + x; // HIT 17
}
kernel void templates(device int *out [[buffer(0)]], device const int *in [[buffer(1)]]) {
  out[0] = twice(in[0]);
}

kernel void safe(device int *out [[buffer(0)]], device const int *in [[buffer(1)]], device const short *narrow [[buffer(2)]],
                 uint3 group [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]],
                 ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  int thread_index = simdgroup * 32 + lane;
  int a = in[0], b = in[1];
  out[0] = as_type<int>(as_type<uint>(a) + as_type<uint>(b));
  out[1] = int(uint(a) * uint(b));
  out[2] = thread_index * 8 + 3;
  out[3] = narrow[0] * narrow[1] + 1;
  out[4] = min(max(a, -1000), 1000) * 1000;
  out[5] = (a & 7) % 3;
  out[6] = (a >> 8) * 100;
  for (int i = 0; i < 64; ++i)
    out[i * 16 + 7] = i % 3;
  out[8] = int(long(a) + long(b));
  out[9] = int(group.x % 7u) * 5;
  int quotient = a / 6;
  out[10] = a - a / 6 * 6;
  out[11] = a - 6 * quotient;
  out[12] = thread_index - thread_index / b * b;
}
