// Marks the elementary functions of the standard library, so that their calls can be counted.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

namespace triton_metal {

/// Followed by "fast", "precise" or "default", for a function without a namespace, or by "product".
inline constexpr llvm::StringLiteral mathMarkPrefix = "__tm_math_";

/// Calls a mark at the beginning of each elementary function of numbers, and of products of tensor
/// operations on what threads hold.
void markMath(llvm::Module &module);

} // namespace triton_metal
