#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(fast)
kernel void plain(device float *f [[buffer(0)]]) {
  f[0] = tanh(f[0]); // HIT 15
  f[1] = precise::tanh(f[1]);
}
