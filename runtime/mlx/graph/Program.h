// A kernel as a program of array operations, read from the compiler's text.
#ifndef TRITON_METAL_RUNTIME_MLX_GRAPH_PROGRAM_H
#define TRITON_METAL_RUNTIME_MLX_GRAPH_PROGRAM_H

#include "mlx/array.h"
#include "mlx/dtype.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

namespace triton_metal::graph {

namespace mx = mlx::core;

/// The type of a scalar or a tile: "f32", or "*f32" for pointers, and the sizes of a tile.
struct Type {
  std::string element;
  std::vector<int> shape;

  bool isPointer() const { return !element.empty() && element.front() == '*'; }
  bool isFloat() const { return element.find('f') != std::string::npos && !isPointer(); }
  bool isBool() const { return element == "i1"; }
  /// The width of a number in bits; of an offset, for a pointer.
  int width() const;
  /// The dtype of the arrays that hold such numbers. Integers are signed.
  mx::Dtype dtype() const;
};

/// A place in the source. Lines and columns are counted from 1; `file` is -1 where none is known.
struct Place {
  int file = -1;
  int line = 0, column = 0;
};

struct Operation;

struct Block {
  std::vector<int> arguments;
  std::vector<Type> types;
  std::vector<Operation> operations;
};

struct Operation {
  std::string name;
  std::vector<int> operands, results;
  std::vector<Type> types;
  nlohmann::json attributes;
  Place place;
  /// A region without blocks has none.
  std::vector<std::optional<Block>> regions;
  /// Whether anything uses a result.
  bool isUsed = false;

  int64_t integer(const char *attribute) const { return attributes.at(attribute).get<int64_t>(); }
  bool has(const char *attribute) const { return attributes.contains(attribute); }
};

struct Program {
  std::string name;
  std::vector<Type> arguments;
  Block body;
  std::vector<std::string> files;
  int numValues = 0;
  /// For each value, how many operands it is.
  std::vector<int> useCounts;
  /// For each value, the operation that makes it, or null. A program is moved and never copied, so
  /// that these stay where they are.
  std::vector<const Operation *> producers;

  Program() = default;
  Program(Program &&) = default;
  Program(const Program &) = delete;

  /// Reads what `writeGraphProgram` wrote.
  static Program read(const std::string &text);
  /// `file:line:column`, or nothing.
  std::string describe(Place place) const;
  const Operation *producer(int value) const { return producers[static_cast<size_t>(value)]; }
  int useCount(int value) const { return useCounts[static_cast<size_t>(value)]; }
  bool isUsed(int value) const { return useCount(value) > 0; }
};

/// What cannot become a graph, with its place in the source.
struct Refusal : std::exception {
  Refusal(Place place, std::string message) : place(place), message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }

  Place place;
  std::string message;
};

/// An assertion that fails, in the first program of the grid in which it does.
struct FailedAssertion : Refusal {
  FailedAssertion(Place place, std::string message, std::array<int, 3> program,
                  std::vector<int> index)
      : Refusal(place, std::move(message)), program(program), index(std::move(index)) {}

  std::array<int, 3> program;
  /// The first element that is false; empty for a scalar.
  std::vector<int> index;
};

} // namespace triton_metal::graph

#endif // TRITON_METAL_RUNTIME_MLX_GRAPH_PROGRAM_H
