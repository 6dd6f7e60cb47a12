#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Device memory that a loop reads and stores again.
kernel void plain(device uint *data [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  for (uint i = 0; i < n; ++i) {
    uint value = data[0]; // HIT 5
    uint next = value * 3u + i;
    data[0] = next;
  }
}
struct State { uint seed; uint count; };
kernel void fields(device State *state [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  uint i = 0;
  do {
    uint seed = state->seed; // HIT 5
    seed = seed * 1103515245u + 12345u;
    if (seed > 7)
      state->seed = seed;
  } while (++i < n);
}
inline uint fetch(device const uint *from, uint at) { return from[at]; } // HIT 5
kernel void calls(device uint *data [[buffer(0)]], constant uint &n [[buffer(1)]], uint t [[thread_position_in_grid]]) {
  device uint *mine = data + t * 4;
  for (uint i = 0; i < n; ++i) {
    uint value = fetch(mine, 2);
    value ^= value << 13;
    *(mine + 2) = value;
  }
}
kernel void tiles(device float *x [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  for (uint step = 0; step < n; ++step)
    for (uint i = 0; i < 4; ++i) {
      float value = x[i]; // HIT 5
      float next = value * 0.5f;
      x[i] = next;
    }
}

struct Set { ulong address; };
kernel void addresses(constant Set &set [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  for (uint i = 0; i < n; ++i) {
    uint value = *(device uint *)(set.address + 8ul); // HIT 5
    uint next = value * 3u + i;
    *(device uint *)(set.address + 8ul) = next;
  }
}

kernel void is_volatile(volatile device uint *data [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  for (uint i = 0; i < n; ++i) {
    uint value = data[0];
    data[0] = value + 1u;
  }
}
kernel void is_coherent(coherent(device) device uint *data [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  for (uint i = 0; i < n; ++i) {
    uint value = data[0];
    data[0] = value + 1u;
  }
}
kernel void is_cast(device uint *raw [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  coherent(device) device uint *data = (coherent(device) device uint *)raw;
  for (uint i = 0; i < n; ++i) {
    uint value = data[0];
    data[0] = value + 1u;
  }
}
kernel void others(device uint *data [[buffer(0)]], constant uint &n [[buffer(1)]]) {
  uint value = data[0];
  for (uint i = 0; i < n; ++i) {
    uint old = data[i + 1];
    data[i + 1] = old * value;
    device uint *place = data + 100 + i * 2;
    uint even = place[0];
    place[0] = even + 1u;
    data[2000] = i;
  }
  data[0] = value + 1u;
}
