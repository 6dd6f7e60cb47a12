// What arithmetic on floats does with its operands and its result by itself: on G13 it takes
// operands of 16 and of 32 bits alike, negates them or takes their magnitude, and rounds its result
// to either length.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class Instruction;
class User;
} // namespace llvm

namespace triton_metal::engine {

/// Whether it is arithmetic on floats of 16 or 32 bits. bfloat has no such forms.
bool isFloatArithmetic(const llvm::User *user);

/// Whether it multiplies simdgroup matrices, whose numbers may be of 16 bits, too.
bool isMatrixProduct(const llvm::User *user);

/// Says of instructions whether they are part of an elementary function, which is like arithmetic.
using IsFunction = llvm::function_ref<bool(const llvm::Instruction &)>;

/// Whether everything that reads the result of a conversion from half, a negation or a magnitude
/// takes its operand instead.
bool isPartOfUsers(const llvm::Instruction &inst, IsFunction isFunction = nullptr);

/// Whether what computes the operand of a conversion to half can give the half.
bool isPartOfOperand(const llvm::Instruction &inst, IsFunction isFunction = nullptr);

} // namespace triton_metal::engine
