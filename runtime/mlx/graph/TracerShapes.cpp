// Operations that make and reshape tiles.

#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace triton_metal::graph {

namespace {

/// The same with a change to the sizes and steps, for each form that a value may have.
template <typename Change, typename OfArray>
Value reformed(const Value &value, Type type, Change change, OfArray ofArray) {
  Extents extents = change(value.extents(), 1);
  auto affineOf = [&](const Affine &affine) {
    return Affine{affine.constant, change(affine.steps, int64_t(0))};
  };
  Value result;
  if (const Affine *affine = value.affine()) {
    result = Value::of(std::move(type), extents, affineOf(*affine));
  } else if (const std::vector<Affine> *conditions = value.conditions()) {
    std::vector<Affine> changed;
    for (const Affine &condition : *conditions)
      changed.push_back(affineOf(condition));
    result = Value::of(std::move(type), extents, std::move(changed));
  } else if (const Sum *sum = value.sum()) {
    Sum changed{reformed(sum->base, sum->base.type(), change, ofArray), affineOf(sum->offset), {}};
    for (const Affine &condition : sum->conditions)
      changed.conditions.push_back(affineOf(condition));
    result = Value::of(std::move(type), extents, std::move(changed));
  } else if (value.box()) {
    // Where each axis goes.
    std::vector<int64_t> axes(value.rank());
    std::iota(axes.begin(), axes.end(), 0);
    axes = change(axes, int64_t(-1));
    Box box = *value.box();
    for (Window::Group &group : box.groups)
      for (size_t &axis : group.axes)
        axis =
            static_cast<size_t>(std::find(axes.begin(), axes.end(), int64_t(axis)) - axes.begin());
    result = Value::of(std::move(type), extents, std::move(box), value.isKnown());
  } else {
    result = Value::of(std::move(type), extents, ofArray(value.array(), extents), value.isKnown());
  }
  return value.buffer() < 0 ? result : result.withBuffer(value.buffer());
}

} // namespace

void Tracer::runProgramId(const Operation &op) {
  auto axis = static_cast<size_t>(op.integer("axis"));
  Affine affine = Affine::of(0, outerAxes);
  for (const OuterAxes::Factor &factor : outer.factors(axis))
    affine.steps[factor.axis] = factor.step;
  setResult(op, Value::of(resultType(op), outer.ofGrid(), affine));
}

void Tracer::runNumPrograms(const Operation &op) {
  setResult(op,
            constantOf(resultType(op), outer.gridSize(static_cast<size_t>(op.integer("axis")))));
}

void Tracer::runMakeRange(const Operation &op) {
  const Type &type = resultType(op);
  Extents extents(outerAxes + 1, 1);
  extents.back() = type.shape.front();
  Affine affine = Affine::of(op.integer("start"), outerAxes + 1);
  affine.steps.back() = 1;
  setResult(op, Value::of(type, extents, affine));
}

void Tracer::runSplat(const Operation &op) {
  const Type &type = resultType(op);
  setResult(op, aligned(operand(op, 0), outerAxes + type.shape.size()).withType(type));
}

void Tracer::runUnsplat(const Operation &op) {
  auto cut = [](auto list, auto) {
    list.resize(outerAxes);
    return list;
  };
  setResult(op, reformed(operand(op, 0), resultType(op), cut,
                         [](const mx::array &array, const Extents &extents) {
                           return mx::reshape(array, shapeOf(extents));
                         }));
}

void Tracer::runBroadcast(const Operation &op) {
  // A size of 1 stands for any.
  setResult(op, operand(op, 0).withType(resultType(op)));
}

void Tracer::runExpandDims(const Operation &op) {
  auto axis = static_cast<std::ptrdiff_t>(outerAxes) + op.integer("axis");
  auto insert = [&](auto list, auto filling) {
    list.insert(list.begin() + axis, filling);
    return list;
  };
  setResult(op, reformed(operand(op, 0), resultType(op), insert,
                         [](const mx::array &array, const Extents &extents) {
                           return mx::reshape(array, shapeOf(extents));
                         }));
}

