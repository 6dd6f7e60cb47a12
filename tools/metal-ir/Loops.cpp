// The loops that are left, as the reports of compilers are weighted by them.
#include "Gpu.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"

using namespace llvm;

namespace triton_metal::gpu {

std::vector<LoopInfo> findLoops(Function &kernel) {
  DominatorTree dominators(kernel);
  llvm::LoopInfo loops(dominators);
  AssumptionCache assumptions(kernel);
  TargetLibraryInfoImpl library(kernel.getParent()->getTargetTriple());
  TargetLibraryInfo libraryInfo(library);
  ScalarEvolution evolution(kernel, libraryInfo, assumptions, dominators, loops);
  std::vector<LoopInfo> result;
  // In the order of a preorder walk over the nests, siblings by their place in the code.
  for (Loop *loop : loops.getLoopsInPreorder()) {
    LoopInfo info;
    info.depth = loop->getLoopDepth();
    if (unsigned trips = evolution.getSmallConstantTripCount(loop))
      info.trips = trips;
    if (DebugLoc location = loop->getStartLoc())
      info.line = location.getLine();
    result.push_back(info);
  }
  return result;
}

} // namespace triton_metal::gpu
