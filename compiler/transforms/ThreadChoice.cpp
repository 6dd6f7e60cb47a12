#include "transforms/ThreadChoice.h"

#include "analysis/AxisInfo.h"
#include "transforms/Dots.h"
#include "transforms/TTSlicing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace triton_metal {

//===----------------------------------------------------------------------===//
// The core. docs/threads.md says where the numbers come from.
//===----------------------------------------------------------------------===//

/// SIMD-groups of which a core issues an instruction in each cycle.
static constexpr double kSchedulers = 4;
/// Programs that a launch is assumed to have for each core at a time.
static constexpr int64_t kPrograms = 8;
/// Cycles until a SIMD-group may use its own last result.
static constexpr double kDependent = 2;
/// Cycles that a SIMD-group waits for a line of device memory, where it asks for several at once.
static constexpr double kLineWait = 40;
/// Cycles of a simdgroup matrix multiply.
static constexpr double kMultiply = 16;
/// Registers that every kernel needs: addresses, indices and what is on its way.
static constexpr int64_t kBaseRegisters = 14;
/// Registers of a vector that is on its way to memory or from there: its numbers.
static constexpr double kVectorRegisters = 4;
/// Registers of an access that waits beside its numbers: its address, and whether it is made.
static constexpr double kAccessRegisters = 3;
/// Vectors of two operands that are loaded and staged in one loop: so many are there at most.
static constexpr double kPassingVectors = 2;
/// Registers of a loop over fragments beside those: where they lie, and the next ones.
static constexpr double kMultiplyRegisters = 8;
/// With so many registers of fragments in a step, those of the next one are there, too.
static constexpr double kManyFragments = 16;
/// Fragments that are each multiplied once are multiplied as they come: so many are there at most.
static constexpr double kPassingFragments = 8;
/// Registers of a dot on matrices, and of one of several that take each other's results: where
/// their tiles lie in threadgroup memory.
static constexpr double kDotRegisters = 2;
static constexpr double kChainedDotRegisters = 4;
/// What dots that take each other's results want at most, over what is estimated: attention on G13.
static constexpr double kChainedShare = 1.25;
/// The registers that a thread may have, over those that are estimated.
static constexpr double kRegisterRange[] = {0.9, 1.0, 1.0, 1.1};
/// Larger tiles change threads in rounds, with a place for each number.
static constexpr int64_t kStoredBytes = 16384;
static constexpr double kPlaceRegisters = 2.2;
/// Of costs that differ by less the model knows nothing.
static constexpr double kTie = 1.02;
/// Steps of a loop whose bounds are not known.
static constexpr double kUnknownSteps = 8;

/// Registers of a thread, of 32 bits, and the threads for which a core has as many.
static constexpr std::pair<int64_t, int64_t> kOccupancy[] = {
    {52, 1024}, {56, 896}, {64, 832},  {68, 768},  {72, 704},
    {80, 640},  {92, 576}, {104, 512}, {116, 448}, {128, 384}};

tt::FuncOp getKernel(ModuleOp module) {
  for (tt::FuncOp kernel : module.getOps<tt::FuncOp>())
    if (kernel.isPublic() && !kernel.isDeclaration())
      return kernel;
  return {};
}

int64_t getThreadsInFlight(int64_t registers) {
  for (auto [most, threads] : kOccupancy)
    if (registers <= most)
      return threads;
  return kOccupancy[std::size(kOccupancy) - 1].second;
}

int64_t getRegisterLimit(int64_t threads) {
  for (auto [most, held] : llvm::reverse(kOccupancy))
    if (threads <= held)
      return most;
  return kOccupancy[0].first;
}

std::string ThreadChoice::describe() const {
  return llvm::formatv("{0} SIMD-groups, {1} stages: about {2} registers, {3} bytes of threadgroup "
                       "memory, {4} threads in flight, {5} instructions, {6} lines, {7} barriers, "
                       "{8} cycles a program",
                       warps, stages, registers, threadgroupBytes, inFlight,
                       std::llround(instructions), std::llround(lines), std::llround(barriers),
                       std::llround(cost))
      .str();
}

