#include "transforms/RegionOnTiles.h"

#include "dialect/tt/TT.h"
#include "transforms/TripCount.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace triton_metal {

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

bool RegionOnTiles::isTile(Value value) { return isa<RankedTensorType>(lookup(value).getType()); }

Type RegionOnTiles::tileOf(Type type) {
  return shape ? RankedTensorType::get(*shape, getElementTypeOrSelf(type)) : type;
}

Value RegionOnTiles::splat(Value scalar) {
  if (!shape || isa<RankedTensorType>(scalar.getType()))
    return scalar;
  return tt::SplatOp::create(builder, loc, tileOf(scalar.getType()), scalar);
}

Value RegionOnTiles::getTile(Value value) { return splat(lookup(value)); }

SmallVector<Value> RegionOnTiles::getTiles(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return getTile(value); });
}

Value RegionOnTiles::constant(TypedAttr number) {
  if (shape)
    number = DenseElementsAttr::get(cast<ShapedType>(tileOf(number.getType())), Attribute(number));
  return arith::ConstantOp::create(builder, loc, number);
}

Value RegionOnTiles::anything(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<IntegerType, FloatType>(element))
    return constant(cast<TypedAttr>(builder.getZeroAttr(element)));
  return ub::PoisonOp::create(builder, loc, tileOf(type));
}

Value RegionOnTiles::both(Value mask, Value condition) {
  return mask ? arith::AndIOp::create(builder, loc, mask, condition).getResult() : condition;
}

Value RegionOnTiles::opposite(Value condition) {
  return arith::XOrIOp::create(builder, loc, condition, constant(builder.getBoolAttr(true)));
}

Value RegionOnTiles::any(Value conditions) {
  if (!shape)
    return conditions;
  auto type = cast<RankedTensorType>(conditions.getType());
  Type i32 = builder.getI32Type();
  Value numbers = arith::ExtUIOp::create(builder, loc, type.clone(i32), conditions);
  if (type.getRank() != 1)
    numbers = tt::ReshapeOp::create(builder, loc, RankedTensorType::get(type.getNumElements(), i32),
                                    numbers);
  auto reduction = tt::ReduceOp::create(builder, loc, numbers, 0);
  {
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&reduction.getCombineOp(), {}, {i32, i32}, {loc, loc});
    Value either = arith::OrIOp::create(builder, loc, block->getArgument(0), block->getArgument(1));
    tt::ReduceReturnOp::create(builder, loc, either);
  }
  Value zero = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, reduction.getResult()[0],
                               zero);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool RegionOnTiles::isStraight(Block &block) {
  return llvm::all_of(block.without_terminator(), [](Operation &op) {
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return isStraight(*branch.thenBlock()) &&
             (!branch.elseBlock() || isStraight(*branch.elseBlock()));
    return op.getNumRegions() == 0 && isMemoryEffectFree(&op);
  });
}

FailureOr<SmallVector<Value>> RegionOnTiles::build(Block &block, ValueRange arguments, Value mask) {
  mapping.map(block.getArguments(), arguments);
  if (failed(buildBlock(block, mask)))
    return failure();
  return getTiles(block.getTerminator()->getOperands());
}

LogicalResult RegionOnTiles::buildBlock(Block &block, Value mask) {
  // What nothing reads has no place on tiles: a kernel may make a tile to ask for its type.
  DenseSet<Operation *> unread;
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (isMemoryEffectFree(&op) &&
        llvm::all_of(op.getUsers(), [&](Operation *user) { return unread.contains(user); }))
      unread.insert(&op);
  for (Operation &op : block.without_terminator())
    if (!unread.contains(&op) && failed(buildOperation(op, mask)))
      return failure();
  return success();
}

LogicalResult RegionOnTiles::buildOperation(Operation &op, Value mask) {
  if (isa<scf::IfOp>(op))
    return buildIf(op, mask);
  if (isa<scf::ForOp>(op))
    return buildFor(op, mask);
  if (isa<scf::WhileOp>(op))
    return buildWhile(op, mask);
  if (auto region = dyn_cast<scf::ExecuteRegionOp>(op);
      region && region.getRegion().hasOneBlock()) {
    Block &block = region.getRegion().front();
    if (failed(buildBlock(block, mask)))
      return failure();
    for (auto [result, value] : llvm::zip(op.getResults(), block.getTerminator()->getOperands()))
      mapping.map(result, lookup(value));
    return success();
  }
  if (isa<LLVM::AssumeOp>(op))
    return success(); // It holds where the code runs, which may be nowhere.
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (op.getNumRegions() || llvm::any_of(op.getOperandTypes(), isTensor) ||
      llvm::any_of(op.getResultTypes(), isTensor))
    return op.emitOpError("works on tiles within a function that is called for each element; "
                          "compute the tile before, and pass its elements");
  if (!isMemoryEffectFree(&op))
    return buildAccess(op, mask);
  // What all elements share is computed once.
  if (llvm::none_of(op.getOperands(), [&](Value operand) { return isTile(operand); }) || !shape) {
    builder.clone(op, mapping)->setLoc(op.getLoc());
    return success();
  }
  if (!op.hasTrait<OpTrait::Elementwise>())
    return op.emitOpError("cannot be computed for each element of a tile");
  IRMapping operands;
  for (Value operand : op.getOperands())
    operands.map(operand, getTile(operand));
  Operation *copy = builder.clone(op, operands);
  for (auto [from, to] : llvm::zip(op.getResults(), copy->getResults())) {
    to.setType(tileOf(from.getType()));
    mapping.map(from, to);
  }
  return success();
}

