// Loops and branches. Where programs differ, all of them run every branch, and each keeps what its
// own gave.

#include "runtime/mlx/graph/ActiveScope.h"
#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Steps.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

namespace {

/// A graph is made of each step of a loop. More of them than this are refused.
constexpr int64_t mostSteps = 1 << 16;

} // namespace

Value Tracer::conjunction(const Value &first, const Value &second) const {
  size_t rank = std::max(first.rank(), second.rank());
  Value a = aligned(first, rank), b = aligned(second, rank);
  Extents extents = join(a.extents(), b.extents());
  const Type &type = first.rank() >= second.rank() ? first.type() : second.type();
  if (a.conditions() && b.conditions()) {
    std::vector<Affine> both = *a.conditions();
    both.insert(both.end(), b.conditions()->begin(), b.conditions()->end());
    return Value::of(type, extents, std::move(both));
  }
  // An array and conditions stay apart, so that a load can tell rows from columns.
  if ((a.sum() || b.sum() || a.conditions() || b.conditions()) && !a.constant() && !b.constant()) {
    Sum both;
    both.offset = Affine::of(0, rank);
    for (const Value &value : {a, b}) {
      if (const std::vector<Affine> *conditions = value.conditions()) {
        both.conditions.insert(both.conditions.end(), conditions->begin(), conditions->end());
        continue;
      }
      const Value &base = value.sum() ? value.sum()->base : value;
      if (value.sum())
        both.conditions.insert(both.conditions.end(), value.sum()->conditions.begin(),
                               value.sum()->conditions.end());
      both.base = both.base.isValid() ? Value::of(type, join(both.base.extents(), base.extents()),
                                                  mx::logical_and(both.base.array(), base.array()),
                                                  both.base.isKnown() && base.isKnown())
                                      : base;
    }
    return Value::of(type, extents, std::move(both));
  }
  if (a.constant())
    return *a.constant() ? b.withType(type) : a.withType(type);
  if (b.constant())
    return *b.constant() ? a.withType(type) : b.withType(type);
  return Value::of(type, extents, mx::logical_and(a.array(), b.array()),
                   a.isKnown() && b.isKnown());
}

Value Tracer::negation(const Value &value) const {
  if (std::optional<int64_t> constant = value.constant())
    return Value::of(value.type(), value.extents(),
                     *constant ? std::vector{Affine::of(-1, value.rank())} : std::vector<Affine>());
  if (const std::vector<Affine> *conditions = value.conditions())
    if (conditions->size() == 1)
      if (std::optional<Affine> negative = multiply(conditions->front(), -1))
        if (std::optional<Affine> below = add(*negative, Affine::of(-1, value.rank())))
          return Value::of(value.type(), value.extents(), std::vector{*below});
  return Value::of(value.type(), value.extents(), mx::logical_not(value.array()), value.isKnown());
}

std::optional<bool> Tracer::uniform(const Value &condition) const {
  if (std::optional<int64_t> constant = condition.constant())
    return *constant != 0;
  if (!condition.isKnown())
    return std::nullopt;
  std::vector<int64_t> truths = evaluate(condition, condition.extents(), {}, "");
  if (std::all_of(truths.begin(), truths.end(), [&](int64_t truth) { return truth == truths[0]; }))
    return truths[0] != 0;
  return std::nullopt;
}

std::optional<Value> Tracer::activeMask(const Value *mask, size_t rank) const {
  std::optional<Value> both;
  if (active)
    both = aligned(*active, rank);
  if (mask)
    both = both ? conjunction(*both, *mask) : *mask;
  if (both && both->constant() == 1)
    return std::nullopt;
  return both;
}

