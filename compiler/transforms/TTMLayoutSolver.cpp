#include "transforms/TTMLayoutSolver.h"

#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/TTM.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace triton_metal {

using namespace ttm;

static bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// What control flow carries
//===----------------------------------------------------------------------===//

std::optional<CarriedGroup> getCarriedGroup(Value value) {
  CarriedGroup group;
  auto forGroup = [&](scf::ForOp loop, unsigned i) {
    group.members = {loop.getRegionIterArg(i), loop.getResult(i)};
    group.sources = {&loop.getInitArgsMutable()[i],
                     &loop.getBody()->getTerminator()->getOpOperand(i)};
    return group;
  };
  auto passedGroup = [&](scf::WhileOp loop, unsigned i) {
    group.members = {loop.getAfterArguments()[i], loop.getResult(i)};
    group.sources = {&loop.getConditionOp().getArgsMutable()[i]};
    return group;
  };
  if (auto result = dyn_cast<OpResult>(value)) {
    unsigned i = result.getResultNumber();
    if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
      return forGroup(loop, i);
    if (auto loop = dyn_cast<scf::WhileOp>(result.getOwner()))
      return passedGroup(loop, i);
    if (auto branch = dyn_cast<scf::IfOp>(result.getOwner())) {
      group.members = {value};
      group.sources = {&branch.thenYield()->getOpOperand(i), &branch.elseYield()->getOpOperand(i)};
      return group;
    }
    return std::nullopt;
  }
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast_or_null<scf::ForOp>(parent)) {
    if (argument.getArgNumber() == 0)
      return std::nullopt;
    return forGroup(loop, argument.getArgNumber() - 1);
  }
  if (auto loop = dyn_cast_or_null<scf::WhileOp>(parent)) {
    unsigned i = argument.getArgNumber();
    if (argument.getOwner() == loop.getAfterBody())
      return passedGroup(loop, i);
    group.members = {value};
    group.sources = {&loop.getInitsMutable()[i], &loop.getYieldOp()->getOpOperand(i)};
    return group;
  }
  return std::nullopt;
}

Value getCarriedTarget(OpOperand &operand) {
  Operation *op = operand.getOwner();
  unsigned i = operand.getOperandNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return i >= 3 ? Value(loop.getRegionIterArg(i - 3)) : Value();
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return loop.getBeforeArguments()[i];
  if (auto condition = dyn_cast<scf::ConditionOp>(op))
    return i >= 1 ? Value(cast<scf::WhileOp>(op->getParentOp()).getResult(i - 1)) : Value();
  if (isa<scf::YieldOp>(op)) {
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
      return loop.getRegionIterArg(i);
    if (auto loop = dyn_cast<scf::WhileOp>(op->getParentOp()))
      return loop.getBeforeArguments()[i];
    if (isa<scf::IfOp>(op->getParentOp()))
      return op->getParentOp()->getResult(i);
  }
  return Value();
}

//===----------------------------------------------------------------------===//
// Setting up
//===----------------------------------------------------------------------===//

LayoutSolver::LayoutSolver(ModuleOp module) : module(module) {}

