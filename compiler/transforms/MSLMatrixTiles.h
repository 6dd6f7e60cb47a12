// Which tiles live in simdgroup matrices.

#ifndef TRITON_METAL_TRANSFORMS_MSLMATRIXTILES_H
#define TRITON_METAL_TRANSFORMS_MSLMATRIXTILES_H

#include "dialect/msl/MSL.h"

#include "llvm/ADT/DenseMap.h"

namespace triton_metal::msl {

/// The tiles that a matrix product reads or writes, directly or around loops, each with the
/// matrices that it consists of. The type is null for those of an instruction that takes its
/// operands from registers: they are arrays of vectors of four.
llvm::DenseMap<mlir::Value, MatrixType> findMatrixTiles(KernelOp kernel);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLMATRIXTILES_H
