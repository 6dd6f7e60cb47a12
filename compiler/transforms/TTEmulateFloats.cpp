#include "dialect/tt/TT.h"
#include "transforms/Constants.h"
#include "transforms/FloatFormats.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTEMULATEFLOATS
#include "transforms/Passes.h.inc"

namespace {

bool usesSmallFloats(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), hasSmallFloats) ||
         llvm::any_of(op->getResultTypes(), hasSmallFloats);
}

/// Whether the operation computes with the numbers, and does not only move or reinterpret them.
bool isComputation(Operation *op) {
  if (isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp>(op))
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<tt::ClampFOp, tt::PreciseDivFOp, tt::ApproxDivFOp, tt::PreciseSqrtOp, tt::PrintOp>(op);
}

Value convert(OpBuilder &builder, Location loc, Value value, Type to,
              tt::RoundingMode rounding = tt::RoundingMode::RTNE) {
  return convertFloat(builder, loc, value, to, rounding);
}

/// Whether the result is one of the operands. Rounding must not change it: an infinity stays one.
bool isSelection(Operation *op) {
  return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp,
             tt::ClampFOp>(op);
}

/// Extends the operands exactly. A float has more than twice the digits of a number of 8 bits and
/// two more, so that a result that is rounded to float first is correctly rounded in the end.
void computeInFloat(Operation *op) {
  auto rounding = isSelection(op) ? tt::RoundingMode::RTZ : tt::RoundingMode::RTNE;
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands())
    if (hasSmallFloats(operand.get().getType()))
      operand.set(convert(builder, op->getLoc(), operand.get(), builder.getF32Type()));
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Type type = result.getType();
    if (!hasSmallFloats(type))
      continue;
    result.setType(withElementType(type, builder.getF32Type()));
    // The operation's own result is the operand of the conversion.
    SmallVector<OpOperand *> uses =
        llvm::map_to_vector(result.getUses(), [](OpOperand &use) { return &use; });
    Value narrow = convert(builder, op->getLoc(), result, getElementTypeOrSelf(type), rounding);
    for (OpOperand *use : uses)
      use->set(narrow);
  }
}

/// Clears the sign of the code. A code of a format without a negative zero may be its NaN.
void clearSign(math::AbsFOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Type codes = withElementType(op.getType(), builder.getI8Type());
  auto constant = [&](int64_t code) { return makeConstantLike(builder, loc, codes, code); };
  Value code = tt::BitcastOp::create(builder, loc, codes, op.getOperand());
  Value magnitude = arith::AndIOp::create(builder, loc, code, constant(0x7f));
  if (!SmallFloat::get(getElementTypeOrSelf(op.getType()))->hasNegativeZero()) {
    Value isNaN =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, code, constant(0x80));
    magnitude = arith::SelectOp::create(builder, loc, isNaN, code, magnitude);
  }
  op.getResult().replaceAllUsesWith(tt::BitcastOp::create(builder, loc, op.getType(), magnitude));
  op.erase();
}

/// Halves hold every number of 8 bits; simdgroup matrices take them, and add in float.
void multiplyHalves(tt::DotOp dot) {
  OpBuilder builder(dot);
  for (OpOperand &operand : dot->getOpOperands().take_front(2))
    operand.set(convert(builder, operand.get().getLoc(), operand.get(), builder.getF16Type()));
}

/// Metal rounds to nearest. To bfloat, the conversion to Metal cuts bits off.
bool isMissingConversion(tt::FpToFpOp op) {
  Type from = getElementTypeOrSelf(op.getSrc().getType()), to = getElementTypeOrSelf(op.getType());
  if (hasSmallFloats(from) || hasSmallFloats(to))
    return true;
  bool narrows = to.getIntOrFloatBitWidth() <= from.getIntOrFloatBitWidth();
  return narrows && from != to && op.getRounding() == tt::RoundingMode::RTZ &&
         !(from.isF32() && to.isBF16());
}

struct TTEmulateFloatsPass : impl::TTEmulateFloatsBase<TTEmulateFloatsPass> {
  void runOnOperation() override {
    bool hasSmall = false;
    SmallVector<Operation *> worklist;
    getOperation().walk([&](Operation *op) {
      bool uses = usesSmallFloats(op);
      // A pointer to such numbers, or a kernel that takes one.
      hasSmall |= uses || llvm::any_of(op->getResultTypes(), pointsToSmallFloats);
      if (auto func = dyn_cast<tt::FuncOp>(op))
        hasSmall |= llvm::any_of(func.getArgumentTypes(), pointsToSmallFloats);
      auto conversion = dyn_cast<tt::FpToFpOp>(op);
      if (conversion ? isMissingConversion(conversion)
                     : uses && (isComputation(op) || isa<tt::DotOp>(op)))
        worklist.push_back(op);
    });
    for (Operation *op : worklist)
      rewrite(op);
    if (hasSmall)
      replaceTypes();
    else if (worklist.empty())
      markAllAnalysesPreserved();
  }

private:
  static bool pointsToSmallFloats(Type type) {
    Type element = getElementTypeOrSelf(type);
    while (auto pointer = dyn_cast<tt::PtrType>(element))
      element = pointer.getPointeeType();
    return hasSmallFloats(element);
  }

  void rewrite(Operation *op) {
    OpBuilder builder(op);
    auto replaceBy = [&](Type to, tt::RoundingMode rounding) {
      op->getResult(0).replaceAllUsesWith(
          convert(builder, op->getLoc(), op->getOperand(0), getElementTypeOrSelf(to), rounding));
      op->erase();
    };
    if (auto conversion = dyn_cast<tt::FpToFpOp>(op))
      return replaceBy(conversion.getType(),
                       conversion.getRounding().value_or(tt::RoundingMode::RTNE));
    if (isa<arith::ExtFOp, arith::TruncFOp>(op))
      return replaceBy(op->getResult(0).getType(), tt::RoundingMode::RTNE);
    if (auto dot = dyn_cast<tt::DotOp>(op))
      return multiplyHalves(dot);
    if (auto abs = dyn_cast<math::AbsFOp>(op))
      return clearSign(abs);
    computeInFloat(op);
  }

  /// What is left moves numbers: it moves their codes.
  void replaceTypes() {
    Type code = IntegerType::get(&getContext(), 8);
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](FloatType type) -> std::optional<Type> {
      return SmallFloat::get(type) ? std::optional<Type>(code) : std::nullopt;
    });
    auto encode = [](Type type, const APFloat &value) {
      // The carrier of fp8e4b15 has another bias, so that its codes do not count.
      uint64_t bits = isa<Float8E4M3B11FNUZType>(type) ? SmallFloat::get(type)->encode(value)
                                                       : value.bitcastToAPInt().getZExtValue();
      return APInt(8, bits);
    };
    replacer.addReplacement([&](FloatAttr attr) -> std::optional<Attribute> {
      if (!hasSmallFloats(attr.getType()))
        return std::nullopt;
      return IntegerAttr::get(code, encode(attr.getType(), attr.getValue()));
    });
    replacer.addReplacement([&](DenseFPElementsAttr attr) -> std::optional<Attribute> {
      Type element = attr.getElementType();
      if (!hasSmallFloats(element))
        return std::nullopt;
      return attr.mapValues(code, [&](const APFloat &value) { return encode(element, value); });
    });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false, /*replaceTypes=*/true);
    getOperation().walk([](Operation *op) {
      if (!isa<tt::BitcastOp, arith::BitcastOp>(op) ||
          op->getOperand(0).getType() != op->getResult(0).getType())
        return;
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    });
  }
};

} // namespace
} // namespace triton_metal
