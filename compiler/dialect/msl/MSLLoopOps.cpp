// The loop form: loops over registers, the variables that they read and write.

#include "dialect/msl/MSL.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

void UnrollOp::build(OpBuilder &builder, OperationState &state, int32_t lower, int32_t upper) {
  state.addAttribute(getLowerAttrName(state.name), builder.getI32IntegerAttr(lower));
  state.addAttribute(getUpperAttrName(state.name), builder.getI32IntegerAttr(upper));
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion());
  block->addArgument(builder.getI32Type(), state.location);
  UnrollOp::ensureTerminator(*state.regions.front(), builder, state.location);
}

ParseResult UnrollOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::Argument index;
  index.type = parser.getBuilder().getI32Type();
  IntegerAttr lower, upper;
  if (parser.parseArgument(index) || parser.parseEqual() ||
      parser.parseAttribute(lower, index.type, getLowerAttrName(result.name), result.attributes) ||
      parser.parseKeyword("to") ||
      parser.parseAttribute(upper, index.type, getUpperAttrName(result.name), result.attributes))
    return failure();
  if (succeeded(parser.parseOptionalColon()) && parser.parseType(index.type))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("pragma")))
    result.addAttribute(getPragmaAttrName(result.name), parser.getBuilder().getUnitAttr());
  if (parser.parseRegion(*result.addRegion(), {index}) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  UnrollOp::ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  return success();
}

void UnrollOp::print(OpAsmPrinter &p) {
  p << ' ' << getIndex() << " = " << getLower() << " to " << getUpper() << ' ';
  if (!getIndex().getType().isSignlessInteger(32))
    p << ": " << getIndex().getType() << ' ';
  if (getPragma())
    p << "pragma ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
  p.printOptionalAttrDict((*this)->getAttrs(),
                          {getLowerAttrName(), getUpperAttrName(), getPragmaAttrName()});
}

LogicalResult TileLoopOp::verify() {
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getOperandTypes() != getResultTypes())
    return emitOpError("must yield its results");
  if (!llvm::isPowerOf2_64(getRegisters()) || getRegisters() < 2)
    return emitOpError("goes over a power of two of registers, at least 2");
  if (std::optional<uint64_t> step = getStep())
    if (!llvm::isPowerOf2_64(*step) || *step > getRegisters())
      return emitOpError("has a step of ")
             << *step << " registers, which must divide its registers";
  return success();
}

/// A tile's registers are those of a variable.
static LogicalResult verifyTile(Operation *op, VectorType tile, ArrayType array) {
  int64_t registers = array.getCount() * getNumRegisters(array.getValueType());
  if (tile.getElementType() != array.getScalarType() || tile.getNumElements() != registers)
    return op->emitOpError("takes ") << tile << " for the registers of " << array;
  return success();
}

LogicalResult ReadTileOp::verify() { return verifyTile(*this, getType(), getArray().getType()); }
LogicalResult WriteTileOp::verify() {
  return verifyTile(*this, getValue().getType(), getArray().getType());
}

LogicalResult ChunkOp::verify() {
  if (getStrides().size() != getIndices().size())
    return emitOpError("needs a stride for each index");
  if (getElementTypeOrSelf(getType()) != getValue().getType().getElementType())
    return emitOpError("changes the element type");
  return success();
}

/// What reading and writing a variable share: an index where there is more than one element, and
/// the right type.
static LogicalResult verifyVariable(Operation *op, ArrayType array, Value index, Value element,
                                    Type value) {
  if (!index && array.getCount() != 1)
    return op->emitOpError("needs an index into ") << array;
  Type expected = element ? array.getScalarType() : array.getValueType();
  if (value != expected)
    return op->emitOpError("holds ") << expected << " there, not " << value;
  return success();
}

LogicalResult VarOp::verify() {
  ArrayType type = getType();
  if (getInit() && (type.getCount() != 1 || type.isMatrix()))
    return emitOpError("has a first value, which ") << type << " does not take";
  return success();
}

LogicalResult GetOp::verify() {
  return verifyVariable(*this, getArray().getType(), getIndex(), getElement(), getType());
}
LogicalResult SetOp::verify() {
  return verifyVariable(*this, getArray().getType(), getIndex(), getElement(),
                        getValue().getType());
}
