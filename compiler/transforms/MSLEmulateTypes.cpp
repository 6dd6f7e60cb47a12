#include "transforms/MSLEmulateTypes.h"
#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "transforms/BFloatBits.h"
#include "transforms/Constants.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLEMULATETYPES
#include "transforms/Passes.h.inc"

namespace {

using namespace msl;

/// The type of a number, of a vector of numbers or of what a pointer points to.
Type getNumberType(Type type) {
  if (auto pointer = dyn_cast<PtrType>(type))
    return pointer.getElementType();
  return getElementTypeOrSelf(type);
}

/// The same type with another element type.
Type withNumbers(Type type, Type number) {
  if (auto pointer = dyn_cast<PtrType>(type))
    return PtrType::get(number, pointer.getSpace());
  return withElement(type, number);
}

/// The bits of the nearest bfloat, ties to even. A NaN stays a NaN.
Value narrow(OpBuilder &builder, Location loc, Value number) {
  Type words = withElement(number.getType(), builder.getI32Type());
  Type halves = withElement(number.getType(), builder.getI16Type());
  auto constant = [&](int64_t value) { return makeConstantLike(builder, loc, words, value); };
  Value bits = arith::BitcastOp::create(builder, loc, words, number);
  Value upper = arith::ShRUIOp::create(builder, loc, bits, constant(16));
  Value isOdd = arith::AndIOp::create(builder, loc, upper, constant(1));
  Value rounded = arith::AddIOp::create(builder, loc, bits, constant(0x7fff));
  rounded = arith::AddIOp::create(builder, loc, rounded, isOdd);
  rounded = arith::ShRUIOp::create(builder, loc, rounded, constant(16));
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, number, number);
  Value quiet = arith::OrIOp::create(builder, loc, upper, constant(0x40));
  Value chosen = arith::SelectOp::create(builder, loc, isNaN, quiet, rounded);
  return arith::TruncIOp::create(builder, loc, halves, chosen);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

class EmulationPattern : public ConversionPattern {
public:
  EmulationPattern(const EmulatedTypes &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/1, context), types(types) {}

protected:
  bool isEmulated(Type type) const { return types.isEmulated(getNumberType(type)); }

  const EmulatedTypes &types;
};

/// Computes in float and rounds the result as arithmetic of the type itself would.
struct ComputeInFloat : EmulationPattern {
  using EmulationPattern::EmulationPattern;

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
        op->getNumResults() != 1 || isa<arith::ConstantOp, arith::SelectOp, arith::BitcastOp>(op))
      return failure();
    // 64-bit floats have patterns of their own.
    if (llvm::any_of(llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()),
                     [](Type type) { return getElementTypeOrSelf(type).isF64(); }))
      return failure();
    Location loc = op->getLoc();
    SmallVector<Value> wide;
    for (auto [operand, bits] : llvm::zip_equal(op->getOperands(), operands))
      wide.push_back(isEmulated(operand.getType()) ? makeFloatOfBits(rewriter, loc, bits) : bits);
    Type type = op->getResult(0).getType(), f32 = withElement(type, rewriter.getF32Type());
    bool isNarrow = isEmulated(type);
    Value result;
    if (isa<arith::ExtFOp>(op) && type == wide[0].getType()) {
      result = wide[0];
    } else if (auto truncation = dyn_cast<arith::TruncFOp>(op);
               truncation && isNarrow && wide[0].getType() == f32) {
      result = wide[0];
    } else if (isa<arith::ExtFOp>(op) && !isNarrow) {
      return failure();
    } else {
      OperationState state(loc, op->getName(), wide, {isNarrow ? f32 : type},
                           llvm::to_vector(op->getDiscardableAttrs()));
      state.propertiesAttr = op->getPropertiesAsAttribute();
      result = rewriter.create(state)->getResult(0);
    }
    rewriter.replaceOp(op, isNarrow ? narrow(rewriter, loc, result) : result);
    return success();
  }
};

