// Folds and canonical forms of the operations on values.

#include "dialect/tt/TT.h"

#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

/// Reshapes a splat constant or poison; null for other attributes.
static Attribute reshapeSplat(Attribute attr, Type type) {
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(attr))
    return splat.resizeSplat(cast<ShapedType>(type));
  return isa_and_present<ub::PoisonAttr>(attr) ? attr : Attribute();
}

/// Keeps the element values of a dense attribute under a row-major reshape, splat or not.
static Attribute reshapeDense(Attribute attr, Type type) {
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(attr))
    return dense.reshape(cast<ShapedType>(type));
  return reshapeSplat(attr, type);
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

OpFoldResult MakeRangeOp::fold(FoldAdaptor) {
  // A range of one element is a constant.
  if (getType().getNumElements() == 1)
    return DenseElementsAttr::get(getType(), APInt(32, static_cast<int32_t>(getStart()), true));
  return {};
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  Attribute value = adaptor.getSrc();
  if (isa_and_present<IntegerAttr, FloatAttr>(value))
    return SplatElementsAttr::get(cast<ShapedType>(getType()), ArrayRef<Attribute>(value));
  if (isa_and_present<ub::PoisonAttr>(value))
    return value;
  return {};
}

OpFoldResult UnsplatOp::fold(FoldAdaptor adaptor) {
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(adaptor.getSrc()))
    return *dense.getValues<Attribute>().begin();
  if (auto splat = getSrc().getDefiningOp<SplatOp>())
    return splat.getSrc();
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  return reshapeSplat(adaptor.getSrc(), getType());
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) {
  return reshapeDense(adaptor.getSrc(), getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType() && !getAllowReorder())
    return getSrc();
  return reshapeDense(adaptor.getSrc(), getType());
}

OpFoldResult TransOp::fold(FoldAdaptor adaptor) {
  // Folds the identity, and a transposition that undoes the one before it.
  ArrayRef<int32_t> order = getOrder();
  auto isIdentity = [](auto range) {
    return llvm::all_of(llvm::enumerate(range),
                        [](auto item) { return int64_t(item.index()) == item.value(); });
  };
  if (isIdentity(order) && getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<TransOp>())
    if (isIdentity(llvm::map_range(order, [&](int32_t dim) { return inner.getOrder()[dim]; })) &&
        inner.getSrc().getType() == getType())
      return inner.getSrc();
  return reshapeSplat(adaptor.getSrc(), getType());
}

OpFoldResult JoinOp::fold(FoldAdaptor adaptor) {
  if (adaptor.getLhs() && adaptor.getLhs() == adaptor.getRhs())
    return reshapeSplat(adaptor.getLhs(), getType());
  return {};
}

LogicalResult SplitOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  if (auto join = getSrc().getDefiningOp<JoinOp>()) {
    if (join.getLhs().getType() != getOutLHS().getType())
      return failure();
    results.push_back(join.getLhs());
    results.push_back(join.getRhs());
    return success();
  }
  Attribute half = reshapeSplat(adaptor.getSrc(), getOutLHS().getType());
  if (!half)
    return failure();
  results.append(2, half);
  return success();
}

OpFoldResult MulhiUIOp::fold(FoldAdaptor adaptor) {
  // Constants, and zero.
  auto value = [](Attribute attr) -> std::optional<APInt> {
    if (auto splat = dyn_cast_if_present<SplatElementsAttr>(attr))
      attr = splat.getSplatValue<Attribute>();
    if (auto integer = dyn_cast_if_present<IntegerAttr>(attr))
      return integer.getValue();
    return std::nullopt;
  };
  std::optional<APInt> x = value(adaptor.getX()), y = value(adaptor.getY());
  if (x && x->isZero())
    return getX();
  if (y && y->isZero())
    return getY();
  if (!x || !y)
    return {};
  APInt high = llvm::APIntOps::mulhu(*x, *y);
  if (auto tensor = dyn_cast<ShapedType>(getType()))
    return DenseElementsAttr::get(tensor, high);
  return IntegerAttr::get(getType(), high);
}

