// What the axis analysis knows, and what it must not claim.
#include "analysis/AxisInfo.h"

#include "dialect/tt/TT.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace triton_metal;

namespace {

class AxisInfoTest : public ::testing::Test {
protected:
  AxisInfoTest() {
    context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, math::MathDialect,
                        scf::SCFDialect, ub::UBDialect, tt::TTDialect>();
  }

  /// The information of the first operand of the operation marked {probe}.
  AxisInfo probe(llvm::StringRef arguments, llvm::StringRef body) {
    std::string text =
        "tt.func public @f(" + arguments.str() + ") {\n" + body.str() + "\ntt.return\n}";
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    if (!module)
      return {};
    analysis = std::make_unique<AxisInfoAnalysis>(*module);
    Value value;
    module->walk([&](Operation *op) {
      if (op->hasAttr("probe"))
        value = op->getOperand(0);
    });
    EXPECT_TRUE(value);
    probed = value;
    return analysis->get(value);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<AxisInfoAnalysis> analysis;
  Value probed;
};

using Dims = AxisInfo::Dims;

constexpr const char *kRange =
    "%r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>\n";
constexpr const char *kProbe = "arith.trunci %v {probe} : tensor<64xi32> to tensor<64xi8>";

TEST_F(AxisInfoTest, RangePlusMultipleOfItsLength) {
  AxisInfo info = probe("%n: i32", std::string(kRange) + R"(
    %pid = tt.get_program_id x : i32
    %c = arith.constant 64 : i32
    %m = arith.muli %pid, %c : i32
    %s = tt.splat %m : i32 -> tensor<64xi32>
    %v = arith.addi %s, %r : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.contiguity, Dims({64}));
  EXPECT_EQ(info.divisibility, Dims({64}));
  EXPECT_EQ(info.constancy, Dims({1}));
  ASSERT_TRUE(info.isNonNegative());
  EXPECT_EQ(info.bound->sum, (GridSum{63, {64, 0, 0}}));
  EXPECT_TRUE(info.needs.empty());
}

TEST_F(AxisInfoTest, RangePlusUnknownScalarIsNotAligned) {
  AxisInfo info = probe("%n: i32", std::string(kRange) + R"(
    %s = tt.splat %n : i32 -> tensor<64xi32>
    %v = arith.addi %s, %r : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.contiguity, Dims({64}));
  EXPECT_EQ(info.divisibility, Dims({1}));
}

TEST_F(AxisInfoTest, ArgumentDivisibilityCounts) {
  AxisInfo info = probe("%n: i32 {tt.divisibility = 16 : i32}", std::string(kRange) + R"(
    %s = tt.splat %n : i32 -> tensor<64xi32>
    %v = arith.addi %s, %r : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.divisibility, Dims({16}));
}

TEST_F(AxisInfoTest, ScaledRangeIsNotContiguous) {
  AxisInfo info = probe("%n: i32", std::string(kRange) + R"(
    %c = arith.constant dense<4> : tensor<64xi32>
    %v = arith.muli %r, %c : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.contiguity, Dims({1}));
  EXPECT_EQ(info.divisibility, Dims({4}));
}

TEST_F(AxisInfoTest, QuotientIsConstantInGroups) {
  AxisInfo info = probe("%n: i32", std::string(kRange) + R"(
    %c = arith.constant dense<16> : tensor<64xi32>
    %v = arith.divsi %r, %c : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.constancy, Dims({16}));
  EXPECT_EQ(info.contiguity, Dims({1}));
}

TEST_F(AxisInfoTest, RemainderIsContiguousInGroups) {
  AxisInfo info = probe("%n: i32", std::string(kRange) + R"(
    %c = arith.constant dense<16> : tensor<64xi32>
    %v = arith.remsi %r, %c : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.contiguity, Dims({16}));
}

TEST_F(AxisInfoTest, DivisionOfPerhapsNegativeNumbersClaimsNothing) {
  // -8..55 divided by 8 rounds towards zero: -8 gives -1, but -7 to -1 give 0.
  std::string range = "%r = tt.make_range {start = -8 : i32, end = 56 : i32} : tensor<64xi32>\n";
  AxisInfo info = probe("%n: i32", range + R"(
    %c = arith.constant dense<8> : tensor<64xi32>
    %v = arith.divsi %r, %c : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.constancy, Dims({1}));
}

// The column's block of a program in a grouped order, as Triton's tutorial has it.
TEST_F(AxisInfoTest, QuotientOfTheProgramIsTakenAsNotNegative) {
  const std::string body = std::string(kRange) + R"(
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %q = arith.divsi %pid, %size : i32
    %start = arith.muli %q, %c64 : i32
    %starts = tt.splat %start : i32 -> tensor<64xi32>
    %at = arith.addi %starts, %r : tensor<64xi32>
    %n_tile = tt.splat %n : i32 -> tensor<64xi32>
    %v = arith.remsi %at, %n_tile : tensor<64xi32>
  )" + kProbe;
  AxisInfo info = probe("%size: i32, %n: i32 {tt.divisibility = 16 : i32}", body);
  EXPECT_EQ(info.contiguity, (Dims{16}));
  EXPECT_EQ(info.divisibility, (Dims{16}));
  // A grid whose sums wrap around is refused.
  EXPECT_TRUE(llvm::is_contained(info.needs, GridSum{63, {64, 0, 0}}));
}

// A persistent program walks over blocks, up to a number that is not known.
TEST_F(AxisInfoTest, BlocksOfALoopAreTakenAsNotNegative) {
  const std::string body = std::string(kRange) + R"(
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    scf.for %block = %pid to %blocks step %programs : i32 {
      %start = arith.muli %block, %c64 : i32
      %starts = tt.splat %start : i32 -> tensor<64xi32>
      %at = arith.addi %starts, %r : tensor<64xi32>
      %n_tile = tt.splat %n : i32 -> tensor<64xi32>
      %v = arith.remsi %at, %n_tile : tensor<64xi32>
      %w = arith.trunci %v {probe} : tensor<64xi32> to tensor<64xi8>
    }
  )";
  AxisInfo info = probe("%blocks: i32, %programs: i32, %n: i32 {tt.divisibility = 16 : i32}", body);
  EXPECT_EQ(info.contiguity, (Dims{16}));
}