/// Operations that only move values move their bits.
struct MoveBits : EmulationPattern {
  using EmulationPattern::EmulationPattern;

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    bool moves = isa<MSLDialect>(op->getDialect()) ||
                 isa<arith::SelectOp, ub::PoisonOp, vector::ExtractOp>(op);
    if (!moves || isa<KernelOp, MmaOp>(op))
      return failure();
    SmallVector<Type> results;
    if (failed(types.convertTypes(op->getResultTypes(), results)))
      return failure();
    OperationState state(op->getLoc(), op->getName(), operands, results,
                         llvm::to_vector(op->getDiscardableAttrs()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    for (unsigned index = 0; index < op->getNumRegions(); ++index)
      state.addRegion();
    Operation *copy = rewriter.create(state);
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), copy->getRegions())) {
      rewriter.inlineRegionBefore(from, to, to.end());
      if (failed(rewriter.convertRegionTypes(&to, types)))
        return failure();
    }
    rewriter.replaceOp(op, copy->getResults());
    return success();
  }
};

/// A bitcast between such a value and its bits becomes the value.
struct BitcastOfBits : OpConversionPattern<arith::BitcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(arith::BitcastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    if (type == adaptor.getIn().getType())
      rewriter.replaceOp(op, adaptor.getIn());
    else
      rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, adaptor.getIn());
    return success();
  }
};

struct ConstantBits : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = getTypeConverter()->convertType(op.getType());
    TypedAttr bits;
    if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue()))
      bits = dense.bitcast(getElementTypeOrSelf(type));
    else
      bits =
          rewriter.getIntegerAttr(type, cast<FloatAttr>(op.getValue()).getValue().bitcastToAPInt());
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, type, bits);
    return success();
  }
};

} // namespace

msl::EmulatedTypes::EmulatedTypes(TargetAttr target) : target(target) {
  addConversion([](Type type) { return type; });
  addConversion([this](Type type) -> std::optional<Type> {
    Type number = getNumberType(type);
    if (!isEmulated(number))
      return std::nullopt;
    return withNumbers(type, IntegerType::get(type.getContext(), number.getIntOrFloatBitWidth()));
  });
}

bool msl::EmulatedTypes::isEmulated(Type number) const {
  const ScalarType *scalar = ScalarType::get(number);
  if (!scalar)
    return false;
  return !scalar->isInMetal() || (scalar->feature != Feature::None && !target.has(scalar->feature));
}

namespace {

struct MSLEmulateTypesPass : impl::MSLEmulateTypesBase<MSLEmulateTypesPass> {
  void runOnOperation() override {
    EmulatedTypes types(TargetAttr::get(getOperation()));
    auto isLegal = [&](Operation *op) {
      return types.isLegal(op) &&
             llvm::all_of(op->getRegions(), [&](Region &region) { return types.isLegal(&region); });
    };
    // Most targets have every type.
    if (!getOperation()
             .walk([&](Operation *op) {
               return isLegal(op) ? WalkResult::advance() : WalkResult::interrupt();
             })
             .wasInterrupted())
      return markAllAnalysesPreserved();
    if (getOperation()
            .walk([](Operation *op) { return WalkResult(checkFloat64(op)); })
            .wasInterrupted())
      return signalPassFailure();
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal(isLegal);
    target.addDynamicallyLegalOp<KernelOp>([&](KernelOp kernel) {
      return types.isSignatureLegal(kernel.getFunctionType()) && types.isLegal(&kernel.getBody());
    });
    RewritePatternSet patterns(&getContext());
    scf::populateSCFStructuralTypeConversions(types, patterns);
    populateFunctionOpInterfaceTypeConversionPattern<KernelOp>(patterns, types);
    patterns.add<BitcastOfBits, ConstantBits>(types, &getContext(), PatternBenefit(2));
    patterns.add<ComputeInFloat, MoveBits>(types, &getContext());
    populateFloat64Patterns(types, patterns);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
