// Works on the rows of tiles in slices, one after another, where a thread would need more registers
// than it can have.

#include "analysis/TileDims.h"
#include "dialect/msl/MSL.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Dots.h"
#include "transforms/Passes.h"
#include "transforms/TTSlicing.h"
#include "transforms/ThreadChoice.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

#include <cstdlib>

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTSLICETILES
#include "transforms/Passes.h.inc"

namespace {

/// Of the registers that a thread can have, those that a slice may need by the model, which finds
/// fewer than large kernels turn out to need. A core then holds 512 threads and more.
constexpr double kAim = 0.7;
/// Slices load again what all rows need: they must take away so much of what a thread needs.
constexpr double kGain = 0.8;
/// The registers that a thread may turn out to need, over those that the model finds.
constexpr double kUncertain = 1.1;
/// The fewest rows of a slice: two rows of fragments of a dot.
constexpr int64_t kLeastRows = 16;
constexpr int64_t kMostParts = 16;
/// Tiles of different phases of a kernel are sliced for themselves, and slices once more.
constexpr int kRounds = 6;

/// With TRITON_METAL_STRESS=slices, whatever can be sliced is, in as short slices as can be.
bool slicesAll() {
  static const char *stress = std::getenv("TRITON_METAL_STRESS");
  return stress && StringRef(stress) == "slices";
}

/// A kernel in slices, with what the model expects of it.
struct Sliced {
  OwningOpRef<ModuleOp> module;
  int64_t registers = 0;
  double cost = 0;

  bool isBetterThan(const Sliced &other) const {
    return registers < other.registers ||
           (other.module && registers == other.registers && cost < other.cost);
  }
};

/// The most slices of one tile. Forgets which loops are over slices.
int64_t countSlices(tt::FuncOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) {
    if (getSlices(loop) || getStepSlices(loop) > 1)
      loops.push_back(loop);
  });
  int64_t most = 1;
  for (scf::ForOp loop : loops) {
    int64_t slices = 1;
    for (; loop; loop = loop->getParentOfType<scf::ForOp>())
      slices *= std::max<int64_t>(getSlices(loop), 1) * getStepSlices(loop);
    most = std::max(most, slices);
  }
  for (scf::ForOp loop : loops) {
    loop->removeAttr(kSlicesAttr);
    loop->removeAttr(kStepSlicesAttr);
  }
  return most;
}

/// Whether a tile is a part of a slice already.
bool isInSlices(Value tile) {
  for (Operation *op = tile.getParentRegion()->getParentOp(); op; op = op->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && (getSlices(loop) || getStepSlices(loop) > 1))
      return true;
  return false;
}

/// A kernel with the SIMD-groups that are expected, in slices if it has a module.
struct Candidate {
  Sliced sliced;
  ThreadChoice expected;
};

struct TTSliceTilesPass : impl::TTSliceTilesBase<TTSliceTilesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    tt::FuncOp kernel = getKernel(module);
    if (!kernel)
      return;
    // Where one stage was chosen, the kernel has been weighed.
    auto known = module->getAttrOfType<IntegerAttr>(kMostRegistersAttr);
    bool isChosen = module->removeAttr(kChosenWarpsAttr) != nullptr;
    module->removeAttr(kMostRegistersAttr);
    bool isKnown = known && readAttr(ttm::TTMDialect::getNumStagesAttrName()) == 1;
    int warps = readAttr(ttm::TTMDialect::getNumWarpsAttrName());
    if ((isKnown && fits(known.getInt(), warps)) || hasTensorOperations(kernel))
      return;
    Candidate best{{}, evaluate(kernel, warps)};
    if (fits(best.expected))
      return;
    best = weigh(kernel, best.expected);
    // The choice did not know of slices. They cost more with some numbers of SIMD-groups than with
    // others, and with some there are none.
    if (isChosen)
      best = chooseAgain(kernel, std::move(best));
    if (best.expected.warps != warps) {
      setAttr(ttm::TTMDialect::getNumWarpsAttrName(), best.expected.warps);
      setAttr(ttm::TTMDialect::getNumStagesAttrName(), 1);
    }
    if (isChosen)
      module->setAttr(ttm::TTMDialect::getChoiceAttrName(),
                      StringAttr::get(&getContext(), best.expected.describe()));
    if (best.sliced.module)
      replace(kernel, getKernel(*best.sliced.module));
  }

