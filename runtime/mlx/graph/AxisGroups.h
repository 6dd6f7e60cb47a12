// Axes of arrays in groups that are one axis each, as MLX's functions of matrices want them.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_AXISGROUPS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_AXISGROUPS_H

#include "runtime/mlx/graph/Affine.h"

#include <vector>

namespace triton_metal::graph {

using Axes = std::vector<size_t>;

/// The array with each group of axes, in this order, as one axis; a group without axes has size 1.
/// Axes that are in no group must have size 1.
mx::array inGroups(const mx::array &array, const std::vector<Axes> &groups);

/// The inverse: an array whose axes have these sizes.
mx::array fromGroups(const mx::array &array, const std::vector<Axes> &groups,
                     const Extents &extents);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_AXISGROUPS_H