void Tracer::runReshape(const Operation &op) {
  const Value &value = operand(op, 0);
  const Type &type = resultType(op);
  bool isUniform = std::all_of(value.extents().begin() + outerAxes, value.extents().end(),
                               [](int size) { return size == 1; });
  if (isUniform) {
    size_t rank = outerAxes + type.shape.size();
    auto same = [&](auto list, auto filling) {
      list.resize(outerAxes);
      list.resize(rank, filling);
      return list;
    };
    return setResult(
        op, reformed(value, type, same, [](const mx::array &array, const Extents &extents) {
          return mx::reshape(array, shapeOf(extents));
        }));
  }
  // Dimensions of size 1 may come and go in any form.
  auto sizes = [](const std::vector<int> &shape) {
    std::vector<int> kept;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept),
                 [](int size) { return size != 1; });
    return kept;
  };
  if (sizes(value.type().shape) == sizes(type.shape)) {
    std::vector<size_t> from;
    for (size_t i = 0; i < value.type().shape.size(); ++i)
      if (value.type().shape[i] != 1)
        from.push_back(outerAxes + i);
    auto move = [&](auto list, auto filling) {
      auto moved = list;
      moved.resize(outerAxes);
      size_t next = 0;
      for (int size : type.shape)
        moved.push_back(size == 1 ? filling : list[from[next++]]);
      return moved;
    };
    return setResult(
        op, reformed(value, type, move, [](const mx::array &array, const Extents &extents) {
          return mx::reshape(array, shapeOf(extents));
        }));
  }
  Extents extents = fullExtents(type, value.extents());
  mx::array array =
      mx::reshape(whole(value, fullExtents(value.type(), value.extents())), shapeOf(extents));
  Value result = Value::of(type, extents, array, value.isKnown());
  setResult(op, value.buffer() < 0 ? result : result.withBuffer(value.buffer()));
}

void Tracer::runTrans(const Operation &op) {
  auto order = op.attributes.at("order").get<std::vector<size_t>>();
  auto permute = [&](auto list, auto) {
    auto permuted = list;
    for (size_t i = 0; i < order.size(); ++i)
      permuted[outerAxes + i] = list[outerAxes + order[i]];
    return permuted;
  };
  std::vector<int> axes(outerAxes);
  std::iota(axes.begin(), axes.end(), 0);
  for (size_t axis : order)
    axes.push_back(static_cast<int>(outerAxes + axis));
  setResult(op, reformed(operand(op, 0), resultType(op), permute,
                         [&](const mx::array &array, const Extents &) {
                           return mx::transpose(array, axes);
                         }));
}

void Tracer::runJoin(const Operation &op) {
  const Value &a = operand(op, 0), &b = operand(op, 1);
  if (a.buffer() != b.buffer())
    refuse(op, "pointers into two arrays are joined");
  Extents extents = join(a.extents(), b.extents());
  mx::array array = mx::stack({whole(a, extents), whole(b, extents)}, -1);
  extents.push_back(2);
  Value result = Value::of(resultType(op), extents, array, a.isKnown() && b.isKnown());
  setResult(op, a.buffer() < 0 ? result : result.withBuffer(a.buffer()));
}

void Tracer::runSplit(const Operation &op) {
  const Value &value = operand(op, 0);
  Extents extents = value.extents();
  extents.pop_back();
  for (int half = 0; half < 2; ++half) {
    int index = value.extents().back() == 1 ? 0 : half;
    mx::array array = mx::take(value.array(), index, -1);
    Value result = Value::of(op.types[static_cast<size_t>(half)], extents, array, value.isKnown());
    set(op.results[static_cast<size_t>(half)],
        value.buffer() < 0 ? result : result.withBuffer(value.buffer()));
  }
}

