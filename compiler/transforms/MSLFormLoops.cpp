// The value form of msl to its loop form: see Passes.td.

#include "transforms/Erase.h"
#include "transforms/MSLEmitter.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace triton_metal {
#define GEN_PASS_DEF_MSLFORMLOOPS
#include "transforms/Passes.h.inc"
} // namespace triton_metal

using namespace mlir;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// Blocks and operations by themselves
//===----------------------------------------------------------------------===//

void Emitter::emitBlock(Block &block) {
  Scope scope(*this);
  for (auto [index, entry] : llvm::enumerate(plan.getEntries(&block))) {
    if (entry.segment)
      emitSegment(*entry.segment, index, &block);
    else
      emitOp(entry.op, index, &block);
  }
}

void Emitter::emitOp(Operation *op, int entry, Block *block) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitFor(loop, entry, block);
  if (auto conditional = dyn_cast<scf::IfOp>(op))
    return emitIf(conditional);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return emitWhile(loop);
  if (auto reduce = dyn_cast<ReduceRegistersOp>(op))
    return emitReduce(reduce);
  if (auto mma = dyn_cast<MmaOp>(op))
    return emitMma(mma, entry, block);
  auto define = [&](Value result, Value value) {
    if (isa<VectorType>(result.getType()))
      ssa[result] = value;
    else
      scalars.map(result, value);
  };
  if (isa<LoadOp, LoadAddressOp, AtomicRMWOp, AtomicCASOp>(op)) {
    Value value;
    {
      Scope scope(*this);
      if (isa<LoadOp, LoadAddressOp>(op))
        emitLoad(op, Coord(), 1, /*guarded=*/true);
      else
        emitAtomic(op, Coord(), 1);
      value = recall(op->getResult(0), Coord(), 1);
    }
    return define(op->getResult(0), value);
  }
  if (isa<StoreOp, StoreAddressOp>(op)) {
    Scope scope(*this);
    return emitStore(op, Coord(), 1, /*guarded=*/true);
  }
  if (auto extract = dyn_cast<vector::ExtractOp>(op)) {
    if (!extract.hasDynamicPosition() && extract.getStaticPosition().size() == 1)
      return define(op->getResult(0),
                    get(extract.getSource(), Coord().plus(extract.getStaticPosition()[0]), 1));
  }
  if (isa<ub::PoisonOp>(op))
    return define(op->getResult(0), arith::ConstantOp::create(
                                        builder, op->getLoc(),
                                        cast<TypedAttr>(builder.getZeroAttr(
                                            getElementTypeOrSelf(op->getResult(0).getType())))));
  bool small = op->getNumRegions() == 0;
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op->getOperandTypes()),
                                      SmallVector<Type>(op->getResultTypes())))
    small &= getNumRegisters(type) == 1;
  if (!small) {
    (void)error(op, "this operation on tiles cannot be turned into Metal");
    return;
  }
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, get(operand, Coord(), 1));
  Operation *copy = builder.clone(*op, mapping);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), copy->getResults())) {
    if (isa<VectorType>(result.getType()))
      value.setType(getElementTypeOrSelf(result.getType()));
    define(result, value);
  }
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

bool Emitter::readsStorage(Value value, const Storage &storage) {
  if (auto it = stored.find(value); it != stored.end())
    return it->second == storage;
  if (auto permuteOp = value.getDefiningOp<PermuteRegistersOp>())
    return readsStorage(permuteOp.getValue(), storage);
  return false;
}

void Emitter::assign(ValueRange values, ArrayRef<Storage> storages) {
  // All at once: what reads a variable that is written here is put aside first.
  SmallVector<std::pair<Storage, Storage>> aside;
  SmallVector<std::pair<Value, Storage>> direct;
  for (auto [value, storage] : llvm::zip_equal(values, storages)) {
    auto it = stored.find(value);
    if (it != stored.end() && it->second == storage)
      continue;
    if (llvm::any_of(storages, [&, value = value](const Storage &other) {
          return readsStorage(value, other);
        })) {
      Storage copy =
          makeStorage(value.getLoc(), value.getType(), storage.width, storage.isMatrix());
      copyInto(value, copy);
      aside.push_back({copy, storage});
    } else {
      direct.push_back({value, storage});
    }
  }
  for (auto [value, storage] : direct)
    copyInto(value, storage);
  for (auto [copy, storage] : aside)
    copyStorage(storage.variable.getLoc(), copy, storage);
}

