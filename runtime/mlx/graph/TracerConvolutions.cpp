// Sums of products of shifted elements: which loads the factors are, where, and the convolution
// that their sum is.

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Convolution.h"
#include "runtime/mlx/graph/Digits.h"
#include "runtime/mlx/graph/Functions.h"
#include "runtime/mlx/graph/Reductions.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/ops.h"

#include <algorithm>
#include <unordered_set>

namespace triton_metal::graph {

namespace {

bool isReshaping(const Operation &op) {
  static const std::unordered_set<std::string> names = {"tt.splat", "tt.broadcast",
                                                        "tt.expand_dims", "tt.trans", "tt.reshape"};
  return names.contains(op.name);
}

bool isWidening(const Operation &op) {
  return op.name == "arith.extf" || op.name == "tt.fp_to_fp" || op.name == "arith.extsi" ||
         op.name == "arith.extui" || op.name == "arith.index_cast";
}

bool isQuotient(const Operation &op) { return op.name.starts_with("arith.div"); }
bool isRemainder(const Operation &op) { return op.name.starts_with("arith.rem"); }

/// The affine number with its axes elsewhere.
Affine moved(const Affine &affine, const std::vector<size_t> &axes, size_t rank) {
  Affine result = Affine::of(affine.constant, rank);
  for (size_t axis = 0; axis < affine.steps.size(); ++axis)
    result.steps[axes[axis]] = affine.steps[axis];
  return result;
}

/// The known number with its axes elsewhere.
Value moved(const Value &value, const std::vector<size_t> &axes, size_t rank) {
  Extents extents(rank, 1);
  for (size_t axis = 0; axis < value.rank(); ++axis)
    extents[axes[axis]] = value.extents()[axis];
  Type type{"i64", {}};
  if (const Affine *affine = value.affine())
    return Value::of(type, extents, moved(*affine, axes, rank));
  if (const Sum *sum = value.sum())
    return Value::of(type, extents,
                     Sum{moved(sum->base, axes, rank), moved(sum->offset, axes, rank), {}});
  std::vector<int> order(value.rank());
  for (size_t axis = 0; axis < order.size(); ++axis)
    order[axis] = static_cast<int>(axis);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return axes[static_cast<size_t>(a)] < axes[static_cast<size_t>(b)];
  });
  mx::array array = value.array();
  if (!std::is_sorted(order.begin(), order.end()))
    array = mx::transpose(array, order);
  if (array.shape() != shapeOf(extents))
    array = mx::reshape(array, shapeOf(extents));
  return Value::of(type, extents, array, value.isKnown());
}

/// What a mask demands: that one number is so much greater than another one, or than 0.
struct Demand {
  Value greater;
  std::optional<Value> less;
  int64_t distance = 0;
};

} // namespace

/// Reads what the places and the mask of a load are, seen from the product that takes it.
class FactorReader {
public:
  FactorReader(Tracer &tracer, std::vector<size_t> axes, size_t rank)
      : tracer(tracer), axes(std::move(axes)), rank(rank) {}

  /// Whether the value is a load behind operations that only reshape and widen.
  bool read(int number) {
    Path path;
    const Operation *op = tracer.program.producer(number);
    for (; op && op->name != "tt.load"; op = tracer.program.producer(op->operands[0])) {
      if (isReshaping(*op))
        path.push_back(op);
      else if (!isWidening(*op))
        return false;
    }
    auto found = op ? tracer.loaded.find(op->results.front()) : tracer.loaded.end();
    // Behind steps that run one by one, a value is that of all of them, and its load is the last
    // one's.
    if (found == tracer.loaded.end() || !found->second.fillsZeros ||
        !found->second.result.isSame(tracer.get(op->results.front())))
      return false;
    load = &found->second;
    if (!mx::issubdtype(load->elements.dtype(), mx::floating) ||
        load->elements.dtype() == mx::float64)
      return false;
    place = seen(load->pointer, path);
    if (!isKnown(place))
      return false;
    bool isMasked = op->attributes.at("operandSegmentSizes")[1].get<int>() != 0;
    if (isMasked && !readMask(op->operands[1], path))
      return false;
    extents = place.extents();
    for (const Demand &demand : demands) {
      extents = join(extents, demand.greater.extents());
      if (demand.less)
        extents = join(extents, demand.less->extents());
    }
    const Extents &ofValue = tracer.get(number).extents(), &ofLoops = tracer.outer.sizes();
    for (size_t axis = 0; axis < outerAxes; ++axis)
      if ((ofValue[axis] > 1 && extents[axis] == 1) || extents[axis] > ofLoops[axis])
        return false;
    findCounts(op->operands[0], path);
    if (isMasked)
      findCounts(op->operands[1], path);
    return true;
  }

