#include "runtime/mlx/graph/Attention.h"

#include "runtime/mlx/graph/Reductions.h"

#include <algorithm>
#include <limits>

namespace triton_metal::graph {

namespace {

constexpr int64_t bitsOfOne = 0x3f800000, bitsOfLeast = -8388608;

/// Numbers that the scores go through on their way to an exponential or a maximum.
struct Scores {
  const Operation *product = nullptr;
  std::vector<ScalarKey> scales;
  std::vector<int> visible;
};

class Search {
public:
  Search(const Program &program, const std::map<int, std::shared_ptr<RescaledLoop>> &loops,
         const std::set<int> &zeros)
      : program(program), loops(loops), zeros(zeros) {}

  std::optional<Attention> run(const Operation &op) const {
    bool isProduct = op.name == "arith.mulf";
    if (!isProduct && op.name != "arith.divf" && op.name != "tt.precise_divf")
      return std::nullopt;
    for (size_t i = 0; i < (isProduct ? 2u : 1u); ++i) {
      std::optional<int> total =
          isProduct ? reciprocal(op.operands[1 - i]) : rowOf(op.operands[1 - i]);
      if (!total)
        continue;
      if (std::optional<Attention> found = quotient(op.operands[i], *total))
        return found;
    }
    return std::nullopt;
  }

private:
  const Operation *made(int number, std::string_view name) const {
    const Operation *op = program.producer(number);
    return op && op->name == name ? op : nullptr;
  }

  /// The number for each row that a tile of two axes repeats along each.
  std::optional<int> rowOf(int number) const {
    const Operation *op = program.producer(number);
    if (op && op->name == "tt.broadcast")
      op = program.producer(op->operands[0]);
    if (!op || op->name != "tt.expand_dims" || op->integer("axis") != 1 ||
        op->types.front().shape.size() != 2)
      return std::nullopt;
    return op->operands[0];
  }

  /// The number for each row of which a tile has the reciprocal.
  std::optional<int> reciprocal(int number) const {
    auto inverted = [&](int from) -> std::optional<int> {
      const Operation *op = program.producer(from);
      if (!op || (op->name != "arith.divf" && op->name != "tt.precise_divf"))
        return std::nullopt;
      std::optional<ScalarKey> one = scalarOf(program, op->operands[0]);
      return one && one->bits == bitsOfOne ? std::optional(op->operands[1]) : std::nullopt;
    };
    if (std::optional<int> row = rowOf(number))
      return inverted(*row);
    const Operation *op = made(number, "tt.broadcast");
    std::optional<int> column = inverted(op ? op->operands[0] : number);
    return column ? rowOf(*column) : std::nullopt;
  }

  /// Without conversions between floats.
  int unconverted(int number) const {
    const Operation *op = program.producer(number);
    while (op &&
           (op->name == "arith.truncf" || op->name == "arith.extf" || op->name == "tt.fp_to_fp")) {
      number = op->operands[0];
      op = program.producer(number);
    }
    return number;
  }

  /// What a reduction along the rows of a tile takes.
  std::optional<int> reducedFrom(int number, std::initializer_list<std::string_view> names) const {
    const Operation *op = made(number, "tt.reduce");
    if (!op || op->operands.size() != 1 || op->integer("axis") != 1 ||
        std::find(names.begin(), names.end(), combinerOf(*op)) == names.end())
      return std::nullopt;
    return op->operands[0];
  }

  /// The scalar that multiplies a value, and the value.
  std::optional<std::pair<ScalarKey, int>> scaledFrom(int number) const {
    const Operation *op = made(number, "arith.mulf");
    for (size_t i = 0; op && i < 2; ++i)
      if (std::optional<ScalarKey> scale = scalarOf(program, op->operands[1 - i]))
        return std::pair(*scale, op->operands[i]);
    return std::nullopt;
  }

