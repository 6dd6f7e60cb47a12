#include "dialect/msl/MSL.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutModels.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#include "dialect/ttm/TTMDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/ttm/TTMAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/ttm/TTMTypes.cpp.inc"

namespace triton_metal::ttm {

void TTMDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/ttm/TTMOps.cpp.inc"
      >();
  attachLayoutModels(getContext());
}

void TTMDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/ttm/TTMTypes.cpp.inc"
      >();
}

void TTMDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/ttm/TTMAttrs.cpp.inc"
      >();
}

LogicalResult TTMDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  if (attr.getName() == getNumSimdgroupsAttrName()) {
    auto value = dyn_cast<IntegerAttr>(attr.getValue());
    if (!value || !llvm::isPowerOf2_64(value.getInt()) || value.getInt() > 32)
      return op->emitOpError() << "attribute '" << attr.getName().getValue()
                               << "' must be a power of two from 1 to 32";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// #ttm.linear
//===----------------------------------------------------------------------===//

LinearLayoutAttr LinearLayoutAttr::get(MLIRContext *context, const LinearLayout &layout) {
  return get(context, layout.getShape(), layout.getRegisterBases(), layout.getLaneBases(),
             layout.getSimdgroupBases());
}

LogicalResult LinearLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                       ArrayRef<int64_t> shape, ArrayRef<uint32_t> registers,
                                       ArrayRef<uint32_t> lanes, ArrayRef<uint32_t> simdgroups) {
  if (auto wrong = LinearLayout::check(shape, registers, lanes, simdgroups))
    return emitError() << "not a layout: " << *wrong;
  return success();
}

LogicalResult LinearLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                               function_ref<InFlightDiagnostic()> emitError) const {
  if (shape != getShape()) {
    InFlightDiagnostic error = emitError() << "the layout is one of shape [";
    llvm::interleaveComma(getShape(), error);
    error << "], but the tensor has shape [";
    llvm::interleaveComma(shape, error);
    return error << "]";
  }
  return success();
}

void LinearLayoutAttr::print(AsmPrinter &printer) const {
  printer << "<" << getLayout().str() << ">";
}

Attribute LinearLayoutAttr::parse(AsmParser &parser, Type) {
  using Basis = SmallVector<int64_t>;
  SmallVector<Basis> parts[3];
  SMLoc loc = parser.getCurrentLocation();
  auto parseBasis = [&](SmallVector<Basis> &bases) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
      Basis &basis = bases.emplace_back();
      return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
        return parser.parseInteger(basis.emplace_back());
      });
    });
  };
  static constexpr StringLiteral names[] = {"register", "lane", "simdgroup"};
  if (parser.parseLess() || parser.parseLBrace())
    return {};
  for (unsigned part = 0; part < 3; ++part) {
    if ((part && parser.parseComma()) || parser.parseKeyword(names[part]) || parser.parseEqual() ||
        parseBasis(parts[part]))
      return {};
  }
  if (parser.parseRBrace() || parser.parseGreater())
    return {};

  // The bases reach every element, so the largest coordinates say the extents.
  if (parts[1].empty()) {
    parser.emitError(loc, "there must be 5 lane bases");
    return {};
  }
  size_t rank = parts[1].front().size();
  SmallVector<int64_t> shape(rank, 1);
  for (auto &bases : parts) {
    for (Basis &basis : bases) {
      if (basis.size() != rank) {
        parser.emitError(loc, "all bases must have the same number of coordinates");
        return {};
      }
      for (auto [extent, coordinate] : llvm::zip(shape, basis)) {
        if (coordinate < 0 || coordinate > (int64_t(1) << 30)) {
          parser.emitError(loc, "a coordinate is out of range");
          return {};
        }
        extent = std::max<int64_t>(extent, llvm::NextPowerOf2(coordinate));
      }
    }
  }
  int64_t elements = 1;
  for (int64_t extent : shape) {
    elements *= extent;
    if (elements > (int64_t(1) << 31)) {
      parser.emitError(loc, "a tile must have at most 2^31 elements");
      return {};
    }
  }
  SmallVector<uint32_t> flat[3];
  for (unsigned part = 0; part < 3; ++part) {
    for (Basis &basis : parts[part]) {
      uint64_t value = 0;
      for (auto [extent, coordinate] : llvm::zip(shape, basis))
        value = value * extent + coordinate;
      flat[part].push_back(value);
    }
  }
  return parser.getChecked<LinearLayoutAttr>(
      loc, parser.getContext(), ArrayRef<int64_t>(shape), ArrayRef<uint32_t>(flat[0]),
      ArrayRef<uint32_t>(flat[1]), ArrayRef<uint32_t>(flat[2]));
}

//===----------------------------------------------------------------------===//
// !ttm.tile
//===----------------------------------------------------------------------===//

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType, int64_t rowPad,
                               int64_t slots) {
  if (shape.empty() || llvm::any_of(shape, [](int64_t extent) { return extent <= 0; }))
    return emitError() << "a tile must have positive extents";
  if (!elementType.isIntOrFloat())
    return emitError() << "a tile holds integers or floating-point numbers, but not "
                       << elementType;
  if (rowPad < 0)
    return emitError() << "row_pad must not be negative";
  if (slots < 1)
    return emitError() << "slots must be at least 1";
  return success();
}

void TileType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t extent : getShape())
    printer << extent << "x";
  printer << getElementType();
  if (getRowPad())
    printer << ", row_pad = " << getRowPad();
  if (getSlots() != 1)
    printer << ", slots = " << getSlots();
  printer << ">";
}

Type TileType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t rowPad = 0, slots = 1;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    int64_t *field = &rowPad;
    if (failed(parser.parseOptionalKeyword("row_pad"))) {
      field = &slots;
      if (parser.parseKeyword("slots", ": expected 'row_pad' or 'slots'"))
        return {};
    }
    if (parser.parseEqual() || parser.parseInteger(*field))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<TileType>(loc, parser.getContext(), ArrayRef<int64_t>(shape),
                                     elementType, rowPad, slots);
}

} // namespace triton_metal::ttm
