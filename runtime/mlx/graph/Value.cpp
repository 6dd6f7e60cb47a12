#include "runtime/mlx/graph/Value.h"
#include "runtime/mlx/graph/Padding.h"

#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

Value Value::of(Type type, Extents extents, mx::array array, bool isKnown) {
  Value value;
  value.state = std::make_shared<State>();
  value.state->type = std::move(type);
  value.state->extents = std::move(extents);
  value.state->array = std::move(array);
  value.state->isKnown = isKnown;
  return value;
}

Value Value::of(Type type, Extents extents, Affine affine) {
  // What nothing steps along has size 1.
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] == 1)
      affine.steps[axis] = 0;
    else if (affine.steps[axis] == 0)
      extents[axis] = 1;
  }
  Value value;
  value.state = std::make_shared<State>();
  value.state->type = std::move(type);
  value.state->extents = std::move(extents);
  value.state->affine = std::move(affine);
  value.state->isKnown = true;
  return value;
}

Value Value::of(Type type, Extents extents, std::vector<Affine> conditions) {
  size_t rank = extents.size();
  std::vector<Affine> open;
  bool isFalse = false;
  Extents needed(rank, 1);
  for (Affine &condition : conditions) {
    auto [low, high] = condition.range(extents);
    isFalse |= high < 0;
    if (low >= 0 || std::find(open.begin(), open.end(), condition) != open.end())
      continue;
    for (size_t axis = 0; axis < rank; ++axis)
      if (condition.steps[axis] != 0)
        needed[axis] = extents[axis];
    open.push_back(std::move(condition));
  }
  if (isFalse) {
    open = {Affine::of(-1, rank)};
    needed = Extents(rank, 1);
  }
  Value value;
  value.state = std::make_shared<State>();
  value.state->type = std::move(type);
  value.state->extents = std::move(needed);
  value.state->conditions = std::move(open);
  value.state->isKnown = true;
  return value;
}

Value Value::of(Type type, Extents extents, Box box, bool isKnown) {
  Value value;
  value.state = std::make_shared<State>();
  value.state->type = std::move(type);
  value.state->extents = std::move(extents);
  value.state->isKnown = isKnown;
  value.state->box = std::move(box);
  return value;
}

Value Value::of(Type type, Extents extents, Sum sum) {
  Value value;
  value.state = std::make_shared<State>();
  value.state->type = std::move(type);
  value.state->extents = std::move(extents);
  value.state->isKnown = sum.base.isKnown();
  value.state->sum = std::make_shared<const Sum>(std::move(sum));
  return value;
}

/// The box and what is around it as one array, with one axis for each group.
static mx::array filled(const Box &box) {
  std::vector<std::pair<int, int>> widths;
  bool isAnyCut = false;
  for (const Window::Group &group : box.groups) {
    widths.emplace_back(group.low, group.size - group.high);
    isAnyCut |= group.length() != group.size;
  }
  if (!isAnyCut)
    return box.inside;
  // MLX's pad has no gradient for what it pads with.
  if (box.outside.size() == 1 && box.isOutsideKnown)
    return padded(box.inside, widths, box.outside);
  mx::array whole = box.inside;
  for (size_t i = 0; i < widths.size(); ++i)
    whole = surrounded(whole, i, widths[i].first, widths[i].second, box.outside);
  return whole;
}

mx::array surrounded(const mx::array &array, size_t axis, int low, int high,
                     const mx::array &outside) {
  std::vector<mx::array> parts = {array};
  auto outsideOf = [&](int length) {
    mx::Shape shape = array.shape();
    shape[axis] = length;
    return mx::broadcast_to(outside, shape);
  };
  if (low > 0)
    parts.insert(parts.begin(), outsideOf(low));
  if (high > 0)
    parts.push_back(outsideOf(high));
  return parts.size() == 1 ? array : mx::concatenate(parts, static_cast<int>(axis));
}