LogicalResult RegionOnTiles::buildAccess(Operation &op, Value mask) {
  IRMapping operands;
  for (Value operand : op.getOperands())
    operands.map(operand, getTile(operand));
  Operation *copy = builder.clone(op, operands);
  auto own = [&](Value old) { return old ? both(mask, old) : mask; };
  // The new mask has to come before what it masks.
  builder.setInsertionPoint(copy);
  auto finish = [&] {
    builder.setInsertionPointAfter(copy);
    for (auto [from, to] : llvm::zip(op.getResults(), copy->getResults())) {
      to.setType(tileOf(from.getType()));
      mapping.map(from, to);
    }
    return success();
  };
  if (auto load = dyn_cast<tt::LoadOp>(copy)) {
    if (Value all = own(load.getMask()))
      load.getMaskMutable().assign(all);
    return finish();
  }
  if (auto store = dyn_cast<tt::StoreOp>(copy)) {
    if (Value all = own(store.getMask()))
      store.getMaskMutable().assign(all);
    return finish();
  }
  if (auto update = dyn_cast<tt::AtomicRMWOp>(copy)) {
    if (Value all = own(update.getMask()))
      update.getMaskMutable().assign(all);
    return finish();
  }
  if (auto assertion = dyn_cast<tt::AssertOp>(copy)) {
    if (mask)
      assertion.getConditionMutable().assign(
          arith::OrIOp::create(builder, loc, assertion.getCondition(), opposite(mask)).getResult());
    return finish();
  }
  bool isKnown = isa<tt::AtomicCASOp, tt::PrintOp>(copy);
  if (isKnown && !mask)
    return finish();
  copy->erase();
  if (isKnown)
    return op.emitOpError(
        "stands under a condition of one element, and cannot be masked; move it out of "
        "the branch, the loop or the combine function");
  return op.emitOpError("cannot be part of a function that is called for each element");
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult RegionOnTiles::buildIf(Operation &op, Value mask) {
  auto branch = cast<scf::IfOp>(op);
  Value condition = lookup(branch.getCondition());
  if (shape && !isTile(branch.getCondition())) {
    // All elements take the same branch.
    SmallVector<Type> types =
        llvm::map_to_vector(op.getResultTypes(), [&](Type type) { return tileOf(type); });
    auto copy =
        scf::IfOp::create(builder, op.getLoc(), types, condition,
                          /*addThenBlock=*/true, /*addElseBlock=*/branch.elseBlock() != nullptr);
    OpBuilder::InsertionGuard guard(builder);
    for (auto [from, to] : {std::pair(branch.thenBlock(), copy.thenBlock()),
                            std::pair(branch.elseBlock(), copy.elseBlock())}) {
      if (!from)
        continue;
      if (!to->empty())
        to->back().erase();
      builder.setInsertionPointToEnd(to);
      if (failed(buildBlock(*from, mask)))
        return failure();
      scf::YieldOp::create(builder, loc, getTiles(from->getTerminator()->getOperands()));
    }
    mapping.map(op.getResults(), copy.getResults());
    return success();
  }
  // A mask that nothing reads is erased again.
  if (failed(buildBlock(*branch.thenBlock(), both(mask, condition))))
    return failure();
  if (branch.elseBlock() &&
      failed(buildBlock(*branch.elseBlock(), both(mask, opposite(condition)))))
    return failure();
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    Value yes = getTile(branch.thenYield().getOperand(index)),
          no = getTile(branch.elseYield().getOperand(index));
    mapping.map(result, arith::SelectOp::create(builder, op.getLoc(), condition, yes, no));
  }
  return success();
}

