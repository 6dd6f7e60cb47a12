#include "transforms/ThreadChoice.h"

#include "transforms/Dots.h"
#include "transforms/KernelWork.h"

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
/// Registers of operands that are staged in parts, beside those: which part each thread has, and
/// numbers for what is not loaded.
static constexpr double kPartRegisters = 24;
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
/// Registers of each dot beyond the second, in kernels with more than a few that do not take each
/// other's results: where operands lie, which compilers keep from one dot to the next.
static constexpr int64_t kFurtherDotRegisters = 4, kFewDots = 3;
/// Instructions for each register that is spilled.
static constexpr double kSpill = 50;
/// Instructions for each number of a tile that changes threads, at once and in rounds.
static constexpr double kExchange = 6, kExchangeInRounds = 36;
/// Larger tiles change threads in rounds, with a place for each number.
static constexpr int64_t kStoredBytes = 16384;
static constexpr double kPlaceRegisters = 2.2;
/// Of costs that differ by less the model knows nothing.
static constexpr double kTie = 1.02;

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

bool ThreadChoice::fitsMemory(const Budget &budget) const {
  return operandBytes <= budget.getDotBytes() && exchangeBytes <= budget.getExchangeBytes(0);
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

ThreadChoice evaluate(const KernelWork &kernel, const Budget &budget, int warps, int stages) {
  ArrayRef<Work> works = kernel.getWorks();
  unsigned phase = kernel.getLastPhase();
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
    if (work.kind == WorkKind::Elements && work.like >= 0 &&
        works[work.like].kind == WorkKind::Reduce)
      each = resultsOf[work.like].first;
    double all = each * warps * work.times;
    switch (work.kind) {
    case WorkKind::Elements:
      issue += all * work.each;
      break;
    case WorkKind::Memory: {
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
    case WorkKind::Atomic:
      issue += all * 8;
      lines += all;
      break;
    case WorkKind::Exchange: {
      int64_t bytes = work.tile.elements * work.tile.bytes;
      choice.exchangeBytes = std::max(choice.exchangeBytes, bytes);
      issue += all * (bytes <= budget.getExchangeBytes(0) ? kExchange : kExchangeInRounds);
      // What a thread has of a large tile goes to its places number by number.
      if (work.tile.last < work.tile.elements && bytes > kStoredBytes)
        working = std::max(working, kPlaceRegisters * each);
      barriers += 2 * work.times;
      partialBytes = std::max(partialBytes, bytes);
      break;
    }
    case WorkKind::Reduce:
    case WorkKind::Scan: {
      Spread spread(work.tile, work.width, warps);
      int64_t lanes = work.alongLast ? spread.lanesLast : spread.lanesOther;
      int64_t groups = work.alongLast ? spread.warpsLast : spread.warpsOther;
      if (work.like >= 0 && works[work.like].kind == WorkKind::Dot) {
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
      if (work.kind == WorkKind::Scan)
        one += double(spread.perThread) * combine;
      // Several results of a thread, and prefixes, are written out: everything is there at once,
      // except for one vector that adds up row by row, and for vectors of which SIMD-groups alone
      // join their parts. What a thread has of each row of its own gives a result each.
      if (work.kind == WorkKind::Scan)
        working = std::max(working, 2.0 * double(spread.perThread));
      else if (results > 1 && (lanes > 1 || spread.vector == 1 || work.alongLast ||
                               (groups == 1 && results > double(spread.vector))))
        working = std::max(working, 0.8 * double(spread.perThread));
      if (groups > 1) {
        // Results that lie side by side are read as vectors.
        double vector = work.alongLast ? 1 : std::min(results, double(spread.vector));
        one += 8 + results * (2 * values + double(groups) * (work.each + values / vector));
        barriers += (work.kind == WorkKind::Scan ? 2 : 1) * work.times;
        int64_t count = std::max<int64_t>(1, work.tile.elements / work.axis);
        partialBytes = std::max(partialBytes, count * groups * work.tile.bytes * work.values);
      }
      issue += one * warps * work.times;
      break;
    }
    case WorkKind::Dot: {
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
        // Operands of as many vectors go through registers side by side, one after another; those
        // that are staged in parts wait there, with barriers around each part.
        int64_t most = budget.getDotBytes() - std::min(invariantBytes, budget.getInvariantBytes());
        most = std::max<int64_t>({most, budget.getDotBytes() / 2, 1});
        double parts = 0;
        if (stepBytes > most) {
          barriers += 2 * work.times * double((stepBytes - 1) / most);
          parts = kPartRegisters;
        } else if (vectorsA == vectorsB) {
          vectors = std::min(vectors, kPassingVectors);
        }
        staging = std::max(staging,
                           vectors * (kVectorRegisters + kAccessRegisters) + dotRegisters + parts);
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
    for (const Held &tile : kernel.getHeld()) {
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
  int64_t dots = llvm::count_if(works, [](const Work &work) { return work.kind == WorkKind::Dot; });
  choice.registers = kBaseRegisters + int64_t(std::ceil(most + waiting)) +
                     (isChained ? 0 : kFurtherDotRegisters * (dots > kFewDots ? dots - 2 : 0));
  choice.threadgroupBytes = invariantBytes + std::max(dotBytes + stagedBytes, partialBytes);
  choice.operandBytes += std::min(invariantBytes, budget.getInvariantBytes());
  // What does not fit is split by later passes.
  choice.threadgroupBytes = std::min(choice.threadgroupBytes, budget.getThreadgroupBytes());

  // A thread gets no more registers than let a core hold one threadgroup.
  int64_t limit = std::min(budget.getRegisters(), getRegisterLimit(32 * warps));
  double waits = kLineWait * lines, syncing = barriers * (30 + 2.0 * warps);
  auto price = [&](int64_t registers) {
    double spilled = std::max<double>(0, double(registers - limit));
    choice.registers = std::min(registers, limit);
    choice.instructions = issue + kSpill * spilled * warps;
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
  return chooseThreads(KernelWork(kernel, budget), budget, warps, stages);
}

ThreadChoice chooseThreads(const KernelWork &work, const Budget &budget, int warps, int stages) {
  int most = static_cast<int>(std::min<int64_t>(32, budget.getThreads() / kSimdWidth));
  SmallVector<ThreadChoice> all;
  for (int w = 1; w <= 32; w *= 2) {
    if (warps ? w != warps : w > std::max(most, 1))
      continue;
    for (int s = 1; s <= 2; ++s)
      if (stages ? s == std::min(stages, 2) : (s == 1 || work.hasStagedLoops()))
        all.push_back(evaluate(work, budget, w, s));
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
