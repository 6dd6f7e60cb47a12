#include "conversion/TTMToMSL.h"

#include "transforms/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_CONVERTTTMTOMSL
#include "transforms/Passes.h.inc"

/// Gives the arguments of loops the names of the values that they carry. The parser gives them the
/// location of the loop.
static void nameCarried(ModuleOp module) {
  module.walk([](scf::ForOp loop) {
    SmallVector<Location> names;
    for (auto [argument, yielded, init] :
         llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getInitArgs())) {
      Location loc = argument.getLoc();
      if (loc == loop.getLoc() || !loc->findInstanceOf<NameLoc>())
        loc = yielded.getLoc()->findInstanceOf<NameLoc>() ? yielded.getLoc() : init.getLoc();
      names.push_back(loc);
    }
    for (auto [argument, name] : llvm::zip(loop.getRegionIterArgs(), names))
      argument.setLoc(name);
  });
}

namespace {
struct ConvertTTMToMSLPass : impl::ConvertTTMToMSLBase<ConvertTTMToMSLPass> {
  void runOnOperation() override {
    TTMToMSLTypes types(ttm::getNumSimdgroups(getOperation()));
    RewritePatternSet patterns(&getContext());
    populateProgramPatterns(types, patterns);
    populateControlFlowPatterns(types, patterns);
    populateElementwisePatterns(types, patterns);
    populateLibraryPatterns(types, patterns);
    populateShapePatterns(types, patterns);
    populateLayoutPatterns(types, patterns);
    populateMemoryPatterns(types, patterns);
    populateAtomicPatterns(types, patterns);
    populateTilePatterns(types, patterns);
    populateReducePatterns(types, patterns);

    ConversionTarget target(getContext());
    target.addLegalDialect<msl::MSLDialect, vector::VectorDialect>();
    target.addLegalOp<ModuleOp>();
    target.addIllegalDialect<tt::TTDialect, ttg::TTGDialect, ttm::TTMDialect>();
    // These operations mean the same on scalars and vectors as on tiles. Poison scalars get a
    // value.
    target.addDynamicallyLegalDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect>(
        [&](Operation *op) {
          return types.isLegal(op) && llvm::all_of(op->getRegions(), [&](Region &region) {
                   return types.isLegal(&region);
                 });
        });
    target.addIllegalOp<scf::ExecuteRegionOp, scf::IndexSwitchOp>();
    target.addDynamicallyLegalDialect<ub::UBDialect>(
        [](Operation *op) { return isa<VectorType>(op->getResult(0).getType()); });

    // Patterns check before they change anything, so that nothing has to be rolled back.
    ConversionConfig config;
    config.allowPatternRollback = false;
    config.foldingMode = DialectConversionFoldingMode::Never;
    nameCarried(getOperation());
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace

} // namespace triton_metal