namespace {

using namespace tt;

//===----------------------------------------------------------------------===//
// What a kernel does, in numbers
//===----------------------------------------------------------------------===//

int64_t bytesOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8) : 8;
}

/// The shape of a tile: its last dimension and all others.
struct Tile {
  int64_t elements = 1, last = 1, bytes = 4;

  static Tile of(Type type) {
    Tile tile;
    tile.bytes = bytesOf(type);
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      tile.elements = tensor.getNumElements();
      tile.last = tensor.getRank() ? tensor.getShape().back() : 1;
    }
    return tile;
  }
  int64_t perThread(int64_t warps) const {
    return std::max<int64_t>(1, elements / (warps * int64_t(kSimdWidth)));
  }
  /// 32-bit registers of a thread.
  double registers(int64_t warps) const {
    return double(perThread(warps)) * std::max<double>(bytes, 2) / 4;
  }
};

enum class Kind { Elements, Memory, Atomic, Reduce, Scan, Exchange, Dot };

/// An operation on tiles.
struct Work {
  Kind kind;
  /// How often it runs in a program.
  double times = 1;
  Tile tile;
  /// Instructions for each element.
  double each = 1;
  /// Of a reduction or scan: the extent along its axis, whether that is the last, and how many
  /// tiles it has.
  int64_t axis = 1, values = 1;
  bool alongLast = true;
  /// Of an access: the neighbours that lie side by side and aligned. Of a reduction or scan: those
  /// of the accesses that have its shape, which a thread then has; others have one.
  int64_t width = 1;
  /// Of an access: its vectors need not be aligned, and a mask may cut them, so that the end of a
  /// row is asked for number by number.
  bool isPacked = false;
  /// Of an access: its rows follow each other.
  bool isWhole = false;
  /// Of an access: its places are numbers of the kernel's, and not a range's.
  bool isGathered = false;
  /// Of an access: the numbers of a row follow each other in memory.
  bool isRows = false;
  /// Of a reduction or scan: its tiles.
  RankedTensorType source;
  /// The dot or reduction of which the tile is computed, element by element, and which decides
  /// where its elements are; -1 for others.
  int like = -1;
  /// Of a dot: batch, m, n, k, the bytes of its operands, and whether A and B are staged at each
  /// step of a loop.
  int64_t batch = 1, m = 0, n = 0, k = 0, bytesA = 0, bytesB = 0;
  /// The bytes of its numbers in fragments: G13 multiplies no bfloats.
  int64_t fragmentA = 0, fragmentB = 0;
  bool loadsA = false, loadsB = false, registersA = false, invariantA = false, simdgroup = false;
  /// The innermost loop around it, or null.
  Operation *loop = nullptr;
  /// When it runs: between which reductions, dots and loops.
  unsigned phase = 0;
};

/// A tile that waits in registers from one loop over registers to another.
struct Held {
  unsigned from, to;
  Tile tile;
  /// Of an accumulator of dots: its m and n; 0 for others.
  int64_t m = 0, n = 0;
};

class Summary {
public:
  Summary(FuncOp kernel, const Budget &budget) : budget(budget), axes(kernel) {
    for (Block &block : kernel.getBody())
      visit(block, 1, nullptr);
    finish();
  }

  ThreadChoice evaluate(int warps, int stages) const;
  bool hasTiles() const { return tiles; }
  bool hasStagedLoops() const {
    return llvm::any_of(works, [](const Work &work) {
      return work.kind == Kind::Dot && work.loop && (work.loadsA || work.loadsB);
    });
  }

private:
  void visit(Block &block, double times, Operation *loop);
  void visitOp(Operation *op, double times, Operation *loop);
  void define(Value value);
  void use(Value value);
  void finish();
  /// Whether a value follows from ranges, scalars and constants alone: such a tile is computed
  /// again wherever it is needed, and often once for several neighbours.
  bool isCheap(Value value) const { return cheap.contains(value); }
  bool isLoaded(Value value, Operation *loop) const;
  bool isInvariant(Value value, Operation *loop) const;
  /// Whether an operand of a dot waits in threadgroup memory during a loop that does not change it.
  bool isStagedBefore(OpOperand &operand, Operation *loop) const {
    return isa<DotOp>(operand.getOwner()) && operand.getOperandNumber() < 2 &&
           isInvariant(operand.get(), loop);
  }

