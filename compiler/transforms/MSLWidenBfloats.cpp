// Converts bfloats to floats by their bits. Otherwise LLVM takes them for halves, because they have
// fewer digits.

#include "dialect/msl/MSL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "transforms/BFloatBits.h"
#include "transforms/Passes.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_MSLWIDENBFLOATS
#include "transforms/Passes.h.inc"

namespace {

struct MSLWidenBfloatsPass : impl::MSLWidenBfloatsBase<MSLWidenBfloatsPass> {
  using Base::Base;

  void runOnOperation() override {
    bool changes = false;
    for (msl::KernelOp kernel : getOperation().getOps<msl::KernelOp>()) {
      SmallVector<arith::ExtFOp> widened;
      bool roundsToHalf = false;
      kernel.walk([&](Operation *op) {
        if (auto extension = dyn_cast<arith::ExtFOp>(op);
            extension && getElementTypeOrSelf(extension.getIn()).isBF16())
          widened.push_back(extension);
        else if (auto truncation = dyn_cast<arith::TruncFOp>(op))
          roundsToHalf |= getElementTypeOrSelf(truncation.getOut()).isF16();
      });
      if (!roundsToHalf)
        continue;
      for (arith::ExtFOp extension : widened)
        widen(extension);
      changes |= !widened.empty();
    }
    if (!changes)
      markAllAnalysesPreserved();
  }

  static void widen(arith::ExtFOp extension) {
    OpBuilder builder(extension);
    Location loc = extension.getLoc();
    Value bits = arith::BitcastOp::create(
        builder, loc, msl::withElement(extension.getType(), builder.getI16Type()),
        extension.getIn());
    extension.replaceAllUsesWith(makeFloatOfBits(builder, loc, bits));
    extension.erase();
  }
};

} // namespace
} // namespace triton_metal
