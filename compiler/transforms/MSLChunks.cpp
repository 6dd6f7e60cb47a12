// Chunks of a tile's registers on demand: what one step of a loop over registers asks of the values
// that it uses.

#include "transforms/MSLEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

Type triton_metal::msl::getChunkType(Type type, int64_t width) {
  Type element = getElementTypeOrSelf(type);
  return width == 1 ? element : VectorType::get(width, element);
}

LogicalResult Emitter::error(Operation *op, const Twine &message) {
  // One error is enough: what uses the value has none then.
  if (failed)
    return failure();
  failed = true;
  return op->emitOpError(message);
}

Value Emitter::constant(Location loc, int64_t value, Type type) {
  return arith::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
}

void Emitter::remember(Value value, const Coord &at, int64_t width, Value chunk) {
  std::vector<std::tuple<void *, int64_t, int64_t>> terms;
  for (const Coord::Term &term : at.terms)
    terms.emplace_back(term.index.getAsOpaquePointer(), term.stride, term.trip);
  memo.back()[{value.getAsOpaquePointer(), at.constant, width, terms}] = chunk;
}

Value Emitter::recall(Value value, const Coord &at, int64_t width) {
  std::vector<std::tuple<void *, int64_t, int64_t>> terms;
  for (const Coord::Term &term : at.terms)
    terms.emplace_back(term.index.getAsOpaquePointer(), term.stride, term.trip);
  Key key{value.getAsOpaquePointer(), at.constant, width, terms};
  for (auto &scope : llvm::reverse(memo))
    if (auto it = scope.find(key); it != scope.end())
      return it->second;
  return {};
}

Value Emitter::getScalar(Value value) {
  if (Value mapped = scalars.lookupOrNull(value))
    return mapped;
  Operation *op = value.getDefiningOp();
  if (op)
    (void)error(op, "cannot be turned into Metal here: its value is not known yet");
  failed = true;
  return ub::PoisonOp::create(builder, value.getLoc(), value.getType());
}

Value Emitter::swizzle(Location loc, Value vector, int64_t first, int64_t width) {
  if (auto type = dyn_cast<VectorType>(vector.getType()); !type || type.getNumElements() == width)
    return vector;
  if (auto made = vector.getDefiningOp<VectorOp>();
      made && width == 1 && made.getParts().size() == size_t(getNumRegisters(vector.getType())))
    return made.getParts()[first];
  if (auto splat = vector.getDefiningOp<SplatOp>()) {
    if (width == 1)
      return splat.getValue();
    return SplatOp::create(builder, loc, VectorType::get(width, splat.getValue().getType()),
                           splat.getValue());
  }
  SmallVector<int64_t> positions;
  for (int64_t position = 0; position < width; ++position)
    positions.push_back(first + position);
  return SwizzleOp::create(builder, loc, getChunkType(vector.getType(), width), vector, positions);
}

Value Emitter::getIndex(Location, const Coord &at, int64_t unit) {
  // Where in an array something is has no name of its own.
  Location loc = builder.getUnknownLoc();
  Type i32 = builder.getI32Type();
  auto nsw = arith::IntegerOverflowFlags::nsw;
  Value sum;
  auto add = [&](Value value) {
    sum = sum ? arith::AddIOp::create(builder, loc, sum, value, nsw) : value;
  };
  for (const Coord::Term &term : at.terms) {
    int64_t stride = term.stride / unit;
    if (stride == 1)
      add(term.index);
    else
      add(arith::MulIOp::create(builder, loc, term.index, constant(loc, stride, i32), nsw));
  }
  if (at.constant / unit != 0)
    add(constant(loc, at.constant / unit, i32));
  return sum;
}

Value Emitter::getComponent(Location loc, const Coord &at) {
  Value index = getIndex(loc, at, 1);
  return index ? index : constant(loc, 0, builder.getI32Type());
}

std::pair<Coord, Coord> Emitter::split(Location, const Coord &at, int64_t width) {
  Location loc = builder.getUnknownLoc();
  Coord high, low;
  high.constant = at.constant / width * width;
  low.constant = at.constant % width;
  for (const Coord::Term &term : at.terms) {
    if (term.stride >= width) {
      high.terms.push_back(term);
    } else if (term.stride * term.trip <= width) {
      low.terms.push_back(term);
    } else {
      int64_t inside = width / term.stride;
      Value by = constant(loc, inside, builder.getI32Type());
      high.terms.push_back(
          {arith::DivUIOp::create(builder, loc, term.index, by), width, term.trip / inside});
      low.terms.push_back(
          {arith::RemUIOp::create(builder, loc, term.index, by), term.stride, inside});
    }
  }
  return {high, low};
}

