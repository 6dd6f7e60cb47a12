#include "runtime/mlx/graph/AxisGroups.h"

#include "mlx/ops.h"

namespace triton_metal::graph {

/// The axes of all groups, then the others.
static std::vector<int> orderOf(const std::vector<Axes> &groups, size_t rank) {
  std::vector<int> order;
  std::vector<bool> isPlaced(rank, false);
  for (const Axes &group : groups)
    for (size_t axis : group) {
      order.push_back(static_cast<int>(axis));
      isPlaced[axis] = true;
    }
  for (size_t axis = 0; axis < rank; ++axis)
    if (!isPlaced[axis])
      order.push_back(static_cast<int>(axis));
  return order;
}

mx::array inGroups(const mx::array &array, const std::vector<Axes> &groups) {
  mx::Shape shape;
  for (const Axes &group : groups) {
    int size = 1;
    for (size_t axis : group)
      size *= array.shape(static_cast<int>(axis));
    shape.push_back(size);
  }
  return mx::reshape(mx::transpose(array, orderOf(groups, array.ndim())), shape);
}

mx::array fromGroups(const mx::array &array, const std::vector<Axes> &groups,
                     const Extents &extents) {
  std::vector<int> order = orderOf(groups, extents.size()), inverse(order.size());
  mx::Shape shape;
  for (size_t i = 0; i < order.size(); ++i) {
    auto axis = static_cast<size_t>(order[i]);
    shape.push_back(extents[axis]);
    inverse[axis] = static_cast<int>(i);
  }
  return mx::transpose(mx::reshape(array, shape), inverse);
}

} // namespace triton_metal::graph
