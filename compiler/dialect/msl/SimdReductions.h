// The functions of a SIMD-group that reduce as an operation on two numbers does.
#ifndef TRITON_METAL_DIALECT_MSL_SIMDREDUCTIONS_H
#define TRITON_METAL_DIALECT_MSL_SIMDREDUCTIONS_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// The SIMD-group function that does what the combiner does, for every number; none for a null
/// combiner. Products of floats are multiplied in any order, as their sums are added. What Metal's
/// simd_max and simd_min make of a NaN is not documented, so that they are
/// for integers only.
std::optional<SimdReduceKind> getSimdReduceKind(mlir::Operation *combiner);

/// The number that changes nothing.
mlir::TypedAttr getNeutralElement(SimdReduceKind kind, mlir::Type element);

/// Whether a number may take part twice.
bool isIdempotent(SimdReduceKind kind);

} // namespace triton_metal::msl

#endif // TRITON_METAL_DIALECT_MSL_SIMDREDUCTIONS_H