  /// Follows a value back to a product of tiles.
  std::optional<Scores> scoresOf(int number) const {
    Scores found;
    for (;;) {
      const Operation *op = program.producer(number);
      if (!op)
        return std::nullopt;
      if (auto scaled = scaledFrom(number)) {
        found.scales.push_back(scaled->first);
        number = scaled->second;
      } else if (op->name == "arith.select") {
        std::optional<ScalarKey> otherwise = scalarOf(program, op->operands[2]);
        if (!otherwise || otherwise->bits != bitsOfLeast)
          return std::nullopt;
        found.visible.push_back(op->operands[0]);
        number = op->operands[1];
      } else if (op->name == "tt.dot" && zeros.contains(op->operands[2]) &&
                 op->types.front().element == "f32" && op->types.front().shape.size() == 2) {
        found.product = op;
        return found;
      } else {
        return std::nullopt;
      }
    }
  }

  /// The scores of exp(scores - the maximum of each row), and the number of that maximum.
  std::optional<std::pair<Scores, int>> weightsOf(const Operation &exponential) const {
    std::vector<ScalarKey> after;
    int number = exponential.operands[0];
    while (auto scaled = scaledFrom(number)) {
      after.push_back(scaled->first);
      number = scaled->second;
    }
    const Operation *difference = made(number, "arith.subf");
    if (!difference)
      return std::nullopt;
    std::optional<Scores> scores = scoresOf(difference->operands[0]);
    if (!scores)
      return std::nullopt;
    scores->scales.insert(scores->scales.end(), after.begin(), after.end());
    return std::pair(std::move(*scores), difference->operands[1]);
  }

  std::optional<Attention> quotient(int sum, int total) const {
    auto ofSum = loops.find(sum), ofTotal = loops.find(total);
    if (ofSum == loops.end() || ofTotal == loops.end())
      return ofSum == loops.end() && ofTotal == loops.end() ? single(sum, total) : std::nullopt;
    if (ofSum->second != ofTotal->second)
      return std::nullopt;
    const RescaledLoop &loop = *ofSum->second;
    const RescaledSums &sums = loop.sums;
    const Block &body = *loop.op->regions.front();
    auto resultOf = [&](size_t carried) { return loop.op->results[carried]; };
    const RescaledSums::Sum *values = nullptr, *weights = nullptr;
    for (const RescaledSums::Sum &each : sums.sums) {
      if (resultOf(each.carried) == sum)
        values = &each;
      if (resultOf(each.carried) == total)
        weights = &each;
    }
    // What else takes the sums needs them to be computed anyway.
    std::optional<ScalarKey> first = scalarOf(program, loop.op->operands[3 + sums.carried]);
    if (!values || !weights || values == weights || !values->product || weights->product ||
        sums.sums.size() != 2 || sums.exponentials.size() != 1 || program.useCount(sum) != 1 ||
        program.useCount(total) != 1 || program.isUsed(resultOf(sums.carried)) || !first ||
        first->bits != bitsOfLeast)
      return std::nullopt;
    const Operation &exponential = body.operations[sums.exponentials.front()];
    auto ofWeights = weightsOf(exponential);
    if (!ofWeights)
      return std::nullopt;
    auto found = joined(std::move(ofWeights->first), exponential, body.operations[*values->product],
                        weights->part, sums.each, sums.scale);
    if (found)
      found->loop = &loop;
    return found;
  }

  /// The same in a single tile.
  std::optional<Attention> single(int sum, int total) const {
    const Operation *product = made(sum, "tt.dot");
    if (!product || !zeros.contains(product->operands[2]))
      return std::nullopt;
    const Operation *exponential = program.producer(unconverted(product->operands[0]));
    if (!exponential || (exponential->name != "math.exp" && exponential->name != "math.exp2"))
      return std::nullopt;
    auto weights = weightsOf(*exponential);
    if (!weights)
      return std::nullopt;
    // The scale of the maximum is a part of what is subtracted.
    std::optional<int> row = rowOf(weights->second);
    return row ? joined(std::move(weights->first), *exponential, *product, total, *row, {})
               : std::nullopt;
  }

