// Structured control flow with tiles carried through it. Conditions and bounds are scalars of the
// program, and so the same in all of its threads.

#include "conversion/TTMToMSL.h"

using namespace mlir;

namespace triton_metal {

/// A value in the form in which it is carried: pointers of tiles as addresses.
static Value carried(Value value, llvm::function_ref<Value(Value)> plain,
                     llvm::function_ref<Value(Value)> pointer) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && isa<tt::PtrType>(tensor.getElementType()) ? pointer(value) : plain(value);
}

Lowering::Handled Lowering::lowerControlFlow(Operation *op) {
  auto convert = [&](ValueRange values) {
    SmallVector<Value> result;
    for (Value value : values)
      result.push_back(carried(
          value, [&](Value plain) { return get(plain); },
          [&](Value pointer) {
            Type pointee =
                cast<tt::PtrType>(getElementTypeOrSelf(pointer.getType())).getPointeeType();
            return byteAddresses(addressOf(pointer), pointee, convertType(pointer.getType()));
          }));
    return result;
  };
  auto convertTypes = [&](TypeRange types) {
    return llvm::map_to_vector(types, [&](Type type) { return convertType(type); });
  };
  auto mapResults = [&](ValueRange from, ValueRange to) {
    for (auto [source, target] : llvm::zip(from, to))
      map(source, target);
  };
  // Lowers the only block of `region` into `block`, whose arguments stand for the region's.
  auto fill = [&](Region &region, Block *block) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(block);
    mapResults(region.getArguments(), block->getArguments());
    return lowerBlock(&region.front());
  };
  auto newBlock = [&](Region &region, Region &target) {
    OpBuilder::InsertionGuard guard(builder);
    return builder.createBlock(
        &target, {}, convertTypes(region.getArgumentTypes()),
        llvm::map_to_vector(region.getArguments(),
                            [](BlockArgument argument) { return argument.getLoc(); }));
  };

  if (auto yield = dyn_cast<scf::YieldOp>(op)) {
    scf::YieldOp::create(builder, loc, convert(yield.getOperands()));
    return success();
  }
  if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    SmallVector<Value> args = convert(condition.getArgs());
    scf::ConditionOp::create(builder, loc, get(condition.getCondition()), args);
    return success();
  }
  if (auto forOp = dyn_cast<scf::ForOp>(op)) {
    SmallVector<Value> inits = convert(forOp.getInitArgs());
    auto loop =
        scf::ForOp::create(builder, loc, get(forOp.getLowerBound()), get(forOp.getUpperBound()),
                           get(forOp.getStep()), inits, nullptr, forOp.getUnsignedCmp());
    // Keep the names of what is carried. A parsed loop has given its arguments its own location.
    loop.getInductionVar().setLoc(forOp.getInductionVar().getLoc());
    for (auto [from, to, yielded, init] :
         llvm::zip(forOp.getRegionIterArgs(), loop.getRegionIterArgs(), forOp.getYieldedValues(),
                   forOp.getInitArgs())) {
      to.setLoc(from.getLoc());
      if (from.getLoc() == forOp.getLoc() || !from.getLoc()->findInstanceOf<NameLoc>())
        to.setLoc(yielded.getLoc()->findInstanceOf<NameLoc>() ? yielded.getLoc() : init.getLoc());
    }
    Block *body = loop.getBody();
    if (inits.empty())
      body->getTerminator()->erase();
    if (failed(fill(forOp.getRegion(), body)))
      return failure();
    mapResults(op->getResults(), loop.getResults());
    return success();
  }
  if (auto ifOp = dyn_cast<scf::IfOp>(op)) {
    auto converted = scf::IfOp::create(builder, loc, convertTypes(ifOp.getResultTypes()),
                                       get(ifOp.getCondition()),
                                       /*addThenBlock=*/false, /*addElseBlock=*/false);
    if (failed(
            fill(ifOp.getThenRegion(), newBlock(ifOp.getThenRegion(), converted.getThenRegion()))))
      return failure();
    if (!ifOp.getElseRegion().empty() &&
        failed(
            fill(ifOp.getElseRegion(), newBlock(ifOp.getElseRegion(), converted.getElseRegion()))))
      return failure();
    mapResults(op->getResults(), converted.getResults());
    return success();
  }
  if (auto whileOp = dyn_cast<scf::WhileOp>(op)) {
    SmallVector<Value> inits = convert(whileOp.getInits());
    auto converted =
        scf::WhileOp::create(builder, loc, convertTypes(whileOp.getResultTypes()), inits);
    if (failed(fill(whileOp.getBefore(), newBlock(whileOp.getBefore(), converted.getBefore()))) ||
        failed(fill(whileOp.getAfter(), newBlock(whileOp.getAfter(), converted.getAfter()))))
      return failure();
    mapResults(op->getResults(), converted.getResults());
    return success();
  }
  if (auto executeRegion = dyn_cast<scf::ExecuteRegionOp>(op)) {
    if (!executeRegion.getRegion().hasOneBlock())
      return std::nullopt;
    Block &block = executeRegion.getRegion().front();
    for (Operation &inner : block.without_terminator())
      if (failed(lower(&inner)))
        return failure();
    mapResults(op->getResults(), convert(block.getTerminator()->getOperands()));
    return success();
  }
  if (auto switchOp = dyn_cast<scf::IndexSwitchOp>(op)) {
    // A chain of ifs: lifted branches have few cases.
    SmallVector<Type> types = convertTypes(switchOp.getResultTypes());
    Value argument = get(switchOp.getArg());
    scf::IfOp outer;
    OpBuilder::InsertionGuard guard(builder);
    for (auto [index, value] : llvm::enumerate(switchOp.getCases())) {
      Value isCase = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, argument,
                                           constant(argument.getType(), value));
      auto ifOp = scf::IfOp::create(builder, loc, types, isCase, false, false);
      if (outer)
        scf::YieldOp::create(builder, loc, ifOp.getResults());
      else
        outer = ifOp;
      if (failed(fill(switchOp.getCaseRegions()[index],
                      newBlock(switchOp.getCaseRegions()[index], ifOp.getThenRegion()))))
        return failure();
      builder.createBlock(&ifOp.getElseRegion());
    }
    if (!outer) {
      for (Operation &inner : switchOp.getDefaultBlock().without_terminator())
        if (failed(lower(&inner)))
          return failure();
      mapResults(op->getResults(),
                 convert(switchOp.getDefaultBlock().getTerminator()->getOperands()));
      return success();
    }
    if (failed(lowerBlock(&switchOp.getDefaultBlock())))
      return failure();
    mapResults(op->getResults(), outer.getResults());
    return success();
  }
  return std::nullopt;
}

} // namespace triton_metal
