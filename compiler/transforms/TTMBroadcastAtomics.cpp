#include "transforms/Passes.h"
#include "transforms/TTMScratch.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMBROADCASTATOMICS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

void broadcast(Scratch &scratch, Operation *op, unsigned numSimdgroups) {
  Value result = op->getResult(0);
  auto layout = getLayout(result);
  bool isScalar = !layout;
  // A scalar is one element that every thread repeats.
  if (isScalar)
    layout = LinearLayout(ArrayRef<int64_t>{1}, {}, SmallVector<uint32_t>(kLaneBits, 0),
                          SmallVector<uint32_t>(llvm::Log2_32(numSimdgroups), 0));
  if (!layout->freeMask(InDim::Lane) && !layout->freeMask(InDim::Simdgroup))
    return;
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto layoutAttr = LinearLayoutAttr::get(builder.getContext(), *layout);
  auto region = InFirstCopiesOp::create(builder, loc, result.getType(), layoutAttr);
  Value own = region.getResult(0), all = own;
  result.replaceAllUsesWith(own);
  builder.createBlock(&region.getBody());
  op->moveBefore(builder.getBlock(), builder.getBlock()->end());
  YieldOp::create(builder, loc, result);

  // The readers of today read what comes out.
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : own.getUses())
    uses.push_back(&use);
  builder.setInsertionPointAfter(region);
  if (isScalar)
    all = tt::SplatOp::create(builder, loc, RankedTensorType::get({1}, own.getType(), layoutAttr),
                              own);
  all = scratch.convert(builder, op, all, *layout, "broadcast");
  if (isScalar)
    all = tt::UnsplatOp::create(builder, loc, own.getType(), all);
  for (OpOperand *use : uses)
    use->set(all);
}

bool isScalar(Type type) { return !isa<RankedTensorType>(type); }

/// Whether one thread can run a block for all of them: it only computes with numbers and updates
/// memory atomically, and nothing behind it reads what it computes.
bool isForOneThread(Block &block, bool &needsResult) {
  return llvm::all_of(block, [&](Operation &op) {
    if (!llvm::all_of(op.getOperandTypes(), isScalar) ||
        !llvm::all_of(op.getResultTypes(), isScalar))
      return false;
    if (auto inner = dyn_cast<scf::IfOp>(op))
      return inner->getNumResults() == 0 && llvm::all_of(inner->getRegions(), [&](Region &region) {
               return region.empty() || isForOneThread(region.front(), needsResult);
             });
    if (isa<AtomicRMWOp, AtomicCASOp>(op)) {
      needsResult |= !op.use_empty();
      return true;
    }
    return op.getNumRegions() == 0 && isMemoryEffectFree(&op);
  });
}

/// Brings what one thread can run into that thread. Its atomics need no broadcast.
void moveToOneThread(tt::FuncOp func, unsigned numSimdgroups) {
  SmallVector<scf::IfOp> branches;
  func.walk<WalkOrder::PreOrder>([&](scf::IfOp branch) {
    bool needsResult = false;
    if (branch->getNumResults() || branch.elseBlock() ||
        !isForOneThread(*branch.thenBlock(), needsResult) || !needsResult)
      return WalkResult::advance();
    branches.push_back(branch);
    return WalkResult::skip();
  });
  LinearLayout one(ArrayRef<int64_t>{1}, {}, SmallVector<uint32_t>(kLaneBits, 0),
                   SmallVector<uint32_t>(llvm::Log2_32(numSimdgroups), 0));
  for (scf::IfOp branch : branches) {
    Block *block = branch.thenBlock();
    OpBuilder builder = OpBuilder::atBlockBegin(block);
    auto region = InFirstCopiesOp::create(builder, branch.getLoc(), TypeRange(),
                                          LinearLayoutAttr::get(builder.getContext(), one));
    Block *body = builder.createBlock(&region.getBody());
    body->getOperations().splice(body->end(), block->getOperations(),
                                 std::next(region->getIterator()),
                                 block->getTerminator()->getIterator());
    YieldOp::create(builder, branch.getLoc(), ValueRange());
  }
}

struct TTMBroadcastAtomicsPass : impl::TTMBroadcastAtomicsBase<TTMBroadcastAtomicsPass> {
  void runOnOperation() override {
    unsigned numSimdgroups = getNumSimdgroups(getOperation());
    bool changes = false;
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>()) {
      if (!func.getBody().hasOneBlock())
        continue;
      SmallVector<Operation *> atomics;
      auto collect = [&] {
        atomics.clear();
        func.walk<WalkOrder::PreOrder>([&](Operation *op) {
          if (isa<AtomicRMWOp, AtomicCASOp>(op) && !op->use_empty())
            atomics.push_back(op);
          return isa<InFirstCopiesOp>(op) ? WalkResult::skip() : WalkResult::advance();
        });
      };
      collect();
      if (atomics.empty())
        continue;
      changes = true;
      moveToOneThread(func, numSimdgroups);
      collect();
      Scratch scratch(func);
      for (Operation *op : atomics)
        broadcast(scratch, op, numSimdgroups);
    }
    if (!changes)
      markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
