// Assertions in combine functions, and prints of floats of 8 bits: see Passes.td.

#include "dialect/tt/TT.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTPREPAREMESSAGES
#include "transforms/Passes.h.inc"

namespace {

/// The type with another element.
Type withElement(Type type, Type element) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? Type(tile.clone(element)) : element;
}

/// Brings assertions out of the region of a reduction or a scan, which runs for pairs of elements:
/// one more operand collects a bit for each assertion that has failed.
template <typename CombineOp, typename ReturnOp> void hoistAssertions(CombineOp op) {
  SmallVector<tt::AssertOp> assertions;
  op.getCombineOp().walk([&](tt::AssertOp assertion) { assertions.push_back(assertion); });
  // Those in branches are left to tt-regions-on-tiles.
  Block *body = &op.getCombineOp().front();
  if (assertions.empty() || !op.getCombineOp().hasOneBlock() ||
      llvm::any_of(assertions,
                   [&](tt::AssertOp assertion) { return assertion->getBlock() != body; }))
    return;
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Type i32 = builder.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(value)));
  };
  auto tile = cast<RankedTensorType>(op.getSrcs().front().getType()).clone(i32);
  SmallVector<Value> sources(op.getSrcs());
  sources.push_back(arith::ConstantOp::create(builder, loc, tile, builder.getZeroAttr(tile)));
  OperationState state(loc, op->getName());
  state.addOperands(sources);
  state.addAttributes(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  SmallVector<Type> results(op->getResultTypes());
  results.push_back(withElement(results.front(), i32));
  state.addTypes(results);
  state.addRegion()->takeBody(op.getCombineOp());
  Operation *wider = builder.create(state);

  // The region's arguments: the left values, then the right ones.
  Block &block = wider->getRegion(0).front();
  unsigned values = block.getNumArguments() / 2;
  Value left = block.insertArgument(values, i32, loc);
  Value right = block.addArgument(i32, loc);
  auto end = cast<ReturnOp>(block.getTerminator());
  builder.setInsertionPoint(end);
  Value bits = arith::OrIOp::create(builder, loc, left, right);
  for (auto [index, assertion] : llvm::enumerate(assertions)) {
    Value condition = assertion.getCondition();
    Value zero = arith::ConstantOp::create(
        builder, loc, cast<TypedAttr>(builder.getZeroAttr(condition.getType())));
    Value failed = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, condition, zero);
    // From the 32nd on, assertions share a bit.
    Value bit = constant(int64_t(1) << std::min<size_t>(index, 31));
    Value mark = arith::SelectOp::create(builder, loc, failed, bit, constant(0));
    bits = arith::OrIOp::create(builder, loc, bits, mark);
  }
  end->insertOperands(end->getNumOperands(), bits);

  builder.setInsertionPointAfter(wider);
  Value collected = wider->getResults().back();
  auto repeated = [&](Value value) -> Value {
    auto type = dyn_cast<RankedTensorType>(collected.getType());
    return type ? Value(tt::SplatOp::create(builder, loc, type, value)) : value;
  };
  for (auto [index, assertion] : llvm::enumerate(assertions)) {
    Value bit = constant(int64_t(1) << std::min<size_t>(index, 31));
    Value mark = arith::AndIOp::create(builder, loc, collected, repeated(bit));
    Value holds =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, mark, repeated(constant(0)));
    tt::AssertOp::create(builder, assertion.getLoc(), holds, assertion.getMessage());
    assertion.erase();
  }
  op->replaceAllUsesWith(wider->getResults().drop_back());
  op->erase();
}

/// Whether the type is a float of 8 bits.
bool isSmallFloat(Type type) {
  auto number = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return number && number.getWidth() == 8;
}

/// Prints floats of 8 bits as wider ones, or their bits.
void widenOperands(tt::PrintOp print) {
  OpBuilder builder(print);
  for (OpOperand &operand : print->getOpOperands()) {
    Value value = operand.get();
    if (!isSmallFloat(value.getType()))
      continue;
    Type type = withElement(value.getType(), print.getHex() ? Type(builder.getI8Type())
                                                            : Type(builder.getF32Type()));
    operand.set(print.getHex() ? Value(tt::BitcastOp::create(builder, print.getLoc(), type, value))
                               : Value(tt::FpToFpOp::create(builder, print.getLoc(), type, value,
                                                            tt::RoundingModeAttr())));
  }
}

struct TTPrepareMessagesPass : impl::TTPrepareMessagesBase<TTPrepareMessagesPass> {
  void runOnOperation() override {
    SmallVector<Operation *> combines;
    getOperation().walk([&](tt::AssertOp assertion) {
      Operation *around = assertion->getParentOp();
      if (isa<tt::ReduceOp, tt::ScanOp>(around) && !llvm::is_contained(combines, around))
        combines.push_back(around);
    });
    for (Operation *op : combines) {
      if (auto reduce = dyn_cast<tt::ReduceOp>(op))
        hoistAssertions<tt::ReduceOp, tt::ReduceReturnOp>(reduce);
      else
        hoistAssertions<tt::ScanOp, tt::ScanReturnOp>(cast<tt::ScanOp>(op));
    }
    bool changes = !combines.empty();
    getOperation().walk([&](tt::PrintOp print) {
      if (llvm::any_of(print->getOperandTypes(), isSmallFloat)) {
        widenOperands(print);
        changes = true;
      }
    });
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