Value Emitter::readStorage(Location loc, const Storage &storage, const Coord &at, int64_t width) {
  int64_t unit = storage.width;
  auto whole = [&](const Coord &where) -> Value {
    Value index = storage.getType().getCount() == 1 ? Value() : getIndex(loc, where, unit);
    if (!index && storage.getType().getCount() != 1)
      index = constant(loc, 0, builder.getI32Type());
    return GetOp::create(builder, loc, storage.getType().getValueType(), storage.variable, index,
                         Value());
  };
  if (width > unit) {
    SmallVector<Value> parts;
    for (int64_t part = 0; part < width; part += unit)
      parts.push_back(whole(at.plus(part)));
    return VectorOp::create(builder, loc, getChunkType(storage.getType().getScalarType(), width),
                            parts);
  }
  auto [high, low] = split(loc, at, unit);
  if (low.terms.empty())
    return swizzle(loc, whole(high), low.constant, width);
  SmallVector<Value> parts;
  for (int64_t part = 0; part < width; ++part) {
    Value index = storage.getType().getCount() == 1 ? Value() : getIndex(loc, high, unit);
    if (!index && storage.getType().getCount() != 1)
      index = constant(loc, 0, builder.getI32Type());
    parts.push_back(GetOp::create(builder, loc, storage.getType().getScalarType(), storage.variable,
                                  index, getIndex(loc, low.plus(part), 1)));
  }
  return width == 1
             ? parts[0]
             : VectorOp::create(builder, loc, getChunkType(parts[0].getType(), width), parts);
}

void Emitter::writeStorage(Location loc, const Storage &storage, const Coord &at, int64_t width,
                           Value value) {
  int64_t unit = storage.width;
  bool single = storage.getType().getCount() == 1;
  auto index = [&](const Coord &where) -> Value {
    if (single)
      return {};
    Value result = getIndex(loc, where, unit);
    return result ? result : constant(loc, 0, builder.getI32Type());
  };
  if (width >= unit) {
    for (int64_t part = 0; part < width; part += unit)
      SetOp::create(builder, loc, swizzle(loc, value, part, unit), storage.variable,
                    index(at.plus(part)), Value());
    return;
  }
  for (int64_t part = 0; part < width; ++part) {
    auto [high, low] = split(loc, at.plus(part), unit);
    Value element = getIndex(loc, low, 1);
    if (!element)
      element = constant(loc, 0, builder.getI32Type());
    SetOp::create(builder, loc, swizzle(loc, value, part, 1), storage.variable, index(high),
                  element);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Emitter::get(Value value, const Coord &at, int64_t width) {
  if (!isa<VectorType>(value.getType()))
    return getScalar(value);
  int64_t registers = getNumRegisters(value.getType());
  if (registers == 1) {
    if (auto it = ssa.find(value); it != ssa.end())
      return it->second;
    return compute(value, Coord(), 1);
  }
  if (Value chunk = recall(value, at, width))
    return chunk;
  // A component of a chunk that this step has already.
  for (int64_t wide = width * 2; wide <= 4; wide *= 2) {
    Coord outer;
    outer.constant = at.constant / wide * wide;
    Coord inner;
    inner.constant = at.constant % wide;
    bool crosses = false;
    for (const Coord::Term &term : at.terms) {
      crosses |= term.stride < wide && term.stride * term.trip > wide;
      (term.stride < wide ? inner : outer).terms.push_back(term);
    }
    // An index that goes over more than this chunk.
    if (crosses)
      continue;
    Value chunk = recall(value, outer, wide);
    if (!chunk)
      continue;
    if (inner.terms.empty())
      return swizzle(value.getLoc(), chunk, inner.constant, width);
    if (width == 1)
      return ElementOp::create(builder, value.getLoc(), getElementTypeOrSelf(value.getType()),
                               chunk, getIndex(value.getLoc(), inner, 1));
  }
  if (width > 1) {
    Value low = recall(value, at, width / 2), high = recall(value, at.plus(width / 2), width / 2);
    if (low && high)
      return VectorOp::create(builder, value.getLoc(), getChunkType(value.getType(), width),
                              ValueRange{low, high});
  }
  Value chunk = compute(value, at, width);
  remember(value, at, width, chunk);
  return chunk;
}

Value Emitter::compute(Value value, const Coord &at, int64_t width) {
  Location loc = value.getLoc();
  if (auto it = stored.find(value); it != stored.end())
    return readStorage(loc, it->second, at, width);
  if (auto it = ssa.find(value); it != ssa.end()) {
    if (at.terms.empty())
      return swizzle(loc, it->second, at.constant, width);
    SmallVector<Value> parts;
    for (int64_t part = 0; part < width; ++part)
      parts.push_back(ElementOp::create(builder, loc, getElementTypeOrSelf(value.getType()),
                                        it->second, getIndex(loc, at.plus(part), 1)));
    return width == 1 ? parts[0]
                      : VectorOp::create(builder, loc, getChunkType(value.getType(), width), parts);
  }
  Operation *op = value.getDefiningOp();
  Type type = getChunkType(value.getType(), width);
  if (auto splat = dyn_cast_or_null<SplatOp>(op)) {
    Value scalar = getScalar(splat.getValue());
    return width == 1 ? scalar : SplatOp::create(builder, loc, type, scalar);
  }
  if (auto constantOp = dyn_cast_or_null<arith::ConstantOp>(op))
    return getOfConstant(constantOp, at, width);
  if (isa_and_nonnull<ub::PoisonOp>(op))
    return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)));
  if (auto permuteOp = dyn_cast_or_null<PermuteRegistersOp>(op))
    return getPermuted(permuteOp, at, width);
  if (op && (isElementwise(op) || isa<SimdReduceOp, SimdShuffleXorOp, SimdShuffleOp>(op))) {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, get(operand, at, width));
    Operation *chunk = builder.clone(*op, mapping);
    chunk->getResult(0).setType(type);
    return chunk->getResult(0);
  }
  if (op)
    (void)error(op, "cannot be turned into Metal: no value of this operation is known at its use");
  failed = true;
  return ub::PoisonOp::create(builder, loc, type);
}