mx::array toTile(const Box &box, const Extents &extents) {
  // From coordinates to axes, and to their order in a tile.
  std::vector<int> order, permutation;
  mx::Shape split;
  for (const Window::Group &group : box.groups)
    for (size_t axis : group.axes) {
      permutation.push_back(static_cast<int>(order.size()));
      order.push_back(static_cast<int>(axis));
      split.push_back(extents[axis]);
    }
  mx::array array = mx::reshape(filled(box), split);
  std::sort(permutation.begin(), permutation.end(), [&](int a, int b) {
    return order[static_cast<size_t>(a)] < order[static_cast<size_t>(b)];
  });
  if (!std::is_sorted(permutation.begin(), permutation.end()))
    array = mx::transpose(array, permutation);
  return mx::reshape(array, mx::Shape(extents.begin(), extents.end()));
}

std::optional<int64_t> Value::constant() const {
  if (state->affine && state->affine->isConstant())
    return state->affine->constant;
  if (!state->conditions)
    return std::nullopt;
  if (state->conditions->empty())
    return 1;
  if (state->conditions->size() == 1 && state->conditions->front().isConstant())
    return 0;
  return std::nullopt;
}

const mx::array &Value::array() const {
  if (state->array)
    return *state->array;
  if (state->affine) {
    state->array = toArray(*state->affine, state->extents, state->type.dtype());
    return *state->array;
  }
  if (const Sum *sum = state->sum.get()) {
    mx::array base = mx::astype(sum->base.array(), state->type.dtype());
    state->array =
        state->type.isBool()
            ? mx::logical_and(base, Value::of(state->type, state->extents, sum->conditions).array())
            : mx::add(base, toArray(sum->offset, state->extents, state->type.dtype()));
    return *state->array;
  }
  if (state->box) {
    state->array = toTile(*state->box, state->extents);
    return *state->array;
  }
  std::optional<mx::array> all;
  for (const Affine &condition : *state->conditions) {
    mx::array holds = mx::greater_equal(toArray(condition, state->extents, mx::int64),
                                        mx::array(int64_t(0), mx::int64));
    all = all ? mx::logical_and(*all, holds) : holds;
  }
  state->array = all ? *all : mx::reshape(mx::array(true), mx::Shape(state->extents.size(), 1));
  return *state->array;
}

Value Value::withType(Type type) const {
  Value value;
  value.state = std::make_shared<State>(*state);
  value.state->type = std::move(type);
  return value;
}

Value Value::withBuffer(int buffer) const {
  Value value;
  value.state = std::make_shared<State>(*state);
  value.state->buffer = buffer;
  return value;
}

Extents join(const Extents &a, const Extents &b) {
  Extents both = a;
  for (size_t axis = 0; axis < both.size(); ++axis)
    both[axis] = std::max(both[axis], b[axis]);
  return both;
}

bool isUniform(const Extents &extents) {
  return std::all_of(extents.begin(), extents.end(), [](int size) { return size == 1; });
}

mx::Shape shapeOf(const Extents &extents) { return {extents.begin(), extents.end()}; }

Value aligned(const Value &value, size_t rank) {
  if (value.rank() == rank)
    return value;
  Extents extents = value.extents();
  extents.resize(rank, 1);
  Value result;
  if (const Affine *affine = value.affine()) {
    Affine longer = *affine;
    longer.steps.resize(rank, 0);
    result = Value::of(value.type(), extents, std::move(longer));
  } else if (const std::vector<Affine> *conditions = value.conditions()) {
    std::vector<Affine> longer = *conditions;
    for (Affine &condition : longer)
      condition.steps.resize(rank, 0);
    result = Value::of(value.type(), extents, std::move(longer));
  } else if (const Box *box = value.box()) {
    result = Value::of(value.type(), extents, *box, value.isKnown());
  } else if (const Sum *sum = value.sum()) {
    Sum longer = *sum;
    longer.base = aligned(longer.base, rank);
    longer.offset.steps.resize(rank, 0);
    for (Affine &condition : longer.conditions)
      condition.steps.resize(rank, 0);
    result = Value::of(value.type(), extents, std::move(longer));
  } else {
    mx::Shape shape(extents.begin(), extents.end());
    result = Value::of(value.type(), extents, mx::reshape(value.array(), shape), value.isKnown());
  }
  return value.buffer() < 0 ? result : result.withBuffer(value.buffer());
}

bool fits(std::pair<int64_t, int64_t> range, int width) {
  if (width >= 64)
    return true;
  int64_t limit = int64_t(1) << (width - 1);
  return range.first >= -limit && range.second < limit;
}

} // namespace triton_metal::graph
