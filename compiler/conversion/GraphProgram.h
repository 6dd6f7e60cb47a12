// A kernel's Triton IR as a program of array operations.
#ifndef TRITON_METAL_CONVERSION_GRAPHPROGRAM_H
#define TRITON_METAL_CONVERSION_GRAPHPROGRAM_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace triton_metal {

/// Writes the kernel of `module` as JSON: its operations with numbered values, types, attributes,
/// regions and places in the source. What interprets it needs no MLIR. docs/mlx-graphs.md describes
/// the form. Fails, with a diagnostic at the place, where a value has a type that an array cannot
/// have.
mlir::FailureOr<std::string> writeGraphProgram(mlir::ModuleOp module);

} // namespace triton_metal

#endif // TRITON_METAL_CONVERSION_GRAPHPROGRAM_H