void Tracer::runCat(const Operation &op) {
  const Value &a = operand(op, 0), &b = operand(op, 1);
  if (a.buffer() != b.buffer())
    refuse(op, "pointers into two arrays are joined");
  Extents extents = join(a.extents(), b.extents());
  extents[outerAxes] = a.type().shape.front();
  mx::array array =
      mx::concatenate({whole(a, extents), whole(b, extents)}, static_cast<int>(outerAxes));
  extents[outerAxes] *= 2;
  Value result = Value::of(resultType(op), extents, array, a.isKnown() && b.isKnown());
  setResult(op, a.buffer() < 0 ? result : result.withBuffer(a.buffer()));
}

void Tracer::runGather(const Operation &op) {
  const Value &source = operand(op, 0), &indices = operand(op, 1);
  auto axis = outerAxes + static_cast<size_t>(op.integer("axis"));
  // Both have the same sizes elsewhere.
  Extents ofSource = fullExtents(source.type(), join(source.extents(), indices.extents()));
  Extents ofIndices = fullExtents(indices.type(), ofSource);
  int size = ofSource[axis];
  // Short indices have no sign: a byte may be 255.
  mx::array numbers = whole(indices, ofIndices);
  if (numbers.itemsize() == 1)
    numbers = mx::astype(mx::view(numbers, mx::uint8), mx::int32);
  else if (numbers.itemsize() == 2)
    numbers = mx::astype(mx::view(numbers, mx::uint16), mx::int32);
  mx::array places =
      mx::clip(numbers, mx::array(0, numbers.dtype()), mx::array(size - 1, numbers.dtype()));
  mx::array array = mx::take_along_axis(whole(source, ofSource), places, static_cast<int>(axis));
  setResult(op, Value::of(resultType(op), ofIndices, array, source.isKnown() && indices.isKnown()));
}

void Tracer::runHistogram(const Operation &op) {
  const Value &source = operand(op, 0);
  const Type &type = resultType(op);
  int bins = type.shape.front();
  Extents extents = fullExtents(source.type(), source.extents());
  bool isKnown = source.isKnown();
  std::optional<Value> mask;
  if (op.operands.size() > 1) {
    mask = operand(op, 1);
    extents = fullExtents(source.type(), join(extents, mask->extents()));
    isKnown &= mask->isKnown();
  }
  // What no bin has is counted behind the last one.
  mx::array numbers = mx::astype(asUnsigned(whole(source, extents)), mx::uint64);
  mx::array behind(static_cast<uint64_t>(bins), mx::uint64);
  mx::array isCounted = mx::less(numbers, behind);
  if (mask)
    isCounted = mx::logical_and(isCounted, mask->array());
  numbers = mx::astype(mx::where(isCounted, numbers, behind), mx::int64);
  int tile = extents[outerAxes], rows = static_cast<int>(numbers.size() / size_t(tile));
  int64_t size = int64_t(rows) * (bins + 1);
  if (size > std::numeric_limits<int>::max())
    refuse(op, "the histograms of all programs have more than 2147483647 elements");
  mx::array begins = mx::arange(0.0, double(size), double(bins + 1), mx::int64);
  mx::array places = mx::add(mx::reshape(numbers, {rows, tile}), mx::expand_dims(begins, -1));
  mx::array counts = mx::scatter_add(mx::zeros({static_cast<int>(size)}, mx::int32),
                                     mx::flatten(places), mx::ones({rows * tile, 1}, mx::int32), 0);
  counts = mx::slice(mx::reshape(counts, {rows, bins + 1}), {0, 0}, {rows, bins});
  extents[outerAxes] = bins;
  counts = mx::astype(mx::reshape(counts, shapeOf(extents)), type.dtype());
  setResult(op, Value::of(type, extents, counts, isKnown));
}

} // namespace triton_metal::graph
