// What each operation asks of the layouts of its operands and results.
#ifndef TRITON_METAL_DIALECT_TTM_LAYOUTINFERENCE_H
#define TRITON_METAL_DIALECT_TTM_LAYOUTINFERENCE_H

#include "analysis/LinearLayout.h"

#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace triton_metal::ttm {

enum class LayoutRule {
  /// No operand; the result has whatever layout is asked for (make_range, splat, constant).
  Source,
  /// Operands and results have one layout.
  Same,
  /// The result's layout follows from the operand's, or the operand's from the result's.
  Inferred,
  /// The result's layout follows from the operand's, which the result does not determine (reduce).
  Reduction,
  /// Operands of memory operations have one layout, and so has the result.
  Memory,
  Dot,
  /// Loops and branches carry layouts through.
  ControlFlow,
  /// Each operand and result has a layout of its own.
  Free,
};

/// Operands and results have one layout.
bool isOneLayout(LayoutRule rule);

LayoutRule getLayoutRule(mlir::Operation *op);

/// The layout of the results when this tensor operand has `layout`; none if there is no such
/// layout, or if it is open. For a broadcast it is one of several (LinearLayout::broadcastTo).
std::optional<LinearLayout> inferResultLayout(mlir::Operation *op, unsigned operandIndex,
                                              const LinearLayout &layout);

/// The layout that this tensor operand must have for the results to have `layout`; none if it
/// cannot be said.
std::optional<LinearLayout> inferOperandLayout(mlir::Operation *op, unsigned operandIndex,
                                               const LinearLayout &layout);

/// Whether this tensor operand may have any layout, whatever the results' is.
bool takesAnyLayout(mlir::OpOperand &operand);

/// The layout of a tile that nothing else is known of.
LinearLayout getDefaultLayout(llvm::ArrayRef<int64_t> shape, unsigned numSimdgroups);

/// Checks what holds of every operation at the `ttm` level, and says where it does not.
mlir::LogicalResult verifyLayouts(mlir::Operation *root);

} // namespace triton_metal::ttm

#include "dialect/ttm/TTMInterfaces.h.inc"

#endif
