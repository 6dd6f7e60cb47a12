// Which tiles live in simdgroup matrices.

#ifndef TRITON_METAL_TRANSFORMS_MSLMATRIXTILES_H
#define TRITON_METAL_TRANSFORMS_MSLMATRIXTILES_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// The tiles that a matrix product reads or writes, directly or around loops.
llvm::DenseSet<mlir::Value> findMatrixTiles(KernelOp kernel);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLMATRIXTILES_H