  const LoadedElements *load = nullptr;
  Value place;
  /// All of them are met where the mask holds.
  std::vector<Demand> demands;
  std::vector<CountedAxes> counts;
  /// The sizes of the axes along which any of these changes.
  Extents extents;

private:
  /// Operations between a value and the product, the last one first.
  using Path = std::vector<const Operation *>;

  static bool isKnown(const Value &value) {
    return value.affine() || (value.sum() ? value.sum()->base.isKnown() : value.isKnown());
  }

  Value seen(Value value, const Path &path) {
    for (size_t i = path.size(); i-- > 0;)
      value = tracer.reshapedBy(*path[i], value);
    return moved(value, axes, rank);
  }

  Value seenNumber(int number, const Path &path) {
    auto [found, isNew] = numbers.try_emplace({number, path});
    if (isNew)
      found->second = seen(tracer.get(number), path);
    return found->second;
  }

  static Path with(Path path, const Operation &op) {
    path.push_back(&op);
    return path;
  }

  bool readMask(int number, const Path &path) {
    const Value &value = tracer.get(number);
    if (value.constant() == 1)
      return true;
    if (const std::vector<Affine> *all = value.conditions()) {
      for (const Affine &condition : *all)
        demands.push_back(
            {seen(Value::of({"i64", value.type().shape}, value.extents(), condition), path), {}});
      return true;
    }
    const Operation *op = tracer.program.producer(number);
    if (!op)
      return false;
    if (op->name == "arith.andi")
      return readMask(op->operands[0], path) && readMask(op->operands[1], path);
    if (isReshaping(*op))
      return readMask(op->operands[0], with(path, *op));
    return op->name == "arith.cmpi" && readComparison(*op, path);
  }

  bool readComparison(const Operation &op, const Path &path) {
    const Value &first = tracer.operand(op, 0), &second = tracer.operand(op, 1);
    if (first.buffer() >= 0 || second.buffer() >= 0 || !isKnown(first) || !isKnown(second))
      return false;
    Value a = seenNumber(op.operands[0], path), b = seenNumber(op.operands[1], path);
    auto atLeast = [&](const Value &greater, const Value &less, int64_t distance) {
      demands.push_back({greater, less, distance});
      return true;
    };
    // eq, ne, slt, sle, sgt, sge; others compare numbers without a sign.
    switch (op.integer("predicate")) {
    case 0:
      return atLeast(a, b, 0) && atLeast(b, a, 0);
    case 2:
      return atLeast(b, a, 1);
    case 3:
      return atLeast(b, a, 0);
    case 4:
      return atLeast(a, b, 1);
    case 5:
      return atLeast(a, b, 0);
    default:
      return false;
    }
  }

  /// The axes whose count a quotient or a remainder divides, and what it is divided by already.
  struct Root {
    std::vector<size_t> axes;
    int64_t divisor = 1;
  };

