// bfloats become floats by their bits, where LLVM would take them for halves of fewer digits.

#include "dialect/msl/MSL.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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
    auto shapedAs = [&](Type element) -> Type {
      auto vector = dyn_cast<VectorType>(extension.getType());
      return vector ? Type(vector.clone(element)) : element;
    };
    Type words = shapedAs(builder.getI32Type());
    TypedAttr sixteen = builder.getI32IntegerAttr(16);
    if (isa<VectorType>(words))
      sixteen = DenseElementsAttr::get(cast<ShapedType>(words), APInt(32, 16));
    Value bits =
        arith::BitcastOp::create(builder, loc, shapedAs(builder.getI16Type()), extension.getIn());
    bits = arith::ExtUIOp::create(builder, loc, words, bits);
    bits = arith::ShLIOp::create(builder, loc, bits,
                                 arith::ConstantOp::create(builder, loc, words, sixteen));
    Value number = arith::BitcastOp::create(builder, loc, extension.getType(), bits);
    extension.replaceAllUsesWith(number);
    extension.erase();
  }
};

} // namespace
} // namespace triton_metal
