// Making tiles and changing their shape.
#include "language/Builder.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/UB/IR/UBOps.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace triton_metal::language {

static std::string shapeStr(llvm::ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
                    ", ") +
         "]";
}

/// A tile's sizes are powers of two, and it has a bounded number of elements.
static llvm::Error checkShape(llvm::ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  for (auto [index, size] : llvm::enumerate(shape)) {
    if (size <= 0 || !llvm::has_single_bit(static_cast<uint64_t>(size)))
      return valueError("shape element " + llvm::Twine(index) + " of " + shapeStr(shape) +
                        " must be a power of 2, but is " + llvm::Twine(size));
    if (size > maxTileElements || (elements *= size) > maxTileElements)
      return valueError("a tile of shape " + shapeStr(shape) + " has more than " +
                        llvm::Twine(maxTileElements) + " elements, the most that a tile may have");
  }
  return llvm::Error::success();
}

static llvm::Error checkAxis(const char *what, int64_t axis) {
  if (axis < 0 || axis > 2)
    return valueError(llvm::Twine(what) + " axis must be 0, 1 or 2, not " + llvm::Twine(axis));
  return llvm::Error::success();
}

Result Builder::programId(int64_t axis) {
  if (llvm::Error error = checkAxis("program_id", axis))
    return std::move(error);
  return make<tt::GetProgramIdOp>(Type(ScalarKind::Int32), static_cast<int>(axis));
}

Result Builder::numPrograms(int64_t axis) {
  if (llvm::Error error = checkAxis("num_programs", axis))
    return std::move(error);
  return make<tt::GetNumProgramsOp>(Type(ScalarKind::Int32), static_cast<int>(axis));
}

Value Builder::poison(Type type) {
  return Value{ub::PoisonOp::create(builder, location, mlirType(type)), type};
}

Result Builder::arange(int64_t start, int64_t end) {
  if (start < INT32_MIN || start > INT32_MAX || end < INT32_MIN || end > INT32_MAX)
    return valueError("arange(" + llvm::Twine(start) + ", " + llvm::Twine(end) +
                      "): both bounds must fit in int32");
  if (end <= start)
    return valueError("arange(" + llvm::Twine(start) + ", " + llvm::Twine(end) +
                      "): the end must be greater than the start");
  int64_t size = end - start;
  if (!llvm::has_single_bit(static_cast<uint64_t>(size)))
    return valueError("arange(" + llvm::Twine(start) + ", " + llvm::Twine(end) +
                      "): the range must be a power of 2, but is " + llvm::Twine(size) +
                      ": use arange(" + llvm::Twine(start) + ", " +
                      llvm::Twine(start + static_cast<int64_t>(llvm::PowerOf2Ceil(size))) +
                      ") and a mask");
  if (llvm::Error error = checkShape(size))
    return std::move(error);
  Type type = Type(ScalarKind::Int32).withShape(size);
  return make<tt::MakeRangeOp>(type, mlirType(type), static_cast<uint32_t>(start),
                               static_cast<uint32_t>(end));
}

Result Builder::full(llvm::ArrayRef<int64_t> shape, const Operand &value, Type type) {
  if (llvm::Error error = checkShape(shape))
    return std::move(error);
  if (const Constant *number = std::get_if<Constant>(&value))
    return constant(*number, type, shape);
  Value scalar = std::get<Value>(value);
  if (scalar.type.isBlock()) {
    if (scalar.type.numElements() != 1)
      return valueError("full takes a scalar value, not " + scalar.type.str());
    Result element = unsplat(scalar);
    if (!element)
      return element;
    scalar = *element;
  }
  Result converted = cast(scalar, type);
  if (!converted)
    return converted;
  return splat(*converted, shape);
}

Result Builder::splat(const Value &value, llvm::ArrayRef<int64_t> shape) {
  if (value.type.isBlock())
    return valueError("cannot splat " + value.type.str() + ": it is a tile already");
  if (shape.empty())
    return value;
  if (llvm::Error error = checkShape(shape))
    return std::move(error);
  Type type = value.type.withShape(shape);
  auto tensorType = llvm::cast<RankedTensorType>(mlirType(type));
  // A splat of a constant is a constant.
  if (auto constant = value.handle.getDefiningOp<arith::ConstantOp>())
    return make<arith::ConstantOp>(type,
                                   llvm::cast<TypedAttr>(Attribute(DenseElementsAttr::get(
                                       tensorType, static_cast<Attribute>(constant.getValue())))));
  return make<tt::SplatOp>(type, tensorType, value.handle);
}

Result Builder::unsplat(const Value &value) {
  if (!value.type.isBlock())
    return value;
  if (value.type.numElements() != 1)
    return valueError("only a tile of one element becomes a scalar, not " + value.type.str());
  Type type = value.type.scalar();
  return make<tt::UnsplatOp>(type, mlirType(type), value.handle);
}