private:
  void replace(tt::FuncOp kernel, tt::FuncOp sliced) {
    // Slices of rows give nothing on, and those of sums do.
    auto isOverRows = [](scf::ForOp loop) {
      return getSlices(loop) && !loop.getNumResults() ? WalkResult::interrupt()
                                                      : WalkResult::advance();
    };
    if (sliced.walk(isOverRows).wasInterrupted())
      getOperation()->setAttr(ttm::TTMDialect::getLacksRegistersAttrName(),
                              UnitAttr::get(&getContext()));
    setAttr(ttm::TTMDialect::getSlicesAttrName(), static_cast<int>(countSlices(sliced)));
    // No register is left for what a second stage loads.
    setAttr(ttm::TTMDialect::getNumStagesAttrName(), 1);
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(sliced);
    eliminateCommonSubExpressions(rewriter, dominance, sliced);
    sliced->remove();
    kernel->getBlock()->getOperations().insert(kernel->getIterator(), sliced);
    kernel->erase();
  }

  int64_t getLimit(int warps) {
    return std::min(Budget::of(getOperation()).getRegisters(),
                    getRegisterLimit(kSimdWidth * warps));
  }
  bool fits(int64_t registers, int warps) { return registers <= getLimit(warps) && !slicesAll(); }
  int64_t getDotBytes() { return Budget::of(getOperation()).getDotBytes(); }
  bool fits(const ThreadChoice &expected) {
    return fits(expected.mostRegisters, expected.warps) &&
           expected.fitsMemory(Budget::of(getOperation()));
  }

  /// The kernel with the SIMD-groups of `whole`, which lacks registers or threadgroup memory: in
  /// slices, if these take enough away.
  Candidate weigh(tt::FuncOp kernel, const ThreadChoice &whole) {
    aim = int64_t(kAim * double(getLimit(whole.warps)));
    tried = whole.warps;
    Sliced start{getOperation().clone(), whole.wantedRegisters};
    spreadLeaves(getKernel(*start.module));
    if (slicesAll())
      return sliceRows(std::move(start), whole);
    Candidate best{{}, whole};
    auto take = [&](Candidate candidate) {
      if (candidate.sliced.module && (!best.sliced.module || lacksLess(candidate, best)))
        best = std::move(candidate);
    };
    for (int64_t most = 2; most <= kMostParts && !fits(best.expected); most *= 2) {
      Candidate sums = sliceSums(start, whole, most);
      if (!sums.sliced.module)
        break;
      if (!fits(sums.expected))
        take(sliceRows(Sliced{OwningOpRef<ModuleOp>(sums.sliced.module->clone()),
                              sums.expected.wantedRegisters},
                       sums.expected));
      take(std::move(sums));
    }
    take(sliceRows(std::move(start), whole));
    // Operands that do not fit are staged in parts: slices of rows may cost more than that.
    return lacksLess({{}, whole}, best) ? Candidate{{}, whole} : std::move(best);
  }

  /// Of kernels with as many SIMD-groups: registers come first, and then the cost.
  bool lacksLess(const Candidate &a, const Candidate &b) {
    auto getLack = [&](const ThreadChoice &expected) {
      int64_t registers = expected.mostRegisters - getLimit(expected.warps);
      return std::pair(std::max<int64_t>(registers, 0), expected.cost);
    };
    return getLack(a.expected) < getLack(b.expected);
  }

  /// The kernel with the steps of its products along K in slices: as few as let a thread have all
  /// of its registers and threadgroup memory hold the operands, or `most`. No module where that
  /// takes nothing away.
  Candidate sliceSums(Sliced &kernel, const ThreadChoice &whole, int64_t most) {
    Candidate best{{}, whole};
    auto isLess = [&](const ThreadChoice &a, const ThreadChoice &b) {
      return std::pair(std::max(a.operandBytes, getDotBytes()), a.wantedRegisters) <
             std::pair(std::max(b.operandBytes, getDotBytes()), b.wantedRegisters);
    };
    for (int round = 0; round < kRounds && !fits(best.expected); ++round) {
      Sliced &from = best.sliced.module ? best.sliced : kernel;
      TileDims dims(getKernel(*from.module));
      Candidate found{{}, best.expected};
      for (unsigned id = 0; id < dims.getNumClasses(); ++id) {
        if (!dims.isSummed(id) || isInSlices(dims.getMembers(id).front().tile))
          continue;
        int64_t longest = std::min(most, dims.getSize(id) / kLeastRows);
        for (int64_t parts = 2; parts <= longest && !fits(found.expected); parts *= 2) {
          Sliced trial{from.module->clone()};
          tt::FuncOp sliced = getKernel(*trial.module);
          if (!slice(sliced, id, parts))
            break;
          if (ThreadChoice expected = evaluate(sliced, tried); isLess(expected, found.expected))
            found = {std::move(trial), expected};
        }
      }
      if (!found.sliced.module)
        break;
      best = std::move(found);
    }
    return best;
  }

  /// The kernel with its rows in slices, if these take enough away.
  Candidate sliceRows(Sliced best, const ThreadChoice &whole) {
    for (int round = 0; round < kRounds && (best.registers > aim || slicesAll()); ++round) {
      Sliced found = slicesAll() ? sliceAny(best) : sliceOnce(best);
      if (!found.module)
        break;
      best = std::move(found);
    }
    if (double(best.registers) > kGain * double(whole.mostRegisters) && !slicesAll() &&
        whole.fitsMemory(Budget::of(getOperation())))
      return {{}, whole};
    ThreadChoice expected = evaluate(getKernel(*best.module), whole.warps);
    return {std::move(best), expected};
  }

  /// Whether a thread lacks more registers than the model may be wrong by: how much they cost is
  /// not known then.
  bool lacksMany(const Candidate &candidate) {
    const ThreadChoice &expected = candidate.expected;
    return double(expected.mostRegisters) > kUncertain * double(getLimit(expected.warps));
  }

  /// The cheapest, by the model, of this candidate and those with other numbers of SIMD-groups.
  Candidate chooseAgain(tt::FuncOp kernel, Candidate best) {
    int most = static_cast<int>(Budget::of(getOperation()).getThreads() / kSimdWidth);
    int first = best.expected.warps;
    for (int warps = 1; warps <= std::min(32, most); warps *= 2) {
      if (warps == first)
        continue;
      Candidate other{{}, evaluate(kernel, warps)};
      if (!fits(other.expected))
        other = weigh(kernel, other.expected);
      if (std::pair(lacksMany(other), other.expected.cost) <
          std::pair(lacksMany(best), best.expected.cost))
        best = std::move(other);
    }
    return best;
  }

  void setAttr(StringRef name, int value) {
    getOperation()->setAttr(name, Builder(&getContext()).getI32IntegerAttr(value));
  }
  int readAttr(StringRef name) { return getOperation()->getAttrOfType<IntegerAttr>(name).getInt(); }

  /// What the model expects with one stage.
  ThreadChoice evaluate(tt::FuncOp kernel, int warps) {
    return chooseThreads(kernel, Budget::of(getOperation()), warps, /*stages=*/1);
  }

  /// Products on tensor operations need whole tiles, and no model knows of their registers.
  bool hasTensorOperations(tt::FuncOp kernel) {
    Budget budget = Budget::of(getOperation());
    return kernel
        .walk([&](tt::DotOp dot) {
          const msl::MatrixInstruction *instruction = getInstruction(dot, budget);
          return instruction && instruction->inRegisters ? WalkResult::interrupt()
                                                         : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// The kernel with the tiles along a class of dimensions in slices. No module where that cannot
  /// be done.
  Sliced sliceClass(Sliced &kernel, unsigned id, int64_t parts) {
    Sliced trial{kernel.module->clone()};
    if (!slice(getKernel(*trial.module), id, parts))
      return {};
    ThreadChoice choice = evaluate(getKernel(*trial.module), tried);
    trial.registers = std::max(choice.wantedRegisters, aim);
    trial.cost = choice.cost;
    return trial;
  }

  /// The kernel in slices along that class with which a thread needs the fewest registers, and in
  /// the cheapest way of those. No module if none takes any away.
  Sliced sliceOnce(Sliced &kernel) {
    Sliced found{{}, kernel.registers};
    TileDims dims(getKernel(*kernel.module));
    for (unsigned id = 0; id < dims.getNumClasses(); ++id) {
      if (!dims.isFree(id))
        continue;
      int64_t most = std::min(kMostParts, dims.getSize(id) / kLeastRows);
      if (most < 2)
        continue;
      // Most classes take nothing away, in however many slices.
      Sliced last = sliceClass(kernel, id, most);
      bool helps =
          found.module ? last.registers <= found.registers : last.registers < found.registers;
      if (!last.module || !helps)
        continue;
      for (int64_t parts = 2; parts <= most; parts *= 2) {
        Sliced trial = parts == most ? std::move(last) : sliceClass(kernel, id, parts);
        bool isEnough = trial.registers == aim;
        if (trial.module && trial.isBetterThan(found))
          found = std::move(trial);
        if (isEnough)
          break;
      }
    }
    return found;
  }

  /// The kernel in slices along some class that has none. No module if there is no such class.
  Sliced sliceAny(Sliced &kernel) {
    TileDims dims(getKernel(*kernel.module));
    for (unsigned id = 0; id < dims.getNumClasses(); ++id)
      if ((dims.isFree(id) || dims.isSummed(id)) && dims.getSize(id) > 1)
        for (int64_t parts : {dims.getSize(id), dims.getSize(id) / 2, dims.getSize(id) / 8})
          if (parts > 1 && parts <= kMostParts)
            if (Sliced found = sliceClass(kernel, id, parts); found.module)
              return found;
    return {};
  }

  /// Of what is being weighed: the registers that a slice may need, and the SIMD-groups.
  int64_t aim = 0;
  int tried = 0;
};

} // namespace
} // namespace triton_metal