  std::optional<Root> rootOf(int number, const Path &path) {
    const Value &value = tracer.get(number);
    if (value.isValid() && value.affine()) {
      Value here = seen(value, path);
      const Affine &affine = *here.affine();
      Root root;
      for (size_t axis = 0; axis < rank; ++axis)
        if (affine.steps[axis] != 0)
          root.axes.push_back(axis);
      std::sort(root.axes.begin(), root.axes.end(),
                [&](size_t a, size_t b) { return affine.steps[a] > affine.steps[b]; });
      int64_t step = 1;
      for (size_t i = root.axes.size(); i-- > 0; step *= here.extents()[root.axes[i]])
        if (affine.steps[root.axes[i]] != step)
          return std::nullopt;
      return root.axes.empty() || affine.constant != 0 ? std::nullopt : std::optional(root);
    }
    const Operation *op = tracer.program.producer(number);
    if (!op)
      return std::nullopt;
    if (isReshaping(*op))
      return rootOf(op->operands[0], with(path, *op));
    if (isWidening(*op) || isRemainder(*op))
      return rootOf(op->operands[0], path);
    if (!isQuotient(*op))
      return std::nullopt;
    std::optional<int64_t> divisor = tracer.operand(*op, 1).constant();
    std::optional<Root> root = rootOf(op->operands[0], path);
    if (!root || !divisor || *divisor <= 0 || *divisor >= (int64_t(1) << 31) / root->divisor)
      return std::nullopt;
    root->divisor *= *divisor;
    return root;
  }

  /// Finds the quotients and remainders of which a number is made.
  void findCounts(int number, const Path &path) {
    const Operation *op = tracer.program.producer(number);
    if (!op || !visited.insert({number, path}).second)
      return;
    if (isReshaping(*op))
      return findCounts(op->operands[0], with(path, *op));
    if (!op->name.starts_with("arith.") && op->name != "tt.addptr")
      return;
    if ((isQuotient(*op) || isRemainder(*op)) && !tracer.get(op->results[0]).affine()) {
      std::optional<int64_t> divisor = tracer.operand(*op, 1).constant();
      std::optional<Root> root = rootOf(op->operands[0], path);
      if (root && divisor && *divisor > 0 && *divisor < (int64_t(1) << 31) / root->divisor) {
        auto same = std::find_if(counts.begin(), counts.end(), [&](const CountedAxes &count) {
          return count.axes == root->axes;
        });
        if (same == counts.end())
          same = counts.insert(counts.end(), CountedAxes{root->axes, {}});
        same->divisors.insert(root->divisor * *divisor);
      }
    }
    for (int operand : op->operands)
      findCounts(operand, path);
  }

  Tracer &tracer;
  std::vector<size_t> axes;
  size_t rank;
  std::set<std::pair<int, Path>> visited;
  std::map<std::pair<int, Path>, Value> numbers;
};

Value Tracer::reshapedBy(const Operation &op, const Value &value) {
  int from = op.operands.front(), to = op.results.front();
  Value before = get(from), after = get(to);
  set(from, value.withType({"i64", before.type().shape}));
  (this->*handlerOf(op.name))(op);
  Value result = get(to).withType({"i64", resultType(op).shape});
  set(from, std::move(before));
  set(to, std::move(after));
  return result;
}

