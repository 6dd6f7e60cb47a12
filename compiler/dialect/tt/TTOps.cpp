// Verifiers, result types and integer ranges of the operations on values.

#include "dialect/tt/TT.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::tt;
using tt::detail::sameTilesButLayout;

bool tt::detail::sameTilesButLayout(TypeRange lhs, TypeRange rhs) {
  if (lhs.size() != rhs.size())
    return false;
  return llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
    auto [a, b] = pair;
    auto tensorA = dyn_cast<RankedTensorType>(a);
    auto tensorB = dyn_cast<RankedTensorType>(b);
    if (!tensorA || !tensorB)
      return a == b;
    return tensorA.getShape() == tensorB.getShape() &&
           tensorA.getElementType() == tensorB.getElementType();
  });
}

//===----------------------------------------------------------------------===//
// make_range, splat, unsplat
//===----------------------------------------------------------------------===//

LogicalResult MakeRangeOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  int64_t start = static_cast<int32_t>(getStart()), end = static_cast<int32_t>(getEnd());
  if (type.getRank() != 1 || !type.getElementType().isInteger(32))
    return emitOpError() << "makes a one-dimensional tensor of i32, not " << type;
  if (end <= start)
    return emitOpError() << "needs an end after its start, but has " << start << " and " << end;
  if (!llvm::isPowerOf2_64(end - start))
    return emitOpError() << "has " << end - start << " elements, which is no power of two";
  if (type.getDimSize(0) != end - start)
    return emitOpError() << "has " << end - start << " elements, but its type has "
                         << type.getDimSize(0);
  return success();
}

void MakeRangeOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), ConstantIntRanges::fromSigned(
                                  APInt(32, static_cast<int32_t>(getStart()), true),
                                  APInt(32, static_cast<int32_t>(getEnd()) - 1, true)));
}

LogicalResult UnsplatOp::verify() {
  auto type = getSrc().getType();
  if (type.getNumElements() != 1)
    return emitOpError() << "needs a tile of one element, not " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Operations that only move elements keep their range
//===----------------------------------------------------------------------===//

#define RANGE_OF_OPERAND(OP)                                                                       \
  void OP::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn setResultRange) {   \
    setResultRange(getResult(), ranges[0]);                                                        \
  }
RANGE_OF_OPERAND(SplatOp)
RANGE_OF_OPERAND(BroadcastOp)
RANGE_OF_OPERAND(ExpandDimsOp)
RANGE_OF_OPERAND(ReshapeOp)
RANGE_OF_OPERAND(TransOp)
#undef RANGE_OF_OPERAND

void JoinOp::inferResultRanges(ArrayRef<ConstantIntRanges> ranges, SetIntRangeFn setResultRange) {
  setResultRange(getResult(), ranges[0].rangeUnion(ranges[1]));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  auto from = getSrc().getType(), to = getType();
  if (from.getRank() != to.getRank())
    return emitOpError() << "keeps the number of dimensions, but goes from " << from << " to "
                         << to;
  for (auto [index, before, after] : llvm::enumerate(from.getShape(), to.getShape()))
    if (before != after && before != 1)
      return emitOpError() << "repeats only dimensions of size 1, but dimension " << index
                           << " goes from " << before << " to " << after;
  return success();
}

static Type expandedType(RankedTensorType type, int64_t axis) {
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + axis, 1);
  return RankedTensorType::get(shape, type.getElementType());
}

void ExpandDimsOp::build(OpBuilder &builder, OperationState &state, Value src, int axis) {
  build(builder, state, expandedType(cast<RankedTensorType>(src.getType()), axis), src, axis);
}

LogicalResult ExpandDimsOp::verify() {
  auto type = getSrc().getType();
  int32_t axis = getAxis();
  if (axis < 0 || axis > type.getRank())
    return emitOpError() << "has no place for a dimension " << axis << " in " << type;
  Type expected = expandedType(type, axis);
  if (!sameTilesButLayout(expected, getType()))
    return emitOpError() << "makes " << expected << ", not " << getType();
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = getSrc().getType(), to = getType();
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "keeps the number of elements, but goes from " << from << " to " << to;
  return success();
}

static Type transposedType(RankedTensorType type, ArrayRef<int32_t> order) {
  auto shape = llvm::map_to_vector(order, [&](int32_t dim) { return type.getDimSize(dim); });
  return RankedTensorType::get(shape, type.getElementType());
}

void TransOp::build(OpBuilder &builder, OperationState &state, Value src, ArrayRef<int32_t> order) {
  build(builder, state, transposedType(cast<RankedTensorType>(src.getType()), order), src,
        builder.getDenseI32ArrayAttr(order));
}

