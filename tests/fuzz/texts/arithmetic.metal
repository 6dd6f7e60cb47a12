#include <metal_stdlib>
using namespace metal;

constant int table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
enum Mode { first = 1, second = 2 };
struct Pair {
  float4 a;
  half b[3];
  int count = 3;
};

template <typename T, int N> T sum(device const T *x, uint i) {
  T total = T(0);
#pragma unroll
  for (int k = 0; k < N; ++k)
    total += x[i + k];
  return total;
}

static int pick(int mode, uint x) {
  switch (mode) {
  case first:
    return x >> 3;
  case second:
    return int(x) / 7 % 5;
  default:
    return table[x & 7] << (x & 31);
  }
}

kernel void arithmetic(device const int *x [[buffer(0)]], device float *y [[buffer(1)]],
                       device uchar *z [[buffer(2)]], constant int &n [[buffer(3)]],
                       uint i [[thread_position_in_grid]]) {
  Pair pair;
  pair.a = float4(x[i], 2, 3, 4);
  pair.b[1] = half(x[i + 1]);
  short4 s = short4(x[i]) << short4(3, 1, 2, 0);
  ulong wide = ulong(x[i]) * 0x9e3779b97f4a7c15ul;
  int q = pick(x[i] & 3, i) + clz(x[i]) + popcount(x[i + 1]) + mulhi(x[i], 77);
  float f = clamp(exp(pair.a.x), 0.0f, 10.0f) + float(pair.b[1]) + fma(2.0f, 3.0f, float(q));
  bfloat b = bfloat(f);
  if (n > 3 && i < 50)
    f = -f;
  else if (n == 0)
    return;
  for (int k = 0; k < n; ++k) {
    if (k == 40)
      break;
    f += sum<int, 4>(x, k);
    float local[8] = {};
    local[k & 7] = f;
    f = local[(k + 1) & 7] * 0.5f;
  }
  while (q > 1000)
    q /= 3;
  y[i] = f + float(b) + s.y + as_type<float>(q) + select(1.0f, 2.0f, q > 3) + pair.count;
  z[i] = uchar(wide >> 40) + uchar(f) + char(y[i]);
}
