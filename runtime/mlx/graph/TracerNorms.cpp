// RMS norms and layer norms of rows, found by how their values are made.

#include "runtime/mlx/graph/Box.h"
#include "runtime/mlx/graph/Producers.h"
#include "runtime/mlx/graph/Tracer.h"

#include "mlx/device.h"
#include "mlx/fast.h"
#include "mlx/ops.h"

#include <algorithm>

namespace triton_metal::graph {

namespace {

/// x * rsqrt(mean(x²) + eps), or that of x - mean(x).
struct Norm {
  bool isCentred = false;
  /// x: of float32, or of 16 bits, to which the result is rounded before it is multiplied.
  int source = -1;
  float eps = 0;
  std::optional<mx::array> weight, bias;
  /// What it is made of, without its last operation.
  std::set<const Operation *> operations;
};

bool isShort(const std::string &element) { return element == "f16" || element == "bf16"; }

/// Reads norms of the rows that the result of an operation has.
class NormReader {
public:
  NormReader(const Program &program, const std::vector<Value> &values, const Type &type,
             const Value &result)
      : program(program), values(values), type(type), extents(result.extents()),
        last(static_cast<int64_t>(type.shape.size()) - 1),
        axis(outerAxes + static_cast<size_t>(last)), producers(program, last) {
    if (const Box *box = result.box()) {
      if (box->groups.empty() || box->groups.back().axes != std::vector<size_t>{axis})
        return;
      groups = box->groups;
      length = groups->back().length();
    } else if (extents[axis] == type.shape.back()) {
      length = extents[axis];
    }
  }

  /// The norm that ends with an operation, with what it multiplies by and adds.
  std::optional<Norm> read(const Operation &op) {
    if (length < 1)
      return std::nullopt;
    if (op.name == "arith.addf") {
      for (size_t i : {0, 1})
        if (const Operation *made = program.producer(op.operands[i]))
          if (std::optional<Norm> norm = weighted(*made); norm && norm->isCentred && !norm->bias)
            if (isOnlyTakenBy(*made, op) && (norm->bias = rowOf(op.operands[1 - i])))
              return norm;
      return std::nullopt;
    }
    return weighted(op);
  }

private:
  const Value &get(int number) const { return values[static_cast<size_t>(number)]; }

  std::optional<Norm> weighted(const Operation &op) {
    if (std::optional<Norm> norm = normalised(op))
      return norm;
    if (op.name != "arith.mulf")
      return std::nullopt;
    for (size_t i : {0, 1})
      if (const Operation *made = program.producer(op.operands[i]))
        if (std::optional<Norm> norm = normalised(*made); norm && isOnlyTakenBy(*made, op))
          if ((norm->weight = rowOf(op.operands[1 - i])))
            return norm;
    return std::nullopt;
  }

  /// A norm without weight, in float32 or rounded to 16 bits.
  std::optional<Norm> normalised(const Operation &op) {
    const Type &own = op.types.front();
    if (own.element == "f32")
      return inFloat(op);
    bool isRounded = op.name == "arith.truncf" || op.name == "tt.fp_to_fp";
    if (!isShort(own.element) || !isRounded || op.has("roundingmode") ||
        (op.has("rounding") && op.integer("rounding") == 0))
      return std::nullopt;
    const Operation *made = program.producer(op.operands[0]);
    std::optional<Norm> norm = made ? normalised(*made) : std::nullopt;
    if (!norm || !isOnlyTakenBy(*made, op))
      return std::nullopt;
    const Operation *widened = program.producer(norm->source);
    if (!widened || (widened->name != "arith.extf" && widened->name != "tt.fp_to_fp"))
      return std::nullopt;
    norm->source = widened->operands[0];
    return isOfRows(norm->source, own.element) ? norm : std::nullopt;
  }

  /// x * rsqrt(...), x / sqrt(...)
  std::optional<Norm> inFloat(const Operation &op) {
    const std::string &name = nameOf(op);
    if (isQuotient(name))
      return withRoot(op, op.operands[0], rootOf(op.operands[1]));
    if (name != "arith.mulf")
      return std::nullopt;
    for (size_t i : {0, 1})
      if (std::optional<Norm> norm =
              withRoot(op, op.operands[i], inverseRootOf(op.operands[1 - i])))
        return norm;
    return std::nullopt;
  }