LogicalResult TransOp::verify() {
  auto type = getSrc().getType();
  SmallVector<bool> seen(type.getRank(), false);
  bool permutes = static_cast<int64_t>(getOrder().size()) == type.getRank();
  for (int32_t dim : getOrder()) {
    permutes &= dim >= 0 && dim < type.getRank() && !seen[dim];
    if (!permutes)
      break;
    seen[dim] = true;
  }
  if (!permutes)
    return emitOpError() << "has the order [" << getOrder()
                         << "], which does not permute the dimensions of " << type;
  Type expected = transposedType(type, getOrder());
  if (!sameTilesButLayout(expected, getType()))
    return emitOpError() << "makes " << expected << ", not " << getType();
  return success();
}

static RankedTensorType joinedType(RankedTensorType type) {
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(2);
  return RankedTensorType::get(shape, type.getElementType());
}

void JoinOp::build(OpBuilder &builder, OperationState &state, Value lhs, Value rhs) {
  build(builder, state, joinedType(cast<RankedTensorType>(lhs.getType())), lhs, rhs);
}

LogicalResult JoinOp::verify() {
  Type expected = joinedType(getLhs().getType());
  if (!sameTilesButLayout(expected, getType()))
    return emitOpError() << "makes " << expected << ", not " << getType();
  return success();
}

void SplitOp::build(OpBuilder &builder, OperationState &state, Value src) {
  auto type = cast<RankedTensorType>(src.getType());
  Type half = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  build(builder, state, half, half, src);
}

LogicalResult SplitOp::verify() {
  auto type = getSrc().getType();
  if (type.getRank() == 0 || type.getShape().back() != 2)
    return emitOpError() << "needs a last dimension of size 2, but splits " << type;
  Type expected = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  if (!sameTilesButLayout(expected, getOutLHS().getType()))
    return emitOpError() << "makes halves of type " << expected << ", not "
                         << getOutLHS().getType();
  return success();
}

LogicalResult CatOp::verify() {
  auto type = getLhs().getType();
  if (type.getRank() == 0 || type.getNumElements() * 2 != getType().getNumElements() ||
      type.getRank() != getType().getRank())
    return emitOpError() << "of two " << type << " cannot make " << getType();
  for (int64_t dim = 1; dim < type.getRank(); ++dim)
    if (type.getDimSize(dim) != getType().getDimSize(dim))
      return emitOpError() << "appends along dimension 0, but dimension " << dim << " changes";
  return success();
}

LogicalResult GatherOp::verify() {
  auto src = getSrc().getType(), indices = getIndices().getType();
  int32_t axis = getAxis();
  if (axis < 0 || axis >= src.getRank())
    return emitOpError() << "has the axis " << axis << ", which is not one of the dimensions of "
                         << src;
  if (src.getElementType() != getType().getElementType() ||
      indices.getShape() != getType().getShape())
    return emitOpError() << "returns the tile's elements in the shape of the indices";
  if (src.getRank() != indices.getRank())
    return emitOpError() << "needs a tile and indices of one rank";
  for (int64_t dim = 0; dim < src.getRank(); ++dim)
    if (dim != axis && src.getDimSize(dim) != indices.getDimSize(dim))
      return emitOpError() << "gathers along axis " << axis
                           << ", but tile and indices differ in dimension " << dim;
  return success();
}

LogicalResult HistogramOp::verify() {
  if (getSrc().getType().getRank() != 1 || getType().getRank() != 1)
    return emitOpError() << "works on one-dimensional tiles";
  if (!getType().getElementType().isInteger(32))
    return emitOpError() << "counts in i32";
  return success();
}

//===----------------------------------------------------------------------===//
// Conversions and pointers
//===----------------------------------------------------------------------===//

LogicalResult BitcastOp::verify() {
  Type from = getElementTypeOrSelf(getSrc().getType()), to = getElementTypeOrSelf(getType());
  if (isa<PtrType>(from) != isa<PtrType>(to))
    return emitOpError()
           << "does not convert between pointers and numbers: int_to_ptr and ptr_to_int do";
  if (auto ptr = dyn_cast<PtrType>(from)) {
    if (ptr.getAddressSpace() != cast<PtrType>(to).getAddressSpace())
      return emitOpError() << "keeps the address space of a pointer";
    return success();
  }
  if (getBitWidth(from) != getBitWidth(to))
    return emitOpError() << "keeps the number of bits, but goes from " << from << " to " << to;
  return success();
}

LogicalResult IntToPtrOp::verify() {
  if (!getElementTypeOrSelf(getSrc().getType()).isInteger(64))
    return emitOpError() << "makes pointers of 64-bit integers";
  return success();
}

LogicalResult PtrToIntOp::verify() {
  if (!getElementTypeOrSelf(getType()).isInteger(64))
    return emitOpError() << "makes 64-bit integers";
  return success();
}

