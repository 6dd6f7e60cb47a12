// What a loop over registers does to arrays and memory, and when two of them may change places.

#ifndef TRITON_METAL_TRANSFORMS_MSLLOOPEFFECTS_H
#define TRITON_METAL_TRANSFORMS_MSLLOOPEFFECTS_H

#include "analysis/PointerOrigins.h"
#include "dialect/msl/MSL.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace triton_metal::msl {

/// Elements of an array in a step of a loop: the step's index times `perStep`, plus a number from
/// `low` to `high`.
struct StepElements {
  int64_t perStep = 0, low = 0, high = 0;

  /// Nothing for an index of which this is not known. No index is element 0.
  static std::optional<StepElements> get(mlir::Value index, mlir::Value step);

  bool isOne() const { return low == high; }
  bool operator==(const StepElements &other) const = default;
};

/// The effects of a loop, or of operations around loops.
class LoopEffects {
public:
  /// Of nothing yet.
  LoopEffects() = default;
  explicit LoopEffects(UnrollOp loop) : LoopEffects(loop, loop.getIndex()) {}
  /// Of an operation in a loop with this index.
  LoopEffects(mlir::Operation *op, mlir::Value step) : step(step) { add(op); }

  /// Adds an operation and all inside of it.
  void add(mlir::Operation *op);

  /// Whether something is done that is no access to an array or to memory.
  bool isOpaque() const { return opaque; }
  bool touches(mlir::Value array) const { return arrays.contains(array); }
  bool writes(mlir::Value array) const;
  /// Whether each step writes the one element of the array that has its index.
  bool writesByStep(mlir::Value array) const;

  /// Whether the two must stay in their order.
  bool conflictsWith(const LoopEffects &other) const;
  /// Whether the other one reads an array that this one writes.
  bool leavesFor(const LoopEffects &other) const;
  /// Whether each step may change places with every other step of the other loop.
  bool stepsCommuteWith(const LoopEffects &other) const;

private:
  struct Access {
    std::optional<StepElements> elements;
    bool reads, writes;
  };

  struct MemoryEffect {
    Origins origins;
    bool writes;
  };

  void addMemory(MemoryAccessOpInterface op);
  /// Whether what is done besides accesses to arrays must stay in its order.
  bool conflictsOutsideOfArrays(const LoopEffects &other) const;

  mlir::Value step;
  llvm::MapVector<mlir::Value, llvm::SmallVector<Access>> arrays;
  llvm::SmallVector<MemoryEffect> memory;
  KernelOp kernel;
  bool opaque = false;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLLOOPEFFECTS_H