TEST_F(AxisInfoTest, QuotientsOfTilesByNumbersOfUnknownSignClaimNothing) {
  const std::string body = std::string(kRange) + R"(
    %size_tile = tt.splat %size : i32 -> tensor<64xi32>
    %q = arith.divsi %r, %size_tile : tensor<64xi32>
    %c16 = arith.constant dense<16> : tensor<64xi32>
    %v = arith.remsi %q, %c16 : tensor<64xi32>
  )" + kProbe;
  EXPECT_FALSE(probe("%size: i32", body).isNonNegative());
}

// The length of what is left of a block: min(n - start, 64) of unsigned numbers.
TEST_F(AxisInfoTest, UnsignedMinimumIsDivisibleAsItsOperandsAre) {
  const std::string body = std::string(kRange) + R"(
    %c64 = arith.constant 64 : i32
    %left = arith.minui %n, %c64 : i32
    %left_tile = tt.splat %left : i32 -> tensor<64xi32>
    %mask = arith.cmpi slt, %r, %left_tile : tensor<64xi32>
    %v = arith.extui %mask : tensor<64xi1> to tensor<64xi32>
  )" + kProbe;
  AxisInfo info = probe("%n: i32 {tt.divisibility = 16 : i32}", body);
  EXPECT_EQ(info.constancy, (Dims{16}));
}

TEST_F(AxisInfoTest, ComparisonsKnowTheirBound) {
  auto constancy = [&](llvm::StringRef predicate, llvm::StringRef divisibility) {
    return probe(("%n: i32" + divisibility).str(), std::string(kRange) + R"(
      %s = tt.splat %n : i32 -> tensor<64xi32>
      %v = arith.cmpi )" + predicate.str() + R"(, %r, %s : tensor<64xi32>
      arith.extui %v {probe} : tensor<64xi1> to tensor<64xi8>
    )")
        .constancy;
  };
  EXPECT_EQ(constancy("slt", " {tt.divisibility = 16 : i32}"), Dims({16}));
  EXPECT_EQ(constancy("sge", " {tt.divisibility = 16 : i32}"), Dims({16}));
  // r <= 16 differs between 16 and 17, which are in one group.
  EXPECT_EQ(constancy("sle", " {tt.divisibility = 16 : i32}"), Dims({1}));
  EXPECT_EQ(constancy("eq", " {tt.divisibility = 16 : i32}"), Dims({1}));
  EXPECT_EQ(constancy("slt", ""), Dims({1}));
}