void Emitter::emitFor(scf::ForOp op, int entry, Block *block) {
  Location loc = op.getLoc();
  SmallVector<Value> inits;
  SmallVector<Storage> storages;
  SmallVector<unsigned> carried;
  for (auto [index, init] : llvm::enumerate(op.getInitArgs())) {
    BlockArgument argument = op.getRegionIterArg(index);
    if (!isStored(init.getType())) {
      carried.push_back(index);
      inits.push_back(get(init, Coord(), 1));
      continue;
    }
    bool matrix = wantsMatrix(argument);
    Storage storage;
    if (auto it = stored.find(init);
        it != stored.end() && it->second.isMatrix() == matrix &&
        plan.isDeadAfter(init, block, entry, /*beforeLast=*/false) &&
        llvm::count(op->getOperands(), init) == 1 &&
        llvm::all_of(plan.getUsers(init),
                     [&](Operation *user) { return user == op || !op->isProperAncestor(user); }) &&
        llvm::none_of(storages, [&](const Storage &other) { return other == it->second; })) {
      storage = it->second;
    } else {
      Location where =
          isa<NameLoc>(argument.getLoc()) ? argument.getLoc() : op.getResult(index).getLoc();
      storage = makeStorage(where, init.getType(), 4, matrix);
      copyInto(init, storage);
    }
    storages.push_back(storage);
    stored[argument] = storage;
  }
  auto loop =
      scf::ForOp::create(builder, loc, getScalar(op.getLowerBound()), getScalar(op.getUpperBound()),
                         getScalar(op.getStep()), inits, nullptr, op.getUnsignedCmp());
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  loop.getInductionVar().setLoc(op.getInductionVar().getLoc());
  scalars.map(op.getInductionVar(), loop.getInductionVar());
  for (auto [position, index] : llvm::enumerate(carried)) {
    BlockArgument argument = op.getRegionIterArg(index);
    loop.getRegionIterArg(position).setLoc(argument.getLoc());
    if (isa<VectorType>(argument.getType()))
      ssa[argument] = loop.getRegionIterArg(position);
    else
      scalars.map(argument, loop.getRegionIterArg(position));
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    if (!loop.getBody()->empty())
      loop.getBody()->back().erase();
    builder.setInsertionPointToEnd(loop.getBody());
    emitBlock(*op.getBody());
    SmallVector<Value> yields, arrays;
    for (auto [index, value] : llvm::enumerate(op.getYieldedValues())) {
      if (isStored(value.getType()))
        arrays.push_back(value);
      else
        yields.push_back(get(value, Coord(), 1));
    }
    assign(arrays, storages);
    scf::YieldOp::create(builder, op.getBody()->getTerminator()->getLoc(), yields);
  }
  unsigned array = 0, scalar = 0;
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (isStored(result.getType()))
      stored[result] = storages[array++];
    else if (isa<VectorType>(result.getType()))
      ssa[result] = loop.getResult(scalar++);
    else
      scalars.map(result, loop.getResult(scalar++));
  }
}

void Emitter::emitIf(scf::IfOp op) {
  SmallVector<Type> types;
  SmallVector<Storage> storages;
  for (Value result : op.getResults()) {
    if (!isStored(result.getType())) {
      types.push_back(getElementTypeOrSelf(result.getType()));
      continue;
    }
    // All results share the operation's location; what is yielded has a name of its own.
    Location where = op.thenYield().getOperand(cast<OpResult>(result).getResultNumber()).getLoc();
    storages.push_back(makeStorage(where, result.getType(), 4, wantsMatrix(result)));
    stored[result] = storages.back();
  }
  auto conditional = scf::IfOp::create(builder, op.getLoc(), types, getScalar(op.getCondition()),
                                       !types.empty() || op.elseBlock());
  auto emitBranch = [&](Block *from, Block *to) {
    if (!from)
      return;
    OpBuilder::InsertionGuard guard(builder);
    if (!to->empty())
      to->back().erase();
    builder.setInsertionPointToEnd(to);
    emitBlock(*from);
    SmallVector<Value> yields, arrays;
    for (Value value : from->getTerminator()->getOperands()) {
      if (isStored(value.getType()))
        arrays.push_back(value);
      else
        yields.push_back(get(value, Coord(), 1));
    }
    assign(arrays, storages);
    scf::YieldOp::create(builder, from->getTerminator()->getLoc(), yields);
  };
  emitBranch(op.thenBlock(), conditional.thenBlock());
  emitBranch(op.elseBlock(), conditional.elseBlock());
  unsigned scalar = 0;
  for (Value result : op.getResults()) {
    if (isStored(result.getType()))
      continue;
    if (isa<VectorType>(result.getType()))
      ssa[result] = conditional.getResult(scalar++);
    else
      scalars.map(result, conditional.getResult(scalar++));
  }
}

