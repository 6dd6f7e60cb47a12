#include "transforms/MarkCoherent.h"

using namespace mlir;

bool triton_metal::msl::markCoherent(KernelOp kernel, const Origins &memory) {
  UnitAttr unit = UnitAttr::get(kernel.getContext());
  if (memory.isUnknown)
    kernel->setAttr(kCoherentAttr, unit);
  bool changed = false;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    if (isa<PtrType>(type) && (memory.isUnknown || memory.arguments.contains(index)) &&
        !kernel.getArgAttr(index, kCoherentAttr)) {
      kernel.setArgAttr(index, kCoherentAttr, unit);
      changed = true;
    }
  return changed;
}
