// A kernel, and the kernels that do the same in slices.
#ifndef TRITON_METAL_TRANSFORMS_SLICEDKERNEL_H
#define TRITON_METAL_TRANSFORMS_SLICEDKERNEL_H

#include "analysis/TileDims.h"
#include "transforms/KernelWork.h"
#include "transforms/ThreadChoice.h"

#include <map>
#include <memory>
#include <optional>

namespace triton_metal {

/// A kernel in a module of its own, and those that work on it in slices once more. Each of them is
/// made, and its work is counted, at most once, however often it is asked for.
class SlicedKernel {
public:
  SlicedKernel(mlir::OwningOpRef<mlir::ModuleOp> module, const Budget &budget)
      : module(std::move(module)), budget(budget) {}

  tt::FuncOp getKernel() { return triton_metal::getKernel(*module); }
  const TileDims &getDims();
  /// What the model expects of it.
  ThreadChoice expect(int warps, int stages);
  /// This kernel with a class of its dimensions in slices. Null if that cannot be done.
  SlicedKernel *slice(unsigned id, int64_t parts);
  /// The kernel, which leaves its module. Nothing else can be asked after that.
  tt::FuncOp take();

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
  const Budget &budget;
  std::optional<TileDims> dims;
  std::optional<KernelWork> work;
  std::map<std::pair<unsigned, int64_t>, std::unique_ptr<SlicedKernel>> slices;
};

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_SLICEDKERNEL_H
