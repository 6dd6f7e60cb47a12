// Coordinates that several axes count together and that a kernel takes apart by quotients and
// remainders, as `pixel // width` and `pixel % width`: each digit is an axis of its own.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_DIGITS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_DIGITS_H

#include "runtime/mlx/graph/Value.h"

#include <set>

namespace triton_metal::graph {

/// Axes of which the first one counts in steps of all others' sizes, and so on.
struct CountedAxes {
  std::vector<size_t> axes;
  /// What the count is divided by.
  std::set<int64_t> divisors;
};

class Digits {
public:
  static constexpr size_t none = ~size_t(0);

  struct Group {
    std::vector<size_t> axes;
    /// The digits' axes, the greatest first, and what each is worth.
    std::vector<size_t> digits;
    std::vector<int64_t> worths;
    /// How far the axes count, and how far conditions let them.
    int64_t size = 1, limit = 1;
  };
  /// An axis of the sizes given, or a digit.
  struct Axis {
    size_t axis;
    /// The group of a digit; -1 for an axis.
    int group;
    /// A digit may have an index that is only reached in part; `complete` counts the others.
    int size, complete;
  };

  /// Nothing where two counts share some of their axes, or a divisor is no multiple of the one
  /// before.
  static std::optional<Digits> of(const Extents &extents, const std::vector<CountedAxes> &counted);

  const std::vector<Axis> &axes() const { return all; }
  const std::vector<Group> &groups() const { return grouped; }

  /// Where a condition on axes and digits bounds nothing but a count from above: its group and the
  /// bound.
  std::optional<std::pair<size_t, int64_t>> boundOf(const Affine &condition) const;
  /// Only counts below are considered from here on.
  void setLimit(size_t group, int64_t limit);

  /// Known integers as a constant and a step along each axis and digit. Nothing where one of them
  /// is no such form: each number of an array is compared.
  std::optional<std::vector<Affine>> affineOf(const std::vector<Value> &values) const;

  std::optional<Affine> split(const Affine &affine) const;

private:
  /// The sizes of an array with all axes of a count along which it changes; nothing for long ones.
  std::optional<Extents> wholeSizes(const Value &value) const;
  std::optional<Affine> fit(const std::vector<int64_t> &numbers, const Extents &sizes) const;
  /// Whether this is what all numbers are whose counts are below their limits.
  bool isEverywhere(const Affine &affine, const std::vector<int64_t> &numbers,
                    const Extents &sizes) const;
  /// The steps of a count's axes as one; nothing where they do not count together.
  std::optional<int64_t> stepOf(const Affine &affine, const Group &group) const;

  Extents extents;
  std::vector<Axis> all;
  std::vector<Group> grouped;
};

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_DIGITS_H
