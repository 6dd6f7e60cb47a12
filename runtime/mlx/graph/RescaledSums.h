// A running maximum of a loop, and sums that the loop scales to it in each step, as an online
// softmax has them.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_RESCALEDSUMS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_RESCALEDSUMS_H

#include "runtime/mlx/graph/Program.h"

#include <functional>

namespace triton_metal::graph {

/// A scalar: the number of a value, the bits of a constant, or nothing, which stands for 1.
struct ScalarKey {
  int number = -1;
  std::optional<int64_t> bits;

  bool isOne() const { return number < 0 && !bits; }
  bool operator==(const ScalarKey &) const = default;
};

/// The scalar that a value repeats. Nothing for tiles of several numbers.
std::optional<ScalarKey> scalarOf(const Program &program, int number);

/// Steps of the form
///
///     higher = max(highest, each)
///     sum = sum * exp(scale * highest - scale * higher) + part
///
/// where each part is a multiple of exp(-scale * higher), and nothing else takes `highest`,
/// `higher` or a sum. Then sum * exp(scale * highest) does not depend on the maxima in between, so
/// all steps may use the last one:
///
///     sum = initial * exp(scale * initial highest - scale * last) + the sum of all parts
struct RescaledSums {
  struct Sum {
    size_t carried;
    /// The operation of the body that adds: an addition, or a product of tiles that adds.
    size_t operation;
    /// The sum of the step before, scaled, and what is added to it. For a product, -1.
    int faded, part = -1;
    /// The product of tiles that is added, which nothing else takes.
    std::optional<size_t> product;
  };
  /// Which carried value is the maximum, the operation of the body that makes the next one, and
  /// what that takes of each step.
  size_t carried, maximum;
  int each;
  std::vector<Sum> sums;
  /// Everything in the body that depends on the maximum, in order, and the carried values among
  /// these.
  std::vector<size_t> operations, allCarried;
  /// The exponentials whose multiples are added up: their place in the body.
  std::vector<size_t> exponentials;
  /// math.exp or math.exp2, and what multiplies the maximum in it.
  std::string function;
  ScalarKey scale;
};

/// The sums that go with a carried value, if it is such a maximum.
std::optional<RescaledSums> rescaledSumsOf(const Program &program, const Operation &loop,
                                           size_t carried, const std::function<bool(int)> &isZero);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_RESCALEDSUMS_H
