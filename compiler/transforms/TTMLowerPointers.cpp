#include "dialect/msl/ScalarTypes.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Erase.h"
#include "transforms/Passes.h"
#include "transforms/TTMAccessWidths.h"
#include "transforms/TTPointerAnalysis.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMLOWERPOINTERS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// Elements behind a uniform pointer, at offsets; without a base, the offsets are addresses in
/// bytes.
struct Address {
  Value base, offsets;
};

Type getPointee(Type type) {
  return cast<tt::PtrType>(getElementTypeOrSelf(type)).getPointeeType();
}

/// The type with another element.
Type withElement(Type type, Type element) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.clone(element);
  return element;
}

/// The scalar that is in every element of a tile; null if none is known.
Value getSplatScalar(Value tile) {
  auto splat = dyn_cast_or_null<tt::SplatOp>(getElementSource(tile));
  return splat ? splat.getSrc() : Value();
}

class PointerLowering {
public:
  PointerLowering(tt::FuncOp func, const DenseMap<Operation *, AccessWidth> &widths)
      : func(func), widths(widths), builder(func.getContext()), loc(func.getLoc()) {}

  LogicalResult run();

private:
  LogicalResult lowerBlock(Block &block);
  LogicalResult lower(Operation *op);
  LogicalResult lowerLoad(tt::LoadOp op);
  LogicalResult lowerStore(tt::StoreOp op);
  LogicalResult lowerAtomic(tt::AtomicRMWOp op);
  LogicalResult lowerAtomic(tt::AtomicCASOp op);
  void lowerAddPtr(tt::AddPtrOp op);
  void lowerBitcast(tt::BitcastOp op);
  void lowerSelect(arith::SelectOp op);
  /// The same address from the pointer that scalars have been added to.
  Address fromRoot(Address address);

  /// The address of a scalar pointer or of a tile of pointers.
  Address addressOf(Value pointer);
  /// The addresses in bytes, as i64.
  Value byteAddresses(Value pointers);
  Value cast(Value offsets, Type element);
  Value constant(Type type, int64_t value);
  /// An operand that a loop or branch carries: pointers are carried as addresses.
  void carry(OpOperand &operand);
  void carryAsAddresses(Value value) {
    if (isPointerTile(value.getType()))
      value.setType(withElement(value.getType(), builder.getI64Type()));
  }
  /// The base, whose elements are numbers: pointers in memory are addresses.
  Value numberBase(Value base);
  /// Uses of the operation's result become uses of the value.
  void replace(Operation *op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    dead.push_back(op);
  }
  void setAddress(Operation *op, Address address) {
    addresses[op->getResult(0)] = address;
    dead.push_back(op);
  }

  tt::FuncOp func;
  const DenseMap<Operation *, AccessWidth> &widths;
  OpBuilder builder;
  Location loc;
  DenseMap<Value, Address> addresses;
  SmallVector<Operation *> dead;
};

LogicalResult PointerLowering::run() {
  if (failed(lowerBlock(func.getBody().front())))
    return failure();
  for (Operation *op : llvm::reverse(dead))
    if (failed(eraseUnread(op)))
      return failure();
  return success();
}

LogicalResult PointerLowering::lowerBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    builder.setInsertionPoint(&op);
    loc = op.getLoc();
    if (failed(lower(&op)))
      return failure();
  }
  return success();
}

Value PointerLowering::constant(Type type, int64_t value) {
  TypedAttr attribute = IntegerAttr::get(getElementTypeOrSelf(type), value);
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    attribute = DenseElementsAttr::get(tensor, Attribute(attribute));
  return arith::ConstantOp::create(builder, loc, type, attribute);
}

Value PointerLowering::cast(Value offsets, Type element) {
  Type from = getElementTypeOrSelf(offsets.getType()),
       type = withElement(offsets.getType(), element);
  if (from == element)
    return offsets;
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtSIOp::create(builder, loc, type, offsets);
  return arith::TruncIOp::create(builder, loc, type, offsets);
}

Address PointerLowering::addressOf(Value pointer) {
  if (isa<tt::PtrType>(pointer.getType()))
    return {pointer, constant(builder.getI32Type(), 0)};
  if (auto found = addresses.find(pointer); found != addresses.end())
    return found->second;
  // What is carried, or loaded, is addresses already.
  return {Value(), pointer};
}

