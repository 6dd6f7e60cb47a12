#include <metal_stdlib>
using namespace metal;

#ifndef COUNT
#define COUNT 4
#endif
#if COUNT > 3
#define STEP(x) ((x) + 1)
#else
#define STEP(x) (x)
#endif

constant bool flag [[function_constant(0)]];
constant constexpr float weights[COUNT] = {0.5f, 0.25f, 1.0f / 8, 1e-3f};

namespace shapes {
template <typename T> struct Box {
  T low, high;
  Box(T a, T b) : low(a), high(b) {}
  T size() const { return high - low; }
  thread T &operator[](int i) { return i == 0 ? low : high; }
  friend Box operator+(Box a, Box b) { return Box(min(a.low, b.low), max(a.high, b.high)); }
};
template <> struct Box<bool> {
  bool low;
};
template <typename T, typename... Rest> T total(T first, Rest... rest) {
  if constexpr (sizeof...(rest) > 0)
    return first + total(rest...);
  else
    return first;
}
} // namespace shapes

typedef union {
  float f;
  uint u;
  uchar bytes[4];
} Bits;

int down(int n) {
  int count = 0;
  do {
    n = (n & 1) ? 3 * n + 1 : n / 2;
    ++count;
  } while (n > 1 && count < 100);
  return count;
}

kernel void language(const device float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                     device int *numbers [[buffer(2)]], uint2 at [[thread_position_in_grid]],
                     uint2 grid [[threads_per_grid]]) {
  using namespace shapes;
  uint i = at.x + at.y * grid.x;
  Box<float> box = Box<float>(in[i].x, in[i].w) + Box<float>(0.0f, 1.0f);
  box[1] *= total(1.0f, 2.0f, weights[i % COUNT]);
  auto scale = [&](float x) { return x * box.size(); };
  float4 v = in[i].wzyx;
  v.xy = float2(scale(v.x), scale(v.y));
  v.zw += in[i].xy;
  Bits bits;
  bits.f = v.x;
  bits.u ^= 0x80000000u;
  numbers[i] = down(int(i)) + STEP(bits.bytes[3]) + (flag ? 1 : 0) * 0;
  int grouped[2][3] = {{1, 2, 3}, {4, 5}};
  for (auto &row : grouped)
    for (int x : row)
      numbers[i] += x;
  out[i] = any(isnan(v)) ? float4(0) : v * bits.f + float4(grouped[i & 1][i % 3]);
}
