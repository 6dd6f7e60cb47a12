#include "transforms/SliceChoice.h"

#include "transforms/TTSlicing.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cstdlib>

using namespace mlir;

namespace triton_metal {

namespace {

/// Of the registers that a thread can have, those that a slice may need by the model, which finds
/// fewer than large kernels turn out to need. A core then holds 512 threads and more.
constexpr double kAim = 0.7;
/// Slices load again what all rows need: they must take away so much of what a thread needs.
constexpr double kGain = 0.8;
/// The registers that a thread may turn out to need, over those that the model finds.
constexpr double kUncertain = 1.1;
/// What slices in a loop of their own cost, over what the model knows: compilers move the sums of a
/// loop within another one.
constexpr double kNested = 1.2;
/// What a core costs with more threads in flight must be so much less by the model.
constexpr double kLessCost = 0.95;
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

/// Whether a tile is a part of a slice already.
bool isInSlices(Value tile) {
  for (Operation *op = tile.getParentRegion()->getParentOp(); op; op = op->getParentOp())
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && (getSlices(loop) || getStepSlices(loop) > 1))
      return true;
  return false;
}

/// Whether threadgroup memory alone keeps a core from holding as many threads as it can.
bool isLimitedByMemory(const ThreadChoice &expected) {
  int64_t threads = kSimdWidth * expected.warps;
  return Budget::getThreadsInFlight(expected.threadgroupBytes, threads) <
         Budget::getThreadsInFlight(0, threads);
}

/// Whether slices have a loop of their own, in which they are steps.
bool hasInnerSlices(tt::FuncOp kernel) {
  return kernel
      .walk([](scf::ForOp loop) {
        return getSlices(loop) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The registers that a thread can have.
int64_t getLimit(int warps, const Budget &budget) {
  return std::min(budget.getRegisters(), getRegisterLimit(kSimdWidth * warps));
}

} // namespace

bool SliceChoice::fits(int64_t registers, int warps, const Budget &budget) {
  return !slicesAll() && registers <= getLimit(warps, budget);
}

std::optional<Candidate> SliceChoice::choose(int warps, int stages, bool isChosen) {
  // What lacks registers has none left for what a second stage loads.
  ThreadChoice single = expectWhole(warps, 1);
  if (!fits(single)) {
    Candidate best = weigh(single);
    return isChosen ? chooseAgain(best) : best;
  }
  Candidate kernel{nullptr, expectWhole(warps, stages)};
  if (!isChosen)
    return holdMoreThreads(kernel);
  Candidate best = kernel;
  forEachNumber([&](int other) {
    Candidate whole{nullptr, expectWhole(other, kernel.expected.stages)};
    if (!fits(whole.expected))
      return;
    Candidate sliced = holdMoreThreads(whole);
    if (sliced.slices && sliced.expected.cost < kLessCost * kernel.expected.cost &&
        sliced.expected.cost < best.expected.cost)
      best = sliced;
  });
  return best.slices ? std::optional(best) : std::nullopt;
}

void SliceChoice::forEachNumber(function_ref<void(int)> weighs) {
  int64_t most = std::min<int64_t>(32, budget.getThreads() / kSimdWidth);
  for (int warps = 1; warps <= most; warps *= 2)
    weighs(warps);
}

bool SliceChoice::fits(const ThreadChoice &expected) {
  return fits(expected.mostRegisters, expected.warps, budget) && expected.fitsMemory(budget);
}

SlicedKernel &SliceChoice::getSpread() {
  if (!spread) {
    OwningOpRef<ModuleOp> copy(module.clone());
    spreadLeaves(getKernel(*copy));
    spread = std::make_unique<SlicedKernel>(std::move(copy), budget);
  }
  return *spread;
}

//===--------------------------------------------------------------------===//
// For threads in flight
//===--------------------------------------------------------------------===//

ThreadChoice SliceChoice::expectWhole(int warps, int stages) {
  if (stages > 1) {
    ThreadChoice staged = chooseThreads(whole, budget, warps, stages);
    if (staged.threadgroupBytes <= budget.getPipelinedBytes())
      return staged;
  }
  return chooseThreads(whole, budget, warps, 1);
}

Candidate SliceChoice::holdMoreThreads(const Candidate &kept) {
  int warps = kept.expected.warps, stages = kept.expected.stages;
  Candidate best = kept;
  for (int round = 0; round < kRounds && isLimitedByMemory(best.expected); ++round) {
    SlicedKernel *from = round ? best.slices : &getSpread();
    Candidate found = best;
    for (unsigned id = 0; id < from->getDims().getNumClasses(); ++id)
      forEachSum(*from, id, kMostParts, [&](SlicedKernel &slices) {
        // A loop of its own would hold the sums twice (docs/roadmap.md).
        if (hasInnerSlices(slices.getKernel()))
          return false;
        Candidate trial{&slices, slices.expect(warps, stages)};
        // More slices have more barriers and steps than the model may know.
        if (fits(trial.expected) && trial.expected.cost < kLessCost * found.expected.cost)
          found = trial;
        return trial.expected.inFlight < Budget::kCoreThreads;
      });
    if (found.slices == best.slices)
      break;
    best = found;
  }
  return best;
}

//===--------------------------------------------------------------------===//
// For registers
//===--------------------------------------------------------------------===//

Candidate SliceChoice::weigh(const ThreadChoice &kept) {
  aim = int64_t(kAim * double(getLimit(kept.warps, budget)));
  SlicedKernel &start = getSpread();
  if (slicesAll())
    return sliceRows(start, kept);
  Candidate best{nullptr, kept};
  auto take = [&](const Candidate &candidate) {
    if (candidate.slices && (!best.slices || lacksLess(candidate, best)))
      best = candidate;
  };
  for (int64_t most = 2; most <= kMostParts; most *= 2) {
    Candidate sums = sliceSums(start, kept, most);
    if (!sums.slices)
      break;
    take(sums);
    if (fits(sums.expected))
      break;
    take(sliceRows(*sums.slices, sums.expected));
  }
  take(sliceRows(start, kept));
  // Operands that do not fit are staged in parts: slices of rows may cost more than that.
  return holdMoreThreads(lacksLess({nullptr, kept}, best) ? Candidate{nullptr, kept} : best);
}

bool SliceChoice::lacksLess(const Candidate &a, const Candidate &b) {
  auto getLack = [&](const Candidate &candidate) {
    const ThreadChoice &expected = candidate.expected;
    int64_t registers = expected.mostRegisters - getLimit(expected.warps, budget);
    bool isNested = candidate.slices && hasInnerSlices(candidate.slices->getKernel());
    return std::pair(std::max<int64_t>(registers, 0), expected.cost * (isNested ? kNested : 1));
  };
  return getLack(a) < getLack(b);
}

void SliceChoice::forEachSum(SlicedKernel &kernel, unsigned id, int64_t most,
                             function_ref<bool(SlicedKernel &)> weighs) {
  const TileDims &dims = kernel.getDims();
  if (!dims.isSummed(id) || isInSlices(dims.getMembers(id).front().tile))
    return;
  int64_t longest = std::min(most, dims.getSize(id) / kLeastRows);
  for (int64_t parts = 2; parts <= longest; parts *= 2) {
    SlicedKernel *slices = kernel.slice(id, parts);
    if (!slices || !weighs(*slices))
      return;
  }
}

Candidate SliceChoice::sliceSums(SlicedKernel &kernel, const ThreadChoice &kept, int64_t most) {
  Candidate best{nullptr, kept};
  auto isLess = [&](const ThreadChoice &a, const ThreadChoice &b) {
    int64_t enough = budget.getDotBytes();
    return std::pair(std::max(a.operandBytes, enough), a.wantedRegisters) <
           std::pair(std::max(b.operandBytes, enough), b.wantedRegisters);
  };
  for (int round = 0; round < kRounds && !fits(best.expected); ++round) {
    SlicedKernel &from = best.slices ? *best.slices : kernel;
    Candidate found{nullptr, best.expected};
    for (unsigned id = 0; id < from.getDims().getNumClasses() && !fits(found.expected); ++id)
      forEachSum(from, id, most, [&](SlicedKernel &slices) {
        Candidate trial{&slices, slices.expect(kept.warps, 1)};
        if (isLess(trial.expected, found.expected))
          found = trial;
        return !fits(found.expected);
      });
    if (!found.slices)
      break;
    best = found;
  }
  return best;
}

Candidate SliceChoice::sliceRows(SlicedKernel &kernel, const ThreadChoice &kept) {
  Candidate best{&kernel, kept};
  for (int round = 0; round < kRounds; ++round) {
    if (best.expected.wantedRegisters <= aim && !slicesAll())
      break;
    Candidate found = slicesAll() ? sliceAny(best) : sliceOnce(best);
    if (!found.slices)
      break;
    best = found;
  }
  bool isEnough = double(best.expected.wantedRegisters) <= kGain * double(kept.mostRegisters);
  bool isWorse = !isEnough && !slicesAll() && kept.fitsMemory(budget);
  if (isWorse || best.slices == spread.get())
    return {nullptr, kept};
  return best;
}

Candidate SliceChoice::sliceOnce(const Candidate &kernel) {
  int warps = kernel.expected.warps;
  // Fewer registers than the aim are worth nothing.
  auto getNeed = [&](const ThreadChoice &expected) {
    return std::max(expected.wantedRegisters, aim);
  };
  Candidate found{nullptr, kernel.expected};
  const TileDims &dims = kernel.slices->getDims();
  for (unsigned id = 0; id < dims.getNumClasses(); ++id) {
    if (!dims.isFree(id))
      continue;
    int64_t most = std::min(kMostParts, dims.getSize(id) / kLeastRows);
    if (most < 2)
      continue;
    // Most classes take nothing away, in however many slices.
    SlicedKernel *last = kernel.slices->slice(id, most);
    if (!last)
      continue;
    int64_t least = getNeed(last->expect(warps, 1)), known = getNeed(found.expected);
    if (found.slices ? least > known : least >= known)
      continue;
    for (int64_t parts = 2; parts <= most; parts *= 2) {
      SlicedKernel *slices = kernel.slices->slice(id, parts);
      if (!slices)
        continue;
      Candidate trial{slices, slices->expect(warps, 1)};
      int64_t need = getNeed(trial.expected);
      known = getNeed(found.expected);
      if (need < known ||
          (found.slices && need == known && trial.expected.cost < found.expected.cost))
        found = trial;
      if (need == aim)
        break;
    }
  }
  return found;
}

Candidate SliceChoice::sliceAny(const Candidate &kernel) {
  const TileDims &dims = kernel.slices->getDims();
  for (unsigned id = 0; id < dims.getNumClasses(); ++id)
    if ((dims.isFree(id) || dims.isSummed(id)) && dims.getSize(id) > 1)
      for (int64_t parts : {dims.getSize(id), dims.getSize(id) / 2, dims.getSize(id) / 8})
        if (parts > 1 && parts <= kMostParts)
          if (SlicedKernel *slices = kernel.slices->slice(id, parts))
            return {slices, slices->expect(kernel.expected.warps, 1)};
  return {nullptr, kernel.expected};
}

bool SliceChoice::lacksMany(const Candidate &candidate) {
  const ThreadChoice &expected = candidate.expected;
  return double(expected.mostRegisters) > kUncertain * double(getLimit(expected.warps, budget));
}

Candidate SliceChoice::chooseAgain(Candidate best) {
  int first = best.expected.warps;
  forEachNumber([&](int warps) {
    if (warps == first)
      return;
    Candidate other{nullptr, expectWhole(warps, 1)};
    if (!fits(other.expected))
      other = weigh(other.expected);
    if (std::pair(lacksMany(other), other.expected.cost) <
        std::pair(lacksMany(best), best.expected.cost))
      best = other;
  });
  return best;
}

} // namespace triton_metal
