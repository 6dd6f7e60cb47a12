#include "target/msl/Types.h"

#include "dialect/msl/ScalarTypes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"

#include <charconv>

using namespace mlir;
using namespace triton_metal::msl;

std::string triton_metal::msl::getTypeName(Type type) {
  if (auto vector = dyn_cast<VectorType>(type)) {
    std::string element = getTypeName(vector.getElementType());
    int64_t size = vector.getNumElements();
    if (vector.getRank() != 1 || element.empty() || size < 2 || size > 4)
      return {};
    return element + std::to_string(size);
  }
  if (auto matrix = dyn_cast<MatrixType>(type)) {
    if (!MatrixInstruction::hasFragment(matrix.getShape()))
      return {};
    // Metal counts columns first.
    return "simdgroup_" + getTypeName(matrix.getElementType()) +
           std::to_string(matrix.getShape().columns) + "x" + std::to_string(matrix.getShape().rows);
  }
  const ScalarType *scalar = ScalarType::get(type);
  if (!scalar)
    return {};
  return (type.isUnsignedInteger() ? scalar->unsignedName : scalar->name).str();
}

StringRef triton_metal::msl::getSpaceName(AddressSpace space) {
  return stringifyAddressSpace(space);
}

std::string triton_metal::msl::getPointeePrefix(AddressSpace space, Qualifiers qualifiers) {
  // In the constant address space everything is const already.
  return ((qualifiers.isCoherent ? "coherent(device) " : "") + getSpaceName(space) +
          (qualifiers.isConst && space != AddressSpace::Constant ? " const " : " "))
      .str();
}

std::string triton_metal::msl::getPointerName(PtrType type, Qualifiers qualifiers) {
  return getPointeePrefix(type.getSpace(), qualifiers) + getTypeName(type.getElementType()) + " *";
}

/// The shortest decimal that reads back as the same value of `semantics`.
static std::string getShortest(const APFloat &value, const llvm::fltSemantics &semantics) {
  for (unsigned digits = 1; digits < 18; ++digits) {
    SmallString<32> text;
    value.toString(text, digits, /*FormatMaxPadding=*/6);
    APFloat back(semantics);
    auto status = back.convertFromString(text, APFloat::rmNearestTiesToEven);
    if (!status) {
      llvm::consumeError(status.takeError());
      continue;
    }
    if (back.bitwiseIsEqual(value))
      return StringRef(text).lower();
  }
  return {};
}

static std::string getFloatLiteral(FloatAttr attr) {
  APFloat value = attr.getValue();
  Type type = attr.getType();
  std::string name = getTypeName(type);
  unsigned bits = type.getIntOrFloatBitWidth();
  auto convert = [&](std::string text) { return type.isF32() ? text : name + "(" + text + ")"; };
  if (value.isNaN()) {
    if (value.bitwiseIsEqual(APFloat::getNaN(value.getSemantics())))
      return convert("NAN");
    std::string hex = "0x" + llvm::toString(value.bitcastToAPInt(), 16, /*Signed=*/false);
    return "as_type<" + name + ">(" + (bits == 32 ? hex + "u" : "ushort(" + hex + ")") + ")";
  }
  if (value.isInfinity())
    return convert(value.isNegative() ? "-INFINITY" : "INFINITY");
  std::string text = getShortest(value, value.getSemantics());
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  if (type.isF32())
    return text + "f";
  if (type.isF16())
    return text + "h";
  return "bfloat(" + text + "f)";
}

std::string triton_metal::msl::getLiteral(Attribute attr) {
  if (auto floating = dyn_cast<FloatAttr>(attr))
    return getFloatLiteral(floating);
  auto integer = cast<IntegerAttr>(attr);
  APInt value = integer.getValue();
  unsigned bits = value.getBitWidth();
  bool isUnsigned = integer.getType().isUnsignedInteger();
  if (bits == 1)
    return value.isZero() ? "false" : "true";
  if (bits < 32)
    return getTypeName(integer.getType()) + "(" + llvm::toString(value, 10, !isUnsigned) + ")";
  if (isUnsigned)
    return llvm::toString(value, 10, false) + (bits == 64 ? "ul" : "u");
  // There is no literal for the least integer: its digits are read before its sign.
  if (value.isMinSignedValue())
    return bits == 64 ? "(-9223372036854775807l - 1)" : "(-2147483647 - 1)";
  return llvm::toString(value, 10, true) + (bits == 64 ? "l" : "");
}