Value Tracer::choose(const Value &condition, const Value &first, const Value &second) const {
  if (std::optional<int64_t> constant = condition.constant())
    return *constant ? first : second;
  size_t rank = std::max({condition.rank(), first.rank(), second.rank()});
  Value a = aligned(first, rank), b = aligned(second, rank), c = aligned(condition, rank);
  if (a.affine() && b.affine() && *a.affine() == *b.affine() && a.extents() == b.extents() &&
      a.buffer() == b.buffer())
    return first;
  // A pointer without an array is one that no program uses where it is chosen, as behind a break.
  if (a.buffer() != b.buffer() && std::min(a.buffer(), b.buffer()) < 0)
    return a.buffer() < 0 ? second : first;
  if (a.buffer() != b.buffer())
    throw Refusal({}, "a pointer is chosen between two arrays");
  if (std::optional<Value> inside = chosen(c, a, b); inside && a.buffer() < 0)
    return *inside;
  Value result = applied(first.type(), {c, a, b}, [](const std::vector<mx::array> &arrays) {
    return mx::where(arrays[0], arrays[1], arrays[2]);
  });
  return a.buffer() < 0 ? result : result.withBuffer(a.buffer());
}

void Tracer::chooseAll(const Value &condition, std::vector<Value> &fresh,
                       const std::vector<Value> &old) const {
  for (size_t i = 0; i < fresh.size(); ++i)
    fresh[i] = choose(condition, fresh[i], old[i]);
}

void Tracer::runIf(const Operation &op) {
  const Value &condition = operand(op, 0);
  auto runRegion = [&](size_t index) {
    const std::optional<Block> &block = op.regions[index];
    return block ? runBlock(*block) : std::vector<Value>();
  };
  std::vector<Value> results;
  if (std::optional<bool> known = uniform(condition)) {
    results = runRegion(*known ? 0 : 1);
  } else {
    auto under = [&](const Value &own, size_t index) {
      ActiveScope scope(active, within(own));
      return runRegion(index);
    };
    results = under(condition, 0);
    std::vector<Value> otherwise = under(negation(condition), 1);
    try {
      chooseAll(condition, results, otherwise);
    } catch (const Refusal &refusal) {
      refuse(op, refusal.message);
    }
  }
  for (size_t i = 0; i < op.results.size(); ++i)
    set(op.results[i], results[i]);
}

Value Tracer::following(const Value &position, const Value &step) {
  Extents extents = join(position.extents(), step.extents());
  if (position.affine() && step.affine())
    if (std::optional<Affine> next = add(*position.affine(), *step.affine());
        next && fits(next->range(extents), position.type().width()))
      return Value::of(position.type(), extents, *next);
  return Value::of(position.type(), extents, mx::add(position.array(), step.array()),
                   position.isKnown() && step.isKnown());
}

std::optional<Value> Tracer::within(const std::optional<Value> &condition) const {
  if (!condition || !active)
    return condition ? condition : active;
  return conjunction(*active, *condition);
}