void LayoutSolver::record() {
  module.walk([&](Operation *op) {
    SmallVector<LinearLayout> &operands = originalOperands[op];
    for (Value operand : op->getOperands())
      operands.push_back(getLayout(operand).value_or(LinearLayout()));
    auto recordValue = [&](Value value) {
      if (auto layout = getLayout(value))
        originalValues.try_emplace(value, *layout);
    };
    for (Value result : op->getResults())
      recordValue(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          recordValue(argument);
  });
}

void LayoutSolver::dropConversions() {
  module.walk([&](ConvertLayoutOp convert) {
    convert.getResult().replaceAllUsesWith(convert.getSrc());
    originalOperands.erase(convert);
    originalValues.erase(convert.getResult());
    convert.erase();
  });
}

const LinearLayout &LayoutSolver::getOriginal(OpOperand &operand) const {
  return originalOperands.find(operand.getOwner())->second[operand.getOperandNumber()];
}

const LinearLayout &LayoutSolver::getOriginal(Value value) const {
  return originalValues.find(value)->second;
}

std::optional<LinearLayout> LayoutSolver::getFixed(Value value) const {
  auto it = fixed.find(value);
  return it == fixed.end() ? std::nullopt : std::optional(it->second);
}

/// Whether the operation can be done again for another layout, at the price of its arithmetic.
static bool canRemake(Operation *op) {
  switch (getLayoutRule(op)) {
  case LayoutRule::Source:
  case LayoutRule::Inferred:
    return true;
  case LayoutRule::Same:
    // A division by what may be 0 stays where it is, and can be made there in any layout.
    return op->getNumRegions() == 0 && isMemoryEffectFree(op);
  default:
    return false;
  }
}

bool LayoutSolver::isKept(Operation *op) const {
  if (!canRemake(op))
    return true;
  return llvm::any_of(op->getResults(),
                      [&](Value result) { return !isTile(result) || fixed.contains(result); });
}

LinearLayout LayoutSolver::getOperandLayout(OpOperand &operand, const LinearLayout &result) const {
  if (auto wanted = inferOperandLayout(operand.getOwner(), operand.getOperandNumber(), result))
    return *wanted;
  if (takesAnyLayout(operand))
    if (auto own = getFixed(operand.get()))
      return *own;
  return getOriginal(operand);
}

LinearLayout LayoutSolver::getRequired(OpOperand &operand) const {
  Operation *op = operand.getOwner();
  auto resultLayout = [&]() -> std::optional<LinearLayout> {
    return op->getNumResults() ? getFixed(op->getResult(0)) : std::nullopt;
  };
  switch (getLayoutRule(op)) {
  case LayoutRule::Memory:
  case LayoutRule::Reduction:
    return opLayouts.find(op)->second;
  case LayoutRule::Same:
  case LayoutRule::Inferred:
  case LayoutRule::Dot:
    if (auto layout = resultLayout())
      return getOperandLayout(operand, *layout);
    return getOriginal(operand);
  case LayoutRule::ControlFlow:
    if (Value target = getCarriedTarget(operand))
      if (auto layout = getFixed(target))
        return *layout;
    return getOriginal(operand);
  case LayoutRule::Source:
  case LayoutRule::Free:
    return getOriginal(operand);
  }
  return getOriginal(operand);
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

void LayoutSolver::offer(Value value, const Candidate &candidate) {
  if (!isTile(value))
    return;
  auto it = best.find(value);
  if (it != best.end() && !candidate.isBetterThan(it->second))
    return;
  best[value] = candidate;
  worklist.push_back(value);
}

void LayoutSolver::drain() {
  while (!worklist.empty())
    propagateFrom(worklist.pop_back_val());
}

void LayoutSolver::propagateFrom(Value value) {
  Candidate candidate = best.find(value)->second;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    switch (getLayoutRule(op)) {
    case LayoutRule::Same:
      if (!takesAnyLayout(use))
        for (Value result : op->getResults())
          offer(result, candidate);
      break;
    case LayoutRule::Inferred:
    case LayoutRule::Reduction: {
      // A repeated tile can be made in many layouts at little cost: what it is combined with
      // decides.
      if (isa<tt::BroadcastOp>(op))
        break;
      auto layout = inferResultLayout(op, use.getOperandNumber(), candidate.layout);
      if (!layout)
        break;
      Candidate next{*layout, candidate.priority, candidate.anchor};
      if (getLayoutRule(op) == LayoutRule::Reduction)
        next.priority = std::max<unsigned>(next.priority, Reduction);
      for (Value result : op->getResults())
        offer(result, next);
      break;
    }
    case LayoutRule::ControlFlow:
      if (Value target = getCarriedTarget(use))
        if (auto group = getCarriedGroup(target))
          for (Value member : group->members)
            offer(member, candidate);
      break;
    default:
      break;
    }
  }
}

void LayoutSolver::propagate() {
  module.walk([&](Operation *op) {
    unsigned priority = 0;
    switch (getLayoutRule(op)) {
    case LayoutRule::Memory:
      priority = Load;
      break;
    case LayoutRule::Dot:
      priority = Dot;
      break;
    case LayoutRule::Free:
      priority = Reduction;
      break;
    case LayoutRule::Same:
      if (!isMemoryEffectFree(op) && op->getNumRegions() == 0)
        priority = Guess;
      break;
    default:
      break;
    }
    if (!priority)
      return;
    ++numAnchors;
    for (Value result : op->getResults())
      if (isTile(result))
        offer(result, {getOriginal(result), priority, numAnchors});
  });
  drain();
  // Reductions and scans of what can be made in any layout start from the layout they have.
  module.walk([&](Operation *op) {
    if (!isa<tt::ReduceOp, tt::ScanOp>(op))
      return;
    const Candidate *source = nullptr;
    for (Value operand : op->getOperands()) {
      auto it = best.find(operand);
      if (it != best.end() && (!source || it->second.isBetterThan(*source)))
        source = &it->second;
    }
    LinearLayout layout = source ? source->layout : getOriginal(op->getOpOperand(0));
    auto result = inferResultLayout(op, 0, layout);
    if (!result) {
      layout = getOriginal(op->getOpOperand(0));
      result = inferResultLayout(op, 0, layout);
      source = nullptr;
    }
    opLayouts[op] = layout;
    if (source)
      return;
    ++numAnchors;
    for (Value value : op->getResults()) {
      if (!isTile(value))
        continue;
      best.erase(value);
      offer(value, {*result, Reduction, numAnchors});
    }
    drain();
  });
  // What flowed on since may have reached operands of earlier reductions, whose results stand: only
  // their own layout counts.
  for (auto &[value, candidate] : best)
    fixed[value] = candidate.layout;
  module.walk([&](Operation *op) {
    if (isa<tt::ReduceOp, tt::ScanOp>(op))
      for (Value value : op->getResults())
        if (isTile(value))
          fixed[value] = *inferResultLayout(op, 0, opLayouts[op]);
  });
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

double LayoutSolver::getAccessCost(Operation *op, const LinearLayout &layout, bool inLines) const {
  Value pointers = op->getOperand(0);
  if (layout.getRank() == 0)
    return 1;
  AxisInfo info = axes->get(pointers);
  unsigned dim = layout.getRank() - 1;
  for (unsigned d = layout.getRank() - 1; d-- > 0;)
    if (info.contiguity[d] > info.contiguity[dim])
      dim = d;
  unsigned shift = layout.dimShift(dim);
  // Elements that one access of a thread takes.
  int64_t width = 1,
          limit = isa<tt::LoadOp, tt::StoreOp>(op) ? axes->getAccessWidth(pointers, dim) : 1;
  // A thread reads an element once for all of its registers that have one address.
  if (limit == 1 && isa<tt::LoadOp>(op))
    limit = info.constancy[dim];
  for (uint32_t basis : layout.getRegisterBases()) {
    if (width >= limit || basis != uint32_t(width) << shift)
      break;
    width *= 2;
  }
  // Pieces of 32 bytes, or lines of 128, that one access of a SIMD-group touches: lanes that differ
  // within one share it.
  int64_t pieceBytes = inLines ? 128 : 32;
  int64_t piece = std::max(
      std::min<int64_t>(info.contiguity[dim], pieceBytes / getElementBytes(pointers.getType())),
      info.constancy[dim]);
  double pieces = 1;
  for (uint32_t basis : layout.getLaneBases())
    if (basis && !(llvm::isPowerOf2_32(basis) && basis >> shift < piece && basis >> shift > 0))
      pieces *= 2;
  // One SIMD-group writes what several hold; all of them read it.
  if (!isa<tt::LoadOp>(op))
    pieces /= double(1u << llvm::popcount(layout.freeMask(InDim::Simdgroup)));
  double accesses = double(layout.getNumRegisters()) / double(width);
  return accesses * std::max(1.0, inLines ? pieces : pieces / 4);
}

/// Two barriers, a write for each register there and a read for each here, which cost less than
/// accesses of device memory; or shuffles.
///
/// Where lines are counted, one is 20 instructions of a SIMD-group, and barriers cost what
/// docs/threads.md says.
static double getConversionCost(const LinearLayout &from, const LinearLayout &to, bool inLines) {
  double registers = from.getNumRegisters() + to.getNumRegisters();
  double perRegister = inLines ? 0.1 : 0.5;
  double simdgroups = double(1u << from.getSimdgroupBases().size());
  double barriers = inLines ? (60 + 4 * simdgroups) / 40 : 32.0;
  LayoutConversion conversion(from, to);
  switch (conversion.kind) {
  case LayoutConversion::Kind::Identity:
  case LayoutConversion::Kind::Registers:
    return 0;
  case LayoutConversion::Kind::Simdgroup:
    if (conversion.isShuffle())
      return perRegister * registers;
    [[fallthrough]];
  case LayoutConversion::Kind::Threadgroup:
    return barriers + perRegister * registers;
  }
  return 0;
}

/// Products of matrices take the time of a kernel that has them, and the threadgroup memory. In
/// other kernels memory takes the time: there lines count, where both layouts have each element of
/// a tile once.
bool LayoutSolver::isWorthConverting(Operation *op, const LinearLayout &asked,
                                     const LinearLayout &usual) const {
  bool inLines =
      !multipliesMatrices && asked.getRank() > 1 && asked.isInjective() && usual.isInjective();
  double conversion = isa<tt::LoadOp>(op) ? getConversionCost(usual, asked, inLines)
                                          : getConversionCost(asked, usual, inLines);
  return getAccessCost(op, asked, inLines) > getAccessCost(op, usual, inLines) + conversion;
}

void LayoutSolver::decideStores() {
  module.walk([&](Operation *op) {
    if (getLayoutRule(op) != LayoutRule::Memory || !isTile(op->getOperand(0)))
      return;
    LinearLayout usual = getOriginal(op->getOpOperand(0));
    opLayouts[op] = usual;
    if (isa<tt::LoadOp>(op) || (op->getNumResults() && !op->use_empty()))
      return;
    // What is stored may already be well placed.
    auto layout = getFixed(op->getOperand(1));
    if (layout && !isWorthConverting(op, *layout, usual)) {
      opLayouts[op] = *layout;
      for (Value result : op->getResults())
        fixed[result] = *layout;
    }
  });
}

void LayoutSolver::fixCarried(Value value, const LinearLayout &layout) {
  std::optional<CarriedGroup> group = getCarriedGroup(value);
  for (Value member : group->members)
    fixed[member] = layout;
  for (OpOperand *source : group->sources)
    demand(source->get(), layout);
}

void LayoutSolver::demandOperands(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (isTile(operand.get()))
      demand(operand.get(), getRequired(operand));
}

void LayoutSolver::demand(Value value, const LinearLayout &layout) {
  if (auto own = getFixed(value)) {
    if (*own != layout)
      tryChange(value, layout);
    return;
  }
  auto &seen = demanded[value];
  if (llvm::is_contained(seen, layout))
    return;
  seen.push_back(layout);
  if (getCarriedGroup(value))
    return fixCarried(value, layout);
  Operation *op = value.getDefiningOp();
  if (!op || !canRemake(op))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    if (isTile(operand.get()))
      demand(operand.get(), getOperandLayout(operand, layout));
  }
}

/// The most values that change together because they follow each other: a chain of thousands is not
/// walked along for each of its uses.
static constexpr size_t kMostFollowed = 256;
/// How often a value changes its layout along with others.
static constexpr unsigned kMostTurns = 2;

/// Whether an operation's results are tiles of one type, which it makes in one layout: a value, or
/// the halves of a tile.
static bool haveOneLayout(ResultRange results) {
  return !results.empty() && llvm::all_of(results, isTile) && llvm::all_equal(results.getTypes());
}

/// Collects what changes when `value` is computed in `layout`: back through elementwise operations
/// to loads.
bool LayoutSolver::collectChange(Value value, const LinearLayout &asked, Change &change) {
  LinearLayout layout = asked;
  // A pair is in the lowest register bit; what asks for it in another one renames registers.
  if (value.getDefiningOp<tt::JoinOp>())
    if (auto half = asked.split())
      layout = half->join();
  auto own = getFixed(value);
  if (!own || *own == layout)
    return true;
  if (auto it = change.values.find(value); it != change.values.end())
    return it->second == layout;
  Operation *op = value.getDefiningOp();
  if (!op || (change.follows && change.values.size() > kMostFollowed))
    return false;
  if (auto reduce = dyn_cast<tt::ReduceOp>(op)) {
    // The result does not say how the operand lies: as that of another reduction that changes.
    for (auto &[other, taken] : change.reductions) {
      LinearLayout operand = taken;
      if (operand.getShape() == opLayouts.find(op)->second.getShape() &&
          inferResultLayout(op, 0, operand) == layout)
        return changeReduction(reduce, operand, change);
    }
    return false;
  }
  if (!haveOneLayout(op->getResults()))
    return false;
  if (isa<tt::LoadOp>(op)) {
    if (isWorthConverting(op, layout, *own))
      return false;
    change.values[value] = layout;
    return true;
  }
  if (!canRemake(op) || !changeResults(op, layout, change))
    return false;
  return collectOperands(op, layout, change);
}

/// Gives the results of an operation that are tiles one layout, if they are to have no other one.
bool LayoutSolver::changeResults(Operation *op, const LinearLayout &layout, Change &change) const {
  for (Value result : op->getResults()) {
    if (!isTile(result) || getFixed(result) == layout)
      continue;
    auto [it, isNew] = change.values.insert({result, layout});
    if (!isNew && it->second != layout)
      return false;
  }
  return true;
}

/// Collects what changes with the operands of an operation that makes its results in `layout`.
bool LayoutSolver::collectOperands(Operation *op, const LinearLayout &layout, Change &change) {
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    if (!isTile(operand.get()) || takesAnyLayout(operand))
      return true;
    auto wanted = inferOperandLayout(op, operand.getOperandNumber(), layout);
    return wanted && collectChange(operand.get(), *wanted, change);
  });
}

