#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// 64-bit remainders and quotients of 32-bit numbers.
typedef uint u32;
typedef ulong u64;
#define U32_BIN(a, o, b) ((u64)((u32)(a)) o (u64)((u32)(b)))
kernel void macro(device u64 *out [[buffer(0)]], device const u32 *in [[buffer(1)]]) {
  u32 d = in[0];
  u64 a = 4294967294ull;
  out[0] = d == 0 ? a : U32_BIN(a, %, d); // HIT 3
}
kernel void plain(device ulong *out [[buffer(0)]], uint2 at [[thread_position_in_grid]]) {
  out[0] = ulong(at.x) % ulong(at.y); // HIT 3
  out[1] = static_cast<ulong>(at.x) / at.y; // HIT 3
}
kernel void variables(device ulong *out [[buffer(0)]], device const uint *in [[buffer(1)]],
                      device const ulong *wide [[buffer(2)]]) {
  ulong x = in[1], y = in[2];
  ulong z = x;
  out[0] = z % y; // HIT 3
  ulong low = wide[0] & 0xffffffff, high = wide[0] >> 32;
  out[1] = low / high; // HIT 3
  z %= y; // HIT 3
  out[2] = z;
  out[3] = x % 7; // HIT 3
}
inline ulong rest(ulong a, ulong b) { return a % b; } // HIT 3
template <typename T> T ratio(T a, T b) {
  return a / b; // HIT 3
}
kernel void calls(device ulong *out [[buffer(0)]], device const ushort *in [[buffer(1)]], device const int *s [[buffer(2)]]) {
  out[0] = rest(in[0], in[1]);
  out[1] = ulong(ratio<long>(s[0], in[1]));
}

kernel void safe(device ulong *out [[buffer(0)]], device const uint *in [[buffer(1)]],
                 device const ulong *wide [[buffer(2)]]) {
  out[0] = in[0] % in[1];
  out[1] = ulong(in[0] / in[1]);
  out[2] = wide[0] % in[1];
  out[3] = ulong(in[0]) % 1024ul;
  out[4] = (wide[0] & 0x1ffffffff) % 3ul;
  out[5] = (ulong(in[0]) * ulong(in[1])) / wide[2];
  constexpr ulong folded = 100ul % 7ul;
  out[6] = folded;
}
