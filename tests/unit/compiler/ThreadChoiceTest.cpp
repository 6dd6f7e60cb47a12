// The model that chooses SIMD-groups and stages: what must hold whatever its constants are.
#include "transforms/ThreadChoice.h"
#include "transforms/Dots.h"

#include "compiler/dialect/tt/Import.h"
#include "compiler/pipeline/Register.h"
#include "dialect/msl/MSL.h"

#include "mlir/IR/BuiltinOps.h"

#include "gtest/gtest.h"

#include <string>

using namespace mlir;
using namespace triton_metal;

namespace {

/// A row of `columns` floats through a maximum, as a softmax has it.
std::string row(int64_t columns, const std::string &more = "") {
  std::string n = std::to_string(columns), tile = "tensor<" + n + "xf32>";
  std::string pointers = "tensor<" + n + "x!tt.ptr<f32>>", places = "tensor<" + n + "xi32>";
  return R"(tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tt.make_range {end = )" +
         n + " : i32, start = 0 : i32} : " + places + R"(
    %s = tt.splat %x : !tt.ptr<f32> -> )" +
         pointers + R"(
    %p = tt.addptr %s, %i : )" +
         pointers + ", " + places + R"(
    %v = tt.load %p : )" +
         pointers + R"(
    %m = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : ()" +
         tile + R"() -> f32
    %t = tt.splat %m : f32 -> )" +
         tile + R"(
    %d = arith.subf %v, %t : )" +
         tile + more + R"(
    tt.store %p, %d : )" +
         pointers + R"(
    tt.return
  })";
}

/// A product of M x N x K with `loop` in front of it.
std::string product(int64_t m, int64_t n, int64_t k, const std::string &bound) {
  auto tile = [](int64_t rows, int64_t columns, const std::string &element) {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "x" + element + ">";
  };
  std::string a = tile(m, k, "f16"), b = tile(k, n, "f16"), c = tile(m, n, "f32");
  std::string pa = tile(m, k, "!tt.ptr<f16>"), pb = tile(k, n, "!tt.ptr<f16>");
  std::string pc = tile(m, n, "!tt.ptr<f32>");
  return R"(tt.func public @k(%x: !tt.ptr<f16>, %y: !tt.ptr<f16>, %z: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %zero = arith.constant dense<0.0> : )" +
         c + "\n%px = tt.splat %x : !tt.ptr<f16> -> " + pa +
         "\n%py = tt.splat %y : !tt.ptr<f16> -> " + pb + "\n%pz = tt.splat %z : !tt.ptr<f32> -> " +
         pc + "\n%r = scf.for %i = %c0 to " + bound + " step %c1 iter_args(%acc = %zero) -> (" + c +
         ") : i32 {" + "\n%a = tt.load %px : " + pa + "\n%b = tt.load %py : " + pb +
         "\n%d = tt.dot %a, %b, %acc : " + a + " * " + b + " -> " + c + "\nscf.yield %d : " + c +
         "\n}\ntt.store %pz, %r : " + pc + "\ntt.return\n}";
}

class ThreadChoiceTest : public testing::Test {
protected:
  ThreadChoiceTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  ThreadChoice choose(const std::string &function, int warps = 0, int stages = 0,
                      llvm::StringRef target = "") {
    OwningOpRef<ModuleOp> module =
        tt::parseModule("module {\n" + function + "\n}", "k.ttir", &context);
    EXPECT_TRUE(module) << function;
    if (!module)
      return {};
    llvm::Expected<msl::TargetAttr> spec = msl::TargetAttr::parseSpec(&context, target);
    EXPECT_TRUE(bool(spec));
    return chooseThreads(*module->getOps<tt::FuncOp>().begin(), Budget(*spec), warps, stages);
  }

  MLIRContext context;
};

TEST_F(ThreadChoiceTest, OccupancyFallsWithRegistersAndBothTablesAgree) {
  for (int64_t registers = 1; registers < 140; ++registers)
    EXPECT_GE(getThreadsInFlight(registers), getThreadsInFlight(registers + 1));
  for (int64_t threads = 32; threads <= 1024; threads += 32) {
    int64_t limit = getRegisterLimit(threads);
    if (threads > 384)
      EXPECT_GE(getThreadsInFlight(limit), threads);
    if (limit < 128)
      EXPECT_LT(getThreadsInFlight(limit + 1), threads);
  }
}

