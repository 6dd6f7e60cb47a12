// IR passes of the front end.
#pragma once

#include "llvm/IR/PassManager.h"

namespace triton_metal {

/// Expands small copies from or to memory outside of the thread into loads and stores that are as
/// wide as the alignment allows, up to 16 bytes. These are the accesses that the source means, and
/// the ones that are counted and checked.
struct ExpandCopiesPass : llvm::PassInfoMixin<ExpandCopiesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// Defines operations that C++ leaves undefined but a GPU executes without harm, in the same way on
/// every host: shifts by the width or more, division by zero, conversions of numbers that do not
/// fit into an integer, indices of vectors, functions that end without returning a value. Runs
/// before any other pass could fold one of them.
struct DefineArithmeticPass : llvm::PassInfoMixin<DefineArithmeticPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// Sets uninitialised values to zero, and also the results of reads at a constant offset outside of
/// a variable. LLVM may assume any value for them, a new one for each use, and remove stores and
/// branches that depend on it. Runs after each pass that has turned memory into values.
struct DefineValuesPass : llvm::PassInfoMixin<DefineValuesPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// LLVM's InstCombine with its input protected in two cases. It must not see comparisons of bfloats
/// made from the bits of a half, or vice versa, because it takes the source of the cast for an
/// integer and creates invalid code. It must not see float arithmetic on bfloats whose result
/// becomes a half, because it would compute in half, which has more digits but a smaller range.
struct CombineInstructionsPass : llvm::PassInfoMixin<CombineInstructionsPass> {
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// Drops `#pragma unroll` of loops that would become more than `most` instructions in total, the
/// largest first. The same loops stay loops on every machine.
struct LimitUnrollingPass : llvm::PassInfoMixin<LimitUnrollingPass> {
  /// For counts: arrays become registers as they do on a GPU, those of attention on tensor
  /// operations with heads of 128 too. Beyond this limit, compilation takes longer than the loops
  /// could cost: searches of autotuned kernels count a launch of each configuration.
  static constexpr uint64_t mostAsOnGpu = 48 * 1024;
  /// For launches that look for values that nobody has written. Beyond this limit, compilation
  /// takes longer than the loops could cost.
  static constexpr uint64_t mostPortable = 12 * 1024;
  /// For all other launches. More unrolled instructions only cost time to compile: the vectors of a
  /// SIMD-group do not fit the registers of a CPU anyhow (benchmarks of the examples, and of
  /// Triton's own tests).
  static constexpr uint64_t mostForSpeed = 800;

  /// For the back end of a GPU. Whoever writes a loop of more instructions does not mean it.
  static constexpr uint64_t mostForGpu = 128 * 1024;

  explicit LimitUnrollingPass(uint64_t most) : most(most) {}
  /// The limit of launches that count, that are portable, or neither.
  static constexpr uint64_t getMost(bool counts, bool portable) {
    return counts ? mostAsOnGpu : portable ? mostPortable : mostForSpeed;
  }
  uint64_t most;

  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
};

/// Has variables become registers, and gives what is undefined in them its value, before and after.
void addVariablesToRegisters(llvm::FunctionPassManager &passes);

/// Inlines all functions that are to be inlined, each after it was simplified. The code that
/// results differs from that of inlining first: where instructions are counted or checked, they are
/// those of the text.
void inlineSimplified(llvm::Module &module);

} // namespace triton_metal
