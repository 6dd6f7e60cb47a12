// Integers that are a constant and a step along each axis of an array.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_AFFINE_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_AFFINE_H

#include "mlx/array.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace triton_metal::graph {

namespace mx = mlx::core;

/// The sizes of an array along its axes: the outer ones, then those of the tile. A size of 1 stands
/// for any size along which nothing changes.
using Extents = std::vector<int>;

/// constant + sum of steps[a] * (index along axis a).
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> steps;

  static Affine of(int64_t constant, size_t rank) { return {constant, std::vector<int64_t>(rank)}; }

  bool isConstant() const;
  bool operator==(const Affine &other) const = default;
  /// The least and the greatest number.
  std::pair<int64_t, int64_t> range(const Extents &extents) const;
};

/// The sum; nothing where a step or the constant does not fit 64 bits.
std::optional<Affine> add(const Affine &a, const Affine &b);
std::optional<Affine> multiply(const Affine &a, int64_t factor);

/// Quotient and remainder, rounded down, by a divisor above 0, where both are affine: each step is
/// a multiple of the divisor, or belongs to a part that stays below it.
std::optional<std::pair<Affine, Affine>> divide(const Affine &a, int64_t divisor,
                                                const Extents &extents);

/// Quotients or remainders, rounded toward 0, of numbers that are not negative, as such an array.
/// Nothing for long ones.
std::optional<mx::array> dividedArray(const Affine &affine, int64_t divisor, bool isRemainder,
                                      const Extents &extents, mx::Dtype dtype);

/// The numbers as an array whose axes have the sizes of those with a step, and 1 otherwise.
mx::array toArray(const Affine &affine, const Extents &extents, mx::Dtype dtype);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_AFFINE_H
