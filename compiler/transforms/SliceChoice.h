// Whether a kernel is better in slices, and in which, by the model of `ThreadChoice.h`.
#ifndef TRITON_METAL_TRANSFORMS_SLICECHOICE_H
#define TRITON_METAL_TRANSFORMS_SLICECHOICE_H

#include "transforms/SlicedKernel.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace triton_metal {

/// A kernel with the SIMD-groups that are expected, in slices if it has any.
struct Candidate {
  SlicedKernel *slices = nullptr;
  ThreadChoice expected;
};

/// Weighs the ways to work on a kernel in slices. The slices of its candidates live as long as it.
class SliceChoice {
public:
  SliceChoice(tt::FuncOp kernel, const Budget &budget)
      : module(kernel->getParentOfType<mlir::ModuleOp>()), budget(budget), whole(kernel, budget) {}

  /// The kernel in the slices that it needs, or, if it needs none, in those with which a core holds
  /// more threads. If the SIMD-groups were chosen, and not given, others are weighed, too, since
  /// that choice knew of no slices: they cost more with some numbers than with others, and with
  /// some there are none. Nothing if a choice is as good without slices.
  std::optional<Candidate> choose(int warps, int stages, bool isChosen);

  /// Whether threads of so many SIMD-groups can have these registers.
  static bool fits(int64_t registers, int warps, const Budget &budget);

private:
  bool fits(const ThreadChoice &expected);
  /// Calls `weighs` with each number of SIMD-groups that a threadgroup can have.
  void forEachNumber(llvm::function_ref<void(int)> weighs);
  /// What the model expects of the kernel as it is, with two buffers if it has stages and
  /// threadgroup memory for these.
  ThreadChoice expectWhole(int warps, int stages);
  /// The kernel as it is, to be sliced.
  SlicedKernel &getSpread();
  /// The candidate, or the kernel with the steps of its products along K in slices with which a
  /// core holds more threads, since operands take less of its memory, if that is cheaper.
  Candidate holdMoreThreads(const Candidate &kept);
  /// The kernel with the SIMD-groups of `kept`, which lacks registers or threadgroup memory: in
  /// slices, if these take enough away.
  Candidate weigh(const ThreadChoice &kept);
  /// Of kernels with as many SIMD-groups: registers come first, and then the cost.
  bool lacksLess(const Candidate &a, const Candidate &b);
  /// Calls `weighs` for the kernel with a class of its dimensions in 2, 4 and more slices, if
  /// products alone add up along it, for as long as it asks for more.
  void forEachSum(SlicedKernel &kernel, unsigned id, int64_t most,
                  llvm::function_ref<bool(SlicedKernel &)> weighs);
  /// The kernel with the steps of its products along K in slices: as few as let a thread have all
  /// of its registers and threadgroup memory hold the operands, or `most`. No slices where that
  /// takes nothing away.
  Candidate sliceSums(SlicedKernel &kernel, const ThreadChoice &kept, int64_t most);
  /// The kernel with its rows in slices, if these take enough away.
  Candidate sliceRows(SlicedKernel &kernel, const ThreadChoice &kept);
  /// The kernel in slices along that class with which a thread needs the fewest registers, and in
  /// the cheapest way of those. No slices if none takes any away.
  Candidate sliceOnce(const Candidate &kernel);
  /// The kernel in slices along some class that has none. No slices if there is no such class.
  Candidate sliceAny(const Candidate &kernel);
  /// Whether a thread lacks more registers than the model may be wrong by: how much they cost is
  /// not known then.
  bool lacksMany(const Candidate &candidate);
  /// The cheapest, by the model, of this candidate and those with other numbers of SIMD-groups.
  Candidate chooseAgain(Candidate best);

  mlir::ModuleOp module;
  const Budget &budget;
  /// What the kernel does, and the kernel from which all slices are made.
  KernelWork whole;
  std::unique_ptr<SlicedKernel> spread;
  /// The registers that a slice may need.
  int64_t aim = 0;
};

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_SLICECHOICE_H
