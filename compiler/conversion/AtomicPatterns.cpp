// Atomics: of the threads that hold copies of an element, the first updates memory.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

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
  /// Builds the update in the threads that own data; only they have the result.
  Value inOwners(RegisterBuilder &builder, Atomic op, Type type,
                 llvm::function_ref<Value()> update) const {
    auto layout = ttm::getLayout(op.getValue());
    Value owner = layout ? builder.isFirstCopy(*layout) : builder.isFirstThread();
    if (!owner || op.use_empty()) {
      Value result;
      builder.predicated(owner, [&] { result = update(); });
      return owner ? Value() : result;
    }
    Value none = builder.zero(type);
    auto ifOp = scf::IfOp::create(builder, type, owner, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(ifOp.thenBlock());
    scf::YieldOp::create(builder, update());
    builder.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(builder, none);
    return ifOp.getResult(0);
  }

  LogicalResult replace(Atomic op, Value result, ConversionPatternRewriter &rewriter) const {
    if (result)
      rewriter.replaceOp(op, result);
    else
      rewriter.eraseOp(op);
    return success();
  }
};

struct AtomicRMWPattern : AtomicPattern<ttm::AtomicRMWOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(ttm::AtomicRMWOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value value = adaptor.getValue();
    return replace(op,
                   inOwners(builder, op, value.getType(),
                            [&]() -> Value {
                              return msl::AtomicRMWOp::create(
                                  builder, value.getType(), convertKind(op.getKind()),
                                  adaptor.getBase(), adaptor.getOffsets(), value, adaptor.getMask(),
                                  convertOrder(op.getSem(), op.getScope()));
                            }),
                   rewriter);
  }
};

struct AtomicCASPattern : AtomicPattern<ttm::AtomicCASOp> {
  using AtomicPattern::AtomicPattern;

  LogicalResult matchAndRewrite(ttm::AtomicCASOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    RegisterBuilder builder = buildAt(op.getLoc(), rewriter);
    Value base = adaptor.getBase(), compare = adaptor.getCompare(), value = adaptor.getValue();
    Type type = value.getType();
    bool isFloat = isa<FloatType>(getElementTypeOrSelf(type));
    if (isFloat) {
      // Bits are compared, as on other devices.
      Type i32 = builder.getI32Type(), bits = withElement(type, i32);
      compare = arith::BitcastOp::create(builder, bits, compare);
      value = arith::BitcastOp::create(builder, bits, value);
      base =
          msl::PtrCastOp::create(builder, msl::PtrType::get(i32, msl::AddressSpace::Device), base);
    }
    Value result = inOwners(builder, op, value.getType(), [&]() -> Value {
      return msl::AtomicCASOp::create(builder, value.getType(), base, adaptor.getOffsets(), compare,
                                      value, Value(), convertOrder(op.getSem(), op.getScope()));
    });
    if (isFloat && result)
      result = arith::BitcastOp::create(builder, type, result);
    return replace(op, result, rewriter);
  }
};

} // namespace

void populateAtomicPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<AtomicRMWPattern, AtomicCASPattern>(types, patterns.getContext());
}

} // namespace triton_metal
