// What follows from a target's features.
#include "dialect/msl/MSL.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace triton_metal::msl;

namespace {

class TargetTest : public testing::Test {
protected:
  TargetTest() { context.loadDialect<MSLDialect>(); }

  TargetAttr parse(llvm::StringRef spec) {
    llvm::Expected<TargetAttr> target = TargetAttr::parseSpec(&context, spec);
    EXPECT_TRUE(bool(target));
    return *target;
  }

  /// The first instruction of a target, whatever it multiplies.
  const MatrixInstruction *getFirst(llvm::StringRef spec) {
    return parse(spec).getMatrixInstruction([](const MatrixInstruction &) { return true; });
  }

  mlir::MLIRContext context;
};

TEST_F(TargetTest, MatrixInstructionFollowsFromFeatures) {
  EXPECT_EQ(getFirst("msl=3.1,bfloat"), nullptr);
  for (llvm::StringRef spec : {"", "msl=3.0,simdgroup_matrix"}) {
    const MatrixInstruction *instruction = getFirst(spec);
    ASSERT_NE(instruction, nullptr);
    EXPECT_EQ(instruction->shape.str(), "8x8x8");
    EXPECT_EQ(instruction->feature, Feature::SimdgroupMatrix);
  }
}

TEST_F(TargetTest, MatrixInstructionTakesFloats) {
  const MatrixInstruction *instruction = getFirst("");
  ASSERT_NE(instruction, nullptr);
  mlir::Builder builder(&context);
  for (mlir::Type type : {builder.getF16Type(), builder.getBF16Type(), builder.getF32Type()})
    EXPECT_TRUE(instruction->takes(type));
  for (mlir::Type type : {mlir::Type(builder.getI8Type()), mlir::Type(builder.getI32Type()),
                          mlir::Type(builder.getF64Type())})
    EXPECT_FALSE(instruction->takes(type));
}

TEST_F(TargetTest, MatrixInstructionsAreFoundByShape) {
  EXPECT_EQ(MatrixInstruction::get({8, 8, 8}), getFirst(""));
  EXPECT_EQ(MatrixInstruction::get({16, 16, 16}), nullptr);
  EXPECT_TRUE(MatrixInstruction::hasFragment({8, 8}));
  EXPECT_FALSE(MatrixInstruction::hasFragment({16, 16}));
}

} // namespace
