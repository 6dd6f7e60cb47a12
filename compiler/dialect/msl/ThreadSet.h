#ifndef TRITON_METAL_DIALECT_MSL_THREADSET_H
#define TRITON_METAL_DIALECT_MSL_THREADSET_H

#include <cstdint>

namespace triton_metal::msl {

/// The threads of a threadgroup whose lane and SIMD-group index have given bits where the masks are
/// set; all of them by default.
struct ThreadSet {
  uint32_t laneMask = 0, lanes = 0;
  uint32_t simdgroupMask = 0, simdgroups = 0;

  bool operator==(const ThreadSet &) const = default;

  bool isAll() const { return laneMask == 0 && simdgroupMask == 0; }
  /// Whether it has one thread of a threadgroup with this many threads.
  bool isOne(int32_t threads) const {
    return laneMask == 31 && simdgroupMask == uint32_t(threads) / 32 - 1;
  }
  /// Whether all threads of the other set are in this one.
  bool contains(const ThreadSet &other) const {
    return (laneMask & ~other.laneMask) == 0 && (other.lanes & laneMask) == lanes &&
           (simdgroupMask & ~other.simdgroupMask) == 0 &&
           (other.simdgroups & simdgroupMask) == simdgroups;
  }
  /// The threads of both, which have one in common.
  ThreadSet operator&(const ThreadSet &other) const {
    return {laneMask | other.laneMask, lanes | other.lanes, simdgroupMask | other.simdgroupMask,
            simdgroups | other.simdgroups};
  }
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_DIALECT_MSL_THREADSET_H
