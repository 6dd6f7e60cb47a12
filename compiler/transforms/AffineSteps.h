// Integers of a loop as affine functions of its index.
#ifndef TRITON_METAL_TRANSFORMS_AFFINESTEPS_H
#define TRITON_METAL_TRANSFORMS_AFFINESTEPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace triton_metal {

/// Integers in a step of a loop. Each is congruent, modulo 2^32, to the sum of the terms,
/// `perIndex` times the loop's index and a number from `low` to `high`; one of 64 bits is that sum.
struct Affine {
  /// Scalars that the loop does not change, each once, and their factors.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 2> terms;
  int64_t perIndex = 0, low = 0, high = 0;

  static Affine constant(int64_t value) { return {{}, 0, value, value}; }
  static Affine of(mlir::Value scalar) { return {{{scalar, 1}}, 0, 0, 0}; }

  void add(const Affine &other, int64_t factor);
  /// With a number in place of the loop's index.
  Affine at(const Affine &index) const;
  /// Whether sums of 64 bits hold it exactly, however large its terms are.
  bool isSmall() const;
};

/// A number of places of a block: how far the block's `offset` is before `size`, no less than 0 and
/// no more than `count`. Of a block's begin, `size` is null and stands for 0, and the number is how
/// far the offset is below it (BlockAccess.cpp).
struct BlockBound {
  mlir::Value size, offset;
  int64_t count = 0;

  /// The bound that a scalar is, or a tile that has it in every element.
  static std::optional<BlockBound> match(mlir::Value value);
};

/// The affine functions of one loop whose index has 32 bits and whose step is a positive constant.
class AffineSteps {
public:
  AffineSteps(mlir::scf::ForOp loop, int64_t step) : loop(loop), step(step) {}

  /// A scalar or a tile of the loop's body, or from before the loop; nothing if it is not affine.
  /// The low bits of the index, and its other bits, may be terms of it.
  std::optional<Affine> get(mlir::Value value) { return get(value, 0); }
  /// Makes multiples of the index of multiples of its parts. Returns whether no part is left.
  bool joinParts(Affine &sum);
  /// A number that is not above (below) the sum in any step, without the index and its parts.
  /// Nothing if none is known.
  std::optional<Affine> getEnd(const Affine &sum, bool isLeast);
  /// Whether a number is from `least` to `most` in each step, and can be `least`.
  bool isWithin(const Affine &sum, int64_t least, int64_t most);
  /// The first index; the index that no step exceeds.
  Affine first();
  Affine last();

private:
  /// The low bits of the index, or its other bits, shifted down by as many.
  struct Part {
    bool isLow = false;
    unsigned bits = 0;
  };
  std::optional<Part> getPart(mlir::Value value);
  std::optional<Affine> get(mlir::Value value, unsigned depth);
  std::optional<Affine> getWidened(mlir::Value value);
  std::optional<Affine> getSum(mlir::Operation *op, unsigned depth);
  std::optional<Affine> getCarried(mlir::BlockArgument argument, unsigned depth);

  mlir::scf::ForOp loop;
  int64_t step;
};

} // namespace triton_metal

#endif
