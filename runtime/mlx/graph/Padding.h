// Arrays with more elements around them.
#pragma once

#include "mlx/array.h"

#include <utility>
#include <vector>

namespace triton_metal::graph {

namespace mx = mlx::core;

/// The array with so many elements before and behind it along each axis. `outside` is a known
/// number, and depends on no argument.
mx::array padded(const mx::array &array, const std::vector<std::pair<int, int>> &widths,
                 const mx::array &outside);

/// The same with zeros.
mx::array paddedWithZeros(const mx::array &array, const std::vector<std::pair<int, int>> &widths);

} // namespace triton_metal::graph
