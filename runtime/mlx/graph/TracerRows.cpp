// Addresses that are an array and an affine form, and loads of rows whose places an array chooses.

#include "runtime/mlx/graph/Rows.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

/// The sum, where one part is an array and the other one changes along axes that the array does
/// not.
static std::optional<Value> sumOf(const Type &type, const Value &a, const Value &b) {
  Sum sum;
  sum.offset = Affine::of(0, a.rank());
  std::optional<mx::array> base;
  Extents ofBase(a.rank(), 1), extents = join(a.extents(), b.extents());
  bool isKnown = true;
  mx::Dtype dtype = type.dtype();
  for (const Value &value : {a, b}) {
    const Affine *affine = value.affine() ? value.affine()
                           : value.sum()  ? &value.sum()->offset
                                          : nullptr;
    if (affine) {
      std::optional<Affine> both = add(sum.offset, *affine);
      if (!both)
        return std::nullopt;
      sum.offset = *both;
    }
    if (value.affine())
      continue;
    const Value &part = value.sum() ? value.sum()->base : value;
    mx::array numbers = mx::astype(part.array(), dtype);
    base = base ? mx::add(*base, numbers) : numbers;
    ofBase = join(ofBase, part.extents());
    isKnown &= part.isKnown();
  }
  if (!base || sum.offset.isConstant())
    return std::nullopt;
  for (size_t axis = 0; axis < ofBase.size(); ++axis)
    if (ofBase[axis] > 1 && sum.offset.steps[axis] != 0)
      return std::nullopt;
  Type plain = type.isPointer() ? Type{"i64", type.shape} : type;
  sum.base = Value::of(plain, ofBase, *base, isKnown);
  return Value::of(type, extents, std::move(sum));
}

void Tracer::runAddPtr(const Operation &op) {
  size_t rank = std::max(operand(op, 0).rank(), operand(op, 1).rank());
  Value pointer = aligned(operand(op, 0), rank), offset = aligned(operand(op, 1), rank);
  Extents extents = join(pointer.extents(), offset.extents());
  if (pointer.affine() && offset.affine())
    if (std::optional<Affine> sum = add(*pointer.affine(), *offset.affine()))
      return setResult(op, Value::of(resultType(op), extents, *sum).withBuffer(pointer.buffer()));
  if (std::optional<Value> sum = sumOf(resultType(op), pointer, offset))
    return setResult(op, sum->withBuffer(pointer.buffer()));
  mx::array sum =
      mx::add(mx::astype(pointer.array(), mx::int64), mx::astype(offset.array(), mx::int64));
  setResult(op, Value::of(resultType(op), extents, sum, pointer.isKnown() && offset.isKnown())
                    .withBuffer(pointer.buffer()));
}

bool Tracer::runSum(const Operation &op, const Value &a, const Value &b) {
  // An address that wraps around is outside of every array; shorter numbers may mean to.
  if (resultType(op).width() < 32)
    return false;
  std::optional<Value> sum = sumOf(resultType(op), a, b);
  if (sum)
    setResult(op, *sum);
  return sum.has_value();
}

std::optional<Value> Tracer::loadRows(const Operation &op, const Value &pointer,
                                      const std::optional<Value> &mask, const Value *other,
                                      const mx::array &elements, const Type &type,
                                      const Extents &extents) {
  const Sum *sum = pointer.sum();
  size_t rank = extents.size();
  if (!sum || (other && !isUniform(other->extents())))
    return std::nullopt;
  // Axes along which only the offset changes are those of a row; all others choose rows.
  auto isOfRow = [&](size_t axis) { return sum->offset.steps[axis] != 0; };
  Extents ofRow = extents, ofRows = extents;
  for (size_t axis = 0; axis < rank; ++axis)
    (isOfRow(axis) ? ofRows : ofRow)[axis] = 1;
  // Each condition is one of both, too.
  std::vector<Affine> inRow, ofChoice;
  std::optional<Value> chooses;
  if (mask) {
    const std::vector<Affine> *conditions = mask->conditions();
    if (mask->sum()) {
      chooses = mask->sum()->base;
      conditions = &mask->sum()->conditions;
    } else if (!conditions) {
      chooses = *mask;
    }
    for (const Affine &condition : conditions ? *conditions : std::vector<Affine>()) {
      bool touchesRow = false, touchesChoice = false;
      for (size_t axis = 0; axis < rank; ++axis)
        if (condition.steps[axis] != 0)
          (isOfRow(axis) ? touchesRow : touchesChoice) = true;
      if (touchesRow && touchesChoice)
        return std::nullopt;
      (touchesRow ? inRow : ofChoice).push_back(condition);
    }
    if (chooses)
      for (size_t axis = 0; axis < rank; ++axis)
        if (isOfRow(axis) && chooses->extents()[axis] > 1)
          return std::nullopt;
  }
  if (!ofChoice.empty()) {
    Value conditions = Value::of({"i1", type.shape}, extents, std::move(ofChoice));
    chooses = chooses ? conjunction(*chooses, conditions) : conditions;
  }
  std::optional<Window> window = windowOf(sum->offset, inRow, ofRow);
  int64_t size = elements.shape(0);
  if (!window || window->isEmpty || window->groups.size() != 1 ||
      window->groups.front().stride != 1 || window->groups.front().length() > size)
    return std::nullopt;
  const Window::Group &row = window->groups.front();
  auto length = static_cast<int>(row.length());

  mx::array starts =
      mx::add(mx::astype(sum->base.array(), mx::int64), mx::array(window->origin, mx::int64));
  mx::array inside = mx::logical_and(mx::greater_equal(starts, mx::array(int64_t(0), mx::int64)),
                                     mx::less_equal(starts, mx::array(size - length, mx::int64)));
  if (pointer.isKnown() && (!mask || mask->isKnown())) {
    mx::array right = chooses ? mx::logical_or(inside, mx::logical_not(chooses->array())) : inside;
    checkLater(op, right, size);
  }
  if (chooses)
    inside = mx::logical_and(inside, chooses->array());
  starts = mx::where(inside, starts, mx::array(int64_t(0), mx::int64));
  ofRows = Extents(starts.shape().begin(), starts.shape().end());
  if (size < (int64_t(1) << 31) - 1)
    starts = mx::astype(starts, mx::int32);
  mx::array rows = rowsAt(elements, mx::reshape(starts, {-1}), length);
  mx::array filling =
      mx::astype(mask && other ? mx::reshape(other->array(), {}) : mx::array(0), type.dtype());
  rows = mx::astype(rows, type.dtype());
  if (row.length() != row.size)
    rows = surrounded(rows, 1, static_cast<int>(row.low), static_cast<int>(row.size - row.high),
                      filling);
  // The axes that choose rows, in their order, then those of a row.
  mx::Shape shape;
  std::vector<int> place(rank);
  for (size_t axis = 0; axis < rank; ++axis)
    if (!isOfRow(axis)) {
      place[axis] = static_cast<int>(shape.size());
      shape.push_back(ofRows[axis]);
    }
  for (size_t axis : row.axes) {
    place[axis] = static_cast<int>(shape.size());
    shape.push_back(extents[axis]);
  }
  mx::array tile = mx::transpose(mx::reshape(rows, shape), place);
  if (chooses)
    tile = mx::where(chooses->array(), tile, filling);
  Extents result(tile.shape().begin(), tile.shape().end());
  return Value::of(type, result, tile, false);
}

} // namespace triton_metal::graph
