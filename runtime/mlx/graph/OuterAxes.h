// What the axes in front of those of a tile stand for.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_OUTERAXES_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_OUTERAXES_H

#include "runtime/mlx/graph/Value.h"

#include <array>

namespace triton_metal::graph {

/// A dimension of the grid and the number by which a kernel divides its program's number.
struct Division {
  size_t dimension;
  int64_t divisor;
};

/// Each dimension of a grid is one axis, or several ones whose sizes multiply to its own: where a
/// kernel divides the number of its program by `d`, quotient and remainder are an axis each. Loops
/// take further axes while their bodies are traced.
class OuterAxes {
public:
  /// The number of a program is the sum of its indices along the axes, each times its step.
  struct Factor {
    size_t axis;
    int size;
    int64_t step;
  };

  explicit OuterAxes(std::array<int, 3> grid, const std::vector<Division> &divisions = {});

  /// The factors of a dimension, the greatest step first.
  const std::vector<Factor> &factors(size_t dimension) const { return dimensions[dimension]; }
  int gridSize(size_t dimension) const { return grid[dimension]; }
  /// The sizes of the grid's axes; 1 for all others.
  const Extents &ofGrid() const { return gridSizes; }
  /// The sizes of all axes, with those of the loops around.
  const Extents &sizes() const { return allSizes; }

  /// Whether the dimension may be divided by this number: it divides a factor, and an axis is left.
  bool canDivide(const Division &division) const;
  /// The dimension that an axis is a part of; nothing for axes of loops.
  std::optional<size_t> dimensionOf(size_t axis) const;

  /// An axis for the steps of a loop; nothing where all are in use.
  std::optional<size_t> takeAxis(int size);
  void giveAxis(size_t axis) { allSizes[axis] = 1, inUse[axis] = false; }
  /// Changes how many steps of a loop are traced together.
  void resizeAxis(size_t axis, int size) { allSizes[axis] = size; }

private:
  void divide(const Division &division);

  std::array<int, 3> grid;
  std::array<std::vector<Factor>, 3> dimensions;
  Extents gridSizes, allSizes;
  std::vector<bool> inUse;
};

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_OUTERAXES_H
