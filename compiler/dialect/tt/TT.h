// The `tt` dialect: tile programs, as Triton prints them.

#ifndef TRITON_METAL_DIALECT_TT_TT_H
#define TRITON_METAL_DIALECT_TT_TT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace triton_metal::tt {

// The names of MLIR's that the generated code and its readers use.
using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

/// The largest number of elements of a tile.
inline constexpr int64_t kMaxTileElements = int64_t(1) << 20;

/// On an argument: what the kernel tests that it is a multiple of, in bytes; accesses have a body
/// for either outcome. As `tt.divisibility`, which is a promise.
inline constexpr llvm::StringLiteral testedDivisibilityAttrName = "tt.tested_divisibility";

/// The type behind a pointer or a tensor of pointers: f32 and tensor<4xf32>; null for anything
/// else.
mlir::Type getPointeeTypeOf(mlir::Type ptrLike);

/// i1, or a tensor of i1 of the type's shape and layout.
mlir::Type getMaskTypeOf(mlir::Type type);

/// A pointer to the type's element in a space, in the type's shape and layout.
mlir::Type getPointerTypeTo(mlir::Type type, int addressSpace = 1);

/// The bits of an integer, a floating-point number or a pointer (64); 0 for anything else.
unsigned getBitWidth(mlir::Type type);

/// True where every element of a splat constant, or the scalar constant, is this boolean.
bool isConstantBool(mlir::Value value, bool wanted);

namespace detail {
LogicalResult verifyTileSizes(mlir::Operation *op);
LogicalResult verifySameEncoding(mlir::Operation *op, bool withResults);
/// Shapes and elements agree; layouts are the concern of the passes that put them there.
bool sameTilesButLayout(mlir::TypeRange lhs, mlir::TypeRange rhs);
} // namespace detail

/// Tiles have sizes that are powers of two and at most kMaxTileElements elements.
template <typename ConcreteType>
class TileSizes : public mlir::OpTrait::TraitBase<ConcreteType, TileSizes> {
public:
  static LogicalResult verifyTrait(mlir::Operation *op) { return detail::verifyTileSizes(op); }
};

/// Operands and results that have a layout have the same.
template <typename ConcreteType>
class SameEncoding : public mlir::OpTrait::TraitBase<ConcreteType, SameEncoding> {
public:
  static LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifySameEncoding(op, true);
  }
};

/// Operands that have a layout have the same.
template <typename ConcreteType>
class SameOperandsEncoding : public mlir::OpTrait::TraitBase<ConcreteType, SameOperandsEncoding> {
public:
  static LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifySameEncoding(op, false);
  }
};

} // namespace triton_metal::tt

#include "dialect/tt/TTDialect.h.inc"

#include "dialect/tt/TTEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/tt/TTAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/tt/TTTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/tt/TTOps.h.inc"

#endif
