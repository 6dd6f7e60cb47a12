// Atomics: of the threads that hold copies of an element, the first updates memory.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

static msl::AtomicKind convertKind(tt::RMWOp kind, Type element) {
  using msl::AtomicKind;
  auto choose = [&](AtomicKind integers, AtomicKind floats, AtomicKind bfloats,
                    AtomicKind doubles) {
    return element.isBF16()          ? bfloats
           : element.isF64()         ? doubles
           : isa<FloatType>(element) ? floats
                                     : integers;
  };
  switch (kind) {
  case tt::RMWOp::AND:
    return AtomicKind::And;
  case tt::RMWOp::OR:
    return AtomicKind::Or;
  case tt::RMWOp::XOR:
    return AtomicKind::Xor;
  case tt::RMWOp::ADD:
    return AtomicKind::Add;
  case tt::RMWOp::FADD:
    return choose(AtomicKind::FAdd, AtomicKind::FAdd, AtomicKind::BFAdd, AtomicKind::DAdd);
  case tt::RMWOp::MAX:
    return choose(AtomicKind::Max, AtomicKind::FMax, AtomicKind::BFMax, AtomicKind::DMax);
  case tt::RMWOp::MIN:
    return choose(AtomicKind::Min, AtomicKind::FMin, AtomicKind::BFMin, AtomicKind::DMin);
  case tt::RMWOp::UMAX:
    return AtomicKind::UMax;
  case tt::RMWOp::UMIN:
    return AtomicKind::UMin;
  case tt::RMWOp::XCHG:
    return AtomicKind::Exchange;
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

/// What an atomic works on.
struct AtomicOperands {
  Value base, compare, value;
};

template <typename Atomic> struct AtomicPattern : RegisterPattern<Atomic> {
  using RegisterPattern<Atomic>::RegisterPattern;

protected:
  /// Replaces the operation by an update in the threads that own data. A result that is used is in
  /// them or in their `ttm.in_first_copies`. With `asBits` the update is one of integers.
  LogicalResult replace(Atomic op, AtomicOperands operands, bool asBits,
                        ConversionPatternRewriter &rewriter,
                        llvm::function_ref<Value(RegisterBuilder &, AtomicOperands)> create) const {
    RegisterBuilder builder = this->buildAt(op.getLoc(), rewriter);
    auto update = [&]() -> Value {
      Type type = operands.value.getType();
      if (!asBits)
        return create(builder, operands);
      Type integer = builder.getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth());
      Type bits = withElement(type, integer);
      AtomicOperands converted = operands;
      for (Value *operand : {&converted.compare, &converted.value})
        if (*operand)
          *operand = arith::BitcastOp::create(builder, bits, *operand);
      if (converted.base)
        converted.base = msl::PtrCastOp::create(
            builder, msl::PtrType::get(integer, msl::AddressSpace::Device), converted.base);
      return arith::BitcastOp::create(builder, type, create(builder, converted));
    };
    msl::ThreadSet owners = builder.getOwners(ttm::getLayout(op.getValue()));
    if (owners.contains(msl::InThreadsOp::getThreadsIn(op->getBlock()))) {
      rewriter.replaceOp(op, update());
      return success();
    }
    if (!op.use_empty())
      return op.emitOpError("has its result in one of the threads that hold copies of it; "
                            "ttm-broadcast-atomics brings it to the others");
    builder.inThreads(owners, [&] { update(); });
    rewriter.eraseOp(op);
    return success();
  }
};

struct AtomicRMWPattern : AtomicPattern<ttm::AtomicRMWOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(ttm::AtomicRMWOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(adaptor.getValue().getType());
    // A bfloat is its bits, which every target has, and so is a 64-bit float. So is what is only
    // exchanged.
    bool asBits =
        element.isBF16() || element.isF64() || (element.isF16() && op.getKind() == tt::RMWOp::XCHG);
    return replace(op, {adaptor.getBase(), Value(), adaptor.getValue()}, asBits, rewriter,
                   [&](RegisterBuilder &builder, AtomicOperands operands) -> Value {
                     return msl::AtomicRMWOp::create(
                         builder, operands.value.getType(), convertKind(op.getKind(), element),
                         adaptor.getOffsets(), operands.value, operands.base, adaptor.getMask(),
                         convertOrder(op.getSem(), op.getScope()));
                   });
  }
};

struct AtomicCASPattern : AtomicPattern<ttm::AtomicCASOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(ttm::AtomicCASOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // Bits are compared, as on other devices.
    bool asBits = isa<FloatType>(getElementTypeOrSelf(adaptor.getValue().getType()));
    return replace(op, {adaptor.getBase(), adaptor.getCompare(), adaptor.getValue()}, asBits,
                   rewriter, [&](RegisterBuilder &builder, AtomicOperands operands) -> Value {
                     return msl::AtomicCASOp::create(builder, operands.value.getType(),
                                                     adaptor.getOffsets(), operands.compare,
                                                     operands.value, operands.base, Value(),
                                                     convertOrder(op.getSem(), op.getScope()));
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
