#ifndef TRITON_METAL_ANALYSIS_ACCESSPLACES_H
#define TRITON_METAL_ANALYSIS_ACCESSPLACES_H

#include "dialect/msl/MSL.h"

namespace mlir::scf {
class ForOp;
}

namespace triton_metal::msl {

/// The bytes that an access may touch, over all threads and registers: from `low` to below `high`,
/// relative to `root` plus the uniform numbers in `terms`, each times its factor. A pointer among
/// them is how often its loop has moved it on. If `modulus` is not 0, each thread and register may
/// be any number of times that many bytes away from there: a power of two, by which numbers are
/// multiplied of which nothing is known.
struct Place {
  /// What a thread or register adds: a multiple of `factor`, from `low` to `high`.
  struct Part {
    enum class Kind { Other, Lane, Simdgroup };

    int64_t low = 0, high = 0, factor = 1;
    /// Whether it is the lane's or the SIMD-group's index times the factor.
    Kind kind = Kind::Other;
    /// Bits of these indices, if it is those bits as a number times the factor.
    uint64_t laneBits = 0, simdgroupBits = 0;

    bool operator==(const Part &) const = default;
  };

  mlir::Value root;
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> terms;
  int64_t low = 0, high = 0;
  int64_t modulus = 0;
  /// Whether a term was added in 32 bits to what threads add: the sums of some of them may wrap
  /// around.
  bool wraps = false;
  /// Terms of sums in 32 bits that all threads have in common.
  llvm::SmallVector<mlir::Value, 0> wrapping;
  /// What `low` and `high` are the sums of, but for the width of the access.
  llvm::SmallVector<Part> parts;
  /// Bounds by the access's mask: all bytes are below `root` plus the terms and the number.
  struct Bound {
    llvm::SmallVector<std::pair<mlir::Value, int64_t>> terms;
    int64_t high = 0;
  };
  llvm::SmallVector<Bound, 0> bounds;

  static std::optional<Place> get(mlir::Value base, mlir::Value offsets, mlir::Value mask = {});

  /// Whether two accesses touch different bytes. With a loop, this access is in any earlier
  /// iteration of it, otherwise in the same.
  bool isDisjointFrom(const Place &other, mlir::scf::ForOp loop = {}) const;
  /// Whether only one thread touches bytes of both accesses, if any does: threads have places of
  /// their own, and places that lie further apart than all threads' do not meet. The loop as above.
  bool meetsOnlyItself(const Place &other, int64_t numSimdgroups, mlir::scf::ForOp loop = {}) const;

  /// Whether this access, in any step of a loop that has ended with `msl.whole_steps`, and the
  /// other one, at the loop's upper bound or in a loop that goes on from there, touch different
  /// bytes.
  bool isDisjointBehind(const Place &later, mlir::scf::ForOp loop) const;

private:
  /// Whether the mask of this access keeps it below all of the other one.
  bool isBelow(const Place &other) const;
  /// Whether this access, in any earlier iteration of the loop, and the other one, in the present
  /// iteration, are apart because every step moves them on.
  bool isMovedApart(const Place &later, mlir::scf::ForOp loop) const;
  /// A number of which the uniform numbers in which two places differ are a multiple; 0 if there
  /// are none. What a loop computes differs between its iterations. Where numbers may wrap around,
  /// it is a power of two.
  int64_t getDivisor(const Place &other, mlir::scf::ForOp loop = {}) const;
  /// From where to where its bytes are, from what is uniform, with the mask's bounds.
  std::pair<int64_t, int64_t> range() const;
  /// From where to where it is from a multiple of `divisor`.
  std::pair<int64_t, int64_t> remainders(int64_t divisor) const;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_ANALYSIS_ACCESSPLACES_H
