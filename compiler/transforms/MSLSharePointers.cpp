// What several accesses add to a pointer alike is added to it once; constants are left to them.

#include "analysis/Uniformity.h"
#include "dialect/msl/MSL.h"
#include "transforms/ConditionRanges.h"
#include "transforms/Erase.h"
#include "transforms/MSLPointerOffsets.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLSHAREPOINTERS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

namespace {

/// So many places are worth a pointer of a thread's own, which takes two registers, where all
/// threads have a pointer in common: each place is a register there.
constexpr size_t kPlaces = 4;
/// The places that share a pointer of a thread's own: each would be an addition of 64 bits.
constexpr size_t kPlacesOfThread = 2;
/// Constants of elements that an access adds by itself stay well within its 16 or more bits.
constexpr int64_t kFarthest = 1 << 14;

/// An access at `pointer + number + constant`.
struct Access {
  Operation *op;
  int64_t constant;
};

class PointerSharing {
public:
  explicit PointerSharing(KernelOp kernel) : kernel(kernel) {}

  bool run() {
    kernel.walk([&](Operation *op) { collect(op); });
    bool changes = false;
    for (auto &[key, accesses] : groups)
      changes |= share(key.first, key.second, accesses);
    return changes;
  }

private:
  void collect(Operation *op) {
    OpOperand *base = getBase(op);
    if (!base || getOffset(op).empty())
      return;
    auto type = cast<PtrType>(base->get().getType());
    if (!mayAddTwice(type))
      return;
    Value pointer = base->get(), number = getOffset(op)[0].get();
    APInt constant;
    int64_t sum = 0;
    // The exact sum is the same if each of its parts is taken out of a sum that does not overflow.
    ValueRanges &ranges = conditions.at(op);
    while (auto add = number.getDefiningOp<arith::AddIOp>()) {
      if (!matchPattern(add.getRhs(), m_ConstantInt(&constant)) || !ranges.cannotOverflow(add))
        break;
      sum += constant.getSExtValue();
      number = add.getLhs();
    }
    while (auto add = pointer.getDefiningOp<PtrAddOp>()) {
      if (!matchPattern(add.getOffset(), m_ConstantInt(&constant)) ||
          constant.getSignificantBits() > 32)
        break;
      sum += constant.getSExtValue();
      pointer = add.getBase();
    }
    if (matchPattern(number, m_Constant()) || std::abs(sum) > kFarthest)
      return;
    groups[{pointer, number}].push_back({op, sum});
  }

  /// The operation before which all accesses find the new pointer: in the innermost block that they
  /// have in common, or before the loops in it that have neither part of the pointer.
  static Operation *findPlace(Value pointer, Value number, ArrayRef<Access> accesses) {
    Block *block = accesses.front().op->getBlock();
    while (block && llvm::any_of(accesses, [&](const Access &access) {
             return !block->findAncestorOpInBlock(*access.op);
           }))
      block = block->getParentOp()->getBlock();
    Operation *first = nullptr;
    for (const Access &access : accesses) {
      Operation *op = block->findAncestorOpInBlock(*access.op);
      if (!first || op->isBeforeInBlock(first))
        first = op;
    }
    for (Operation *parent = first->getParentOp(); isa<LoopLikeOpInterface>(parent);
         parent = first->getParentOp()) {
      Region *region = first->getParentRegion();
      if (region->isAncestor(pointer.getParentRegion()) ||
          region->isAncestor(number.getParentRegion()))
        break;
      first = parent;
    }
    return first;
  }

  bool share(Value pointer, Value number, ArrayRef<Access> accesses) {
    llvm::SmallSet<int64_t, 8> places;
    for (const Access &access : accesses)
      places.insert(access.constant);
    if (places.size() < kPlacesOfThread)
      return false;
    if (!uniformity)
      uniformity.emplace(kernel);
    if (uniformity->isUniform(number) ||
        places.size() < (uniformity->isUniform(pointer) ? kPlaces : kPlacesOfThread))
      return false;
    Operation *place = findPlace(pointer, number, accesses);
    OpBuilder builder(place);
    Location loc = accesses.front().op->getLoc();
    Value own = PtrAddOp::create(builder, pointer.getLoc(), pointer.getType(), pointer, number);
    for (const Access &access : accesses) {
      getBase(access.op)->set(own);
      builder.setInsertionPoint(access.op);
      if (access.constant == 0)
        getOffset(access.op).clear();
      else
        getOffset(access.op).assign(arith::ConstantOp::create(
            builder, loc, builder.getI32IntegerAttr(int32_t(access.constant))));
    }
    return true;
  }

  KernelOp kernel;
  ConditionRanges conditions;
  std::optional<Uniformity> uniformity;
  llvm::MapVector<std::pair<Value, Value>, SmallVector<Access>> groups;
};

struct SharePointers : triton_metal::impl::MSLSharePointersBase<SharePointers> {
  void runOnOperation() override {
    bool changes = false;
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      changes |= PointerSharing(kernel).run();
    if (!changes)
      return markAllAnalysesPreserved();
    eraseDead(getOperation());
  }
};

} // namespace