namespace {

/// Both factors of a sum of products, over the same axes and digits of axes.
struct Problem {
  Digits digits;
  ProductSum sum;
};

/// Makes the form in which a convolution is searched for.
std::optional<Problem> problemOf(const std::array<FactorReader *, 2> &readers,
                                 const Extents &extents, const std::vector<bool> &isSummed) {
  std::vector<CountedAxes> counts = readers[0]->counts;
  for (const CountedAxes &count : readers[1]->counts) {
    auto same = std::find_if(counts.begin(), counts.end(),
                             [&](const CountedAxes &other) { return other.axes == count.axes; });
    if (same == counts.end())
      counts.push_back(count);
    else
      same->divisors.insert(count.divisors.begin(), count.divisors.end());
  }
  for (const CountedAxes &count : counts)
    for (size_t axis : count.axes)
      if (isSummed[axis] != isSummed[count.axes.front()])
        return std::nullopt;
  std::optional<Digits> digits = Digits::of(extents, counts);
  if (!digits)
    return std::nullopt;

  // How far conditions let each side count.
  std::array<std::vector<int64_t>, 2> limits;
  for (std::vector<int64_t> &ofSide : limits)
    for (const Digits::Group &group : digits->groups())
      ofSide.push_back(group.size);
  auto isBound = [&](size_t side, const Affine &condition) {
    auto bound = digits->boundOf(condition);
    if (bound)
      limits[side][bound->first] = std::min(limits[side][bound->first], bound->second);
    return bound.has_value();
  };
  // A sum ends where both factors do; a part of the result, where the convolved array does.
  auto isLimited = [&](size_t i) {
    const Digits::Group &group = digits->groups()[i];
    return limits[1][i] == (isSummed[group.axes.front()] ? limits[0][i] : group.size);
  };
  auto setLimits = [&] {
    for (size_t i = 0; i < digits->groups().size(); ++i)
      if (isLimited(i))
        digits->setLimit(i, limits[0][i]);
  };

  // Each number once.
  std::vector<Value> numbers;
  auto indexOf = [&](const Value &value) {
    auto found = std::find_if(numbers.begin(), numbers.end(),
                              [&](const Value &other) { return other.isSame(value); });
    auto index = static_cast<size_t>(found - numbers.begin());
    if (found == numbers.end())
      numbers.push_back(value);
    return index;
  };
  /// The number that is at least 0 where a demand is met.
  auto conditionOf = [](const Demand &demand, Affine greater, const Affine *less) {
    std::optional<Affine> sum = add(greater, Affine::of(-demand.distance, greater.steps.size()));
    std::optional<Affine> negative = less ? multiply(*less, -1) : std::nullopt;
    return sum && less ? (negative ? add(*sum, *negative) : negative) : sum;
  };

  // Bounds of counts come first: what is behind them follows no rule.
  std::array<std::vector<const Demand *>, 2> demands;
  for (size_t side = 0; side < 2; ++side) {
    indexOf(readers[side]->place);
    for (const Demand &demand : readers[side]->demands) {
      bool isAffine = demand.greater.affine() && (!demand.less || demand.less->affine());
      std::optional<Affine> condition;
      if (isAffine)
        condition = conditionOf(demand, *demand.greater.affine(),
                                demand.less ? demand.less->affine() : nullptr);
      if (condition)
        condition = digits->split(*condition);
      if (condition && isBound(side, *condition))
        continue;
      demands[side].push_back(&demand);
      indexOf(demand.greater);
      if (demand.less)
        indexOf(*demand.less);
    }
  }
  setLimits();
  std::optional<std::vector<Affine>> affine = digits->affineOf(numbers);
  if (!affine)
    return std::nullopt;

  Problem problem{*digits,
                  {{}, {readers[0]->load->elements, {}, {}}, {readers[1]->load->elements, {}, {}}}};
  for (size_t side = 0; side < 2; ++side) {
    ProductFactor &factor = side == 0 ? problem.sum.x : problem.sum.w;
    factor.place = (*affine)[indexOf(readers[side]->place)];
    for (const Demand *demand : demands[side]) {
      std::optional<Affine> condition =
          conditionOf(*demand, (*affine)[indexOf(demand->greater)],
                      demand->less ? &(*affine)[indexOf(*demand->less)] : nullptr);
      if (!condition)
        return std::nullopt;
      if (!isBound(side, *condition))
        factor.conditions.push_back(*condition);
    }
  }
  for (size_t i = 0; i < digits->groups().size(); ++i)
    if (!isLimited(i))
      return std::nullopt;
  setLimits();
  problem.digits = *digits;
  for (const Digits::Axis &axis : digits->axes()) {
    size_t first =
        axis.group < 0 ? axis.axis : digits->groups()[static_cast<size_t>(axis.group)].axes.front();
    problem.sum.axes.push_back({axis.size, isSummed[first], axis.group < 0, axis.complete});
  }
  return problem;
}

/// The convolution as a tile: its sides are axes of the tile, or digits of some.
std::optional<Box> boxOf(const Convolved &found, const Digits &digits) {
  mx::array result = found.result, outside = found.ofZeros;
  // Where each side begins in the order of the tile.
  std::vector<int> order;
  mx::Shape shape, outsideShape;
  std::vector<Window::Group> groups;
  size_t cuts = 0, cutsByImage = 0;
  auto add = [&](Window::Group group, bool cutsFilters, int ofZeros) {
    bool isCut = group.low != 0 || group.high != group.size;
    cuts += isCut, cutsByImage += isCut && !cutsFilters;
    shape.push_back(static_cast<int>(group.length()));
    outsideShape.push_back(ofZeros);
    groups.push_back(std::move(group));
  };
  std::set<int> done;
  for (size_t i = 0; i < found.sides.size(); ++i) {
    const Convolved::Side &side = found.sides[i];
    const Digits::Axis &first = digits.axes()[side.axes.front()];
    if (first.group < 0) {
      Window::Group group{{}, 1, side.size, side.low, side.high};
      for (size_t axis : side.axes)
        group.axes.push_back(digits.axes()[axis].axis);
      order.push_back(static_cast<int>(i));
      add(std::move(group), side.cutsFilters, outside.shape(static_cast<int>(i)));
      continue;
    }
    if (!done.insert(first.group).second)
      continue;
    const Digits::Group &counted = digits.groups()[static_cast<size_t>(first.group)];
    int ofZeros = 1;
    for (size_t digit : counted.digits) {
      auto own =
          std::find_if(found.sides.begin(), found.sides.end(), [&](const Convolved::Side &other) {
            return other.axes == std::vector{digit};
          });
      if (own == found.sides.end())
        continue;
      // Only the count itself may have a bound, and then it is the convolved array's.
      if (own->low != 0 || own->high != own->size ||
          (own->isOfFilters && counted.limit != counted.size))
        return std::nullopt;
      auto at = static_cast<int>(own - found.sides.begin());
      order.push_back(at);
      ofZeros *= outside.shape(at);
    }
    add({counted.axes, 1, counted.size, 0, counted.limit}, false, ofZeros);
  }
  result = mx::reshape(mx::transpose(result, order), shape);
  // The sum around the box is 0 times the filters, or 0 times 0.
  if (cutsByImage > 0 && (cutsByImage != cuts || (cuts > 1 && outside.size() > 1)))
    return std::nullopt;
  if (cutsByImage == 0)
    return Box{groups, result, mx::zeros(mx::Shape(groups.size(), 1), mx::float32), true};
  return Box{groups, result, mx::reshape(mx::transpose(outside, order), outsideShape), false};
}

} // namespace