Value Emitter::getOfConstant(arith::ConstantOp op, const Coord &at, int64_t width) {
  auto dense = cast<DenseElementsAttr>(op.getValue());
  Location loc = op.getLoc();
  Type type = getChunkType(op.getType(), width);
  Type element = dense.getElementType();
  auto at0 = [&](int64_t index) { return dense.getValues<Attribute>()[index]; };
  auto chunkOf = [&](int64_t first) -> Value {
    if (width == 1)
      return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(at0(first)));
    SmallVector<Attribute> values;
    for (int64_t index = 0; index < width; ++index)
      values.push_back(at0(first + index));
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(cast<ShapedType>(type), values));
  };
  if (dense.isSplat())
    return chunkOf(0);
  if (at.terms.empty())
    return chunkOf(at.constant);
  // Only the registers that are asked for need be linear in the indices: it is what the loop was
  // formed for (Emitter::getDims). The chunk's own components come last.
  RegisterMap asked;
  asked.offset = at.constant;
  for (const Coord::Term &term : at.terms)
    for (unsigned bit = 0, count = llvm::Log2_64(term.trip); bit < count; ++bit)
      asked.bases.push_back(at.isFirstOfIndex(term) ? at.getBase(term.index, bit) : 0);
  for (int64_t bit = 1; bit < width; bit <<= 1)
    asked.bases.push_back(bit);
  auto strides = getLinearStrides(dense, asked);
  if (!strides) {
    (void)error(op, "a constant without linear structure was asked for at a loop index");
    return chunkOf(0);
  }
  // The sum of what each loop index adds; vector components differ from the first by constants.
  auto nsw = arith::IntegerOverflowFlags::nsw;
  Value sum;
  auto add = [&](Value value) {
    sum = sum ? arith::AddIOp::create(builder, loc, sum, value, nsw) : value;
  };
  auto cast = [&](Value index) -> Value {
    unsigned bits = element.getIntOrFloatBitWidth();
    if (bits == 32)
      return index;
    return bits > 32 ? arith::ExtUIOp::create(builder, loc, element, index).getResult()
                     : arith::TruncIOp::create(builder, loc, element, index).getResult();
  };
  unsigned low = 0;
  for (const Coord::Term &term : at.terms) {
    unsigned count = llvm::Log2_64(term.trip);
    ArrayRef<int64_t> ofTerm = ArrayRef(*strides).slice(low, count);
    low += count;
    bool regular = true;
    for (unsigned bit = 1; bit < count; ++bit)
      regular &= ofTerm[bit] == ofTerm[0] << bit;
    for (unsigned bit = 0; bit < (regular ? 1 : count); ++bit) {
      int64_t stride = ofTerm[bit];
      if (stride == 0)
        continue;
      Value index = term.index;
      if (!regular) {
        Value one = constant(loc, 1, builder.getI32Type());
        index = bit ? arith::ShRUIOp::create(builder, loc, index,
                                             constant(loc, bit, builder.getI32Type()))
                          .getResult()
                    : index;
        index = arith::AndIOp::create(builder, loc, index, one);
      }
      index = cast(index);
      add(stride == 1
              ? index
              : arith::MulIOp::create(builder, loc, index, constant(loc, stride, element), nsw));
    }
  }
  int64_t first = getConstantElement(dense, at.constant);
  if (!sum)
    return chunkOf(at.constant);
  if (width == 1) {
    if (first)
      add(constant(loc, first, element));
    return sum;
  }
  Value wide = SplatOp::create(builder, loc, type, sum);
  return arith::AddIOp::create(builder, loc, wide, chunkOf(at.constant), nsw);
}

