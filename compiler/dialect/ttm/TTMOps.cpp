#include "dialect/ttm/TTM.h"

#include "analysis/CombineRegion.h"
#include "dialect/msl/MSL.h"
#include "dialect/msl/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

/// The types of an atomic's operands: its base, where there is one, comes second.
static ParseResult parseAtomicTypes(OpAsmParser &parser, Type &offsets, Type &base, Type &value) {
  Type second;
  if (parser.parseType(offsets) || parser.parseComma() || parser.parseType(second))
    return failure();
  if (!isa<triton_metal::tt::PtrType>(second) || failed(parser.parseOptionalComma())) {
    value = second;
    return success();
  }
  base = second;
  return parser.parseType(value);
}

static void printAtomicTypes(OpAsmPrinter &p, Operation *, Type offsets, Type base, Type value) {
  p << offsets << ", ";
  if (base)
    p << base << ", ";
  p << value;
}

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

std::optional<SimdgroupMatrixTiling> getSimdgroupMatrixTiling(const LinearLayout &layout,
                                                              msl::MatrixShape instruction) {
  ArrayRef<int64_t> shape = layout.getShape();
  if (shape.size() != 2 && shape.size() != 3)
    return std::nullopt;
  ArrayRef<int64_t> matrix = shape.take_back(2);
  unsigned groups = layout.getNumSimdgroups();
  unsigned batches = shape.size() == 3 ? std::min<int64_t>(shape[0], groups) : 1;
  for (unsigned batch = 1; batch <= batches; batch *= 2)
    for (unsigned rows = 1; batch * rows <= groups && rows * instruction.m <= matrix[0]; rows *= 2)
      for (unsigned columns = 1;
           batch * rows * columns <= groups && columns * instruction.n <= matrix[1]; columns *= 2) {
        unsigned all[] = {batch, rows, columns};
        ArrayRef<unsigned> simdgroups = ArrayRef(all).take_back(shape.size());
        if (layout == LinearLayout::simdgroupMatrix(shape, instruction, simdgroups, groups))
          return SimdgroupMatrixTiling{batch, rows, columns};
      }
  return std::nullopt;
}

int64_t getRegistersInRow(const LinearLayout &layout) {
  ArrayRef<uint32_t> bases = layout.getRegisterBases();
  for (unsigned dim = 0; dim < layout.getRank() && !bases.empty(); ++dim) {
    unsigned shift = layout.dimShift(dim);
    if (layout.getShape()[dim] == 1 || bases[0] != uint32_t(1) << shift)
      continue;
    int64_t count = 1;
    for (uint32_t base : bases) {
      if (base != uint32_t(count) << shift || count >= layout.getShape()[dim])
        break;
      count *= 2;
    }
    return count;
  }
  return 1;
}

std::optional<LinearLayout> getOperandLayout(ArrayRef<int64_t> shape, msl::MatrixShape instruction,
                                             unsigned operandIndex, const LinearLayout &accumulator,
                                             bool transposed) {
  auto tiling = getSimdgroupMatrixTiling(accumulator, instruction);
  if (!tiling || shape.size() != 2 || shape[1 - operandIndex] < instruction.k ||
      shape[operandIndex] != accumulator.getShape()[operandIndex])
    return std::nullopt;
  return LinearLayout::simdgroupOperand(shape, instruction, operandIndex,
                                        {tiling->rows, tiling->columns},
                                        accumulator.getNumSimdgroups(), transposed);
}

static constexpr StringLiteral kInstructionAttr = "ttm.instruction";
static constexpr StringLiteral kTransposedAttrs[] = {"ttm.a_transposed", "ttm.b_transposed"};

std::optional<RegisterOperands> RegisterOperands::get(Operation *dot) {
  auto shape = dot->getAttrOfType<msl::MatrixShapeAttr>(kInstructionAttr);
  if (!shape)
    return std::nullopt;
  return RegisterOperands{shape.getShape(),
                          {dot->hasAttr(kTransposedAttrs[0]), dot->hasAttr(kTransposedAttrs[1])}};
}