std::optional<Value> Tracer::convolutionOf(const Operation &op, const ProductOfTiles &product) {
  if (active)
    return std::nullopt;
  FactorReader first(*this, product.axesOfFirst, product.rank),
      second(*this, product.axesOfSecond, product.rank);
  if (!first.read(product.first) || !second.read(product.second))
    return std::nullopt;
  Extents extents = join(first.extents, second.extents);
  std::vector<bool> isSummed(product.rank, false);
  for (auto [axis, size] : product.sums) {
    isSummed[axis] = true;
    extents[axis] = size;
  }
  ConvolutionForm form = convolves ? ConvolutionForm::General : ConvolutionForm::Slices;
  for (bool isTurned : {false, true}) {
    std::array<FactorReader *, 2> readers = {&first, &second};
    if (isTurned)
      std::swap(readers[0], readers[1]);
    std::optional<Problem> problem = problemOf(readers, extents, isSummed);
    if (!problem)
      continue;
    std::optional<Convolved> found = convolved(std::move(problem->sum), form);
    std::optional<Box> box = found ? boxOf(*found, problem->digits) : std::nullopt;
    if (!box)
      continue;
    Extents sizes(product.rank, 1);
    bool isCut = false;
    for (Window::Group &group : box->groups) {
      isCut |= group.length() != group.size;
      for (size_t &axis : group.axes) {
        sizes[axis] = extents[axis];
        if (product.removed && axis > *product.removed)
          --axis;
      }
    }
    if (product.removed)
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(*product.removed));
    summary.raised.emplace_back(op.place, found->description);
    for (const FactorReader *reader : {&first, &second})
      if (reader->load->isGathered) {
        --summary.gathered, ++summary.sliced;
        // All places that the convolution reads are inside.
        std::erase_if(
            checks, [&](const BoundsCheck &check) { return check.number == reader->load->check; });
      }
    Type type{"f32", product.shape};
    return isCut ? Value::of(type, sizes, std::move(*box), false)
                 : Value::of(type, sizes, toTile(*box, sizes), false);
  }
  return std::nullopt;
}