LogicalResult FpToFpOp::verify() {
  unsigned from = getBitWidth(getSrc().getType()), to = getBitWidth(getType());
  if (to < from && !getRounding())
    return emitOpError() << "narrows, and so needs a rounding";
  return success();
}

LogicalResult AddPtrOp::verify() {
  auto element = cast<IntegerType>(getElementTypeOrSelf(getOffset().getType()));
  if (element.getWidth() > 64)
    return emitOpError() << "takes offsets of at most 64 bits";
  return success();
}

//===----------------------------------------------------------------------===//
// Dot
//===----------------------------------------------------------------------===//

LogicalResult DotOp::verify() {
  auto a = getA().getType(), b = getB().getType(), d = getType();
  int64_t rank = a.getRank();
  if (rank < 2 || rank > 3 || b.getRank() != rank || d.getRank() != rank)
    return emitOpError() << "multiplies two matrices, or two batches of matrices, not " << a
                         << " and " << b;
  if (rank == 3 && (a.getDimSize(0) != b.getDimSize(0) || a.getDimSize(0) != d.getDimSize(0)))
    return emitOpError() << "needs the same number of matrices in its operands and its result";
  int64_t m = a.getDimSize(rank - 2), k = a.getDimSize(rank - 1), n = b.getDimSize(rank - 1);
  if (b.getDimSize(rank - 2) != k)
    return emitOpError()
           << "sums over the last dimension of a and the one before last of b, but they are " << k
           << " and " << b.getDimSize(rank - 2);
  if (d.getDimSize(rank - 2) != m || d.getDimSize(rank - 1) != n)
    return emitOpError() << "makes a " << m << "x" << n << " matrix, not " << d;
  Type elementA = a.getElementType(), elementB = b.getElementType(), elementD = d.getElementType();
  bool integers = isa<IntegerType>(elementA);
  if (isa<IntegerType>(elementB) != integers || isa<IntegerType>(elementD) != integers)
    return emitOpError() << "does not mix integers and floating-point numbers: " << elementA << ", "
                         << elementB << " and " << elementD;
  if (getBitWidth(elementA) != getBitWidth(elementB) ||
      (elementA != elementB && getBitWidth(elementA) != 8))
    return emitOpError() << "needs operands of one type, but has " << elementA << " and "
                         << elementB;
  if (getBitWidth(elementD) < getBitWidth(elementA))
    return emitOpError() << "cannot accumulate " << elementA << " in the narrower " << elementD;
  return success();
}

LogicalResult DotScaledOp::verify() {
  auto a = getA().getType(), b = getB().getType(), d = getType();
  int64_t rank = a.getRank();
  if (rank < 2 || b.getRank() != rank || d.getRank() != rank)
    return emitOpError() << "multiplies two matrices, not " << a << " and " << b;
  // Two e2m1 numbers share a byte, along K unless the operation says otherwise.
  int64_t packedA =
      getAElemType() == ScaleDotElemType::E2M1 && isa<IntegerType>(a.getElementType()) ? 2 : 1;
  int64_t packedB =
      getBElemType() == ScaleDotElemType::E2M1 && isa<IntegerType>(b.getElementType()) ? 2 : 1;
  int64_t kA = a.getDimSize(rank - 1) * (getLhsKPack() ? packedA : 1);
  int64_t kB = b.getDimSize(rank - 2) * (getRhsKPack() ? packedB : 1);
  if (kA != kB)
    return emitOpError() << "sums over " << kA << " elements of a and " << kB << " of b";
  int64_t m = a.getDimSize(rank - 2) * (getLhsKPack() ? 1 : packedA);
  int64_t n = b.getDimSize(rank - 1) * (getRhsKPack() ? 1 : packedB);
  if (d.getDimSize(rank - 2) != m || d.getDimSize(rank - 1) != n)
    return emitOpError() << "makes a " << m << "x" << n << " matrix, not " << d;
  return success();
}

//===----------------------------------------------------------------------===//
// Debugging and foreign code
//===----------------------------------------------------------------------===//

LogicalResult PrintOp::verify() {
  if (!getIsSigned().empty() && getIsSigned().size() != getArgs().size())
    return emitOpError() << "has " << getArgs().size() << " values, but says the sign of "
                         << getIsSigned().size();
  return success();
}

static void addForeignEffects(bool pure, SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  if (pure)
    return;
  effects.emplace_back(MemoryEffects::Write::get());
  effects.emplace_back(MemoryEffects::Read::get());
}

void ExternElementwiseOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addForeignEffects(getPure(), effects);
}

void ElementwiseInlineAsmOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  addForeignEffects(getPure(), effects);
}
