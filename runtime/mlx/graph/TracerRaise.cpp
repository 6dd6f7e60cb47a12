// Groups of operations that MLX has one function for.

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Producers.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <limits>

namespace triton_metal::graph {

std::optional<Value> Tracer::sigmoidOf(const Operation &op) {
  const Type &type = resultType(op);
  if (type.dtype() != mx::float32)
    return std::nullopt;
  auto isNumber = [&](int number, float wanted) {
    std::optional<ScalarKey> key = scalarOf(program, number);
    std::optional<float> found = key ? numberOf(*key, type) : std::nullopt;
    return found && *found == wanted;
  };
  const Operation *sum = program.producer(op.operands[1]);
  if (!isNumber(op.operands[0], 1) || !sum || sum->name != "arith.addf")
    return std::nullopt;
  for (size_t one : {0, 1}) {
    const Operation *exponential = program.producer(sum->operands[1 - one]);
    if (!isNumber(sum->operands[one], 1) || !exponential || exponential->name != "math.exp")
      continue;
    const Operation *minus = program.producer(exponential->operands[0]);
    bool isNegative = minus && (minus->name == "arith.negf" ||
                                (minus->name == "arith.subf" && isNumber(minus->operands[0], 0)));
    if (!isNegative)
      continue;
    return applied(type, {get(minus->operands.back())},
                   [](const Arrays &arrays) { return mx::sigmoid(arrays[0]); });
  }
  return std::nullopt;
}

std::optional<Value> Tracer::softmaxOf(const Operation &op, const Value &plain) {
  const Operation *exponential = program.producer(op.operands[0]);
  if (!exponential || exponential->name != "math.exp")
    return std::nullopt;
  const Operation *difference = program.producer(exponential->operands[0]);
  if (!difference || difference->name != "arith.subf")
    return std::nullopt;
  const Type &type = resultType(op);
  int64_t last = static_cast<int64_t>(type.shape.size()) - 1;

  Producers producers(program, last);
  int source = difference->operands[0];
  if (last < 0 || get(source).type().shape != type.shape ||
      producers.reduced(op.operands[1], {"arith.addf"}) != op.operands[0] ||
      producers.reduced(difference->operands[1], {"arith.maxnumf", "arith.maximumf"}) != source)
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
