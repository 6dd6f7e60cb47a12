// Verifiers, effects and canonical forms of the operations on memory.

#include "dialect/tt/TT.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

//===----------------------------------------------------------------------===//
// load
//===----------------------------------------------------------------------===//

void LoadOp::build(OpBuilder &builder, OperationState &state, Value ptr, Value mask, Value other) {
  build(builder, state, getPointeeTypeOf(ptr.getType()), ptr, mask, other, CacheModifier::NONE,
        EvictionPolicy::NORMAL, CachePolicyAttr(), false, DenseI32ArrayAttr(), IntegerAttr());
}

void LoadOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable());
  // A volatile access is neither removed nor moved across another one.
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get());
}

namespace {

/// Removes a mask that is true everywhere.
struct DropTrueLoadMask : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const override {
    if (!isConstantBool(op.getMask(), true))
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getMaskMutable().clear();
      op.getOtherMutable().clear();
    });
    return success();
  }
};

/// Replaces a load whose mask is false everywhere by its other value.
struct DropFalseLoad : OpRewritePattern<LoadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LoadOp op, PatternRewriter &rewriter) const override {
    if (!isConstantBool(op.getMask(), false) || !op.getOther())
      return failure();
    rewriter.replaceOp(op, op.getOther());
    return success();
  }
};

/// Erases a store whose mask is false everywhere, and removes a mask that is true everywhere.
struct FoldStoreMask : OpRewritePattern<StoreOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(StoreOp op, PatternRewriter &rewriter) const override {
    if (isConstantBool(op.getMask(), false)) {
      rewriter.eraseOp(op);
      return success();
    }
    if (!isConstantBool(op.getMask(), true))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
    return success();
  }
};

} // namespace

void LoadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropTrueLoadMask, DropFalseLoad>(context);
}

void StoreOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldStoreMask>(context);
}

void StoreOp::build(OpBuilder &builder, OperationState &state, Value ptr, Value value, Value mask) {
  build(builder, state, ptr, value, mask, CacheModifier::NONE, EvictionPolicy::NORMAL,
        CachePolicyAttr(), DenseI32ArrayAttr());
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

LogicalResult AtomicRMWOp::verify() {
  Type element = getElementTypeOrSelf(getVal().getType());
  // Floats of 8 bits are only moved.
  bool floats = isa<FloatType>(element) && element.getIntOrFloatBitWidth() >= 16;
  bool fits = true;
  switch (getAtomicRmwOp()) {
  case RMWOp::FADD:
    fits = floats;
    break;
  case RMWOp::XCHG:
    break;
  // What reductions into a tensor descriptor are: of floats, NaN counts as missing.
  case RMWOp::MAX:
  case RMWOp::MIN:
    fits = floats || isa<IntegerType>(element);
    break;
  default:
    fits = isa<IntegerType>(element);
  }
  if (!fits)
    return emitOpError() << "'" << stringifyRMWOp(getAtomicRmwOp()) << "' does not work on "
                         << element;
  return success();
}
