// Tests whether two bits of the thread's position differ: see MSLPasses.td.

#include "dialect/msl/MSL.h"
#include "dialect/msl/Simdgroup.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLTESTPOSITIONS
#include "transforms/Passes.h.inc"

namespace {

/// The bit of the position, the lane's bits before the SIMD-group's, that a number is, 0 or 1, in
/// all registers.
std::optional<unsigned> getBit(Value value) {
  while (isa_and_nonnull<msl::SplatOp, msl::PermuteRegistersOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto index = value.getDefiningOp<msl::ThreadIndexOp>();
  if (!index)
    return std::nullopt;
  std::optional<unsigned> only;
  SmallVector<int32_t, 10> numbers(index.getLanes());
  numbers.resize(kLaneBits);
  llvm::append_range(numbers, index.getSimdgroups());
  for (auto [bit, number] : llvm::enumerate(numbers)) {
    if (!number)
      continue;
    if (number != 1 || only)
      return std::nullopt;
    only = bit;
  }
  return only;
}

/// The thread's position: its lane if this has all of the bits.
Value getPosition(OpBuilder &builder, Location loc, unsigned highest, unsigned simdgroupBits) {
  if (highest < kLaneBits)
    return msl::LaneOp::create(builder, loc);
  SmallVector<int32_t> lanes, simdgroups;
  for (unsigned bit = 0; bit < kLaneBits + simdgroupBits; ++bit)
    (bit < kLaneBits ? lanes : simdgroups).push_back(int32_t(1) << bit);
  return msl::ThreadIndexOp::create(builder, loc, builder.getI32Type(), lanes, simdgroups);
}

void rewrite(arith::CmpIOp op) {
  if (op.getPredicate() != arith::CmpIPredicate::ne &&
      op.getPredicate() != arith::CmpIPredicate::eq)
    return;
  auto both = op.getLhs().getDefiningOp<arith::XOrIOp>();
  if (!both || !getElementTypeOrSelf(both.getType()).isInteger(32) ||
      !matchPattern(op.getRhs(), m_Zero()))
    return;
  std::optional<unsigned> a = getBit(both.getLhs()), b = getBit(both.getRhs());
  if (!a || !b || *a == *b)
    return;
  unsigned high = std::max(*a, *b), low = std::min(*a, *b);
  auto kernel = op->getParentOfType<msl::KernelOp>();
  OpBuilder builder(op);
  Location loc = builder.getUnknownLoc();
  auto constant = [&](int32_t number) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
  };
  Value position = getPosition(builder, loc, high, llvm::Log2_64(kernel.getThreads() / 32));
  Value isSet = arith::ShLIOp::create(builder, loc, position, constant(31 - high));
  isSet = arith::ShRSIOp::create(builder, loc, isSet, constant(31));
  Value differences = arith::XOrIOp::create(builder, loc, position, isSet);
  Value bit = arith::AndIOp::create(builder, loc, differences, constant(int32_t(1) << low));
  Value test = arith::CmpIOp::create(builder, op.getLoc(), op.getPredicate(), bit, constant(0));
  if (isa<VectorType>(op.getType()))
    test = msl::SplatOp::create(builder, op.getLoc(), op.getType(), test);
  op->replaceAllUsesWith(ValueRange(test));
  op->erase();
  if (both->use_empty())
    both->erase();
}

struct MSLTestPositionsPass : impl::MSLTestPositionsBase<MSLTestPositionsPass> {
  void runOnOperation() override {
    getOperation().walk([](arith::CmpIOp op) { rewrite(op); });
  }
};

} // namespace
} // namespace triton_metal
