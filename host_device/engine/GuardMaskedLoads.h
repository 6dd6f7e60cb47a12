// Keeps LLVM from moving masked loads over stores.
#pragma once

#include "llvm/IR/PassManager.h"

namespace triton_metal::engine {

/// InstCombine of LLVM 22 merges `select(mask, masked.load(p, mask, 0), x)` into one masked load,
/// which it puts where the selection is, even if memory is written in between. This pass freezes
/// what such a load reads, which hides the load from InstCombine. It runs before InstCombine does.
struct GuardMaskedLoadsPass : llvm::PassInfoMixin<GuardMaskedLoadsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

} // namespace triton_metal::engine
