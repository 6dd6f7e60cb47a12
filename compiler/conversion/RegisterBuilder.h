// Builds what one thread computes: vectors of registers, and numbers that follow from the thread's
// position.
#ifndef TRITON_METAL_CONVERSION_REGISTERBUILDER_H
#define TRITON_METAL_CONVERSION_REGISTERBUILDER_H

#include "analysis/LinearLayout.h"
#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace triton_metal {

using msl::withElement;

class RegisterBuilder : public mlir::ImplicitLocOpBuilder {
public:
  RegisterBuilder(mlir::Location loc, mlir::OpBuilder &builder, unsigned numSimdgroups)
      : ImplicitLocOpBuilder(loc, builder), numSimdgroups(numSimdgroups) {}

  //===--- Registers
  //------------------------------------------------------------------------------===//
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value zero(mlir::Type type) { return constant(type, 0); }
  /// A number for each register.
  mlir::Value dense(llvm::ArrayRef<int32_t> values);
  mlir::Value splat(mlir::Value scalar, int64_t count);
  /// The only register, or the first of equal ones.
  mlir::Value extractScalar(mlir::Value vector);
  /// `msl.permute_registers`, or what it folds to.
  mlir::Value permute(mlir::Value vector, llvm::ArrayRef<int64_t> bases, int64_t offset = 0);
  /// The registers of a vector whose index has none of these bits. Arithmetic on integers that
  /// makes the vector is done anew for these registers.
  mlir::Value registersWithout(mlir::Value vector, uint32_t bits, unsigned depth = 0);
  /// Signed integers of another width.
  mlir::Value castIntegers(mlir::Value value, mlir::Type elementType);
  /// Shuffles what SIMD-group functions take; wider and narrower types travel in it.
  mlir::Value shuffle(mlir::Value value, llvm::function_ref<mlir::Value(mlir::Value)> shuffleBits);
  /// Builds what only these threads do.
  void inThreads(const msl::ThreadSet &threads, llvm::function_ref<void()> body);

  //===--- The thread's position
  //------------------------------------------------------------------===//
  /// A sum over the set bits of the lane and SIMD-group index of these values.
  mlir::Value threadIndex(llvm::ArrayRef<uint32_t> lanes, llvm::ArrayRef<uint32_t> simdgroups,
                          const llvm::Twine &name = "");
  /// Whether this thread is one of these; null if all threads are.
  mlir::Value isOneOf(const msl::ThreadSet &threads);
  /// The threads that store a value: the first of those that hold the same elements of a tile, and
  /// the first one of all for a scalar.
  msl::ThreadSet getOwners(const std::optional<LinearLayout> &layout) const {
    if (!layout)
      return {.laneMask = 31, .simdgroupMask = numSimdgroups - 1};
    return {.laneMask = layout->freeMask(InDim::Lane),
            .simdgroupMask = layout->freeMask(InDim::Simdgroup)};
  }
  /// For each register the value that `field` gives to its element's flat index. The field must be
  /// additive over disjoint bits; `general` computes it from flat indices where the bases are not
  /// disjoint bits.
  mlir::Value registerIndices(const LinearLayout &layout,
                              llvm::function_ref<uint32_t(uint32_t)> field,
                              llvm::function_ref<mlir::Value(mlir::Value)> general,
                              const llvm::Twine &name);
  /// The elements' flat indices.
  mlir::Value flatIndices(const LinearLayout &layout);

private:
  // Positions of the thread are no value of the source: they take no name from it.
  mlir::Value lane() { return msl::LaneOp::create(plain(), getUnknownLoc()); }
  mlir::Value simdgroup() { return msl::SimdgroupOp::create(plain(), getUnknownLoc()); }
  mlir::OpBuilder &plain() { return *this; }

  unsigned numSimdgroups;
};

} // namespace triton_metal

#endif
