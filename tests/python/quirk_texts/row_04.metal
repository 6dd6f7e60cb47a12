#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Sums of what is read from device memory.
kernel void localized(device char *pool [[buffer(0)]]) {
  device float *produced = (device float *)(pool + 1048576);
  device float *total = (device float *)(pool + 2097152);
  total[0] = (float)(0.0);
  {
    float sum;
    sum = total[0];
    for (int i = 0; i <= 3; ++i) {
      for (int j = 0; j <= 15; ++j) {
        sum = (sum + ((float)(16 * i + j) + produced[i * 16 + j])); // HIT 4
      }
    }
    total[0] = sum;
  }
}
kernel void cell(device float *acc [[buffer(0)]], device const float *x [[buffer(1)]], constant uint &n [[buffer(2)]]) {
  acc[0] = 0.0f;
  for (uint i = 0; i < n; ++i)
    acc[0] = acc[0] + x[i]; // HIT 4
  for (uint i = 0; i < n; ++i)
    acc[1] += x[i]; // HIT 4
}
kernel void rows(device float *out [[buffer(0)]], device const float *x [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  out[t] = 0.0f;
  float sum = 0.0f, product = 1.0f, most = 0.0f;
  uint k = 0;
  while (k < 1024) {
    float value = x[t * 1024 + k];
    sum += value; // HIT 4
    product = fma(value, product, 1.0f); // HIT 4
    most = fmax(most, value); // HIT 4
    ++k;
  }
  out[t] = sum + product + most;
}
inline void add(thread float &sum, float value) { sum += value; } // HIT 4
kernel void outer(device float *out [[buffer(0)]], device const float *x [[buffer(1)]], constant uint &n [[buffer(2)]]) {
  for (uint r = 0; r < n; ++r) {
    float4 sum = 0.0f;
    float other = 0.0f;
    for (uint i = 0; i < n; ++i) {
      sum += *(device const float4 *)(x + r * n + i * 4); // HIT 4
      add(other, x[i]);
    }
    out[r] = sum.x + sum.y + other;
  }
}

kernel void safe(device float *out [[buffer(0)]], device const float *x [[buffer(1)]], constant uint &n [[buffer(2)]],
                 constant float *table [[buffer(3)]]) {
  float before = 0.0f;
  for (uint i = 0; i < n; ++i)
    before += x[i]; // no store precedes it
  out[0] = before;
  volatile device const float *again = x;
  float sum = 0.0f, computed = 0.0f, constants = 0.0f;
  for (uint i = 0; i < n; ++i) {
    sum += again[i];
    computed += float(i);
    constants += table[i];
    float fresh = 0.0f;
    fresh += x[i];
    out[i] = fresh;
  }
  out[1] = sum + computed + constants;
}
