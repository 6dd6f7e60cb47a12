// Runs LLVM's passes, which need the analysis managers of four kinds of code.
#pragma once

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/PassManager.h"
#include <memory>
#include <optional>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace triton_metal {

/// The analysis managers of one module. Passes run on it one after the other.
class PassRunner {
public:
  /// Passes ask `machine` what instructions cost, or `costs` where it is given. Without both they
  /// get LLVM's answers for an unknown machine.
  explicit PassRunner(llvm::TargetMachine *machine = nullptr,
                      std::optional<llvm::TargetIRAnalysis> costs = std::nullopt);
  ~PassRunner();
  void run(llvm::Module &module, llvm::ModulePassManager &&passes);
  void run(llvm::Function &function, llvm::FunctionPassManager &&passes);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace triton_metal