void Emitter::emitWhile(scf::WhileOp op) {
  Location loc = op.getLoc();
  SmallVector<Value> inits;
  SmallVector<Type> resultTypes;
  SmallVector<Storage> before, after;
  for (auto [init, argument] : llvm::zip_equal(op.getInits(), op.getBeforeArguments())) {
    if (!isStored(init.getType())) {
      inits.push_back(get(init, Coord(), 1));
      continue;
    }
    before.push_back(makeStorage(argument.getLoc(), init.getType(), 4, false));
    copyInto(init, before.back());
    stored[argument] = before.back();
  }
  scf::ConditionOp condition = op.getConditionOp();
  for (auto [value, argument, result] :
       llvm::zip_equal(condition.getArgs(), op.getAfterArguments(), op.getResults())) {
    if (!isStored(value.getType())) {
      resultTypes.push_back(getElementTypeOrSelf(value.getType()));
      continue;
    }
    // What the condition passes on unchanged stays where it is.
    Storage storage;
    if (auto it = stored.find(value);
        isa<BlockArgument>(value) && it != stored.end() &&
        value.getParentBlock() == op.getBeforeBody() &&
        llvm::none_of(after, [&](const Storage &other) { return other == it->second; }))
      storage = it->second;
    else
      storage = makeStorage(result.getLoc(), value.getType(), 4, false);
    after.push_back(storage);
    stored[argument] = stored[result] = storage;
  }
  auto loop = scf::WhileOp::create(builder, loc, resultTypes, inits);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> locs(inits.size(), loc);
  SmallVector<Type> initTypes;
  for (Value init : inits)
    initTypes.push_back(init.getType());
  auto bind = [&](auto arguments, Block *block) {
    unsigned scalar = 0;
    for (BlockArgument argument : arguments) {
      if (isStored(argument.getType()))
        continue;
      BlockArgument mine = block->getArgument(scalar++);
      mine.setLoc(argument.getLoc());
      if (isa<VectorType>(argument.getType()))
        ssa[argument] = mine;
      else
        scalars.map(argument, mine);
    }
  };
  auto separate = [&](ValueRange values, SmallVector<Value> &plain, SmallVector<Value> &arrays) {
    for (Value value : values) {
      if (isStored(value.getType()))
        arrays.push_back(value);
      else
        plain.push_back(get(value, Coord(), 1));
    }
  };
  Block *beforeBlock = builder.createBlock(&loop.getBefore(), {}, initTypes, locs);
  bind(op.getBeforeArguments(), beforeBlock);
  emitBlock(*op.getBeforeBody());
  SmallVector<Value> passed, passedArrays;
  separate(condition.getArgs(), passed, passedArrays);
  assign(passedArrays, after);
  scf::ConditionOp::create(builder, condition.getLoc(), getScalar(condition.getCondition()),
                           passed);
  SmallVector<Location> afterLocs(resultTypes.size(), loc);
  Block *afterBlock = builder.createBlock(&loop.getAfter(), {}, resultTypes, afterLocs);
  bind(op.getAfterArguments(), afterBlock);
  emitBlock(*op.getAfterBody());
  SmallVector<Value> yields, arrays;
  separate(op.getYieldOp().getOperands(), yields, arrays);
  assign(arrays, before);
  scf::YieldOp::create(builder, op.getYieldOp().getLoc(), yields);
  unsigned scalar = 0;
  for (Value result : op.getResults()) {
    if (isStored(result.getType()))
      continue;
    if (isa<VectorType>(result.getType()))
      ssa[result] = loop.getResult(scalar++);
    else
      scalars.map(result, loop.getResult(scalar++));
  }
}

LogicalResult Emitter::emitKernel(Block &from, Block &to) {
  for (auto [argument, mine] : llvm::zip_equal(from.getArguments(), to.getArguments()))
    scalars.map(argument, mine);
  builder.setInsertionPointToEnd(&to);
  emitBlock(from);
  ReturnOp::create(builder, from.getTerminator()->getLoc());
  return failure(failed);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

/// A reduction over several ranges of register bits becomes one for each range, the highest first.
struct SplitReduction : OpRewritePattern<ReduceRegistersOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceRegistersOp op, PatternRewriter &rewriter) const override {
    uint64_t bits = op.getBits();
    if (bits == 0) {
      rewriter.replaceOp(op, op.getOperands());
      return success();
    }
    if (llvm::isShiftedMask_64(bits))
      return failure();
    unsigned top = 63 - llvm::countl_zero(bits), low = top;
    while (low > 0 && (bits >> (low - 1) & 1))
      --low;
    uint64_t upper = bits >> low << low;
    auto make = [&](ValueRange operands, uint64_t mask) {
      SmallVector<Type> types;
      for (Value operand : operands) {
        auto type = cast<VectorType>(operand.getType());
        types.push_back(
            VectorType::get(type.getNumElements() >> llvm::popcount(mask), type.getElementType()));
      }
      OperationState state(op.getLoc(), op->getName());
      state.addOperands(operands);
      state.addTypes(types);
      state.addAttribute("bits", rewriter.getI64IntegerAttr(mask));
      Region *region = state.addRegion();
      rewriter.cloneRegionBefore(op.getCombine(), *region, region->end());
      return rewriter.create(state);
    };
    Operation *first = make(op.getOperands(), upper);
    Operation *second = make(first->getResults(), bits & ~upper);
    rewriter.replaceOp(op, second->getResults());
    return success();
  }
};

