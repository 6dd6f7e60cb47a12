// Values of single steps of a loop, and all of them along one axis.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_STEPS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_STEPS_H

#include "runtime/mlx/graph/Value.h"

namespace triton_metal::graph {

/// Why the steps of a loop are not traced together.
struct NotRaised {
  std::string reason;
};

/// Arrays of all steps that are longer than this are not made: the loop runs step by step.
inline constexpr int64_t mostElements = int64_t(1) << 27;

int64_t sizeOf(const Extents &extents);

/// The value at one index of an outer axis, which has size 1 then.
Value stepOf(const Value &value, size_t axis, int index);

/// The values at every index of an outer axis. Their gradient is one array, not the sum of one for
/// each index.
std::vector<Value> allSteps(const Value &value, size_t axis, int size);

/// The values, which have size 1 along an outer axis, as one value along it. It is affine where
/// every value is, and all steps between them are the same. Throws NotRaised for pointers into
/// several buffers.
Value stacked(const std::vector<Value> &values, size_t axis);

/// The values that the steps of a loop begin with, where step `t` takes what step `t - 1` left: the
/// first one, then `later` without its last index along the axis.
Value shifted(const Value &first, const Value &later, size_t axis, int size);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_STEPS_H
