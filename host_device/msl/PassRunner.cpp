#include "host_device/msl/PassRunner.h"
#include "llvm/Passes/PassBuilder.h"

using namespace llvm;

namespace triton_metal {

struct PassRunner::State {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
};

PassRunner::PassRunner(TargetMachine *machine, std::optional<TargetIRAnalysis> costs)
    : state(std::make_unique<State>()) {
  PassBuilder builder(machine);
  if (costs)
    state->functions.registerPass([&] { return std::move(*costs); });
  builder.registerModuleAnalyses(state->modules);
  builder.registerCGSCCAnalyses(state->sccs);
  builder.registerFunctionAnalyses(state->functions);
  builder.registerLoopAnalyses(state->loops);
  builder.crossRegisterProxies(state->loops, state->functions, state->sccs, state->modules);
}
PassRunner::~PassRunner() = default;

void PassRunner::run(Module &module, ModulePassManager &&passes) {
  passes.run(module, state->modules);
  state->modules.clear();
  state->sccs.clear();
  state->functions.clear();
  state->loops.clear();
}

void PassRunner::run(Function &function, FunctionPassManager &&passes) {
  passes.run(function, state->functions);
  state->functions.clear();
  state->loops.clear();
}

} // namespace triton_metal
