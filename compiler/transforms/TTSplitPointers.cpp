#include "dialect/tt/TT.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "transforms/IntegerRanges.h"
#include "transforms/Passes.h"
#include "transforms/TTPointerAnalysis.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTSPLITPOINTERS
#include "transforms/Passes.h.inc"

namespace {

/// A split tile of pointers: each pointer is `base` plus its element of `offsets`, or just `base`
/// if there are no offsets.
struct Parts {
  Value base;
  Value offsets;
};

/// Rewrites one function. Each split tile is assembled again from its parts directly at its
/// definition, so that the function stays valid all the time. Tiles that remain unused are erased
/// at the end.
class Splitter {
public:
  Splitter(tt::FuncOp function, DataFlowSolver &solver)
      : function(function), solver(solver), analysis(function), rewriter(function.getContext()) {
    rewriter.setListener(&recorder);
  }

  void run() {
    for (Block &block : function.getBody())
      rewriteBlock(block);
    eraseDead();
  }

private:
  /// Erases the assembled tiles that are unused.
  void eraseDead() {
    SmallVector<Operation *> operations;
    function.walk([&](Operation *op) { operations.push_back(op); });
    for (Operation *op : llvm::reverse(operations))
      if (isOpTriviallyDead(op))
        rewriter.eraseOp(op);
  }

  void rewriteBlock(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block))
      rewrite(&op);
  }

  void rewrite(Operation *op);
  void rewriteAddPtr(tt::AddPtrOp op);
  void rewriteShape(Operation *op);
  void rewriteSelect(arith::SelectOp op);
  void rewriteFor(scf::ForOp op);
  void rewriteWhile(scf::WhileOp op);
  void rewriteBranch(Operation *op);

  bool isSplit(Value value) const {
    return isPointerTile(value.getType()) && analysis.get(value).kind == PointerTile::Split;
  }
  bool anySplit(ValueRange values) const {
    return llvm::any_of(values, [&](Value value) { return isSplit(value); });
  }

  /// Creates the tile of pointers from its parts at the insertion point.
  Value assemble(Location loc, Type type, Parts tile);
  /// Replaces a value by the tile assembled from the parts.
  void replace(Value old, Parts tile);

  /// Extends offsets to a width. Without offsets, the result is a tile of zeros.
  Value widen(Location loc, Type pointers, Value offsets, unsigned width);
  Value add(Location loc, Value lhs, Value rhs);
  bool fits32(Value lhs, Value rhs);
  /// Splits a sum of offsets into uniform terms and tiles.
  void collectTerms(Value offset, SmallVectorImpl<UniformValue> &uniform,
                    SmallVectorImpl<Value> &tiles);
  Value moveBase(Location loc, Value base, UniformValue by);

  /// A value that control flow carries: either unchanged, or a split tile as a base and possibly
  /// offsets.
  struct Slot {
    Type type;
    Location loc;
    PointerTile tile;
    bool isSplit() const { return tile.kind == PointerTile::Split; }
  };
  SmallVector<Slot> slotsOf(ValueRange values) const;
  SmallVector<Type> expandTypes(ArrayRef<Slot> slots);
  /// Expands `values` to what the slots carry.
  SmallVector<Value> expand(ValueRange values, ArrayRef<Slot> slots);
  /// Assembles the values that the slots carry at the insertion point.
  SmallVector<Value> contract(ArrayRef<Slot> slots, ValueRange expanded);

  tt::FuncOp function;
  DataFlowSolver &solver;
  PointerAnalysis analysis;
  IRRewriter rewriter;
  DenseMap<Value, Parts> parts;

  /// Values that this pass has created. The solver has no ranges for them, even if one is allocated
  /// at the address of an older value.
  struct Recorder : RewriterBase::Listener {
    explicit Recorder(DenseSet<Value> &made) : made(made) {}
    void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
      made.insert_range(op->getResults());
    }
    DenseSet<Value> &made;
  };
  DenseSet<Value> made;
  Recorder recorder{made};
};