TEST_F(ThreadChoiceTest, LongerRowsGetNoFewerThreads) {
  int before = 0;
  for (int64_t columns = 1; columns <= 32768; columns *= 2) {
    int warps = choose(row(columns)).warps;
    EXPECT_GE(warps, before) << columns;
    before = warps;
  }
  EXPECT_EQ(choose(row(1)).warps, 1);
  EXPECT_GE(before, 16);
}

TEST_F(ThreadChoiceTest, MoreThreadsHoldLessEach) {
  for (const std::string &kernel : {row(8192), product(128, 64, 32, "%c8")}) {
    ThreadChoice before = choose(kernel, 1);
    for (int warps = 2; warps <= 32; warps *= 2) {
      ThreadChoice now = choose(kernel, warps);
      EXPECT_EQ(now.warps, warps);
      EXPECT_LE(now.registers, before.registers) << warps;
      EXPECT_LE(now.registers, getRegisterLimit(32 * warps));
      EXPECT_GE(now.threadgroupBytes, before.threadgroupBytes);
      before = now;
    }
  }
}

TEST_F(ThreadChoiceTest, ChoiceIsAmongTheCheapest) {
  for (const std::string &kernel : {row(64), row(4096), product(64, 64, 32, "%n")}) {
    double chosen = choose(kernel).cost;
    for (int warps = 1; warps <= 32; warps *= 2)
      for (int stages = 1; stages <= 2; ++stages)
        EXPECT_LE(chosen, 1.05 * choose(kernel, warps, stages).cost) << warps << ", " << stages;
  }
}

TEST_F(ThreadChoiceTest, WhatIsGivenIsKept) {
  EXPECT_EQ(choose(row(1024), 16).warps, 16);
  ThreadChoice both = choose(product(64, 64, 32, "%n"), 2, 3);
  EXPECT_EQ(both.warps, 2);
  EXPECT_EQ(both.stages, 3);
  EXPECT_EQ(choose(product(64, 64, 32, "%n"), 0, 2).stages, 2);
}

TEST_F(ThreadChoiceTest, KernelWithoutTilesOrPointersGetsOneSimdgroup) {
  ThreadChoice choice = choose("tt.func public @k(%n: i32) {\n tt.return\n}");
  EXPECT_EQ(choice.warps, 1);
  EXPECT_EQ(choice.stages, 1);
  EXPECT_EQ(choice.threadgroupBytes, 0);
}

TEST_F(ThreadChoiceTest, NoLoopThatStagesHasOneStage) { EXPECT_EQ(choose(row(4096)).stages, 1); }

TEST_F(ThreadChoiceTest, LoopOfUnknownLengthIsAsOneOfEightSteps) {
  ThreadChoice known = choose(product(64, 64, 32, "%c8"), 4, 1);
  ThreadChoice unknown = choose(product(64, 64, 32, "%n"), 4, 1);
  EXPECT_EQ(known.cost, unknown.cost);
  // No step at all still counts as one.
  EXPECT_LT(choose(product(64, 64, 32, "%c0"), 4, 1).cost, known.cost);
}

TEST_F(ThreadChoiceTest, TwoBuffersTakeMoreMemoryAndFewerBarriers) {
  ThreadChoice one = choose(product(64, 64, 32, "%n"), 4, 1);
  ThreadChoice two = choose(product(64, 64, 32, "%n"), 4, 2);
  EXPECT_GT(two.threadgroupBytes, one.threadgroupBytes);
  EXPECT_LT(two.barriers, one.barriers);
}

TEST_F(ThreadChoiceTest, LimitOfThreadsBoundsTheChoice) {
  int free = choose(row(32768)).warps;
  ASSERT_GT(free, 8);
  EXPECT_LE(choose(row(32768), 0, 0, "msl=3.1,threads=256").warps, 8);
  EXPECT_EQ(choose(row(32768), 0, 0, "msl=3.1,threads=32").warps, 1);
}

