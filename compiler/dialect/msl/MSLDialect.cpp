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

LogicalResult MatrixType::verify(function_ref<InFlightDiagnostic()> emitError, Type elementType) {
  if (const ScalarType *scalar = ScalarType::get(elementType); scalar && scalar->isMatrixElement)
    return success();
  return emitError() << "Metal has no simdgroup matrix of " << elementType;
}

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
  if (auto matrix = dyn_cast<MatrixType>(getElementType()))
    return matrix.getElementType();
  return getElementTypeOrSelf(getElementType());
}

Type ArrayType::getValueType() const {
  if (auto matrix = dyn_cast<MatrixType>(getElementType()))
    return VectorType::get(2, matrix.getElementType());
  return getElementType();
}
