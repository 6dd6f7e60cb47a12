#include "language/Type.h"

#include "dialect/tt/TT.h"
#include "language/Error.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cassert>

namespace triton_metal::language {

char LanguageError::ID = 0;

namespace {

struct KindInfo {
  ScalarKind kind;
  const char *name;    // Triton's short name
  const char *spelled; // as a program writes it
  const char *mangled;
  unsigned width;
};

const KindInfo kinds[] = {
    {ScalarKind::Void, "void", "void", "V", 0},
    {ScalarKind::Int1, "int1", "int1", "u1", 1},
    {ScalarKind::Int8, "int8", "int8", "i8", 8},
    {ScalarKind::Int16, "int16", "int16", "i16", 16},
    {ScalarKind::Int32, "int32", "int32", "i32", 32},
    {ScalarKind::Int64, "int64", "int64", "i64", 64},
    {ScalarKind::UInt8, "uint8", "uint8", "u8", 8},
    {ScalarKind::UInt16, "uint16", "uint16", "u16", 16},
    {ScalarKind::UInt32, "uint32", "uint32", "u32", 32},
    {ScalarKind::UInt64, "uint64", "uint64", "u64", 64},
    {ScalarKind::Float8E5, "fp8e5", "float8e5", "fp8e5", 8},
    {ScalarKind::Float8E4NV, "fp8e4nv", "float8e4nv", "fp8e4nv", 8},
    {ScalarKind::Float8E5B16, "fp8e5b16", "float8e5b16", "fp8e5b16", 8},
    {ScalarKind::Float8E4B8, "fp8e4b8", "float8e4b8", "fp8e4b8", 8},
    {ScalarKind::Float8E4B15, "fp8e4b15", "float8e4b15", "fp8e4b15", 8},
    {ScalarKind::Float16, "fp16", "float16", "fp16", 16},
    {ScalarKind::BFloat16, "bf16", "bfloat16", "bf16", 16},
    {ScalarKind::Float32, "fp32", "float32", "fp32", 32},
    {ScalarKind::Float64, "fp64", "float64", "fp64", 64},
};

const KindInfo &info(ScalarKind kind) { return kinds[static_cast<unsigned>(kind)]; }

std::string shapeStr(llvm::ArrayRef<int64_t> shape, const char *separator) {
  return llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
                    separator);
}

} // namespace

std::optional<Type> Type::parse(llvm::StringRef name) {
  for (const KindInfo &entry : kinds)
    if (name == entry.name || name == entry.spelled)
      return Type(entry.kind);
  return std::nullopt;
}

Type Type::pointerTo(Type pointee, bool isConst) {
  assert(!pointee.isBlock() && "a pointer points to a scalar");
  ++pointee.pointerDepth;
  pointee.constPointer = isConst;
  return pointee;
}

Type Type::descriptorOf(Type element, llvm::ArrayRef<int64_t> block, bool isConst) {
  assert(!element.isBlock() && !element.isPointer() && "a descriptor's tensor holds numbers");
  Type result = element.withShape(block);
  result.constPointer = isConst;
  result.descriptor = true;
  return result;
}

Type Type::signedInteger(unsigned width) {
  switch (width) {
  case 1:
    return ScalarKind::Int1;
  case 8:
    return ScalarKind::Int8;
  case 16:
    return ScalarKind::Int16;
  case 32:
    return ScalarKind::Int32;
  default:
    assert(width == 64);
    return ScalarKind::Int64;
  }
}

Type Type::unsignedInteger(unsigned width) {
  switch (width) {
  case 1:
    return ScalarKind::Int1;
  case 8:
    return ScalarKind::UInt8;
  case 16:
    return ScalarKind::UInt16;
  case 32:
    return ScalarKind::UInt32;
  default:
    assert(width == 64);
    return ScalarKind::UInt64;
  }
}

bool Type::isInteger() const {
  return !isPointer() && kind >= ScalarKind::Int1 && kind <= ScalarKind::UInt64;
}
bool Type::isSigned() const {
  return !isPointer() && kind >= ScalarKind::Int8 && kind <= ScalarKind::Int64;
}
bool Type::isFloating() const { return !isPointer() && kind >= ScalarKind::Float8E5; }
bool Type::isFloat8() const { return isFloating() && kind <= ScalarKind::Float8E4B15; }

unsigned Type::bitWidth() const { return isPointer() ? 64 : info(kind).width; }

unsigned Type::mantissaWidth() const {
  switch (kind) {
  case ScalarKind::Float8E5:
  case ScalarKind::Float8E5B16:
    return 2;
  case ScalarKind::Float8E4NV:
  case ScalarKind::Float8E4B8:
  case ScalarKind::Float8E4B15:
    return 3;
  case ScalarKind::Float16:
    return 10;
  case ScalarKind::BFloat16:
    return 7;
  case ScalarKind::Float32:
    return 23;
  default:
    return 52;
  }
}