  static bool isQuotient(std::string_view name) {
    return name == "arith.divf" || name == "tt.precise_divf" || name == "tt.approx_divf";
  }
  const Operation *quotient(int number) {
    return producers.made(number, {"arith.divf", "tt.precise_divf", "tt.approx_divf"});
  }

  /// What a square root is of; -1 for others.
  int rootOf(int number) {
    producers = Producers(program, last);
    return rootBehind(number);
  }
  int rootBehind(int number) {
    const Operation *root =
        producers.made(producers.repeated(number), {"math.sqrt", "tt.precise_sqrt"});
    return root ? root->operands[0] : -1;
  }
  int inverseRootOf(int number) {
    producers = Producers(program, last);
    number = producers.repeated(number);
    if (const Operation *root = producers.made(number, {"math.rsqrt"}))
      return root->operands[0];
    const Operation *inverse = quotient(number);
    if (!inverse || !isNumber(inverse->operands[0], 1))
      return -1;
    return rootBehind(inverse->operands[1]);
  }

  /// The norm of `tile` whose divisor is the root of `square`.
  std::optional<Norm> withRoot(const Operation &op, int tile, int square) {
    if (square < 0)
      return std::nullopt;
    Norm norm;
    int mean = producers.repeated(square);
    if (const Operation *sum = producers.made(mean, {"arith.addf"}))
      for (size_t i : {0, 1})
        if (std::optional<float> eps = numberOf(sum->operands[i])) {
          norm.eps = *eps;
          mean = sum->operands[1 - i];
          break;
        }
    // Also not NaN.
    if (!(norm.eps >= 0))
      return std::nullopt;
    int squares = meanOf(mean);
    const Operation *product =
        squares < 0 ? nullptr : producers.made(kept(squares), {"arith.mulf"});
    if (!product)
      return std::nullopt;
    norm.source = kept(product->operands[0]);
    if (kept(product->operands[1]) != norm.source || kept(tile) != norm.source)
      return std::nullopt;
    Producers before = producers;
    if (const Operation *difference = producers.made(norm.source, {"arith.subf"})) {
      int source = kept(difference->operands[0]), summed = meanOf(difference->operands[1]);
      norm.isCentred = summed >= 0 && kept(summed) == source;
      if (norm.isCentred)
        norm.source = source;
      else
        producers = before;
    }
    norm.operations = producers.passed();
    if (!isOfRows(norm.source, "f32") || isTakenElsewhere(norm, op))
      return std::nullopt;
    return norm;
  }

  /// What the mean of all elements of a row is of; -1 for others.
  int meanOf(int number) {
    number = producers.repeated(number);
    if (length == 1)
      if (int summed = sumOf(number); summed >= 0)
        return summed;
    if (const Operation *divided = quotient(number)) {
      int summed = sumOf(divided->operands[0]);
      return summed >= 0 && isNumber(divided->operands[1], length) ? summed : -1;
    }
    if (const Operation *product = producers.made(number, {"arith.mulf"}))
      for (size_t i : {0, 1})
        if (int summed = sumOf(product->operands[i]); summed >= 0)
          // 1 / length, rounded once, or by way of a double.
          return isNumber(product->operands[1 - i], 1.0f / static_cast<float>(length)) ||
                         isNumber(product->operands[1 - i],
                                  static_cast<float>(1.0 / static_cast<double>(length)))
                     ? summed
                     : -1;
    return -1;
  }

  /// What is added up along rows, where the elements outside of the box add nothing; -1 for others.
  int sumOf(int number) {
    int summed = producers.reduced(number, {"arith.addf"});
    if (summed < 0 || !isOfRows(summed, "f32"))
      return -1;
    if (!groups || !isCut(groups->back()))
      return summed;
    const Box &box = *get(summed).box();
    bool isZero =
        box.isOutsideKnown && mx::all(mx::equal(box.outside, mx::array(0.0f))).item<bool>();
    return isZero ? summed : -1;
  }

  /// The value that is chosen in all elements of the rows, behind `where`.
  int kept(int number) {
    while (const Operation *op = program.producer(number)) {
      if (op->name != "arith.select")
        break;
      const Value &condition = get(op->operands[0]);
      if (groups ? !holdsInside(condition, *groups, extents) : condition.constant() != 1)
        break;
      producers.made(number, {"arith.select"});
      number = op->operands[1];
    }
    return number;
  }

