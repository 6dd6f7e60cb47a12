// The types of the language: what MLIR's types say, and signedness, constness and names besides.
#ifndef TRITON_METAL_LANGUAGE_TYPE_H
#define TRITON_METAL_LANGUAGE_TYPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace mlir {
class MLIRContext;
class Type;
} // namespace mlir

namespace triton_metal::language {

/// The largest number of elements that a tile may have.
constexpr int64_t maxTileElements = 1 << 20;

enum class ScalarKind : uint8_t {
  Void,
  Int1,
  Int8,
  Int16,
  Int32,
  Int64,
  UInt8,
  UInt16,
  UInt32,
  UInt64,
  Float8E5,
  Float8E4NV,
  Float8E5B16,
  Float8E4B8,
  Float8E4B15,
  Float16,
  BFloat16,
  Float32,
  Float64,
};

/// A scalar, a pointer to one, a tile of either, or a tensor descriptor.
class Type {
public:
  Type(ScalarKind kind = ScalarKind::Void) : kind(kind) {}

  /// The type that Triton calls `name` ("fp32", "int1", "uint8", ...), if there is one.
  static std::optional<Type> parse(llvm::StringRef name);
  static Type pointerTo(Type pointee, bool isConst = false);
  /// A descriptor of a tensor of `element` that is accessed in blocks of this shape.
  static Type descriptorOf(Type element, llvm::ArrayRef<int64_t> block, bool isConst = false);
  static Type signedInteger(unsigned width);
  static Type unsignedInteger(unsigned width);

  ScalarKind getKind() const { return kind; }
  bool isBlock() const { return !shape.empty() && !descriptor; }
  bool isDescriptor() const { return descriptor; }
  bool isPointer() const { return pointerDepth != 0; }
  /// Whether it only reads the memory that it points to or describes.
  bool isConst() const { return (isPointer() || descriptor) && constPointer; }
  bool isVoid() const { return kind == ScalarKind::Void && !isPointer(); }
  bool isBool() const { return is(ScalarKind::Int1); }
  bool isInteger() const;
  bool isSigned() const;
  bool isUnsigned() const { return isInteger() && !isSigned(); }
  bool isFloating() const;
  /// A float of 8 bits.
  bool isFloat8() const;
  bool is(ScalarKind other) const { return kind == other && !isPointer(); }

  /// Bits of one element; 64 for a pointer.
  unsigned bitWidth() const;
  /// Stored bits of the significand; floating-point types only.
  unsigned mantissaWidth() const;
  /// bool < integer < float: the order that a Python number is weighed by.
  unsigned rank() const { return isBool() ? 0 : isInteger() ? 1 : 2; }

  /// The shape of a tile or of a descriptor's blocks; empty for a scalar.
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t numElements() const;

  /// The element type of a tile or of a descriptor's tensor.
  Type scalar() const;
  /// What a pointer points to.
  Type pointee() const;
  /// This shape with the element type of `element`.
  Type withScalar(Type element) const;
  /// This element type as a tile of `newShape`; a scalar when that is empty.
  Type withShape(llvm::ArrayRef<int64_t> newShape) const;

  mlir::Type toMLIR(mlir::MLIRContext *context) const;

  /// Triton's short name: "fp32", "pointer<fp16>", "<[16, 32], fp32>".
  std::string name() const;
  /// The name as a program writes it: "float32", "pointer<float16>", "float32[16, 32]".
  std::string str() const;
  /// A piece of a mangled function name, as stock Triton spells it.
  std::string mangled() const;

  bool operator==(const Type &other) const;
  bool operator!=(const Type &other) const { return !(*this == other); }

private:
  ScalarKind kind;
  uint8_t pointerDepth = 0;
  bool constPointer = false;
  bool descriptor = false;
  llvm::SmallVector<int64_t, 4> shape;
};

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_TYPE_H
