#include "transforms/SlicedKernel.h"

#include "transforms/TTSlicing.h"

using namespace mlir;

namespace triton_metal {

const TileDims &SlicedKernel::getDims() {
  if (!dims)
    dims.emplace(getKernel());
  return *dims;
}

ThreadChoice SlicedKernel::expect(int warps, int stages) {
  if (!work)
    work.emplace(getKernel(), budget);
  return chooseThreads(*work, budget, warps, stages);
}

SlicedKernel *SlicedKernel::slice(unsigned id, int64_t parts) {
  auto [it, isNew] = slices.try_emplace({id, parts});
  if (isNew) {
    OwningOpRef<ModuleOp> copy(module->clone());
    if (triton_metal::slice(triton_metal::getKernel(*copy), id, parts))
      it->second = std::make_unique<SlicedKernel>(std::move(copy), budget);
  }
  return it->second.get();
}

tt::FuncOp SlicedKernel::take() {
  tt::FuncOp kernel = getKernel();
  kernel->remove();
  return kernel;
}

} // namespace triton_metal
