// The text form: C++'s types, operators and conversions.

#include "dialect/msl/MSL.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// C++'s types
//===----------------------------------------------------------------------===//

bool triton_metal::msl::isUnsigned(Type type) {
  return getElementTypeOrSelf(type).isUnsignedInteger();
}

Type triton_metal::msl::withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Type triton_metal::msl::withSign(Type type, bool isUnsigned) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (!integer || integer.getWidth() == 1)
    return type;
  return withElement(type,
                     IntegerType::get(type.getContext(), integer.getWidth(),
                                      isUnsigned ? IntegerType::Unsigned : IntegerType::Signless));
}

Type triton_metal::msl::getPromotedType(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.getWidth() < 32 ? IntegerType::get(type.getContext(), 32) : type;
}

Type triton_metal::msl::getArithmeticType(Type a, Type b) {
  if (isa<VectorType>(a) && isa<VectorType>(b))
    return a == b ? a : Type();
  // A number beside a vector is converted to the vector's element type, which must not change its
  // sign.
  if (isa<VectorType>(a) || isa<VectorType>(b)) {
    Type vector = isa<VectorType>(a) ? a : b, number = isa<VectorType>(a) ? b : a;
    Type element = getElementTypeOrSelf(vector);
    return element == number || (isa<IntegerType>(element) && isa<IntegerType>(number)) ? vector
                                                                                        : Type();
  }
  if (isa<FloatType>(a) || isa<FloatType>(b))
    return a == b && !a.isBF16() ? a : Type();
  a = getPromotedType(a);
  b = getPromotedType(b);
  unsigned widthOfA = a.getIntOrFloatBitWidth(), widthOfB = b.getIntOrFloatBitWidth();
  if (widthOfA != widthOfB)
    return widthOfA > widthOfB ? a : b;
  return isUnsigned(a) ? a : b;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult BinaryOp::verify() {
  Type left = getLhs().getType(), right = getRhs().getType(), result = getType();
  auto expect = [&](Type expected) -> LogicalResult {
    if (!expected)
      return emitOpError("has operands that C++ does not combine: ") << left << ", " << right;
    if (result != expected)
      return emitOpError("gives ") << result << ", where C++ gives " << expected;
    return success();
  };
  auto i1 = IntegerType::get(getContext(), 1);
  switch (getKind()) {
  case BinaryKind::Shl:
  case BinaryKind::Shr:
    return expect(isa<VectorType>(left) ? getArithmeticType(left, right) : getPromotedType(left));
  case BinaryKind::LogicalAnd:
  case BinaryKind::LogicalOr:
    return expect(left == i1 && right == i1 ? Type(i1) : Type());
  case BinaryKind::Less:
  case BinaryKind::LessEqual:
  case BinaryKind::Greater:
  case BinaryKind::GreaterEqual:
  case BinaryKind::Equal:
  case BinaryKind::NotEqual: {
    Type compared = getArithmeticType(left, right);
    return expect(compared ? withElement(compared, i1) : Type());
  }
  default:
    return expect(getArithmeticType(left, right));
  }
}

LogicalResult CastOp::verify() {
  Type from = getValue().getType(), to = getType();
  if (getNumRegisters(from) != getNumRegisters(to) && isa<VectorType>(from))
    return emitOpError("makes ") << to << " of " << from;
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

std::string CallOp::getMetalFunction() { return getFunction().str(); }

void msl::ForOp::build(OpBuilder &builder, OperationState &state, Value lower, Value upper,
                       Value step, bool isUnsigned) {
  state.addOperands({lower, upper, step});
  if (isUnsigned)
    state.addAttribute(getIsUnsignedAttrName(state.name), builder.getUnitAttr());
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion());
  block->addArgument(lower.getType(), state.location);
  msl::ForOp::ensureTerminator(*state.regions.front(), builder, state.location);
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

StringRef triton_metal::msl::getSourceName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    // Some locations carry the name of a pass or an operation; the name of a variable is an
    // identifier.
    StringRef text = name.getName();
    if (!text.empty() && (llvm::isAlpha(text[0]) || text[0] == '_') &&
        llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; }))
      return text;
    return getSourceName(name.getChildLoc());
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    StringRef callee = getSourceName(call.getCallee());
    return callee.empty() ? getSourceName(call.getCaller()) : callee;
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = getSourceName(part); !name.empty())
        return name;
  return {};
}
