// Which numbers follow from a thread's lane.
#ifndef TRITON_METAL_TRANSFORMS_MSLLANENUMBERS_H
#define TRITON_METAL_TRANSFORMS_MSLLANENUMBERS_H

#include "dialect/msl/MSL.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"

namespace triton_metal::msl {

/// How numbers follow from the lane. What loops carry and variables hold counts as the same in all
/// lanes: this finds defects, and does not prove that there are none.
class LaneNumbers {
public:
  enum class Kind {
    /// The same in all lanes, as far as is known.
    Same,
    /// Follows from the lane by arithmetic and accesses alone.
    Lane,
    /// Follows from what lanes have exchanged, so that it may be the same in all of them: a
    /// reduction that keeps its order gives them one number by choices that depend on the lane.
    Exchanged
  };

  Kind get(mlir::Value value) {
    mlir::Operation *op = value.getDefiningOp();
    if (!op)
      return Kind::Same;
    if (auto it = known.find(value); it != known.end())
      return it->second;
    Kind result = Kind::Same;
    if (mlir::isa<LaneOp>(op))
      result = Kind::Lane;
    else if (mlir::isa<SpreadOpInterface>(op))
      result = Kind::Same;
    else if (crossesLanes(op))
      result = Kind::Exchanged;
    else if (op->getNumRegions() == 0)
      for (mlir::Value operand : op->getOperands())
        result = join(op, result, get(operand));
    known[value] = result;
    return result;
  }

private:
  /// A condition that lanes part by does so whatever else must be true.
  static Kind join(mlir::Operation *op, Kind a, Kind b) {
    bool isLogic = mlir::isa<mlir::arith::AndIOp, mlir::arith::OrIOp>(op) &&
                   op->getResult(0).getType().isInteger(1);
    Kind first = isLogic ? Kind::Lane : Kind::Exchanged;
    if (a == first || b == first)
      return first;
    return a == Kind::Same ? b : a;
  }

  llvm::DenseMap<mlir::Value, Kind> known;
};

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLLANENUMBERS_H
