// From MLIR's integers, which have no sign and wrap around, to numbers with C++'s types.

#ifndef TRITON_METAL_TRANSFORMS_MSLEXPLICITTYPES_H
#define TRITON_METAL_TRANSFORMS_MSLEXPLICITTYPES_H

#include "dialect/msl/MSL.h"
#include "mlir/IR/Builders.h"

namespace triton_metal::msl {

/// Rewrites the operations of a kernel one after the other. What an operation gives may get another
/// type: an i32 that is computed without a sign is a ui32, and a lane is a ui16. A vector that
/// stands for one number stays a `msl.splat` until it is known what needs it whole.
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
  /// The type that a value had before it got one of C++'s.
  Type getOriginal(Value value) const;
  /// An i32 that is a ui16: arithmetic makes an int of it, functions do not.
  bool isShort(Value value) const;
  bool isUnsignedNumber(Value value) const;
  /// What stands beside an operator: the number of a splat, else the value.
  Value getNumber(Value value);
  bool isSplat(Value value) const;
  /// The number as a signed or an unsigned one.
  Value getSigned(Value value);
  Value getUnsigned(Value value);
  Value withSignOf(Value value, bool isUnsigned) {
    return isUnsigned ? getUnsigned(value) : getSigned(value);
  }
  /// As a vector where the value is one, and of the very type: functions do not convert.
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
  /// One number that stands for a vector with as many as `like` has.
  Value splat(Value number, Type like);
  /// Puts `value` in the place of the operation's result.
  mlir::LogicalResult replace(Operation *op, Value value);
  mlir::LogicalResult erase(Operation *op);
  /// Whether a user asks for the signed number. Its variable is signed then.
  static bool wantsSigned(Value value);
  /// Gives a result another type in its place.
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
  mlir::LogicalResult convertFloatCompare(Operation *op);
  mlir::LogicalResult convertMath(Operation *op);

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
