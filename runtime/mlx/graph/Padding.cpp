#include "runtime/mlx/graph/Padding.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace triton_metal::graph {

using Arrays = std::vector<mx::array>;
using Places = std::vector<int>;
using Widths = std::vector<std::pair<int, int>>;

/// What padding takes back.
static mx::array inside(const mx::array &whole, const Widths &widths) {
  mx::Shape start(whole.ndim()), stop = whole.shape();
  for (size_t axis = 0; axis < widths.size(); ++axis) {
    start[axis] = widths[axis].first;
    stop[axis] -= widths[axis].second;
  }
  return mx::slice(whole, start, stop);
}

mx::array padded(const mx::array &array, const Widths &widths, const mx::array &outside) {
  mx::array number = mx::astype(mx::reshape(outside, {}), array.dtype());
  if (!array.is_tracer())
    return mx::pad(array, widths, number);
  // The gradient of MLX 0.32's pad takes the widths of other axes where a map has moved the axes: a
  // gradient of a map is wrong, or of another shape.
  auto function = [widths, number](const Arrays &inputs) {
    return Arrays{mx::pad(inputs[0], widths, number)};
  };
  auto vjp = [widths](const Arrays &, const Arrays &cotangents, const Arrays &) {
    return Arrays{inside(cotangents[0], widths)};
  };
  auto jvp = [widths](const Arrays &, const Arrays &tangents, const Places &) {
    return Arrays{paddedWithZeros(tangents[0], widths)};
  };
  auto vmap = [widths, number](const Arrays &inputs, const Places &axes) {
    Widths all = widths;
    all.insert(all.begin() + axes[0], {0, 0});
    return std::pair(Arrays{padded(inputs[0], all, number)}, axes);
  };
  return mx::custom_function(function, vjp, jvp, vmap)({array}).front();
}

mx::array paddedWithZeros(const mx::array &array, const Widths &widths) {
  return padded(array, widths, mx::array(0, array.dtype()));
}

} // namespace triton_metal::graph
