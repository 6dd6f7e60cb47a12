// What is known about the values of a tile along each of its axes: which neighbours are
// consecutive, which are equal, and by what the first of them is divisible. The width of memory
// accesses depends on it.
#ifndef TRITON_METAL_ANALYSIS_AXISINFO_H
#define TRITON_METAL_ANALYSIS_AXISINFO_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <optional>

namespace triton_metal {

/// A sum of the indices of a program: most + perProgram[0] * program_id(0) + ...
struct GridSum {
  int64_t most = 0;
  std::array<int64_t, 3> perProgram = {0, 0, 0};

  bool isConstant() const { return perProgram == std::array<int64_t, 3>{0, 0, 0}; }
  auto operator<=>(const GridSum &) const = default;
};

/// Numbers between 0 and `sum`. This holds in launches in which all sums in `needs` stay below
/// 2^31; above that, 32-bit numbers would wrap around.
struct UpperBound {
  GridSum sum;
  llvm::SmallVector<GridSum, 0> needs;

  bool operator==(const UpperBound &) const = default;
};

/// Along dimension d, in groups of neighbours that start at a multiple of the group's size:
struct AxisInfo {
  using Dims = llvm::SmallVector<int64_t, 4>;
  /// groups of this many elements are consecutive (for pointers: consecutive elements in memory);
  Dims contiguity;
  /// the first element of each such group is a multiple of this (for pointers: of so many bytes);
  Dims divisibility;
  /// groups of this many elements are equal;
  Dims constancy;
  /// groups of this many elements are consecutive wherever they start: as exact numbers, of which
  /// none wraps around. Of i1: those that are true come first.
  Dims runs;
  /// All elements are non-negative as signed integers, and at most this.
  std::optional<UpperBound> bound;
  /// The facts about dimensions hold in launches in which these sums stay below 2^31.
  llvm::SmallVector<GridSum, 0> needs;

  AxisInfo() = default;
  AxisInfo(Dims contiguity, Dims divisibility, Dims constancy)
      : contiguity(std::move(contiguity)), divisibility(std::move(divisibility)),
        constancy(std::move(constancy)), runs(this->contiguity.size(), 1) {}

  /// Nothing is known. Scalars have one axis of extent 1.
  static AxisInfo unknown(mlir::Type type);

  bool isNonNegative() const { return bound.has_value(); }
  unsigned getRank() const { return contiguity.size(); }
  /// Divisibility of the first elements of groups of `group` neighbours, each of `unit` apart.
  int64_t divisibilityOf(unsigned dim, int64_t group, int64_t unit = 1) const;
  /// The facts that hold for the values of both.
  static AxisInfo join(const AxisInfo &a, const AxisInfo &b);

  bool operator==(const AxisInfo &) const = default;
  void print(llvm::raw_ostream &os) const;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const AxisInfo &info) {
  info.print(os);
  return os;
}

/// Axis information of all values under an operation. Facts come from the operations, from the
/// function arguments' `tt.divisibility`, `tt.contiguity` and `tt.constancy`, and from the
/// attributes of these names on operations.
class AxisInfoAnalysis {
public:
  explicit AxisInfoAnalysis(mlir::Operation *root);

  AxisInfo get(mlir::Value value) const;

  /// How many neighbours along `dim` one access of at most `maxBytes` can take: consecutive, and
  /// aligned or in a vector that needs only its elements' alignment.
  int64_t getAccessWidth(mlir::Value pointers, unsigned dim, int64_t maxBytes = 16) const;
  /// How many are aligned.
  int64_t getAlignedWidth(mlir::Value pointers, unsigned dim, int64_t maxBytes = 16) const;

private:
  void visitBlock(mlir::Block &block);
  void visitOp(mlir::Operation *op);
  void visitLoopLike(mlir::Operation *op);
  AxisInfo compute(mlir::Operation *op, mlir::Value result) const;
  void set(mlir::Value value, AxisInfo info);

  llvm::DenseMap<mlir::Value, AxisInfo> infos;
};

/// Bytes of an element in memory: of what a pointer points to, or of a number; i1 takes one.
int64_t getElementBytes(mlir::Type type);

} // namespace triton_metal

#endif