Result Builder::reshape(const Value &value, llvm::ArrayRef<int64_t> shape, bool canReorder) {
  if (llvm::Error error = checkShape(shape))
    return std::move(error);
  Type type = value.type.withShape(shape);
  if (type.numElements() != value.type.numElements())
    return valueError(
        "reshape cannot change the number of elements: " + shapeStr(value.type.getShape()) +
        " has " + llvm::Twine(value.type.numElements()) + ", " + shapeStr(shape) + " has " +
        llvm::Twine(type.numElements()));
  if (shape.empty())
    return unsplat(value);
  if (!value.type.isBlock())
    return splat(value, shape);
  return make<tt::ReshapeOp>(type, mlirType(type), value.handle, canReorder,
                             /*efficient_layout=*/false);
}

Result Builder::expandDims(const Value &value, int64_t axis) {
  llvm::SmallVector<int64_t> shape(value.type.getShape());
  int64_t rank = static_cast<int64_t>(shape.size());
  if (axis < 0 || axis > rank)
    return valueError("expand_dims: axis " + llvm::Twine(axis) + " is not in 0 to " +
                      llvm::Twine(rank));
  shape.insert(shape.begin() + axis, 1);
  if (!value.type.isBlock())
    return splat(value, shape);
  Type type = value.type.withShape(shape);
  return make<tt::ExpandDimsOp>(type, mlirType(type), value.handle, static_cast<uint32_t>(axis));
}

Result Builder::broadcastTo(const Value &value, llvm::ArrayRef<int64_t> shape) {
  if (llvm::Error error = checkShape(shape))
    return std::move(error);
  if (!value.type.isBlock())
    return splat(value, shape);
  llvm::ArrayRef<int64_t> from = value.type.getShape();
  if (from == shape)
    return value;
  if (from.size() != shape.size())
    return valueError("cannot broadcast " + shapeStr(from) + " to " + shapeStr(shape) +
                      ": the ranks differ");
  for (auto [index, size] : llvm::enumerate(from))
    if (size != shape[index] && size != 1)
      return valueError("cannot broadcast " + shapeStr(from) + " to " + shapeStr(shape) +
                        ": dimension " + llvm::Twine(index) + " has size " + llvm::Twine(size) +
                        ", which is neither 1 nor " + llvm::Twine(shape[index]));
  Type type = value.type.withShape(shape);
  return make<tt::BroadcastOp>(type, mlirType(type), value.handle);
}

llvm::Expected<Builder::Operands> Builder::broadcastPair(Value lhs, Value rhs,
                                                         const llvm::Twine &what) {
  if (!lhs.type.isBlock() && !rhs.type.isBlock())
    return Operands{lhs, rhs};
  if (lhs.type.isBlock() != rhs.type.isBlock()) {
    Value &scalar = lhs.type.isBlock() ? rhs : lhs;
    Result tile = splat(scalar, (lhs.type.isBlock() ? lhs : rhs).type.getShape());
    if (!tile)
      return tile.takeError();
    scalar = *tile;
    return Operands{lhs, rhs};
  }
  llvm::SmallVector<int64_t> left(lhs.type.getShape()), right(rhs.type.getShape());
  // The shorter shape gets leading dimensions of size 1.
  for (Value *value : {&lhs, &rhs})
    while (value->type.getShape().size() < std::max(left.size(), right.size())) {
      Result wider = expandDims(*value, 0);
      if (!wider)
        return wider.takeError();
      *value = *wider;
    }
  llvm::SmallVector<int64_t> shape;
  for (auto [index, a, b] : llvm::enumerate(lhs.type.getShape(), rhs.type.getShape())) {
    if (a != b && a != 1 && b != 1)
      return valueError(what + "shapes " + shapeStr(left) + " and " + shapeStr(right) +
                        " do not broadcast: dimension " + llvm::Twine(index) + " has sizes " +
                        llvm::Twine(a) + " and " + llvm::Twine(b) +
                        ", which must be equal, or one of them 1");
    shape.push_back(std::max(a, b));
  }
  for (Value *value : {&lhs, &rhs}) {
    Result wider = broadcastTo(*value, shape);
    if (!wider)
      return wider.takeError();
    *value = *wider;
  }
  return Operands{lhs, rhs};
}

Results Builder::broadcast(const Value &lhs, const Value &rhs) {
  llvm::Expected<Operands> pair = broadcastPair(lhs, rhs);
  if (!pair)
    return pair.takeError();
  return std::vector<Value>{pair->lhs, pair->rhs};
}

Result Builder::permute(const Value &value, llvm::ArrayRef<int64_t> order) {
  llvm::ArrayRef<int64_t> from = value.type.getShape();
  llvm::SmallVector<int64_t> sorted(order), shape;
  llvm::sort(sorted);
  if (order.size() != from.size())
    return valueError("permute: " + shapeStr(order) + " names " + llvm::Twine(order.size()) +
                      " dimensions, but the tile " + value.type.str() + " has " +
                      llvm::Twine(from.size()));
  for (auto [index, dimension] : llvm::enumerate(sorted))
    if (static_cast<int64_t>(index) != dimension)
      return valueError("permute: " + shapeStr(order) +
                        " is no permutation of the dimensions 0 to " +
                        llvm::Twine(static_cast<int64_t>(order.size()) - 1));
  llvm::SmallVector<int32_t> dimensions;
  for (int64_t dimension : order) {
    shape.push_back(from[dimension]);
    dimensions.push_back(static_cast<int32_t>(dimension));
  }
  Type type = value.type.withShape(shape);
  return make<tt::TransOp>(type, mlirType(type), value.handle,
                           builder.getDenseI32ArrayAttr(dimensions));
}