  /// `total` is the sum of a row of weights, and `highest`, times a scale, the maximum of its
  /// scores.
  std::optional<Attention> joined(Scores scores, const Operation &exponential,
                                  const Operation &product, int total, int highest,
                                  ScalarKey scale) const {
    int weight = exponential.results[0];
    if (reducedFrom(total, {"arith.addf"}) != weight || unconverted(product.operands[0]) != weight)
      return std::nullopt;
    // The maximum, which keeps the exponentials in range, is that of the same scores.
    std::vector<ScalarKey> scales;
    if (!scale.isOne())
      scales.push_back(scale);
    while (auto scaled = scaledFrom(highest)) {
      scales.push_back(scaled->first);
      highest = scaled->second;
    }
    std::optional<int> source = reducedFrom(highest, {"arith.maxnumf", "arith.maximumf"});
    std::optional<Scores> same = source ? scoresOf(*source) : std::nullopt;
    if (!same || same->product != scores.product || same->visible != scores.visible)
      return std::nullopt;
    scales.insert(scales.end(), same->scales.begin(), same->scales.end());
    auto isLess = [](const ScalarKey &a, const ScalarKey &b) {
      return std::pair(a.number, a.bits) < std::pair(b.number, b.bits);
    };
    std::sort(scales.begin(), scales.end(), isLess);
    std::sort(scores.scales.begin(), scores.scales.end(), isLess);
    if (scales != scores.scales)
      return std::nullopt;
    return Attention{scores.product, product.operands[1], scores.scales,
                     exponential.name == "math.exp2", scores.visible};
  }

  const Program &program;
  const std::map<int, std::shared_ptr<RescaledLoop>> &loops;
  const std::set<int> &zeros;
};

int64_t quotientDown(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

} // namespace

std::optional<Attention> attentionOf(const Program &program, const Operation &quotient,
                                     const std::map<int, std::shared_ptr<RescaledLoop>> &loops,
                                     const std::set<int> &zeros) {
  return Search(program, loops, zeros).run(quotient);
}

std::optional<Visible> visibleOf(const std::vector<Affine> &conditions, int rows, int columns,
                                 std::optional<size_t> steps, int stepCount) {
  constexpr int64_t all = std::numeric_limits<int>::max();
  constexpr size_t row = outerAxes, column = outerAxes + 1;
  Visible visible{std::nullopt, all, all, std::nullopt};
  bool hasRows = false;
  for (const Affine &condition : conditions) {
    int64_t down = condition.steps[row], right = condition.steps[column];
    std::optional<size_t> axis;
    for (size_t outer = 0; outer < outerAxes; ++outer) {
      int64_t step = condition.steps[outer];
      if (step == 0)
        continue;
      if (outer == steps) {
        // The columns of a step follow those of the step before.
        if (right == 0 || step != right * columns)
          return std::nullopt;
      } else if (axis || down == 0 || step != down * rows) {
        return std::nullopt;
      } else {
        axis = outer;
      }
    }
    if (steps && stepCount > 1 && right != 0 && condition.steps[*steps] == 0)
      return std::nullopt;
    if (down != 0) {
      if (hasRows && visible.axis != axis)
        return std::nullopt;
      visible.axis = axis;
      hasRows = true;
    }
    int64_t constant = condition.constant;
    if (down == 0 && right == 0 && constant >= 0)
      continue;
    if (down == 0 && right < 0)
      visible.columns = std::min(visible.columns, quotientDown(constant, -right) + 1);
    else if (right == 0 && down < 0)
      visible.rows = std::min(visible.rows, quotientDown(constant, -down) + 1);
    else if (down > 0 && right == -down) {
      int64_t offset = quotientDown(constant, down);
      visible.offset = visible.offset ? std::min(*visible.offset, offset) : offset;
    } else {
      return std::nullopt;
    }
  }
  return visible;
}

} // namespace triton_metal::graph