TEST_F(AxisInfoTest, PointersOfAMatrix) {
  AxisInfo info = probe(
      "%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}",
      R"(
    %m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %k = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %s = tt.splat %stride : i32 -> tensor<64x1xi32>
    %ms = arith.muli %m1, %s : tensor<64x1xi32>
    %k1 = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %mb = tt.broadcast %ms : tensor<64x1xi32> -> tensor<64x32xi32>
    %kb = tt.broadcast %k1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %o = arith.addi %mb, %kb : tensor<64x32xi32>
    %b = tt.splat %p : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %v = tt.addptr %b, %o : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    tt.load %v {probe} : tensor<64x32x!tt.ptr<f16>>
  )");
  EXPECT_EQ(info.contiguity, Dims({1, 32}));
  EXPECT_EQ(info.divisibility[1], 16);
  EXPECT_EQ(analysis->getAccessWidth(probed, 1), 8);
  EXPECT_EQ(analysis->getAccessWidth(probed, 0), 1);
}

TEST_F(AxisInfoTest, LoopsWeakenUntilItHolds) {
  // Steps of 4 elements keep 16 bytes of f32, steps of 1 do not.
  auto width = [&](llvm::StringRef step) {
    probe("%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32", std::string(kRange) + R"(
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %step = arith.constant dense<)" + step.str() + R"(> : tensor<64xi32>
      %b = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %q = tt.addptr %b, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %l = scf.for %i = %c0 to %n step %c1 iter_args(%v = %q) -> (tensor<64x!tt.ptr<f32>>) : i32 {
        %x = tt.load %v {probe} : tensor<64x!tt.ptr<f32>>
        %w = tt.addptr %v, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
        scf.yield %w : tensor<64x!tt.ptr<f32>>
      }
    )");
    // All of them are neighbours.
    EXPECT_EQ(analysis->getAccessWidth(probed, 0), 4);
    return analysis->getAlignedWidth(probed, 0);
  };
  EXPECT_EQ(width("4"), 4);
  EXPECT_EQ(width("2"), 2);
  EXPECT_EQ(width("1"), 1);
}

TEST_F(AxisInfoTest, NeighboursThatAreNotAligned) {
  auto width = [&](llvm::StringRef type, llvm::StringRef body) {
    probe("%p: !tt.ptr<" + type.str() + ">, %s: i32, %l: i64",
          std::string(kRange) + body.str() + "    %b = tt.splat %p : !tt.ptr<" + type.str() +
              "> -> tensor<64x!tt.ptr<" + type.str() +
              ">>\n    %q = tt.addptr %b, %o : tensor<64x!tt.ptr<" + type.str() + ">>, tensor<64x" +
              (body.contains("i64") ? "i64" : "i32") +
              ">\n    %x = tt.load %q {probe} : tensor<64x!tt.ptr<" + type.str() + ">>\n");
    return analysis->getAccessWidth(probed, 0);
  };
  const char *plain = R"(
    %c = arith.constant dense<0> : tensor<64xi32>
    %o = arith.addi %r, %c : tensor<64xi32>
)";
  EXPECT_EQ(width("f32", plain), 4);
  EXPECT_EQ(width("f16", plain), 4);
  EXPECT_EQ(width("i8", plain), 4);
  // Metal has no packed vectors of these.
  EXPECT_EQ(width("i64", plain), 1);
  EXPECT_EQ(width("i1", plain), 1);
  // A sum of 32 bits may wrap around between two neighbours, if it does not start at a multiple of
  // their number.
  EXPECT_EQ(width("f32", R"(
    %ss = tt.splat %s : i32 -> tensor<64xi32>
    %o = arith.addi %r, %ss : tensor<64xi32>
)"),
            1);
  EXPECT_EQ(width("f32", R"(
    %two = arith.constant dense<2> : tensor<64xi32>
    %ss = tt.splat %s : i32 -> tensor<64xi32>
    %s2 = arith.muli %ss, %two : tensor<64xi32>
    %o = arith.addi %r, %s2 : tensor<64xi32>
)"),
            2);
  // One of 64 bits wraps around where addresses do.
  EXPECT_EQ(width("f32", R"(
    %w = arith.extsi %r : tensor<64xi32> to tensor<64xi64>
    %ls = tt.splat %l : i64 -> tensor<64xi64>
    %o = arith.addi %w, %ls : tensor<64xi64>
)"),
            4);
}