/// The bits of the lane and the SIMD-group between which a reduction of a tile in this layout moves
/// numbers.
static unsigned countMoves(const LinearLayout &layout, unsigned axis) {
  uint32_t mask = layout.dimMask(axis);
  auto along = [&](uint32_t basis) { return (basis & mask) != 0; };
  return llvm::count_if(layout.getLaneBases(), along) +
         llvm::count_if(layout.getSimdgroupBases(), along);
}

/// Collects what changes when a reduction takes its operands in `layout`, in which no more numbers
/// move.
bool LayoutSolver::changeReduction(tt::ReduceOp reduce, const LinearLayout &layout,
                                   Change &change) {
  if (auto it = change.reductions.find(reduce); it != change.reductions.end())
    return it->second == layout;
  unsigned axis = reduce.getAxis();
  auto result = inferResultLayout(reduce, 0, layout);
  if (!result || countMoves(layout, axis) > countMoves(opLayouts.find(reduce)->second, axis))
    return false;
  change.reductions[reduce] = layout;
  return changeResults(reduce, *result, change) &&
         llvm::all_of(reduce->getOperands(),
                      [&](Value operand) { return collectChange(operand, layout, change); });
}

/// Collects what changes with an operation that takes an operand in a new layout.
bool LayoutSolver::followChange(OpOperand &use, const LinearLayout &layout, Change &change) {
  Operation *op = use.getOwner();
  if (takesAnyLayout(use) || change.values.size() > kMostFollowed)
    return false;
  if (auto reduce = dyn_cast<tt::ReduceOp>(op))
    return changeReduction(reduce, layout, change);
  if (!canRemake(op) || !haveOneLayout(op->getResults()))
    return false;
  auto made = inferResultLayout(op, use.getOperandNumber(), layout);
  return made && changeResults(op, *made, change) && collectOperands(op, *made, change);
}

