// Lowers clang's output to the form that the device executes: one function for each kernel,
// everything inlined, address spaces known.
#pragma once

#include "host_device/KernelInfo.h"
#include "host_device/msl/Frontend.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace triton_metal {

struct GeneratedKernel {
  KernelInfo *info;
  /// The function that clang generated. Each parameter is a value; a vector of positions is a
  /// `byval` pointer.
  llvm::Function *function;
};

struct GeneratedConstant {
  FunctionConstantInfo *info;
  /// Null if the module does not have the variable, or if an optimization has removed it.
  llvm::WeakVH variable;

  llvm::GlobalVariable *getVariable() const {
    llvm::Value *value = variable;
    return llvm::cast_or_null<llvm::GlobalVariable>(value);
  }
};

/// Where a threadgroup variable is declared.
struct GeneratedVariable {
  std::string name, function;
  uint32_t line, column;
};

/// Lowers the module in place. Sets the threadgroup variables of the kernels, and which function
/// constants have values.
llvm::Error lowerModule(llvm::Module &module, llvm::ArrayRef<GeneratedKernel> kernels,
                        llvm::ArrayRef<GeneratedConstant> constants,
                        llvm::ArrayRef<GeneratedVariable> threadgroupVariables,
                        const MslOptions &options);

} // namespace triton_metal
