#include "transforms/KernelWork.h"

#include "transforms/TTSlicing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace triton_metal {

using namespace tt;

/// Steps of a loop whose bounds are not known.
static constexpr double kUnknownSteps = 8;

int64_t bytesOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8) : 8;
}

Tile Tile::of(Type type) {
  Tile tile;
  tile.bytes = bytesOf(type);
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    tile.elements = tensor.getNumElements();
    tile.last = tensor.getRank() ? tensor.getShape().back() : 1;
  }
  return tile;
}

KernelWork::KernelWork(FuncOp kernel, const Budget &budget) : budget(budget), axes(kernel) {
  for (Block &block : kernel.getBody())
    visit(block, 1, nullptr);
  finish();
}

bool KernelWork::hasStagedLoops() const {
  return llvm::any_of(works, [](const Work &work) {
    return work.kind == WorkKind::Dot && work.loop && (work.loadsA || work.loadsB);
  });
}

bool KernelWork::isStagedBefore(OpOperand &operand, Operation *loop) const {
  return isa<DotOp>(operand.getOwner()) && operand.getOperandNumber() < 2 &&
         isInvariant(operand.get(), loop);
}

int KernelWork::findMaker(Value value) const {
  auto it = makers.find(value);
  return it == makers.end() ? -1 : it->second;
}

/// The steps of a loop, or what stands for them where they are not known.
static double stepsOf(scf::ForOp loop) {
  int64_t slices = getStepSlices(loop);
  APInt lower, upper, step;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
    return kUnknownSteps * double(slices);
  double count =
      std::ceil((upper.roundToDouble(true) - lower.roundToDouble(true)) / step.roundToDouble(true));
  return std::clamp(count, 1.0, 64.0 * double(slices));
}