/// Whether a conversion costs more than what else changes for it: accesses, and arithmetic on more
/// registers, of which each is half of what moving one is.
bool LayoutSolver::isWorthFollowing(const LinearLayout &usual, const LinearLayout &asked,
                                    const Change &change) const {
  double more = 0;
  for (auto &[value, layout] : change.values) {
    LinearLayout own = getFixed(value).value_or(layout);
    if (auto load = value.getDefiningOp<tt::LoadOp>())
      more += getAccessCost(load, layout, false) - getAccessCost(load, own, false);
    more += 0.25 * (double(layout.getNumRegisters()) - double(own.getNumRegisters()));
  }
  return more <= getConversionCost(usual, asked, false);
}

/// Gives a value the layout that one of its uses asks for, if no other use is the worse for it.
bool LayoutSolver::tryChange(Value value, const LinearLayout &layout) {
  Change change;
  if (!collectChange(value, layout, change) || change.values.empty())
    return false;
  // What follows makes it longer.
  for (size_t i = 0; i < change.values.size(); ++i) {
    auto [changed, newLayout] = change.values.begin()[i];
    for (OpOperand &use : changed.getUses()) {
      Operation *user = use.getOwner();
      if (user->getNumResults() && change.values.contains(user->getResult(0)))
        continue;
      if (!isKept(user) || getRequired(use) == newLayout)
        continue;
      change.follows = true;
      if (!followChange(use, newLayout, change))
        return false;
    }
  }
  if (change.follows) {
    // Uses that ask for two layouts would take turns.
    auto hasEnough = [&](auto &changed) { return followers.lookup(changed.first) == kMostTurns; };
    if (llvm::any_of(change.values, hasEnough) ||
        !isWorthFollowing(*getFixed(value), layout, change))
      return false;
    for (auto &[changed, newLayout] : change.values)
      ++followers[changed];
  }
  for (auto &[op, newLayout] : change.reductions)
    opLayouts[op] = newLayout;
  for (auto &[changed, newLayout] : change.values) {
    fixed[changed] = newLayout;
    Operation *op = changed.getDefiningOp();
    if (isa<tt::LoadOp>(op))
      opLayouts[op] = newLayout;
  }
  for (auto &[changed, newLayout] : change.values)
    demandOperands(changed.getDefiningOp());
  return true;
}

