// Functions, calls, reductions and scans.

#include "dialect/tt/TT.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

//===----------------------------------------------------------------------===//
// func, call, return
//===----------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type,
                   ArrayRef<NamedAttribute> attrs, ArrayRef<DictionaryAttr> argAttrs) {
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.attributes.append(attrs.begin(), attrs.end());
  state.addRegion();
  if (argAttrs.empty())
    return;
  call_interface_impl::addArgAndResultAttrs(builder, state, argAttrs, /*resultAttrs=*/{},
                                            getArgAttrsAttrName(state.name),
                                            getResAttrsAttrName(state.name));
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildFuncType = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                          function_interface_impl::VariadicFlag,
                          std::string &) { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), buildFuncType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  if (isPublic() && !isExternal() && getNumResults() != 0)
    return emitOpError() << "is a kernel, and a kernel returns nothing";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls '" << getCallee() << "', which is no function of this module";
  FunctionType type = callee.getFunctionType();
  if (TypeRange(type.getInputs()) != TypeRange(getOperandTypes()))
    return emitOpError() << "passes " << getOperandTypes() << ", but '" << getCallee() << "' takes "
                         << type.getInputs();
  if (TypeRange(type.getResults()) != TypeRange(getResultTypes()))
    return emitOpError() << "expects " << getResultTypes() << ", but '" << getCallee()
                         << "' returns " << type.getResults();
  return success();
}

LogicalResult ReturnOp::verify() {
  auto function = cast<FuncOp>((*this)->getParentOp());
  if (TypeRange(function.getResultTypes()) != TypeRange(getOperandTypes()))
    return emitOpError() << "returns " << getOperandTypes() << ", but '" << function.getName()
                         << "' returns " << function.getResultTypes();
  return success();
}

//===----------------------------------------------------------------------===//
// reduce and scan
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyCombine(Op op) {
  if (op.getSrcs().empty())
    return op.emitOpError() << "needs an operand";
  auto types = op.getInputTypes();
  for (RankedTensorType type : types)
    if (type.getShape() != types.front().getShape())
      return op.emitOpError() << "needs operands of one shape, but has " << types.front() << " and "
                              << type;
  int32_t axis = op.getAxis();
  if (axis < 0 || axis >= types.front().getRank())
    return op.emitOpError() << "has the axis " << axis << ", which is not one of the dimensions of "
                            << types.front();
  return success();
}

template <typename Op, typename Return> static LogicalResult verifyCombineRegion(Op op) {
  Block &block = op.getCombineOp().front();
  auto elements = op.getElementTypes();
  SmallVector<Type> expected(elements);
  llvm::append_range(expected, elements);
  if (TypeRange(block.getArgumentTypes()) != TypeRange(expected))
    return op.emitOpError() << "needs a region with the arguments " << expected << ", but it has "
                            << block.getArgumentTypes();
  auto terminator = dyn_cast<Return>(block.getTerminator());
  if (!terminator)
    return op.emitOpError() << "needs a region that ends in '" << Return::getOperationName() << "'";
  if (TypeRange(terminator.getOperandTypes()) != TypeRange(elements))
    return op.emitOpError() << "needs a region that returns " << elements << ", but it returns "
                            << terminator.getOperandTypes();
  return success();
}

/// The result of a reduction of a tile along an axis: a tile with one dimension less, or a scalar.
static Type reducedType(RankedTensorType type, int32_t axis) {
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + axis);
  return shape.empty() ? type.getElementType()
                       : RankedTensorType::get(shape, type.getElementType());
}

void ReduceOp::build(OpBuilder &builder, OperationState &state, ValueRange srcs, int axis) {
  state.addOperands(srcs);
  state.getOrAddProperties<Properties>().setAxis(builder.getI32IntegerAttr(axis));
  state.addRegion();
  for (Type type : srcs.getTypes())
    state.addTypes(reducedType(cast<RankedTensorType>(type), axis));
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyCombine(*this)))
    return failure();
  auto expected =
      llvm::map_to_vector(getInputTypes(), [&](auto type) { return reducedType(type, getAxis()); });
  if (!tt::detail::sameTilesButLayout(expected, getResultTypes()))
    return emitOpError() << "makes " << expected << ", not " << getResultTypes();
  return success();
}

LogicalResult ReduceOp::verifyRegions() {
  return verifyCombineRegion<ReduceOp, ReduceReturnOp>(*this);
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ValueRange srcs, int axis,
                   bool reverse) {
  state.addOperands(srcs);
  state.getOrAddProperties<Properties>().setAxis(builder.getI32IntegerAttr(axis));
  state.getOrAddProperties<Properties>().setReverse(builder.getBoolAttr(reverse));
  state.addRegion();
  state.addTypes(srcs.getTypes());
}

LogicalResult ScanOp::verify() {
  if (failed(verifyCombine(*this)))
    return failure();
  if (!tt::detail::sameTilesButLayout(getSrcs().getTypes(), getResultTypes()))
    return emitOpError() << "makes " << getSrcs().getTypes() << ", not " << getResultTypes();
  return success();
}

LogicalResult ScanOp::verifyRegions() { return verifyCombineRegion<ScanOp, ScanReturnOp>(*this); }

//===----------------------------------------------------------------------===//
// map_elementwise
//===----------------------------------------------------------------------===//

LogicalResult MapElementwiseOp::verify() {
  if (getSrcs().empty())
    return emitOpError() << "needs an operand";
  if (static_cast<int32_t>(getPack()) <= 0)
    return emitOpError() << "packs a positive number of elements, not "
                         << static_cast<int32_t>(getPack());
  return success();
}

LogicalResult MapElementwiseOp::verifyRegions() {
  auto packed = [&](TypeRange tiles) {
    SmallVector<Type> types;
    for (Type tile : tiles)
      types.append(getPack(), getElementTypeOrSelf(tile));
    return types;
  };
  SmallVector<Type> arguments = packed(getSrcs().getTypes()), results = packed(getResultTypes());
  if (TypeRange(getScalarOp().front().getArgumentTypes()) != TypeRange(arguments))
    return emitOpError() << "needs a region with the arguments " << arguments << ", but it has "
                         << getScalarOp().front().getArgumentTypes();
  for (Block &block : getScalarOp())
    if (auto terminator = dyn_cast<MapElementwiseReturnOp>(block.getTerminator()))
      if (TypeRange(terminator.getOperandTypes()) != TypeRange(results))
        return emitOpError() << "needs a region that returns " << results << ", but it returns "
                             << terminator.getOperandTypes();
  return success();
}
