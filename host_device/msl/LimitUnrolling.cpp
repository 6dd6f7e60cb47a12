#include "host_device/msl/Passes.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace triton_metal {

namespace {
/// A loop with a request to be unrolled.
struct Asking {
  Loop *loop;
  uint64_t trips;
  /// Whether it indexes arrays that unrolling turns into registers.
  bool hasArrays;
  bool stays = false;
};

class Limiter {
public:
  Limiter(LoopInfo &loops, ScalarEvolution &evolution, uint64_t most)
      : loops(loops), evolution(evolution), most(most) {}
  bool run();

private:
  void collect(Loop *loop);
  uint64_t sizeOf(Loop *loop) const;
  uint64_t total() const {
    uint64_t sum = 0;
    for (Loop *loop : loops)
      sum += sizeOf(loop);
    return sum;
  }

  LoopInfo &loops;
  ScalarEvolution &evolution;
  uint64_t most;
  SmallVector<Asking> asking;
};
} // namespace

static bool indexesArrays(Loop *loop) {
  for (BasicBlock *block : loop->blocks())
    for (Instruction &inst : *block)
      if (auto *address = dyn_cast<GetElementPtrInst>(&inst);
          address && !address->hasAllConstantIndices() &&
          isa<AllocaInst>(getUnderlyingObject(address)))
        return true;
  return false;
}

void Limiter::collect(Loop *loop) {
  unsigned trips = evolution.getSmallConstantTripCount(loop);
  if (trips > 1 && (getBooleanLoopAttribute(loop, "llvm.loop.unroll.enable") ||
                    getBooleanLoopAttribute(loop, "llvm.loop.unroll.full")))
    asking.push_back({loop, trips, indexesArrays(loop)});
  for (Loop *inner : *loop)
    collect(inner);
}

/// The number of instructions of the loop after unrolling.
uint64_t Limiter::sizeOf(Loop *loop) const {
  uint64_t size = 0;
  for (BasicBlock *block : loop->blocks())
    if (loops.getLoopFor(block) == loop)
      for (Instruction &inst : *block)
        size += !isa<PHINode>(inst) && !inst.isTerminator();
  for (Loop *inner : *loop)
    size = SaturatingAdd(size, sizeOf(inner));
  for (const Asking &entry : asking)
    if (entry.loop == loop && !entry.stays)
      size = SaturatingMultiply(size, entry.trips);
  return size;
}

bool Limiter::run() {
  for (Loop *loop : loops.getLoopsInPreorder())
    if (loop->isOutermost())
      collect(loop);
  bool changed = false;
  for (uint64_t now = total(); now > most;) {
    // Chooses the loop that saves most if it stays a loop. Loops without arrays come first, and the
    // first one wins a tie.
    Asking *best = nullptr;
    std::pair<bool, uint64_t> bestGain;
    for (Asking &entry : asking) {
      if (entry.stays)
        continue;
      entry.stays = true;
      uint64_t then = total();
      entry.stays = false;
      std::pair<bool, uint64_t> gain = {!entry.hasArrays, now - std::min(now, then)};
      if (!best || gain > bestGain)
        best = &entry, bestGain = gain;
    }
    if (!best)
      break;
    best->stays = changed = true;
    now = total();
    LLVMContext &context = best->loop->getHeader()->getContext();
    MDNode *disable = MDNode::get(context, MDString::get(context, "llvm.loop.unroll.disable"));
    best->loop->setLoopID(makePostTransformationMetadata(context, best->loop->getLoopID(),
                                                         {"llvm.loop.unroll."}, {disable}));
  }
  return changed;
}

PreservedAnalyses LimitUnrollingPass::run(Function &function, FunctionAnalysisManager &analyses) {
  Limiter(analyses.getResult<LoopAnalysis>(function),
          analyses.getResult<ScalarEvolutionAnalysis>(function), most)
      .run();
  return PreservedAnalyses::all();
}

} // namespace triton_metal
