// Sums of products whose places are those of a convolution: the proof, and what MLX has for it.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_CONVOLUTION_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_CONVOLUTION_H

#include "runtime/mlx/graph/Affine.h"
#include "runtime/mlx/graph/Taps.h"

#include <string>

namespace triton_metal::graph {

/// One factor of the products: the elements of a flat array at `place` where all conditions are at
/// least 0, and 0 elsewhere.
struct ProductFactor {
  mx::array elements;
  Affine place;
  std::vector<Affine> conditions;
};

/// The sum along some axes of the products of two arrays' elements.
struct ProductSum {
  struct Axis {
    int size;
    bool isSummed;
    /// Whether it may be one coordinate with axes that it follows on.
    bool isFree = true;
    /// The indices that there are; the conditions must exclude all others.
    int complete = size;
  };
  std::vector<Axis> axes;
  ProductFactor x, w;
};

/// A convolution that is the sum.
struct Convolved {
  /// One or several of the sum's axes, the greatest step first: one axis of the result.
  struct Side {
    std::vector<size_t> axes;
    /// The result has the coordinates from `low` up to `high`. At others, the convolved array is 0.
    int size, low, high;
    /// Whether the filters change along it, and whether they are 0 at others, too.
    bool isOfFilters, cutsFilters;
  };
  std::vector<Side> sides;
  mx::array result;
  /// The sum of the filters times 0, which is 0 unless one of them is no number. One axis for each
  /// side, of size 1 where the filters do not change.
  mx::array ofZeros;
  /// "a convolution of 3x3".
  std::string description;
};

/// The sum as a convolution of the first factor by the second one. Nothing where one of its places
/// is another one, or where it is a product of matrices without shifts.
std::optional<Convolved> convolved(ProductSum sum, ConvolutionForm form);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_CONVOLUTION_H
