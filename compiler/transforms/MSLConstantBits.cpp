#include "transforms/MSLConstantBits.h"

#include "transforms/MSLArrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace triton_metal::msl;

/// The registers that the map takes all indices to.
static SmallVector<int64_t> applyToAll(const RegisterMap &map) {
  SmallVector<int64_t> places{map.offset};
  for (int64_t base : map.bases)
    for (size_t i = 0, size = places.size(); i != size; ++i)
      places.push_back(places[i] ^ base);
  return places;
}

//===----------------------------------------------------------------------===//
// Exclusive ors
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> triton_metal::msl::getExclusiveOrs(DenseElementsAttr constant,
                                                                       const RegisterMap &map) {
  SmallVector<int64_t> bases(map.bases.size(), 0);
  if (constant.isSplat())
    return bases;
  bool isFloat = isa<FloatType>(constant.getElementType());
  SmallVector<int64_t> values;
  for (int64_t place : applyToAll(map))
    values.push_back(getConstantElement(constant, place));
  for (size_t bit = 0; bit != bases.size(); ++bit)
    bases[bit] = values[size_t(1) << bit] ^ values[0];
  if (isFloat && llvm::any_of(bases, [](int64_t base) { return base != 0; }))
    return std::nullopt;
  for (size_t index = 1; index < values.size(); ++index)
    if (values[index] != (values[index & (index - 1)] ^ bases[llvm::countr_zero(index)]))
      return std::nullopt;
  return bases;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

Decisions Decisions::get(DenseElementsAttr constant, const RegisterMap &map, int64_t width,
                         int64_t limit) {
  Decisions result;
  std::map<SmallVector<int64_t>, int64_t> groups;
  SmallVector<int64_t> level;
  for (int64_t place : applyToAll(map)) {
    SmallVector<int64_t> elements;
    for (int64_t component = 0; component < width; ++component)
      elements.push_back(getConstantElement(constant, place + component));
    auto [it, isNew] = groups.try_emplace(elements, int64_t(result.nodes.size()));
    if (isNew) {
      // As many groups need as many decisions.
      if (int64_t(result.nodes.size()) > limit)
        return {};
      result.nodes.push_back({-1, place, 0});
    }
    level.push_back(it->second);
  }
  for (size_t bit = 0; bit != map.bases.size(); ++bit) {
    std::map<std::pair<int64_t, int64_t>, int64_t> made;
    for (size_t i = 0, size = level.size() / 2; i != size; ++i) {
      int64_t low = level[2 * i], high = level[2 * i + 1];
      level[i] = low;
      if (low == high)
        continue;
      auto [it, isNew] = made.try_emplace({low, high}, int64_t(result.nodes.size()));
      if (isNew) {
        if (++result.numDecisions > limit)
          return {};
        result.nodes.push_back({int(bit), low, high});
      }
      level[i] = it->second;
    }
    level.truncate(level.size() / 2);
  }
  return result;
}

std::optional<uint64_t> triton_metal::msl::getComputedBits(DenseElementsAttr constant,
                                                           const RegisterMap &map) {
  uint64_t bits = 0;
  if (auto bases = getExclusiveOrs(constant, map)) {
    for (auto [bit, base] : llvm::enumerate(*bases))
      if (base)
        bits |= uint64_t(1) << bit;
    return bits;
  }
  Decisions decisions = Decisions::get(constant, map, /*width=*/1, kMostDecisions);
  if (decisions.nodes.empty())
    return std::nullopt;
  for (const Decisions::Node &node : decisions.nodes)
    if (node.bit >= 0)
      bits |= uint64_t(1) << node.bit;
  return bits;
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

namespace {

/// Computes a chunk of a constant from the indices of loops.
class ConstantChunk {
public:
  ConstantChunk(OpBuilder &builder, Location loc, DenseElementsAttr constant, const Coord &at,
                int64_t width)
      : builder(builder), loc(loc), constant(constant), element(constant.getElementType()), at(at),
        width(width) {
    indices.offset = at.constant;
    for (const Coord::Term &term : at.terms)
      if (at.isFirstOfIndex(term))
        for (unsigned bit = 0, count = llvm::Log2_64(term.trip); bit < count; ++bit) {
          indices.bases.push_back(at.getBase(term.index, bit));
          bits.push_back({term.index, bit, bit + 1 == count});
        }
  }

  Value create() {
    if (constant.isSplat() || at.terms.empty())
      return createGroup(at.constant);
    // The components of a chunk have the last bases.
    RegisterMap whole = indices;
    for (int64_t bit = 1; bit < width; bit <<= 1)
      whole.bases.push_back(bit);
    if (auto strides = getLinearStrides(constant, whole))
      return createSum(*strides);
    if (auto bases = getExclusiveOrs(constant, whole))
      return element.isInteger(1) ? createParity(*bases) : createExclusiveOr(*bases);
    return createDecisions();
  }

private:
  /// A bit of a loop's index.
  struct Bit {
    Value index;
    unsigned bit;
    bool isLast;
  };

  Value number(int64_t value, Type type) { return createConstant(builder, loc, value, type); }

  Value createGroup(int64_t first) {
    auto element = [&](int64_t index) { return constant.getValues<Attribute>()[index]; };
    if (width == 1)
      return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(element(first)));
    SmallVector<Attribute> values;
    for (int64_t index = 0; index < width; ++index)
      values.push_back(element(first + index));
    auto type = cast<ShapedType>(getChunkType(constant.getElementType(), width));
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, values));
  }

  /// A 32-bit number as an element of the constant.
  Value toElement(Value index) {
    unsigned size = element.getIntOrFloatBitWidth();
    if (size == 32)
      return index;
    return size > 32 ? arith::ExtUIOp::create(builder, loc, element, index).getResult()
                     : arith::TruncIOp::create(builder, loc, element, index).getResult();
  }

  /// The bit as 0 or 1.
  Value getBit(const Bit &bit) {
    Value value = shiftDown(bit);
    return bit.isLast ? value
                      : arith::AndIOp::create(builder, loc, value, number(1, value.getType()));
  }

  /// The index with the bit as its lowest.
  Value shiftDown(const Bit &bit) {
    if (!bit.bit)
      return bit.index;
    return arith::ShRUIOp::create(builder, loc, bit.index, number(bit.bit, bit.index.getType()));
  }

  Value isSet(const Bit &bit) {
    Type type = bit.index.getType();
    Value value = bit.index;
    if (bit.bit || !bit.isLast)
      value = arith::AndIOp::create(builder, loc, value, number(int64_t(1) << bit.bit, type));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, value, number(0, type));
  }

  /// The bits of one index are next to each other.
  unsigned countOfIndex(unsigned first) const {
    unsigned end = first + 1;
    while (end < bits.size() && bits[end].index == bits[first].index)
      ++end;
    return end - first;
  }

  /// `value` in all components, and the constant's difference between them.
  Value spread(Value value, function_ref<Value(Value, Value)> join) {
    if (width == 1)
      return value;
    Value wide = SplatOp::create(builder, loc, getChunkType(value.getType(), width), value);
    return join(wide, createGroup(at.constant));
  }

  Value createSum(ArrayRef<int64_t> strides) {
    auto nsw = arith::IntegerOverflowFlags::nsw;
    Value sum;
    auto add = [&](Value value) {
      sum = sum ? arith::AddIOp::create(builder, loc, sum, value, nsw) : value;
    };
    auto addTimes = [&](Value index, int64_t stride) {
      index = toElement(index);
      add(stride == 1 ? index
                      : arith::MulIOp::create(builder, loc, index, number(stride, element), nsw));
    };
    for (unsigned first = 0, count; first < bits.size(); first += count) {
      count = countOfIndex(first);
      bool regular = true;
      for (unsigned bit = 1; bit < count; ++bit)
        regular &= strides[first + bit] == strides[first] << bit;
      if (regular) {
        if (strides[first])
          addTimes(bits[first].index, strides[first]);
        continue;
      }
      for (unsigned bit = first; bit < first + count; ++bit)
        if (strides[bit]) {
          Value value = shiftDown(bits[bit]);
          addTimes(arith::AndIOp::create(builder, loc, value, number(1, value.getType())),
                   strides[bit]);
        }
    }
    if (!sum)
      return createGroup(at.constant);
    if (width > 1)
      return spread(sum, [&](Value wide, Value group) -> Value {
        return arith::AddIOp::create(builder, loc, wide, group, nsw);
      });
    if (int64_t first = getConstantElement(constant, at.constant))
      add(number(first, element));
    return sum;
  }

  /// Truth values: whether an odd number of bits is set.
  Value createParity(ArrayRef<int64_t> bases) {
    SmallVector<Bit> odd;
    for (auto [bit, base] : llvm::zip(bits, bases))
      if (base)
        odd.push_back(bit);
    if (odd.empty())
      return createGroup(at.constant);
    Value parity;
    if (odd.size() == 1) {
      parity = isSet(odd[0]);
    } else {
      Value sum;
      for (const Bit &bit : odd) {
        Value value = shiftDown(bit);
        sum = sum ? arith::XOrIOp::create(builder, loc, sum, value) : value;
      }
      Type type = sum.getType();
      sum = arith::AndIOp::create(builder, loc, sum, number(1, type));
      parity = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, sum, number(0, type));
    }
    auto join = [&](Value value, Value group) -> Value {
      return arith::XOrIOp::create(builder, loc, value, group);
    };
    if (width > 1)
      return spread(parity, join);
    return getConstantElement(constant, at.constant) ? join(parity, number(1, element)) : parity;
  }

  Value createExclusiveOr(ArrayRef<int64_t> bases) {
    Value sum;
    auto join = [&](Value value, Value other) -> Value {
      return arith::XOrIOp::create(builder, loc, value, other);
    };
    for (auto [bit, base] : llvm::zip(bits, bases))
      if (base) {
        Value value = toElement(getBit(bit));
        if (base != 1)
          value = arith::MulIOp::create(builder, loc, value, number(base, element));
        sum = sum ? join(sum, value) : value;
      }
    if (!sum)
      return createGroup(at.constant);
    if (width > 1)
      return spread(sum, join);
    int64_t first = getConstantElement(constant, at.constant);
    return first ? join(sum, number(first, element)) : sum;
  }

  Value createDecisions() {
    int64_t count = int64_t(1) << bits.size();
    Decisions decisions = Decisions::get(constant, indices, width, count);
    SmallVector<Value> values, conditions(bits.size());
    for (const Decisions::Node &node : decisions.nodes) {
      if (node.bit < 0) {
        values.push_back(createGroup(node.low));
        continue;
      }
      Value &condition = conditions[node.bit];
      if (!condition)
        condition = isSet(bits[node.bit]);
      values.push_back(
          arith::SelectOp::create(builder, loc, condition, values[node.high], values[node.low]));
    }
    return values.back();
  }

  OpBuilder &builder;
  Location loc;
  DenseElementsAttr constant;
  Type element;
  const Coord &at;
  int64_t width;
  /// What the bits of the loops' indices add to the register.
  RegisterMap indices;
  SmallVector<Bit> bits;
};

} // namespace

Value triton_metal::msl::createConstantChunk(OpBuilder &builder, Location loc,
                                             DenseElementsAttr constant, const Coord &at,
                                             int64_t width) {
  return ConstantChunk(builder, loc, constant, at, width).create();
}
