// The masks of a loop by its steps: what TTMSplitLoops.cpp and TTMBranchSteps.cpp share.
#ifndef TRITON_METAL_TRANSFORMS_TTMLOOPSPLIT_H
#define TRITON_METAL_TRANSFORMS_TTMLOOPSPLIT_H

#include "transforms/AffineSteps.h"
#include "transforms/IntegerRanges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"

namespace triton_metal {

/// A comparison `a < b` of which it can be known, before the loop, in which steps it is true for
/// all elements: if the exact `margin`, the least of b minus the greatest of a, is positive, and
/// neither the least of a nor the greatest of b wraps around.
struct Comparison {
  Affine margin, least, greatest;
};

/// Comparisons of masks by their operations.
using Comparisons = llvm::MapVector<mlir::Operation *, Comparison>;

/// The comparisons of the masks of one loop, and the step up to which they are true.
class LoopSplit {
public:
  LoopSplit(mlir::scf::ForOp loop, int64_t step) : loop(loop), step(step), affine(loop, step) {}

  /// Whether there is something to gain; changes nothing.
  bool analyse();
  void rewrite();

private:
  void addMask(mlir::Value mask, bool onlyKnown = false);
  /// Both sides of `smaller < larger`, or `<=`; where one is a block's bound, of what that stands
  /// for.
  std::pair<std::optional<Affine>, std::optional<Affine>>
  getSides(mlir::Value smaller, mlir::Value larger, bool isStrict);
  std::optional<Comparison> compare(mlir::arith::CmpIOp op);
  bool isKnown(const Affine &number, bool isLeast);
  int64_t getMostLeft(const Affine &limit);
  bool isLikelyWhole(const Affine &limit);
  void addUpperBounds(mlir::Value value);
  void findConditions(const Comparisons &some);
  void keepSameMasks();
  mlir::Value createLimit(Affine limit, int64_t factor);
  mlir::Value createPositive(const Affine &number);
  mlir::Value createSum(const Affine &number);
  mlir::Value createConditions();
  mlir::Location getBoundName();
  mlir::Value createBound();
  mlir::Value createVersionBound();
  void continueLoop(mlir::Value bound, mlir::ValueRange carried);
  void branch();
  void branch(mlir::Block &block);
  void branch(llvm::ArrayRef<mlir::Operation *> group);
  mlir::Value createGroupBound(llvm::ArrayRef<mlir::Operation *> group,
                               llvm::DenseSet<mlir::Operation *> &isTrue);
  bool feedsTiles(mlir::Operation *op);
  void sinkIntoCuts(mlir::Block &block);
  void markCut(mlir::Operation *root, bool isCut);
  void findComparisons(mlir::Value mask, llvm::SmallVectorImpl<const Comparison *> &found);
  bool areAll(llvm::ArrayRef<const Comparison *> some);

  mlir::Value constant(mlir::Type type, int64_t value) {
    return mlir::arith::ConstantOp::create(builder, where, builder.getIntegerAttr(type, value));
  }
  mlir::Value constant(int64_t value) { return constant(builder.getI32Type(), value); }

  mlir::scf::ForOp loop;
  int64_t step;
  AffineSteps affine;
  ValueRanges ranges;
  Comparisons comparisons;
  /// Sums that must be positive, or the first loop has no steps.
  llvm::SmallVector<Affine> conditions;
  /// Each index of the first loop, times a power of two, is below all of these.
  llvm::SmallVector<std::pair<Affine, int64_t>> limits;
  /// Comparisons that are true for every element of every step.
  llvm::DenseSet<mlir::Operation *> alwaysTrue;
  /// What is not below the loop's upper bound, unless that is negative.
  llvm::SmallVector<Affine> upperBounds;
  /// Whether a product multiplies by another one's results.
  bool isChained = false;
  /// Whether one of two loops is to take all steps.
  bool isVersioned = false;
  /// Whether the loop stays one, and its loads and choices stand in both sides of a branch.
  bool isBranched = false;
  /// Whether choices of tiles have masks, too.
  bool chooses = false;
  /// What is known of `feedsTiles`.
  llvm::DenseMap<mlir::Operation *, bool> tileFeeds;
  /// The sides of branches for steps that are not whole.
  llvm::SmallVector<mlir::Region *> cuts;
  mlir::OpBuilder builder{loop};
  mlir::Location where = mlir::UnknownLoc::get(loop.getContext());
};

/// Whether two functions are the same.
bool isSame(const Affine &a, const Affine &b);
/// The mask of a load or store; null where it has none.
mlir::Value getMask(mlir::Operation *op);
/// What a load, store or choice asks; null where it asks nothing.
mlir::Value getCondition(mlir::Operation *op);
/// Leaves out what is true of masks and choices.
void dropMasks(mlir::Operation *root, const llvm::DenseSet<mlir::Operation *> &isTrue);

} // namespace triton_metal

#endif
