// Chooses a layout for each value, for ttm-remove-layout-conversions.
#ifndef TRITON_METAL_TRANSFORMS_TTMLAYOUTSOLVER_H
#define TRITON_METAL_TRANSFORMS_TTMLAYOUTSOLVER_H

#include "analysis/AxisInfo.h"
#include "analysis/LinearLayout.h"
#include "dialect/tt/TT.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace triton_metal {

/// Takes a module whose layouts are consistent, drops its conversions (so that it is consistent no
/// longer), and says what layout each value is to have. A value has one of two natures. A *fixed*
/// value exists once, in one layout: what is computed of loads, dots and reductions, and what loops
/// carry. All others are made of ranges, scalars and constants, or repeat a smaller tile, and can
/// be made again in every layout that is asked for.
class LayoutSolver {
public:
  explicit LayoutSolver(mlir::ModuleOp module);

  void solve();

  /// The layout of a fixed value.
  std::optional<LinearLayout> getFixed(mlir::Value value) const;
  /// The layout in which an operation that stays takes a tensor operand.
  LinearLayout getRequired(mlir::OpOperand &operand) const;
  /// The layout in which an operation takes a tensor operand when its results have this layout.
  LinearLayout getOperandLayout(mlir::OpOperand &operand, const LinearLayout &result) const;
  /// Whether an operation stays as it is; others are made anew where their results are asked for.
  bool isKept(mlir::Operation *op) const;
  /// The layouts that the module had, for what nothing was found out of.
  const LinearLayout &getOriginal(mlir::OpOperand &operand) const;
  const LinearLayout &getOriginal(mlir::Value value) const;

private:
  /// A layout that reaches a value from an anchor.
  struct Candidate {
    LinearLayout layout;
    unsigned priority;
    unsigned anchor;
    bool isBetterThan(const Candidate &other) const {
      return priority != other.priority ? priority > other.priority : anchor < other.anchor;
    }
  };
  /// Whose layout wins where two meet.
  enum Priority : unsigned { Guess = 1, Load = 2, Reduction = 3, Dot = 4 };

  void record();
  void dropConversions();

  // Forward: from anchors' results to what is computed of them.
  void propagate();
  void offer(mlir::Value value, const Candidate &candidate);
  void drain();
  void propagateFrom(mlir::Value value);

  // Backward: what is asked of operands.
  void decideStores();
  void demandAll();
  void demand(mlir::Value value, const LinearLayout &layout);
  void demandOperands(mlir::Operation *op);
  void fixCarried(mlir::Value value, const LinearLayout &layout);
  bool tryChange(mlir::Value value, const LinearLayout &layout);
  /// Values that get other layouts together, and those in which reductions take their operands.
  struct Change {
    llvm::MapVector<mlir::Value, LinearLayout> values;
    llvm::MapVector<mlir::Operation *, LinearLayout> reductions;
    /// Whether other uses of a value follow the one that has asked.
    bool follows = false;
  };
  bool collectChange(mlir::Value value, const LinearLayout &asked, Change &change);
  bool changeResults(mlir::Operation *op, const LinearLayout &layout, Change &change) const;
  bool collectOperands(mlir::Operation *op, const LinearLayout &layout, Change &change);
  bool changeReduction(tt::ReduceOp reduce, const LinearLayout &layout, Change &change);
  bool followChange(mlir::OpOperand &use, const LinearLayout &layout, Change &change);
  bool isWorthFollowing(const LinearLayout &usual, const LinearLayout &asked,
                        const Change &change) const;

  double getAccessCost(mlir::Operation *op, const LinearLayout &layout, bool inLines) const;
  /// Whether a memory operation costs less in its usual layout, with the conversion between it and
  /// the one that is asked for.
  bool isWorthConverting(mlir::Operation *op, const LinearLayout &asked,
                         const LinearLayout &usual) const;

  mlir::ModuleOp module;
  std::unique_ptr<AxisInfoAnalysis> axes;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<LinearLayout>> originalOperands;
  llvm::DenseMap<mlir::Value, LinearLayout> originalValues;
  llvm::DenseMap<mlir::Value, Candidate> best;
  llvm::SmallVector<mlir::Value> worklist;
  llvm::DenseMap<mlir::Value, LinearLayout> fixed;
  /// The layout of memory operations and reductions, which their results do not tell.
  llvm::DenseMap<mlir::Operation *, LinearLayout> opLayouts;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<LinearLayout, 2>> demanded;
  /// How often a value has changed its layout along with others.
  llvm::DenseMap<mlir::Value, unsigned> followers;
  unsigned numAnchors = 0;
  bool multipliesMatrices = false;
};

/// Where a carried value comes from and what else has its layout. `sources` are the operands that
/// feed it.
struct CarriedGroup {
  llvm::SmallVector<mlir::Value, 2> members;
  llvm::SmallVector<mlir::OpOperand *, 2> sources;
};
/// None if the value is not carried by scf.for, scf.if or scf.while.
std::optional<CarriedGroup> getCarriedGroup(mlir::Value value);
/// The value that an operand of a loop, yield or condition feeds; null if there is none.
mlir::Value getCarriedTarget(mlir::OpOperand &operand);

} // namespace triton_metal

#endif