/// A number of low bits that are zero in every element of an integer.
unsigned lowZeros(Value value, unsigned depth = 0) {
  unsigned width = tt::getBitWidth(value.getType());
  if (std::optional<UniformValue> uniform = getUniformValue(value)) {
    if (uniform->constant)
      return std::min(width, uniform->constant.getValue().countr_zero());
    return lowZeros(uniform->scalar, depth + 1);
  }
  if (depth > 16)
    return 0;
  auto operand = [&](Operation *op, unsigned index) {
    return lowZeros(op->getOperand(index), depth + 1);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast_if_present<tt::FuncOp>(argument.getOwner()->getParentOp());
    if (!function || !argument.getOwner()->isEntryBlock())
      return 0;
    auto divisor =
        function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), tt::divisibilityAttrName);
    return divisor ? std::min(width, divisor.getValue().countr_zero()) : 0;
  }
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return std::min(width, constant.countr_zero());
  return llvm::TypeSwitch<Operation *, unsigned>(value.getDefiningOp())
      .Case([&](arith::MulIOp op) { return std::min(width, operand(op, 0) + operand(op, 1)); })
      .Case<arith::AddIOp, arith::SubIOp>(
          [&](Operation *op) { return std::min(operand(op, 0), operand(op, 1)); })
      .Case<arith::ExtSIOp, arith::ExtUIOp, tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp,
            tt::TransOp>([&](Operation *op) { return operand(op, 0); })
      .Default([](Operation *) { return 0u; });
}

Type offsetsType(Type pointers, unsigned width) {
  return cast<RankedTensorType>(pointers).clone(IntegerType::get(pointers.getContext(), width));
}

Type baseType(Type pointers) { return getElementTypeOrSelf(pointers); }

Value Splitter::assemble(Location loc, Type type, Parts tile) {
  Value splat = tt::SplatOp::create(rewriter, loc, type, tile.base);
  Value whole =
      tile.offsets ? tt::AddPtrOp::create(rewriter, loc, splat, tile.offsets).getResult() : splat;
  parts[whole] = tile;
  return whole;
}

void Splitter::replace(Value old, Parts tile) {
  Value whole = assemble(old.getLoc(), old.getType(), tile);
  rewriter.replaceAllUsesWith(old, whole);
}

Value Splitter::widen(Location loc, Type pointers, Value offsets, unsigned width) {
  Type type = offsetsType(pointers, width);
  if (!offsets)
    return arith::ConstantOp::create(rewriter, loc, type, rewriter.getZeroAttr(type));
  if (tt::getBitWidth(offsets.getType()) >= width)
    return offsets;
  return arith::ExtSIOp::create(rewriter, loc, type, offsets);
}

bool Splitter::fits32(Value lhs, Value rhs) {
  auto range = [&](Value value) -> std::optional<ConstantIntRanges> {
    if (made.contains(value))
      return std::nullopt;
    return getRange(solver, value);
  };
  if (tt::getBitWidth(lhs.getType()) > 32 || tt::getBitWidth(rhs.getType()) > 32)
    return false;
  std::optional<ConstantIntRanges> a = range(lhs), b = range(rhs);
  // For example the start of a row and a column in it: the column only fills bits that are zero in
  // the start.
  auto fills = [](std::optional<ConstantIntRanges> part, Value whole) {
    return part && !part->smin().isNegative() && tt::getBitWidth(whole.getType()) == 32 &&
           part->smax().getActiveBits() <= std::min(lowZeros(whole), 31u);
  };
  if (fills(a, rhs) || fills(b, lhs))
    return true;
  if (!a || !b)
    return false;
  int64_t least = a->smin().getSExtValue() + b->smin().getSExtValue();
  int64_t most = a->smax().getSExtValue() + b->smax().getSExtValue();
  return llvm::isInt<32>(least) && llvm::isInt<32>(most);
}

Value Splitter::add(Location loc, Value lhs, Value rhs) {
  unsigned width = std::max(tt::getBitWidth(lhs.getType()), tt::getBitWidth(rhs.getType()));
  // A sum that could wrap around is computed in 64 bits.
  width = width > 32 || !fits32(lhs, rhs) ? 64 : 32;
  lhs = widen(loc, lhs.getType(), lhs, width);
  rhs = widen(loc, rhs.getType(), rhs, width);
  return arith::AddIOp::create(rewriter, loc, lhs, rhs);
}

/// Whether a loop adds a number of its own to a tile, and moves several pointers by the sum. One
/// sum of 32 bits then costs less than as many pointers of 64.
static bool isSharedInLoop(arith::AddIOp sum, UniformValue number) {
  Operation *loop = sum->getParentOp();
  if (!isa<scf::ForOp, scf::WhileOp>(loop) || !number.scalar ||
      !loop->isAncestor(number.scalar.getParentBlock()->getParentOp()))
    return false;
  DenseSet<Value> moved;
  for (Operation *user : sum->getUsers())
    if (auto add = dyn_cast<tt::AddPtrOp>(user))
      moved.insert(add.getPtr());
  return moved.size() > 1;
}