void Tracer::runFor(const Operation &op) {
  for (int number : op.results)
    rescaled.erase(number);
  const Block &body = *op.regions.front();
  const Value low = operand(op, 0), high = operand(op, 1), step = operand(op, 2);
  bool isUnsigned = op.has("unsignedCmp");
  std::vector<Value> carried;
  for (size_t i = 3; i < op.operands.size(); ++i)
    carried.push_back(operand(op, i));

  // Bounds of each program.
  Extents extents = join(low.extents(), join(high.extents(), step.extents()));
  bool isConstant = low.constant() && high.constant() && step.constant();
  std::vector<int64_t> lows, highs, steps;
  if (isConstant) {
    lows = {*low.constant()}, highs = {*high.constant()}, steps = {*step.constant()};
  } else {
    lows = evaluate(low, extents, op.place, "the first step of a loop");
    highs = evaluate(high, extents, op.place, "the end of a loop");
    steps = evaluate(step, extents, op.place, "the step of a loop");
  }
  std::vector<int64_t> trips;
  int width = low.type().width();
  for (size_t i = 0; i < lows.size(); ++i) {
    auto unsignedOf = [&](int64_t number) {
      uint64_t bits = static_cast<uint64_t>(number);
      return width == 64 ? __int128(bits) : __int128(bits & ((uint64_t(1) << width) - 1));
    };
    __int128 from = isUnsigned ? unsignedOf(lows[i]) : __int128(lows[i]);
    __int128 to = isUnsigned ? unsignedOf(highs[i]) : __int128(highs[i]);
    if (steps[i] <= 0 && to > from)
      refuse(op, "a loop has the step " + std::to_string(steps[i]) + "; it must be at least 1");
    __int128 count = to > from ? (to - from + steps[i] - 1) / steps[i] : 0;
    trips.push_back(static_cast<int64_t>(std::min<__int128>(count, mostSteps + 1)));
  }
  int64_t most = trips.empty() ? 0 : *std::max_element(trips.begin(), trips.end());
  bool isUniform = std::all_of(trips.begin(), trips.end(),
                               [&](int64_t count) { return count == trips.front(); });
  if (most > mostSteps)
    refuse(op, "a loop has more than " + std::to_string(mostSteps) +
                   " steps; a graph would hold each of them");

  if (most >= 1 && raiseFor(op, trips, extents))
    return;
  if (nestedSums.contains(&op))
    throw NotRaised{"a loop in it runs step by step"};

  std::optional<mx::array> counts;
  if (!isUniform)
    counts = mx::array(trips.begin(), mx::Shape(extents.begin(), extents.end()), mx::int64);
  Value position = low;
  for (int64_t trip = 0; trip < most; ++trip) {
    if (trip > 0)
      position = following(position, step);
    set(body.arguments[0], position);
    for (size_t i = 0; i < carried.size(); ++i)
      set(body.arguments[i + 1], carried[i]);
    if (isUniform) {
      carried = runBlock(body);
      continue;
    }
    Value runs =
        Value::of({"i1", {}}, extents, mx::less(mx::array(trip, mx::int64), *counts), true);
    std::vector<Value> fresh;
    {
      ActiveScope scope(active, within(runs));
      fresh = runBlock(body);
    }
    chooseAll(runs, fresh, carried);
    carried = std::move(fresh);
  }
  for (size_t i = 0; i < op.results.size(); ++i)
    set(op.results[i], carried[i]);
}

void Tracer::runWhile(const Operation &op) {
  const Block &before = *op.regions[0], &after = *op.regions[1];
  std::vector<Value> carried;
  for (size_t i = 0; i < op.operands.size(); ++i)
    carried.push_back(operand(op, i));
  // Programs that have not left the loop; all of those around it at first.
  std::optional<Value> running;
  std::vector<Value> results;
  for (int64_t trip = 0;; ++trip) {
    if (trip > mostSteps)
      refuse(op, "a loop has more than " + std::to_string(mostSteps) +
                     " steps; a graph would hold each of them");
    std::vector<Value> given;
    {
      ActiveScope scope(active, within(running));
      for (size_t i = 0; i < carried.size(); ++i)
        set(before.arguments[i], carried[i]);
      given = runBlock(before);
    }
    Value condition = given.front();
    given.erase(given.begin());
    // What a program left the loop with is not changed by the steps of others.
    if (running)
      chooseAll(*running, given, results);
    results = given;
    Value next = running ? conjunction(*running, condition) : condition;
    Value judged = active ? conjunction(*active, next) : next;
    std::vector<int64_t> truths =
        judged.constant() ? std::vector<int64_t>{*judged.constant()}
                          : evaluate(judged, judged.extents(), op.place, "the condition of a loop");
    if (std::none_of(truths.begin(), truths.end(), [](int64_t truth) { return truth != 0; }))
      break;
    bool isAll =
        std::all_of(truths.begin(), truths.end(), [](int64_t truth) { return truth != 0; });
    running = isAll && !running && !active ? std::nullopt : std::optional(next);
    ActiveScope scope(active, within(running));
    for (size_t i = 0; i < given.size(); ++i)
      set(after.arguments[i], given[i]);
    carried = runBlock(after);
  }
  for (size_t i = 0; i < op.results.size(); ++i)
    set(op.results[i], results[i]);
}

} // namespace triton_metal::graph