Value Tracer::addedTo(const Operation &op, const Value &initial, const Value &sum) const {
  size_t rank = std::max(initial.rank(), sum.rank());
  const Type &type = initial.type();
  return applied(type, {aligned(initial, rank), aligned(sum, rank)}, [&](const Arrays &arrays) {
    mx::array start = mx::astype(arrays[0], mx::float32);
    mx::array result =
        op.name == "arith.subf" ? mx::subtract(start, arrays[1]) : mx::add(start, arrays[1]);
    return mx::astype(result, type.dtype());
  });
}

std::optional<Value> Tracer::convolutionOfDot(const Operation &op, const SummedAxes &along) {
  const Type &type = resultType(op);
  if (!type.isFloat() || type.dtype() == mx::float64 || type.shape.size() != 2)
    return std::nullopt;
  // The tiles' rows, columns, and what is summed.
  constexpr size_t m = outerAxes, n = m + 1, k = n + 1;
  ProductOfTiles product{op.operands[0], op.operands[1], {}, {}, k + 1, {}, k, type.shape};
  for (size_t axis = 0; axis < outerAxes; ++axis) {
    product.axesOfFirst.push_back(axis);
    product.axesOfSecond.push_back(axis);
  }
  product.axesOfFirst.insert(product.axesOfFirst.end(), {m, k});
  product.axesOfSecond.insert(product.axesOfSecond.end(), {k, n});
  product.sums = along;
  product.sums.emplace_back(k, operand(op, 0).type().shape[1]);
  return convolutionOf(op, product);
}

std::optional<Value> Tracer::convolutionOfSum(const Operation &op, int number,
                                              const std::vector<int> &shape,
                                              const SummedAxes &along) {
  const Operation *source = program.producer(number);
  std::optional<size_t> removed;
  // The sum along a tile's axis, of which a loop makes one along its steps.
  if (source && source->name == "tt.reduce" && source->operands.size() == 1 &&
      combinerOf(*source) == "arith.addf") {
    removed = outerAxes + static_cast<size_t>(source->integer("axis"));
    source = program.producer(source->operands[0]);
  }
  if (!source || source->name != "arith.mulf" || resultType(*source).element != "f32")
    return std::nullopt;
  const std::vector<int> &ofTile = resultType(*source).shape;
  size_t rank = outerAxes + ofTile.size();
  ProductOfTiles product{
      source->operands[0], source->operands[1], {}, {}, rank, {}, removed, shape};
  for (size_t axis = 0; axis < rank; ++axis)
    product.axesOfFirst.push_back(axis);
  product.axesOfSecond = product.axesOfFirst;
  product.sums = along;
  if (removed)
    product.sums.emplace_back(*removed, ofTile[*removed - outerAxes]);
  return convolutionOf(op, product);
}

} // namespace triton_metal::graph
