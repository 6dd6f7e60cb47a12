#include "dialect/ttm/TTM.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialect/ttm/TTMOps.cpp.inc"

namespace triton_metal::ttm {

unsigned getNumSimdgroups(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto attr = op->getAttrOfType<IntegerAttr>(TTMDialect::getNumSimdgroupsAttrName()))
      return attr.getInt();
  return 0;
}

std::optional<LinearLayout> getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return std::nullopt;
  if (auto attr = dyn_cast_or_null<LinearLayoutAttr>(tensor.getEncoding()))
    return attr.getLayout();
  return std::nullopt;
}

RankedTensorType withLayout(RankedTensorType type, const LinearLayout &layout) {
  assert(type.getShape() == layout.getShape());
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               LinearLayoutAttr::get(type.getContext(), layout));
}

std::optional<std::pair<unsigned, unsigned>> getSimdgroupMatrixTiling(const LinearLayout &layout) {
  ArrayRef<int64_t> shape = layout.getShape();
  if (shape.size() != 2 || shape[0] < 8 || shape[1] < 8)
    return std::nullopt;
  unsigned groups = layout.getNumSimdgroups();
  for (unsigned rows = 1; rows <= groups && rows * 8 <= shape[0]; rows *= 2)
    for (unsigned columns = 1; rows * columns <= groups && columns * 8 <= shape[1]; columns *= 2)
      if (layout == LinearLayout::simdgroupMatrix(shape, {rows, columns}, groups))
        return std::pair(rows, columns);
  return std::nullopt;
}

bool isOperandLayout(const LinearLayout &layout, unsigned operandIndex,
                     const LinearLayout &accumulator) {
  auto tiling = getSimdgroupMatrixTiling(accumulator);
  ArrayRef<int64_t> shape = layout.getShape();
  if (!tiling || shape.size() != 2 || shape[0] < 8 || shape[1] < 8 ||
      shape[operandIndex] != accumulator.getShape()[operandIndex])
    return false;
  return layout == LinearLayout::simdgroupOperand(shape, operandIndex,
                                                  {tiling->first, tiling->second},
                                                  accumulator.getNumSimdgroups());
}

//===----------------------------------------------------------------------===//
// ConvertLayoutOp
//===----------------------------------------------------------------------===//