TEST_F(AxisInfoTest, MasksEndInRows) {
  auto run = [&](llvm::StringRef mask) {
    probe("%n: i32, %b: i1", std::string(kRange) + R"(
      %ns = tt.splat %n : i32 -> tensor<64xi32>
      %two = arith.constant dense<2> : tensor<64xi32>
      %bs = tt.splat %b : i1 -> tensor<64xi1>
      %below = arith.cmpi slt, %r, %ns : tensor<64xi32>
      %above = arith.cmpi sge, %r, %two : tensor<64xi32>
      %shifted = arith.addi %r, %ns : tensor<64xi32>
)" + mask.str() + "\n    %z = arith.extui %m {probe} : tensor<64xi1> to tensor<64xi32>\n");
    return analysis->get(probed).runs[0];
  };
  EXPECT_EQ(run("%m = arith.cmpi slt, %r, %ns : tensor<64xi32>"), 64);
  EXPECT_EQ(run("%m = arith.cmpi uge, %ns, %r : tensor<64xi32>"), 64);
  EXPECT_EQ(run("%m = arith.andi %below, %bs : tensor<64xi1>"), 64);
  // These begin somewhere, or are here and there.
  EXPECT_EQ(run("%m = arith.cmpi sgt, %r, %ns : tensor<64xi32>"), 1);
  EXPECT_EQ(run("%m = arith.cmpi ne, %r, %ns : tensor<64xi32>"), 1);
  EXPECT_EQ(run("%m = arith.ori %below, %bs : tensor<64xi1>"), 1);
  EXPECT_EQ(run("%m = arith.trunci %r : tensor<64xi32> to tensor<64xi1>"), 1);
  // Pairs from 2 on are in or out as a whole.
  EXPECT_EQ(run("%m = arith.andi %below, %above : tensor<64xi1>"), 2);
  // Numbers that may wrap around between neighbours.
  EXPECT_EQ(run("%m = arith.cmpi slt, %shifted, %two : tensor<64xi32>"), 1);
}

TEST_F(AxisInfoTest, WhileLoopsAndBranchesJoin) {
  probe("%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %b: i1", std::string(kRange) + R"(
    %c0 = arith.constant 0 : i32
    %off = scf.if %b -> (i32) {
      %c8 = arith.constant 8 : i32
      scf.yield %c8 : i32
    } else {
      %c2 = arith.constant 2 : i32
      scf.yield %c2 : i32
    }
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %o = tt.splat %off : i32 -> tensor<64xi32>
    %l = scf.while (%v = %q) : (tensor<64x!tt.ptr<f32>>) -> tensor<64x!tt.ptr<f32>> {
      %c = arith.cmpi slt, %c0, %n : i32
      scf.condition(%c) %v : tensor<64x!tt.ptr<f32>>
    } do {
    ^bb0(%v: tensor<64x!tt.ptr<f32>>):
      %x = tt.load %v {probe} : tensor<64x!tt.ptr<f32>>
      %w = tt.addptr %v, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      scf.yield %w : tensor<64x!tt.ptr<f32>>
    }
  )");
  EXPECT_EQ(analysis->getAlignedWidth(probed, 0), 2);
}

TEST_F(AxisInfoTest, HintsOfTheSource) {
  AxisInfo info = probe("%p: !tt.ptr<i32>", std::string(kRange) + R"(
    %b = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %q = tt.addptr %b, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    %x = tt.load %q : tensor<64x!tt.ptr<i32>>
    %c = arith.constant dense<1> : tensor<64xi32>
    %v = arith.muli %x, %c {tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<8> : tensor<1xi32>} : tensor<64xi32>
  )" + kProbe);
  EXPECT_EQ(info.contiguity, Dims({8}));
  EXPECT_EQ(info.divisibility, Dims({8}));
}

TEST_F(AxisInfoTest, NarrowIntegersMayWrap) {
  AxisInfo info = probe("%n: i8", R"(
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %t = arith.trunci %r : tensor<64xi32> to tensor<64xi8>
    %s = tt.splat %n : i8 -> tensor<64xi8>
    %a = arith.addi %t, %s : tensor<64xi8>
    %v = arith.extsi %a {probe0} : tensor<64xi8> to tensor<64xi32>
    arith.trunci %v {probe} : tensor<64xi32> to tensor<64xi16>
  )");
  EXPECT_EQ(info.contiguity, Dims({1}));
}

TEST_F(AxisInfoTest, LoadsOfOneAddressAreEqual) {
  AxisInfo info = probe("%p: !tt.ptr<i32>", R"(
    %b = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %v = tt.load %b : tensor<64x!tt.ptr<i32>>
  )" + std::string(kProbe));
  EXPECT_EQ(info.constancy, Dims({64}));
  EXPECT_EQ(info.contiguity, Dims({1}));
}

} // namespace
