// Accesses whose places are a box of a strided array: they are slices and reshapes.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_WINDOW_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_WINDOW_H

#include "runtime/mlx/graph/Affine.h"

namespace triton_metal::graph {

/// A box in memory. Each coordinate belongs to a group of axes whose steps follow on one another:
/// the axes (program, element) of `program * 128 + element` are one coordinate. Groups are in the
/// order of their strides, the greatest first, and do not overlap.
struct Window {
  struct Group {
    /// The greatest step first.
    std::vector<size_t> axes;
    int64_t stride = 1;
    /// The number of coordinates, and those that no condition excludes.
    int64_t size = 1, low = 0, high = 1;

    int64_t length() const { return high - low; }
  };
  std::vector<Group> groups;
  /// The place of the coordinates `low`.
  int64_t origin = 0;
  bool isEmpty = false;

  /// The last place that is accessed.
  int64_t last() const;
};

/// Keeps the coordinates of a group where constant + step * coordinate is at least 0.
void limit(Window::Group &group, int64_t constant, int64_t step);

/// The window of places that are accessed where every condition is at least 0. Nothing if the
/// places are no such box: where steps are below 0, places coincide, or a condition cuts the box
/// askew.
std::optional<Window> windowOf(const Affine &place, const std::vector<Affine> &conditions,
                               const Extents &extents);

/// The box as an array with one axis for each group, from a flat array that holds it.
mx::array readWindow(const mx::array &elements, const Window &window);

/// The flat array with the box replaced. Nothing if no reshape brings the box to light.
std::optional<mx::array> writeWindow(const mx::array &elements, const Window &window,
                                     const mx::array &box);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_WINDOW_H
