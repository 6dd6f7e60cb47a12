// MLX graphs of kernels, for Python.
#ifndef TRITON_METAL_BINDINGS_MLX_GRAPH_H
#define TRITON_METAL_BINDINGS_MLX_GRAPH_H

#include <nanobind/nanobind.h>

namespace triton_metal::mlx_route {

/// Adds the class GraphProgram to the module.
void bindGraph(nanobind::module_ &module);

} // namespace triton_metal::mlx_route

#endif // TRITON_METAL_BINDINGS_MLX_GRAPH_H
