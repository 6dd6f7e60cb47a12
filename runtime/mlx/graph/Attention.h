// Attention in a kernel: products of weights, which are a softmax of other products, with values.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_ATTENTION_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_ATTENTION_H

#include "runtime/mlx/graph/RescaledSums.h"
#include "runtime/mlx/graph/Value.h"

#include <map>
#include <memory>
#include <set>

namespace triton_metal::graph {

/// A loop with rescaled sums whose steps were traced together.
struct RescaledLoop {
  const Operation *op;
  RescaledSums sums;
  size_t axis;
  int size;
  /// How many steps each program takes; null where all take all.
  std::optional<mx::array> counts;
};

/// softmax(scale * scores) x values, with the scores that are visible, as the program has it.
struct Attention {
  /// The product of tiles that makes the scores, and the number of the values' tile.
  const Operation *scores;
  int values;
  /// What multiplies the scores. The exponentials have base e or 2.
  std::vector<ScalarKey> scales;
  bool isBaseTwo = false;
  /// Numbers of truth values. Where one is false, a score is -inf.
  std::vector<int> visible;
  /// The loop over the keys; null for a single tile.
  const RescaledLoop *loop = nullptr;
};

/// Finds attention at the operation that divides the sum of the values by that of the weights:
/// `loops` has the loops that made these sums, by the numbers of their results.
std::optional<Attention> attentionOf(const Program &program, const Operation &quotient,
                                     const std::map<int, std::shared_ptr<RescaledLoop>> &loops,
                                     const std::set<int> &zeros);

/// Which scores are visible: in rows up to `rows`, in columns up to `columns`, and on or below a
/// diagonal: column <= row + offset.
struct Visible {
  /// The outer axis along which rows go on behind those of a tile.
  std::optional<size_t> axis;
  int64_t rows, columns;
  std::optional<int64_t> offset;
};

/// The rule of these conditions on tiles of `rows` x `columns` scores; nothing for others. Columns
/// go on along the steps of a loop.
std::optional<Visible> visibleOf(const std::vector<Affine> &conditions, int rows, int columns,
                                 std::optional<size_t> steps, int stepCount);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_ATTENTION_H
