// Which parts of a loop's body depend on the step before, and how.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_LOOPPLAN_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_LOOPPLAN_H

#include "runtime/mlx/graph/RescaledSums.h"

#include <functional>

namespace triton_metal::graph {

/// Operations of a body, and values that it carries, that depend on one another in a circle; or a
/// single one.
struct LoopGroup {
  enum Kind {
    /// An operation whose steps are independent.
    Each,
    /// A carried value that no step changes.
    Invariant,
    /// A carried value that is what another value was in the step before.
    Previous,
    /// A carried value with which one operation combines a value of each step, and which nothing
    /// else reads.
    Reduction,
    /// A sum of products of tiles that nothing else reads.
    Product,
    /// A running maximum, and sums that are scaled to it.
    Rescaled,
    /// A carried value with which a loop in the body goes on: there, it is one of these.
    Nested,
    /// Everything else runs step by step.
    Steps
  } kind;
  /// Indices of operations in the body, in its order, and of carried values.
  std::vector<size_t> operations, carried;
  /// Numbers of the group's values that other groups take.
  std::vector<int> outputs;
  /// For Reduction and Product: the value of each step. For a Product, the product of tiles itself.
  int operand = -1;
  size_t product = 0;
  /// For Nested: which of the other loop's carried values it is.
  size_t inner = 0;
  std::optional<RescaledSums> rescaled;
};

/// The groups of a loop, each behind those that it depends on.
struct LoopPlan {
  std::vector<LoopGroup> groups;
  /// Whether not all groups run step by step.
  bool isRaised = false;
};

/// `bufferOf` gives the buffer that a pointer from outside of the loop points into, or -1.
LoopPlan planLoop(const Program &program, const Operation &loop,
                  const std::function<int(int)> &bufferOf, const std::function<bool(int)> &isZero);

/// Calls a function with each number that the operation makes, also in its regions.
void forEachResult(const Operation &op, const std::function<void(int)> &visit);

/// Calls a function with each number that the operation takes, also in its regions.
void forEachOperand(const Operation &op, const std::function<void(int)> &visit);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_LOOPPLAN_H