void Splitter::collectTerms(Value offset, SmallVectorImpl<UniformValue> &uniform,
                            SmallVectorImpl<Value> &tiles) {
  if (std::optional<UniformValue> value = getUniformValue(offset)) {
    if (!value->constant || !value->constant.getValue().isZero())
      uniform.push_back(*value);
    return;
  }
  // A 64-bit sum wraps around as addresses do. A narrower sum is only split if it cannot wrap
  // around.
  auto sum = offset.getDefiningOp<arith::AddIOp>();
  auto exact = [&] {
    return tt::getBitWidth(sum.getType()) == 64 ||
           bitEnumContainsAll(sum.getOverflowFlags(), arith::IntegerOverflowFlags::nsw) ||
           fits32(sum.getLhs(), sum.getRhs());
  };
  std::optional<UniformValue> number;
  if (sum && !(number = getUniformValue(sum.getLhs())))
    number = getUniformValue(sum.getRhs());
  if (number && exact() && !isSharedInLoop(sum, *number)) {
    collectTerms(sum.getLhs(), uniform, tiles);
    collectTerms(sum.getRhs(), uniform, tiles);
    return;
  }
  tiles.push_back(offset);
}

Value Splitter::moveBase(Location loc, Value base, UniformValue by) {
  Value offset = by.scalar;
  if (!offset)
    offset = arith::ConstantOp::create(rewriter, loc, by.constant);
  return tt::AddPtrOp::create(rewriter, loc, base, offset);
}

void Splitter::rewriteAddPtr(tt::AddPtrOp op) {
  auto found = parts.find(op.getPtr());
  if (found == parts.end())
    return;
  Parts tile = found->second;
  SmallVector<UniformValue> uniform;
  SmallVector<Value> tiles;
  collectTerms(op.getOffset(), uniform, tiles);
  if (!tile.offsets && uniform.empty() && tiles.size() == 1) {
    // The pointers are split already, unless the width of the offsets is unusual.
    unsigned width = tt::getBitWidth(tiles.front().getType());
    if (width == 32 || width == 64) {
      tile.offsets = tiles.front();
      parts[op] = tile;
      return;
    }
  }
  rewriter.setInsertionPoint(op);
  for (UniformValue value : uniform)
    tile.base = moveBase(op.getLoc(), tile.base, value);
  for (Value offsets : tiles) {
    offsets = widen(op.getLoc(), op.getType(), offsets,
                    tt::getBitWidth(offsets.getType()) > 32 ? 64 : 32);
    tile.offsets = tile.offsets ? add(op.getLoc(), tile.offsets, offsets) : offsets;
  }
  // Attributes of the addition still hold for the pointers that it computes.
  Value whole = assemble(op.getLoc(), op.getType(), tile);
  whole.getDefiningOp()->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.replaceOp(op, whole);
}

void Splitter::rewriteShape(Operation *op) {
  auto found = parts.find(op->getOperand(0));
  if (found == parts.end())
    return;
  Parts tile = found->second;
  rewriter.setInsertionPoint(op);
  Type type = op->getResult(0).getType();
  if (tile.offsets) {
    // Applies the same operation to the offsets.
    Operation *moved = rewriter.clone(*op);
    moved->setDiscardableAttrs(DictionaryAttr::get(op->getContext()));
    moved->setOperands(tile.offsets);
    moved->getResult(0).setType(offsetsType(type, tt::getBitWidth(tile.offsets.getType())));
    tile.offsets = moved->getResult(0);
  }
  replace(op->getResult(0), tile);
  rewriter.eraseOp(op);
}

