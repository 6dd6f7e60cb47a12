// Tiles that are reduced more often than they are read and written get the layout that suits the
// reductions: see TTMPasses.td.

#include "analysis/CombineRegion.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/KernelWork.h"
#include "transforms/Passes.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

#include <cmath>
#include <map>

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMSPREADREDUCTIONS
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// Steps of a loop, for what is done once and what is done in each step.
constexpr double kSteps = 8;
/// Instructions of a SIMD-group for which a round through threadgroup memory waits, and a line of
/// device memory.
constexpr double kRound = 10, kLine = 10;
/// Instructions for an access to memory.
constexpr double kAccess = 2;
/// The numbers of a thread that one access brings at most.
constexpr int64_t kVector = 4;
/// The share of the usual layout's cost from which on it stands.
constexpr double kBetter = 0.9;

double getTimes(Operation *op) {
  double times = 1;
  for (auto loop = op->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>())
    times *= kSteps;
  return times;
}

/// Whether an operation takes a tile in another shape, as a row for reductions of all elements.
bool isRowOfAll(Operation *op) {
  auto view = dyn_cast<tt::ReshapeOp>(op);
  return view && view.getType().getRank() == 1 &&
         llvm::all_of(view->getUsers(), llvm::IsaPred<tt::ReduceOp>);
}

/// Whether a layout that suits its operand or result need not suit the other one.
bool movesElements(Operation *op) {
  return isa<tt::ReshapeOp, tt::TransOp, tt::JoinOp, tt::SplitOp, tt::CatOp, tt::GatherOp>(op) &&
         !isRowOfAll(op);
}

/// What is done to tiles of one shape.
struct Tiles {
  LinearLayout::Shape shape;
  SmallVector<tt::ReduceOp> reductions;
  /// Loads and stores.
  SmallVector<Operation *> accesses;
  /// Whether something else is done for which a layout counts.
  bool isBound = false;

  /// Whether all that goes to memory is done less often than some reduction.
  bool areReducedMost() const {
    auto most = [](auto &ops) {
      double times = 0;
      for (Operation *op : ops)
        times = std::max(times, getTimes(op));
      return times;
    };
    return most(reductions) > most(accesses);
  }
};

//===----------------------------------------------------------------------===//
// What a layout costs
//===----------------------------------------------------------------------===//

/// The bits of the row-major index that a reduction of the tile combines. One of all elements takes
/// the tile as a row of them.
uint32_t getMask(tt::ReduceOp op, const LinearLayout &tile) {
  auto type = cast<RankedTensorType>(op->getOperand(0).getType());
  return ArrayRef(tile.getShape()) == type.getShape()
             ? tile.dimMask(op->getAttrOfType<IntegerAttr>("axis").getInt())
             : uint32_t(type.getNumElements() - 1);
}

/// Instructions of a SIMD-group for a reduction.
double getReductionCost(tt::ReduceOp op, const LinearLayout &layout) {
  uint32_t mask = getMask(op, layout);
  auto count = [&](InDim part) {
    return double(
        llvm::count_if(layout.getBases(part), [&](uint32_t base) { return base & mask; }));
  };
  double values = op->getNumOperands();
  double combine = double(llvm::range_size(op.getCombineOp().front().without_terminator()));
  double registers = layout.getNumRegisters();
  double results = registers / std::exp2(count(InDim::Register));
  double cost = (registers - results) * combine;
  cost += results * count(InDim::Lane) * 1.5 * (combine + values);
  if (double groups = std::exp2(count(InDim::Simdgroup)); groups > 1)
    cost += kRound + results * (2 * values + groups * (combine + values / kVector));
  return cost;
}

/// Numbers side by side along a dimension in a thread, of which one access takes so many.
int64_t getVector(const LinearLayout &layout, unsigned dim) {
  int64_t vector = 1;
  for (uint32_t base : layout.getRegisterBases())
    if (vector < kVector && base == uint32_t(vector) << layout.dimShift(dim))
      vector *= 2;
  return vector;
}

/// Instructions for the rows and columns that a tile is made of.
double getOperandCost(const LinearLayout &layout) {
  double cost = 0;
  for (unsigned dim = 0; dim < layout.getRank(); ++dim) {
    int64_t numbers = int64_t(1) << llvm::popcount(layout.bitsAlong(InDim::Register, dim));
    cost += kAccess * double(numbers) / double(getVector(layout, dim));
  }
  return cost;
}

/// Instructions and lines of a load or store of the whole tile.
double getAccessCost(Operation *op, const LinearLayout &layout) {
  unsigned last = layout.getRank() - 1;
  int64_t vector = getVector(layout, last);
  double accesses = double(layout.getNumRegisters()) / double(vector);
  int64_t lanes = int64_t(1) << llvm::popcount(layout.bitsAlong(InDim::Lane, last));
  double rows = double(kSimdWidth) / double(lanes);
  auto pointer = cast<tt::PtrType>(getElementTypeOrSelf(op->getOperand(0).getType()));
  double bytes = double(lanes * vector * bytesOf(pointer.getPointeeType()));
  return accesses * (kAccess + kLine * rows * std::max(1.0, bytes / 128));
}

