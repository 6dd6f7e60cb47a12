// Variables at file scope whose values are computed, from function constants above all.
#pragma once

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Module.h"

namespace triton_metal {

/// Makes a constructor of its own for each variable, so that one that cannot be evaluated does not
/// keep the others from it.
void separateInitialisers(llvm::Module &module);

/// Orders the constructors for their evaluation: those that are `stuck`, or read a variable that
/// has no value, come last with all that read what these store. A constructor never comes before
/// one whose variable it reads. Returns the first of those that do not wait, or null.
llvm::Function *orderInitialisers(llvm::Module &module,
                                  const llvm::SmallPtrSetImpl<llvm::Function *> &stuck);

/// Computes the calls of the C library in the initialisers that are left. Returns how many
/// initialisers remain after that.
size_t foldInitialisers(llvm::Module &module);

/// What variables depend on: the global variable without a value that their initialisers read.
using Dependences = llvm::MapVector<llvm::GlobalVariable *, llvm::GlobalVariable *>;

/// Removes the constructors that only wait for a declared variable to have a value, and makes
/// declarations of the variables that they initialise.
Dependences removeWaitingInitialisers(llvm::Module &module);

} // namespace triton_metal
