// Atomics: of the threads that hold copies of an element, the first updates memory.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

static msl::AtomicKind convertKind(tt::RMWOp kind) {
  switch (kind) {
  case tt::RMWOp::AND:
    return msl::AtomicKind::And;
  case tt::RMWOp::OR:
    return msl::AtomicKind::Or;
  case tt::RMWOp::XOR:
    return msl::AtomicKind::Xor;
  case tt::RMWOp::ADD:
    return msl::AtomicKind::Add;
  case tt::RMWOp::FADD:
    return msl::AtomicKind::FAdd;
  case tt::RMWOp::MAX:
    return msl::AtomicKind::Max;
  case tt::RMWOp::MIN:
    return msl::AtomicKind::Min;
  case tt::RMWOp::UMAX:
    return msl::AtomicKind::UMax;
  case tt::RMWOp::UMIN:
    return msl::AtomicKind::UMin;
  case tt::RMWOp::XCHG:
    return msl::AtomicKind::Exchange;
  }
  llvm_unreachable("covered");
}

/// What an atomic asks of the accesses around it. Among the threads of one program (`cta`) the
/// order is that of the program: barriers see to it wherever threads meet. No other device and no
/// CPU takes part in a launch, so `sys` is `gpu`.
static msl::MemoryOrder convertOrder(tt::MemSemantic sem, tt::MemSyncScope scope) {
  if (scope == tt::MemSyncScope::CTA)
    return msl::MemoryOrder::Relaxed;
  switch (sem) {
  case tt::MemSemantic::RELAXED:
    return msl::MemoryOrder::Relaxed;
  case tt::MemSemantic::ACQUIRE:
    return msl::MemoryOrder::Acquire;
  case tt::MemSemantic::RELEASE:
    return msl::MemoryOrder::Release;
  case tt::MemSemantic::ACQUIRE_RELEASE:
    return msl::MemoryOrder::AcqRel;
  }
  llvm_unreachable("covered");
}

namespace {

template <typename Atomic> struct AtomicPattern : RegisterPattern<Atomic> {
  using RegisterPattern<Atomic>::RegisterPattern;

protected:
  /// Replaces the operation by an update in the threads that own data. A result that is used is in
  /// them or in their `ttm.in_first_copies`.
  LogicalResult replace(Atomic op, ConversionPatternRewriter &rewriter,
                        llvm::function_ref<Value(RegisterBuilder &)> update) const {
    RegisterBuilder builder = this->buildAt(op.getLoc(), rewriter);
    msl::ThreadSet owners = builder.getOwners(ttm::getLayout(op.getValue()));
    if (owners.contains(msl::InThreadsOp::getThreadsIn(op->getBlock()))) {
      rewriter.replaceOp(op, update(builder));
      return success();
    }
    if (!op.use_empty())
      return op.emitOpError("has its result in one of the threads that hold copies of it; "
                            "ttm-broadcast-atomics brings it to the others");
    builder.inThreads(owners, [&] { update(builder); });
    rewriter.eraseOp(op);
    return success();
  }
};

struct AtomicRMWPattern : AtomicPattern<ttm::AtomicRMWOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(ttm::AtomicRMWOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value value = adaptor.getValue();
    return replace(op, rewriter, [&](RegisterBuilder &builder) -> Value {
      return msl::AtomicRMWOp::create(builder, value.getType(), convertKind(op.getKind()),
                                      adaptor.getBase(), adaptor.getOffsets(), value,
                                      adaptor.getMask(), convertOrder(op.getSem(), op.getScope()));
    });
  }
};

struct AtomicCASPattern : AtomicPattern<ttm::AtomicCASOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(ttm::AtomicCASOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value base = adaptor.getBase(), compare = adaptor.getCompare(), value = adaptor.getValue();
    Type type = value.getType();
    bool isFloat = isa<FloatType>(getElementTypeOrSelf(type));
    return replace(op, rewriter, [&](RegisterBuilder &builder) -> Value {
      if (isFloat) {
        // Bits are compared, as on other devices.
        Type i32 = builder.getI32Type(), bits = withElement(type, i32);
        compare = arith::BitcastOp::create(builder, bits, compare);
        value = arith::BitcastOp::create(builder, bits, value);
        base = msl::PtrCastOp::create(builder, msl::PtrType::get(i32, msl::AddressSpace::Device),
                                      base);
      }
      Value result =
          msl::AtomicCASOp::create(builder, value.getType(), base, adaptor.getOffsets(), compare,
                                   value, Value(), convertOrder(op.getSem(), op.getScope()));
      return isFloat ? arith::BitcastOp::create(builder, type, result).getResult() : result;
    });
  }
};

/// A region that the first of the threads run which hold copies.
struct InFirstCopiesPattern : RegisterPattern<ttm::InFirstCopiesOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(ttm::InFirstCopiesOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> results;
    if (failed(types().convertTypes(op.getResultTypes(), results)))
      return failure();
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    auto region = msl::InThreadsOp::create(builder, builder.getOwners(op.getLayout().getLayout()),
                                           results, /*addBlock=*/false);
    rewriter.inlineRegionBefore(op.getBody(), region.getBody(), region.getBody().end());
    rewriter.replaceOp(op, region);
    return success();
  }
};

} // namespace

void populateAtomicPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<AtomicRMWPattern, AtomicCASPattern, InFirstCopiesPattern>(types,
                                                                         patterns.getContext());
}

} // namespace triton_metal