Value PointerLowering::byteAddresses(Value pointers) {
  Address address = addressOf(pointers);
  if (!address.base)
    return address.offsets;
  Type i64 = builder.getI64Type();
  Value base = tt::PtrToIntOp::create(builder, loc, i64, address.base);
  Value offsets = cast(address.offsets, i64);
  int64_t bytes = msl::getElementBytes(getPointee(address.base.getType()));
  if (bytes != 1)
    offsets = arith::MulIOp::create(builder, loc, offsets, constant(offsets.getType(), bytes));
  if (isa<RankedTensorType>(offsets.getType()))
    base = tt::SplatOp::create(builder, loc, offsets.getType(), base);
  return arith::AddIOp::create(builder, loc, base, offsets);
}

void PointerLowering::carry(OpOperand &operand) {
  if (isPointerTile(operand.get().getType()) || addresses.contains(operand.get()))
    operand.set(byteAddresses(operand.get()));
}

Value PointerLowering::numberBase(Value base) {
  auto type = mlir::cast<tt::PtrType>(base.getType());
  if (!isa<tt::PtrType>(type.getPointeeType()))
    return base;
  return tt::BitcastOp::create(
      builder, loc, tt::PtrType::get(builder.getI64Type(), type.getAddressSpace()), base);
}

//===----------------------------------------------------------------------===//
// What makes pointers
//===----------------------------------------------------------------------===//

void PointerLowering::lowerAddPtr(tt::AddPtrOp op) {
  Address address = addressOf(op.getPtr());
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  // Pointer arithmetic takes 32 or 64 bits.
  auto widen = [&](Value offset) {
    bool isNarrow = getElementTypeOrSelf(offset.getType()).getIntOrFloatBitWidth() <= 32;
    return isNarrow ? cast(offset, i32) : offset;
  };
  if (!address.base) {
    Value bytes = cast(op.getOffset(), i64);
    if (int64_t size = msl::getElementBytes(getPointee(op.getType())); size != 1)
      bytes = arith::MulIOp::create(builder, loc, bytes, constant(bytes.getType(), size));
    address.offsets = arith::AddIOp::create(builder, loc, address.offsets, bytes);
  } else if (Value scalar = getSplatScalar(op.getOffset())) {
    // What is the same for all elements moves the base, so that offsets stay narrow.
    address.base = builder.createOrFold<tt::AddPtrOp>(loc, address.base.getType(), address.base,
                                                      widen(scalar));
  } else if (matchPattern(address.offsets, m_Zero())) {
    address.offsets = widen(op.getOffset());
  } else {
    // Each offset is a 32-bit number, their sum need not be.
    address.offsets =
        arith::AddIOp::create(builder, loc, cast(address.offsets, i64), cast(op.getOffset(), i64));
  }
  setAddress(op, address);
}

void PointerLowering::lowerBitcast(tt::BitcastOp op) {
  Address address = addressOf(op.getSrc());
  Type to = getPointee(op.getType());
  if (address.base) {
    auto from = mlir::cast<tt::PtrType>(address.base.getType());
    if (msl::getElementBytes(from.getPointeeType()) == msl::getElementBytes(to))
      address.base = builder.createOrFold<tt::BitcastOp>(
          loc, tt::PtrType::get(to, from.getAddressSpace()), address.base);
    else
      address = {Value(), byteAddresses(op.getSrc())};
  }
  setAddress(op, address);
}

/// The pointer that scalars have been added to.
Value getRoot(Value base) {
  while (auto add = base.getDefiningOp<tt::AddPtrOp>())
    base = add.getPtr();
  return base;
}

Address PointerLowering::fromRoot(Address address) {
  Type i64 = builder.getI64Type();
  address.offsets = cast(address.offsets, i64);
  while (auto add = address.base.getDefiningOp<tt::AddPtrOp>()) {
    Value offset = cast(add.getOffset(), i64);
    if (isa<RankedTensorType>(address.offsets.getType()))
      offset = tt::SplatOp::create(builder, loc, address.offsets.getType(), offset);
    address.offsets = arith::AddIOp::create(builder, loc, address.offsets, offset);
    address.base = add.getPtr();
  }
  return address;
}

