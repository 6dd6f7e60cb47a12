// Replaces MLIR's integers, which have no sign and wrap around, by numbers with C++'s types.

#ifndef TRITON_METAL_TRANSFORMS_MSLEXPLICITTYPES_H
#define TRITON_METAL_TRANSFORMS_MSLEXPLICITTYPES_H

#include "dialect/msl/MSL.h"
#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// Rewrites the operations of a kernel one after the other. A result may get another type: an i32
/// that is computed without a sign becomes a ui32, and a lane becomes a ui16. A vector that repeats
/// one number stays a `msl.splat` until a user needs the whole vector.
class TypeExplicator {
public:
  explicit TypeExplicator(mlir::MLIRContext *context) : builder(context) {}
  mlir::LogicalResult convert(KernelOp kernel);

private:
  using Value = mlir::Value;
  using Type = mlir::Type;
  using Operation = mlir::Operation;

  void convertBlock(mlir::Block &block);
  mlir::LogicalResult convertOp(Operation *op);
  mlir::LogicalResult refuse(Operation *op, const llvm::Twine &why);

  // Operands.
  /// The type that a value had before this pass changed it.
  Type getOriginal(Value value) const;
  /// Whether an i32 has become a ui16. Operators promote it to int; functions do not.
  bool isShort(Value value) const;
  bool isUnsignedNumber(Value value) const;
  /// The operand of an operator: the number of a splat, otherwise the value.
  Value getNumber(Value value);
  bool isSplat(Value value) const;
  /// The number as a signed or an unsigned one.
  Value getSigned(Value value);
  Value getUnsigned(Value value);
  Value withSignOf(Value value, bool isUnsigned) {
    return isUnsigned ? getUnsigned(value) : getSigned(value);
  }
  /// The operand of a function, which converts nothing: a vector if the value is one, and exactly
  /// of its type.
  Value getWhole(Value value);
  Value getWhole(Value value, bool isUnsigned);
  /// The number, or the vector, as floats of 32 bits.
  Value getFloat(Value value);
  Value getOffset(Operation *op, Value offset);

  // Making values.
  Value toType(Type type, Value value);
  Value makeConstant(Type type, int64_t value);
  Value binary(BinaryKind kind, Value a, Value b);
  Value negate(Value value) { return unary(UnaryKind::Negate, value); }
  Value unary(UnaryKind kind, Value value);
  Value call(llvm::StringRef function, Type type, mlir::ValueRange arguments);
  Value asType(Type type, Value value);
  /// A splat of the number with as many elements as `like` has.
  Value splat(Value number, Type like);
  /// Replaces the result of the operation by `value`.
  mlir::LogicalResult replace(Operation *op, Value value);
  mlir::LogicalResult erase(Operation *op);
  /// Whether a user needs the signed number. The value's variable is then signed.
  static bool wantsSigned(Value value);
  /// Changes the type of a result in place.
  void retype(Value result, Type type);

  // Integers (MSLExplicitIntegers.cpp).
  mlir::LogicalResult convertWrapping(Operation *op, BinaryKind kind);
  mlir::LogicalResult convertDivision(Operation *op, BinaryKind kind, bool isUnsigned);
  mlir::LogicalResult convertBits(Operation *op, BinaryKind kind);
  mlir::LogicalResult convertShift(Operation *op, BinaryKind kind, bool isUnsigned);
  mlir::LogicalResult convertCompare(Operation *op);
  mlir::LogicalResult convertFunction(Operation *op, llvm::StringRef function, bool isUnsigned);
  mlir::LogicalResult convertSelect(Operation *op);
  mlir::LogicalResult convertConversion(Operation *op);

  // Floats and functions (MSLExplicitFloats.cpp).
  mlir::LogicalResult convertFloat(Operation *op, BinaryKind kind);
  mlir::LogicalResult convertQuotient(mlir::Operation *op);
  mlir::LogicalResult convertFloatCompare(Operation *op);
  mlir::LogicalResult convertMath(Operation *op);
  /// Marks sines and cosines of one number: their text computes both together.
  static void markPairs(KernelOp kernel);
  mlir::LogicalResult convertFloat64(Float64Op op);
  mlir::LogicalResult convertLibrary(LibraryOp op);
  Value callByComponent(llvm::StringRef function, Type type, Type returned, mlir::ValueRange inputs,
                        bool isUnsigned);

  // Memory and lanes (MSLExplicitAccesses.cpp).
  mlir::LogicalResult convertArith(Operation *op);
  mlir::LogicalResult convertMsl(Operation *op);
  mlir::LogicalResult convertSimdReduce(SimdReduceOp op);
  mlir::LogicalResult convertLaneCall(mlir::Operation *op, bool isUnsigned);
  mlir::LogicalResult convertShuffle(Operation *op);
  mlir::LogicalResult convertAtomic(Operation *op);
  void convertFor(ForOp loop);

  mlir::OpBuilder builder;
  mlir::Location loc = builder.getUnknownLoc();
  llvm::DenseMap<Value, Type> original;
  bool hasFailed = false;
};

} // namespace triton_metal::msl

#endif