void RegisterOperands::set(Operation *dot) const {
  dot->setAttr(kInstructionAttr, msl::MatrixShapeAttr::get(dot->getContext(), instruction));
  for (unsigned i = 0; i < 2; ++i)
    if (transposed[i])
      dot->setAttr(kTransposedAttrs[i], UnitAttr::get(dot->getContext()));
}

//===----------------------------------------------------------------------===//
// ConvertLayoutOp, ShuffleOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyLayoutsOf(Operation *op) {
  auto source = getLayout(op->getOperand(0)), result = getLayout(op->getResult(0));
  if (!source || !result)
    return op->emitOpError("operand and result must have a layout");
  if (source->getNumSimdgroups() != result->getNumSimdgroups())
    return op->emitOpError("the layouts must be of the same number of SIMD-groups");
  return success();
}

LogicalResult ConvertLayoutOp::verify() { return verifyLayoutsOf(*this); }

LogicalResult ShuffleOp::verify() {
  if (failed(verifyLayoutsOf(*this)))
    return failure();
  if (!LayoutConversion(*getLayout(getSrc()), *getLayout(getResult())).isShuffle())
    return emitOpError("the layouts need more than a shuffle within each SIMD-group");
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

/// A part has the tensor's columns, and so many of its rows that parts of this size make it up.
static LogicalResult verifyPart(Operation *op, RankedTensorType tensor, TileType tile) {
  ArrayRef<int64_t> whole = tensor.getShape(), part = tile.getShape();
  if (whole.drop_front() != part.drop_front() || part[0] > whole[0] || whole[0] % part[0])
    return op->emitOpError("a part has the tensor's columns and an aligned part of its rows");
  return success();
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
  if (getPart())
    return offsets ? emitOpError("is of a part or of offsets, not of both")
           : failed(verifyPart(*this, tensor, tile))
               ? failure()
               : verifySlot(*this, tile, getSlot(), "the tile");
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
  if (uint32_t bits = getAcross()) {
    LinearLayout layout = *getLayout(tensor);
    if (getRow() || getPart() || tile.getRowPad() || bits >= layout.getNumElements() ||
        !layout.isPermutation() ||
        llvm::any_of(layout.getRegisterBases(), [&](uint32_t base) { return base & bits; }))
      return emitOpError("what lies across is another thread's, in a whole tile without padding");
  }
  if (getPart())
    return getRow() || tensor.getElementType() != tile.getElementType() ||
                   tensor.getRank() != tile.getRank()
               ? emitOpError("a part is of the tensor's element type and rank, and has all columns")
           : failed(verifyPart(*this, tensor, tile))
               ? failure()
               : verifySlot(*this, tile, getSlot(), "the tile");
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

int64_t MMAOp::getM() { return getAcc().getType().getShape().take_back(2)[0]; }
int64_t MMAOp::getN() { return getAcc().getType().getShape().back(); }

int64_t MMAOp::getK() {
  int64_t a = shapeOf(getA()).take_back(2)[getATransposed() ? 0 : 1];
  int64_t b = shapeOf(getB()).take_back(2)[getBTransposed() ? 1 : 0];
  return std::min(a, b);
}

int64_t MMAOp::getBatch() {
  ArrayRef<int64_t> shape = shapeOf(getA());
  return shape.size() == 3 ? shape[0] : 1;
}

Type MMAOp::getNumberType(Type type) {
  if (auto tile = dyn_cast<TileType>(type))
    return tile.getElementType();
  return getElementTypeOrSelf(type);
}

LogicalResult MMAOp::verify() {
  msl::MatrixShape instruction = getInstruction();
  auto accType = getAcc().getType();
  auto acc = getLayout(accType);
  auto tiling = acc ? getSimdgroupMatrixTiling(*acc, instruction) : std::nullopt;
  if (!tiling)
    return emitOpError("the accumulator must have a simdgroup-matrix layout");
  struct Operand {
    Value value, slot;
    bool transposed;
    unsigned index, kDim;
    StringRef name;
  };
  const msl::MatrixInstruction *known = msl::MatrixInstruction::get(instruction);
  bool takesRegisters = known && known->inRegisters;
  int64_t k[2];
  bool inRegisters[2];
  for (const Operand &operand : {Operand{getA(), getASlot(), getATransposed(), 0, 1, "a"},
                                 Operand{getB(), getBSlot(), getBTransposed(), 1, 0, "b"}}) {
    ArrayRef<int64_t> shape = shapeOf(operand.value);
    if (int64_t(shape.size()) != accType.getRank())
      return emitOpError() << operand.name << " must be a matrix, or a batch as the accumulator is";
    if (shape.size() == 3 && shape[0] != getBatch())
      return emitOpError("a and b must have the same batch");
    shape = shape.take_back(2);
    unsigned kDim = operand.transposed ? 1 - operand.kDim : operand.kDim;
    k[operand.index] = shape[kDim];
    if (shape[1 - kDim] != accType.getShape().take_back(2)[operand.index])
      return emitOpError() << operand.name << " does not fit the accumulator";
    auto tile = dyn_cast<TileType>(operand.value.getType());
    inRegisters[operand.index] = !tile;
    if (tile && takesRegisters)
      return emitOpError() << operand.name << " must be in registers, where " << instruction.str()
                           << " takes its operands";
    if (tile) {
      if (failed(verifySlot(*this, tile, operand.slot, operand.name)))
        return failure();
      continue;
    }
    auto layout = getLayout(operand.value);
    if (layout && operand.transposed && layout->getRank() == 2)
      layout = layout->transpose({1, 0});
    if ((operand.transposed && !takesRegisters) || operand.slot || !layout ||
        !isOperandLayout(*layout, instruction, operand.index, *acc, operand.transposed))
      return emitOpError() << operand.name << " must be in the accumulator's operand layout";
  }
  int64_t terms = std::min(k[0], k[1]), offset = getKOffset();
  if (terms % instruction.k)
    return emitOpError("k must be a multiple of ") << instruction.k;
  if (offset < 0 || offset % instruction.k || offset + terms > std::max(k[0], k[1]))
    return emitOpError("k_offset must be a multiple of ") << instruction.k << " within the operand";
  int64_t batches = accType.getRank() == 3 ? accType.getShape()[0] : 1;
  int64_t batch = getBatch(), first = getBatchOffset();
  if (batch % tiling->batch || first < 0 || first % batch || first + batch > batches)
    return emitOpError("the batch must be an aligned part of the accumulator's, and have a matrix "
                       "for each SIMD-group along it");
  for (unsigned i = 0; i < 2; ++i)
    if (k[i] != terms && !inRegisters[i])
      return emitOpError("a tile must have the k of the operation");
  return success();
}

//===----------------------------------------------------------------------===//
// ReduceOp
//===----------------------------------------------------------------------===//

LogicalResult ttm::ReduceOp::verify() {
  if (getSrcs().empty())
    return emitOpError("needs an operand");
  auto type = cast<RankedTensorType>(getSrcs()[0].getType());
  auto layout = getLayout(type);
  uint64_t axis = getAxis(), bits = getBits();
  if (!layout || axis >= layout->getRank())
    return emitOpError("needs operands with a layout and an axis of them");
  if (!bits || bits >= uint64_t(type.getShape()[axis]))
    return emitOpError("the bits must be some of the coordinate along the axis");
  uint32_t inFlat = uint32_t(bits) << layout->dimShift(axis), found = 0;
  std::optional<InDim> part;
  for (InDim candidate : {InDim::Register, InDim::Lane, InDim::Simdgroup})
    for (uint32_t base : layout->getBases(candidate)) {
      if (!(base & inFlat))
        continue;
      if (!llvm::isPowerOf2_32(base) || candidate == InDim::Simdgroup ||
          part.value_or(candidate) != candidate)
        return emitOpError(
            "each of the bits must be one of the registers, or each one of the lanes");
      part = candidate;
      found |= base;
    }
  if (found != inFlat)
    return emitOpError("each of the bits must be one of the registers, or each one of the lanes");
  LinearLayout reduced = layout->reduceBits(axis, bits);
  Block &block = getCombine().front();
  if (block.getNumArguments() != 2 * getSrcs().size() ||
      block.getTerminator()->getNumOperands() != getSrcs().size())
    return emitOpError("the region takes two elements of each operand and yields one");
  if ((bits & (bits + 1)) && !isCommutative(block))
    return emitOpError("neighbours must be combined first where the order of elements matters");
  for (auto [index, source, result] : llvm::enumerate(getSrcs(), getResults())) {
    auto sourceType = cast<RankedTensorType>(source.getType());
    if (sourceType.getShape() != type.getShape() || sourceType.getEncoding() != type.getEncoding())
      return emitOpError("the operands must have one shape and layout");
    auto wanted = RankedTensorType::get(reduced.getShape(), sourceType.getElementType(),
                                        LinearLayoutAttr::get(getContext(), reduced));
    if (result.getType() != wanted)
      return emitOpError() << "result " << index << " must be " << wanted;
    for (Type inside :
         {block.getArgument(index).getType(), block.getArgument(getSrcs().size() + index).getType(),
          block.getTerminator()->getOperand(index).getType()})
      if (inside != sourceType.getElementType())
        return emitOpError("the region must combine the operands' elements");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Some of the threads
//===----------------------------------------------------------------------===//

LogicalResult InFirstCopiesOp::verify() {
  if (getBody().front().getTerminator()->getOperandTypes() != getResultTypes())
    return emitOpError("must yield its results");
  LinearLayout layout = getLayout().getLayout();
  auto allThreads = [&](InDim dim) { return (1u << layout.getBases(dim).size()) - 1; };
  for (auto [index, result] : llvm::enumerate(getResults())) {
    auto own = ttm::getLayout(result);
    for (InDim dim : {InDim::Lane, InDim::Simdgroup})
      if ((own ? own->freeMask(dim) : allThreads(dim)) != layout.freeMask(dim))
        return emitOpError() << "result " << index << " has copies in other threads than "
                             << layout.str();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void ttm::LoadOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Read::get());
  // A volatile access is neither dropped nor moved across another.
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get());
}

/// `value` is what is read or written at the offsets.
template <typename Access> static LogicalResult verifyAccess(Access op, Type value) {
  Type offsets = op.getOffsets().getType();
  auto tensor = dyn_cast<RankedTensorType>(value), places = dyn_cast<RankedTensorType>(offsets);
  if (bool(tensor) != bool(places) || (tensor && (tensor.getShape() != places.getShape() ||
                                                  tensor.getEncoding() != places.getEncoding())))
    return op.emitOpError("the offsets must have the shape and layout of the elements");
  if (!op.getBase() && !getElementTypeOrSelf(offsets).isInteger(64))
    return op.emitOpError("addresses have 64 bits");
  if (op.getBase() && op.getBase().getType().getPointeeType() != getElementTypeOrSelf(value))
    return op.emitOpError("the base must point to the elements");
  if (!tensor && op.getFull())
    return op.emitOpError("one element needs no test for all of them");
  int64_t width = op.getWidth(), maskWidth = op.getMaskWidth(), maskRun = op.getMaskRun();
  if (llvm::any_of(std::array{width, maskWidth, maskRun},
                   [](int64_t each) { return each < 1 || !llvm::isPowerOf2_64(each); }))
    return op.emitOpError("widths are powers of two");
  auto layout = getLayout(value);
  int64_t most = layout ? getRegistersInRow(*layout) : 1;
  if (std::max({width, maskWidth, maskRun}) > most)
    return op.emitOpError("has a width of ") << std::max({width, maskWidth, maskRun}) << " where "
                                             << most << " registers are neighbours";
  return success();
}

LogicalResult ttm::LoadOp::verify() {
  int64_t repeat = getRepeat();
  auto layout = getLayout(getType());
  if (repeat < 1 || !llvm::isPowerOf2_64(repeat) ||
      repeat > (layout ? int64_t(layout->getNumRegisters()) : 1) ||
      (repeat > 1 && std::max({getWidth(), getMaskWidth(), getMaskRun()}) > 1))
    return emitOpError("repeats elements ")
           << repeat << " times; this is a power of two, at most the registers of a thread, and an "
           << "access that repeats elements has widths of 1";
  return verifyAccess(*this, getType());
}
LogicalResult ttm::StoreOp::verify() { return verifyAccess(*this, getValue().getType()); }

} // namespace triton_metal::ttm
