// Sums that a loop scales to its running maximum, as in an online softmax. All steps take the last
// maximum instead of that of their own, so they do not depend on one another.

#include "runtime/mlx/graph/ActiveScope.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Reductions.h"
#include "runtime/mlx/graph/Steps.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>
#include <limits>

namespace triton_metal::graph {

void Tracer::runRescaled(RaisedLoop &loop, const RescaledSums &sums) {
  const Block &body = loop.body;
  const Operation &maximum = body.operations[sums.maximum];
  const Value &initial = loop.initial[sums.carried];
  const Function &higher = functions().at(maximum.name);
  Type type = initial.type();

  // The maximum of all steps.
  size_t rank = std::max(initial.rank(), get(sums.each).rank());
  Value each = neutralOutside(loop, aligned(get(sums.each), rank), maximum.name);
  Extents extents = each.extents();
  extents[loop.axis] = loop.size;
  mx::array steps = whole(each, extents);
  auto axis = static_cast<int>(loop.axis);
  mx::array start = aligned(initial, rank).array();
  mx::array first = higher(
      {start, stepOf(Value::of(type, extents, steps, each.isKnown()), loop.axis, 0).array()});
  mx::array last = higher({start, *reduced(maximum.name, steps, axis, /*keepsAxis=*/true)});
  extents[loop.axis] = 1;
  extents = join(extents, aligned(initial, rank).extents());
  bool isKnown = initial.isKnown() && each.isKnown();
  loop.results[sums.carried] = Value::of(type, extents, last, isKnown);

  // Where there is no number yet after the first step, its exponentials are NaN, and the sums stay
  // so.
  mx::array none = mx::astype(mx::array(-std::numeric_limits<float>::infinity()), last.dtype());
  mx::array taken = mx::where(mx::equal(first, none), none, last);
  // Programs that take no step need numbers, too: NaN times 0 would be in their gradients.
  if (std::optional<Value> isEntered = entered(loop)) {
    Value condition = aligned(*isEntered, extents.size());
    taken = mx::where(condition.array(), taken, mx::array(0.0f, taken.dtype()));
    extents = join(extents, condition.extents());
  }
  set(maximum.results[0], Value::of(type, extents, taken, isKnown));
  // The sums of the steps before are scaled once, from the first maximum to the last.
  for (size_t i : sums.allCarried)
    set(body.arguments[i + 1], loop.initial[i]);

  ActiveScope scope(active, within(loop.runs));
  for (size_t i : sums.operations) {
    const Operation &op = body.operations[i];
    auto sum = std::find_if(sums.sums.begin(), sums.sums.end(),
                            [&](const RescaledSums::Sum &found) { return found.operation == i; });
    bool isMerged = std::any_of(sums.sums.begin(), sums.sums.end(), [&](const auto &found) {
      return found.product == i && found.operation != i;
    });
    if (i == sums.maximum || isMerged)
      continue;
    if (sum != sums.sums.end()) {
      addUp(loop, *sum);
      continue;
    }
    // Steps that a program does not take add nothing, nor to a gradient.
    if (std::binary_search(sums.exponentials.begin(), sums.exponentials.end(), i))
      set(op.operands[0], neutralOutside(loop, operand(op, 0), "arith.maximumf"));
    runOperation(op);
    checkSize(op);
  }
  auto found = std::make_shared<RescaledLoop>(
      RescaledLoop{&loop.op, sums, loop.axis, loop.size, loop.counts});
  for (size_t i : sums.allCarried)
    rescaled[loop.op.results[i]] = found;
  summary.raised.emplace_back(maximum.place, "sums that a maximum scales, along " +
                                                 std::to_string(loop.size) + " steps");
}

void Tracer::addUp(RaisedLoop &loop, const RescaledSums::Sum &sum) {
  const Value &faded = get(sum.faded), &initial = loop.initial[sum.carried];
  Value result;
  if (sum.product) {
    const Operation &tiles = loop.body.operations[*sum.product];
    // In steps that a program does not take, both tiles are 0: infinity times 0 is not.
    Value a = neutralOutside(loop, operand(tiles, 0), "arith.addi");
    Value b = neutralOutside(loop, operand(tiles, 1), "arith.addi");
    result = sumWith(tiles, product(tiles, a, b, {{loop.axis, loop.size}}), faded);
  } else {
    Value part = neutralOutside(loop, get(sum.part), "arith.addf");
    size_t rank = std::max(part.rank(), faded.rank());
    Extents extents = join(aligned(part, rank).extents(), aligned(faded, rank).extents());
    extents[loop.axis] = loop.size;
    mx::array all = *reduced("arith.addf", whole(aligned(part, rank), extents),
                             static_cast<int>(loop.axis), /*keepsAxis=*/true);
    extents[loop.axis] = 1;
    result = Value::of(initial.type(), extents, mx::add(aligned(faded, rank).array(), all),
                       faded.isKnown() && part.isKnown());
  }
  if (std::optional<Value> isEntered = entered(loop))
    result = choose(*isEntered, result, initial);
  ++summary.operations;
  loop.results[sum.carried] = result;
}

} // namespace triton_metal::graph
