// Variables at file scope whose values are computed, from function constants above all.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Module.h"

namespace triton_metal {

/// Makes a constructor of its own for each variable, so that one that cannot be evaluated does not
/// keep the others from it.
void separateInitialisers(llvm::Module &module);

/// Computes the calls of the C library in the initialisers that are left. Returns whether any
/// initialiser is left.
bool foldInitialisers(llvm::Module &module);

/// What variables depend on: the global variable without a value that their initialisers read.
using Dependences = llvm::MapVector<llvm::GlobalVariable *, llvm::GlobalVariable *>;

/// Removes the constructors that only wait for a declared variable to have a value, and makes
/// declarations of the variables that they initialise.
Dependences removeWaitingInitialisers(llvm::Module &module);

} // namespace triton_metal
