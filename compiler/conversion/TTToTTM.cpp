#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutInference.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Passes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_CONVERTTTTOTTM
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

struct ConvertTTToTTMPass : impl::ConvertTTToTTMBase<ConvertTTToTTMPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // An option stays as it is: the pass runs again, for another kernel.
    warps = numWarps;
    if (!warps)
      if (auto chosen = module->getAttrOfType<IntegerAttr>(TTMDialect::getNumWarpsAttrName()))
        warps = chosen.getInt();
    if (warps < 1 || warps > 32 || !llvm::isPowerOf2_32(warps)) {
      module.emitError() << "num_warps must be a power of two from 1 to 32, but is " << warps;
      return signalPassFailure();
    }
    // All threads of a program without tiles would do the same.
    int simdgroups = hasTiles(module) ? warps : 1;
    Builder builder(&getContext());
    module->setAttr(TTMDialect::getNumSimdgroupsAttrName(), builder.getI32IntegerAttr(simdgroups));
    module->setAttr(TTMDialect::getThreadsAttrName(),
                    builder.getI32IntegerAttr(simdgroups * int(kSimdWidth)));

    if (module.walk([&](Operation *op) { return check(op); }).wasInterrupted())
      return signalPassFailure();
    SmallVector<Operation *> inferred;
    module.walk([&](Operation *op) {
      for (Value result : op->getResults())
        giveDefault(result);
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          giveDefault(argument);
      LayoutRule rule = getLayoutRule(op);
      if (rule == LayoutRule::Inferred || rule == LayoutRule::Reduction)
        inferred.push_back(op);
    });
    for (Operation *op : inferred)
      makeConsistent(op);
    if (failed(verifyLayouts(module)))
      signalPassFailure();
  }

private:
  static bool hasTiles(ModuleOp module) {
    auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
    return module
        .walk([&](Operation *op) {
          return llvm::any_of(op->getResultTypes(), isTile) ? WalkResult::interrupt()
                                                            : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Refuses tiles that no layout can describe, and tiles as arguments of kernels.
  WalkResult check(Operation *op) {
    if (auto function = dyn_cast<FunctionOpInterface>(op)) {
      for (Type types : {Type(function.getFunctionType())})
        for (Type type : cast<FunctionType>(types).getInputs())
          if (isa<RankedTensorType>(type)) {
            op->emitError() << "a kernel cannot take a tile as an argument: " << type;
            return WalkResult::interrupt();
          }
    }
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor)
        continue;
      for (int64_t extent : tensor.getShape()) {
        if (extent <= 0 || !llvm::isPowerOf2_64(extent)) {
          op->emitOpError() << "makes a tile of shape " << type
                            << ", but each extent must be a power of two";
          return WalkResult::interrupt();
        }
      }
    }
    return WalkResult::advance();
  }

  void giveDefault(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (type && !type.getEncoding())
      setLayout(value, getDefaultLayout(type.getShape(), warps));
  }

  /// Converts the operand of an operation or its results, so that the layout of the results follows
  /// from that of the operand.
  void makeConsistent(Operation *op) {
    OpBuilder builder(op);
    auto source = getLayout(op->getOperand(0));
    // The operand is converted if several layouts of the result are possible (broadcast), or if not
    // every layout of the operand is (split).
    if (isa<tt::BroadcastOp, tt::SplitOp>(op)) {
      auto wanted = inferOperandLayout(op, 0, *getLayout(op->getResult(0)));
      op->setOperand(0, convertLayout(builder, op->getOperand(0), *wanted));
      return;
    }
    auto layout = inferResultLayout(op, 0, *source);
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      auto type = dyn_cast<RankedTensorType>(result.getType());
      if (!type || getLayout(type) == layout)
        continue;
      LinearLayout usual = *getLayout(type);
      setLayout(result, *layout);
      Value converted = convertLayout(builder, result, usual);
      result.replaceAllUsesExcept(converted, converted.getDefiningOp());
    }
  }

  /// The SIMD-groups of the kernel at hand.
  int warps = 0;
};

} // namespace
} // namespace triton_metal
