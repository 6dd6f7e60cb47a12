// From what clang generates to the form that the device executes: one function a kernel, everything
// inlined, address spaces known.
#pragma once

#include "host_device/KernelInfo.h"
#include "host_device/msl/Frontend.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace triton_metal {

struct GeneratedKernel {
  KernelInfo *info;
  /// What clang generated: a parameter is a value, or, for a vector of positions, a `byval`
  /// pointer.
  llvm::Function *function;
};

struct GeneratedConstant {
  FunctionConstantInfo *info;
  llvm::GlobalVariable *variable;
};

/// Lowers the module in place. Fills in the kernels' threadgroup variables and which function
/// constants have values.
llvm::Error lowerModule(llvm::Module &module, llvm::ArrayRef<GeneratedKernel> kernels,
                        llvm::ArrayRef<GeneratedConstant> constants, const MslOptions &options);

} // namespace triton_metal
