#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

#define TILE 16
#define AT(r, c) ((r) * TILE + (c))

template <typename T> [[host_name("reduce_float")]] kernel void
reduce(device const T *x [[buffer(0)]], device T *y [[buffer(1)]],
       device atomic_int *counter [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
       uint local [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
       uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup T shared[32];
  T value = x[group * 64 + local];
  value = simd_sum(value);
  if (lane == 0)
    shared[simdgroup] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    T all = lane < 2 ? shared[lane] : T(0);
    all = simd_shuffle_xor(all, 1) + all;
    if (lane == 0)
      y[group] = simd_max(all) + simd_broadcast(all, 0);
  }
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
  for (uint k = local; k < TILE; k += 64) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    shared[k] = T(k);
  }
}
template [[host_name("reduce_float")]] kernel void
reduce<float>(device const float *, device float *, device atomic_int *, uint, uint, uint, uint);

kernel void multiply(device const float *a [[buffer(0)]], device const half *b [[buffer(1)]],
                     device float *c [[buffer(2)]],
                     ushort lane [[thread_index_in_simdgroup]],
                     ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  alignas(16) threadgroup half tile[TILE * TILE];
  simdgroup_float8x8 acc[2];
#pragma unroll
  for (ushort i = 0; i < 2; ++i)
    acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (ushort k = 0; k < 2; ++k) {
    *(threadgroup half4 *)(tile + lane * 4) = *(device const half4 *)(b + AT(k, lane * 4));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 left;
    simdgroup_half8x8 right;
    simdgroup_load(left, a + 8 * k, 16);
    simdgroup_load(right, tile, TILE, ulong2(0), true);
    simdgroup_multiply_accumulate(acc[k], left, right, acc[k]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  simdgroup_store(acc[simdgroup & 1], c + 64 * simdgroup, 8);
}