OpFoldResult BitcastOp::fold(FoldAdaptor adaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto inner = getSrc().getDefiningOp<BitcastOp>())
    if (inner.getSrc().getType() == getType())
      return inner.getSrc();
  // Constants.
  Type element = getElementTypeOrSelf(getType());
  auto convert = [&](Attribute attr) -> Attribute {
    APInt bits;
    if (auto integer = dyn_cast_if_present<IntegerAttr>(attr))
      bits = integer.getValue();
    else if (auto number = dyn_cast_if_present<FloatAttr>(attr))
      bits = number.getValue().bitcastToAPInt();
    else
      return {};
    if (auto type = dyn_cast<FloatType>(element))
      return FloatAttr::get(type, APFloat(type.getFloatSemantics(), bits));
    if (isa<IntegerType>(element))
      return IntegerAttr::get(element, bits);
    return {};
  };
  if (auto splat = dyn_cast_if_present<SplatElementsAttr>(adaptor.getSrc())) {
    Attribute value = convert(splat.getSplatValue<Attribute>());
    return value ? OpFoldResult(SplatElementsAttr::get(cast<ShapedType>(getType()),
                                                       ArrayRef<Attribute>(value)))
                 : OpFoldResult();
  }
  return convert(adaptor.getSrc());
}

OpFoldResult IntToPtrOp::fold(FoldAdaptor) {
  // The address of a pointer, converted back to the same type of pointer.
  if (auto inner = getSrc().getDefiningOp<PtrToIntOp>())
    if (inner.getSrc().getType() == getType())
      return inner.getSrc();
  return {};
}

OpFoldResult FpToFpOp::fold(FoldAdaptor) {
  return getSrc().getType() == getType() ? getSrc() : Value();
}

OpFoldResult AddPtrOp::fold(FoldAdaptor adaptor) {
  return matchPattern(adaptor.getOffset(), m_Zero()) ? getPtr() : Value();
}

//===----------------------------------------------------------------------===//
// Canonical forms: what only moves elements goes as near as it can to the scalar that it moves
//===----------------------------------------------------------------------===//

namespace {

/// A splat whose shape is changed becomes a splat of the new shape.
template <typename Op> struct OfSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto splat = op.getSrc().template getDefiningOp<SplatOp>();
    if (!splat)
      return failure();
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getType(), splat.getSrc());
    return success();
  }
};

/// Merges two broadcasts.
struct BroadcastOfBroadcast : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<BroadcastOp>();
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getSrc());
    return success();
  }
};

/// Inserts a dimension before the broadcast, so that the smaller tile is changed.
struct ExpandDimsOfBroadcast : OpRewritePattern<ExpandDimsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ExpandDimsOp op, PatternRewriter &rewriter) const override {
    auto broadcast = op.getSrc().getDefiningOp<BroadcastOp>();
    if (!broadcast || op.getType().getEncoding())
      return failure();
    Value expanded = ExpandDimsOp::create(rewriter, op.getLoc(), broadcast.getSrc(), op.getAxis());
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), expanded);
    return success();
  }
};

/// Merges two reshapes. The result may be reordered if either of them could.
struct ReshapeOfReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<ReshapeOp>();
    // All uses of a reshape that may be reordered must agree on one order, so only its last use is
    // merged.
    if (!inner || (inner.getAllowReorder() && !inner->hasOneUse()))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getSrc(),
                                           op.getAllowReorder() || inner.getAllowReorder(),
                                           op.getEfficientLayout());
    return success();
  }
};

/// Merges two transpositions.
struct TransOfTrans : OpRewritePattern<TransOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSrc().getDefiningOp<TransOp>();
    if (!inner)
      return failure();
    auto order =
        llvm::map_to_vector(op.getOrder(), [&](int32_t dim) { return inner.getOrder()[dim]; });
    rewriter.replaceOpWithNewOp<TransOp>(op, op.getType(), inner.getSrc(),
                                         rewriter.getDenseI32ArrayAttr(order));
    return success();
  }
};

} // namespace

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<BroadcastOp>, BroadcastOfBroadcast>(context);
}

void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<ExpandDimsOp>, ExpandDimsOfBroadcast>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<ReshapeOp>, ReshapeOfReshape>(context);
}

void TransOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<OfSplat<TransOp>, TransOfTrans>(context);
}
