// What a target leaves a kernel, and how passes share it: the only place that splits the limits of
// a threadgroup.
#ifndef TRITON_METAL_TRANSFORMS_BUDGET_H
#define TRITON_METAL_TRANSFORMS_BUDGET_H

#include "dialect/msl/Target.h"

#include <algorithm>

namespace triton_metal {

class Budget {
public:
  explicit Budget(msl::TargetAttr target) : target(target) {}
  /// The budget of the module around `op`.
  static Budget of(mlir::Operation *op) { return Budget(msl::TargetAttr::get(op)); }

  bool has(msl::Feature feature) const { return target.has(feature); }
  /// The best of the target's instructions that suit; null where there is none.
  const msl::MatrixInstruction *
  getMatrixInstruction(llvm::function_ref<bool(const msl::MatrixInstruction &)> suits) const {
    return target.getMatrixInstruction(suits);
  }

  /// What a core of Apple's G13 has (docs/threads.md).
  static constexpr int64_t kCoreThreads = 1024, kCoreThreadgroupBytes = 60 * 1024;
  /// The threads that a core holds of threadgroups with so many bytes and threads.
  static int64_t getThreadsInFlight(int64_t threadgroupBytes, int64_t threads) {
    int64_t groups = kCoreThreads / std::max<int64_t>(threads, 1);
    if (threadgroupBytes > 0)
      groups = std::min(groups, kCoreThreadgroupBytes / threadgroupBytes);
    return groups * threads;
  }

  /// Threads in flight with which a core hides the latency of its memory.
  static constexpr int64_t kEnoughThreads = 768;
  /// Threads in flight that use all registers of a thread.
  static constexpr int64_t kFullThreads = 384;
  /// Whether a threadgroup of so many threads may take `more` bytes for `less`: a core then holds
  /// as many threads, or enough of them.
  static bool mayTake(int64_t more, int64_t less, int64_t threads,
                      int64_t enough = kEnoughThreads) {
    return getThreadsInFlight(more, threads) >= std::min(getThreadsInFlight(less, threads), enough);
  }

  int64_t getThreads() const { return target.getThreads(); }
  /// 32-bit registers of a thread.
  int64_t getRegisters() const { return target.getRegisters(); }

  /// All threadgroup memory.
  int64_t getThreadgroupBytes() const { return target.getThreadgroupBytes(); }
  /// For the operands of dots. The rest is for reductions and layout conversions beside them.
  int64_t getDotBytes() const { return leave(2048); }
  /// For the operands of dots in all slots of double-buffered loops, which live longer.
  int64_t getPipelinedBytes() const { return leave(4096); }
  /// For operands of dots that stay over a whole loop.
  int64_t getInvariantBytes() const { return getThreadgroupBytes() / 2; }
  /// For the partial results of one reduction; beyond it the tile is laid out anew first.
  /// That takes memory, too, so that small ones stay.
  int64_t getPartialBytes() const { return std::max<int64_t>(getThreadgroupBytes() / 4, 1024); }
  /// For one layout conversion beside tiles of `live` bytes: it takes rounds where it needs more.
  int64_t getExchangeBytes(int64_t live) const {
    return std::max<int64_t>(leave(1024) - live, 256);
  }

private:
  int64_t leave(int64_t bytes) const {
    return std::max<int64_t>(getThreadgroupBytes() - bytes, getThreadgroupBytes() / 2);
  }

  msl::TargetAttr target;
};

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_BUDGET_H
