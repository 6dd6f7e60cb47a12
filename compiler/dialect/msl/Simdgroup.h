// A SIMD-group, and the matrices that its lanes share.
#ifndef TRITON_METAL_DIALECT_MSL_SIMDGROUP_H
#define TRITON_METAL_DIALECT_MSL_SIMDGROUP_H

#include "llvm/ADT/Hashing.h"
#include "llvm/Support/MathExtras.h"

#include <cstdint>
#include <string>

namespace triton_metal {

/// Threads that run in lock step on every Apple GPU.
inline constexpr unsigned kSimdWidth = 32;
inline constexpr unsigned kLaneBits = 5;

namespace msl {

/// The lanes of a SIMD-group lie on a fragment in so many rows and columns.
inline constexpr int64_t kLaneRows = 8, kLaneColumns = 4;
static_assert(kLaneRows * kLaneColumns == kSimdWidth);
/// The rows and columns that lanes lie on at once, at most: larger fragments consist of such.
inline constexpr int64_t kUnitExtent = 16;

/// A matrix that the lanes of one SIMD-group share.
struct FragmentShape {
  int64_t rows = 0, columns = 0;

  /// Each lane has at least one element.
  bool isValid() const {
    return rows >= kLaneRows && columns >= kLaneColumns && llvm::isPowerOf2_64(rows) &&
           llvm::isPowerOf2_64(columns);
  }
  /// Elements that a lane holds.
  int64_t getNumRegisters() const { return rows * columns / kSimdWidth; }
  FragmentShape getTransposed() const { return {columns, rows}; }
  /// "8x8".
  std::string str() const { return std::to_string(rows) + "x" + std::to_string(columns); }

  bool operator==(const FragmentShape &) const = default;
};

/// What one matrix instruction computes: it adds the product of an m x k and a k x n fragment to an
/// m x n fragment.
struct MatrixShape {
  int64_t m = 0, n = 0, k = 0;

  FragmentShape getAccumulator() const { return {m, n}; }
  /// a for index 0, b for index 1.
  FragmentShape getOperand(unsigned index) const {
    return index == 0 ? FragmentShape{m, k} : FragmentShape{k, n};
  }
  bool isValid() const {
    return getAccumulator().isValid() && getOperand(0).isValid() && getOperand(1).isValid();
  }
  /// "8x8x8".
  std::string str() const { return getAccumulator().str() + "x" + std::to_string(k); }

  bool operator==(const MatrixShape &) const = default;
};

inline llvm::hash_code hash_value(const FragmentShape &shape) {
  return llvm::hash_combine(shape.rows, shape.columns);
}
inline llvm::hash_code hash_value(const MatrixShape &shape) {
  return llvm::hash_combine(shape.m, shape.n, shape.k);
}

} // namespace msl
} // namespace triton_metal

#endif // TRITON_METAL_DIALECT_MSL_SIMDGROUP_H
