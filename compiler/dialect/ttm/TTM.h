// The `ttm` dialect: tiles with a layout, threadgroup memory and simdgroup matrices.

#ifndef TRITON_METAL_DIALECT_TTM_TTM_H
#define TRITON_METAL_DIALECT_TTM_TTM_H

#include "analysis/LinearLayout.h"
#include "dialect/msl/MSLInterfaces.h"
#include "dialect/tt/TT.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace triton_metal::ttm {

/// What alloc_tile, store_tile, load_tile and mma touch.
struct ThreadgroupMemory : public mlir::SideEffects::Resource::Base<ThreadgroupMemory> {
  llvm::StringRef getName() final { return "ThreadgroupMemory"; }
};

/// The SIMD-groups of the threadgroup that the operation's module says; 0 if it does not.
unsigned getNumSimdgroups(mlir::Operation *op);

} // namespace triton_metal::ttm

#include "dialect/ttm/TTMDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ttm/TTMAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/ttm/TTMTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/ttm/TTMOps.h.inc"

namespace triton_metal::ttm {

/// The layout of a tensor type; none for other types and for tensors without one.
std::optional<LinearLayout> getLayout(mlir::Type type);
inline std::optional<LinearLayout> getLayout(mlir::Value value) {
  return getLayout(value.getType());
}

/// The tensor type with this layout (whose shape must be the type's).
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, const LinearLayout &layout);

/// How the SIMD-groups tile a layout of the instruction's accumulators.
struct SimdgroupMatrixTiling {
  /// The SIMD-groups along the batch; 1 if there is none.
  unsigned batch = 1;
  unsigned rows = 1, columns = 1;
};

/// None if it is no such layout. It has two dimensions, or three with a batch before them.
std::optional<SimdgroupMatrixTiling> getSimdgroupMatrixTiling(const LinearLayout &layout,
                                                              msl::MatrixShape instruction);

/// Registers, copies left out, that step through neighbours along one dimension from register 0 on.
int64_t getRegistersInRow(const LinearLayout &layout);

/// The layout in which a tensor of this shape can be operand 0 (A, [M][K]) or 1 (B, [K][N]) of an
/// `mma` with this accumulator as it is; none if there is no such layout.
std::optional<LinearLayout> getOperandLayout(llvm::ArrayRef<int64_t> shape,
                                             msl::MatrixShape instruction, unsigned operandIndex,
                                             const LinearLayout &accumulator,
                                             bool transposed = false);

/// Whether a tensor of this layout can be operand 0 (A) or 1 (B) of an `mma` with this accumulator
/// as it is.
inline bool isOperandLayout(const LinearLayout &layout, msl::MatrixShape instruction,
                            unsigned operandIndex, const LinearLayout &accumulator,
                            bool transposed = false) {
  return getOperandLayout(layout.getShape(), instruction, operandIndex, accumulator, transposed) ==
         layout;
}

/// How a `tt.dot` takes its operands from registers: `ttm-assign-dot-layouts` writes it at the dot,
/// for instructions whose operands are there.
struct RegisterOperands {
  msl::MatrixShape instruction;
  /// Threads hold neighbours in a column of A or B.
  bool transposed[2];

  static std::optional<RegisterOperands> get(mlir::Operation *dot);
  void set(mlir::Operation *dot) const;
};

} // namespace triton_metal::ttm

#endif