  /// How an access through these pointers lies: along the dimension whose neighbours do.
  void setAccess(Work &work, Value pointers);

  /// Which dot or reduction decides where the elements of a value are; -1 if none does.
  int findMaker(Value value) const {
    auto it = makers.find(value);
    return it == makers.end() ? -1 : it->second;
  }

  const Budget &budget;
  AxisInfoAnalysis axes;
  std::vector<Work> works;
  std::vector<Held> held;
  DenseMap<Value, std::pair<unsigned, unsigned>> lives;
  SmallVector<Value> order;
  DenseSet<Value> cheap;
  DenseMap<Value, std::pair<int64_t, int64_t>> accumulators;
  /// The dots and reductions that decide where the elements of values are: see Work::like.
  DenseMap<Value, int> makers;
  /// Of each shape that is read or written: neighbours along the last dimension in one access.
  std::map<SmallVector<int64_t>, int64_t> widths;
  unsigned phase = 0;
  bool tiles = false;
};

/// The steps of a loop, or what stands for them where they are not known.
double stepsOf(scf::ForOp loop) {
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
double costOf(Operation *op) {
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

bool Summary::isLoaded(Value value, Operation *loop) const {
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

bool Summary::isInvariant(Value value, Operation *loop) const {
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

void Summary::setAccess(Work &work, Value pointers) {
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

void Summary::define(Value value) {
  if (isa<RankedTensorType>(value.getType())) {
    tiles = true;
    if (lives.try_emplace(value, phase, phase).second)
      order.push_back(value);
  }
}

void Summary::use(Value value) {
  auto it = lives.find(value);
  if (it != lives.end())
    it->second.second = std::max(it->second.second, phase);
}

void Summary::visit(Block &block, double times, Operation *loop) {
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

void Summary::visitOp(Operation *op, double times, Operation *loop) {
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
  auto add = [&](Kind kind) {
    work.kind = kind;
    work.phase = phase;
    works.push_back(work);
  };
  auto part = [&] { ++phase; };

  if (auto load = dyn_cast<LoadOp>(op)) {
    setAccess(work, load.getPtr());
    work.isPacked &= bool(load.getMask());
    if (tensor)
      add(Kind::Memory);
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    work.tile = Tile::of(store.getValue().getType());
    setAccess(work, store.getPtr());
    work.isPacked &= bool(store.getMask());
    if (isa<RankedTensorType>(store.getValue().getType()))
      add(Kind::Memory);
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
    add(isa<ReduceOp>(op) ? Kind::Reduce : Kind::Scan);
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
    add(Kind::Dot);
    makers[result] = int(works.size()) - 1;
    part();
  } else if (isa<AtomicRMWOp, AtomicCASOp>(op)) {
    work.tile = Tile::of(op->getOperand(1).getType());
    if (isa<RankedTensorType>(op->getOperand(1).getType()))
      add(Kind::Atomic);
  } else if (isa<HistogramOp, GatherOp, TransOp, CatOp>(op)) {
    if (!isCheap(op->getOperand(0)) && !isStagedAlone(op)) {
      if (isa<HistogramOp>(op))
        work.tile = Tile::of(op->getOperand(0).getType());
      add(Kind::Exchange);
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
    for (auto [argument, init] : llvm::zip(forOp.getRegionIterArgs(), forOp.getInitArgs())) {
      use(argument);
      // What only the loop uses is where its sums are.
      if (init.hasOneUse() && lives.contains(init) && !isCheap(init)) {
        use(init);
        lives.erase(argument);
      }
    }
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
    if (!isView && !isConstant) {
      work.each = isCheap(result) ? 0.25 * costOf(op) : costOf(op);
      add(Kind::Elements);
    }
  }
  for (Value made : op->getResults())
    define(made);
}

void Summary::finish() {
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
    if (it->second.first == it->second.second && !isCarried(value) && !isSummed)
      continue;
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

//===----------------------------------------------------------------------===//
// What that costs
//===----------------------------------------------------------------------===//

/// How the threads of a program lie on a tile: neighbours first, then lanes, then SIMD-groups,
/// along its last dimension before the others.
struct Spread {
  int64_t vector, lanesLast, warpsLast, lanesOther, warpsOther, perThread;

  Spread(const Tile &tile, int64_t width, int64_t warps) {
    int64_t lanes = kSimdWidth;
    vector = std::min({tile.perThread(warps), width, tile.last});
    int64_t last = std::max<int64_t>(1, tile.last / vector);
    int64_t other = std::max<int64_t>(1, tile.elements / tile.last);
    lanesLast = std::min(lanes, last);
    warpsLast = std::min(warps, last / lanesLast);
    lanesOther = std::min(lanes / lanesLast, other);
    warpsOther = std::min(warps / warpsLast, std::max<int64_t>(1, other / lanesOther));
    perThread =
        std::max<int64_t>(1, tile.elements / (lanesLast * warpsLast * lanesOther * warpsOther));
  }
};

/// How many SIMD-groups lie along the rows and columns of a dot's result: of simdgroup matrices,
/// which the model knows.
std::pair<unsigned, unsigned> tileDot(int64_t m, int64_t n, int64_t warps, bool rowsOnly) {
  return tileSimdgroups({m, n}, {8, 8}, static_cast<unsigned>(warps),
                        rowsOnly ? DotSplit::Rows : DotSplit::Square);
}

ThreadChoice Summary::evaluate(int warps, int stages) const {
  ThreadChoice choice;
  choice.warps = warps;
  choice.stages = stages;
  // Instructions of all SIMD-groups, cycles of waiting, barriers.
  double issue = 16.0 * warps, lines = 0, barriers = 0;
  // Registers for what the next step of a loop with two buffers needs.
  std::map<Operation *, double> waitingOf;
  // Registers that work needs while it runs, beside what waits.
  SmallVector<double> workingAt(phase + 1), stagingAt(phase + 1);
  // Threadgroup bytes: of operands that a loop does not change, of what a step stages for one dot,
  // of the second buffers, and of what changes threads.
  int64_t invariantBytes = 0, dotBytes = 0, stagedBytes = 0, partialBytes = 0;
  bool isChained = llvm::any_of(works, [](const Work &work) { return work.registersA; });
  double dotRegisters = isChained ? kChainedDotRegisters : kDotRegisters;
  // Results of reductions in each thread: many threads have the same. And the SIMD-groups among
  // which they are spread.
  SmallVector<std::pair<double, int64_t>> resultsOf(works.size());
  for (auto [index, work] : llvm::enumerate(works)) {
    double &working = workingAt[work.phase], &staging = stagingAt[work.phase];
    double each = double(work.tile.perThread(warps));
    if (work.kind == Kind::Elements && work.like >= 0 && works[work.like].kind == Kind::Reduce)
      each = resultsOf[work.like].first;
    double all = each * warps * work.times;
    switch (work.kind) {
    case Kind::Elements:
      issue += all * work.each;
      break;
    case Kind::Memory: {
      int64_t vector = std::min(work.tile.perThread(warps), work.width);
      // Numbers that do not lie side by side, or at the end of a row that is not aligned, are asked
      // for one by one, each with a place of its own, and where that is not a range's with another
      // one for its address. Numbers of one row lie at constants from one place.
      double places = each * (std::max<double>(1, double(work.tile.bytes) / 4) + work.isGathered);
      if (work.isRows && vector == 1) {
        Spread spread(work.tile, 1, warps);
        places /= std::max<double>(1, double(work.tile.last) /
                                          double(spread.lanesLast * spread.warpsLast));
      }
      working = std::max(working, vector > 1 && !work.isPacked ? kVectorRegisters : places);
      issue += all / double(vector) * 3;
      // Each row of a tile that the lanes of an access reach has lines of its own.
      int64_t lanes = std::clamp<int64_t>(work.tile.last / vector, 1, kSimdWidth);
      double rowLines = std::max(1.0, double(lanes * vector * work.tile.bytes) / 128);
      double perAccess = double(kSimdWidth) / double(lanes) * rowLines;
      if (work.isWhole)
        perAccess = std::max(1.0, double(kSimdWidth * vector * work.tile.bytes) / 128);
      // A tile that is smaller than its threads is asked for by each of them, at the same places.
      perAccess *= std::min(1.0, double(work.tile.elements) / double(kSimdWidth));
      lines += all / double(vector) * perAccess;
      break;
    }
    case Kind::Atomic:
      issue += all * 8;
      lines += all;
      break;
    case Kind::Exchange:
      issue += all * 6;
      // What a thread has of a large tile goes to its places number by number.
      if (work.tile.last < work.tile.elements &&
          work.tile.elements * work.tile.bytes > kStoredBytes)
        working = std::max(working, kPlaceRegisters * each);
      barriers += 2 * work.times;
      partialBytes = std::max(partialBytes, work.tile.elements * work.tile.bytes);
      break;
    case Kind::Reduce:
    case Kind::Scan: {
      Spread spread(work.tile, work.width, warps);
      int64_t lanes = work.alongLast ? spread.lanesLast : spread.lanesOther;
      int64_t groups = work.alongLast ? spread.warpsLast : spread.warpsOther;
      if (work.like >= 0 && works[work.like].kind == Kind::Dot) {
        // In a row of an 8x8 matrix four lanes have two neighbours each.
        const Work &dot = works[work.like];
        auto [rows, columns] = tileDot(dot.m, dot.n, warps, isChained);
        lanes = work.alongLast ? 4 : 8;
        groups = work.alongLast ? columns : rows;
        spread.perThread =
            std::max<int64_t>(2, work.tile.elements / (kSimdWidth * int64_t(rows * columns)));
      } else if (work.like >= 0) {
        lanes = 1;
        groups = resultsOf[work.like].second;
        spread.perThread = std::max<int64_t>(1, std::llround(resultsOf[work.like].first));
      }
      lanes = std::min(lanes, work.axis);
      groups = std::min(groups, std::max<int64_t>(1, work.axis / lanes));
      double results =
          std::max<double>(1, double(spread.perThread) /
                                  std::max<double>(1, double(work.axis) / double(lanes * groups)));
      resultsOf[index] = {results, work.alongLast ? spread.warpsOther : spread.warpsLast};
      double values = double(work.values), combine = work.each + values;
      double one = (double(spread.perThread) - results) * work.each;
      one += results * std::log2(double(lanes)) * combine * 1.5;
      if (work.kind == Kind::Scan)
        one += double(spread.perThread) * combine;
      // Several results of a thread, and prefixes, are written out: everything is there at once,
      // except for one vector that adds up row by row, and for vectors of which SIMD-groups alone
      // join their parts. What a thread has of each row of its own gives a result each.
      if (work.kind == Kind::Scan)
        working = std::max(working, 2.0 * double(spread.perThread));
      else if (results > 1 && (lanes > 1 || spread.vector == 1 || work.alongLast ||
                               (groups == 1 && results > double(spread.vector))))
        working = std::max(working, 0.8 * double(spread.perThread));
      if (groups > 1) {
        // Results that lie side by side are read as vectors.
        double vector = work.alongLast ? 1 : std::min(results, double(spread.vector));
        one += 8 + results * (2 * values + double(groups) * (work.each + values / vector));
        barriers += (work.kind == Kind::Scan ? 2 : 1) * work.times;
        int64_t count = std::max<int64_t>(1, work.tile.elements / work.axis);
        partialBytes = std::max(partialBytes, count * groups * work.tile.bytes * work.values);
      }
      issue += one * warps * work.times;
      break;
    }
    case Kind::Dot: {
      if (!work.simdgroup) {
        double terms = double(work.batch * work.m * work.n) / (32.0 * warps);
        issue += std::max(1.0, terms) * double(work.k) * 1.6 * warps * work.times;
        dotBytes = std::max(dotBytes, (work.m + work.n) * work.k * work.bytesA);
        barriers += 2 * work.times;
        break;
      }
      auto [rows, columns] = tileDot(work.m, work.n, warps, isChained);
      double copies = std::max(1.0, double(warps) / double(rows * columns * work.batch));
      double fragments = double(work.batch * (work.m / 8) * (work.n / 8)) / double(rows * columns);
      double steps = std::max<double>(1, double(work.k) / 8);
      double own = std::max(1.0, fragments) * steps;
      // A SIMD-group has whole rows of the other dot's result only while there are enough of them.
      bool registersA = work.registersA && 8 * warps <= work.m;
      double loadsA = registersA ? 0 : double(work.m) / (8.0 * double(rows));
      double loadsB = double(work.n) / (8.0 * double(columns)), loads = loadsA + loadsB;
      double groups = double(rows * columns) * copies;
      issue += groups * work.times * (own * (kMultiply + 1) + loads * steps * 3);
      // Rows in threadgroup memory have 16 bytes of padding.
      int64_t rowsA = registersA ? 0 : work.batch * work.m, rowsB = work.batch * work.k;
      int64_t a = rowsA * work.k * work.bytesA, b = rowsB * work.n * work.bytesB;
      int64_t paddedA = a + 16 * rowsA, paddedB = b + 16 * rowsB;
      // An operand that stays is staged once; the others in each step, through registers.
      double moved =
          (work.invariantA ? 0 : double(a)) / double(work.bytesA) + double(b) / double(work.bytesB);
      issue += moved / 32 * 0.75 * work.times + 8.0 * warps * work.times;
      // One that stays is there beside all others. What is staged for this dot lies where another
      // one's operands were, unless a loop has two buffers, which live on.
      bool isStaged = work.loop && (work.loadsA || work.loadsB);
      int64_t stepBytes = (work.invariantA ? 0 : paddedA) + paddedB;
      invariantBytes += work.invariantA ? paddedA : 0;
      choice.operandBytes = std::max(choice.operandBytes, stepBytes);
      dotBytes = isStaged && stages > 1 ? dotBytes + stepBytes : std::max(dotBytes, stepBytes);
      if (isStaged && stages > 1) {
        stagedBytes += (work.loadsA ? paddedA : 0) + (work.loadsB ? paddedB : 0);
        barriers += work.times;
        issue += 30.0 * warps * work.times;
        // What the next step needs waits in registers while this one multiplies.
        double next = double((work.loadsA ? a : 0) + (work.loadsB ? b : 0)) / (512.0 * warps);
        waitingOf[work.loop] += next * (kVectorRegisters + kAccessRegisters);
      } else {
        barriers += (isStaged ? 2 : 1) * work.times;
        // All of a step's operands are on their way before the first is written, and then are in
        // memory before the first is multiplied.
        double vectorsA = work.invariantA ? 0 : double(a) / (512.0 * warps);
        double vectorsB = double(b) / (512.0 * warps), vectors = vectorsA + vectorsB;
        // Operands of as many vectors go through registers side by side, one after another.
        if (vectorsA == vectorsB)
          vectors = std::min(vectors, kPassingVectors);
        staging = std::max(staging, vectors * (kVectorRegisters + kAccessRegisters) + dotRegisters);
      }
      // Two numbers of each fragment in a lane, of one step along K.
      bool isOnce = registersA && work.m <= 8 * int64_t(rows);
      double heldB = isOnce ? std::min(loadsB, kPassingFragments) : loadsB;
      double fragmentRegisters =
          (loadsA * double(work.fragmentA) + heldB * double(work.fragmentB)) / 2;
      if (fragmentRegisters >= kManyFragments)
        fragmentRegisters *= 2;
      working = std::max(working, fragmentRegisters + kMultiplyRegisters + dotRegisters);
      break;
    }
    }
  }

  // The most that is there at a time.
  double most = 0;
  for (unsigned at = 0; at <= phase; ++at) {
    double sum = 0, other = 0;
    for (const Held &tile : held) {
      if (at < tile.from || at > tile.to)
        continue;
      if (tile.m) {
        auto [rows, columns] = tileDot(tile.m, tile.n, warps, isChained);
        double batch = double(tile.tile.elements) / double(tile.m * tile.n);
        double spread = std::min<double>(warps, double(rows * columns) * batch);
        sum += double(tile.tile.elements) / (32.0 * spread);
      } else {
        other += tile.tile.registers(warps);
      }
    }
    most = std::max(most, sum + other + std::max(workingAt[at], stagingAt[at]));
  }
  double waiting = 0;
  for (auto [loop, registers] : waitingOf)
    waiting = std::max(waiting, registers);
  choice.registers = kBaseRegisters + int64_t(std::ceil(most + waiting));
  choice.threadgroupBytes = invariantBytes + std::max(dotBytes + stagedBytes, partialBytes);
  choice.operandBytes += invariantBytes;
  // What does not fit is split by later passes.
  choice.threadgroupBytes = std::min(choice.threadgroupBytes, budget.getThreadgroupBytes());

  // A thread gets no more registers than let a core hold one threadgroup.
  int64_t limit = std::min(budget.getRegisters(), getRegisterLimit(32 * warps));
  double waits = kLineWait * lines, syncing = barriers * (30 + 2.0 * warps);
  auto price = [&](int64_t registers) {
    double spilled = std::max<double>(0, double(registers - limit));
    choice.registers = std::min(registers, limit);
    choice.instructions = issue + 50 * spilled * warps;
    int64_t groups = getThreadsInFlight(choice.registers) / (32 * warps);
    if (choice.threadgroupBytes)
      groups = std::min(groups, Budget::kCoreThreadgroupBytes / choice.threadgroupBytes);
    groups = std::max<int64_t>(groups, 1);
    choice.inFlight = groups * 32 * warps;
    double span = (kDependent * choice.instructions + waits) / warps + syncing;
    return choice.instructions / kSchedulers + span / double(std::min(groups, kPrograms));
  };
  // Registers are known to a tenth: a choice that a few more would cost threads is not so good.
  int64_t registers = choice.wantedRegisters = choice.registers;
  choice.mostRegisters = std::llround(double(registers) * (isChained ? kChainedShare : 1));
  double sum = 0;
  for (double range : kRegisterRange)
    sum += price(std::llround(range * double(registers)));
  choice.cost = sum / double(std::size(kRegisterRange));
  price(registers);
  choice.lines = lines, choice.barriers = barriers;
  return choice;
}

} // namespace

ThreadChoice chooseThreads(FuncOp kernel, const Budget &budget, int warps, int stages) {
  Summary summary(kernel, budget);
  int most = static_cast<int>(std::min<int64_t>(32, budget.getThreads() / kSimdWidth));
  SmallVector<ThreadChoice> all;
  for (int w = 1; w <= 32; w *= 2) {
    if (warps ? w != warps : w > std::max(most, 1))
      continue;
    for (int s = 1; s <= 2; ++s)
      if (stages ? s == std::min(stages, 2) : (s == 1 || summary.hasStagedLoops()))
        all.push_back(summary.evaluate(w, s));
  }
  ThreadChoice best = *llvm::min_element(
      all, [](const ThreadChoice &a, const ThreadChoice &b) { return a.cost < b.cost; });
  double least = best.cost;
  auto distance = [](const ThreadChoice &choice) {
    return std::pair(std::abs(std::log2(choice.warps) - 2), choice.stages);
  };
  for (const ThreadChoice &choice : all)
    if (choice.cost <= kTie * least && distance(choice) < distance(best))
      best = choice;
  if (stages)
    best.stages = stages;
  return best;
}

} // namespace triton_metal
