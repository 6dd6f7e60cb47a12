#include "dialect/tt/TT.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTLEGALIZEATOMICS
#include "transforms/Passes.h.inc"

namespace {

/// The type with another element: of a number, a pointer's target, or a tile of either.
Type withElement(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

class AtomicRewriter {
public:
  explicit AtomicRewriter(MLIRContext *context) : builder(context) {}

  void rewrite(tt::AtomicLoadOp op) {
    builder.setInsertionPoint(op);
    Value old =
        load(op.getLoc(), op.getPtr(), op.getType(), op.getMask(), op.getSem(), op.getScope());
    op.getResult().replaceAllUsesWith(old);
    op.erase();
  }

  void rewrite(tt::AtomicStoreOp op) {
    builder.setInsertionPoint(op);
    tt::AtomicRMWOp::create(builder, op.getLoc(), op.getValue().getType(), tt::RMWOp::XCHG,
                            op.getPtr(), op.getValue(), op.getMask(), op.getSem(), op.getScope());
    op.erase();
  }

  /// Metal has no clock, so that a poll looks once and its time is over then.
  void rewrite(tt::AtomicPollOp op) {
    builder.setInsertionPoint(op);
    Location loc = op.getLoc();
    Value expected = op.getExpected();
    Value old = load(loc, op.getPtr(), expected.getType(), Value(), op.getSem(), op.getScope());
    op.getResult().replaceAllUsesWith(
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, old, expected));
    op.erase();
  }

private:
  /// An update that leaves what it finds. It finds the newest value, as a plain atomic load in
  /// Metal need not.
  Value load(Location loc, Value pointer, Type type, Value mask, tt::MemSemantic sem,
             tt::MemSyncScope scope) {
    Type element = getElementTypeOrSelf(type);
    Type bits = element;
    if (isa<FloatType>(element)) {
      bits = builder.getIntegerType(element.getIntOrFloatBitWidth());
      auto from = cast<tt::PtrType>(getElementTypeOrSelf(pointer.getType()));
      pointer = tt::BitcastOp::create(
          builder, loc,
          withElement(pointer.getType(), tt::PtrType::get(bits, from.getAddressSpace())), pointer);
    }
    Type bitsType = withElement(type, bits);
    Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(bitsType));
    Value old = tt::AtomicRMWOp::create(builder, loc, bitsType, tt::RMWOp::OR, pointer, zero, mask,
                                        sem, scope);
    return bits == element ? old : tt::BitcastOp::create(builder, loc, type, old).getResult();
  }

  OpBuilder builder;
};

/// Whether an access can be an update of numbers.
LogicalResult check(Operation *op) {
  Value pointer = op->getOperand(0);
  Type pointee = tt::getPointeeTypeOf(pointer.getType());
  bool isPoll = isa<tt::AtomicPollOp>(op);
  if (isPoll && op->getOperand(1).getType() != pointee)
    return op->emitOpError("compares ")
           << pointee << " with " << op->getOperand(1).getType() << "; they must have one type";
  Type element = getElementTypeOrSelf(pointee);
  if (isPoll ? isa<IntegerType>(element) : element.isIntOrFloat())
    return success();
  return op->emitOpError("accesses ") << element << " atomically; "
                                      << (isPoll ? "integers" : "integers and floats") << " can be";
}

struct TTLegalizeAtomicsPass : impl::TTLegalizeAtomicsBase<TTLegalizeAtomicsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> atomics;
    getOperation().walk([&](Operation *op) {
      if (isa<tt::AtomicLoadOp, tt::AtomicStoreOp, tt::AtomicPollOp>(op))
        atomics.push_back(op);
    });
    if (atomics.empty())
      return markAllAnalysesPreserved();
    AtomicRewriter rewriter(&getContext());
    for (Operation *op : atomics) {
      if (failed(check(op)))
        return signalPassFailure();
      if (auto load = dyn_cast<tt::AtomicLoadOp>(op))
        rewriter.rewrite(load);
      else if (auto store = dyn_cast<tt::AtomicStoreOp>(op))
        rewriter.rewrite(store);
      else
        rewriter.rewrite(cast<tt::AtomicPollOp>(op));
    }
  }
};

} // namespace
} // namespace triton_metal
