// Long functions of numbers, which stay functions in large kernels.
#pragma once

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Function.h"

namespace triton_metal {

/// Marks functions that are not to be inlined, where kernels would become very large with them.
void keepLongFunctions(llvm::Module &module, const llvm::SetVector<llvm::Function *> &kernels);

/// Takes the mark away.
void inlineAfterAll(llvm::Function &function);

/// Whether a function is one of them. All others are inlined.
bool isOutOfLine(const llvm::Function &function);

} // namespace triton_metal
