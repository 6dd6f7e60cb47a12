// Which form each operation gets; memory, vectors and lanes.

#include "dialect/msl/ScalarTypes.h"
#include "transforms/MSLArrays.h"
#include "transforms/MSLExplicitTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

LogicalResult TypeExplicator::convertArith(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<arith::AddIOp>([&](auto) { return convertWrapping(op, BinaryKind::Add); })
      .Case<arith::SubIOp>([&](auto) { return convertWrapping(op, BinaryKind::Sub); })
      .Case<arith::MulIOp>([&](auto) { return convertWrapping(op, BinaryKind::Mul); })
      .Case<arith::DivSIOp>([&](auto) { return convertDivision(op, BinaryKind::Div, false); })
      .Case<arith::DivUIOp>([&](auto) { return convertDivision(op, BinaryKind::Div, true); })
      .Case<arith::RemSIOp>([&](auto) { return convertDivision(op, BinaryKind::Rem, false); })
      .Case<arith::RemUIOp>([&](auto) { return convertDivision(op, BinaryKind::Rem, true); })
      .Case<arith::AndIOp>([&](auto) { return convertBits(op, BinaryKind::And); })
      .Case<arith::OrIOp>([&](auto) { return convertBits(op, BinaryKind::Or); })
      .Case<arith::XOrIOp>([&](auto) { return convertBits(op, BinaryKind::Xor); })
      .Case<arith::ShLIOp>([&](auto) { return convertShift(op, BinaryKind::Shl, true); })
      .Case<arith::ShRUIOp>([&](auto) { return convertShift(op, BinaryKind::Shr, true); })
      .Case<arith::ShRSIOp>([&](auto) { return convertShift(op, BinaryKind::Shr, false); })
      .Case<arith::MinSIOp>([&](auto) { return convertFunction(op, "min", false); })
      .Case<arith::MaxSIOp>([&](auto) { return convertFunction(op, "max", false); })
      .Case<arith::MinUIOp>([&](auto) { return convertFunction(op, "min", true); })
      .Case<arith::MaxUIOp>([&](auto) { return convertFunction(op, "max", true); })
      .Case<arith::CmpIOp>([&](auto) { return convertCompare(op); })
      .Case<arith::CmpFOp>([&](auto) { return convertFloatCompare(op); })
      .Case<arith::SelectOp>([&](auto) { return convertSelect(op); })
      .Case<arith::AddFOp>([&](auto) { return convertFloat(op, BinaryKind::Add); })
      .Case<arith::SubFOp>([&](auto) { return convertFloat(op, BinaryKind::Sub); })
      .Case<arith::MulFOp>([&](auto) { return convertFloat(op, BinaryKind::Mul); })
      .Case<arith::DivFOp>([&](auto) { return convertQuotient(op); })
      .Case<arith::NegFOp, arith::RemFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
            arith::MinNumFOp>([&](auto) { return convertMath(op); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        // Between half and bfloat there is only the way through float.
        Value operand = op->getOperand(0);
        Type from = getElementTypeOrSelf(operand), to = op->getResult(0).getType();
        bool through = !from.isF32() && !getElementTypeOrSelf(to).isF32();
        return replace(op, toType(to, through ? getFloat(operand) : getNumber(operand)));
      })
      .Case<arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp, arith::SIToFPOp, arith::UIToFPOp,
            arith::FPToSIOp, arith::FPToUIOp, arith::BitcastOp>(
          [&](auto) { return convertConversion(op); })
      .Default([&](Operation *) { return refuse(op, "has no form in Metal"); });
}

/// The bits of other numbers travel in unsigned words.
static bool isCarrier(Type type, PtrType pointer) {
  return isa<VectorType>(type) && isa<IntegerType>(getElementTypeOrSelf(type)) &&
         !isa<IntegerType>(pointer.getElementType());
}

