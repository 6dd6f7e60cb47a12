// Gives numbers C++'s types: the walk over the kernel, and the conversion of operands and results.

#include "transforms/MSLExplicitTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "transforms/Passes.h"

using namespace mlir;
using namespace triton_metal;
using namespace triton_metal::msl;

LogicalResult TypeExplicator::refuse(Operation *op, const Twine &why) {
  return op->emitError("cannot be written in Metal: ") << "'" << op->getName() << "' " << why;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Type TypeExplicator::getOriginal(Value value) const {
  auto it = original.find(value);
  return it == original.end() ? value.getType() : it->second;
}

bool TypeExplicator::isShort(Value value) const {
  return value.getType().isUnsignedInteger(16) && getOriginal(value).isSignlessInteger(32);
}

bool TypeExplicator::isUnsignedNumber(Value value) const {
  if (auto splat = value.getDefiningOp<SplatOp>())
    value = splat.getValue();
  return isUnsigned(value.getType()) && !isShort(value);
}

bool TypeExplicator::isSplat(Value value) const {
  DenseElementsAttr dense;
  return value.getDefiningOp<SplatOp>() ||
         (matchPattern(value, m_Constant(&dense)) && dense.isSplat());
}

Value TypeExplicator::getNumber(Value value) {
  if (auto splat = value.getDefiningOp<SplatOp>())
    return splat.getValue();
  DenseElementsAttr dense;
  if (!matchPattern(value, m_Constant(&dense)) || !dense.isSplat())
    return value;
  return arith::ConstantOp::create(builder, value.getLoc(),
                                   cast<TypedAttr>(*dense.getValues<Attribute>().begin()));
}

Value TypeExplicator::getSigned(Value value) {
  Value number = getNumber(value);
  return isUnsignedNumber(number) ? toType(withSign(number.getType(), false), number) : number;
}

/// The same constant with an unsigned type.
static TypedAttr withoutSign(Attribute attr) {
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return IntegerAttr::get(withSign(integer.getType(), true), integer.getValue());
  auto dense = cast<DenseIntElementsAttr>(attr);
  return dense.bitcast(getElementTypeOrSelf(withSign(dense.getType(), true)));
}

Value TypeExplicator::getUnsigned(Value value) {
  Value number = getNumber(value);
  if (isUnsignedNumber(number))
    return number;
  Attribute attr;
  if (matchPattern(number, m_Constant(&attr)) && !getElementTypeOrSelf(number).isInteger(1))
    return ConstantOp::create(builder, number.getLoc(), withoutSign(attr));
  return toType(withSign(getOriginal(number), true), number);
}

Value TypeExplicator::getWhole(Value value) {
  Value number = getNumber(value);
  Type type = isShort(number) ? getOriginal(number) : number.getType();
  return toType(withElement(getOriginal(value), getElementTypeOrSelf(type)), number);
}

Value TypeExplicator::getWhole(Value value, bool isUnsigned) {
  Value number = withSignOf(value, isUnsigned);
  Type type = isShort(number) ? getOriginal(number) : number.getType();
  return toType(withElement(getOriginal(value), getElementTypeOrSelf(type)), number);
}

Value TypeExplicator::getFloat(Value value) {
  Value number = getNumber(value);
  return toType(withElement(number.getType(), builder.getF32Type()), number);
}

Value TypeExplicator::getOffset(Operation *op, Value offset) {
  // A 32-bit offset is signed, because pointers have 64 bits and an unsigned offset would not be
  // sign-extended.
  return op->hasAttr(kNonNegativeAttr) ? offset : getSigned(offset);
}

//===----------------------------------------------------------------------===//
// Making values
//===----------------------------------------------------------------------===//

Value TypeExplicator::toType(Type type, Value value) {
  return value.getType() == type ? value : Value(CastOp::create(builder, loc, type, value));
}

Value TypeExplicator::makeConstant(Type type, int64_t value) {
  return arith::ConstantOp::create(builder, loc, IntegerAttr::get(type, value));
}

Value TypeExplicator::binary(BinaryKind kind, Value a, Value b) {
  Type left = a.getType(), right = b.getType(), type;
  switch (kind) {
  case BinaryKind::Shl:
  case BinaryKind::Shr:
    type = isa<VectorType>(left) ? left : getPromotedType(left);
    break;
  case BinaryKind::LogicalAnd:
  case BinaryKind::LogicalOr:
    type = left;
    break;
  default:
    type = getArithmeticType(left, right);
    if (type && kind >= BinaryKind::Less)
      type = withElement(type, builder.getI1Type());
  }
  // If C++ cannot combine the types, the verifier reports it.
  return BinaryOp::create(builder, loc, type ? type : left, kind, a, b);
}

Value TypeExplicator::unary(UnaryKind kind, Value value) {
  return UnaryOp::create(builder, loc, value.getType(), kind, value);
}

Value TypeExplicator::call(StringRef function, Type type, ValueRange arguments) {
  return CallOp::create(builder, loc, type, function, arguments);
}

Value TypeExplicator::asType(Type type, Value value) {
  return AsTypeOp::create(builder, loc, type, value);
}

Value TypeExplicator::splat(Value number, Type like) {
  return SplatOp::create(builder, loc, cast<VectorType>(withElement(like, number.getType())),
                         number);
}

bool TypeExplicator::wantsSigned(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<arith::DivSIOp, arith::RemSIOp, arith::ShRSIOp, arith::MinSIOp, arith::MaxSIOp,
            arith::ExtSIOp, arith::SIToFPOp, PtrAddOp, ReadOp, WriteOp, SetOp, VarOp>(user))
      return true;
    if (auto loop = dyn_cast<msl::ForOp>(user); loop && !loop.getIsUnsigned())
      return true;
    if (auto compare = dyn_cast<arith::CmpIOp>(user);
        compare && compare.getPredicate() > arith::CmpIPredicate::ne &&
        compare.getPredicate() < arith::CmpIPredicate::ult)
      return true;
  }
  return false;
}

