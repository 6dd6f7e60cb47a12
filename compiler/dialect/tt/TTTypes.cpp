#include "dialect/tt/TT.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

#include "dialect/tt/TTEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/tt/TTAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/tt/TTTypes.cpp.inc"

void TTDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/tt/TTTypes.cpp.inc"
      >();
}

void TTDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/tt/TTAttrs.cpp.inc"
      >();
}

/// A number, as Triton prints it until 3.8, or a name, as it does from 3.9 on.
static ParseResult parseAddressSpace(AsmParser &parser, int &space) {
  SMLoc loc = parser.getCurrentLocation();
  OptionalParseResult number = parser.parseOptionalInteger(space);
  if (number.has_value())
    return *number;
  std::string name;
  if (failed(parser.parseOptionalKeywordOrString(&name)))
    return parser.emitError(loc, "an address space is a number or a name in quotes");
  std::optional<int> found = llvm::StringSwitch<std::optional<int>>(name)
                                 .Case("global", 1)
                                 .Case("descriptor", 0)
                                 .Case("constant", 4)
                                 .Default(std::nullopt);
  if (!found)
    return parser.emitError(loc) << "address space '" << name
                                 << "' is unknown; it is 'global', 'descriptor' or 'constant'";
  space = *found;
  return success();
}

Type PtrType::parse(AsmParser &parser) {
  Type pointee;
  int space = 1;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseType(pointee))
    return {};
  if (succeeded(parser.parseOptionalComma()) && failed(parseAddressSpace(parser, space)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<PtrType>(loc, parser.getContext(), pointee, space);
}

void PtrType::print(AsmPrinter &printer) const {
  printer << "<" << getPointeeType();
  int space = getAddressSpace();
  if (space == 0 || space == 4)
    printer << ", \"" << (space == 0 ? "descriptor" : "constant") << "\"";
  else if (space != 1)
    printer << ", " << space;
  printer << ">";
}

LogicalResult PtrType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Type pointee,
                              int space) {
  if (isa<RankedTensorType>(pointee) && space == 1)
    return success();
  if (!isa<IntegerType, FloatType, PtrType>(pointee))
    return emitError()
           << "a pointer points to an integer, a floating-point number or a pointer, not to "
           << pointee;
  if (space < 0)
    return emitError() << "an address space is not negative, but " << space << " is";
  return success();
}

/// The sizes and the element type behind an opening bracket, as in a tensor's type.
static RankedTensorType parseBlock(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element))
    return {};
  return parser.getChecked<RankedTensorType>(loc, shape, element, Attribute());
}

Type TensorDescType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  bool asTensor = succeeded(parser.parseOptionalKeyword("tensor"));
  if (asTensor && parser.parseLess())
    return {};
  RankedTensorType block = parseBlock(parser);
  if (!block || (asTensor && parser.parseGreater()) || parser.parseGreater())
    return {};
  return parser.getChecked<TensorDescType>(loc, parser.getContext(), block, asTensor);
}

void TensorDescType::print(AsmPrinter &printer) const {
  printer << "<";
  if (getAsTensor()) {
    printer << getBlockType() << ">";
    return;
  }
  for (int64_t size : getShape())
    printer << size << "x";
  printer << getBlockType().getElementType() << ">";
}

LogicalResult TensorDescType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                     RankedTensorType block, bool) {
  if (block.getRank() < 1 || block.getRank() > kMaxDescriptorRank)
    return emitError() << "a tensor descriptor has 1 to " << kMaxDescriptorRank
                       << " dimensions, not " << block.getRank();
  if (!isa<IntegerType, FloatType>(block.getElementType()))
    return emitError() << "a tensor descriptor has integers or floating-point numbers, not "
                       << block.getElementType();
  return success();
}

RankedTensorType TensorDescType::getTileType() const {
  Type element = getBlockType().getElementType();
  if (auto integer = dyn_cast<IntegerType>(element))
    element = IntegerType::get(getContext(), integer.getWidth());
  return RankedTensorType::get(getShape(), element);
}

Type tt::getPointeeTypeOf(Type type) {
  if (auto ptr = dyn_cast<PtrType>(type))
    return ptr.getPointeeType();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    if (auto ptr = dyn_cast<PtrType>(tensor.getElementType()))
      return tensor.clone(ptr.getPointeeType());
  return {};
}

Type tt::getMaskTypeOf(Type type) {
  Type i1 = IntegerType::get(type.getContext(), 1);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(i1);
  return i1;
}

Type tt::getPointerTypeTo(Type type, int addressSpace) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(PtrType::get(tensor.getElementType(), addressSpace));
  return PtrType::get(type, addressSpace);
}

unsigned tt::getBitWidth(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<PtrType>(element))
    return 64;
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
}

bool tt::isConstantBool(Value value, bool wanted) {
  Attribute attr;
  if (!value || !matchPattern(value, m_Constant(&attr)))
    return false;
  if (auto splat = dyn_cast<SplatElementsAttr>(attr))
    attr = splat.getSplatValue<Attribute>();
  auto integer = dyn_cast<IntegerAttr>(attr);
  return integer && integer.getType().isInteger(1) && integer.getValue().isOne() == wanted;
}

LogicalResult tt::detail::verifyTileSizes(Operation *op) {
  auto check = [&](Type type, StringRef what, unsigned index) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    int64_t elements = 1;
    for (int64_t size : tensor.getShape()) {
      if (size <= 0 || !llvm::isPowerOf2_64(size))
        return op->emitOpError() << what << " #" << index << " has type " << type
                                 << ", but the sizes of a tile must be powers of two";
      // Neither factor exceeds the limit, so the product does not overflow.
      elements = size > kMaxTileElements ? size : elements * size;
      if (elements > kMaxTileElements)
        return op->emitOpError() << what << " #" << index << " has type " << type
                                 << ", but a tile has at most " << kMaxTileElements << " elements";
    }
    return success();
  };
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes()))
    if (failed(check(type, "operand", index)))
      return failure();
  for (auto [index, type] : llvm::enumerate(op->getResultTypes()))
    if (failed(check(type, "result", index)))
      return failure();
  return success();
}

LogicalResult tt::detail::verifySameEncoding(Operation *op, bool withResults) {
  std::optional<Attribute> encoding;
  auto check = [&](Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    if (!encoding)
      encoding = tensor.getEncoding();
    if (*encoding == tensor.getEncoding())
      return success();
    return op->emitOpError() << "needs one layout for all its tiles, but has " << *encoding
                             << " and " << tensor.getEncoding();
  };
  for (Type type : op->getOperandTypes())
    if (failed(check(type)))
      return failure();
  if (withResults)
    for (Type type : op->getResultTypes())
      if (failed(check(type)))
        return failure();
  return success();
}
