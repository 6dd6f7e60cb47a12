// Loops whose steps are traced together: a step is an index along one more axis. What depends on
// the step before is a sum or a maximum along that axis, a product of longer tiles, or runs step by
// step on its own.

#include "runtime/mlx/graph/ActiveScope.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Reductions.h"
#include "runtime/mlx/graph/Steps.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>
#include <tuple>

namespace triton_metal::graph {

namespace {

/// Gives an axis back when the loop is done.
class AxisScope {
public:
  AxisScope(OuterAxes &outer, size_t axis) : outer(outer), axis(axis) {}
  ~AxisScope() { outer.giveAxis(axis); }
  AxisScope(const AxisScope &) = delete;

private:
  OuterAxes &outer;
  size_t axis;
};

/// Keeps the checks of a loop's steps apart from those before, until it goes.
class ChecksScope {
public:
  ChecksScope(std::vector<BoundsCheck> &checks, size_t &first)
      : checks(checks), first(first), before(first) {
    first = checks.size();
  }
  ~ChecksScope() { first = before; }
  ChecksScope(const ChecksScope &) = delete;

  void drop() { checks.erase(checks.begin() + static_cast<std::ptrdiff_t>(first), checks.end()); }

private:
  std::vector<BoundsCheck> &checks;
  size_t &first;
  size_t before;
};

/// Says which sum a loop goes on with, until it goes.
class NestedScope {
public:
  using Sums = std::map<const Operation *, std::pair<size_t, SummedAxes>>;
  NestedScope(Sums &sums, const Operation &loop, std::pair<size_t, SummedAxes> sum)
      : sums(sums), loop(loop) {
    sums.insert_or_assign(&loop, std::move(sum));
  }
  ~NestedScope() { sums.erase(&loop); }
  NestedScope(const NestedScope &) = delete;

private:
  Sums &sums;
  const Operation &loop;
};

/// "9", or "3 x 3" for loops in one another.
std::string countsOf(const SummedAxes &axes) {
  std::string text;
  for (auto [axis, size] : axes)
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

/// Makes the steps of a loop single ones, until it goes.
class SingleSteps {
public:
  SingleSteps(OuterAxes &outer, size_t axis, int size) : outer(outer), axis(axis), size(size) {
    outer.resizeAxis(axis, 1);
  }
  ~SingleSteps() { outer.resizeAxis(axis, size); }
  SingleSteps(const SingleSteps &) = delete;

private:
  OuterAxes &outer;
  size_t axis;
  int size;
};

} // namespace

bool Tracer::raiseFor(const Operation &op, const std::vector<int64_t> &trips,
                      const Extents &extents) {
  auto bufferOf = [&](int number) { return get(number).isValid() ? get(number).buffer() : -1; };
  auto isZero = [&](int number) { return zeros.contains(number); };
  LoopPlan plan = planLoop(program, op, bufferOf, isZero);
  int64_t most = *std::max_element(trips.begin(), trips.end());
  // A single step is what it is, but for sums that end in attention.
  bool isRescaled = std::any_of(plan.groups.begin(), plan.groups.end(), [](const LoopGroup &group) {
    return group.kind == LoopGroup::Rescaled;
  });
  auto around = nestedSums.find(&op);
  bool isNested = around != nestedSums.end();
  if (!plan.isRaised || (most < 2 && !isRescaled && !isNested))
    return false;
  std::optional<size_t> axis = outer.takeAxis(static_cast<int>(most));
  if (!axis) {
    summary.fellBack.emplace_back(op.place, "loops are nested too deeply");
    return false;
  }
  AxisScope scope(outer, *axis);
  RaisedLoop loop{op, *op.regions.front(), *axis, static_cast<int>(most), {}, {}, {}, {}, {}};
  if (isNested)
    std::tie(loop.nested, loop.around) = around->second;
  for (size_t i = 3; i < op.operands.size(); ++i)
    loop.initial.push_back(operand(op, i));
  loop.results.resize(loop.initial.size());
  if (!std::all_of(trips.begin(), trips.end(), [&](int64_t count) { return count == most; })) {
    loop.counts = mx::array(trips.begin(), mx::Shape(extents.begin(), extents.end()), mx::int64);
    loop.runs = stepsOf(loop, extents);
  }
  for (const LoopGroup &group : plan.groups)
    if (group.kind == LoopGroup::Product)
      loop.merged.insert(group.product);

  std::vector<Buffer> before = buffers;
  Summary summaryBefore = summary;
  ChecksScope checksOfSteps(checks, firstCheck);
  auto fallBack = [&](const std::string &reason) {
    checksOfSteps.drop();
    buffers = std::move(before);
    summary = std::move(summaryBefore);
    for (int number : op.results)
      rescaled.erase(number);
    summary.fellBack.emplace_back(op.place, reason);
    return false;
  };
  try {
    set(loop.body.arguments[0], variableOf(loop));
    for (const LoopGroup &group : plan.groups)
      runGroup(loop, group);
    makeChecks(firstCheck);
  } catch (const NotRaised &cause) {
    return fallBack(cause.reason);
  } catch (const Refusal &refusal) {
    // Step by step, the same may have a meaning.
    return fallBack(refusal.message);
  }
  for (size_t i = 0; i < op.results.size(); ++i)
    set(op.results[i], loop.results[i]);
  summary.raised.emplace_back(op.place, "a loop of " + std::to_string(most) + " steps");
  return true;
}

Value Tracer::variableOf(const RaisedLoop &loop) const {
  const Value &low = operand(loop.op, 0), &step = operand(loop.op, 2);
  Extents extents = join(low.extents(), step.extents());
  extents[loop.axis] = loop.size;
  if (low.affine() && step.constant()) {
    Affine all = *low.affine();
    all.steps[loop.axis] = *step.constant();
    if (fits(all.range(extents), low.type().width()))
      return Value::of(low.type(), extents, all);
  }
  mx::Shape shape(low.rank(), 1);
  shape[loop.axis] = loop.size;
  mx::array numbers = mx::reshape(mx::arange(0, loop.size, low.type().dtype()), shape);
  return Value::of(low.type(), extents, mx::add(low.array(), mx::multiply(numbers, step.array())),
                   low.isKnown() && step.isKnown());
}

std::optional<Value> Tracer::stepsOf(const RaisedLoop &loop, const Extents &extents) const {
  const Value &low = operand(loop.op, 0), &high = operand(loop.op, 1), &step = operand(loop.op, 2);
  Extents all = extents;
  all[loop.axis] = loop.size;
  if (low.affine() && high.affine() && step.constant() && !loop.op.has("unsignedCmp")) {
    // low + step * t < high
    std::optional<Affine> negative = multiply(*low.affine(), -1);
    std::optional<Affine> left = negative ? add(*high.affine(), *negative) : std::nullopt;
    std::optional<Affine> open = left ? add(*left, Affine::of(-1, left->steps.size())) : left;
    if (open) {
      open->steps[loop.axis] = -*step.constant();
      return Value::of({"i1", {}}, all, std::vector{*open});
    }
  }
  mx::Shape shape(outerAxes, 1);
  shape[loop.axis] = loop.size;
  mx::array numbers = mx::reshape(mx::arange(0, loop.size, mx::int64), shape);
  return Value::of({"i1", {}}, all, mx::less(numbers, *loop.counts), true);
}

void Tracer::runGroup(RaisedLoop &loop, const LoopGroup &group) {
  switch (group.kind) {
  case LoopGroup::Each:
    return runEach(loop, group.operations.front());
  case LoopGroup::Invariant: {
    size_t i = group.carried.front();
    set(loop.body.arguments[i + 1], loop.initial[i]);
    loop.results[i] = loop.initial[i];
    return;
  }
  case LoopGroup::Previous:
    return runPrevious(loop, group.carried.front());
  case LoopGroup::Reduction:
    return runReduction(loop, group);
  case LoopGroup::Product:
    return runProduct(loop, group);
  case LoopGroup::Rescaled:
    return runRescaled(loop, *group.rescaled);
  case LoopGroup::Nested:
    return runNested(loop, group);
  case LoopGroup::Steps:
    return runSteps(loop, group);
  }
}

void Tracer::checkSize(const Extents &extents) const {
  if (hasSteps(extents) && sizeOf(extents) > mostElements)
    throw NotRaised{"all steps together need too much memory"};
}

void Tracer::checkSize(const Operation &op) const {
  // Slices of arrays take no memory.
  if (op.name == "tt.load")
    return;
  for (int number : op.results)
    if (const Value &value = get(number); !value.affine() && !value.conditions())
      checkSize(value.extents());
}

void Tracer::runEach(RaisedLoop &loop, size_t operation) {
  if (loop.merged.contains(operation))
    return;
  ActiveScope scope(active, within(loop.runs));
  const Operation &op = loop.body.operations[operation];
  runOperation(op);
  checkSize(op);
}

std::optional<Value> Tracer::entered(const RaisedLoop &loop) {
  if (!loop.counts)
    return std::nullopt;
  Extents extents(loop.counts->shape().begin(), loop.counts->shape().end());
  return Value::of({"i1", {}}, extents, mx::greater(*loop.counts, mx::array(int64_t(0), mx::int64)),
                   true);
}

Value Tracer::lastOf(const RaisedLoop &loop, const Value &initial, const Value &later) const {
  if (!loop.counts)
    return stepOf(later, loop.axis, loop.size - 1);
  size_t rank = later.rank();
  Value taken = later;
  if (later.extents()[loop.axis] != 1) {
    Extents extents = join(later.extents(), aligned(*loop.runs, rank).extents());
    Extents single = extents;
    single[loop.axis] = 1;
    mx::Shape shape(loop.counts->shape());
    shape.resize(rank, 1);
    mx::array places = mx::maximum(
        mx::subtract(mx::reshape(*loop.counts, shape), mx::array(int64_t(1), mx::int64)),
        mx::array(int64_t(0), mx::int64));
    mx::array array = mx::take_along_axis(
        whole(later, extents), mx::broadcast_to(places, mx::Shape(single.begin(), single.end())),
        static_cast<int>(loop.axis));
    taken = Value::of(later.type(), single, array, later.isKnown());
    if (later.buffer() >= 0)
      taken = taken.withBuffer(later.buffer());
  }
  return choose(*entered(loop), taken, initial);
}

void Tracer::runPrevious(RaisedLoop &loop, size_t carried) {
  const Value &later = get(loop.body.operations.back().operands[carried]);
  const Value &initial = loop.initial[carried];
  set(loop.body.arguments[carried + 1], shifted(initial, later, loop.axis, loop.size));
  loop.results[carried] = lastOf(loop, initial, later);
}

Value Tracer::neutralOutside(const RaisedLoop &loop, const Value &value,
                             const std::string &combiner) {
  if (!loop.runs)
    return value;
  Value runs = aligned(*loop.runs, value.rank());
  Extents extents = join(value.extents(), runs.extents());
  mx::array kept = mx::where(runs.array(), value.array(), neutral(combiner, value.array()));
  return Value::of(value.type(), extents, kept, value.isKnown());
}

SummedAxes Tracer::axesOf(const RaisedLoop &loop, size_t carried) {
  SummedAxes axes;
  if (loop.nested == carried)
    axes = loop.around;
  axes.emplace_back(loop.axis, loop.size);
  return axes;
}

void Tracer::runNested(RaisedLoop &loop, const LoopGroup &group) {
  if (loop.counts)
    return runSteps(loop, group);
  size_t carried = group.carried.front();
  const Operation &inner = loop.body.operations[group.operations.front()];
  set(loop.body.arguments[carried + 1], loop.initial[carried]);
  NestedScope scope(nestedSums, inner, {group.inner, axesOf(loop, carried)});
  runOperation(inner);
  loop.results[carried] = get(inner.results[group.inner]);
}

void Tracer::runReduction(RaisedLoop &loop, const LoopGroup &group) {
  const Operation &op = loop.body.operations[group.operations.front()];
  size_t carried = group.carried.front();
  const Value &initial = loop.initial[carried];
  SummedAxes along = axesOf(loop, carried);
  if (!loop.counts && (op.name == "arith.addf" || op.name == "arith.subf"))
    if (std::optional<Value> sum =
            convolutionOfSum(op, group.operand, initial.type().shape, along)) {
      loop.results[carried] = addedTo(op, initial, *sum);
      ++summary.operations;
      return;
    }
  bool isDifference = op.name.starts_with("arith.sub");
  std::string combiner =
      isDifference ? (op.name == "arith.subf" ? "arith.addf" : "arith.addi") : op.name;
  size_t rank = std::max(initial.rank(), get(group.operand).rank());
  Value each = neutralOutside(loop, aligned(get(group.operand), rank), combiner);
  Extents extents = each.extents();
  for (auto [axis, size] : along)
    extents[axis] = size;
  std::optional<mx::array> all = whole(each, extents);
  for (auto [axis, size] : along) {
    all = reduced(combiner, *all, static_cast<int>(axis), /*keepsAxis=*/true);
    if (!all)
      throw NotRaised{"MLX has no reduction for " + op.name};
    extents[axis] = 1;
  }
  Value start = aligned(initial, rank);
  mx::array result = functions().at(op.name)({start.array(), *all});
  if (result.dtype() != initial.type().dtype())
    result = mx::astype(result, initial.type().dtype());
  loop.results[carried] = Value::of(initial.type(), join(start.extents(), extents), result,
                                    start.isKnown() && each.isKnown());
  ++summary.operations;
  summary.raised.emplace_back(op.place, combiner + " along " + countsOf(along) + " steps");
}

void Tracer::runProduct(RaisedLoop &loop, const LoopGroup &group) {
  const Operation &op = loop.body.operations[group.product];
  size_t carried = group.carried.front();
  SummedAxes along = axesOf(loop, carried);
  if (std::optional<Value> sum = loop.counts ? std::nullopt : convolutionOfDot(op, along)) {
    loop.results[carried] = addedTo(op, loop.initial[carried], *sum);
    ++summary.operations;
    return;
  }
  // In steps that a program does not take, both tiles are 0: infinity times 0 is not.
  Value a = neutralOutside(loop, operand(op, 0), "arith.addi");
  Value b = neutralOutside(loop, operand(op, 1), "arith.addi");
  loop.results[carried] = sumWith(op, product(op, a, b, along), loop.initial[carried]);
  ++summary.operations;
  summary.raised.emplace_back(op.place, "a product of tiles along " + countsOf(along) + " steps");
}

std::optional<Value> Tracer::independentProduct(const RaisedLoop &loop, const LoopGroup &group,
                                                size_t operation) {
  const Operation &op = loop.body.operations[operation];
  if (op.name != "tt.dot")
    return std::nullopt;
  auto isOwn = [&](int number) {
    for (size_t i : group.operations) {
      const std::vector<int> &results = loop.body.operations[i].results;
      if (std::find(results.begin(), results.end(), number) != results.end())
        return true;
    }
    return std::any_of(group.carried.begin(), group.carried.end(),
                       [&](size_t i) { return loop.body.arguments[i + 1] == number; });
  };
  if (isOwn(op.operands[0]) || isOwn(op.operands[1]))
    return std::nullopt;
  Value result = product(op, operand(op, 0), operand(op, 1), {});
  if (sizeOf(result.extents()) > mostElements)
    return std::nullopt;
  summary.raised.emplace_back(op.place, std::to_string(loop.size) + " products of tiles at once");
  return result;
}

void Tracer::runSteps(RaisedLoop &loop, const LoopGroup &group) {
  const Block &body = loop.body;
  const std::vector<int> &yielded = body.operations.back().operands;
  std::map<size_t, std::vector<Value>> products;
  for (size_t i : group.operations)
    if (std::optional<Value> all = independentProduct(loop, group, i))
      products.emplace(i, allSteps(*all, loop.axis, loop.size));

  // What comes from other groups, for one step at a time.
  std::map<int, Value> others;
  auto take = [&](int number) {
    const Value &value = get(number);
    if (value.isValid() && value.extents().size() > loop.axis && value.extents()[loop.axis] > 1)
      others.try_emplace(number, value);
  };
  for (size_t i : group.operations)
    forEachOperand(body.operations[i], take);
  for (size_t i : group.operations)
    forEachResult(body.operations[i], [&](int number) { others.erase(number); });
  for (size_t i : group.carried) {
    others.erase(body.arguments[i + 1]);
    loop.results[i] = loop.initial[i];
  }

  std::map<int, std::vector<Value>> single;
  for (const auto &[number, value] : others)
    single.emplace(number, allSteps(value, loop.axis, loop.size));

  SingleSteps scope(outer, loop.axis, loop.size);
  std::vector<std::vector<Value>> kept(group.outputs.size());
  for (int step = 0; step < loop.size; ++step) {
    auto at = static_cast<size_t>(step);
    for (const auto &[number, values] : single)
      set(number, values[at]);
    for (size_t i : group.carried)
      set(body.arguments[i + 1], loop.results[i]);
    std::optional<Value> runs =
        loop.runs ? std::optional(stepOf(*loop.runs, loop.axis, step)) : std::nullopt;
    {
      ActiveScope running(active, within(runs));
      for (size_t i : group.operations) {
        const Operation &op = body.operations[i];
        if (auto found = products.find(i); found != products.end())
          setResult(op, sumWith(op, found->second[at], operand(op, 2)));
        else
          runOperation(op);
      }
    }
    for (size_t i = 0; i < group.outputs.size(); ++i)
      kept[i].push_back(get(group.outputs[i]));
    std::vector<Value> fresh;
    for (size_t i : group.carried)
      fresh.push_back(get(yielded[i]));
    for (size_t j = 0; j < group.carried.size(); ++j) {
      size_t i = group.carried[j];
      // Addresses that nothing takes behind the loop stay simple, also where a program has left it.
      bool isFree = fresh[j].affine() && !program.isUsed(loop.op.results[i]);
      loop.results[i] = runs && !isFree ? choose(*runs, fresh[j], loop.results[i]) : fresh[j];
    }
  }
  for (const auto &[number, value] : others)
    set(number, value);
  for (size_t i = 0; i < group.outputs.size(); ++i)
    set(group.outputs[i], stacked(kept[i], loop.axis));
}

} // namespace triton_metal::graph