void Splitter::rewriteSelect(arith::SelectOp op) {
  if (!isSplit(op.getResult()))
    return;
  auto onTrue = parts.find(op.getTrueValue()), onFalse = parts.find(op.getFalseValue());
  if (onTrue == parts.end() || onFalse == parts.end())
    return;
  Parts a = onTrue->second, b = onFalse->second;
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Value condition = op.getCondition();
  if (std::optional<UniformValue> uniform = getUniformValue(condition))
    condition = uniform->scalar ? uniform->scalar
                                : arith::ConstantOp::create(rewriter, loc, uniform->constant);
  Parts tile;
  tile.base = arith::SelectOp::create(rewriter, loc, condition, a.base, b.base);
  if (a.offsets || b.offsets) {
    unsigned width = 32;
    for (Value offsets : {a.offsets, b.offsets})
      if (offsets)
        width = std::max(width, tt::getBitWidth(offsets.getType()));
    tile.offsets = a.offsets;
    if (a.offsets != b.offsets)
      tile.offsets = arith::SelectOp::create(rewriter, loc, condition,
                                             widen(loc, op.getType(), a.offsets, width),
                                             widen(loc, op.getType(), b.offsets, width));
  }
  replace(op.getResult(), tile);
  rewriter.eraseOp(op);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Splitter::Slot> Splitter::slotsOf(ValueRange values) const {
  return llvm::map_to_vector(values, [&](Value value) {
    return Slot{value.getType(), value.getLoc(),
                isSplit(value) ? analysis.get(value) : PointerTile::whole()};
  });
}

SmallVector<Type> Splitter::expandTypes(ArrayRef<Slot> slots) {
  SmallVector<Type> types;
  for (const Slot &slot : slots) {
    types.push_back(slot.isSplit() ? baseType(slot.type) : slot.type);
    if (slot.isSplit() && slot.tile.width)
      types.push_back(offsetsType(slot.type, slot.tile.width));
  }
  return types;
}

SmallVector<Value> Splitter::expand(ValueRange values, ArrayRef<Slot> slots) {
  SmallVector<Value> result;
  for (auto [value, slot] : llvm::zip_equal(values, slots)) {
    if (!slot.isSplit()) {
      result.push_back(value);
      continue;
    }
    auto tile = parts.find(value);
    assert(tile != parts.end() && "a split slot is fed with split tiles only");
    result.push_back(tile->second.base);
    if (slot.tile.width)
      result.push_back(
          widen(value.getLoc(), value.getType(), tile->second.offsets, slot.tile.width));
  }
  return result;
}

SmallVector<Value> Splitter::contract(ArrayRef<Slot> slots, ValueRange expanded) {
  made.insert_range(expanded);
  SmallVector<Value> result;
  unsigned next = 0;
  auto take = [&](const Slot &slot) {
    Value value = expanded[next++];
    // A value keeps its name in the source.
    if (auto argument = dyn_cast<BlockArgument>(value))
      argument.setLoc(slot.loc);
    return value;
  };
  for (const Slot &slot : slots) {
    Value first = take(slot);
    if (!slot.isSplit()) {
      result.push_back(first);
      continue;
    }
    Parts tile{first, {}};
    if (slot.tile.width)
      tile.offsets = take(slot);
    result.push_back(assemble(slot.loc, slot.type, tile));
  }
  return result;
}

void Splitter::rewriteFor(scf::ForOp op) {
  if (!anySplit(op.getResults())) {
    rewriteBlock(*op.getBody());
    return;
  }
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  SmallVector<Slot> carried = slotsOf(op.getRegionIterArgs()), results = slotsOf(op.getResults());
  SmallVector<Value> inits = expand(op.getInitArgs(), carried);
  auto loop = scf::ForOp::create(rewriter, loc, op.getLowerBound(), op.getUpperBound(),
                                 op.getStep(), inits, nullptr, op.getUnsignedCmp());
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (!loop.getBody()->empty())
    rewriter.eraseOp(loop.getBody()->getTerminator());

  rewriter.setInsertionPointToStart(loop.getBody());
  loop.getInductionVar().setLoc(op.getInductionVar().getLoc());
  SmallVector<Value> arguments{loop.getInductionVar()};
  llvm::append_range(arguments, contract(carried, loop.getRegionIterArgs()));
  rewriter.mergeBlocks(op.getBody(), loop.getBody(), arguments);
  rewriteBlock(*loop.getBody());

  Operation *yield = loop.getBody()->getTerminator();
  rewriter.setInsertionPoint(yield);
  yield->setOperands(expand(yield->getOperands(), results));

  rewriter.setInsertionPointAfter(loop);
  rewriter.replaceOp(op, contract(results, loop.getResults()));
}

void Splitter::rewriteWhile(scf::WhileOp op) {
  if (!anySplit(op.getResults()) && !anySplit(op.getBeforeArguments())) {
    rewriteBlock(*op.getBeforeBody());
    rewriteBlock(*op.getAfterBody());
    return;
  }
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  SmallVector<Slot> before = slotsOf(op.getBeforeArguments()),
                    after = slotsOf(op.getAfterArguments()), results = slotsOf(op.getResults());
  auto loop =
      scf::WhileOp::create(rewriter, loc, expandTypes(results), expand(op.getInits(), before));
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());

  auto moveBlock = [&](Block *from, Region &to, ArrayRef<Slot> slots) {
    SmallVector<Type> types = expandTypes(slots);
    Block *block =
        rewriter.createBlock(&to, to.end(), types, SmallVector<Location>(types.size(), loc));
    SmallVector<Value> arguments = contract(slots, block->getArguments());
    rewriter.mergeBlocks(from, block, arguments);
    rewriteBlock(*block);
    rewriter.setInsertionPoint(block->getTerminator());
    return block->getTerminator();
  };
  auto condition = cast<scf::ConditionOp>(moveBlock(op.getBeforeBody(), loop.getBefore(), before));
  condition.getArgsMutable().assign(expand(condition.getArgs(), results));
  Operation *yield = moveBlock(op.getAfterBody(), loop.getAfter(), after);
  yield->setOperands(expand(yield->getOperands(), before));

  rewriter.setInsertionPointAfter(loop);
  rewriter.replaceOp(op, contract(results, loop.getResults()));
}

