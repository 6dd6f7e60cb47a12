#include "runtime/mlx/graph/OuterAxes.h"

#include <algorithm>

namespace triton_metal::graph {

/// Axes that are kept for loops: a loop in a loop, and one more.
constexpr size_t loopAxes = 2;

OuterAxes::OuterAxes(std::array<int, 3> grid, const std::vector<Division> &divisions)
    : grid(grid), gridSizes(outerAxes, 1), allSizes(outerAxes, 1), inUse(outerAxes, false) {
  for (size_t dimension = 0; dimension < 3; ++dimension) {
    dimensions[dimension] = {{dimension, grid[dimension], 1}};
    inUse[dimension] = true;
  }
  for (const Division &division : divisions)
    if (canDivide(division))
      divide(division);
  for (const std::vector<Factor> &factors : dimensions)
    for (const Factor &factor : factors)
      gridSizes[factor.axis] = factor.size;
  allSizes = gridSizes;
}

/// Whether a step of `divisor` programs falls inside this factor.
static bool splits(const OuterAxes::Factor &factor, int64_t divisor) {
  return divisor > factor.step && divisor % factor.step == 0 &&
         divisor < factor.step * factor.size && factor.size % (divisor / factor.step) == 0;
}

bool OuterAxes::canDivide(const Division &division) const {
  size_t left = static_cast<size_t>(std::count(inUse.begin(), inUse.end(), false));
  const std::vector<Factor> &factors = dimensions[division.dimension];
  return left > loopAxes && std::any_of(factors.begin(), factors.end(), [&](const Factor &factor) {
           return splits(factor, division.divisor);
         });
}

void OuterAxes::divide(const Division &division) {
  std::vector<Factor> &factors = dimensions[division.dimension];
  auto found = std::find_if(factors.begin(), factors.end(),
                            [&](const Factor &factor) { return splits(factor, division.divisor); });
  auto axis = static_cast<size_t>(std::find(inUse.begin(), inUse.end(), false) - inUse.begin());
  inUse[axis] = true;
  int inner = static_cast<int>(division.divisor / found->step);
  // The quotient stays on the axis, and the remainder goes to the new one.
  Factor remainder{axis, inner, found->step};
  found->size /= inner;
  found->step = division.divisor;
  factors.insert(found + 1, remainder);
}

std::optional<size_t> OuterAxes::dimensionOf(size_t axis) const {
  for (size_t dimension = 0; dimension < 3; ++dimension)
    for (const Factor &factor : dimensions[dimension])
      if (factor.axis == axis)
        return dimension;
  return std::nullopt;
}

std::optional<size_t> OuterAxes::takeAxis(int size) {
  auto found = std::find(inUse.begin(), inUse.end(), false);
  if (found == inUse.end())
    return std::nullopt;
  auto axis = static_cast<size_t>(found - inUse.begin());
  inUse[axis] = true;
  allSizes[axis] = size;
  return axis;
}

} // namespace triton_metal::graph
