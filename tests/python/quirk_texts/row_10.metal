#include <metal_stdlib>
using namespace metal;
#pragma METAL fp math_mode(safe)
// Threadgroup memory as a parameter.
kernel void pointer(device float *out [[buffer(0)]], threadgroup float *shared [[threadgroup(0)]], // HIT 10
                    uint t [[thread_index_in_threadgroup]]) {
  shared[t] = out[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (shared[0] > 0.0f)
    out[t] = shared[t];
}
struct Work { uint flag; };
template <typename T>
[[kernel]] void reference(device uint *out [[buffer(0)]],
                          threadgroup T &work [[threadgroup(0)]]) { // HIT 10
  work.flag = out[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[1] = work.flag;
}
template [[host_name("r")]] [[kernel]] void reference<Work>(device uint *out [[buffer(0)]], threadgroup Work &work [[threadgroup(0)]]);

inline float sum(threadgroup float *shared) { return shared[0] + shared[1]; }
kernel void in_the_body(device float *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float shared[32];
  shared[t] = out[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = sum(shared);
}