void Splitter::rewriteBranch(Operation *op) {
  for (Region &region : op->getRegions())
    for (Block &block : region)
      rewriteBlock(block);
  if (!anySplit(op->getResults()))
    return;
  SmallVector<Slot> results = slotsOf(op->getResults());
  for (Region &region : op->getRegions()) {
    Operation *yield = region.front().getTerminator();
    rewriter.setInsertionPoint(yield);
    yield->setOperands(expand(yield->getOperands(), results));
  }
  rewriter.setInsertionPoint(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(expandTypes(results));
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *replacement = rewriter.create(state);
  rewriter.replaceOp(op, contract(results, replacement->getResults()));
}

void Splitter::rewrite(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tt::SplatOp splat) {
        if (isPointerTile(splat.getType()))
          parts[splat] = {splat.getSrc(), {}};
      })
      .Case([&](ub::PoisonOp poison) {
        if (!isPointerTile(poison.getType()))
          return;
        rewriter.setInsertionPoint(poison);
        Value base = ub::PoisonOp::create(rewriter, poison.getLoc(), baseType(poison.getType()));
        replace(poison.getResult(), {base, {}});
        rewriter.eraseOp(poison);
      })
      .Case([&](tt::AddPtrOp add) { rewriteAddPtr(add); })
      .Case([&](tt::BitcastOp cast) {
        auto found = parts.find(cast.getSrc());
        if (found == parts.end() || !keepsElementSize(cast))
          return;
        Parts tile = found->second;
        rewriter.setInsertionPoint(cast);
        tile.base =
            tt::BitcastOp::create(rewriter, cast.getLoc(), baseType(cast.getType()), tile.base);
        replace(cast.getResult(), tile);
        rewriter.eraseOp(cast);
      })
      .Case<tt::BroadcastOp, tt::ExpandDimsOp, tt::ReshapeOp, tt::TransOp>([&](Operation *shape) {
        if (isPointerTile(shape->getResult(0).getType()))
          rewriteShape(shape);
      })
      .Case([&](arith::SelectOp select) { rewriteSelect(select); })
      .Case([&](scf::ForOp loop) { rewriteFor(loop); })
      .Case([&](scf::WhileOp loop) { rewriteWhile(loop); })
      .Case<scf::IfOp, scf::ExecuteRegionOp>([&](Operation *branch) { rewriteBranch(branch); })
      .Default([&](Operation *other) {
        for (Region &region : other->getRegions())
          for (Block &block : region)
            rewriteBlock(block);
      });
}

} // namespace

namespace {
struct TTSplitPointersPass : impl::TTSplitPointersBase<TTSplitPointersPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<tt::FuncOp>()) {
      if (function.isExternal())
        continue;
      DataFlowSolver solver;
      if (failed(findRanges(solver, function)))
        return signalPassFailure();
      Splitter(function, solver).run();
    }
  }
};
} // namespace
} // namespace triton_metal
