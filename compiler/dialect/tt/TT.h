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

/// The largest rank of a tensor descriptor.
inline constexpr int64_t kMaxDescriptorRank = 5;

/// What an access reads outside of the tensor of a block pointer or a descriptor.
namespace padding {
inline constexpr int32_t kZero = 1;
inline constexpr int32_t kNan = 2;
} // namespace padding

/// Attributes of a value: its numbers, or those that begin a run of them, are multiples of this;
/// so many follow each other; so many are alike. Each has a number for each dimension.
inline constexpr llvm::StringLiteral divisibilityAttrName = "tt.divisibility";
inline constexpr llvm::StringLiteral contiguityAttrName = "tt.contiguity";
inline constexpr llvm::StringLiteral constancyAttrName = "tt.constancy";

/// An attribute of an argument: arguments with the same number may point into the same memory.
inline constexpr llvm::StringLiteral memoryAttrName = "tt.memory";

/// An attribute of an argument: the number of bytes by which the kernel tests that the argument is
/// divisible. Accesses have a body for either result. In contrast, `tt.divisibility` is a promise.
inline constexpr llvm::StringLiteral testedDivisibilityAttrName = "tt.tested_divisibility";

/// Attributes of an argument that is a tensor descriptor, and of the operation that makes one: what
/// a launch knows of it.
inline constexpr llvm::StringLiteral padsWithNanAttrName = "tt.pads_with_nan";
inline constexpr llvm::StringLiteral roundsToTF32AttrName = "tt.rounds_to_tf32";

/// An attribute of an argument that is a tensor descriptor: each place in the tensor is memory of
/// its own.
inline constexpr llvm::StringLiteral nonOverlappingAttrName = "tt.non_overlapping";

/// An attribute of an argument that is a tensor descriptor: the next arguments are its sizes and
/// then its strides, as Triton's front end passes them for the kernel's own use.
inline constexpr llvm::StringLiteral shapeFollowsAttrName = "tt.shape_follows";

/// An attribute of an access to a block of a tensor: where it is, in numbers (`BlockPlaces`).
inline constexpr llvm::StringLiteral placesAttrName = "tt.places";

class FuncOp;

/// Whether the function's argument of that index has this attribute.
bool hasShapeBehind(FuncOp function, unsigned index);
/// Whether the argument is such a descriptor, or one of the arguments that follow it.
bool isPartOfDescriptor(mlir::BlockArgument argument);

/// What a pointer, or a tensor of pointers, points to: f32 or tensor<4xf32>; null for other types.
mlir::Type getPointeeTypeOf(mlir::Type ptrLike);

/// What a block pointer points to; null for other types.
mlir::RankedTensorType getBlockOf(mlir::Type type);

/// The type of a block pointer's base: a pointer to the block's elements.
mlir::Type getBlockBaseType(mlir::Type blockPointer);

/// i1, or a tensor of i1 of the type's shape and layout.
mlir::Type getMaskTypeOf(mlir::Type type);

/// A pointer to the type's element in a space, in the type's shape and layout.
mlir::Type getPointerTypeTo(mlir::Type type, int addressSpace = 1);

/// The bits of an integer, a floating-point number or a pointer (64); 0 for anything else.
unsigned getBitWidth(mlir::Type type);

/// Whether the scalar constant, or every element of a splat constant, is this boolean.
bool isConstantBool(mlir::Value value, bool wanted);

namespace detail {
LogicalResult verifyTileSizes(mlir::Operation *op);
LogicalResult verifySameEncoding(mlir::Operation *op, bool withResults);
/// Whether shapes and element types agree. Passes that add layouts check these themselves.
bool sameTilesButLayout(mlir::TypeRange lhs, mlir::TypeRange rhs);
} // namespace detail

/// The sizes of tiles are powers of two, and a tile has at most kMaxTileElements elements.
template <typename ConcreteType>
class TileSizes : public mlir::OpTrait::TraitBase<ConcreteType, TileSizes> {
public:
  static LogicalResult verifyTrait(mlir::Operation *op) { return detail::verifyTileSizes(op); }
};

/// All operands and results with a layout have the same layout.
template <typename ConcreteType>
class SameEncoding : public mlir::OpTrait::TraitBase<ConcreteType, SameEncoding> {
public:
  static LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifySameEncoding(op, true);
  }
};

/// All operands with a layout have the same layout.
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