/// By loop depth; operations of one depth stay in their order.
static void innermostFirst(SmallVectorImpl<std::pair<unsigned, Operation *>> &ops) {
  SmallVector<std::pair<unsigned, Operation *>> sorted;
  unsigned deepest = 0;
  for (auto &[depth, op] : ops)
    deepest = std::max(deepest, depth);
  for (unsigned depth = deepest + 1; depth-- > 0;)
    llvm::copy_if(ops, std::back_inserter(sorted),
                  [&](auto &entry) { return entry.first == depth; });
  ops = std::move(sorted);
}

void LayoutSolver::demandAll() {
  // Innermost first, and loads after the others and from the last to the first, so that a load's
  // layout is settled before its pointers are asked for.
  SmallVector<std::pair<unsigned, Operation *>> others, loads;
  module.walk([&](Operation *op) {
    if (!isKept(op))
      return;
    unsigned depth = 0;
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
      depth += isa<scf::ForOp, scf::WhileOp>(parent);
    (isa<tt::LoadOp>(op) ? loads : others).push_back({depth, op});
  });
  std::reverse(loads.begin(), loads.end());
  innermostFirst(others);
  innermostFirst(loads);
  // What loops already carry in a known layout is asked for on entry and at their ends, in time
  // with the others.
  for (auto &[depth, op] : others)
    if (getLayoutRule(op) != LayoutRule::ControlFlow)
      demandOperands(op);
  for (auto &[depth, op] : loads)
    demandOperands(op);
  for (auto &[depth, op] : others) {
    if (getLayoutRule(op) != LayoutRule::ControlFlow)
      continue;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isTile(operand.get()))
        continue;
      Value target = getCarriedTarget(operand);
      if (target && !getFixed(target))
        fixCarried(target, getOriginal(target));
      demand(operand.get(), getRequired(operand));
    }
  }
}

void LayoutSolver::solve() {
  record();
  dropConversions();
  axes = std::make_unique<AxisInfoAnalysis>(module);
  module.walk([&](Operation *op) { multipliesMatrices |= getLayoutRule(op) == LayoutRule::Dot; });
  propagate();
  decideStores();
  demandAll();
}

} // namespace triton_metal
