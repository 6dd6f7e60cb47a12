// Which loops of constant trip count the text asks Metal's compiler to unroll.

#include "dialect/msl/MSL.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLUNROLLHINTS
#include "transforms/Passes.h.inc"

using namespace msl;

namespace {

/// How often the bodies inside are run, one after the other.
int64_t countIterations(UnrollOp op) {
  int64_t inside = 0;
  for (Operation &nested : op.getBody().front())
    nested.walk<WalkOrder::PreOrder>([&](UnrollOp loop) {
      inside += countIterations(loop);
      return WalkResult::skip();
    });
  return (int64_t(op.getUpper()) - int64_t(op.getLower())) * std::max<int64_t>(inside, 1);
}

/// Of a thread's numbers, a bool being one.
int64_t getBytes(ArrayType array) {
  return array.getCount() * getNumRegisters(array.getElementType()) *
         llvm::divideCeil(array.getScalarType().getIntOrFloatBitWidth(), 8);
}

/// A loop over more values than a thread's registers could hold stays a loop: unrolled, it would
/// spill them all the same, and take seconds to compile. Matrices cannot be indexed at run time, so
/// that loops over them are always unrolled.
bool isToBeUnrolled(UnrollOp op) {
  constexpr int64_t mostIterations = 256, mostBytes = 1024;
  bool isLarge = countIterations(op) > mostIterations, hasMatrix = false;
  op->walk([&](Operation *nested) {
    for (Type type : llvm::concat<const Type>(nested->getOperandTypes(), nested->getResultTypes()))
      if (auto array = dyn_cast<ArrayType>(type)) {
        hasMatrix |= array.isMatrix();
        if (!array.isMatrix())
          isLarge |= getBytes(array) > mostBytes;
      }
  });
  return hasMatrix || !isLarge;
}

struct MSLUnrollHintsPass : impl::MSLUnrollHintsBase<MSLUnrollHintsPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation().walk([](UnrollOp op) { op.setPragma(isToBeUnrolled(op)); });
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace triton_metal
