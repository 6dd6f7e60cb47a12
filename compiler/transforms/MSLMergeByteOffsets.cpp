// Addresses single bytes by one offset from the buffer.

#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/ttm/LocationNames.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLMERGEBYTEOFFSETS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

bool isByte(Type type) { return !isa<VectorType>(type) && getElementBytes(type) == 1; }

class OffsetMerger {
public:
  /// Replaces the base of an access, which is a pointer plus offsets, by the pointer.
  void merge(Operation *op, OpOperand &base, MutableOperandRange offset) {
    SmallVector<Value> terms;
    Value pointer = base.get();
    bool isChained = false;
    while (Operation *step = pointer.getDefiningOp()) {
      if (auto add = dyn_cast<PtrAddOp>(step))
        terms.insert(terms.begin(), add.getOffset());
      else if (!isa<PtrCastOp>(step) || !pointsToBytes(step->getOperand(0)))
        break;
      chain.insert(step);
      isChained = true;
      pointer = step->getOperand(0);
    }
    if (!offset.empty())
      terms.push_back(offset[0].get());
    if (!isChained)
      return;
    OpBuilder builder(op);
    if (pointer.getType() != base.get().getType())
      pointer = PtrCastOp::create(builder, op->getLoc(), base.get().getType(), pointer);
    base.set(pointer);
    if (!terms.empty())
      offset.assign(add(builder, unnamed(op->getLoc()), terms));
  }

  /// Erases the pointers that nothing uses any more.
  void eraseChains() {
    for (bool erased = true; erased;) {
      erased = false;
      chain.remove_if([&](Operation *step) {
        if (!step->use_empty())
          return false;
        step->erase();
        return erased = true;
      });
    }
  }

  bool changed = false;

private:
  static bool pointsToBytes(Value pointer) {
    return isByte(cast<PtrType>(pointer.getType()).getElementType());
  }

  /// The exact sum. What fits into 32 bits together is added in 32 bits.
  Value add(OpBuilder &builder, Location loc, ArrayRef<Value> terms) {
    changed = true;
    Value narrow, wide;
    int64_t low = 0, high = 0;
    auto addTo = [&](Value &sum, Value term) {
      sum = sum ? arith::AddIOp::create(builder, loc, sum, term, arith::IntegerOverflowFlags::nsw)
                : term;
    };
    auto addWide = [&](Value term) {
      if (!term.getType().isInteger(64))
        term = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), term);
      addTo(wide, term);
    };
    // From the last one: what threads add is small.
    for (Value term : llvm::reverse(terms)) {
      if (term.getType().isInteger(32)) {
        ConstantIntRanges range = ranges.get(term);
        int64_t least = low + range.smin().getSExtValue(),
                most = high + range.smax().getSExtValue();
        if (llvm::isInt<32>(least) && llvm::isInt<32>(most)) {
          low = least;
          high = most;
          addTo(narrow, term);
          continue;
        }
      }
      addWide(term);
    }
    if (wide && narrow)
      addWide(narrow);
    return wide ? wide : narrow;
  }

  ValueRanges ranges;
  llvm::SetVector<Operation *> chain;
};

struct MSLMergeByteOffsetsPass : impl::MSLMergeByteOffsetsBase<MSLMergeByteOffsetsPass> {
  void runOnOperation() override {
    OffsetMerger merger;
    getOperation().walk([&](Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op)) {
        if (isByte(read.getType()))
          merger.merge(op, read.getBaseMutable(), read.getOffsetMutable());
      } else if (auto write = dyn_cast<WriteOp>(op)) {
        if (isByte(write.getValue().getType()))
          merger.merge(op, write.getBaseMutable(), write.getOffsetMutable());
      }
    });
    merger.eraseChains();
    if (!merger.changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
