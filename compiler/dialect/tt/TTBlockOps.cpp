// Verifiers of the operations on block pointers and tensor descriptors.

#include "dialect/tt/TT.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;

bool tt::hasShapeBehind(FuncOp function, unsigned index) {
  auto flag = function.getArgAttrOfType<BoolAttr>(index, shapeFollowsAttrName);
  return flag && flag.getValue();
}

bool tt::isPartOfDescriptor(BlockArgument argument) {
  auto function = dyn_cast<FuncOp>(argument.getOwner()->getParentOp());
  if (!function || !argument.getOwner()->isEntryBlock())
    return false;
  for (int64_t index = argument.getArgNumber(); index >= 0; --index)
    if (auto desc = dyn_cast<TensorDescType>(function.getArgument(unsigned(index)).getType()))
      return hasShapeBehind(function, unsigned(index)) &&
             argument.getArgNumber() - index <= 2 * desc.getRank();
  return false;
}

Type tt::getBlockBaseType(Type blockPointer) {
  // The verifier refuses what is no block pointer; the parser needs some type before.
  RankedTensorType block = getBlockOf(blockPointer);
  if (!block || !block.getElementType().isIntOrFloat())
    return blockPointer;
  return PtrType::get(block.getElementType());
}

RankedTensorType tt::getBlockOf(Type type) {
  auto pointer = dyn_cast<PtrType>(type);
  return pointer ? dyn_cast<RankedTensorType>(pointer.getPointeeType()) : RankedTensorType();
}

/// Checks that an operation has one of something for each dimension of its block.
static LogicalResult verifyCount(Operation *op, StringRef what, size_t count, int64_t rank) {
  if (int64_t(count) == rank)
    return success();
  return op->emitOpError() << "has " << count << " " << what << ", but its block has " << rank
                           << (rank == 1 ? " dimension" : " dimensions");
}

static LogicalResult verifyPadding(Operation *op, std::optional<uint32_t> option, Type element) {
  if (!option)
    return success();
  if (*option != uint32_t(padding::kZero) && *option != uint32_t(padding::kNan))
    return op->emitOpError() << "has padding " << int32_t(*option)
                             << "; it can be 1 (zeros) or 2 (NaN)";
  if (*option == uint32_t(padding::kNan) && !isa<FloatType>(element))
    return op->emitOpError() << "pads " << element << " with NaN, which only floats have";
  return success();
}

//===----------------------------------------------------------------------===//
// Block pointers
//===----------------------------------------------------------------------===//

LogicalResult MakeTensorPtrOp::verify() {
  RankedTensorType block = getBlockOf(getType());
  if (!block)
    return emitOpError() << "makes a block pointer, not " << getType();
  int64_t rank = block.getRank();
  if (failed(verifyCount(*this, "sizes", getShape().size(), rank)) ||
      failed(verifyCount(*this, "strides", getStrides().size(), rank)) ||
      failed(verifyCount(*this, "offsets", getOffsets().size(), rank)) ||
      failed(verifyCount(*this, "numbers in 'order'", getOrder().size(), rank)))
    return failure();
  if (!llvm::all_equal(getOffsets().getTypes()))
    return emitOpError() << "has offsets of two types";
  SmallVector<int32_t> sorted(getOrder());
  llvm::sort(sorted);
  for (auto [index, dim] : llvm::enumerate(sorted))
    if (dim != int64_t(index))
      return emitOpError() << "has an 'order' that does not list each dimension once";
  return success();
}

LogicalResult AdvanceOp::verify() {
  RankedTensorType block = getBlockOf(getType());
  if (!block)
    return emitOpError() << "moves a block pointer, not " << getType();
  return verifyCount(*this, "offsets", getOffsets().size(), block.getRank());
}

/// Checks what only accesses through block pointers have.
static LogicalResult verifyBlockAccess(Operation *op, Value pointer, Value mask,
                                       DenseI32ArrayAttr checked,
                                       std::optional<uint32_t> paddingOption) {
  RankedTensorType block = getBlockOf(pointer.getType());
  if (!block) {
    if ((checked && !checked.empty()) || paddingOption)
      return op->emitOpError() << "checks bounds, which only a block pointer has";
    return success();
  }
  if (mask)
    return op->emitOpError()
           << "has a mask; an access through a block pointer checks bounds instead";
  if (checked)
    for (int32_t dim : checked.asArrayRef())
      if (dim < 0 || dim >= block.getRank() || llvm::count(checked.asArrayRef(), dim) > 1)
        return op->emitOpError() << "checks the bound of dimension " << dim
                                 << "; 'boundaryCheck' lists dimensions of the block, each once";
  return verifyPadding(op, paddingOption, block.getElementType());
}