void PointerLowering::lowerSelect(arith::SelectOp op) {
  Address lhs = addressOf(op.getTrueValue()), rhs = addressOf(op.getFalseValue());
  // Elements of one array stay its elements.
  if (lhs.base && rhs.base && lhs.base != rhs.base && getRoot(lhs.base) == getRoot(rhs.base)) {
    lhs = fromRoot(lhs);
    rhs = fromRoot(rhs);
  }
  Value base;
  if (lhs.base && lhs.base == rhs.base) {
    base = lhs.base;
    if (lhs.offsets.getType() != rhs.offsets.getType()) {
      lhs.offsets = cast(lhs.offsets, builder.getI64Type());
      rhs.offsets = cast(rhs.offsets, builder.getI64Type());
    }
  } else {
    lhs.offsets = byteAddresses(op.getTrueValue());
    rhs.offsets = byteAddresses(op.getFalseValue());
  }
  setAddress(op, {base, arith::SelectOp::create(builder, loc, op.getCondition(), lhs.offsets,
                                                rhs.offsets)});
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Null where there is none, or where it is true everywhere.
Value getMask(Value mask) { return mask && !tt::isConstantBool(mask, true) ? mask : Value(); }

/// That a test for the whole mask gains nothing stays known.
void keepCut(Operation *from, Operation *to) {
  if (Attribute cut = from->getAttr(TTMDialect::getCutAttrName()))
    to->setAttr(TTMDialect::getCutAttrName(), cut);
}

LogicalResult PointerLowering::lowerLoad(tt::LoadOp op) {
  Address address = addressOf(op.getPtr());
  Value other = op.getOther();
  Type type = op.getType(), i64 = builder.getI64Type();
  bool isPointer = isa<tt::PtrType>(getElementTypeOrSelf(type));
  if (isPointer) {
    if (other && isPointerTile(op.getType()))
      return op.emitOpError("takes pointers as the other values");
    if (other)
      other = tt::PtrToIntOp::create(builder, loc, i64, other);
    if (address.base)
      address.base = numberBase(address.base);
  }
  Value mask = getMask(op.getMask());
  AccessWidth access = widths.lookup(op);
  Value loaded = LoadOp::create(builder, loc, isPointer ? withElement(type, i64) : type,
                                address.base, address.offsets, mask, other, Value(), access.width,
                                mask ? access.maskWidth : 1, op.getIsVolatile(),
                                mask ? access.maskRun : 1, access.unaligned, access.repeat);
  keepCut(op, loaded.getDefiningOp());
  if (!isPointer) {
    replace(op, loaded);
  } else if (isPointerTile(type)) {
    setAddress(op, {Value(), loaded});
  } else {
    replace(op, tt::IntToPtrOp::create(builder, loc, type, loaded));
  }
  return success();
}

LogicalResult PointerLowering::lowerStore(tt::StoreOp op) {
  Value value = op.getValue();
  if (isPointerTile(value.getType()))
    return op.emitOpError("stores a tile of pointers; store their integers (tl.cast to int64)");
  Address address = addressOf(op.getPtr());
  if (isa<tt::PtrType>(value.getType())) {
    value = tt::PtrToIntOp::create(builder, loc, builder.getI64Type(), value);
    address.base = numberBase(address.base);
  }
  Value mask = getMask(op.getMask());
  AccessWidth access = widths.lookup(op);
  auto store = StoreOp::create(builder, loc, value, address.base, address.offsets, mask, Value(),
                               access.width, mask ? access.maskWidth : 1, mask ? access.maskRun : 1,
                               access.unaligned);
  keepCut(op, store);
  dead.push_back(op);
  return success();
}

LogicalResult PointerLowering::lowerAtomic(tt::AtomicRMWOp op) {
  Address address = addressOf(op.getPtr());
  replace(op, AtomicRMWOp::create(builder, loc, op.getType(), op.getAtomicRmwOp(), op.getSem(),
                                  op.getScope(), address.offsets, op.getVal(), address.base,
                                  getMask(op.getMask())));
  return success();
}

LogicalResult PointerLowering::lowerAtomic(tt::AtomicCASOp op) {
  Address address = addressOf(op.getPtr());
  replace(op, AtomicCASOp::create(builder, loc, op.getType(), op.getSem(), op.getScope(),
                                  address.offsets, op.getCmp(), op.getVal(), address.base));
  return success();
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult PointerLowering::lower(Operation *op) {
  if (auto load = dyn_cast<tt::LoadOp>(op))
    return lowerLoad(load);
  if (auto store = dyn_cast<tt::StoreOp>(op))
    return lowerStore(store);
  if (auto atomic = dyn_cast<tt::AtomicRMWOp>(op))
    return lowerAtomic(atomic);
  if (auto atomic = dyn_cast<tt::AtomicCASOp>(op))
    return lowerAtomic(atomic);

  if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>()) {
    for (OpOperand &operand : op->getOpOperands())
      carry(operand);
    for (Value result : op->getResults())
      carryAsAddresses(result);
    for (Region &region : op->getRegions()) {
      for (BlockArgument argument : region.getArguments())
        carryAsAddresses(argument);
      for (Block &block : region)
        if (failed(lowerBlock(block)))
          return failure();
    }
    return success();
  }

  bool makesPointers = op->getNumResults() && isPointerTile(op->getResult(0).getType());
  bool takesPointers = llvm::any_of(op->getOperands(), [&](Value operand) {
    return isPointerTile(operand.getType()) || addresses.contains(operand);
  });
  // A pointer that was carried has another type by now, but its users have not.
  if (!makesPointers && !takesPointers && !isa<tt::UnsplatOp, tt::PtrToIntOp>(op))
    return success();
  Type i64 = builder.getI64Type();
  Type type = op->getResult(0).getType();
  if (auto splat = dyn_cast<tt::SplatOp>(op)) {
    // The pointer stays a uniform base; the offsets come from the additions.
    setAddress(op, {splat.getSrc(), constant(withElement(type, builder.getI32Type()), 0)});
  } else if (auto add = dyn_cast<tt::AddPtrOp>(op)) {
    lowerAddPtr(add);
  } else if (auto bitcast = dyn_cast<tt::BitcastOp>(op)) {
    lowerBitcast(bitcast);
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    lowerSelect(select);
  } else if (isa<ub::PoisonOp>(op)) {
    setAddress(op, {Value(), ub::PoisonOp::create(builder, loc, withElement(type, i64))});
  } else if (auto toPointer = dyn_cast<tt::IntToPtrOp>(op)) {
    setAddress(op, {Value(), cast(toPointer.getSrc(), i64)});
  } else if (auto toInteger = dyn_cast<tt::PtrToIntOp>(op)) {
    if (!isa<RankedTensorType>(type))
      return success();
    replace(op, cast(byteAddresses(toInteger.getSrc()), getElementTypeOrSelf(type)));
  } else if (auto unsplat = dyn_cast<tt::UnsplatOp>(op)) {
    if (!isa<tt::PtrType>(type))
      return success();
    Address address = addressOf(unsplat.getSrc());
    Value offset = tt::UnsplatOp::create(
        builder, loc, getElementTypeOrSelf(address.offsets.getType()), address.offsets);
    if (address.base)
      replace(op, tt::AddPtrOp::create(builder, loc, type, address.base, offset));
    else
      replace(op, tt::IntToPtrOp::create(builder, loc, type, offset));
  } else if (isa<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp, ConvertLayoutOp>(
                 op)) {
    // The base stays, the offsets move.
    Address address = addressOf(op->getOperand(0));
    Type offsets = withElement(type, getElementTypeOrSelf(address.offsets.getType()));
    if (matchPattern(address.offsets, m_Zero())) {
      address.offsets = constant(offsets, 0);
    } else {
      Operation *moved = builder.clone(*op);
      moved->setOperand(0, address.offsets);
      moved->getResult(0).setType(offsets);
      address.offsets = moved->getResult(0);
    }
    setAddress(op, address);
  } else if (isa<tt::TTDialect>(op->getDialect()) && isPure(op)) {
    // Elements of different bases may meet, so that addresses move.
    auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
      bool isPointers = isPointerTile(operand.getType()) || addresses.contains(operand);
      return isPointers ? byteAddresses(operand) : operand;
    });
    Operation *moved = builder.clone(*op);
    moved->setOperands(operands);
    for (auto [from, to] : llvm::zip(op->getResults(), moved->getResults())) {
      carryAsAddresses(to);
      addresses[from] = {Value(), to};
    }
    dead.push_back(op);
  } else {
    return op->emitOpError("computes with tiles of pointers in a way that cannot be compiled for "
                           "Metal yet: compute with their offsets");
  }
  return success();
}

struct TTMLowerPointersPass : impl::TTMLowerPointersBase<TTMLowerPointersPass> {
  void runOnOperation() override {
    TileFacts facts = findTileFacts(getOperation());
    // A text that was read may name groups that nobody has checked.
    getOperation().walk(
        [](arith::CmpIOp op) { op->removeDiscardableAttr(TTMDialect::getEqualAttrName()); });
    for (auto &[condition, groups] : facts.conditions)
      condition->setAttr(TTMDialect::getEqualAttrName(),
                         DenseI64ArrayAttr::get(&getContext(), groups));
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>())
      if (func.getBody().hasOneBlock() && failed(PointerLowering(func, facts.widths).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
