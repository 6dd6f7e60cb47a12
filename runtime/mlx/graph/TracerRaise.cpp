// Groups of operations that MLX has one function for.

#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <limits>

namespace triton_metal::graph {

namespace {

/// The one operation of a function that combines two elements.
bool combinesBy(const Operation &reduce, std::initializer_list<const char *> names) {
  const Block &block = *reduce.regions.front();
  if (reduce.operands.size() != 1 || block.operations.size() != 2 || block.arguments.size() != 2)
    return false;
  const Operation &inner = block.operations.front();
  bool areBoth = inner.operands.size() == 2 && inner.operands[0] != inner.operands[1];
  for (int number : inner.operands)
    areBoth &= number == block.arguments[0] || number == block.arguments[1];
  return areBoth && block.operations.back().operands == inner.results &&
         std::any_of(names.begin(), names.end(),
                     [&](const char *name) { return inner.name == name; });
}

} // namespace

std::optional<Value> Tracer::softmaxOf(const Operation &op, const Value &plain) {
  const Operation *exponential = producer(op.operands[0]);
  if (!exponential || exponential->name != "math.exp")
    return std::nullopt;
  const Operation *difference = producer(exponential->operands[0]);
  if (!difference || difference->name != "arith.subf")
    return std::nullopt;
  const Type &type = resultType(op);
  int64_t last = static_cast<int64_t>(type.shape.size()) - 1;

  /// The reduction of `source` along the last axis that a tile repeats.
  auto isReduction = [&](int number, int source, std::initializer_list<const char *> names) {
    const Operation *made = producer(number);
    bool isSpread = last == 0;
    while (made && (made->name == "tt.broadcast" || made->name == "tt.splat" ||
                    (made->name == "tt.expand_dims" && made->integer("axis") == last))) {
      isSpread |= made->name == "tt.expand_dims";
      made = producer(made->operands[0]);
    }
    return made && isSpread && made->name == "tt.reduce" && made->operands[0] == source &&
           made->integer("axis") == last && combinesBy(*made, names);
  };
  int source = difference->operands[0];
  if (last < 0 || get(source).type().shape != type.shape ||
      !isReduction(op.operands[1], op.operands[0], {"arith.addf"}) ||
      !isReduction(difference->operands[1], source, {"arith.maxnumf", "arith.maximumf"}))
    return std::nullopt;

  const Value &x = get(source);
  size_t axis = outerAxes + static_cast<size_t>(last);
  auto note = [&] { summary.raised.emplace_back(op.place, "softmax"); };
  if (const Box *box = x.box()) {
    // Outside of the box, nothing may be added to the sum.
    const Box *around = plain.box();
    if (!around || around->groups.size() != box->groups.size() ||
        box->groups.back().axes != std::vector<size_t>{axis} || !box->isOutsideKnown ||
        box->outside.size() != 1 ||
        mx::astype(box->outside, mx::float32).item<float>() !=
            -std::numeric_limits<float>::infinity())
      return std::nullopt;
    note();
    return Value::of(type, plain.extents(),
                     Box{around->groups, mx::softmax(box->inside, -1, true), around->outside,
                         around->isOutsideKnown},
                     false);
  }
  if (x.extents()[axis] != type.shape.back())
    return std::nullopt;
  note();
  return Value::of(type, x.extents(), mx::softmax(x.array(), -1, true), x.isKnown());
}

} // namespace triton_metal::graph
