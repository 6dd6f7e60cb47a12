// Operations that treat each element by itself.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace triton_metal {

namespace {

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

struct ConstantPattern : RegisterPattern<arith::ConstantOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(arith::ConstantOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = convert(op.getType());
    TypedAttr value = op.getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
      if (!dense.isSplat())
        return failure();
      value = DenseElementsAttr::get(cast<VectorType>(type), dense.getSplatValue<Attribute>());
    } else {
      value = IntegerAttr::get(type, cast<IntegerAttr>(value).getInt());
    }
    rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, type, value);
    return success();
  }
};

/// A tile of poison stays poison. A scalar becomes zero, so that every run gives the same result.
struct PoisonPattern : RegisterPattern<ub::PoisonOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ub::PoisonOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Type type = convert(op.getType());
    if (isa<msl::PtrType>(type))
      rewriter.replaceOpWithNewOp<msl::IntToPtrOp>(op, type, builder.zero(builder.getI64Type()));
    else if (isa<VectorType>(type))
      rewriter.replaceOpWithNewOp<ub::PoisonOp>(op, type);
    else
      rewriter.replaceOp(op, builder.zero(type));
    return success();
  }
};

struct AssumePattern : OpConversionPattern<LLVM::AssumeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(LLVM::AssumeOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Pointers: scalars only at this level
//===----------------------------------------------------------------------===//

struct AddPtrPattern : RegisterPattern<tt::AddPtrOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::AddPtrOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    // Metal's pointer arithmetic takes 32 or 64 bits.
    Value offset = adaptor.getOffset();
    if (offset.getType().getIntOrFloatBitWidth() <= 32)
      offset = builder.castIntegers(offset, builder.getI32Type());
    rewriter.replaceOp(op, builder.createOrFold<msl::PtrAddOp>(adaptor.getPtr(), offset));
    return success();
  }
};

struct PtrToIntPattern : RegisterPattern<tt::PtrToIntOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::PtrToIntOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value address = msl::PtrToIntOp::create(builder, adaptor.getSrc());
    rewriter.replaceOp(op, builder.castIntegers(address, op.getType()));
    return success();
  }
};

struct IntToPtrPattern : RegisterPattern<tt::IntToPtrOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::IntToPtrOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value address = builder.castIntegers(adaptor.getSrc(), builder.getI64Type());
    rewriter.replaceOpWithNewOp<msl::IntToPtrOp>(op, convert(op.getType()), address);
    return success();
  }
};

struct BitcastPattern : RegisterPattern<tt::BitcastOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::BitcastOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = convert(op.getType());
    if (isa<msl::PtrType>(type))
      rewriter.replaceOp(
          op, rewriter.createOrFold<msl::PtrCastOp>(op.getLoc(), type, adaptor.getSrc()));
    else
      rewriter.replaceOp(
          op, rewriter.createOrFold<arith::BitcastOp>(op.getLoc(), type, adaptor.getSrc()));
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

struct FpToFpPattern : RegisterPattern<tt::FpToFpOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::FpToFpOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value value = adaptor.getSrc();
    Type type = convert(op.getType()), from = getElementTypeOrSelf(value.getType());
    Type to = getElementTypeOrSelf(type);
    unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
    if (from == to) {
      rewriter.replaceOp(op, value);
    } else if (fromWidth < toWidth) {
      rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, type, value);
    } else if (fromWidth == toWidth) {
      Value wide = arith::ExtFOp::create(builder, withElement(type, builder.getF32Type()), value);
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, wide);
    } else if (op.getRounding() == tt::RoundingMode::RTZ) {
      rewriter.replaceOp(op, truncateBits(builder, value, type));
    } else {
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, type, value);
    }
    return success();
  }

private:
  /// Rounds fp32 towards zero to bfloat by taking the upper half of its bits. A NaN stays a NaN.
  static Value truncateBits(RegisterBuilder &builder, Value value, Type type) {
    Type i32 = withElement(type, builder.getI32Type()),
         i16 = withElement(type, builder.getI16Type());
    Value bits = arith::BitcastOp::create(builder, i32, value);
    Value upper = arith::ShRUIOp::create(builder, bits, builder.constant(i32, 16));
    Value half = arith::TruncIOp::create(builder, i16, upper);
    // A NaN whose bits are all in the lower half would become an infinity.
    Value isNaN = arith::CmpFOp::create(builder, arith::CmpFPredicate::UNO, value, value);
    Value quiet = arith::OrIOp::create(builder, half, builder.constant(i16, 0x40));
    half = arith::SelectOp::create(builder, isNaN, quiet, half);
    return arith::BitcastOp::create(builder, type, half);
  }
};

