// Functions that kernels call and that were not inlined (host_device/msl/OutOfLine.h).
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"
#include <string>

namespace triton_metal::engine {

/// Moves the code of the functions that a kernel calls into functions without parameters, as the
/// kernel is one. A function comes after those that it calls. Their declarations remain.
llvm::SmallVector<llvm::Function *> makeLaneFunctions(llvm::Function &kernel);

bool isLaneFunction(const llvm::Function &body);

/// The name of the SIMD-group's form.
std::string simdNameOf(const llvm::Function &body);

} // namespace triton_metal::engine
