// Tables of pointers to threadgroup variables.
#pragma once

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace triton_metal {

/// Makes variables of constants that hold pointers to threadgroup variables: each launch places
/// these anew. All calls must have been inlined, and nothing may have been folded.
llvm::Error expandPointerTables(llvm::Module &module);

} // namespace triton_metal