LogicalResult LoadOp::verify() {
  if (getOther() && !getMask())
    return emitOpError() << "has a value for where the mask is false, but no mask";
  return verifyBlockAccess(*this, getPtr(), getMask(), getBoundaryCheckAttr(), getPadding());
}

LogicalResult StoreOp::verify() {
  return verifyBlockAccess(*this, getPtr(), getMask(), getBoundaryCheckAttr(), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Tensor descriptors
//===----------------------------------------------------------------------===//

LogicalResult MakeTensorDescOp::verify() {
  int64_t rank = getType().getRank();
  Type element = getType().getTileType().getElementType();
  if (getBase().getType().getPointeeType() != element)
    return emitOpError() << "has a base of " << getBase().getType().getPointeeType()
                         << ", but blocks of " << element;
  if (failed(verifyCount(*this, "sizes", getShape().size(), rank)) ||
      failed(verifyCount(*this, "strides", getStrides().size(), rank)) ||
      failed(verifyPadding(*this, getPadding(), element)))
    return failure();
  APInt last;
  if (matchPattern(getStrides().back(), m_ConstantInt(&last)) && !last.isOne())
    return emitOpError() << "has stride " << last.getSExtValue()
                         << " in its last dimension, which must be contiguous: its stride is 1";
  return success();
}

/// Checks a tile that is loaded from a descriptor, or stored to it, against its block.
static LogicalResult verifyTile(Operation *op, TensorDescType desc, Type tile) {
  RankedTensorType block = desc.getTileType();
  auto type = cast<RankedTensorType>(tile);
  auto without1 = [](ArrayRef<int64_t> shape) {
    return llvm::to_vector(llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
  };
  if (type.getElementType() != block.getElementType() ||
      without1(type.getShape()) != without1(block.getShape()))
    return op->emitOpError() << "moves a tile of type " << type
                             << ", but the descriptor's block is " << block;
  return success();
}

LogicalResult DescriptorLoadOp::verify() {
  TensorDescType desc = getDesc().getType();
  if (failed(verifyCount(*this, "offsets", getIndices().size(), desc.getRank())))
    return failure();
  return verifyTile(*this, desc, getType());
}

LogicalResult DescriptorStoreOp::verify() {
  TensorDescType desc = getDesc().getType();
  if (failed(verifyCount(*this, "offsets", getIndices().size(), desc.getRank())))
    return failure();
  return verifyTile(*this, desc, getSrc().getType());
}

LogicalResult DescriptorReduceOp::verify() {
  TensorDescType desc = getDesc().getType();
  if (failed(verifyCount(*this, "offsets", getIndices().size(), desc.getRank())) ||
      failed(verifyTile(*this, desc, getSrc().getType())))
    return failure();
  Type element = desc.getTileType().getElementType();
  bool isBitwise = llvm::is_contained(
      {DescriptorReduceKind::AND, DescriptorReduceKind::OR, DescriptorReduceKind::XOR}, getKind());
  if (isa<IntegerType>(element) || (!isBitwise && element.getIntOrFloatBitWidth() >= 16))
    return success();
  return emitOpError() << "'" << stringifyDescriptorReduceKind(getKind()) << "' does not work on "
                       << element;
}

/// Checks a gather or a scatter of rows.
static LogicalResult verifyRows(Operation *op, TensorDescType desc, Type rows, Type tile) {
  if (desc.getRank() != 2 || desc.getShape()[0] != 1)
    return op->emitOpError() << "takes a descriptor whose block is one row, not "
                             << desc.getTileType();
  auto rowType = cast<RankedTensorType>(rows);
  unsigned bits = rowType.getElementTypeBitWidth();
  if (rowType.getRank() != 1 || bits < 16 || bits > 32)
    return op->emitOpError() << "takes one dimension of row numbers with 16 or 32 bits, not "
                             << rows;
  RankedTensorType block = desc.getTileType();
  auto wanted =
      RankedTensorType::get({rowType.getDimSize(0), block.getDimSize(1)}, block.getElementType());
  if (tile != wanted)
    return op->emitOpError() << "moves a tile of type " << tile << ", but its rows make " << wanted;
  return success();
}

LogicalResult DescriptorGatherOp::verify() {
  return verifyRows(*this, getDesc().getType(), getXOffsets().getType(), getType());
}

LogicalResult DescriptorScatterOp::verify() {
  return verifyRows(*this, getDesc().getType(), getXOffsets().getType(), getSrc().getType());
}
