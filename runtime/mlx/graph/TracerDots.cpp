// Products of tiles. Axes of the grid along which one operand is the same belong to the rows or the
// columns of the product, so that a grid of tiles is one product of matrices.

#include "runtime/mlx/graph/AxisGroups.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>
#include <numeric>

namespace triton_metal::graph {

namespace {

/// What an axis in front of two tiles means for their product.
struct Contraction {
  Axes batch, rows, columns, sums;
};

Contraction contractionOf(const mx::array &x, const mx::array &y, const SummedAxes &along) {
  Contraction axes;
  size_t rank = x.ndim();
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    bool inX = x.shape(static_cast<int>(axis)) > 1, inY = y.shape(static_cast<int>(axis)) > 1;
    if (std::any_of(along.begin(), along.end(), [&](auto sum) { return sum.first == axis; }))
      axes.sums.push_back(axis);
    else if (inX && inY)
      axes.batch.push_back(axis);
    else if (inX)
      axes.rows.push_back(axis);
    else if (inY)
      axes.columns.push_back(axis);
  }
  return axes;
}

Axes with(Axes axes, size_t last) {
  axes.push_back(last);
  return axes;
}

/// The matrix product in the type of its sum.
mx::array multiply(const mx::array &x, const mx::array &y, const Type &type) {
  mx::Dtype sum = type.dtype();
  if (type.isFloat()) {
    mx::Dtype wide = sum == mx::float64 ? mx::float64 : mx::float32;
    return mx::matmul(mx::astype(x, wide), mx::astype(y, wide));
  }
  // Products of bytes are exact in float while fewer than 1,024 of them are added; other integers
  // are multiplied one by one.
  bool isBytes = x.dtype() == mx::int8 && y.dtype() == mx::int8;
  int k = x.shape(-1), step = isBytes ? 1024 : 1;
  size_t last = x.ndim() - 1;
  std::optional<mx::array> total;
  for (int from = 0; from < k; from += step) {
    int to = std::min(k, from + step);
    mx::Shape startX(x.ndim(), 0), endX = x.shape(), startY(y.ndim(), 0), endY = y.shape();
    startX[last] = from, endX[last] = to;
    startY[last - 1] = from, endY[last - 1] = to;
    mx::array partX = mx::slice(x, startX, endX), partY = mx::slice(y, startY, endY);
    mx::array part =
        isBytes
            ? mx::astype(mx::matmul(mx::astype(partX, mx::float32), mx::astype(partY, mx::float32)),
                         sum)
            : mx::multiply(mx::astype(partX, sum), mx::astype(partY, sum));
    total = total ? mx::add(*total, part) : part;
  }
  return *total;
}

} // namespace

Value Tracer::product(const Operation &op, const Value &a, const Value &b,
                      const SummedAxes &along) {
  Type type = resultType(op);
  Extents ofA = fullExtents(a.type(), a.extents()), ofB = fullExtents(b.type(), b.extents());
  // Also where no tile changes along an axis, each of its steps counts.
  for (auto [axis, size] : along)
    ofA[axis] = ofB[axis] = size;
  mx::array x = whole(a, ofA), y = whole(b, ofB);
  size_t rank = ofA.size(), m = rank - 2, n = rank - 1;
  Contraction axes = contractionOf(x, y, along);
  // A float16 sum is kept as float32 until the last addition.
  Type wide = type;
  if (type.isFloat() && type.dtype() != mx::float64)
    wide.element = "f32";
  Extents extents = fullExtents(wide, join(Extents(ofA.begin(), ofA.begin() + outerAxes),
                                           Extents(ofB.begin(), ofB.begin() + outerAxes)));
  for (auto [axis, size] : along)
    extents[axis] = 1;
  bool isKnown = a.isKnown() && b.isKnown();
  // Axes of the batch stay apart.
  auto groups = [&](Axes first, Axes second) {
    std::vector<Axes> all;
    for (size_t axis : axes.batch)
      all.push_back({axis});
    all.push_back(std::move(first));
    all.push_back(std::move(second));
    return all;
  };
  mx::array matrices =
      multiply(inGroups(x, groups(with(axes.rows, m), with(axes.sums, n))),
               inGroups(y, groups(with(axes.sums, m), with(axes.columns, n))), type);
  mx::array tiles =
      fromGroups(matrices, groups(with(axes.rows, m), with(axes.columns, n)), extents);
  return Value::of(wide, extents, tiles, isKnown);
}

Value Tracer::sumWith(const Operation &op, const Value &product, const Value &c) {
  const Type &type = resultType(op);
  mx::array sum = mx::astype(
      mx::add(product.array(), mx::astype(c.array(), product.array().dtype())), type.dtype());
  return Value::of(type, join(product.extents(), c.extents()), sum,
                   product.isKnown() && c.isKnown());
}

void Tracer::runDot(const Operation &op) {
  if (std::optional<Value> sum = convolutionOfDot(op, {}))
    return setResult(op, addedTo(op, operand(op, 2), *sum).withType(resultType(op)));
  setResult(op, sumWith(op, product(op, operand(op, 0), operand(op, 1), {}), operand(op, 2)));
}

} // namespace triton_metal::graph