LogicalResult RegionOnTiles::buildFor(Operation &op, Value mask) {
  auto loop = cast<scf::ForOp>(op);
  SmallVector<Value> inits = getTiles(loop.getInitArgs());
  Value bounds[] = {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()};
  OpBuilder::InsertionGuard guard(builder);
  if (llvm::none_of(bounds, [&](Value bound) { return isTile(bound); })) {
    auto copy = scf::ForOp::create(builder, op.getLoc(), lookup(bounds[0]), lookup(bounds[1]),
                                   lookup(bounds[2]), inits, nullptr, loop.getUnsignedCmp());
    copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    if (!copy.getBody()->empty())
      copy.getBody()->back().erase();
    mapping.map(loop.getBody()->getArguments(), copy.getBody()->getArguments());
    builder.setInsertionPointToEnd(copy.getBody());
    if (failed(buildBlock(*loop.getBody(), mask)))
      return failure();
    scf::YieldOp::create(builder, loc, getTiles(loop.getBody()->getTerminator()->getOperands()));
    mapping.map(op.getResults(), copy.getResults());
    builder.setInsertionPointAfter(copy);
    return success();
  }
  // Each element has its own number of iterations.
  Value index = getTile(bounds[0]), step = getTile(bounds[2]);
  Value left =
      createTripCount(builder, op.getLoc(), index, getTile(bounds[1]), step, loop.getUnsignedCmp());
  auto numberLike = [&](int64_t number) {
    return constant(builder.getIntegerAttr(getElementTypeOrSelf(left.getType()), number));
  };
  if (mask)
    left = arith::SelectOp::create(builder, loc, mask, left, numberLike(0));
  SmallVector<Value> carried{left, index};
  llvm::append_range(carried, inits);
  SmallVector<Type> types =
      llvm::map_to_vector(carried, [](Value value) { return value.getType(); });
  SmallVector<Location> locs(types.size(), loc);
  auto copy = scf::WhileOp::create(builder, op.getLoc(), types, carried);
  Block *before = builder.createBlock(&copy.getBefore(), {}, types, locs);
  Value wants = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                      before->getArgument(0), numberLike(0));
  scf::ConditionOp::create(builder, loc, any(wants), before->getArguments());
  Block *after = builder.createBlock(&copy.getAfter(), {}, types, locs);
  Value active = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                       after->getArgument(0), numberLike(0));
  mapping.map(loop.getBody()->getArguments(), after->getArguments().drop_front(1));
  if (failed(buildBlock(*loop.getBody(), active)))
    return failure();
  Value fewer = arith::SubIOp::create(builder, loc, after->getArgument(0), numberLike(1));
  SmallVector<Value> next{
      arith::SelectOp::create(builder, loc, active, fewer, after->getArgument(0)),
      arith::AddIOp::create(builder, loc, after->getArgument(1), step)};
  for (auto [value, old] : llvm::zip(getTiles(loop.getBody()->getTerminator()->getOperands()),
                                     after->getArguments().drop_front(2)))
    next.push_back(arith::SelectOp::create(builder, loc, active, value, old));
  scf::YieldOp::create(builder, loc, next);
  mapping.map(op.getResults(), copy.getResults().drop_front(2));
  builder.setInsertionPointAfter(copy);
  return success();
}

LogicalResult RegionOnTiles::buildWhile(Operation &op, Value mask) {
  auto loop = cast<scf::WhileOp>(op);
  // The loop carries the arguments, the results of elements that have ended, and which have not.
  SmallVector<Value> carried = getTiles(loop.getInits());
  unsigned numInits = carried.size();
  for (Type type : op.getResultTypes())
    carried.push_back(anything(type));
  carried.push_back(mask ? mask : constant(builder.getBoolAttr(true)));
  SmallVector<Type> types =
      llvm::map_to_vector(carried, [](Value value) { return value.getType(); });
  SmallVector<Type> passed(ArrayRef(types).drop_front(numInits));
  OpBuilder::InsertionGuard guard(builder);
  auto copy = scf::WhileOp::create(builder, op.getLoc(), passed, carried);

  Block *before =
      builder.createBlock(&copy.getBefore(), {}, types, SmallVector<Location>(types.size(), loc));
  mapping.map(loop.getBeforeBody()->getArguments(), before->getArguments().take_front(numInits));
  Value active = before->getArguments().back();
  if (failed(buildBlock(*loop.getBeforeBody(), active)))
    return failure();
  scf::ConditionOp condition = loop.getConditionOp();
  Value goesOn = both(active, getTile(condition.getCondition()));
  SmallVector<Value> forward;
  for (auto [value, old] : llvm::zip(getTiles(condition.getArgs()),
                                     before->getArguments().drop_front(numInits).drop_back()))
    forward.push_back(arith::SelectOp::create(builder, loc, active, value, old));
  forward.push_back(goesOn);
  scf::ConditionOp::create(builder, loc, any(goesOn), forward);

  Block *after =
      builder.createBlock(&copy.getAfter(), {}, passed, SmallVector<Location>(passed.size(), loc));
  mapping.map(loop.getAfterBody()->getArguments(), after->getArguments().drop_back());
  if (failed(buildBlock(*loop.getAfterBody(), after->getArguments().back())))
    return failure();
  SmallVector<Value> next = getTiles(loop.getYieldOp()->getOperands());
  llvm::append_range(next, after->getArguments());
  scf::YieldOp::create(builder, loc, next);
  mapping.map(op.getResults(), copy.getResults().drop_back());
  builder.setInsertionPointAfter(copy);
  return success();
}

} // namespace triton_metal
