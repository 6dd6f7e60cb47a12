// The order in which a SIMD-group runs the blocks of a function whose lanes may part ways. Uniform
// branches stay branches. After a divergent branch the lanes that are to go elsewhere wait ("are
// pending") at their block, and blocks are visited in one topological order, loops contiguous,
// until all lanes are together again.
#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"
#include <set>
#include <vector>

namespace triton_metal::engine {

class LaneAnalysis;

class Linearization {
public:
  Linearization(llvm::Function &function, const LaneAnalysis &lanes, llvm::LoopInfo &loops);

  struct BlockPlan {
    llvm::BasicBlock *block = nullptr;
    /// Blocks (by their places in the order) where lanes may be pending while this one runs.
    std::set<unsigned> pending;
    /// No lane may have come here.
    bool maybeEmpty = false;
    /// Where control goes for each successor of a uniform branch, or for all of them (one entry),
    /// or past an empty block.
    llvm::SmallVector<unsigned, 2> next;
    std::optional<unsigned> skip;
    /// The branch is not taken as one: lanes go on to different blocks.
    bool divergent = false;
  };

  const std::vector<BlockPlan> &plans() const { return order; }
  unsigned place(const llvm::BasicBlock *block) const { return places.lookup(block); }
  /// All lanes that still run are in the block whenever it runs.
  bool hasAllLanes(const llvm::BasicBlock *block) const {
    return order[place(block)].pending.empty();
  }

private:
  void orderBlocks(llvm::Function &function, llvm::LoopInfo &loops);

  std::vector<BlockPlan> order;
  llvm::DenseMap<const llvm::BasicBlock *, unsigned> places;
};

} // namespace triton_metal::engine
