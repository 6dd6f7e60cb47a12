// Assertions and prints.

#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"
#include "mlx/transforms.h"

#include <optional>

namespace triton_metal::graph {

/// The first program, by z, y and x, and its first element, where a value is false.
static std::pair<std::array<int, 3>, std::vector<int>> firstFalse(const mx::array &holds,
                                                                  const OuterAxes &outer) {
  mx::array values = mx::contiguous(holds);
  mx::eval(values);
  const bool *data = values.data<bool>();
  // The dimensions of the grid from behind, and the element.
  std::optional<std::pair<std::array<int64_t, 3>, std::vector<int>>> first;
  std::vector<int> place(values.ndim());
  for (size_t i = 0; i < values.size(); ++i) {
    if (data[i])
      continue;
    size_t rest = i;
    for (size_t axis = values.ndim(); axis-- > 0;) {
      auto size = static_cast<size_t>(values.shape(static_cast<int>(axis)));
      place[axis] = static_cast<int>(rest % size);
      rest /= size;
    }
    std::array<int64_t, 3> program = {};
    for (size_t dimension = 0; dimension < 3; ++dimension)
      for (const OuterAxes::Factor &factor : outer.factors(dimension))
        program[2 - dimension] += place[factor.axis] * factor.step;
    std::pair found(program, std::vector<int>(place.begin() + outerAxes, place.end()));
    if (!first || found < *first)
      first = std::move(found);
  }
  auto number = [&](size_t i) { return static_cast<int>(first->first[i]); };
  return {{number(2), number(1), number(0)}, first->second};
}

void Tracer::runAssert(const Operation &op) {
  const Value &condition = operand(op, 0);
  std::optional<Value> mask = activeMask(nullptr, condition.rank());
  Value holds = condition;
  if (!holds.type().isBool())
    holds = Value::of({"i1", holds.type().shape}, holds.extents(),
                      mx::not_equal(holds.array(), mx::array(0, holds.type().dtype())),
                      holds.isKnown());
  if (holds.constant() == 1)
    return;
  if (mask)
    holds = Value::of(holds.type(), join(holds.extents(), mask->extents()),
                      mx::logical_or(holds.array(), mx::logical_not(mask->array())),
                      holds.isKnown() && mask->isKnown());
  mx::array all = mx::all(holds.array());
  if (!holds.isKnown() && all.is_tracer()) {
    ++summary.unchecked;
    return;
  }
  readsElements |= !holds.isKnown();
  if (all.item<bool>())
    return;
  auto [where, index] = firstFalse(holds.array(), outer);
  throw FailedAssertion(op.place, op.attributes.at("message").get<std::string>(), where, index);
}

void Tracer::runPrint(const Operation &op) {
  refuse(op, "device_print has no meaning in a graph, whose programs run all at once");
}

} // namespace triton_metal::graph
