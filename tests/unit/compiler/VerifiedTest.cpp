// The verifiers between passes: a pass that leaves something invalid fails by its own verification.

#include "dialect/msl/MSL.h"
#include "transforms/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace triton_metal;

namespace {

constexpr const char *kModule = R"(
msl.kernel @k(%x: !msl.ptr<f32, device>, %c: i1, %i: i32) threads 32 {
  %a = arith.constant 1.0 : f32
  scf.if %c {
    %b = arith.addf %a, %a : f32
    msl.store %b, %x[%i] : f32, !msl.ptr<f32, device>, i32
  }
  msl.return
})";

/// A pass that does what a test asks for.
struct Edit : PassWrapper<Edit, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Edit)
  std::function<void(ModuleOp)> change;

  explicit Edit(std::function<void(ModuleOp)> change) : change(std::move(change)) {}
  void runOnOperation() final {
    if (change)
      change(getOperation());
    else
      markAllAnalysesPreserved();
  }
};

class VerifiedTest : public testing::Test {
protected:
  VerifiedTest() {
    context.loadDialect<msl::MSLDialect, arith::ArithDialect, scf::SCFDialect>();
    module = parseSourceString<ModuleOp>(kModule, &context);
  }

  /// Runs passes, each with its verification, and gives the last message; empty if all succeed.
  std::string run(ArrayRef<std::function<void(ModuleOp)>> changes) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    PassManager manager(&context);
    manager.enableVerifier(false);
    for (const auto &change : changes)
      addVerified(manager, std::make_unique<Edit>(change));
    bool failed_ = failed(manager.run(*module));
    EXPECT_EQ(failed_, !message.empty());
    return message;
  }

  template <typename Op> static Op find(ModuleOp module) {
    Op found;
    module.walk([&](Op op) { found = op; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(VerifiedTest, ValidChangesPass) {
  ASSERT_TRUE(module);
  EXPECT_EQ(run({nullptr,
                 [](ModuleOp module) {
                   auto add = find<arith::AddFOp>(module);
                   OpBuilder builder(add);
                   auto product =
                       arith::MulFOp::create(builder, add.getLoc(), add.getLhs(), add.getRhs());
                   add.replaceAllUsesWith(product.getResult());
                   add.erase();
                 },
                 nullptr}),
            "");
}

TEST_F(VerifiedTest, AnOperandOfAnotherTypeIsFound) {
  EXPECT_NE(run({nullptr,
                 [](ModuleOp module) {
                   auto add = find<arith::AddFOp>(module);
                   OpBuilder builder(add);
                   add->setOperand(1, arith::ConstantOp::create(builder, add.getLoc(),
                                                                builder.getF16FloatAttr(1)));
                 }}),
            "");
}

TEST_F(VerifiedTest, AChangedPropertyIsFound) {
  EXPECT_NE(run({nullptr, [](ModuleOp module) { find<msl::KernelOp>(module).setThreads(31); }}),
            "");
}

TEST_F(VerifiedTest, AUseBeforeItsDefinitionIsFound) {
  EXPECT_NE(run({nullptr,
                 [](ModuleOp module) {
                   auto add = find<arith::AddFOp>(module);
                   OpBuilder builder(add);
                   Value later =
                       arith::MulFOp::create(builder, add.getLoc(), add.getLhs(), add.getLhs());
                   later.getDefiningOp()->moveAfter(add);
                   add->setOperand(1, later);
                 }}),
            "");
}

TEST_F(VerifiedTest, ADefinitionThatMovedOutOfSightIsFound) {
  // The users stand as they were; what they use is in a region that they do not see.
  EXPECT_NE(run({[](ModuleOp module) {
                   auto constant = find<arith::ConstantOp>(module);
                   OpBuilder builder(find<scf::IfOp>(module)->getNextNode());
                   auto kernel = find<msl::KernelOp>(module);
                   msl::StoreOp::create(builder, constant.getLoc(), constant.getResult(),
                                        kernel.getBody().getArgument(0),
                                        kernel.getBody().getArgument(2), Value(), Value(), 1, 1);
                 },
                 [](ModuleOp module) {
                   find<arith::ConstantOp>(module)->moveBefore(find<arith::AddFOp>(module));
                 }}),
            "");
}

TEST_F(VerifiedTest, AMissingTerminatorIsFound) {
  EXPECT_NE(run({nullptr, [](ModuleOp module) { find<scf::YieldOp>(module).erase(); }}), "");
}

} // namespace
