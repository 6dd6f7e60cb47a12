// Rows that begin anywhere in a vector.
#pragma once

#include "mlx/array.h"

namespace triton_metal::graph {

namespace mx = mlx::core;

/// The rows of `length` elements that begin at `starts`, a vector of integers: (starts, length).
/// Each row lies within the elements, which are a vector.
mx::array rowsAt(const mx::array &elements, const mx::array &starts, int length);

} // namespace triton_metal::graph
