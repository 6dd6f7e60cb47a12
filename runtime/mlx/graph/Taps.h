// Convolutions in the forms that MLX computes fast.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_TAPS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_TAPS_H

#include "mlx/array.h"

#include <optional>
#include <utility>
#include <vector>

namespace triton_metal::graph {

namespace mx = mlx::core;

/// What a convolution becomes: `mx.conv_general`, or a sum over its taps of products of slices,
/// which MLX computes faster on the CPU.
enum class ConvolutionForm { General, Slices };

/// How a convolution goes over an image: each has one entry for each dimension.
struct Taps {
  std::vector<int> strides, dilations;
  std::vector<std::pair<int, int>> padding;
  int groups = 1;
};

/// The convolution of an image (N, ..., C) by filters (O, ..., C / groups). Nothing where no form
/// is right or fast.
std::optional<mx::array> sumOfTaps(const mx::array &image, const mx::array &filters,
                                   const Taps &taps, ConvolutionForm form);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_TAPS_H