/// Instructions of an elementwise operation for each element.
static double costOf(Operation *op) {
  if (isa<arith::DivFOp, arith::RemFOp, PreciseDivFOp, PreciseSqrtOp, arith::DivSIOp,
          arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return 6;
  if (isa<math::FmaOp, math::AbsFOp, math::AbsIOp>(op))
    return 1;
  if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
    return 5;
  if (isa<MulhiUIOp, arith::MulUIExtendedOp, arith::MulSIExtendedOp>(op))
    return 4;
  if (isa<arith::ExtFOp, arith::TruncFOp, BitcastOp>(op))
    return 0.5;
  if (isa<ExternElementwiseOp, ElementwiseInlineAsmOp, MapElementwiseOp>(op))
    return 8;
  return 1;
}

bool KernelWork::isLoaded(Value value, Operation *loop) const {
  // Through what is computed of each element and of views, up to a load of this loop.
  SetVector<Value> todo;
  todo.insert(value);
  for (unsigned i = 0; i < todo.size(); ++i) {
    Operation *op = todo[i].getDefiningOp();
    if (!op || op->getParentOp() != loop)
      continue;
    if (isa<LoadOp>(op))
      return true;
    if (op->hasTrait<OpTrait::Elementwise>() ||
        isa<TransOp, BroadcastOp, ExpandDimsOp, ReshapeOp, JoinOp>(op))
      todo.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

bool KernelWork::isInvariant(Value value, Operation *loop) const {
  if (!loop)
    return false;
  Operation *op = value.getDefiningOp();
  Operation *owner = op ? op->getParentOp() : value.getParentBlock()->getParentOp();
  return !loop->isAncestor(owner);
}

/// Whether some term of the offsets is a product with `factor`: rows of so many elements follow
/// each other.
static bool hasFactor(Value offsets, int64_t factor, unsigned depth = 0) {
  Operation *op = offsets.getDefiningOp();
  if (!op || depth > 8)
    return false;
  if (isa<arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      APInt number;
      if (auto splat = operand.getDefiningOp<SplatOp>())
        operand = splat.getSrc();
      return matchPattern(operand, m_ConstantInt(&number)) && number == factor;
    });
  return isa<AddPtrOp, arith::AddIOp, BroadcastOp, ExpandDimsOp, arith::ExtSIOp>(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return hasFactor(operand, factor, depth + 1); });
}

/// Whether a value is a tile that a loop carries from step to step.
static bool isCarried(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && isa<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
}

void KernelWork::setAccess(Work &work, Value pointers) {
  auto type = dyn_cast<RankedTensorType>(pointers.getType());
  if (!type)
    return;
  if (type.getRank()) {
    int64_t &width = widths[SmallVector<int64_t>(type.getShape())];
    width = std::max(width, axes.getAccessWidth(pointers, type.getRank() - 1));
  }
  for (unsigned dim = type.getRank(); dim-- > 0;)
    if (int64_t width = axes.getAccessWidth(pointers, dim); width > work.width) {
      work.width = width;
      work.isPacked = width > axes.getAlignedWidth(pointers, dim);
      work.tile.last = type.getShape()[dim];
    }
  work.isWhole = type.getRank() > 1 && hasFactor(pointers, work.tile.last);
  work.isGathered = !isCheap(pointers);
  work.isRows =
      type.getRank() > 1 && axes.get(pointers).contiguity.back() >= type.getShape().back();
}

void KernelWork::define(Value value) {
  if (isa<RankedTensorType>(value.getType())) {
    if (lives.try_emplace(value, phase, phase).second)
      order.push_back(value);
  }
}

void KernelWork::use(Value value) {
  auto it = lives.find(value);
  if (it != lives.end())
    it->second.second = std::max(it->second.second, phase);
}

void KernelWork::visit(Block &block, double times, Operation *loop) {
  for (BlockArgument argument : block.getArguments())
    define(argument);
  for (Operation &op : block)
    visitOp(&op, times, loop);
}

/// Whether nothing but products takes a transposed tile: it is staged in its own order.
static bool isStagedAlone(Operation *op) {
  return isa<TransOp>(op) && llvm::all_of(op->getUses(), [](OpOperand &use) {
           return isa<DotOp>(use.getOwner()) && use.getOperandNumber() < 2;
         });
}

void KernelWork::visitOp(Operation *op, double times, Operation *loop) {
  for (OpOperand &operand : op->getOpOperands())
    if (!isStagedBefore(operand, loop))
      use(operand.get());
  // All that is loaded under a mask is there before the first of it is added atomically.
  if (auto atomic = dyn_cast<AtomicRMWOp>(op)) {
    ++phase;
    use(atomic.getVal());
  }
  Work work;
  work.times = times;
  work.loop = loop;
  Value result = op->getNumResults() ? op->getResult(0) : Value();
  auto tensor = result ? dyn_cast<RankedTensorType>(result.getType()) : RankedTensorType();
  if (tensor)
    work.tile = Tile::of(tensor);
  auto add = [&](WorkKind kind) {
    work.kind = kind;
    work.phase = phase;
    works.push_back(work);
  };
  auto part = [&] { ++phase; };

  if (auto load = dyn_cast<LoadOp>(op)) {
    setAccess(work, load.getPtr());
    work.isPacked &= bool(load.getMask());
    if (tensor)
      add(WorkKind::Memory);
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    work.tile = Tile::of(store.getValue().getType());
    setAccess(work, store.getPtr());
    work.isPacked &= bool(store.getMask());
    if (isa<RankedTensorType>(store.getValue().getType()))
      add(WorkKind::Memory);
  } else if (isa<ReduceOp, ScanOp>(op)) {
    auto source = cast<RankedTensorType>(op->getOperand(0).getType());
    unsigned axis = cast<IntegerAttr>(op->getAttr("axis")).getInt();
    work.source = source;
    work.tile = Tile::of(source);
    work.axis = source.getShape()[axis];
    work.alongLast = axis + 1 == source.getRank();
    work.values = op->getNumOperands();
    work.each = 0;
    for (Operation &inner : op->getRegion(0).front().without_terminator())
      work.each += costOf(&inner);
    work.like = findMaker(op->getOperand(0));
    add(isa<ReduceOp>(op) ? WorkKind::Reduce : WorkKind::Scan);
    for (Value made : op->getResults())
      makers[made] = isa<ReduceOp>(op) ? int(works.size()) - 1 : work.like;
    part();
  } else if (auto dot = dyn_cast<DotOp>(op)) {
    auto a = dot.getA().getType(), b = dot.getB().getType();
    ArrayRef<int64_t> shape = a.getShape();
    work.batch = shape.size() == 3 ? shape[0] : 1;
    work.m = shape[shape.size() - 2], work.k = shape.back(), work.n = b.getShape().back();
    work.bytesA = std::max<int64_t>(2, bytesOf(a)), work.bytesB = std::max<int64_t>(2, bytesOf(b));
    work.fragmentA = getElementTypeOrSelf(a).isBF16() ? 4 : work.bytesA;
    work.fragmentB = getElementTypeOrSelf(b).isBF16() ? 4 : work.bytesB;
    work.loadsA = isLoaded(dot.getA(), loop), work.loadsB = isLoaded(dot.getB(), loop);
    work.invariantA = isInvariant(dot.getA(), loop);
    // What another dot has made stays in registers.
    for (Value value = dot.getA(); Operation *from = value.getDefiningOp();) {
      if (isa<DotOp>(from)) {
        work.registersA = true;
        break;
      }
      if (!from->hasTrait<OpTrait::Elementwise>() || !from->getNumOperands())
        break;
      value = from->getOperand(0);
    }
    work.simdgroup = getDotForm(dot, budget) == DotForm::Matrices;
    accumulators[dot.getResult()] = {work.m, work.n};
    add(WorkKind::Dot);
    makers[result] = int(works.size()) - 1;
    part();
  } else if (isa<AtomicRMWOp, AtomicCASOp>(op)) {
    work.tile = Tile::of(op->getOperand(1).getType());
    if (isa<RankedTensorType>(op->getOperand(1).getType()))
      add(WorkKind::Atomic);
  } else if (isa<HistogramOp, GatherOp, TransOp, CatOp>(op)) {
    if (!isCheap(op->getOperand(0)) && !isStagedAlone(op)) {
      if (isa<HistogramOp>(op))
        work.tile = Tile::of(op->getOperand(0).getType());
      add(WorkKind::Exchange);
      part();
    }
  } else if (auto forOp = dyn_cast<scf::ForOp>(op)) {
    part();
    visit(*forOp.getBody(), times * stepsOf(forOp), op);
    // What the loop needs of before it, and what it carries, is there until its end.
    for (Operation &inner : *forOp.getBody())
      inner.walk([&](Operation *nested) {
        for (OpOperand &operand : nested->getOpOperands())
          if (isInvariant(operand.get(), op) && !isStagedBefore(operand, op))
            use(operand.get());
      });
    // Compilers hold what a loop carries beside what a loop around it does.
    for (BlockArgument argument : forOp.getRegionIterArgs())
      use(argument);
    part();
    for (auto [outer, yielded] : llvm::zip(op->getResults(), forOp.getYieldedValues())) {
      // Yielded values take the place of the carried ones.
      lives.erase(yielded);
      if (auto it = accumulators.find(yielded); it != accumulators.end()) {
        auto sides = it->second;
        accumulators[outer] = sides;
        accumulators[forOp.getTiedLoopRegionIterArg(cast<OpResult>(outer))] = sides;
      }
    }
  } else if (op->getNumRegions() && !isa<MapElementwiseOp>(op)) {
    bool isLoop = isa<scf::WhileOp>(op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        visit(block, times * (isLoop ? kUnknownSteps : 1), isLoop ? op : loop);
    part();
  } else if (tensor) {
    bool isConstant = op->hasTrait<OpTrait::ConstantLike>();
    bool isView = isa<SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, MakeRangeOp>(op);
    bool fromCheap = llvm::all_of(op->getOperands(), [&](Value operand) {
      return !isa<RankedTensorType>(operand.getType()) || isCheap(operand);
    });
    if (isConstant || (fromCheap && isMemoryEffectFree(op)))
      cheap.insert(result);
    if (op->hasTrait<OpTrait::Elementwise>())
      for (Value operand : op->getOperands())
        if (int maker = findMaker(operand); maker >= 0)
          makers[result] = work.like = maker;
    // A tile that is repeated along a dimension is read before the loop that repeats it.
    if (auto repeat = dyn_cast<BroadcastOp>(op)) {
      Value source = repeat.getSrc();
      while (auto view = source.getDefiningOp<ExpandDimsOp>())
        source = view.getSrc();
      if (!isCheap(source) && findMaker(source) < 0)
        repeated.insert(source);
    }
    if (!isView && !isConstant) {
      work.each = isCheap(result) ? 0.25 * costOf(op) : costOf(op);
      add(WorkKind::Elements);
    }
  }
  for (Value made : op->getResults())
    define(made);
}

void KernelWork::finish() {
  for (Work &work : works)
    if (work.source)
      if (auto it = widths.find(SmallVector<int64_t>(work.source.getShape())); it != widths.end())
        work.width = std::max<int64_t>(it->second, 1);
  for (Value value : order) {
    auto it = lives.find(value);
    if (it == lives.end() || isCheap(value))
      continue;
    // What a loop carries is there from its begin to its end, also where nothing parts its steps.
    // A dot adds up in what it gives, which takes the place of what it adds to if that ends there.
    auto dot = value.getDefiningOp<DotOp>();
    bool isSummed = dot && !dot->getParentOfType<LoopLikeOpInterface>() &&
                    (isCheap(dot.getC()) || !dot.getC().hasOneUse());
    if (it->second.first == it->second.second && !isCarried(value) && !isSummed) {
      if (repeated.contains(value))
        held.push_back({it->second.first, it->second.second, Tile::of(value.getType())});
      continue;
    }
    unsigned from = it->second.first;
    if (isSummed)
      --from;
    else if (!isa<BlockArgument>(value))
      ++from;
    Held tile{from, it->second.second, Tile::of(value.getType())};
    if (auto sides = accumulators.find(value); sides != accumulators.end())
      std::tie(tile.m, tile.n) = sides->second;
    held.push_back(tile);
  }
}

} // namespace triton_metal
