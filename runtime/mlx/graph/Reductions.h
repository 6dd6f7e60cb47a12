// Reductions that MLX has.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_REDUCTIONS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_REDUCTIONS_H

#include "runtime/mlx/graph/Program.h"

#include <optional>
#include <string>

namespace triton_metal::graph {

/// The name of the one operation by which a reduction or scan combines two elements, whichever
/// comes first; empty for other functions.
std::string combinerOf(const Operation &op);

/// The reduction along an axis by an operation of MLIR. Nothing for operations that MLX has no
/// reduction for.
std::optional<mx::array> reduced(const std::string &name, const mx::array &x, int axis,
                                 bool keepsAxis = false);

/// The number that changes nothing when it is combined with others, in the dtype of `like`.
mx::array neutral(const std::string &name, const mx::array &like);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_REDUCTIONS_H
