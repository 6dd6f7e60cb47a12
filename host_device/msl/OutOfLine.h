// Functions of numbers that stay functions: long ones in large kernels, and those that a kernel
// repeats often.
#pragma once

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Function.h"

namespace triton_metal {

/// Marks functions that are not to be inlined, where kernels would become very large with them.
void keepLongFunctions(llvm::Module &module, const llvm::SetVector<llvm::Function *> &kernels);

/// Marks a function that is to stay one where code is generated quickly: each copy would have to be
/// compiled. `copies` is how often it would be inlined. Its own calls are inlined already.
void keepIfRepeated(llvm::Function &function, uint64_t copies);

/// Takes the mark of a function away that optimised code inlines.
void inlineIfRepeated(llvm::Function &function);

/// Takes any mark away.
void inlineAfterAll(llvm::Function &function);

/// Whether a function is marked. All others are inlined.
bool isOutOfLine(const llvm::Function &function);

} // namespace triton_metal
