// Marks the loops of constant trip count that Metal's compiler shall unroll.

#include "dialect/msl/MSL.h"
#include "dialect/ttm/TTM.h"
#include "transforms/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLUNROLLHINTS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// What a loop becomes where all loops in it are unrolled.
struct Unrolled {
  /// How often the innermost bodies run in total.
  int64_t iterations = 0;
  int64_t operations = 0;
};

/// Functions of 64-bit floats with several polynomials or loops.
bool isLong(StringRef function) {
  return llvm::StringSwitch<bool>(function)
      .Cases({"erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv", "lgamma", "tgamma"},
             true)
      .Cases({"cyl_bessel_i0", "cyl_bessel_i1", "j0", "j1", "jn", "y0", "y1", "yn"}, true)
      .Cases({"pow", "powi"}, true)
      .Default(false);
}

int64_t countOperations(Operation *op) {
  // A function of 64-bit floats is 100 to 250 instructions for each component, and a special one
  // thousands. It counts for more, so that a loop that calls some of them stays short.
  if (auto function = dyn_cast<Float64Op>(op))
    return (isLong(function.getFunction()) ? 4096 : 512) * getNumRegisters(function.getType());
  if (auto function = dyn_cast<LibraryOp>(op))
    return 256 * getNumRegisters(function.getType());
  return op->hasTrait<OpTrait::ConstantLike>() ? 0 : 1;
}

Unrolled countUnrolled(UnrollOp op) {
  Unrolled inside;
  for (Operation &nested : op.getBody().front())
    nested.walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (auto loop = dyn_cast<UnrollOp>(inner)) {
        Unrolled more = countUnrolled(loop);
        inside.iterations += more.iterations;
        inside.operations += more.operations;
        return WalkResult::skip();
      }
      inside.operations += countOperations(inner);
      return WalkResult::advance();
    });
  int64_t trips = int64_t(op.getUpper()) - int64_t(op.getLower());
  return {trips * std::max<int64_t>(inside.iterations, 1), trips * inside.operations};
}

/// The bytes of a variable in one thread. A bool has one.
int64_t getBytes(ArrayType array) {
  return array.getCount() * getNumRegisters(array.getElementType()) *
         llvm::divideCeil(array.getScalarType().getIntOrFloatBitWidth(), 8);
}

/// A loop over more values than a thread's registers can hold stays a loop. Unrolled, it would
/// spill them anyway and take seconds to compile. With `rolled` all loops stay: Apple's compiler
/// has failed on very long bodies (docs/apple-quirks.md, row 23). Loops over matrices are always
/// unrolled, because matrices cannot be indexed at run time.
bool isToBeUnrolled(UnrollOp op, bool rolled) {
  constexpr int64_t mostIterations = 256, mostBytes = 1024, mostOperations = 8192;
  Unrolled unrolled = countUnrolled(op);
  bool isLarge =
           rolled || unrolled.iterations > mostIterations || unrolled.operations > mostOperations,
       hasMatrix = false;
  op->walk([&](Operation *nested) {
    for (Type type : llvm::concat<const Type>(nested->getOperandTypes(), nested->getResultTypes()))
      if (auto array = dyn_cast<ArrayType>(type)) {
        hasMatrix |= array.isMatrix() || isa<TensorMultiplyOp>(nested);
        if (!array.isMatrix())
          isLarge |= getBytes(array) > mostBytes;
      }
  });
  return hasMatrix || !isLarge;
}

bool hasMatrix(UnrollOp op) {
  return op
      ->walk([](Operation *nested) {
        if (isa<TensorMultiplyOp>(nested))
          return WalkResult::interrupt();
        for (Value operand : nested->getOperands())
          if (auto array = dyn_cast<ArrayType>(operand.getType()); array && array.isMatrix())
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether the loop's index, or what is computed of it, chooses elements of a variable.
bool indexesVariables(UnrollOp loop) {
  llvm::DenseSet<Value> derived{loop.getIndex()};
  return loop.getBody()
      .walk([&](Operation *op) {
        if (llvm::none_of(op->getOperands(), [&](Value value) { return derived.contains(value); }))
          return WalkResult::advance();
        if (llvm::any_of(op->getOperandTypes(), llvm::IsaPred<ArrayType>))
          return WalkResult::interrupt();
        // What is read at a place of the index chooses nothing.
        if (!isa<ReadOp>(op))
          derived.insert(op->result_begin(), op->result_end());
        return WalkResult::advance();
      })
      .wasInterrupted();
}

/// The steps of products along K stay loops in a kernel that lacks registers: unrolled, the
/// fragments of several steps are there at a time.
void rollSteps(KernelOp kernel) {
  kernel.walk([&](UnrollOp op) {
    if (hasMatrix(op) && !indexesVariables(op))
      op.setPragma(false);
  });
}

/// A kernel of many loops is as long as they are together. Loops of one that gets too long stay
/// loops, all of them: an array that one loop indexes at run time is no longer in registers, and to
/// unroll the others only makes the kernel longer. Where there is such a loop, less is too long:
/// an index at run time has failed in large kernels (docs/apple-quirks.md, row 9).
void rollLargeKernel(KernelOp kernel) {
  constexpr int64_t mostOperations = 16384, mostBesideLoops = 4096;
  int64_t operations = 0;
  bool hasLoop = false;
  SmallVector<UnrollOp> loops;
  kernel.walk<WalkOrder::PreOrder>([&](UnrollOp op) {
    if (!op->getParentOfType<UnrollOp>() && op.getPragma())
      operations += countUnrolled(op).operations;
    hasLoop |= !op.getPragma();
    if (!hasMatrix(op))
      loops.push_back(op);
  });
  if (operations > (hasLoop ? mostBesideLoops : mostOperations))
    for (UnrollOp op : loops)
      op.setPragma(false);
}

struct MSLUnrollHintsPass : impl::MSLUnrollHintsBase<MSLUnrollHintsPass> {
  using Base::Base;

  void runOnOperation() override {
    bool rolled = TargetAttr::get(getOperation()).has(Feature::RolledLoops);
    getOperation().walk([&](UnrollOp op) { op.setPragma(isToBeUnrolled(op, rolled)); });
    bool lacksRegisters = getOperation()->hasAttr(ttm::TTMDialect::getLacksRegistersAttrName());
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      rollLargeKernel(kernel);
      if (lacksRegisters)
        rollSteps(kernel);
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
