#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLEXPANDTHREADINDICES
#include "transforms/Passes.h.inc"

namespace {

/// The thread indices of one kernel.
class Expansion {
public:
  explicit Expansion(msl::KernelOp kernel)
      : builder(OpBuilder::atBlockBegin(&kernel.getBody().front())),
        unnamed(builder.getUnknownLoc()), lane(msl::LaneOp::create(builder, unnamed)),
        simdgroup(msl::SimdgroupOp::create(builder, unnamed)) {}
  ~Expansion() {
    for (Value position : {lane, simdgroup})
      if (position.use_empty())
        position.getDefiningOp()->erase();
  }

  Value expand(msl::ThreadIndexOp op) {
    Value &sum = sums[{op.getLanesAttr(), op.getSimdgroupsAttr()}];
    if (!sum) {
      sum = build(op);
      // The sum has the name of the first index that needs it.
      if (Operation *defining = sum.getDefiningOp();
          isa<NameLoc>(op.getLoc()) && defining && sum != lane && sum != simdgroup)
        defining->setLoc(op.getLoc());
    }
    return sum;
  }

  Value getLane() const { return lane; }
  Value getSimdgroup() const { return simdgroup; }

private:
  Value build(msl::ThreadIndexOp op) {
    Value sum;
    addTerms(sum, simdgroup, op.getSimdgroups());
    addTerms(sum, lane, op.getLanes());
    return sum ? sum : constant(0);
  }

  /// Adjacent bits whose values double are one field of the position, multiplied by the first
  /// value.
  void addTerms(Value &sum, Value position, ArrayRef<int32_t> values) {
    for (unsigned bit = 0; bit < values.size();) {
      if (!values[bit]) {
        ++bit;
        continue;
      }
      unsigned end = bit + 1;
      while (end < values.size() && values[end] == values[end - 1] * 2)
        ++end;
      Value term = position;
      if (bit > 0)
        term = arith::ShRUIOp::create(builder, unnamed, term, constant(bit));
      if (end < values.size())
        term = arith::AndIOp::create(builder, unnamed, term, constant((1 << (end - bit)) - 1));
      if (values[bit] != 1)
        term = arith::MulIOp::create(builder, unnamed, term, constant(values[bit]));
      sum = sum ? arith::AddIOp::create(builder, unnamed, sum, term).getResult() : term;
      bit = end;
    }
  }

  Value constant(int32_t value) {
    return arith::ConstantOp::create(builder, unnamed, builder.getI32IntegerAttr(value));
  }

  OpBuilder builder;
  Location unnamed;
  /// The thread's positions, computed once.
  Value lane, simdgroup;
  DenseMap<std::pair<Attribute, Attribute>, Value> sums;
};

struct MSLExpandThreadIndicesPass : impl::MSLExpandThreadIndicesBase<MSLExpandThreadIndicesPass> {
  void runOnOperation() override {
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>()) {
      SmallVector<Operation *> positions;
      kernel.walk([&](Operation *op) {
        if (isa<msl::ThreadIndexOp, msl::LaneOp, msl::SimdgroupOp>(op))
          positions.push_back(op);
      });
      Expansion expansion(kernel);
      for (Operation *op : positions) {
        Value value = isa<msl::LaneOp>(op)        ? expansion.getLane()
                      : isa<msl::SimdgroupOp>(op) ? expansion.getSimdgroup()
                                                  : expansion.expand(cast<msl::ThreadIndexOp>(op));
        op->getResult(0).replaceAllUsesWith(value);
      }
      // They are erased last, because the insertion point may be at one of them.
      for (Operation *op : positions)
        op->erase();
    }
  }
};

} // namespace
} // namespace triton_metal
