// The programs that run the present operation.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_ACTIVESCOPE_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_ACTIVESCOPE_H

#include "runtime/mlx/graph/Value.h"

namespace triton_metal::graph {

/// Changes the programs that run, until it goes.
class ActiveScope {
public:
  ActiveScope(std::optional<Value> &active, std::optional<Value> inner)
      : active(active), outer(std::move(active)) {
    active = std::move(inner);
  }
  ~ActiveScope() { active = std::move(outer); }
  ActiveScope(const ActiveScope &) = delete;

private:
  std::optional<Value> &active;
  std::optional<Value> outer;
};

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_ACTIVESCOPE_H