LogicalResult TypeExplicator::convertMsl(Operation *op) {
  auto unsignedInteger = [&](unsigned width) {
    return IntegerType::get(op->getContext(), width, IntegerType::Unsigned);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<LaneOp, SimdgroupOp>([&](auto) {
        retype(op->getResult(0), unsignedInteger(16));
        return success();
      })
      .Case<ProgramIdOp, NumProgramsOp>([&](auto) {
        Value result = op->getResult(0);
        bool isSigned = !result.hasOneUse() && wantsSigned(result);
        retype(result, unsignedInteger(32));
        if (isSigned) {
          builder.setInsertionPointAfter(op);
          Value number = toType(builder.getI32Type(), result);
          result.replaceAllUsesExcept(number, number.getDefiningOp());
        }
        return success();
      })
      .Case([&](SetOp set) {
        bool isNumber = isa<PtrType>(set.getValue().getType());
        if (!isNumber)
          set.getValueMutable().assign(getWhole(set.getValue(), false));
        return success();
      })
      .Case([&](VarOp variable) {
        if (Value init = variable.getInit(); init && !isa<PtrType>(init.getType()))
          variable.getInitMutable().assign(getWhole(init, false));
        return success();
      })
      .Case([&](VectorOp vector) {
        bool isUnsigned =
            llvm::any_of(vector.getParts(), [&](Value part) { return isUnsignedNumber(part); });
        for (OpOperand &part : vector->getOpOperands())
          part.set(getWhole(part.get(), isUnsigned));
        retype(vector.getResult(), withSign(vector.getType(), isUnsigned));
        return success();
      })
      .Case<SwizzleOp, ElementOp>([&](auto) {
        Value whole = getWhole(op->getOperand(0));
        op->setOperand(0, whole);
        Value result = op->getResult(0);
        retype(result, withSign(result.getType(), isUnsigned(whole.getType())));
        return success();
      })
      .Case([&](AsTypeOp asType) {
        Type to = asType.getType(), from = getOriginal(asType.getValue());
        asType.getValueMutable().assign(getWhole(asType.getValue()));
        // Words of other numbers' bits are unsigned.
        if (!isa<IntegerType>(getElementTypeOrSelf(from)))
          retype(asType.getResult(), withSign(to, true));
        return success();
      })
      .Case([&](ReadOp read) {
        bool isUnsigned = isCarrier(read.getType(), read.getBase().getType());
        if (read.getOffset())
          read.getOffsetMutable().assign(getOffset(op, read.getOffset()));
        if (read.getOther())
          read.getOtherMutable().assign(getWhole(read.getOther(), isUnsigned));
        retype(read.getResult(), withSign(read.getType(), isUnsigned));
        return success();
      })
      .Case([&](WriteOp write) {
        Value value = write.getValue();
        bool isUnsigned = isCarrier(getOriginal(value), write.getBase().getType());
        if (write.getOffset())
          write.getOffsetMutable().assign(getOffset(op, write.getOffset()));
        write.getValueMutable().assign(getWhole(value, isUnsigned));
        return success();
      })
      .Case<PtrAddOp>([&](PtrAddOp add) {
        add.getOffsetMutable().assign(getOffset(op, add.getOffset()));
        return success();
      })
      .Case([&](FillOp fill) {
        fill.getValueMutable().assign(getNumber(fill.getValue()));
        return success();
      })
      .Case<PtrToIntOp>([&](PtrToIntOp toInt) {
        return replace(op, call("reinterpret_cast<ulong>", unsignedInteger(64), toInt.getBase()));
      })
      .Case<IntToPtrOp>([&](IntToPtrOp toPointer) {
        toPointer.getAddressMutable().assign(getUnsigned(toPointer.getAddress()));
        return success();
      })
      .Case([&](MulhiOp mulhi) { return convertFunction(op, "mulhi", mulhi.getIsUnsigned()); })
      .Case<PreciseDivOp, PreciseSqrtOp>([&](auto) { return convertMath(op); })
      .Case([&](Float64Op function) { return convertFloat64(function); })
      .Case([&](LibraryOp function) { return convertLibrary(function); })
      .Case([&](SimdReduceOp reduce) { return convertSimdReduce(reduce); })
      .Case([&](SimdBroadcastFirstOp broadcast) { return convertLaneCall(broadcast, false); })
      .Case<SimdShuffleOp, SimdShuffleXorOp>([&](auto) { return convertShuffle(op); })
      .Case<AtomicRMWOp, AtomicCASOp>([&](auto) { return convertAtomic(op); })
      .Case([&](MetalCallOpInterface call) {
        return call.crossesLanes() ? convertLaneCall(op, /*isUnsigned=*/false) : success();
      })
      .Default([](Operation *) { return success(); });
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

LogicalResult TypeExplicator::convertSimdReduce(SimdReduceOp op) {
  SimdReduceKind kind = op.getKind();
  bool isUnsigned = kind == SimdReduceKind::UMin || kind == SimdReduceKind::UMax;
  bool isBits =
      kind == SimdReduceKind::And || kind == SimdReduceKind::Or || kind == SimdReduceKind::Xor;
  if (isa<FloatType>(getElementTypeOrSelf(op.getType())) && (isBits || isUnsigned))
    return refuse(op, "Metal has no such function over a SIMD-group");
  return convertLaneCall(op, isUnsigned);
}

LogicalResult TypeExplicator::convertLaneCall(Operation *op, bool isUnsigned) {
  Value result = op->getResult(0);
  Type type = result.getType(), element = getElementTypeOrSelf(type);
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits == 64 || bits == 1 || element.isBF16())
    return refuse(op, "Metal has no such function over a SIMD-group");
  Value value = getWhole(op->getOperand(0), isUnsigned);
  op->setOperand(0, value);
  if (!isa<FloatType>(element) && bits < 32) {
    // A sum of shorts may be an int, which is cut back.
    Operation *call = builder.clone(*op);
    call->getResult(0).setType(value.getType());
    return replace(op, CastOp::create(builder, loc, type, call->getResult(0)));
  }
  retype(result, value.getType());
  return success();
}

LogicalResult TypeExplicator::convertShuffle(Operation *op) {
  Value value = op->getOperand(0);
  Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
  unsigned bits = element.getIntOrFloatBitWidth();
  Value whole = getWhole(value, false);
  auto integer = [&](unsigned width, bool isUnsigned) {
    return IntegerType::get(op->getContext(), width,
                            isUnsigned ? IntegerType::Unsigned : IntegerType::Signless);
  };
  Type pair = VectorType::get(2, integer(32, true));
  auto shuffle = [&](Value what) -> Value {
    if (auto byMask = dyn_cast<SimdShuffleXorOp>(op))
      return SimdShuffleXorOp::create(builder, loc, what.getType(), what, byMask.getMaskAttr());
    Value lane = cast<SimdShuffleOp>(op).getLane();
    lane = toType(withElement(lane.getType(), integer(16, true)), lane);
    if (!isa<VectorType>(lane.getType()))
      return SimdShuffleOp::create(builder, loc, what.getType(), what, lane);
    // A call for each number; one of 64 bits is a pair of words.
    Type part = getElementTypeOrSelf(what.getType());
    bool isWide = part.getIntOrFloatBitWidth() == 64;
    SmallVector<Value> parts;
    for (int64_t i = 0; i < getNumRegisters(what.getType()); ++i) {
      Value number = createSwizzle(builder, loc, what, i, 1);
      number = isWide ? asType(pair, number) : number;
      Value from = createSwizzle(builder, loc, lane, i, 1);
      Value found = SimdShuffleOp::create(builder, loc, number.getType(), number, from);
      parts.push_back(isWide ? asType(part, found) : found);
    }
    return VectorOp::create(builder, loc, what.getType(), parts);
  };
  // Metal's specification has shuffles of numbers of up to 32 bits and of their vectors. Of the
  // vectors, published kernels only use those of two 32-bit numbers, and of bytes none, so that the
  // bits travel as such (docs/apple-quirks.md).
  int64_t count = getNumRegisters(type);
  if (bits == 1) {
    // A bool is a byte beside others, and a number alone.
    Type bytes = withElement(type, integer(count == 1 ? 32 : 8, false));
    whole = toType(bytes, whole);
    if (count == 1)
      return replace(op, toType(type, shuffle(whole)));
    bits = 8;
  }
  Type carried = whole.getType();
  auto back = [&](Value shuffled) { return replace(op, toType(type, asType(carried, shuffled))); };
  // Lanes of their own: each number travels alone.
  if (auto byLane = dyn_cast<SimdShuffleOp>(op);
      byLane && isa<VectorType>(byLane.getLane().getType())) {
    if (element.isBF16())
      return back(shuffle(asType(withElement(type, integer(16, true)), whole)));
    if (bits == 8)
      return replace(op,
                     toType(type, shuffle(toType(withElement(type, integer(16, false)), whole))));
    return replace(op, shuffle(whole));
  }
  if (count == 1 && bits == 8)
    return replace(op, toType(type, shuffle(toType(integer(32, false), whole))));
  if (count == 1 && element.isBF16())
    return back(shuffle(asType(integer(16, true), whole)));
  if (bits * count <= 32)
    return count == 1 ? replace(op, shuffle(whole))
                      : back(shuffle(asType(integer(bits * count, true), whole)));
  if (bits == 32 && count == 2)
    return replace(op, shuffle(whole));
  if (bits * count == 64)
    return back(shuffle(asType(pair, whole)));
  // Pairs of words, one after the other.
  int64_t perPair = 64 / bits;
  SmallVector<Value> parts;
  for (int64_t first = 0; first < count; first += perPair) {
    Value part = createSwizzle(builder, loc, whole, first, perPair);
    Type partType = part.getType();
    bool isPair = bits == 32;
    part = shuffle(isPair ? part : asType(pair, part));
    parts.push_back(isPair ? part : asType(partType, part));
  }
  return replace(op, toType(type, VectorOp::create(builder, loc, carried, parts)));
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

/// Whether Metal has a function for such an update; without a kind, of compare and exchange.
static bool isOfMetal(std::optional<AtomicKind> kind, Type type) {
  if (type.getIntOrFloatBitWidth() == 64)
    return kind == AtomicKind::UMin || kind == AtomicKind::UMax;
  const ScalarType *scalar = ScalarType::get(type);
  return scalar && scalar->isAtomic && kind != AtomicKind::FMin && kind != AtomicKind::FMax;
}

LogicalResult TypeExplicator::convertAtomic(Operation *op) {
  auto rmw = dyn_cast<AtomicRMWOp>(op);
  auto cas = dyn_cast<AtomicCASOp>(op);
  Type type = op->getResult(0).getType();
  Value base = cast<AtomicOpInterface>(op).getBasePointer();
  if (!base)
    return refuse(op, "is an atomic update at an address");
  auto space = cast<PtrType>(base.getType()).getSpace();
  if (isa<VectorType>(type))
    return refuse(op, "is an atomic update of a vector");
  if (space != AddressSpace::Device && space != AddressSpace::Threadgroup)
    return refuse(op, "updates memory that cannot be written");
  AtomicForm form = cast<AtomicOpInterface>(op).getAtomicForm();
  std::optional<AtomicKind> kind = rmw ? std::optional(rmw.getKind()) : std::nullopt;
  if (form == AtomicForm::Metal && !isOfMetal(kind, type))
    return refuse(op, "Metal has no such atomic operation: msl-legalize-atomics comes first");
  if (form != AtomicForm::Metal && space != AddressSpace::Device)
    return refuse(op, "is in device memory alone");
  if ((rmw ? rmw.getOrder() : cas.getOrder()) != MemoryOrder::Relaxed)
    return refuse(op,
                  "has an order, and Metal's atomics are relaxed: msl-order-atomics comes first");
  if (rmw && rmw.getKind() == AtomicKind::FAdd && space != AddressSpace::Device)
    return refuse(op, "Metal adds floats atomically in device memory alone");
  (rmw ? rmw.getOffsetsMutable() : cas.getOffsetsMutable())
      .assign(getOffset(op, cast<AtomicOpInterface>(op).getElementOffsets()));
  // What is exchanged is bits. Metal's sums are of ints, and others of unsigned numbers, which
  // wrap.
  bool exchanges = cas || *kind == AtomicKind::Exchange;
  bool isUnsigned =
      exchanges || *kind == AtomicKind::UMin || *kind == AtomicKind::UMax ||
      (form != AtomicForm::Metal && *kind != AtomicKind::Min && *kind != AtomicKind::Max);
  isUnsigned &= isa<IntegerType>(type) || exchanges;
  bool asBits = exchanges && isa<FloatType>(type);
  Type word = withSign(builder.getI32Type(), true);
  Type exchanged = asBits ? word : withSign(type, isUnsigned);
  auto convertOperand = [&](OpOperand &operand) {
    Value whole = getWhole(operand.get(), isUnsigned && !asBits);
    operand.set(asBits ? asType(word, whole) : whole);
  };
  if (cas)
    convertOperand(cas.getCompareMutable());
  convertOperand(rmw ? rmw.getValueMutable() : cas.getValueMutable());
  Value result = op->getResult(0);
  if (!asBits) {
    retype(result, exchanged);
    return success();
  }
  result.setType(word);
  if (result.use_empty())
    return success();
  builder.setInsertionPointAfter(op);
  Value back = asType(type, result);
  result.replaceAllUsesExcept(back, back.getDefiningOp());
  return success();
}
