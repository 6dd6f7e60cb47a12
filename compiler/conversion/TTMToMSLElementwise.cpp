// Operations on each element by itself, and those that only rename registers.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace triton_metal {

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

Lowering::Handled Lowering::lowerShape(Operation *op) {
  if (auto range = dyn_cast<tt::MakeRangeOp>(op)) {
    Value index = coordinates(layoutOf(range), 0);
    if (range.getStart())
      index = arith::AddIOp::create(builder, loc, index,
                                    constant(index.getType(), int32_t(range.getStart())));
    map(range, index);
    return success();
  }
  if (auto splatOp = dyn_cast<tt::SplatOp>(op)) {
    Value scalar = get(splatOp.getSrc());
    int64_t count = layoutOf(splatOp).getNumRegisters();
    if (isa<msl::PtrType>(scalar.getType()))
      // The pointer stays a uniform base; the offsets come from the additions.
      addresses[splatOp] = {scalar, zero(VectorType::get(count, builder.getI32Type()))};
    else
      map(splatOp, splat(scalar, count));
    return success();
  }
  if (auto unsplat = dyn_cast<tt::UnsplatOp>(op)) {
    Value source = unsplat.getSrc();
    if (isa<tt::PtrType>(unsplat.getType())) {
      Address address = addressOf(source);
      Value offset = extractScalar(address.offsets);
      if (address.base)
        map(unsplat, msl::PtrAddOp::create(builder, loc, address.base, offset));
      else
        map(unsplat, msl::IntToPtrOp::create(builder, loc, convertType(unsplat.getType()), offset));
      return success();
    }
    map(unsplat, extractScalar(get(source)));
    return success();
  }

  // Renamings: which flat element of the operand an element of the result is.
  if (!isa<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp>(op))
    return std::nullopt;
  Value source = op->getOperand(0), result = op->getResult(0);
  LinearLayout from = layoutOf(source), to = layoutOf(result);
  std::function<uint32_t(uint32_t)> resultToSource = [](uint32_t flat) { return flat; };
  if (isa<tt::BroadcastOp>(op)) {
    resultToSource = [&](uint32_t flat) {
      auto coordinates = to.toCoordinates(flat);
      for (auto [coordinate, extent] : llvm::zip(coordinates, from.getShape()))
        if (extent == 1)
          coordinate = 0;
      return from.toFlat(coordinates);
    };
  } else if (auto trans = dyn_cast<tt::TransOp>(op)) {
    resultToSource = [&, order = trans.getOrder()](uint32_t flat) {
      auto coordinates = to.toCoordinates(flat);
      LinearLayout::Shape sourceCoordinates(coordinates.size());
      for (auto [dim, sourceDim] : llvm::enumerate(order))
        sourceCoordinates[sourceDim] = coordinates[dim];
      return from.toFlat(sourceCoordinates);
    };
  }
  auto registers = LinearLayout::registerMap(from, to, resultToSource);
  if (!registers)
    return Handled(op->emitOpError(
        "moves data between threads; layouts should have been assigned so that it does not"));
  SmallVector<int64_t> bases(registers->begin(), registers->end());
  if (isa<tt::PtrType>(getElementTypeOrSelf(source.getType()))) {
    Address address = addressOf(source);
    address.offsets = permute(address.offsets, bases);
    addresses[result] = address;
  } else {
    map(result, permute(get(source), bases));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

/// Rounds fp32 towards zero to bfloat: the upper half of its bits, a NaN kept one.
static bool isTruncationOfBits(tt::FpToFpOp op) {
  return op.getRounding() == tt::RoundingMode::RTZ && getElementTypeOrSelf(op.getType()).isBF16();
}

Lowering::Handled Lowering::lowerElementwise(Operation *op) {
  Type i64 = builder.getI64Type();

  if (auto constantOp = dyn_cast<arith::ConstantOp>(op)) {
    Type type = convertType(constantOp.getType());
    TypedAttr value = constantOp.getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
      if (!dense.isSplat())
        return Handled(
            op->emitOpError("has different elements; build the tile from tl.arange instead"));
      value = DenseElementsAttr::get(cast<VectorType>(type), dense.getSplatValue<Attribute>());
    } else if (type != constantOp.getType()) {
      value = IntegerAttr::get(type, cast<IntegerAttr>(value).getInt());
    }
    map(constantOp, arith::ConstantOp::create(builder, loc, type, value));
    return success();
  }
  if (auto poison = dyn_cast<ub::PoisonOp>(op)) {
    // Tiles that nobody reads stay unset; a scalar is zero, which is the same in every run.
    Type type = convertType(poison.getType());
    if (isa<msl::PtrType>(type))
      map(poison, msl::IntToPtrOp::create(builder, loc, type, zero(i64)));
    else if (isa<VectorType>(type))
      map(poison, ub::PoisonOp::create(builder, loc, type));
    else
      map(poison, zero(type));
    return success();
  }
  if (isa<LLVM::AssumeOp>(op))
    return success();

  if (auto add = dyn_cast<tt::AddPtrOp>(op)) {
    Value offset = get(add.getOffset());
    // Metal's pointer arithmetic takes 32 or 64 bits.
    Type wide = builder.getI32Type();
    if (getElementTypeOrSelf(offset.getType()).getIntOrFloatBitWidth() <= 32)
      offset = castOffsets(offset, wide);
    if (isa<tt::PtrType>(add.getType())) {
      map(add, builder.createOrFold<msl::PtrAddOp>(loc, get(add.getPtr()), offset));
      return success();
    }
    Address address = addressOf(add.getPtr());
    if (!address.base) {
      Value bytes = castOffsets(offset, i64);
      int64_t size =
          getStorageBytes(cast<tt::PtrType>(getElementTypeOrSelf(add.getType())).getPointeeType());
      if (size != 1)
        bytes = arith::MulIOp::create(builder, loc, bytes, constant(bytes.getType(), size));
      address.offsets = arith::AddIOp::create(builder, loc, address.offsets, bytes);
    } else if (auto uniform = offset.getDefiningOp<msl::SplatOp>()) {
      // What is the same for all elements moves the base, so that offsets stay narrow.
      address.base = builder.createOrFold<msl::PtrAddOp>(loc, address.base, uniform.getValue());
    } else if (matchPattern(address.offsets, m_Zero())) {
      address.offsets = offset;
    } else {
      // Each offset is a 32-bit number, their sum need not be.
      address.offsets = arith::AddIOp::create(builder, loc, castOffsets(address.offsets, i64),
                                              castOffsets(offset, i64));
    }
    addresses[add] = address;
    return success();
  }
  if (auto cast = dyn_cast<tt::PtrToIntOp>(op)) {
    Address address = addressOf(cast.getSrc());
    Type pointee =
        mlir::cast<tt::PtrType>(getElementTypeOrSelf(cast.getSrc().getType())).getPointeeType();
    Value bytes = byteAddresses(address, pointee, convertType(cast.getSrc().getType()));
    map(cast, castOffsets(bytes, getElementTypeOrSelf(convertType(cast.getType()))));
    return success();
  }
  if (auto cast = dyn_cast<tt::IntToPtrOp>(op)) {
    Value address = castOffsets(get(cast.getSrc()), i64);
    Type type = convertType(cast.getType());
    if (isa<msl::PtrType>(type))
      address = msl::IntToPtrOp::create(builder, loc, type, address);
    map(cast, address);
    return success();
  }
  if (auto cast = dyn_cast<tt::BitcastOp>(op)) {
    if (!isa<tt::PtrType>(getElementTypeOrSelf(cast.getType()))) {
      map(cast, builder.createOrFold<arith::BitcastOp>(loc, convertType(cast.getType()),
                                                       get(cast.getSrc())));
      return success();
    }
    auto from = mlir::cast<tt::PtrType>(getElementTypeOrSelf(cast.getSrc().getType()));
    auto to = mlir::cast<tt::PtrType>(getElementTypeOrSelf(cast.getType()));
    Type type = convertType(to);
    if (isa<tt::PtrType>(cast.getType())) {
      map(cast, builder.createOrFold<msl::PtrCastOp>(loc, type, get(cast.getSrc())));
      return success();
    }
    Address address = addressOf(cast.getSrc());
    if (!address.base)
      map(cast, address.offsets);
    else if (getStorageBytes(from.getPointeeType()) == getStorageBytes(to.getPointeeType()))
      addresses[cast] = {builder.createOrFold<msl::PtrCastOp>(loc, type, address.base),
                         address.offsets};
    else
      map(cast, byteAddresses(address, from.getPointeeType(), convertType(cast.getType())));
    return success();
  }
  if (auto cast = dyn_cast<tt::FpToFpOp>(op)) {
    Type type = convertType(cast.getType());
    Type from = getElementTypeOrSelf(cast.getSrc().getType()), to = getElementTypeOrSelf(type);
    Value value = get(cast.getSrc());
    unsigned fromWidth = from.getIntOrFloatBitWidth(), toWidth = to.getIntOrFloatBitWidth();
    auto like = [&](Type element) -> Type {
      if (auto vector = dyn_cast<VectorType>(type))
        return VectorType::get(vector.getShape(), element);
      return element;
    };
    if (from == to) {
      map(cast, value);
    } else if (fromWidth < toWidth) {
      map(cast, arith::ExtFOp::create(builder, loc, type, value));
    } else if (fromWidth == toWidth) {
      if (cast.getRounding() == tt::RoundingMode::RTZ)
        return Handled(op->emitOpError(
            "rounds toward zero, which Metal's conversions do not: use the default"));
      Value wide = arith::ExtFOp::create(builder, loc, like(builder.getF32Type()), value);
      map(cast, arith::TruncFOp::create(builder, loc, type, wide));
    } else if (isTruncationOfBits(cast)) {
      Type i32 = like(builder.getI32Type()), i16 = like(builder.getI16Type());
      Value bits = arith::BitcastOp::create(builder, loc, i32, value);
      Value upper = arith::ShRUIOp::create(builder, loc, bits, constant(i32, 16));
      Value half = arith::TruncIOp::create(builder, loc, i16, upper);
      // A NaN whose bits are all in the lower half would become an infinity.
      Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value, value);
      Value quiet = arith::OrIOp::create(builder, loc, half, constant(i16, 0x40));
      half = arith::SelectOp::create(builder, loc, isNaN, quiet, half);
      map(cast, arith::BitcastOp::create(builder, loc, type, half));
    } else if (cast.getRounding() == tt::RoundingMode::RTZ) {
      return Handled(
          op->emitOpError("rounds toward zero, which Metal's conversions do not: use the default"));
    } else {
      map(cast, arith::TruncFOp::create(builder, loc, type, value));
    }
    return success();
  }
  if (auto mulhi = dyn_cast<tt::MulhiUIOp>(op)) {
    map(mulhi, msl::MulhiOp::create(builder, loc, get(mulhi.getX()), get(mulhi.getY()),
                                    /*is_unsigned=*/true));
    return success();
  }
  if (auto divide = dyn_cast<tt::PreciseDivFOp>(op)) {
    map(divide, msl::PreciseDivOp::create(builder, loc, get(divide.getX()), get(divide.getY())));
    return success();
  }
  if (auto divide = dyn_cast<tt::ApproxDivFOp>(op)) {
    map(divide, arith::DivFOp::create(builder, loc, get(divide.getX()), get(divide.getY())));
    return success();
  }
  if (auto root = dyn_cast<tt::PreciseSqrtOp>(op)) {
    map(root, msl::PreciseSqrtOp::create(builder, loc, get(root.getX())));
    return success();
  }
  if (auto clamp = dyn_cast<tt::ClampFOp>(op)) {
    Value x = get(clamp.getX()), low = get(clamp.getMin()), high = get(clamp.getMax());
    if (clamp.getPropagateNan() == tt::PropagateNan::ALL) {
      // Bounds are numbers; a NaN in x stays one.
      Value raised = arith::MaximumFOp::create(builder, loc, x, low);
      map(clamp, arith::MinimumFOp::create(builder, loc, raised, high));
    } else {
      Value raised = arith::MaxNumFOp::create(builder, loc, x, low);
      map(clamp, arith::MinNumFOp::create(builder, loc, raised, high));
    }
    return success();
  }

  if (auto select = dyn_cast<arith::SelectOp>(op);
      select && isa<tt::PtrType>(getElementTypeOrSelf(select.getType()))) {
    Value condition = get(select.getCondition());
    if (isa<tt::PtrType>(select.getType())) {
      map(select, arith::SelectOp::create(builder, loc, condition, get(select.getTrueValue()),
                                          get(select.getFalseValue())));
      return success();
    }
    Type pointee = cast<tt::PtrType>(getElementTypeOrSelf(select.getType())).getPointeeType();
    Type type = convertType(select.getType());
    Address lhs = addressOf(select.getTrueValue()), rhs = addressOf(select.getFalseValue());
    if (lhs.base && lhs.base == rhs.base) {
      Type wide =
          getElementTypeOrSelf(lhs.offsets.getType()) == getElementTypeOrSelf(rhs.offsets.getType())
              ? getElementTypeOrSelf(lhs.offsets.getType())
              : i64;
      addresses[select] = {lhs.base, arith::SelectOp::create(builder, loc, condition,
                                                             castOffsets(lhs.offsets, wide),
                                                             castOffsets(rhs.offsets, wide))};
      return success();
    }
    map(select, arith::SelectOp::create(builder, loc, condition, byteAddresses(lhs, pointee, type),
                                        byteAddresses(rhs, pointee, type)));
    return success();
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    // The index type, which only lifted control flow uses, is 32 bits here.
    Value value = get(op->getOperand(0));
    Type type = convertType(op->getResult(0).getType());
    unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
    unsigned to = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
    if (from < to)
      value = isa<arith::IndexCastUIOp>(op)
                  ? arith::ExtUIOp::create(builder, loc, type, value).getResult()
                  : arith::ExtSIOp::create(builder, loc, type, value).getResult();
    else if (from > to)
      value = arith::TruncIOp::create(builder, loc, type, value);
    map(op->getResult(0), value);
    return success();
  }

  // Everything else of arith and math means the same on registers.
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return std::nullopt;
  Operation *copy = builder.clone(*op, mapping);
  for (auto [result, converted] : llvm::zip(op->getResults(), copy->getResults()))
    converted.setType(convertType(result.getType()));
  return success();
}

} // namespace triton_metal
