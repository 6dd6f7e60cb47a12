#ifndef TRITON_METAL_TRANSFORMS_MSLPLAN_H
#define TRITON_METAL_TRANSFORMS_MSLPLAN_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// Operations on tiles that share one loop over registers.
struct Segment {
  int64_t registers = 0;
  llvm::SmallVector<mlir::Operation *> items;
  /// Uniform conditions under which no mask of the segment cuts.
  llvm::SetVector<mlir::Value> fulls;
};

/// One step of a block: a segment, or an operation by itself.
struct Entry {
  mlir::Operation *op = nullptr;
  Segment *segment = nullptr;
};

/// Which operations of a kernel share a loop, which are computed again wherever they are asked for,
/// and in what order the steps of each block go.
class Plan {
public:
  explicit Plan(KernelOp kernel);

  llvm::ArrayRef<Entry> getEntries(mlir::Block *block) { return entries[block]; }
  /// The step of its block in which `op` is computed; -1 where it has none of its own (computed
  /// when asked for).
  int getEntryIndex(mlir::Operation *op) const;
  Segment *getSegment(mlir::Operation *op) const { return home.lookup(op); }

  /// The value is computed from scalars and constants at so little cost that it is computed again
  /// where it is used.
  bool isCheap(mlir::Value value) { return getCost(value) <= 24; }
  /// Cheap, or only another order of registers.
  bool isLazy(mlir::Value value);
  /// The operations that use the value, seen through lazy ones.
  llvm::SmallVector<mlir::Operation *> getUsers(mlir::Value value);
  /// Nothing after step `index` of its block reads the value, `allowLast`: nor does that step
  /// itself.
  bool isDeadAfter(mlir::Value value, mlir::Block *block, int index, bool beforeLast);

private:
  int getCost(mlir::Value value);
  void planBlock(mlir::Block &block);
  enum class Dependence { None, SameRegister, Other };
  Dependence getDependence(mlir::Value value, const Segment &segment, bool sameRegister);
  bool conflicts(mlir::Operation *op, const Segment &segment);

  llvm::DenseMap<mlir::Block *, llvm::SmallVector<Entry>> entries;
  llvm::DenseMap<mlir::Operation *, int> index;
  llvm::DenseMap<mlir::Operation *, Segment *> home;
  llvm::DenseMap<mlir::Value, int> costs;
  llvm::SmallVector<std::unique_ptr<Segment>> segments;
};

/// The operation computes each register of its result from the same register of its operands.
bool isElementwise(mlir::Operation *op);
/// The operation accesses memory register by register.
bool isAccess(mlir::Operation *op);
/// The value's neutral element, where a whole reduction has a combination of one known operation.
mlir::TypedAttr getNeutralElement(ReduceRegistersOp reduce);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLPLAN_H