Coord Emitter::permute(Location loc, PermuteRegistersOp op, const Coord &at) {
  loc = builder.getUnknownLoc();
  Coord inner;
  inner.constant = op.getSource(at.constant);
  Type i32 = builder.getI32Type();
  auto getSourceBase = [&](int64_t base) { return op.getSource(base) ^ op.getOffset(); };
  for (const Coord::Term &term : at.terms) {
    if (!at.isFirstOfIndex(term))
      continue;
    unsigned count = llvm::Log2_64(term.trip);
    SmallVector<int64_t> found;
    for (unsigned bit = 0; bit < count; ++bit)
      found.push_back(getSourceBase(at.getBase(term.index, bit)));
    bool regular = found[0] == 0 || llvm::isPowerOf2_64(found[0]);
    for (unsigned bit = 1; bit < count; ++bit)
      regular &= found[bit] == found[0] << bit;
    if (regular) {
      if (found[0])
        inner.terms.push_back({term.index, found[0], term.trip});
      continue;
    }
    for (unsigned bit = 0; bit < count; ++bit) {
      int64_t base = found[bit];
      if (!base)
        continue;
      Value index = term.index;
      if (bit)
        index = arith::ShRUIOp::create(builder, loc, index, constant(loc, bit, i32));
      // Terms of one index stay recognizable as such.
      if (count > 1)
        index = arith::AndIOp::create(builder, loc, index, constant(loc, 1, i32));
      for (int64_t power = 1; power <= base; power <<= 1)
        if (base & power)
          inner.terms.push_back({index, power, 2});
    }
  }
  return inner;
}

Value Emitter::getPermuted(PermuteRegistersOp op, const Coord &at, int64_t width) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> bases = op.getBases();
  Value source = op.getValue();
  Coord inner = permute(loc, op, at);
  if (width == 1)
    return get(source, inner, 1);
  bool repeated = true, same = true;
  for (int64_t bit = 0; (int64_t(1) << bit) < width; ++bit) {
    repeated &= bases[bit] == 0;
    same &= bases[bit] == int64_t(1) << bit;
  }
  same &= inner.constant % width == 0;
  Type type = getChunkType(op.getType(), width);
  if (repeated)
    return SplatOp::create(builder, loc, type, get(source, inner, 1));
  if (same)
    return get(source, inner, width);
  SmallVector<Value> parts;
  for (int64_t part = 0; part < width; ++part) {
    Coord component = inner;
    component.constant ^= op.getSource(part) ^ op.getOffset();
    parts.push_back(get(source, component, 1));
  }
  return VectorOp::create(builder, loc, type, parts);
}