Result Builder::cat(const Value &lhs, const Value &rhs) {
  if (lhs.type != rhs.type || lhs.type.getShape().size() != 1)
    return valueError("cat with can_reorder takes two tiles of one dimension and one type, not " +
                      lhs.type.str() + " and " + rhs.type.str());
  Type type = lhs.type.withShape(lhs.type.getShape()[0] * 2);
  return make<tt::CatOp>(type, mlirType(type), lhs.handle, rhs.handle);
}

Result Builder::join(const Value &lhs, const Value &rhs) {
  llvm::Expected<Operands> pair = broadcastPair(lhs, rhs);
  if (!pair)
    return pair.takeError();
  Value a = pair->lhs, b = pair->rhs;
  if (a.type != b.type)
    return typeError("join takes two values of one type, not " + a.type.str() + " and " +
                     b.type.str());
  // Scalars are joined as tiles of one element.
  bool scalars = !a.type.isBlock();
  if (scalars) {
    Result left = splat(a, 1), right = splat(b, 1);
    if (!left || !right)
      return llvm::joinErrors(left.takeError(), right.takeError());
    a = *left;
    b = *right;
  }
  llvm::SmallVector<int64_t> shape(a.type.getShape());
  shape.push_back(2);
  if (llvm::Error error = checkShape(shape))
    return std::move(error);
  Type type = a.type.withShape(shape);
  Value joined = make<tt::JoinOp>(type, mlirType(type), a.handle, b.handle);
  return scalars ? reshape(joined, 2, false) : Result(joined);
}

Results Builder::split(const Value &value) {
  if (!value.type.isBlock() || value.type.getShape().back() != 2)
    return valueError("split takes a tile whose last dimension has size 2, not " +
                      value.type.str());
  Value input = value;
  bool toScalars = value.type.getShape().size() == 1;
  if (toScalars) {
    Result wider = expandDims(value, 0);
    if (!wider)
      return wider.takeError();
    input = *wider;
  }
  Type type = input.type.withShape(input.type.getShape().drop_back());
  auto op = tt::SplitOp::create(builder, location, mlirType(type), mlirType(type), input.handle);
  std::vector<Value> halves = {{op.getOutLHS(), type}, {op.getOutRHS(), type}};
  if (toScalars)
    for (Value &half : halves) {
      Result scalar = unsplat(half);
      if (!scalar)
        return scalar.takeError();
      half = *scalar;
    }
  return halves;
}

Result Builder::gather(const Value &source, const Value &index, int64_t axis) {
  int64_t rank = static_cast<int64_t>(source.type.getShape().size());
  if (!index.type.scalar().isInteger())
    return typeError("gather takes integer indices, not " + index.type.str());
  if (static_cast<int64_t>(index.type.getShape().size()) != rank)
    return valueError("gather: the source " + source.type.str() + " and the indices " +
                      index.type.str() + " must have the same rank");
  if (axis < -rank || axis >= rank)
    return valueError("gather: axis " + llvm::Twine(axis) + " is not in " + llvm::Twine(-rank) +
                      " to " + llvm::Twine(rank - 1));
  axis = axis < 0 ? axis + rank : axis;
  for (int64_t dimension = 0; dimension < rank; ++dimension)
    if (dimension != axis && index.type.getShape()[dimension] != source.type.getShape()[dimension])
      return valueError("gather: dimension " + llvm::Twine(dimension) + " of the indices " +
                        index.type.str() + " must match that of the source " + source.type.str());
  Type type = index.type.withScalar(source.type.scalar());
  return make<tt::GatherOp>(type, mlirType(type), source.handle, index.handle,
                            static_cast<uint32_t>(axis), false);
}

Result Builder::histogram(const Value &input, int64_t bins, std::optional<Value> mask) {
  if (input.type.getShape().size() != 1 || !input.type.scalar().isInteger())
    return valueError("histogram takes a tile of one dimension of integers, not " +
                      input.type.str());
  // A signed number below 0 has no bin. In fewer bits it would be one that has.
  Value numbers = input;
  if (input.type.scalar().bitWidth() < 32) {
    Result wide = cast(input, Type(ScalarKind::Int32));
    if (!wide)
      return wide;
    numbers = *wide;
  }
  if (llvm::Error error = checkShape(bins))
    return std::move(error);
  mlir::Value maskHandle;
  if (mask) {
    Result wide = broadcastTo(*mask, input.type.getShape());
    if (!wide)
      return wide;
    if (!wide->type.scalar().isBool())
      return valueError("histogram: the mask must be boolean, not " + wide->type.str());
    maskHandle = wide->handle;
  }
  Type type = Type(ScalarKind::Int32).withShape(bins);
  return make<tt::HistogramOp>(type, mlirType(type), numbers.handle, maskHandle);
}

} // namespace triton_metal::language