TEST_F(ThreadChoiceTest, RowsWhoseNumbersAreApartHoldTheirPlaces) {
  // Every third number is asked for number by number.
  std::string aligned = row(4096), loose = aligned;
  loose.insert(loose.find("    %s = tt.splat"),
               "    %three = arith.constant dense<3> : tensor<4096xi32>\n"
               "    %i3 = arith.muli %i, %three : tensor<4096xi32>\n");
  loose.replace(loose.find("%s, %i :"), 8, "%s, %i3 :");
  EXPECT_GT(choose(loose, 4).registers, choose(aligned, 4).registers);
  EXPECT_GT(choose(loose, 4).instructions, choose(aligned, 4).instructions);
  // Neighbours that are not aligned are read in packed vectors.
  std::string packed = aligned, fact = " {tt.divisibility = 16 : i32}";
  packed.erase(packed.find(fact), fact.size());
  EXPECT_EQ(choose(packed, 4).registers, choose(aligned, 4).registers);
  // Where a mask may cut those, the ends of rows are asked for number by number.
  auto cut = [](std::string text) {
    text.insert(text.find("    %s = tt.splat"),
                "    %ns = tt.splat %n : i32 -> tensor<4096xi32>\n"
                "    %keep = arith.cmpi slt, %i, %ns : tensor<4096xi32>\n");
    text.replace(text.find("tt.store %p, %d"), 15, "tt.store %p, %d, %keep");
    return text;
  };
  EXPECT_GT(choose(cut(packed), 4).registers, choose(cut(aligned), 4).registers);
}

TEST_F(ThreadChoiceTest, NumbersOfARowLieAtConstantsFromOnePlace) {
  // Eight rows that begin anywhere. A thread has four numbers of each.
  std::string rows = R"(tt.func public @k(%x: !tt.ptr<f32>, %n: i32) {
    %c = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %column = tt.expand_dims %c {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %ns = tt.splat %n : i32 -> tensor<8x1xi32>
    %starts = arith.muli %column, %ns : tensor<8x1xi32>
    %row = tt.expand_dims %i {axis = 0 : i32} : tensor<1024xi32> -> tensor<1x1024xi32>
    %a = tt.broadcast %starts : tensor<8x1xi32> -> tensor<8x1024xi32>
    %b = tt.broadcast %row : tensor<1x1024xi32> -> tensor<8x1024xi32>
    %at = arith.addi %a, %b : tensor<8x1024xi32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x1024x!tt.ptr<f32>>
    %p = tt.addptr %s, %at : tensor<8x1024x!tt.ptr<f32>>, tensor<8x1024xi32>
    %v = tt.load %p : tensor<8x1024x!tt.ptr<f32>>
    tt.store %p, %v : tensor<8x1024x!tt.ptr<f32>>
    tt.return
  })";
  std::string apart = rows;
  apart.replace(apart.find("%row = tt.expand_dims %i "), 25, "%row = tt.expand_dims %i3 ");
  apart.insert(apart.find("    %row ="), "    %three = arith.constant dense<3> : tensor<1024xi32>\n"
                                         "    %i3 = arith.muli %i, %three : tensor<1024xi32>\n");
  EXPECT_GT(choose(apart, 8).registers - choose(rows, 8).registers, 20);
}

TEST_F(ThreadChoiceTest, ResultsOfAThreadsOwnRowsAreWrittenOut) {
  // A thread has four rows of four numbers, and four results of either sums.
  auto sums = [](const std::string &axis, const std::string &result) {
    std::string sum = R"( = "tt.reduce"(%v) <{axis = )" + axis + R"( : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %d = arith.addf %l, %m : f32
      tt.reduce.return %d : f32
    }) : (tensor<2048x4xf32>) -> tensor<)" +
                      result + "xf32>\n";
    return R"(tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %four = arith.constant dense<4> : tensor<2048x1xi32>
    %c = tt.make_range {end = 2048 : i32, start = 0 : i32} : tensor<2048xi32>
    %i = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %column = tt.expand_dims %c {axis = 1 : i32} : tensor<2048xi32> -> tensor<2048x1xi32>
    %starts = arith.muli %column, %four : tensor<2048x1xi32>
    %row = tt.expand_dims %i {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
    %a = tt.broadcast %starts : tensor<2048x1xi32> -> tensor<2048x4xi32>
    %b = tt.broadcast %row : tensor<1x4xi32> -> tensor<2048x4xi32>
    %at = arith.addi %a, %b : tensor<2048x4xi32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<2048x4x!tt.ptr<f32>>
    %p = tt.addptr %s, %at : tensor<2048x4x!tt.ptr<f32>>, tensor<2048x4xi32>
    %v = tt.load %p : tensor<2048x4x!tt.ptr<f32>>
)" + ("%r" + sum + "%second" + sum) +
           R"(    tt.store %p, %v : tensor<2048x4x!tt.ptr<f32>>
    tt.return
  })";
  };
  EXPECT_GE(choose(sums("1", "2048"), 16).registers, choose(sums("0", "4"), 16).registers);
}

