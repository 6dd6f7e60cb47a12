// IR passes of the front end.
#pragma once

#include "llvm/IR/PassManager.h"

namespace triton_metal {

/// A small copy from or to memory that is not the thread's own becomes loads and stores as wide as
/// its alignment allows, up to 16 bytes: the accesses that the source means, and that are counted
/// and checked.
struct ExpandCopiesPass : llvm::PassInfoMixin<ExpandCopiesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// What C++ leaves undefined and a GPU does in some harmless way gets one meaning, the same on
/// every host: shifts modulo the width, division by zero, conversions of numbers too large for an
/// integer, indices of vectors, functions that end without their value. Runs before any other pass
/// could fold one of them.
struct DefineArithmeticPass : llvm::PassInfoMixin<DefineArithmeticPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// What was never written is zero, and so is what is read at a constant place outside a variable:
/// LLVM would take either for any value, a new one for each use, and drop the stores and branches
/// that depend on it. Runs wherever a pass before it has turned memory into values.
struct DefineValuesPass : llvm::PassInfoMixin<DefineValuesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// LLVM's InstCombine, which must not see the bits of a half compared as a bfloat's or the other
/// way round: it takes what a compared cast comes from for an integer and makes invalid code. Nor
/// may it see bfloats in float arithmetic whose result becomes a half: it would compute in half,
/// since that has more digits, though it does not have the numbers of a bfloat.
struct CombineInstructionsPass : llvm::PassInfoMixin<CombineInstructionsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// `#pragma unroll` on loops that would become too many instructions in all is dropped, from the
/// longest on: the same loops stay loops on every machine.
struct LimitUnrollingPass : llvm::PassInfoMixin<LimitUnrollingPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

} // namespace triton_metal
