// Tiles that are divided by one number a row are multiplied by its reciprocal.

#include "analysis/CombineRegion.h"
#include "dialect/tt/TT.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTRECIPROCALS
#include "transforms/Passes.h.inc"

namespace {

/// What a tile repeats: a scalar, or a smaller tile. Null if it repeats nothing.
Value repeated(Value tile) {
  if (auto splat = tile.getDefiningOp<tt::SplatOp>())
    return splat.getSrc();
  if (auto broadcast = tile.getDefiningOp<tt::BroadcastOp>())
    return broadcast.getSrc();
  return {};
}

/// What a value is a copy of, in another shape or repeated.
Value withoutShape(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tt::SplatOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::UnsplatOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The operation that a reduction of one tile does, null for other values.
Operation *getCombiner(Value value) {
  auto reduce = value.getDefiningOp<tt::ReduceOp>();
  if (!reduce || reduce.getSrcs().size() != 1)
    return nullptr;
  return getCommutativeCombiner(reduce.getCombineOp().front());
}

std::optional<APFloat> getConstant(Value value) {
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  if (auto scalar = dyn_cast<FloatAttr>(attr))
    return scalar.getValue();
  if (auto dense = dyn_cast<SplatElementsAttr>(attr))
    return dense.getSplatValue<APFloat>();
  return std::nullopt;
}

/// How many values an answer may ask for: sums of sums and maxima of maxima have more paths than
/// values.
constexpr unsigned kMostValues = 256;

/// Whether these numbers are among those of which `greatest`, in whatever shape, has the greatest.
bool isAmong(Value numbers, Value greatest, unsigned &asked) {
  if (greatest == numbers || withoutShape(greatest) == numbers)
    return true;
  greatest = withoutShape(greatest);
  if (asked++ >= kMostValues)
    return false;
  if (isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(greatest.getDefiningOp()))
    return llvm::any_of(greatest.getDefiningOp()->getOperands(),
                        [&](Value operand) { return isAmong(numbers, operand, asked); });
  return isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(getCombiner(greatest)) &&
         isAmong(numbers, greatest.getDefiningOp()->getOperand(0), asked);
}

/// Whether each of these numbers is among those of which `greatest` has the greatest, once its
/// dimensions at `expanded` are there again, the last one first: those are the ones that reductions
/// have taken, of the same row or rows.
bool isAmongRows(Value numbers, Value greatest, ArrayRef<uint32_t> expanded, unsigned &asked) {
  if (greatest == numbers)
    return expanded.empty();
  if (asked++ >= kMostValues)
    return false;
  if (isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(greatest.getDefiningOp()))
    return llvm::any_of(greatest.getDefiningOp()->getOperands(), [&](Value operand) {
      return isAmongRows(numbers, operand, expanded, asked);
    });
  if (expanded.empty() ||
      !isa_and_nonnull<arith::MaxNumFOp, arith::MaximumFOp>(getCombiner(greatest)))
    return false;
  auto reduce = greatest.getDefiningOp<tt::ReduceOp>();
  return reduce.getAxis() == expanded.back() &&
         isAmongRows(numbers, reduce.getSrcs()[0], expanded.drop_back(), asked);
}

/// Whether a value is a magnitude with a minus sign, or a number less the greatest of its row,
/// perhaps times a positive constant.
bool isNeverPositive(Value value) {
  if (auto negation = value.getDefiningOp<arith::NegFOp>())
    return bool(negation.getOperand().getDefiningOp<math::AbsFOp>());
  if (auto product = value.getDefiningOp<arith::MulFOp>()) {
    std::optional<APFloat> factor = getConstant(product.getRhs());
    return factor && !factor->isNegative() && isNeverPositive(product.getLhs());
  }
  auto difference = value.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return false;
  Value greatest = difference.getRhs(), numbers = difference.getLhs();
  if (std::optional<APFloat> zero = getConstant(numbers); zero && zero->isZero())
    return bool(greatest.getDefiningOp<math::AbsFOp>());
  if (auto splat = greatest.getDefiningOp<tt::SplatOp>()) {
    // The greatest of all, of one tile or of several.
    unsigned asked = 0;
    return isAmong(numbers, splat.getSrc(), asked);
  }
  auto broadcast = greatest.getDefiningOp<tt::BroadcastOp>();
  if (!broadcast)
    return false;
  greatest = broadcast.getSrc();
  SmallVector<uint32_t> expanded;
  while (auto expand = greatest.getDefiningOp<tt::ExpandDimsOp>()) {
    expanded.push_back(expand.getAxis());
    greatest = expand.getSrc();
  }
  unsigned asked = 0;
  return !expanded.empty() && isAmongRows(numbers, greatest, expanded, asked);
}

/// More than the magnitude of what is finite of a value: infinite if nothing is known.
double getBound(Value value, unsigned &asked) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (std::optional<APFloat> number = getConstant(value))
    return number->isFinite() ? std::abs(number->convertToDouble()) : 0.0;
  if (getElementTypeOrSelf(value.getType()).isF16())
    return 65536.0;
  value = withoutShape(value);
  Operation *op = value.getDefiningOp();
  if (!op || asked++ >= kMostValues)
    return unknown;
  auto of = [&](unsigned operand) { return getBound(op->getOperand(operand), asked); };
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<arith::SIToFPOp, arith::UIToFPOp>([](auto cast) {
        return std::exp2(getElementTypeOrSelf(cast.getIn().getType()).getIntOrFloatBitWidth());
      })
      .Case<arith::ExtFOp, arith::TruncFOp, arith::NegFOp, math::AbsFOp>(
          [&](auto) { return of(0); })
      // The root of the largest float, and one over that of the smallest.
      .Case<math::SqrtOp, math::RsqrtOp>([](auto) { return 0x1p75; })
      .Case<math::LogOp, math::Log2Op>([](auto) { return 256.0; })
      .Case<math::SinOp, math::CosOp, math::TanhOp, math::ErfOp>([](auto) { return 2.0; })
      .Case<math::ExpOp, math::Exp2Op>(
          [&](auto exp) { return isNeverPositive(exp.getOperand()) ? 2.0 : unknown; })
      .Case<arith::AddFOp, arith::SubFOp>([&](auto) { return of(0) + of(1); })
      .Case<arith::MulFOp>([&](auto) { return of(0) * of(1); })
      .Case<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp>(
          [&](auto) { return std::max(of(0), of(1)); })
      .Case<arith::SelectOp>([&](auto) { return std::max(of(1), of(2)); })
      .Case<tt::ReduceOp>([&](tt::ReduceOp reduce) {
        Operation *combiner = getCombiner(value);
        if (isa_and_nonnull<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp,
                            arith::MinimumFOp>(combiner))
          return of(0);
        if (!isa_and_nonnull<arith::AddFOp>(combiner))
          return unknown;
        auto source = cast<RankedTensorType>(reduce.getSrcs()[0].getType());
        return of(0) * double(source.getDimSize(reduce.getAxis()));
      })
      .Default(unknown);
}

Type withElement(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

TypedAttr splat(Type type, double value) {
  auto number = FloatAttr::get(getElementTypeOrSelf(type), value);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return DenseElementsAttr::get(tensor, ArrayRef<Attribute>(number));
  return number;
}

/// Makes `n / (1 + e)` with `e = exp(-|x|)` of `c / (1 + exp(x))`, where n is c, or c e if x is
/// positive. That is the same number, and no divisor is above 2: Metal's quotients have no bound
/// where exp(x) leads. Of a larger c some quotients that are not subnormal would have a c e that
/// is.
void shrinkDivisor(arith::DivFOp quotient) {
  std::optional<APFloat> c = getConstant(quotient.getLhs());
  auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
  if (!c || !c->isFinite() || std::abs(c->convertToDouble()) > 1.0 || !sum || !sum->hasOneUse() ||
      getElementTypeOrSelf(quotient.getType()).isF16())
    return;
  auto isOne = [](Value value) {
    std::optional<APFloat> number = getConstant(value);
    return number && number->isExactlyValue(1.0);
  };
  Value one = sum.getLhs(), power = sum.getRhs();
  if (!isOne(one))
    std::swap(one, power);
  Operation *exp = power.getDefiningOp();
  if (!isOne(one) || !isa_and_nonnull<math::ExpOp, math::Exp2Op>(exp) || !exp->hasOneUse() ||
      isNeverPositive(exp->getOperand(0)))
    return;
  OpBuilder builder(exp);
  Location loc = quotient.getLoc();
  Type type = quotient.getType();
  Value x = exp->getOperand(0);
  Value magnitude = math::AbsFOp::create(builder, loc, x);
  exp->setOperand(0, arith::NegFOp::create(builder, loc, magnitude));
  builder.setInsertionPoint(quotient);
  Value zero = arith::ConstantOp::create(builder, loc, splat(type, 0.0));
  Value isPositive = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, x, zero);
  Value small = c->isExactlyValue(1.0)
                    ? power
                    : Value(arith::MulFOp::create(builder, loc, power, quotient.getLhs()));
  quotient.getLhsMutable().assign(
      arith::SelectOp::create(builder, loc, isPositive, small, quotient.getLhs()));
}

/// Makes a product of a quotient by a power of two, whose reciprocal is exact. Returns whether it
/// is one.
bool multiplyExactly(arith::DivFOp quotient) {
  std::optional<APFloat> divisor = getConstant(quotient.getRhs());
  APFloat reciprocal(0.0);
  if (!divisor || !divisor->getExactInverse(&reciprocal))
    return false;
  OpBuilder builder(quotient);
  Location loc = quotient.getLoc();
  Value factor = arith::ConstantOp::create(builder, loc,
                                           splat(quotient.getType(), reciprocal.convertToDouble()));
  quotient.replaceAllUsesWith(
      arith::MulFOp::create(builder, loc, quotient.getLhs(), factor).getResult());
  quotient.erase();
  return true;
}

void multiply(arith::DivFOp quotient) {
  if (multiplyExactly(quotient))
    return;
  if (!bitEnumContainsAll(quotient.getFastmath(), arith::FastMathFlags::afn))
    return;
  shrinkDivisor(quotient);
  // The fast quotient of two numbers is in bounds as it is.
  unsigned asked = 0;
  bool isBounded = getBound(quotient.getRhs(), asked) <= 0x1p125;
  if (isBounded)
    quotient.setFastmath(quotient.getFastmath() | arith::FastMathFlags::arcp);
  Value divisor = repeated(quotient.getRhs());
  // 1 / s has no product that a reciprocal would save.
  Attribute attr;
  if (!divisor || matchPattern(quotient.getLhs(), m_Constant(&attr)))
    return;
  OpBuilder builder(quotient);
  Location loc = quotient.getLoc();
  Type type = quotient.getType(), f32 = builder.getF32Type();
  Operation *repeats = quotient.getRhs().getDefiningOp();
  // Shorter floats are multiplied as float32, and rounded once.
  auto widened = [&](Value value) -> Value {
    if (getElementTypeOrSelf(value.getType()).isF32())
      return value;
    return arith::ExtFOp::create(builder, loc, withElement(value.getType(), f32), value);
  };
  builder.setInsertionPointAfter(repeats);
  divisor = widened(divisor);
  auto constant = [&](double number) -> Value {
    return arith::ConstantOp::create(builder, loc, splat(divisor.getType(), number));
  };
  Type wide = withElement(type, f32);
  auto repeat = [&](Value value) -> Value {
    if (isa<tt::SplatOp>(repeats))
      return tt::SplatOp::create(builder, loc, wide, value);
    return tt::BroadcastOp::create(builder, loc, wide, value);
  };
  // The reciprocal of a divisor above 2^126 is subnormal, which a device may take as 0: a quarter
  // of the number is divided by a quarter of the divisor then. Both are exact.
  Value scale;
  if (!isBounded) {
    Value isLarge =
        arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT,
                              math::AbsFOp::create(builder, loc, divisor), constant(0x1p126));
    scale = arith::SelectOp::create(builder, loc, isLarge, constant(0.25), constant(1.0));
    divisor = arith::MulFOp::create(builder, loc, divisor, scale);
    scale = repeat(scale);
  }
  // It is rounded correctly, with all its special values: there are few of them.
  Value factor = repeat(arith::DivFOp::create(builder, loc, constant(1.0), divisor));
  builder.setInsertionPoint(quotient);
  Value product = widened(quotient.getLhs());
  if (scale)
    product = arith::MulFOp::create(builder, loc, product, scale);
  product = arith::MulFOp::create(builder, loc, product, factor);
  if (type != wide)
    product = arith::TruncFOp::create(builder, loc, type, product);
  quotient.replaceAllUsesWith(product);
  quotient.erase();
}

struct TTReciprocalsPass : impl::TTReciprocalsBase<TTReciprocalsPass> {
  void runOnOperation() override {
    SmallVector<arith::DivFOp> quotients;
    getOperation().walk([&](arith::DivFOp op) { quotients.push_back(op); });
    for (arith::DivFOp quotient : quotients)
      multiply(quotient);
  }
};

} // namespace
} // namespace triton_metal
