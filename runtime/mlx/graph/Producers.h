// How values of a program are made, for rewrites of groups of operations.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_PRODUCERS_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_PRODUCERS_H

#include "runtime/mlx/graph/Program.h"

#include <initializer_list>
#include <set>
#include <string_view>

namespace triton_metal::graph {

/// The operation's name in MLIR, also where a kernel calls it by its name in libdevice. What MLIR
/// does not have is `tt.extern_elementwise`.
const std::string &nameOf(const Operation &op);

/// Goes from values of tiles to what they are made of, and notes on its way which operations it
/// has passed.
class Producers {
public:
  /// For tiles whose last axis is `last`.
  Producers(const Program &program, int64_t last) : program(&program), last(last) {}

  /// The operation that makes a value, if it has one of these names.
  const Operation *made(int number, std::initializer_list<std::string_view> names);
  /// The value that a tile repeats along its last axis; the tile where it repeats none.
  int repeated(int number);
  /// What a reduction along the last axis by one of these operations reduces, where `number` is its
  /// result, also repeated along that axis. -1 for others.
  int reduced(int number, std::initializer_list<std::string_view> combiners);

  const std::set<const Operation *> &passed() const { return operations; }

private:
  const Program *program;
  int64_t last;
  std::set<const Operation *> operations;
};

/// The operations that take a value, wherever they are in the program.
std::set<const Operation *> takersOf(const Program &program, int number);

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_PRODUCERS_H
