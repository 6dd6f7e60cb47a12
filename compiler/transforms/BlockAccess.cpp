#include "transforms/BlockAccess.h"

#include "dialect/tt/TT.h"
#include "dialect/ttm/LocationNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

namespace {

class AddressBuilder {
public:
  AddressBuilder(OpBuilder &builder, Location loc, RankedTensorType tile)
      : builder(builder), loc(unnamed(loc)), tile(tile) {}

  BlockAddresses build(Value base, ArrayRef<BlockDim> dims) {
    // What all elements share goes to the scalar base.
    for (const BlockDim &dim : dims)
      if (!dim.places && !isNumber(dim.offset, 0))
        base = tt::AddPtrOp::create(builder, loc, base.getType(), base, scaled(dim.offset, dim));
    Value pointers =
        tt::SplatOp::create(builder, loc, tt::getPointerTypeTo(tile, spaceOf(base)), base);
    Value mask;
    for (auto [index, dim] : llvm::enumerate(dims)) {
      Value places = dim.places ? dim.places : range(tile.getDimSize(index));
      // The only element of a dimension is at the base.
      if (dim.places || tile.getDimSize(index) != 1)
        pointers = tt::AddPtrOp::create(builder, loc, pointers.getType(), pointers,
                                        spread(scaled(places, dim), index));
      if (!dim.size)
        continue;
      Value inside = dim.places ? isInside(dim) : isInside(dim, tile.getDimSize(index), places);
      inside = spread(inside, index);
      mask = mask ? arith::AndIOp::create(builder, loc, mask, inside).getResult() : inside;
    }
    return {pointers, mask};
  }

private:
  static bool isNumber(Value value, int64_t number) {
    APInt found;
    return matchPattern(value, m_ConstantInt(&found)) && found.getSExtValue() == number;
  }
  static bool isNatural(Value value) {
    APInt found;
    return matchPattern(value, m_ConstantInt(&found)) && found.isNonNegative();
  }
  static int spaceOf(Value pointer) {
    return cast<tt::PtrType>(pointer.getType()).getAddressSpace();
  }

  Value range(int64_t size) {
    auto type = RankedTensorType::get({size}, builder.getI32Type());
    return tt::MakeRangeOp::create(builder, loc, type, 0, int32_t(size));
  }
  Value constant(Type type, int64_t number) {
    if (auto vector = dyn_cast<RankedTensorType>(type)) {
      Attribute element = builder.getIntegerAttr(vector.getElementType(), number);
      return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vector, element));
    }
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, number));
  }
  Location named(StringRef name) const {
    return NameLoc::get(StringAttr::get(loc.getContext(), name), loc);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }

  /// Repeats a scalar in the shape of a tile.
  Value like(Value pattern, Value scalar) {
    auto type = dyn_cast<RankedTensorType>(pattern.getType());
    if (!type)
      return scalar;
    return tt::SplatOp::create(builder, loc, type.clone(scalar.getType()), scalar);
  }
  Value widen(Value value) {
    Type element = getElementTypeOrSelf(value.getType()), i64 = builder.getI64Type();
    if (element == i64)
      return value;
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return arith::ExtSIOp::create(builder, loc, type ? Type(type.clone(i64)) : i64, value);
  }

  /// The distance in memory of places in a dimension. Products wrap around as addresses do.
  Value scaled(Value places, const BlockDim &dim) {
    if (isNumber(dim.stride, 1))
      return places;
    return arith::MulIOp::create(builder, loc, widen(places), like(places, dim.stride));
  }

  /// Repeats what belongs to one dimension along the others.
  Value spread(Value value, int64_t dim) {
    for (int64_t other = 0; other < tile.getRank(); ++other)
      if (other != dim)
        value = tt::ExpandDimsOp::create(builder, loc, value, int(other));
    auto type = cast<RankedTensorType>(value.getType());
    RankedTensorType whole = tile.clone(type.getElementType());
    return type == whole ? value : tt::BroadcastOp::create(builder, loc, whole, value).getResult();
  }

  /// Which elements of a block are in the tensor: those from one place in the block up to another.
  /// Both are found with scalars, so that one scalar comparison tells whether all are inside.
  Value isInside(const BlockDim &dim, int64_t count, Value places) {
    using Predicate = arith::CmpIPredicate;
    Value size = dim.size, offset = dim.offset;
    if (size.getType() != offset.getType())
      std::tie(size, offset) = std::pair(widen(size), widen(offset));
    Type type = size.getType();
    Value zero = constant(type, 0), all = constant(type, count);
    // Differences of numbers whose order is known are exact as unsigned numbers.
    Value rest = arith::SubIOp::create(builder, loc, size, offset);
    rest = arith::MinUIOp::create(builder, loc, rest, all);
    Value end = arith::SelectOp::create(builder, named("end"),
                                        compare(Predicate::slt, offset, size), rest, zero);
    Value inside = compare(Predicate::slt, places, like(places, narrow(end)));
    if (isNatural(offset))
      return inside;
    Value before = arith::SubIOp::create(builder, loc, zero, offset);
    before = arith::MinUIOp::create(builder, loc, before, all);
    Value begin = arith::SelectOp::create(builder, named("begin"),
                                          compare(Predicate::slt, offset, zero), before, zero);
    Value notBefore = compare(Predicate::sge, places, like(places, narrow(begin)));
    return arith::AndIOp::create(builder, loc, notBefore, inside);
  }
  Value narrow(Value number) {
    Type i32 = builder.getI32Type();
    return number.getType() == i32 ? number
                                   : arith::TruncIOp::create(builder, loc, i32, number).getResult();
  }

  /// Which of the places of rows are in the tensor.
  Value isInside(const BlockDim &dim) {
    auto type = cast<RankedTensorType>(dim.places.getType());
    Value places = dim.places, zero;
    Type wanted = dim.size.getType();
    if (type.getElementType() != wanted) {
      type = type.clone(wanted);
      places = arith::ExtSIOp::create(builder, loc, type, places);
    }
    zero = constant(type, 0);
    Value natural = compare(arith::CmpIPredicate::sge, places, zero);
    Value below = compare(arith::CmpIPredicate::slt, places, like(places, dim.size));
    return arith::AndIOp::create(builder, loc, natural, below);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType tile;
};

} // namespace

BlockAddresses makeBlockAddresses(OpBuilder &builder, Location loc, Value base,
                                  ArrayRef<BlockDim> dims, RankedTensorType tile) {
  return AddressBuilder(builder, loc, tile).build(base, dims);
}

} // namespace triton_metal
