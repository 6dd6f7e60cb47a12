// The order in which a SIMD-group runs the blocks of a function whose lanes may diverge. Uniform
// branches remain branches. After a divergent branch, lanes for other blocks wait there ("are
// pending"), and blocks are visited in a topological order, with loops contiguous, until all lanes
// are together again.
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
    /// The positions of the blocks where lanes may be pending while this one runs.
    std::set<unsigned> pending;
    /// Whether the block may be reached without any lane.
    bool maybeEmpty = false;
    /// The next block for each successor of a uniform branch, or for all of them (one entry), or
    /// after an empty block.
    llvm::SmallVector<unsigned, 2> next;
    std::optional<unsigned> skip;
    /// Whether the branch is divergent: its lanes may continue at different blocks.
    bool divergent = false;
  };

  const std::vector<BlockPlan> &plans() const { return order; }
  unsigned place(const llvm::BasicBlock *block) const { return places.lookup(block); }
  /// Whether all lanes that still run are in the block whenever it runs.
  bool hasAllLanes(const llvm::BasicBlock *block) const {
    return order[place(block)].pending.empty();
  }

private:
  void orderBlocks(llvm::Function &function, llvm::LoopInfo &loops);

  std::vector<BlockPlan> order;
  llvm::DenseMap<const llvm::BasicBlock *, unsigned> places;
};

} // namespace triton_metal::engine