int64_t Type::numElements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Type Type::scalar() const {
  Type result = *this;
  result.shape.clear();
  if (descriptor)
    result.descriptor = result.constPointer = false;
  return result;
}

Type Type::pointee() const {
  assert(isPointer());
  Type result = scalar();
  --result.pointerDepth;
  result.constPointer = false;
  return result;
}

Type Type::withScalar(Type element) const { return element.withShape(shape); }

Type Type::withShape(llvm::ArrayRef<int64_t> newShape) const {
  Type result = descriptor ? scalar() : *this;
  result.shape.assign(newShape.begin(), newShape.end());
  return result;
}

/// The address spaces of memory that a kernel writes, and of memory that it only reads.
constexpr int globalSpace = 1, constantSpace = 4;

/// The type of a descriptor. Its elements have the signs that the language gives them, and memory
/// has no type of one bit.
static mlir::Type descriptorType(mlir::MLIRContext *context, Type element,
                                 llvm::ArrayRef<int64_t> block) {
  mlir::Type stored = element.toMLIR(context);
  if (element.isBool())
    stored = mlir::IntegerType::get(context, 8);
  else if (element.isInteger())
    stored = mlir::IntegerType::get(context, element.bitWidth(),
                                    element.isSigned() ? mlir::IntegerType::Signed
                                                       : mlir::IntegerType::Unsigned);
  return tt::TensorDescType::get(context, mlir::RankedTensorType::get(block, stored),
                                 /*asTensor=*/false);
}

mlir::Type Type::toMLIR(mlir::MLIRContext *context) const {
  if (descriptor)
    return descriptorType(context, scalar(), shape);
  mlir::Type element;
  switch (kind) {
  case ScalarKind::Void:
    element = mlir::NoneType::get(context);
    break;
  case ScalarKind::Float8E5:
    element = mlir::Float8E5M2Type::get(context);
    break;
  case ScalarKind::Float8E4NV:
    element = mlir::Float8E4M3FNType::get(context);
    break;
  case ScalarKind::Float8E5B16:
    element = mlir::Float8E5M2FNUZType::get(context);
    break;
  case ScalarKind::Float8E4B8:
    element = mlir::Float8E4M3FNUZType::get(context);
    break;
  case ScalarKind::Float8E4B15:
    // MLIR has no such type; the compiler takes this one for it.
    element = mlir::Float8E4M3B11FNUZType::get(context);
    break;
  case ScalarKind::Float16:
    element = mlir::Float16Type::get(context);
    break;
  case ScalarKind::BFloat16:
    element = mlir::BFloat16Type::get(context);
    break;
  case ScalarKind::Float32:
    element = mlir::Float32Type::get(context);
    break;
  case ScalarKind::Float64:
    element = mlir::Float64Type::get(context);
    break;
  default:
    element = mlir::IntegerType::get(context, info(kind).width);
    break;
  }
  for (unsigned depth = 0; depth < pointerDepth; ++depth) {
    bool readsOnly = constPointer && depth + 1u == pointerDepth;
    element = tt::PtrType::get(element, readsOnly ? constantSpace : globalSpace);
  }
  return isBlock() ? mlir::RankedTensorType::get(shape, element) : element;
}

std::string Type::name() const {
  std::string result = info(kind).name;
  for (unsigned depth = 0; depth < pointerDepth; ++depth) {
    bool outermost = depth + 1u == pointerDepth;
    result = (llvm::Twine(outermost && constPointer ? "const_pointer<" : "pointer<") + result + ">")
                 .str();
  }
  if (descriptor)
    return "tensor_descriptor<[" + shapeStr(shape, ", ") + "], " + result + ">";
  return isBlock() ? "<[" + shapeStr(shape, ", ") + "], " + result + ">" : result;
}

std::string Type::str() const {
  std::string result = info(kind).spelled;
  for (unsigned depth = 0; depth < pointerDepth; ++depth)
    result =
        (constPointer && depth + 1u == pointerDepth ? "const_pointer<" : "pointer<") + result + ">";
  if (descriptor)
    return "tensor_descriptor<" + result + "[" + shapeStr(shape, ", ") + "]>";
  return isBlock() ? result + "[" + shapeStr(shape, ", ") + "]" : result;
}

std::string Type::mangled() const {
  std::string result = info(kind).mangled;
  for (unsigned depth = 0; depth < pointerDepth; ++depth)
    result = (constPointer && depth + 1u == pointerDepth ? "K" : "P") + result;
  if (descriptor)
    return (constPointer ? "KTD" : "TD") + result + "S" + shapeStr(shape, "_") + "S";
  return isBlock() ? result + "S" + shapeStr(shape, "_") + "S" : result;
}

bool Type::operator==(const Type &other) const {
  return kind == other.kind && pointerDepth == other.pointerDepth &&
         constPointer == other.constPointer && descriptor == other.descriptor &&
         shape == other.shape;
}

} // namespace triton_metal::language
