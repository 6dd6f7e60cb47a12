#ifndef TRITON_METAL_DIALECT_MSL_MSL_H
#define TRITON_METAL_DIALECT_MSL_MSL_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/msl/MSLInterfaces.h"
#include "dialect/msl/Target.h"
#include "dialect/msl/ThreadSet.h"

#include "dialect/msl/MSLDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/msl/MSLTypes.h.inc"

namespace triton_metal::msl {
/// i1, or a vector of i1 with the shape of `type`.
mlir::Type getMaskType(mlir::Type type);

/// The number of registers of a value: a vector's elements, 1 for a scalar.
int64_t getNumRegisters(mlir::Type type);

/// The type that C++ gives to arithmetic on two numbers of the text form; null where it has none. A
/// number beside a vector stands for each of its components.
mlir::Type getArithmeticType(mlir::Type a, mlir::Type b);

/// The type that C++ computes an integer in: int, for what is smaller.
mlir::Type getPromotedType(mlir::Type type);

/// Whether an integer, or a vector's, is one of C++'s unsigned ones.
bool isUnsigned(mlir::Type type);

/// `type` with the sign of C++'s signed or unsigned integer of its width.
mlir::Type withSign(mlir::Type type, bool isUnsigned);

/// `type`, a number or a vector, with numbers of another type.
mlir::Type withElement(mlir::Type type, mlir::Type element);

/// The name that the source gave to a location; empty where it gave none.
llvm::StringRef getSourceName(mlir::Location loc);

/// Argument attributes of kernels.
inline constexpr llvm::StringLiteral kNameAttr = "msl.name";
inline constexpr llvm::StringLiteral kReadOnlyAttr = "msl.readonly";
/// Pointers with the same number here may point into the same memory.
inline constexpr llvm::StringLiteral kMemoryAttr = "msl.memory";

/// On an operation: none of the integers that it takes is negative, so that its sign does not
/// matter.
inline constexpr llvm::StringLiteral kNonNegativeAttr = "msl.nonnegative";

/// On an argument: threadgroups of one launch meet in its memory. On a kernel: in that of pointers
/// made from addresses, too.
inline constexpr llvm::StringLiteral kCoherentAttr = "msl.coherent";
/// Of a kernel whose first threadgroup works all programs of a launch: the place of an atomic that
/// makes it necessary, because Metal lacks it or because it takes a lock.
/// Of a `scf.for`: its upper bound is its lower bound plus a multiple of its step, or not above it.
inline constexpr llvm::StringLiteral kWholeStepsAttr = "msl.whole_steps";
/// Of two `scf.for`, the second of which goes on where the first one ends: one of them has all
/// steps and the other one none. Where they meet is a choice between their outer bounds.
inline constexpr llvm::StringLiteral kVersionAttr = "msl.version";
/// Of a `scf.for`: it has no more than one step.
inline constexpr llvm::StringLiteral kAtMostOnceAttr = "msl.at_most_once";
inline constexpr llvm::StringLiteral kSerialAttr = "msl.serial";

/// Whether what two kernel arguments point to may overlap.
bool mayOverlap(mlir::Value argument, mlir::Value other);
} // namespace triton_metal::msl

#define GET_OP_CLASSES
#include "dialect/msl/MSLOps.h.inc"

#endif // TRITON_METAL_DIALECT_MSL_MSL_H