/// A tile of integers that a loop carries and adds one number to is its first value plus a carried
/// number.
struct CarryOneNumber : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::ForOp op, PatternRewriter &rewriter) const override {
    for (auto [index, init] : llvm::enumerate(op.getInitArgs())) {
      auto type = dyn_cast<VectorType>(init.getType());
      if (!type || type.getNumElements() == 1 || !isa<IntegerType>(type.getElementType()))
        continue;
      BlockArgument argument = op.getRegionIterArg(index);
      auto sum = op.getYieldedValues()[index].getDefiningOp<arith::AddIOp>();
      if (!sum)
        continue;
      Value increment = sum.getLhs() == argument   ? sum.getRhs()
                        : sum.getRhs() == argument ? sum.getLhs()
                                                   : Value();
      if (!increment)
        continue;
      auto splat = increment.getDefiningOp<SplatOp>();
      DenseElementsAttr dense;
      bool isConstant = matchPattern(increment, m_Constant(&dense)) && dense.isSplat();
      if (!splat && !isConstant)
        continue;
      Location loc = argument.getLoc();
      Type element = type.getElementType();
      rewriter.setInsertionPoint(op);
      Value zero =
          arith::ConstantOp::create(rewriter, loc, cast<TypedAttr>(rewriter.getZeroAttr(element)));
      SmallVector<Value> inits(op.getInitArgs());
      inits[index] = zero;
      auto loop = scf::ForOp::create(rewriter, op.getLoc(), op.getLowerBound(), op.getUpperBound(),
                                     op.getStep(), inits, nullptr, op.getUnsignedCmp());
      loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      if (!loop.getBody()->empty())
        rewriter.eraseOp(&loop.getBody()->back());
      rewriter.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> arguments(loop.getBody()->getArguments());
      for (auto [mine, theirs] :
           llvm::zip_equal(loop.getBody()->getArguments(), op.getBody()->getArguments()))
        mine.setLoc(theirs.getLoc());
      Value moved = loop.getRegionIterArg(index);
      arguments[index + 1] =
          arith::AddIOp::create(rewriter, loc, init, SplatOp::create(rewriter, loc, type, moved));
      rewriter.mergeBlocks(op.getBody(), loop.getBody(), arguments);
      auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
      rewriter.setInsertionPoint(yield);
      // The number may be an argument of the old loop's body: by now it is the new loop's.
      Value scalar = splat ? splat.getValue() : Value();
      if (!scalar)
        scalar = arith::ConstantOp::create(rewriter, loc,
                                           cast<TypedAttr>(*dense.getValues<Attribute>().begin()));
      Value next = arith::AddIOp::create(rewriter, loc, moved, scalar);
      rewriter.modifyOpInPlace(yield, [&] { yield.setOperand(index, next); });
      rewriter.setInsertionPointAfter(loop);
      SmallVector<Value> results(loop.getResults());
      results[index] = arith::AddIOp::create(rewriter, loc, init,
                                             SplatOp::create(rewriter, loc, type, results[index]));
      rewriter.replaceOp(op, results);
      return success();
    }
    return failure();
  }
};

struct FormLoops : triton_metal::impl::MSLFormLoopsBase<FormLoops> {
  void runOnOperation() override {
    // Whether threads part ways was asked where barriers were placed.
    getOperation().walk([](UniformOp op) {
      op.replaceAllUsesWith(op.getValue());
      op.erase();
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitReduction, CarryOneNumber>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      Region body;
      Block *block = new Block();
      body.push_back(block);
      for (BlockArgument argument : kernel.getBody().getArguments())
        block->addArgument(argument.getType(), argument.getLoc());
      LogicalResult result = success();
      {
        Plan plan(kernel);
        Emitter emitter(kernel, plan);
        result = emitter.emitKernel(kernel.getBody().front(), *block);
      }
      if (failed(result) || failed(triton_metal::replaceBody(kernel.getBody(), body)))
        return signalPassFailure();
    }
    OpPassManager cleanup(ModuleOp::getOperationName());
    cleanup.addPass(createCSEPass());
    cleanup.addPass(createCanonicalizerPass());
    cleanup.addPass(createCSEPass());
    if (failed(runPipeline(cleanup, getOperation())))
      return signalPassFailure();
  }
};

} // namespace
