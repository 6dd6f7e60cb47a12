#include "transforms/MSLArrays.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace triton_metal::msl;

Type triton_metal::msl::getChunkType(Type type, int64_t width) {
  Type element = getElementTypeOrSelf(type);
  return width == 1 ? element : VectorType::get(width, element);
}

Value triton_metal::msl::createConstant(OpBuilder &builder, Location loc, int64_t value,
                                        Type type) {
  return arith::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
}

Value triton_metal::msl::createSwizzle(OpBuilder &builder, Location loc, Value chunk, int64_t first,
                                       int64_t width) {
  if (auto type = dyn_cast<VectorType>(chunk.getType()); !type || type.getNumElements() == width)
    return chunk;
  if (auto made = chunk.getDefiningOp<VectorOp>();
      made && width == 1 && made.getParts().size() == size_t(getNumRegisters(chunk.getType())))
    return made.getParts()[first];
  if (auto splat = chunk.getDefiningOp<SplatOp>()) {
    if (width == 1)
      return splat.getValue();
    return SplatOp::create(builder, loc, VectorType::get(width, splat.getValue().getType()),
                           splat.getValue());
  }
  SmallVector<int64_t> positions;
  for (int64_t position = 0; position < width; ++position)
    positions.push_back(first + position);
  return SwizzleOp::create(builder, loc, getChunkType(chunk.getType(), width), chunk, positions);
}

Value triton_metal::msl::createIndex(OpBuilder &builder, const Coord &at, int64_t unit) {
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
      add(arith::MulIOp::create(builder, loc, term.index, createConstant(builder, loc, stride, i32),
                                nsw));
  }
  if (at.constant / unit != 0)
    add(createConstant(builder, loc, at.constant / unit, i32));
  return sum;
}

Value triton_metal::msl::createChunk(OpBuilder &builder, Value tile, const Coord &at,
                                     int64_t width) {
  SmallVector<Value> indices;
  SmallVector<int64_t> strides;
  for (const Coord::Term &term : at.terms) {
    indices.push_back(term.index);
    strides.push_back(term.stride);
  }
  return ChunkOp::create(builder, tile.getLoc(), getChunkType(tile.getType(), width), tile, indices,
                         strides, at.constant);
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

Value triton_metal::msl::createVariable(OpBuilder &builder, Location loc, Type type,
                                        int64_t width) {
  int64_t registers = getNumRegisters(type);
  width = std::min(width, registers);
  return VarOp::create(builder, loc, ArrayType::get(registers / width, getChunkType(type, width)));
}

Value triton_metal::msl::createVariable(OpBuilder &builder, Location loc, Type type,
                                        MatrixType matrix) {
  int64_t count = getNumRegisters(type) / matrix.getNumRegisters();
  return VarOp::create(builder, loc, ArrayType::get(count, matrix));
}

ArrayType triton_metal::msl::getArrayType(Value variable) {
  return cast<ArrayType>(variable.getType());
}

int64_t triton_metal::msl::getWidth(Value variable) {
  return getNumRegisters(getArrayType(variable).getValueType());
}

MatrixType triton_metal::msl::getMatrixType(Value variable) {
  return getArrayType(variable).getMatrixType();
}

/// The element of a variable that holds a register, and the component in it.
static std::pair<Coord, Coord> split(OpBuilder &builder, const Coord &at, int64_t width) {
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
      Value by = createConstant(builder, loc, inside, builder.getI32Type());
      high.terms.push_back(
          {arith::DivUIOp::create(builder, loc, term.index, by), width, term.trip / inside});
      low.terms.push_back(
          {arith::RemUIOp::create(builder, loc, term.index, by), term.stride, inside});
    }
  }
  return {high, low};
}

Coord triton_metal::msl::getComponentCoord(OpBuilder &builder, const Coord &at, int64_t width) {
  return split(builder, at, width).second;
}

Value triton_metal::msl::createElementIndex(OpBuilder &builder, Location loc, Value variable,
                                            const Coord &at) {
  if (getArrayType(variable).getCount() == 1)
    return {};
  Value index = createIndex(builder, at, getWidth(variable));
  return index ? index : createConstant(builder, loc, 0, builder.getI32Type());
}

Value triton_metal::msl::readArray(OpBuilder &builder, Location loc, Value variable,
                                   const Coord &at, int64_t width) {
  ArrayType type = getArrayType(variable);
  int64_t unit = getWidth(variable);
  auto whole = [&](const Coord &where) -> Value {
    return GetOp::create(builder, loc, type.getValueType(), variable,
                         createElementIndex(builder, loc, variable, where), Value());
  };
  if (width > unit) {
    SmallVector<Value> parts;
    for (int64_t part = 0; part < width; part += unit)
      parts.push_back(whole(at.plus(part)));
    return VectorOp::create(builder, loc, getChunkType(type.getScalarType(), width), parts);
  }
  auto [high, low] = split(builder, at, unit);
  if (low.terms.empty())
    return createSwizzle(builder, loc, whole(high), low.constant, width);
  SmallVector<Value> parts;
  for (int64_t part = 0; part < width; ++part)
    parts.push_back(GetOp::create(builder, loc, type.getScalarType(), variable,
                                  createElementIndex(builder, loc, variable, high),
                                  createIndex(builder, low.plus(part), 1)));
  if (width == 1)
    return parts[0];
  return VectorOp::create(builder, loc, getChunkType(type.getScalarType(), width), parts);
}

void triton_metal::msl::writeArray(OpBuilder &builder, Location loc, Value variable,
                                   const Coord &at, int64_t width, Value value) {
  int64_t unit = getWidth(variable);
  if (width >= unit) {
    for (int64_t part = 0; part < width; part += unit)
      SetOp::create(builder, loc, createSwizzle(builder, loc, value, part, unit), variable,
                    createElementIndex(builder, loc, variable, at.plus(part)), Value());
    return;
  }
  for (int64_t part = 0; part < width; ++part) {
    auto [high, low] = split(builder, at.plus(part), unit);
    Value component = createIndex(builder, low, 1);
    if (!component)
      component = createConstant(builder, loc, 0, builder.getI32Type());
    SetOp::create(builder, loc, createSwizzle(builder, loc, value, part, 1), variable,
                  createElementIndex(builder, loc, variable, high), component);
  }
}

Value triton_metal::msl::readWhole(OpBuilder &builder, Location loc, Value variable) {
  return GetOp::create(builder, loc, getArrayType(variable).getValueType(), variable, Value(),
                       Value());
}

void triton_metal::msl::writeWhole(OpBuilder &builder, Location loc, Value variable, Value value) {
  SetOp::create(builder, loc, value, variable, Value(), Value());
}
