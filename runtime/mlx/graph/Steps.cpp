#include "runtime/mlx/graph/Steps.h"

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Functions.h"

#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

namespace {

Value withBufferOf(Value value, const Value &other) {
  return other.buffer() < 0 ? value : value.withBuffer(other.buffer());
}

Affine at(Affine affine, size_t axis, int index) {
  affine.constant += affine.steps[axis] * index;
  affine.steps[axis] = 0;
  return affine;
}

void checkBuffers(const Value &a, const Value &b) {
  if (a.buffer() != b.buffer())
    throw NotRaised{"a pointer points into several arrays"};
}

mx::array broadcast(const mx::array &array, const Extents &extents) {
  mx::Shape shape(extents.begin(), extents.end());
  return array.shape() == shape ? array : mx::broadcast_to(array, shape);
}

/// One affine form for all; nothing where their differences are not the same.
std::optional<Affine> progression(const std::vector<Value> &values, size_t axis) {
  const Affine *first = values.front().affine();
  if (!first)
    return std::nullopt;
  Affine all = *first;
  for (size_t i = 1; i < values.size(); ++i) {
    const Affine *next = values[i].affine();
    if (!next || next->steps != first->steps)
      return std::nullopt;
    int64_t step;
    if (__builtin_sub_overflow(next->constant, values[i - 1].affine()->constant, &step))
      return std::nullopt;
    if (i == 1)
      all.steps[axis] = step;
    else if (all.steps[axis] != step)
      return std::nullopt;
  }
  return all;
}

} // namespace

int64_t sizeOf(const Extents &extents) {
  int64_t size = 1;
  for (int extent : extents)
    size *= extent;
  return size;
}

Value stepOf(const Value &value, size_t axis, int index) {
  Extents extents = value.extents();
  if (extents[axis] == 1)
    return value;
  extents[axis] = 1;
  Value result;
  if (const Affine *affine = value.affine()) {
    result = Value::of(value.type(), extents, at(*affine, axis, index));
  } else if (const std::vector<Affine> *conditions = value.conditions()) {
    std::vector<Affine> single;
    for (const Affine &condition : *conditions)
      single.push_back(at(condition, axis, index));
    result = Value::of(value.type(), extents, std::move(single));
  } else if (const Sum *sum = value.sum()) {
    Sum single{stepOf(sum->base, axis, index), at(sum->offset, axis, index), {}};
    for (const Affine &condition : sum->conditions)
      single.conditions.push_back(at(condition, axis, index));
    result = Value::of(value.type(), extents, std::move(single));
  } else if (std::optional<Box> box =
                 value.box() ? boxAt(*value.box(), axis, index) : std::nullopt) {
    result = Value::of(value.type(), extents, std::move(*box), value.isKnown());
  } else {
    result = Value::of(value.type(), extents, part(value.array(), axis, index, index + 1),
                       value.isKnown());
  }
  return withBufferOf(result, value);
}

std::vector<Value> allSteps(const Value &value, size_t axis, int size) {
  std::vector<Value> steps;
  bool isArray = value.extents()[axis] > 1 && !value.affine() && !value.conditions() &&
                 !value.sum() && !value.box();
  if (!isArray) {
    for (int index = 0; index < size; ++index)
      steps.push_back(stepOf(value, axis, index));
    return steps;
  }
  Extents extents = value.extents();
  extents[axis] = 1;
  for (const mx::array &part : mx::split(value.array(), size, static_cast<int>(axis)))
    steps.push_back(withBufferOf(Value::of(value.type(), extents, part, value.isKnown()), value));
  return steps;
}

Value stacked(const std::vector<Value> &values, size_t axis) {
  Extents extents = values.front().extents();
  bool isKnown = true;
  for (const Value &value : values) {
    extents = join(extents, value.extents());
    isKnown &= value.isKnown();
    checkBuffers(value, values.front());
  }
  const Value &first = values.front();
  auto size = static_cast<int>(values.size());
  if (std::optional<Affine> all = progression(values, axis)) {
    extents[axis] = size;
    return withBufferOf(Value::of(first.type(), extents, *all), first);
  }
  std::vector<mx::array> parts;
  for (const Value &value : values)
    parts.push_back(broadcast(value.array(), extents));
  extents[axis] = size;
  return withBufferOf(
      Value::of(first.type(), extents, mx::concatenate(parts, static_cast<int>(axis)), isKnown),
      first);
}

Value shifted(const Value &first, const Value &later, size_t axis, int size) {
  checkBuffers(first, later);
  if (first.affine() && later.affine()) {
    Affine before = *later.affine();
    before.constant -= before.steps[axis];
    if (before.steps[axis] != 0 && at(before, axis, 0) == *first.affine()) {
      Extents extents = join(first.extents(), later.extents());
      return withBufferOf(Value::of(first.type(), extents, before), first);
    }
    if (before.steps[axis] == 0 && *later.affine() == *first.affine())
      return first;
  }
  Extents extents = join(first.extents(), later.extents());
  extents[axis] = size - 1;
  Extents single = extents;
  single[axis] = 1;
  mx::array rest =
      later.extents()[axis] == 1 ? later.array() : part(later.array(), axis, 0, size - 1);
  mx::array all = mx::concatenate({broadcast(first.array(), single), broadcast(rest, extents)},
                                  static_cast<int>(axis));
  extents[axis] = size;
  return withBufferOf(Value::of(first.type(), extents, all, first.isKnown() && later.isKnown()),
                      first);
}

} // namespace triton_metal::graph
