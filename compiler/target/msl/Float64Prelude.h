// 64-bit floats in Metal text: functions of the integers that hold their bits.
#ifndef TRITON_METAL_TARGET_MSL_FLOAT64PRELUDE_H
#define TRITON_METAL_TARGET_MSL_FLOAT64PRELUDE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace triton_metal::msl {

/// A function, or a table of constants, that the text brings along. It calls only what stands
/// before it.
struct PreludeFunction {
  llvm::StringLiteral name, text;
};

/// All of them: what IEEE 754 asks for, then those below.
llvm::ArrayRef<PreludeFunction> getFloat64Arithmetic();

/// Exponential functions, logarithms and others that are not exact.
llvm::ArrayRef<PreludeFunction> getFloat64Math();
/// Directed rounding, parts of numbers, remainders.
llvm::ArrayRef<PreludeFunction> getFloat64Exact();
/// The coefficients for the functions that follow.
llvm::ArrayRef<PreludeFunction> getFloat64Tables();
/// Powers, roots, inverse trigonometric and hyperbolic functions.
llvm::ArrayRef<PreludeFunction> getFloat64Elementary();
/// Error, gamma and Bessel functions.
llvm::ArrayRef<PreludeFunction> getFloat64Special();

} // namespace triton_metal::msl

#endif // TRITON_METAL_TARGET_MSL_FLOAT64PRELUDE_H
