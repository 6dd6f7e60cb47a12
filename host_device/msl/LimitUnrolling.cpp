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
/// A loop of the function.
struct Counted {
  Loop *loop;
  /// Whether it asks to be unrolled, and still may be; how often it runs then.
  bool asks = false;
  uint64_t trips = 1;
  /// Whether it indexes arrays that unrolling turns into registers.
  bool hasArrays = false;
  /// The place of the loop around it, or -1.
  int outer = -1;
  /// Its instructions outside of the loops in it.
  uint64_t own = 0;
  /// The instructions of one iteration after unrolling, and how often the loop is repeated by the
  /// unrolling of those around it.
  uint64_t body = 0, repeated = 1;
};

class Limiter {
public:
  Limiter(LoopInfo &loops, ScalarEvolution &evolution, uint64_t most)
      : loops(loops), evolution(evolution), most(most) {}
  bool run();

private:
  void collect(Loop *loop, int outer);
  uint64_t measure();

  LoopInfo &loops;
  ScalarEvolution &evolution;
  uint64_t most;
  /// Each loop comes before the loops in it.
  SmallVector<Counted> counted;
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

void Limiter::collect(Loop *loop, int outer) {
  Counted entry{loop};
  entry.outer = outer;
  for (BasicBlock *block : loop->blocks())
    if (loops.getLoopFor(block) == loop)
      for (Instruction &inst : *block)
        entry.own += !isa<PHINode>(inst) && !inst.isTerminator();
  unsigned trips = evolution.getSmallConstantTripCount(loop);
  if (trips > 1 && (getBooleanLoopAttribute(loop, "llvm.loop.unroll.enable") ||
                    getBooleanLoopAttribute(loop, "llvm.loop.unroll.full"))) {
    entry.asks = true;
    entry.trips = trips;
    entry.hasArrays = indexesArrays(loop);
  }
  int place = static_cast<int>(counted.size());
  counted.push_back(entry);
  for (Loop *inner : *loop)
    collect(inner, place);
}

/// Computes the sizes after unrolling. Returns the number of instructions of all loops.
uint64_t Limiter::measure() {
  for (Counted &entry : counted) {
    entry.body = entry.own;
    entry.repeated = entry.outer < 0 ? 1
                                     : SaturatingMultiply(counted[entry.outer].repeated,
                                                          counted[entry.outer].trips);
  }
  uint64_t total = 0;
  for (Counted &entry : reverse(counted)) {
    uint64_t &sum = entry.outer < 0 ? total : counted[entry.outer].body;
    sum = SaturatingAdd(sum, SaturatingMultiply(entry.body, entry.trips));
  }
  return total;
}

bool Limiter::run() {
  for (Loop *loop : loops.getLoopsInPreorder())
    if (loop->isOutermost())
      collect(loop, -1);
  bool changed = false;
  while (measure() > most) {
    // Chooses the loop that saves most if it stays a loop. Loops without arrays come first, and the
    // first one wins a tie.
    Counted *best = nullptr;
    std::pair<bool, uint64_t> bestGain;
    for (Counted &entry : counted) {
      if (!entry.asks)
        continue;
      uint64_t saved =
          SaturatingMultiply(SaturatingMultiply(entry.body, entry.trips - 1), entry.repeated);
      std::pair<bool, uint64_t> gain = {!entry.hasArrays, saved};
      if (!best || gain > bestGain)
        best = &entry, bestGain = gain;
    }
    if (!best)
      break;
    best->asks = false;
    best->trips = 1;
    changed = true;
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