LogicalResult TypeExplicator::replace(Operation *op, Value value) {
  Value result = op->getResult(0);
  Type type = result.getType();
  // A number with several uses of which one needs the sign becomes a signed variable.
  if (!isa<VectorType>(value.getType()) && isUnsignedNumber(value) && !result.hasOneUse() &&
      wantsSigned(result))
    value = toType(type, value);
  if (value.getType() != type)
    original.try_emplace(value, type);
  result.replaceAllUsesWith(value);
  return erase(op);
}

LogicalResult TypeExplicator::erase(Operation *op) {
  // A later value may be allocated at the same address.
  for (Value result : op->getResults())
    original.erase(result);
  op->erase();
  return success();
}

void TypeExplicator::retype(Value result, Type type) {
  if (result.getType() == type)
    return;
  original.try_emplace(result, result.getType());
  result.setType(type);
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

void TypeExplicator::convertFor(msl::ForOp loop) {
  bool isUnsigned = loop.getIsUnsigned();
  for (OpOperand &operand : loop->getOpOperands())
    operand.set(getWhole(operand.get(), isUnsigned));
  retype(loop.getCounter(), withSign(loop.getCounter().getType(), isUnsigned));
  loop.setIsUnsigned(false);
}

LogicalResult TypeExplicator::convertOp(Operation *op) {
  Attribute constant;
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    if (matchPattern(op, m_Constant(&constant)) &&
        !isa<IntegerAttr, FloatAttr, DenseElementsAttr>(constant) && !op->use_empty())
      return refuse(op, "is a constant that Metal does not have");
    return success();
  }
  builder.setInsertionPoint(op);
  loc = op->getLoc();
  if (op->use_empty() && op->getNumResults() != 0 && isMemoryEffectFree(op))
    return erase(op);
  if (isa<arith::ArithDialect>(op->getDialect()))
    return convertArith(op);
  if (isa<math::MathDialect>(op->getDialect()))
    return convertMath(op);
  if (isa<MSLDialect>(op->getDialect()))
    return convertMsl(op);
  return success();
}

void TypeExplicator::convertBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (hasFailed)
      return;
    if (auto loop = dyn_cast<msl::ForOp>(op)) {
      builder.setInsertionPoint(&op);
      loc = op.getLoc();
      convertFor(loop);
    }
    if (auto loop = dyn_cast<UnrollOp>(op))
      retype(loop.getIndex(), IntegerType::get(op.getContext(), 16, IntegerType::Unsigned));
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        convertBlock(nested);
    if (op.getNumRegions() == 0 && failed(convertOp(&op)))
      hasFailed = true;
  }
}

LogicalResult TypeExplicator::convert(KernelOp kernel) {
  markPairs(kernel);
  convertBlock(kernel.getBody().front());
  if (hasFailed)
    return failure();
  // Remaining splats become vectors, and attributes about signs are dropped, which nothing needs
  // any more.
  kernel.walk([&](Operation *op) {
    op->removeDiscardableAttr(kNonNegativeAttr);
    auto splat = dyn_cast<SplatOp>(op);
    if (!splat)
      return;
    builder.setInsertionPoint(op);
    loc = op->getLoc();
    if (!op->use_empty())
      splat.replaceAllUsesWith(toType(splat.getType(), splat.getValue()));
    op->erase();
  });
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace triton_metal {

#define GEN_PASS_DEF_MSLEXPLICITTYPES
#include "transforms/Passes.h.inc"

namespace {
struct MSLExplicitTypesPass : impl::MSLExplicitTypesBase<MSLExplicitTypesPass> {
  using Base::Base;

  void runOnOperation() override {
    for (KernelOp kernel : getOperation().getOps<KernelOp>())
      if (mlir::failed(TypeExplicator(&getContext()).convert(kernel)))
        return signalPassFailure();
  }
};
} // namespace
} // namespace triton_metal
