#include "runtime/mlx/graph/Padding.h"

#include "mlx/ops.h"

namespace triton_metal::graph {

mx::array padded(const mx::array &array, const std::vector<std::pair<int, int>> &widths,
                 const mx::array &outside) {
  mx::array number = mx::astype(mx::reshape(outside, {}), array.dtype());
  if (!array.is_tracer())
    return mx::pad(array, widths, number);
  // The gradient of MLX 0.32's pad takes the widths of other axes where a map has moved the axes: a
  // gradient of a map is wrong, or of another shape.
  mx::Shape whole = array.shape(), start(array.ndim()), stop(array.ndim());
  for (size_t axis = 0; axis < widths.size(); ++axis) {
    start[axis] = widths[axis].first;
    stop[axis] = start[axis] + whole[axis];
    whole[axis] = stop[axis] + widths[axis].second;
  }
  return mx::slice_update(mx::broadcast_to(number, whole), array, start, stop);
}

mx::array paddedWithZeros(const mx::array &array, const std::vector<std::pair<int, int>> &widths) {
  return padded(array, widths, mx::array(0, array.dtype()));
}

} // namespace triton_metal::graph
