// Counts the iterations of loops.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "host_device/msl/Frontend.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;

namespace triton_metal::engine {

/// Moves a place to the innermost loop of the text that is around it.
void placeAtLoop(Site &site, const Module &module) {
  NamedMDNode *loops = module.getNamedMetadata(loopsMetadata);
  if (!loops || !site.file.empty())
    return;
  auto here = std::pair(site.line, site.column), best = std::pair(0u, 0u);
  for (MDNode *node : loops->operands()) {
    auto number = [&](unsigned i) {
      return uint32_t(mdconst::extract<ConstantInt>(node->getOperand(i))->getZExtValue());
    };
    auto begin = std::pair(number(0), number(1)), end = std::pair(number(2), number(3));
    if (begin <= here && here <= end)
      best = std::max(best, begin);
  }
  if (best.first)
    std::tie(site.line, site.column) = best;
}

void insertSteps(Function &function, CodeFacts &facts) {
  SmallVector<std::pair<const BasicBlock *, const BasicBlock *>> edges;
  FindFunctionBackedges(function, edges);
  SmallPtrSet<const BasicBlock *, 8> done;
  Module &module = *function.getParent();
  IRBuilder<> b(module.getContext());
  auto callee = declareBuiltin(module, stepName, b.getVoidTy(), {b.getInt32Ty()});
  for (auto [from, to] : edges) {
    if (!done.insert(from).second)
      continue;
    auto *block = const_cast<BasicBlock *>(from);
    Site site;
    for (Instruction &inst : reverse(*block))
      if (!site.line)
        fillLocation(site, inst);
    for (Instruction &inst : *const_cast<BasicBlock *>(to))
      if (!site.line)
        fillLocation(site, inst);
    placeAtLoop(site, module);
    site.kind = AccessKind::Loop;
    b.SetInsertPoint(block->getTerminator());
    b.CreateCall(callee, {b.getInt32(facts.sites.size())});
    facts.sites.push_back(site);
  }
}

} // namespace triton_metal::engine
