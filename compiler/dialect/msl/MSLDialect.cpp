#include "dialect/msl/MSL.h"

#include "dialect/msl/ScalarTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal::msl;

#include "dialect/msl/MSLDialect.cpp.inc"
#include "dialect/msl/MSLEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/msl/MSLAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialect/msl/MSLTypes.cpp.inc"

void MSLDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/msl/MSLAttrs.cpp.inc"
      >();
}

void MSLDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialect/msl/MSLTypes.cpp.inc"
      >();
}

void MSLDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialect/msl/MSLOps.cpp.inc"
      >();
}

LogicalResult MSLDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == getTargetAttrName() && !isa<TargetAttr>(attribute.getValue()))
    return op->emitOpError("has ") << attribute.getName() << " = " << attribute.getValue()
                                   << ", which must be an #msl.target";
  return success();
}

Operation *MSLDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

Type triton_metal::msl::getMaskType(Type type) {
  auto i1 = IntegerType::get(type.getContext(), 1);
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), i1);
  return i1;
}

int64_t triton_metal::msl::getNumRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

LogicalResult PtrType::verify(function_ref<InFlightDiagnostic()> emitError, Type elementType,
                              AddressSpace) {
  if (ScalarType::get(elementType))
    return success();
  return emitError() << "Metal has no pointer to " << elementType;
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

LogicalResult MatrixShapeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                      MatrixShape shape) {
  if (shape.isValid())
    return success();
  return emitError() << "a matrix instruction of " << shape.str()
                     << " leaves lanes of a SIMD-group without elements";
}

/// "<8x8", and so many extents of a type or attribute.
static ParseResult parseExtents(AsmParser &parser, unsigned count, bool withTrailingX,
                                SmallVectorImpl<int64_t> &extents) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() ||
      parser.parseDimensionList(extents, /*allowDynamic=*/false, withTrailingX))
    return failure();
  if (extents.size() != count)
    return parser.emitError(loc, "expected ") << count << " extents";
  return success();
}

Attribute MatrixShapeAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t, 3> extents;
  if (parseExtents(parser, 3, /*withTrailingX=*/false, extents) || parser.parseGreater())
    return {};
  return parser.getChecked<MatrixShapeAttr>(parser.getContext(),
                                            MatrixShape{extents[0], extents[1], extents[2]});
}

void MatrixShapeAttr::print(AsmPrinter &printer) const {
  printer << '<' << getShape().str() << '>';
}

LogicalResult MatrixType::verify(function_ref<InFlightDiagnostic()> emitError, FragmentShape shape,
                                 Type elementType) {
  if (!shape.isValid())
    return emitError() << "a matrix of " << shape.str()
                       << " leaves lanes of a SIMD-group without elements";
  if (!isMatrixNumber(elementType))
    return emitError() << "Metal has no simdgroup matrix of " << elementType;
  return success();
}

Type MatrixType::parse(AsmParser &parser) {
  SmallVector<int64_t, 2> extents;
  Type element;
  if (parseExtents(parser, 2, /*withTrailingX=*/true, extents) || parser.parseType(element) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<MatrixType>(parser.getContext(), FragmentShape{extents[0], extents[1]},
                                       element);
}

void MatrixType::print(AsmPrinter &printer) const {
  printer << '<' << getShape().str() << 'x' << getElementType() << '>';
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

LogicalResult ArrayType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t count,
                                Type elementType) {
  if (count < 1)
    return emitError() << "an array needs at least one element";
  auto vector = dyn_cast<VectorType>(elementType);
  if (elementType.isIntOrFloat() || isa<MatrixType, PtrType>(elementType) ||
      (vector && vector.getRank() == 1 &&
       (vector.getNumElements() == 2 || vector.getNumElements() == 4)))
    return success();
  return emitError()
         << "a variable holds numbers, vectors of 2 or 4, simdgroup matrices or pointers, not "
         << elementType;
}

Type ArrayType::parse(AsmParser &parser) {
  SmallVector<int64_t> dimensions;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(dimensions, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseGreater())
    return {};
  if (dimensions.size() != 1)
    return parser.emitError(parser.getNameLoc(), "expected one dimension"), Type();
  return parser.getChecked<ArrayType>(parser.getContext(), dimensions[0], element);
}

void ArrayType::print(AsmPrinter &printer) const {
  printer << '<' << getCount() << 'x' << getElementType() << '>';
}

Type ArrayType::getScalarType() const {
  if (MatrixType matrix = getMatrixType())
    return matrix.getElementType();
  return getElementTypeOrSelf(getElementType());
}

Type ArrayType::getValueType() const {
  if (MatrixType matrix = getMatrixType())
    return VectorType::get(matrix.getNumRegisters(), matrix.getElementType());
  return getElementType();
}
