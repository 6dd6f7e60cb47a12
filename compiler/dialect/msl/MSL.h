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

#include "dialect/msl/MSLDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/msl/MSLTypes.h.inc"

namespace triton_metal::msl {
/// i1, or a vector of i1 with the shape of `type`.
mlir::Type getMaskType(mlir::Type type);

/// The number of registers of a value: a vector's elements, 1 for a scalar.
int64_t getNumRegisters(mlir::Type type);

/// Argument attributes of kernels.
inline constexpr llvm::StringLiteral kNameAttr = "msl.name";
inline constexpr llvm::StringLiteral kReadOnlyAttr = "msl.readonly";
/// Pointers with the same number here may point into the same memory.
inline constexpr llvm::StringLiteral kMemoryAttr = "msl.memory";

/// On an argument: threadgroups of one launch meet in its memory. On a kernel: in that of pointers
/// made from addresses, too.
inline constexpr llvm::StringLiteral kCoherentAttr = "msl.coherent";

/// Whether what two kernel arguments point to may overlap.
bool mayOverlap(mlir::Value argument, mlir::Value other);
} // namespace triton_metal::msl

#define GET_OP_CLASSES
#include "dialect/msl/MSLOps.h.inc"

#endif // TRITON_METAL_DIALECT_MSL_MSL_H
