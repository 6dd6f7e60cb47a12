// Tiles that are a box of numbers with the same numbers around it, as masked loads give them.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_BOX_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_BOX_H

#include "runtime/mlx/graph/Value.h"

#include <functional>

namespace triton_metal::graph {

using ArrayFunction = std::function<mx::array(const std::vector<mx::array> &)>;

/// Whether there are coordinates outside.
bool isCut(const Window::Group &group);

/// Whether these are coordinates of the same axes with the same limits. Strides do not count.
bool isSame(const Window::Group &a, const Window::Group &b);
bool areSame(const std::vector<Window::Group> &a, const std::vector<Window::Group> &b);

/// Applies a function of elements to values of one rank. Where one of them is a box, and the others
/// are the same on all of its outside, so is the result, and the outside is computed once.
Value applied(const Type &type, const std::vector<Value> &values, const ArrayFunction &function);

/// `a` where the condition holds and `b` elsewhere, where the condition holds inside of a box only.
/// Nothing for others.
std::optional<Value> chosen(const Value &condition, const Value &a, const Value &b);

/// The reduction of a box along an axis. Nothing where it must be made whole first.
std::optional<Value> reducedBox(const Value &value, const std::string &combiner, size_t axis);

/// Whether a condition is known to hold everywhere inside of a box.
bool holdsInside(const Value &condition, const std::vector<Window::Group> &groups,
                 const Extents &extents);

/// The box's numbers inside of these limits of the same groups; nothing if the groups differ.
std::optional<mx::array> insideOf(const Box &box, const std::vector<Window::Group> &groups);

/// A box along one axis less, which is a coordinate of its own and not cut; nothing for others.
std::optional<Box> boxAt(const Box &box, size_t axis, int index);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_BOX_H
