// What passes ask of the operations of `msl`.
#ifndef TRITON_METAL_DIALECT_MSL_MSLINTERFACES_H
#define TRITON_METAL_DIALECT_MSL_MSLINTERFACES_H

#include "dialect/msl/Target.h"

#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Value.h"

namespace triton_metal::msl {

/// One access to device or threadgroup memory.
struct MemoryAccess {
  enum Kind { Read, Write, Atomic };
  Kind kind = Read;
  /// A uniform pointer; null where the access goes through addresses.
  mlir::Value pointer;
  /// Elements behind the pointer, or addresses in bytes; null where they cannot be said.
  mlir::Value offsets;

  bool reads() const { return kind != Write; }
  bool writes() const { return kind != Read; }
  /// What the memory can be found from: the pointer, or the addresses.
  mlir::Value getOrigin() const { return pointer ? pointer : offsets; }
};

/// The threads among which a result is the same.
enum class Spread {
  /// Each thread has its own.
  Thread,
  /// Those of one SIMD-group have the same, and all of them where the operands are the same.
  Simdgroup,
  /// All threads of the threadgroup have the same.
  Threadgroup,
};

/// The numbers behind a pointer, or in a variable or a vector.
mlir::Type getNumberType(mlir::Type type);

/// Checks the factors of a `MatrixMultiplyOpInterface`.
llvm::LogicalResult verifyMatrixMultiply(mlir::Operation *op);

} // namespace triton_metal::msl

#include "dialect/msl/MSLInterfaces.h.inc"

#endif // TRITON_METAL_DIALECT_MSL_MSLINTERFACES_H
