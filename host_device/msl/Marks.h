// Calls that mark a place in the code.
#pragma once

#include "llvm/IR/Module.h"

namespace triton_metal {

/// Declares a function whose calls no pass removes, joins or moves to where other threads come.
llvm::FunctionCallee declareMark(llvm::Module &module, llvm::StringRef name,
                                 llvm::FunctionType *type);
/// Removes the calls of a function, if the module has one with this name.
void eraseCalls(llvm::Module &module, llvm::StringRef name);

} // namespace triton_metal