LogicalResult ConvertLayoutOp::verify() {
  auto source = getLayout(getSrc()), result = getLayout(getResult());
  if (!source || !result)
    return emitOpError("operand and result must have a layout");
  if (source->getNumSimdgroups() != result->getNumSimdgroups())
    return emitOpError("the layouts must be of the same number of SIMD-groups");
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSrc().getType() == getType())
    return getSrc();
  if (auto earlier = getSrc().getDefiningOp<ConvertLayoutOp>()) {
    if (earlier.getSrc().getType() == getType())
      return earlier.getSrc();
    getSrcMutable().assign(earlier.getSrc());
    return getResult();
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static LogicalResult verifySlot(Operation *op, TileType tile, Value slot, StringRef name) {
  if (tile.getSlots() > 1 && !slot)
    return op->emitOpError() << "needs a slot of " << name << ", which has " << tile.getSlots();
  return success();
}

/// Elements go to memory as they are, or as a floating-point type that holds every value of the
/// integer type.
static bool canHold(Type element, Type tileElement) {
  if (element == tileElement)
    return true;
  auto integer = dyn_cast<IntegerType>(element);
  auto floating = dyn_cast<FloatType>(tileElement);
  return integer && floating && integer.getWidth() <= floating.getFPMantissaWidth();
}

LogicalResult StoreTileOp::verify() {
  auto tensor = cast<RankedTensorType>(getSrc().getType());
  TileType tile = getTile().getType();
  if (!getLayout(tensor))
    return emitOpError("the tensor must have a layout");
  if (!canHold(tensor.getElementType(), tile.getElementType()))
    return emitOpError() << "a tile of " << tile.getElementType() << " does not hold "
                         << tensor.getElementType();
  if (tensor.getRank() != tile.getRank())
    return emitOpError("tensor and tile must have the same rank");
  auto offsets = getOffsets();
  if (offsets && offsets->size() != tile.getShape().size())
    return emitOpError("needs an offset for each dimension");
  for (int64_t d = 0; d < tile.getRank(); ++d) {
    int64_t offset = offsets ? (*offsets)[d] : 0;
    int64_t extent = tensor.getShape()[d], part = tile.getShape()[d];
    if (offsets ? (offset < 0 || offset % part != 0 || offset + part > extent) : extent != part)
      return emitOpError() << "the tile must be an aligned part of the tensor in dimension " << d;
  }
  return verifySlot(*this, tile, getSlot(), "the tile");
}

LogicalResult LoadTileOp::verify() {
  auto tensor = cast<RankedTensorType>(getResult().getType());
  TileType tile = getTile().getType();
  if (!getLayout(tensor))
    return emitOpError("the tensor must have a layout");
  ArrayRef<int64_t> part = tile.getShape().drop_front(getRow() ? 1 : 0);
  if (tensor.getElementType() != tile.getElementType() || tensor.getShape() != part)
    return emitOpError("the tensor must have the element type and the shape of ")
           << (getRow() ? "the tile without its first dimension" : "the tile");
  return verifySlot(*this, tile, getSlot(), "the tile");
}

//===----------------------------------------------------------------------===//
// MMAOp
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> shapeOf(Value operand) {
  if (auto tile = dyn_cast<TileType>(operand.getType()))
    return tile.getShape();
  return cast<RankedTensorType>(operand.getType()).getShape();
}

int64_t MMAOp::getM() { return getAcc().getType().getShape()[0]; }
int64_t MMAOp::getN() { return getAcc().getType().getShape()[1]; }

int64_t MMAOp::getK() {
  int64_t a = shapeOf(getA())[getATransposed() ? 0 : 1];
  int64_t b = shapeOf(getB())[getBTransposed() ? 1 : 0];
  return std::min(a, b);
}

LogicalResult MMAOp::verify() {
  auto accType = getAcc().getType();
  auto acc = getLayout(accType);
  if (accType.getRank() != 2 || !acc || !getSimdgroupMatrixTiling(*acc))
    return emitOpError("the accumulator must have a simdgroup-matrix layout");
  struct Operand {
    Value value, slot;
    bool transposed;
    unsigned index, kDim;
    StringRef name;
  };
  int64_t k[2];
  bool inRegisters[2];
  for (const Operand &operand : {Operand{getA(), getASlot(), getATransposed(), 0, 1, "a"},
                                 Operand{getB(), getBSlot(), getBTransposed(), 1, 0, "b"}}) {
    ArrayRef<int64_t> shape = shapeOf(operand.value);
    if (shape.size() != 2)
      return emitOpError() << operand.name << " must be a matrix";
    unsigned kDim = operand.transposed ? 1 - operand.kDim : operand.kDim;
    k[operand.index] = shape[kDim];
    if (shape[1 - kDim] != accType.getShape()[operand.index])
      return emitOpError() << operand.name << " does not fit the accumulator";
    auto tile = dyn_cast<TileType>(operand.value.getType());
    inRegisters[operand.index] = !tile;
    if (tile) {
      if (failed(verifySlot(*this, tile, operand.slot, operand.name)))
        return failure();
      continue;
    }
    auto layout = getLayout(operand.value);
    if (operand.transposed || operand.slot || !layout ||
        !isOperandLayout(*layout, operand.index, *acc))
      return emitOpError() << operand.name << " must be in the accumulator's operand layout";
  }
  int64_t terms = std::min(k[0], k[1]), offset = getKOffset();
  if (terms % 8)
    return emitOpError("k must be a multiple of 8");
  if (offset < 0 || offset % 8 || offset + terms > std::max(k[0], k[1]))
    return emitOpError("k_offset must be a multiple of 8 within the operand");
  for (unsigned i = 0; i < 2; ++i)
    if (k[i] != terms && !inRegisters[i])
      return emitOpError("a tile must have the k of the operation");
  return success();
}

} // namespace triton_metal::ttm
