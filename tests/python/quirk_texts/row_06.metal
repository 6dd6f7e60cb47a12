#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Thread arrays that change places.
#define EACH for (uint i = 0; i < 16; ++i)
kernel void three(device const float *in [[buffer(0)]], device float *out [[buffer(1)]]) {
  float c0[16] = {}, c1[16] = {}, c2[16] = {};
  EACH c0[i] = in[i];
  EACH c1[i] = in[16 + i];
  EACH c2[i] = in[32 + i];
  for (uint s = 0; s < 2; ++s) { // HIT 6
    float s0[16] = {}, s1[16] = {}, s2[16] = {}, t[16] = {};
    EACH s0[i] = c0[i];
    EACH s1[i] = c1[i];
    EACH s2[i] = c2[i];
    EACH t[i] = precise::tanh(s0[i] + 0.0f * s0[i]);
    EACH c0[i] = s2[i];
    EACH c1[i] = t[i];
    EACH c2[i] = s0[i];
  }
  EACH out[i] = c0[i] + c1[i] + c2[i];
}
template <typename T, uint N> void copy(thread T *to, thread const T *from) {
  for (uint i = 0; i < N; ++i)
    to[i] = from[i];
}
kernel void helpers(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]], constant uint &n [[buffer(2)]]) {
  uint a[8] = {}, b[8] = {};
  for (uint i = 0; i < 8; ++i) {
    a[i] = in[i];
    b[i] = in[8 + i];
  }
  uint k = 0;
  while (k < n) { // HIT 6
    uint old[8] = {};
    copy<uint, 8>(old, a);
    copy<uint, 8>(a, b);
    copy<uint, 8>(b, old);
    ++k;
  }
  for (uint i = 0; i < 8; ++i)
    out[i] = a[i] - b[i];
}

kernel void fused(device const float *in [[buffer(0)]], device float *out [[buffer(1)]]) {
  float c0[16] = {}, c1[16] = {}, c2[16] = {};
  EACH { c0[i] = in[i]; c1[i] = in[16 + i]; c2[i] = in[32 + i]; }
  for (uint s = 0; s < 2; ++s)
    for (uint i = 0; i < 16; ++i) {
      float s0 = c0[i], s1 = c1[i], s2 = c2[i];
      float t = precise::tanh(s0 + 0.0f * s1);
      c0[i] = s2;
      c1[i] = t;
      c2[i] = s0;
    }
  EACH out[i] = c0[i] + c1[i] + c2[i];
}
kernel void scalars(device const float *in [[buffer(0)]], device float *out [[buffer(1)]]) {
  float c0 = in[0], c1 = in[1], c2 = in[2];
  for (uint s = 0; s < 2; ++s) {
    float s0 = c0, s1 = c1, s2 = c2;
    c0 = s2; c1 = precise::tanh(s0 + s1); c2 = s0;
  }
  out[0] = c0 + c1 + c2;
}
kernel void in_place(device const float *in [[buffer(0)]], device float *out [[buffer(1)]]) {
  float c0[16] = {}, c1[16] = {}, c2[16] = {};
  EACH { c0[i] = in[i]; c1[i] = in[16 + i]; }
  for (uint s = 0; s < 2; ++s) {
    EACH c2[i] = c0[i] * c1[i];
    EACH c0[i] = c2[i] + 1.0f;
    EACH c1[i] = c1[i] * 2.0f;
  }
  EACH out[i] = c0[i] + c1[i] + c2[i];
}