struct ClampPattern : RegisterPattern<tt::ClampFOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::ClampFOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value x = adaptor.getX(), low = adaptor.getMin(), high = adaptor.getMax();
    if (op.getPropagateNan() == tt::PropagateNan::ALL) {
      // The bounds are numbers, so only a NaN in x has to be kept.
      Value raised = arith::MaximumFOp::create(rewriter, op.getLoc(), x, low);
      rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, raised, high);
    } else {
      Value raised = arith::MaxNumFOp::create(rewriter, op.getLoc(), x, low);
      rewriter.replaceOpWithNewOp<arith::MinNumFOp>(op, raised, high);
    }
    return success();
  }
};

struct MulhiPattern : RegisterPattern<tt::MulhiUIOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::MulhiUIOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<msl::MulhiOp>(op, adaptor.getX(), adaptor.getY(),
                                              /*is_unsigned=*/true);
    return success();
  }
};

/// Replaces an operation by another one with the same operands.
template <typename From, typename To> struct RenamePattern : RegisterPattern<From> {
  using RegisterPattern<From>::RegisterPattern;

  LogicalResult matchAndRewrite(From op, typename From::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, adaptor.getOperands());
    return success();
  }
};

//===----------------------------------------------------------------------===//
// arith and math
//===----------------------------------------------------------------------===//

/// The index type has 32 bits here. Only lifted control flow uses it.
template <typename Op, typename Extension> struct IndexCastPattern : RegisterPattern<Op> {
  using RegisterPattern<Op>::RegisterPattern;

  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value value = adaptor.getIn();
    Type type = this->convert(op.getType());
    unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
    unsigned to = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    if (from < to)
      rewriter.replaceOpWithNewOp<Extension>(op, type, value);
    else if (from > to)
      rewriter.replaceOpWithNewOp<arith::TruncIOp>(op, type, value);
    else
      rewriter.replaceOp(op, value);
    return success();
  }
};

/// A comparison whose results are equal in groups of neighbours is made once for each group.
struct EqualConditionsPattern : RegisterPattern<arith::CmpIOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(arith::CmpIOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto groups = op->getAttrOfType<DenseI64ArrayAttr>(ttm::TTMDialect::getEqualAttrName());
    std::optional<LinearLayout> layout = ttm::getLayout(op.getType());
    if (!groups || !layout || groups.size() != layout->getRank())
      return failure();
    uint32_t equal = layout->equalRegisters(groups);
    if (!equal)
      return failure();
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value condition = arith::CmpIOp::create(builder, op.getPredicate(),
                                            builder.registersWithout(adaptor.getLhs(), equal),
                                            builder.registersWithout(adaptor.getRhs(), equal));
    SmallVector<int64_t> bases;
    int64_t next = 1;
    for (uint32_t bit = 1; bit < layout->getNumRegisters(); bit <<= 1) {
      bases.push_back(equal & bit ? 0 : next);
      if (!(equal & bit))
        next <<= 1;
    }
    rewriter.replaceOp(op, builder.permute(condition, bases));
    return success();
  }
};

/// All other operations of arith and math mean the same on registers as on tiles.
struct SameMeaningPattern : ConversionPattern {
  SameMeaningPattern(const TTMToMSLTypes &types, MLIRContext *context)
      : ConversionPattern(types, MatchAnyOpTypeTag(), /*benefit=*/0, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || op->getNumRegions())
      return failure();
    SmallVector<Type> results;
    if (failed(getTypeConverter()->convertTypes(op->getResultTypes(), results)))
      return failure();
    Operation *converted = op->cloneWithoutRegions();
    converted->setOperands(operands);
    for (auto [result, type] : llvm::zip(converted->getResults(), results))
      result.setType(type);
    rewriter.replaceOp(op, rewriter.insert(converted));
    return success();
  }
};

} // namespace

void populateElementwisePatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<ConstantPattern, PoisonPattern, AddPtrPattern, PtrToIntPattern, IntToPtrPattern,
               BitcastPattern, FpToFpPattern, ClampPattern, MulhiPattern,
               RenamePattern<tt::PreciseDivFOp, msl::PreciseDivOp>,
               RenamePattern<tt::ApproxDivFOp, arith::DivFOp>,
               RenamePattern<tt::PreciseSqrtOp, msl::PreciseSqrtOp>,
               IndexCastPattern<arith::IndexCastOp, arith::ExtSIOp>,
               IndexCastPattern<arith::IndexCastUIOp, arith::ExtUIOp>, EqualConditionsPattern,
               SameMeaningPattern>(types, patterns.getContext());
  patterns.add<AssumePattern>(patterns.getContext());
}

} // namespace triton_metal
