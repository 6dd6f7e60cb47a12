#include "runtime/mlx/graph/Rows.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

#include <limits>
#include <stdexcept>

namespace triton_metal::graph {

// The gradient of MLX 0.32's gather is a scatter, whose own gradient takes slices for single
// elements along the axis of the indices: second derivatives of rows are wrong, or of another
// shape. The functions here have derivatives that consist of each other. A map makes one vector of
// those of all functions, so that what is derived is of this form again.

namespace {

using Arrays = std::vector<mx::array>;
using Places = std::vector<int>;

mx::array sumsAt(const mx::array &array, const mx::array &starts, const mx::array &rows);

/// An operand of the functions that MLX maps, with their axis first; each has the one of all if it
/// has none.
mx::array toFront(const mx::array &array, int axis) {
  return axis < 0 ? mx::expand_dims(array, 0) : mx::moveaxis(array, axis, 0);
}

/// The number of functions that are mapped.
int numMapped(const Arrays &inputs, const Places &axes) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (axes[i] >= 0)
      return inputs[i].shape(axes[i]);
  throw std::logic_error("no operand is mapped");
}

/// The starts of all functions in vectors of `size` elements that lie one behind the other.
mx::array startsOfAll(const mx::array &starts, int axis, int many, int64_t size) {
  bool isFar = many * size >= std::numeric_limits<int32_t>::max();
  mx::Dtype type = isFar ? mx::int64 : starts.dtype();
  mx::array first = mx::multiply(mx::arange(many, type), mx::array(size, type));
  return mx::reshape(mx::add(toFront(starts, axis), mx::reshape(first, {many, 1})), {-1});
}

/// Where an operand stands among those that have tangents.
const mx::array *tangentOf(int operand, const Arrays &tangents, const Places &argnums) {
  for (size_t i = 0; i < argnums.size(); ++i)
    if (argnums[i] == operand)
      return &tangents[i];
  return nullptr;
}

mx::array plainRows(const mx::array &elements, const mx::array &starts, int length) {
  return mx::gather(elements, starts, 0, {length});
}

mx::array plainSums(const mx::array &array, const mx::array &starts, const mx::array &rows) {
  return mx::scatter_add(array, starts, rows, 0);
}

/// A vector to which rows are added where they start.
mx::array sumsAt(const mx::array &array, const mx::array &starts, const mx::array &rows) {
  if (!array.is_tracer() && !starts.is_tracer() && !rows.is_tracer())
    return plainSums(array, starts, rows);
  auto function = [](const Arrays &inputs) {
    return Arrays{plainSums(inputs[0], inputs[1], inputs[2])};
  };
  auto vjp = [](const Arrays &primals, const Arrays &cotangents, const Arrays &) {
    return Arrays{cotangents[0], mx::zeros_like(primals[1]),
                  rowsAt(cotangents[0], primals[1], primals[2].shape(1))};
  };
  auto jvp = [](const Arrays &primals, const Arrays &tangents, const Places &argnums) {
    const mx::array *array = tangentOf(0, tangents, argnums);
    const mx::array *rows = tangentOf(2, tangents, argnums);
    return Arrays{sumsAt(array ? *array : mx::zeros_like(primals[0]), primals[1],
                         rows ? *rows : mx::zeros_like(primals[2]))};
  };
  auto vmap = [](const Arrays &inputs, const Places &axes) {
    int many = numMapped(inputs, axes);
    auto all = [&](size_t operand) {
      mx::array own = toFront(inputs[operand], axes[operand]);
      mx::Shape shape = own.shape();
      shape[0] = many;
      return mx::broadcast_to(own, shape);
    };
    mx::array arrays = all(0), rows = all(2);
    int size = arrays.shape(1), length = rows.shape(2);
    mx::array sums = sumsAt(mx::reshape(arrays, {-1}), startsOfAll(inputs[1], axes[1], many, size),
                            mx::reshape(rows, {many * rows.shape(1), length}));
    return std::pair(Arrays{mx::reshape(sums, {many, size})}, Places{0});
  };
  return mx::custom_function(function, vjp, jvp, vmap)({array, starts, rows}).front();
}

} // namespace

mx::array rowsAt(const mx::array &elements, const mx::array &starts, int length) {
  if (!elements.is_tracer() && !starts.is_tracer())
    return plainRows(elements, starts, length);
  auto function = [length](const Arrays &inputs) {
    return Arrays{plainRows(inputs[0], inputs[1], length)};
  };
  auto vjp = [](const Arrays &primals, const Arrays &cotangents, const Arrays &) {
    return Arrays{sumsAt(mx::zeros_like(primals[0]), primals[1], cotangents[0]),
                  mx::zeros_like(primals[1])};
  };
  auto jvp = [length](const Arrays &primals, const Arrays &tangents, const Places &argnums) {
    const mx::array *tangent = tangentOf(0, tangents, argnums);
    return Arrays{tangent ? rowsAt(*tangent, primals[1], length)
                          : mx::zeros({primals[1].shape(0), length}, primals[0].dtype())};
  };
  auto vmap = [length](const Arrays &inputs, const Places &axes) {
    int many = numMapped(inputs, axes);
    // All functions take rows of one vector, or each of its own.
    int size = axes[0] < 0 ? 0 : static_cast<int>(inputs[0].size()) / many;
    mx::array rows = rowsAt(mx::reshape(toFront(inputs[0], axes[0]), {-1}),
                            startsOfAll(inputs[1], axes[1], many, size), length);
    return std::pair(Arrays{mx::reshape(rows, {many, rows.shape(0) / many, length})}, Places{0});
  };
  return mx::custom_function(function, vjp, jvp, vmap)({elements, starts}).front();
}

} // namespace triton_metal::graph
