// Reductions and scans: those that MLX has, and any other function in steps of doubling distance.

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Reductions.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

std::vector<Value> Tracer::combine(const Operation &op, const std::vector<Value> &a,
                                   const std::vector<Value> &b) {
  const Block &block = *op.regions.front();
  for (size_t i = 0; i < a.size(); ++i) {
    set(block.arguments[i], a[i]);
    set(block.arguments[i + a.size()], b[i]);
  }
  int before = summary.operations;
  std::vector<Value> results = runBlock(block);
  summary.operations = before;
  return results;
}

std::pair<Extents, bool> Tracer::sizesAlong(const Operation &op, size_t axis) const {
  Extents extents = operand(op, 0).extents();
  bool isKnown = true;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    extents = join(extents, operand(op, i).extents());
    isKnown &= operand(op, i).isKnown();
  }
  extents[axis] = operand(op, 0).type().shape[axis - outerAxes];
  return {extents, isKnown};
}

void Tracer::runReduce(const Operation &op) {
  size_t axis = outerAxes + static_cast<size_t>(op.integer("axis"));
  size_t count = op.operands.size();
  auto [extents, isKnown] = sizesAlong(op, axis);
  int size = extents[axis];
  Extents without = extents;
  without.erase(without.begin() + static_cast<std::ptrdiff_t>(axis));
  auto give = [&](size_t i, const mx::array &array) {
    set(op.results[i], Value::of(op.types[i], without, array, isKnown));
  };
  // The sum along a loop's steps may be a convolution, too: that is tried first.
  if (count == 1 && outer.sizes() == outer.ofGrid())
    if (std::optional<Value> sum = convolutionOfSum(op, op.results[0], resultType(op).shape, {}))
      return setResult(op, sum->withType(resultType(op)));
  if (count == 1 && operand(op, 0).box())
    if (std::optional<Value> result = reducedBox(operand(op, 0), combinerOf(op), axis))
      return setResult(op, result->withType(resultType(op)));
  if (count == 1) {
    mx::array source = whole(operand(op, 0), extents);
    if (auto result = reduced(combinerOf(op), source, static_cast<int>(axis)))
      return give(0, *result);
  }
  std::vector<mx::array> rest;
  for (size_t i = 0; i < count; ++i)
    rest.push_back(whole(operand(op, i), extents));
  // Neighbours first: the order of the elements is kept.
  for (; size > 1; size /= 2) {
    std::vector<Value> even, odd;
    extents[axis] = size / 2;
    for (size_t i = 0; i < count; ++i) {
      Type type = operand(op, i).type();
      even.push_back(Value::of(type, extents, part(rest[i], axis, 0, size, 2), isKnown));
      odd.push_back(Value::of(type, extents, part(rest[i], axis, 1, size, 2), isKnown));
    }
    std::vector<Value> both = combine(op, even, odd);
    for (size_t i = 0; i < count; ++i)
      rest[i] = whole(aligned(both[i], extents.size()), extents);
  }
  for (size_t i = 0; i < count; ++i)
    give(i, mx::reshape(rest[i], mx::Shape(without.begin(), without.end())));
}

void Tracer::runScan(const Operation &op) {
  size_t axis = outerAxes + static_cast<size_t>(op.integer("axis"));
  bool isReverse = op.integer("reverse") != 0;
  size_t count = op.operands.size();
  auto [extents, isKnown] = sizesAlong(op, axis);
  int size = extents[axis];
  std::string combiner = combinerOf(op);
  // MLX's scans on the CPU divide by the step along the axis, which is 0 where it was broadcast to
  // one element.
  if (count == 1 && size > 1 &&
      (combiner == "arith.addf" || combiner == "arith.addi" || combiner == "arith.mulf" ||
       combiner == "arith.muli") &&
      !operand(op, 0).type().isBool()) {
    mx::array source = whole(operand(op, 0), extents);
    bool isSum = combiner.starts_with("arith.add");
    mx::array result = isSum ? mx::cumsum(wide(source), static_cast<int>(axis), isReverse, true)
                             : mx::cumprod(wide(source), static_cast<int>(axis), isReverse, true);
    return setResult(
        op, Value::of(resultType(op), extents, mx::astype(result, source.dtype()), isKnown));
  }
  // Each element with the one that is 1, 2, 4, ... places before it.
  std::vector<mx::array> sums;
  for (size_t i = 0; i < count; ++i)
    sums.push_back(whole(operand(op, i), extents));
  for (int distance = 1; distance < size; distance *= 2) {
    std::vector<Value> earlier, later;
    Extents shorter = extents;
    shorter[axis] = size - distance;
    for (size_t i = 0; i < count; ++i) {
      Type type = operand(op, i).type();
      mx::array first = part(sums[i], axis, 0, size - distance);
      mx::array last = part(sums[i], axis, distance, size);
      earlier.push_back(Value::of(type, shorter, isReverse ? last : first, isKnown));
      later.push_back(Value::of(type, shorter, isReverse ? first : last, isKnown));
    }
    std::vector<Value> both = combine(op, earlier, later);
    for (size_t i = 0; i < count; ++i) {
      mx::array changed = whole(aligned(both[i], extents.size()), shorter);
      mx::array kept =
          isReverse ? part(sums[i], axis, size - distance, size) : part(sums[i], axis, 0, distance);
      std::vector<mx::array> parts = {kept, changed};
      if (isReverse)
        std::swap(parts[0], parts[1]);
      sums[i] = mx::concatenate(parts, static_cast<int>(axis));
    }
  }
  for (size_t i = 0; i < count; ++i)
    set(op.results[i], Value::of(op.types[i], extents, sums[i], isKnown));
}

} // namespace triton_metal::graph