  /// Whether a value has the rows of the result. Where a loop runs step by step, what others of its
  /// operations made has those of all steps.
  bool isOfRows(int number, std::string_view element) const {
    const Value &value = get(number);
    if (!value.isValid() || value.type().element != element || value.type().shape != type.shape)
      return false;
    if (const Box *box = value.box())
      return groups && areSame(box->groups, *groups);
    return !groups && value.extents() == extents;
  }

  /// A vector of numbers that all rows share, of the type of the result. Nothing for others.
  std::optional<mx::array> rowOf(int number) const {
    const Value &value = get(number);
    if (value.type().element != type.element || value.rank() != extents.size())
      return std::nullopt;
    auto size = static_cast<int>(length);
    if (const Box *box = value.box()) {
      if (!groups || box->groups.size() != 1 || !isSame(box->groups.front(), groups->back()))
        return std::nullopt;
      return mx::reshape(box->inside, {size});
    }
    Extents wanted(extents.size(), 1);
    wanted[axis] = size;
    if ((groups && isCut(groups->back())) || value.extents() != wanted)
      return std::nullopt;
    return mx::reshape(value.array(), {size});
  }

  std::optional<float> numberOf(int number) const {
    const Value &value = get(number);
    if (!value.isKnown() || value.type().element != "f32" || !isUniform(value.extents()))
      return std::nullopt;
    return mx::reshape(value.array(), {}).item<float>();
  }
  bool isNumber(int number, double wanted) const {
    std::optional<float> found = numberOf(number);
    return found && static_cast<double>(*found) == wanted;
  }

  bool isOnlyTakenBy(const Operation &made, const Operation &op) const {
    for (const Operation *taker : takersOf(program, made.results.front()))
      if (taker != program.producer(op.results.front()))
        return false;
    return true;
  }

  /// Whether other operations take the mean, the root or another part of a norm, so that it is
  /// computed anyway. On a GPU, MLX's function pays where they are stored only; on the CPU, MLX
  /// makes it of the same operations.
  bool isTakenElsewhere(const Norm &norm, const Operation &op) const {
    bool mayStore = mx::default_device() == mx::Device::gpu;
    const Operation *end = program.producer(op.results.front());
    for (const Operation *part : norm.operations)
      for (int result : part->results)
        for (const Operation *taker : takersOf(program, result))
          if (taker != end && !norm.operations.contains(taker) &&
              !(mayStore && taker->name == "tt.store"))
            return true;
    return false;
  }

  const Program &program;
  const std::vector<Value> &values;
  const Type &type;
  const Extents &extents;
  int64_t last;
  size_t axis;
  Producers producers;
  /// The coordinates of the result; nothing where it is no box.
  std::optional<std::vector<Window::Group>> groups;
  /// The elements of a row; 0 where rows are not whole.
  int64_t length = 0;
};

} // namespace

std::optional<Value> Tracer::normOf(const Operation &op, const Value &plain) {
  const Type &type = resultType(op);
  if (type.shape.empty() || (type.element != "f32" && !isShort(type.element)))
    return std::nullopt;
  std::optional<Norm> norm = NormReader(program, values, type, plain).read(op);
  if (!norm)
    return std::nullopt;
  const Value &source = get(norm->source);
  const mx::array &x = source.box() ? source.box()->inside : source.array();
  if (x.size() == 0)
    return std::nullopt;
  std::string note = norm->isCentred ? "layer norm" : "rms norm";
  if (type.element != "f32")
    note += " of " + type.element;
  note += norm->bias ? " with bias" : norm->weight ? " with weight" : "";
  summary.raised.emplace_back(op.place, note);
  mx::array result = norm->isCentred ? mx::fast::layer_norm(x, norm->weight, norm->bias, norm->eps)
                                     : mx::fast::rms_norm(x, norm->weight, norm->eps);
  if (const Box *box = plain.box())
    return Value::of(type, plain.extents(),
                     Box{box->groups, result, box->outside, box->isOutsideKnown}, plain.isKnown());
  return Value::of(type, source.extents(), result, plain.isKnown());
}

} // namespace triton_metal::graph
