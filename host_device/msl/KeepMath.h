// Elementary functions that stay calls, for back ends of GPUs.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

namespace triton_metal {

/// The beginning of the names of such calls. After it come "fast" or "precise", the function of the
/// standard library, and the type: `__tm_gpu.precise.exp.f32`.
inline constexpr llvm::StringLiteral keptMathPrefix = "__tm_gpu.";

/// Replaces the bodies of the standard library's elementary functions of numbers by calls that a
/// back end defines. Functions without a namespace are the precise ones. Functions of a half
/// compute in float, except for minima and maxima.
void keepMath(llvm::Module &module);

} // namespace triton_metal
