// How many SIMD-groups a kernel wants, and whether its loops are worth two buffers: a small model
// of a core, over the tiles of a kernel in Triton IR.
#ifndef TRITON_METAL_TRANSFORMS_THREADCHOICE_H
#define TRITON_METAL_TRANSFORMS_THREADCHOICE_H

#include "dialect/tt/TT.h"
#include "transforms/Budget.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace triton_metal {

class KernelWork;

/// What a threadgroup is made of, with what the model expects of it.
struct ThreadChoice {
  int warps = 4;
  int stages = 1;
  /// 32-bit registers of a thread, and those that it would take if it could have as many as it
  /// likes: what it lacks is spilled. `mostRegisters` are those that it may turn out to need.
  int64_t registers = 0, wantedRegisters = 0, mostRegisters = 0;
  int64_t threadgroupBytes = 0;
  /// What the operands of one product want of it, beside those that stay. Where they are more than
  /// `Budget::getDotBytes()`, they wait in registers and are staged in parts.
  int64_t operandBytes = 0;
  /// What the largest tile that changes threads wants of it. Where it is more than
  /// `Budget::getExchangeBytes()`, the tile goes in rounds, and each number is asked for its round.
  int64_t exchangeBytes = 0;
  /// Threads of such threadgroups that a core holds.
  int64_t inFlight = 0;
  /// Of one program: instructions of all SIMD-groups, lines of device memory, barriers.
  double instructions = 0, lines = 0, barriers = 0;
  /// Cycles of a core for one program.
  double cost = 0;

  /// Whether operands are staged at once, and tiles change threads in one round.
  bool fitsMemory(const Budget &budget) const;

  /// The expectations in words, for people.
  std::string describe() const;
};

/// Of a module between `tt-choose-threads` and `tt-slice-tiles`: `ThreadChoice::mostRegisters`, if
/// it fits in threadgroup memory (`ThreadChoice::fitsMemory`).
inline constexpr llvm::StringLiteral kMostRegistersAttr = "ttm.most_registers";
/// Of the same modules: the SIMD-groups were chosen, not given.
inline constexpr llvm::StringLiteral kChosenWarpsAttr = "ttm.chosen_warps";

/// The kernel of a module: its public function. Null if there is none.
tt::FuncOp getKernel(mlir::ModuleOp module);

/// Threads that a core of Apple's G13 holds if each has so many 32-bit registers.
int64_t getThreadsInFlight(int64_t registers);

/// The 32-bit registers that each thread of a threadgroup of so many threads can have.
int64_t getRegisterLimit(int64_t threads);

/// The choice for a kernel without calls: the cheapest by the model; of nearly equal ones that
/// which is nearest to four SIMD-groups and one stage. `warps` and `stages` are what is given; 0
/// leaves them open. The answer depends on the function and the target alone.
ThreadChoice chooseThreads(tt::FuncOp kernel, const Budget &budget, int warps, int stages);
ThreadChoice chooseThreads(const KernelWork &kernel, const Budget &budget, int warps, int stages);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_THREADCHOICE_H