double getCost(const Tiles &tiles, const LinearLayout &layout) {
  double cost = 0, most = 0;
  for (tt::ReduceOp op : tiles.reductions) {
    double times = getTimes(op);
    cost += times * getReductionCost(op, layout);
    most = std::max(most, times);
  }
  for (Operation *op : tiles.accesses)
    cost += getTimes(op) * getAccessCost(op, layout);
  return cost + most * getOperandCost(layout);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// A layout whose threads have `vector` neighbours along a dimension, and so many bits of lanes and
/// of SIMD-groups along the last one; the other bits go along the other dimensions while they can.
LinearLayout makeLayout(ArrayRef<int64_t> shape, unsigned numSimdgroups, unsigned vectorDim,
                        int64_t vector, unsigned lanes, unsigned simdgroups) {
  LinearLayout usual = LinearLayout::defaultBlocked(shape, numSimdgroups);
  unsigned last = shape.size() - 1;
  SmallVector<int64_t> done(shape.size(), 1);
  auto take = [&](LinearLayout::Bases &bases, size_t count, unsigned dim, int64_t extent) {
    for (; bases.size() < count && done[dim] < std::min(extent, shape[dim]); done[dim] *= 2)
      bases.push_back(uint32_t(done[dim]) << usual.dimShift(dim));
  };
  auto spread = [&](size_t count, size_t alongLast) {
    LinearLayout::Bases bases;
    take(bases, std::min(count, alongLast), last, shape[last]);
    for (unsigned dim = last; dim-- > 0;)
      take(bases, count, dim, shape[dim]);
    take(bases, count, last, shape[last]);
    bases.resize(count, 0);
    return bases;
  };
  constexpr size_t kAll = 31;
  LinearLayout::Bases registers;
  take(registers, kAll, vectorDim, vector);
  LinearLayout::Bases lane = spread(llvm::Log2_32(kSimdWidth), lanes);
  LinearLayout::Bases simdgroup = spread(llvm::Log2_32(numSimdgroups), simdgroups);
  for (unsigned dim = shape.size(); dim-- > 0;)
    take(registers, kAll, dim, shape[dim]);
  return LinearLayout(shape, registers, lane, simdgroup);
}

/// The cheapest layout; nothing if the usual one is about as good.
std::optional<LinearLayout> choose(const Tiles &tiles, unsigned numSimdgroups) {
  ArrayRef<int64_t> shape = tiles.shape;
  LinearLayout usual = tiles.accesses.empty() ? LinearLayout::defaultBlocked(shape, numSimdgroups)
                                              : *getLayout(tiles.accesses.front()->getOperand(0));
  double most = kBetter * getCost(tiles, usual);
  std::optional<LinearLayout> best;
  int64_t vectors = std::min<int64_t>(kVector, usual.getNumRegisters());
  for (unsigned dim = 0; dim < shape.size(); ++dim)
    for (int64_t vector = 1; vector <= vectors; vector *= 2)
      for (unsigned lanes = 0; lanes <= llvm::Log2_32(kSimdWidth); ++lanes)
        for (unsigned groups = 0; groups <= llvm::Log2_32(numSimdgroups); ++groups) {
          LinearLayout layout = makeLayout(shape, numSimdgroups, dim, vector, lanes, groups);
          if (double cost = getCost(tiles, layout); cost < most) {
            most = cost;
            best = layout;
          }
        }
  return best;
}

struct TTMSpreadReductionsPass : impl::TTMSpreadReductionsBase<TTMSpreadReductionsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    unsigned numSimdgroups = getNumSimdgroups(module);
    for (const Tiles &tiles : collect(module)) {
      if (tiles.isBound || tiles.shape.size() < 2 || !tiles.areReducedMost())
        continue;
      std::optional<LinearLayout> layout = choose(tiles, numSimdgroups);
      if (!layout)
        continue;
      for (Operation *op : tiles.accesses)
        setLayouts(op, *layout, *layout);
      for (tt::ReduceOp op : tiles.reductions) {
        auto type = cast<RankedTensorType>(op->getOperand(0).getType());
        LinearLayout operand = layout->reshape(type.getShape());
        setLayouts(op, operand, *inferResultLayout(op, 0, operand));
      }
    }
    if (failed(verifyLayouts(module)))
      signalPassFailure();
  }

private:
  /// The tiles of a module by their shapes.
  static std::vector<Tiles> collect(ModuleOp module) {
    std::vector<Tiles> all;
    auto get = [&](Value value) -> Tiles & {
      LinearLayout::Shape shape(cast<RankedTensorType>(value.getType()).getShape());
      auto it = llvm::find_if(all, [&](const Tiles &tiles) { return tiles.shape == shape; });
      return it != all.end() ? *it : all.emplace_back(Tiles{shape, {}, {}, false});
    };
    module.walk([&](Operation *op) {
      LayoutRule rule = getLayoutRule(op);
      if (auto reduce = dyn_cast<tt::ReduceOp>(op)) {
        Value tile = op->getOperand(0);
        if (Operation *view = tile.getDefiningOp(); view && isRowOfAll(view))
          tile = view->getOperand(0);
        Tiles &tiles = get(tile);
        if (isCommutative(reduce.getCombineOp().front()))
          tiles.reductions.push_back(reduce);
        else
          tiles.isBound = true;
      } else if (rule == LayoutRule::Memory || rule == LayoutRule::Dot || isa<tt::ScanOp>(op) ||
                 movesElements(op)) {
        bool isAccess = isa<tt::LoadOp, tt::StoreOp>(op);
        if (isAccess && isa<RankedTensorType>(op->getOperand(0).getType()))
          get(op->getOperand(0)).accesses.push_back(op);
        for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
          if (!isAccess && isa<RankedTensorType>(value.getType()))
            get(value).isBound = true;
      }
    });
    return all;
  }
};

} // namespace
} // namespace triton_metal
