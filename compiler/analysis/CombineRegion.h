// Properties of the region with which a reduction combines two elements.
#ifndef TRITON_METAL_ANALYSIS_COMBINEREGION_H
#define TRITON_METAL_ANALYSIS_COMBINEREGION_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace triton_metal {

/// The operation of a combine region that consists of one operation whose operands may be
/// exchanged; null for other regions. The block takes two elements of each operand.
mlir::Operation *getCommutativeCombiner(mlir::Block &block);

/// A region that selects the larger (or smaller) of two numbers together with its index, and the
/// lower (or higher) index of equal numbers.
struct ArgMinMax {
  bool isFloat = false, isUnsigned = false;
  bool isMax = false;
  bool hasLowerIndex = false, isIndexUnsigned = false;

  /// Nothing for other regions. The block takes a number and its index twice.
  static std::optional<ArgMinMax> get(mlir::Block &block);
};

/// Whether any order of the elements gives the same result.
bool isCommutative(mlir::Block &block);

} // namespace triton_metal

#endif