TEST_F(ThreadChoiceTest, TransposedTilesTakeNoMoreLinesWithMoreThreads) {
  std::string text = R"(tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
    %p = tt.addptr %s, %i : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
    %v = tt.load %p : tensor<4096x!tt.ptr<f32>>
    %tile = tt.reshape %v : tensor<4096xf32> -> tensor<64x64xf32>
    %t = tt.trans %tile {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
    %r = tt.reshape %t : tensor<64x64xf32> -> tensor<4096xf32>
    tt.store %p, %r : tensor<4096x!tt.ptr<f32>>
    tt.return
  })";
  EXPECT_EQ(choose(text, 4).lines, choose(text, 16).lines);
}

TEST_F(ThreadChoiceTest, ThreadsHaveTheSameResults) {
  // What is computed of sums is computed by each thread that has them.
  const char *text = R"(tt.func public @k(%x: !tt.ptr<f32>) {
    %c = arith.constant dense<1.0> : tensor<128x64xf32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %r = "tt.reduce"(%c) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %d = arith.addf %a, %b : f32
      tt.reduce.return %d : f32
    }) : (tensor<128x64xf32>) -> tensor<128xf32>
    tt.store %s, %r : tensor<128x!tt.ptr<f32>>
    tt.return
  })";
  std::string more = text;
  more.replace(more.find("%s, %r"), 6, "%s, %e");
  more.insert(more.find("    tt.store"), "    %e = math.exp %r : tensor<128xf32>\n");
  double added = choose(more, 4).instructions - choose(text, 4).instructions;
  EXPECT_GT(added, 5 * 4 * 128 / 128);
}

TEST_F(ThreadChoiceTest, TilesOfThreeDimensionsAreCounted) {
  const char *text = R"(tt.func public @k(%x: !tt.ptr<f32>) {
    %c = arith.constant dense<1.0> : tensor<4x32x64xf32>
    %s = tt.splat %x : !tt.ptr<f32> -> tensor<4x32x64x!tt.ptr<f32>>
    %v = tt.load %s : tensor<4x32x64x!tt.ptr<f32>>
    %d = arith.addf %v, %c : tensor<4x32x64xf32>
    tt.store %s, %d : tensor<4x32x64x!tt.ptr<f32>>
    tt.return
  })";
  ThreadChoice choice = choose(text);
  EXPECT_GE(choice.warps, 2);
  EXPECT_GT(choice.instructions, 4 * 32 * 64 / 32);
}

TEST(TileSimdgroupsTest, EveryGroupHasAFragment) {
  for (DotSplit split : {DotSplit::Square, DotSplit::Rows, DotSplit::Columns})
    for (int64_t m = 8; m <= 128; m *= 2)
      for (int64_t n = 8; n <= 128; n *= 2)
        for (unsigned groups = 1; groups <= 32; groups *= 2) {
          auto [rows, columns] = tileSimdgroups({m, n}, {8, 8}, groups, split);
          EXPECT_LE(rows * columns, groups);
          EXPECT_LE(rows * 8, m);
          EXPECT_LE(columns * 8, n);
          // None is idle while there are fragments.
          EXPECT_EQ(rows * columns, std::min<int64_t>(groups, m / 8 * (n / 8)));
        }
}

TEST(TileSimdgroupsTest, RowsAndColumnsComeFirstWhereTheyAreAsked) {
  EXPECT_EQ(tileSimdgroups({64, 64}, {8, 8}, 4, DotSplit::Square), std::pair(2u, 2u));
  EXPECT_EQ(tileSimdgroups({64, 64}, {8, 8}, 4, DotSplit::Rows), std::pair(4u, 1u));
  EXPECT_EQ(tileSimdgroups({64, 64}, {8, 8}, 4, DotSplit::Columns), std::pair(1u, 4u));
  EXPECT_EQ(tileSimdgroups({16, 64}, {8, 8}, 4, DotSplit::Rows), std::pair(2u, 2u));
}

} // namespace
