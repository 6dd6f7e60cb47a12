// What a value of the program is while a graph is made.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_VALUE_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_VALUE_H

#include "runtime/mlx/graph/Affine.h"
#include "runtime/mlx/graph/Program.h"
#include "runtime/mlx/graph/Window.h"

#include <memory>

namespace triton_metal::graph {

/// The axes that every array has before those of its tile: one for each dimension of the grid, and
/// more for the factors of a dimension that a kernel divides and for the steps of loops. Those that
/// are not used have size 1.
inline constexpr size_t outerAxes = 8;

/// A tile of numbers in a box, with the same numbers around it along each coordinate that the box
/// cuts. It stays as long as what follows treats all elements alike.
struct Box {
  /// The coordinates, each one or several axes. Their strides do not count.
  std::vector<Window::Group> groups;
  /// One axis for each group: of its length, and of its size or 1. The outside has size 1 along
  /// what is cut, and everywhere if more than one group is.
  mx::array inside, outside;
  /// Whether the outside depends on the grid, the scalars and constants only.
  bool isOutsideKnown = false;
};

struct Sum;

/// A scalar or a tile of every program at once. It has a form that is known while the graph is
/// made, an array, or both: the array of a form is made when it is asked for.
///
/// A pointer is a buffer and the offset from its beginning, in elements.
class Value {
public:
  Value() = default;
  static Value of(Type type, Extents extents, mx::array array, bool isKnown);
  static Value of(Type type, Extents extents, Affine affine);
  /// The truth value that is true where every one of `conditions` is at least 0.
  static Value of(Type type, Extents extents, std::vector<Affine> conditions);

  static Value of(Type type, Extents extents, Box box, bool isKnown);
  static Value of(Type type, Extents extents, Sum sum);

  bool isValid() const { return state != nullptr; }
  /// Whether it is this value, and not one that is equal.
  bool isSame(const Value &other) const { return state == other.state; }
  const Type &type() const { return state->type; }
  const Extents &extents() const { return state->extents; }
  size_t rank() const { return state->extents.size(); }
  /// Whether it depends on the grid, the scalars and constants only.
  bool isKnown() const { return state->isKnown; }
  int buffer() const { return state->buffer; }

  const Affine *affine() const { return state->affine ? &*state->affine : nullptr; }
  const std::vector<Affine> *conditions() const {
    return state->conditions ? &*state->conditions : nullptr;
  }
  const Box *box() const { return state->box ? &*state->box : nullptr; }
  const Sum *sum() const { return state->sum.get(); }
  /// The number, where it is the same everywhere and known without computing an array.
  std::optional<int64_t> constant() const;

  const mx::array &array() const;

  Value withType(Type type) const;
  Value withBuffer(int buffer) const;

private:
  struct State {
    Type type;
    Extents extents;
    std::optional<Affine> affine;
    std::optional<std::vector<Affine>> conditions;
    std::optional<Box> box;
    std::shared_ptr<const Sum> sum;
    std::optional<mx::array> array;
    bool isKnown = false;
    int buffer = -1;
  };
  std::shared_ptr<State> state;
};

/// Numbers that are an array and an affine form: the places of rows that elements of an array
/// choose. A truth value is an array's, and that all conditions are at least 0.
struct Sum {
  Value base;
  Affine offset;
  std::vector<Affine> conditions;
};

/// The array with more of `outside` before and behind its elements along an axis.
mx::array surrounded(const mx::array &array, size_t axis, int low, int high,
                     const mx::array &outside);

/// The box as an array that has the axes of a tile.
mx::array toTile(const Box &box, const Extents &extents);

/// The sizes that hold both; those of one rank.
Extents join(const Extents &a, const Extents &b);

bool isUniform(const Extents &extents);

mx::Shape shapeOf(const Extents &extents);

/// The same value with `rank` axes: axes of size 1 are put behind the others.
Value aligned(const Value &value, size_t rank);

/// Whether the number fits a signed integer of this width.
bool fits(std::pair<int64_t, int64_t> range, int width);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_VALUE_H
