// Portable launches: the order of threadgroups, marks of coherent pointers, what is left in
// buffers.
#include "host_device/msl/Frontend.h"
#include "tests/unit/host_engine/Support.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include <algorithm>
#include <numeric>

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

TEST(Visibility, TheSeedDrawsTheOrderOfThreadgroups) {
  const char *text = "kernel void k(device atomic_uint *next, device uint *ticket, "
                     "uint g [[threadgroup_position_in_grid]]) {\n"
                     "  ticket[g] = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed);\n}";
  std::vector<uint32_t> upwards(12), expected(12);
  std::iota(upwards.begin(), upwards.end(), 0);
  std::vector<std::vector<uint32_t>> orders;
  for (uint64_t seed = 0; seed != 8; ++seed) {
    std::vector<uint32_t> next(1), ticket(12);
    ASSERT_EQ(runPortable(text, {bind(next), bind(ticket)}, 12, 1, seed), "");
    EXPECT_TRUE(std::is_permutation(ticket.begin(), ticket.end(), upwards.begin()));
    orders.push_back(ticket);
  }
  EXPECT_EQ(orders[3], upwards);
  std::reverse(upwards.begin(), upwards.end());
  EXPECT_EQ(orders[1], upwards);
  EXPECT_NE(orders[0], orders[4]);
  EXPECT_NE(orders[2], orders[3]);
}

TEST(Visibility, AConflictIsADifferentResultAndNoError) {
  const char *text = "kernel void k(device uint *x, uint g [[threadgroup_position_in_grid]]) {\n"
                     "  x[0] = g + 1;\n}";
  std::vector<uint32_t> results;
  for (uint64_t seed = 0; seed != 4; ++seed) {
    std::vector<uint32_t> x(1);
    ASSERT_EQ(runPortable(text, {bind(x)}, 5, 1, seed), "");
    results.push_back(x[0]);
  }
  EXPECT_EQ(results[3], 5u);
  EXPECT_EQ(results[1], 1u);
}

TEST(Visibility, BuffersThatShareMemoryAreOne) {
  const char *text =
      "kernel void k(device const uint *x, device uint *y, uint g [[threadgroup_position_in_grid]],"
      " uint n [[threadgroups_per_grid]]) {\n"
      "  uint next = x[(g + 1) % n];\n"
      "  y[g] = next + 10;\n}";
  std::vector<uint32_t> x{1, 2, 3, 4}, y(4), both = x;
  EXPECT_EQ(runPortable(text, {bindConst(x), bind(y)}, 4, 1, 3), "");
  EXPECT_EQ(y, (std::vector<uint32_t>{12, 13, 14, 11}));
  std::string error = runPortable(text, {bind(both), bind(both)}, 4, 1, 3);
  EXPECT_NE(error.find("kernel 'k', line 4:"), std::string::npos) << error;
  EXPECT_NE(error.find("stored in line 5:"), std::string::npos) << error;
  EXPECT_EQ(both, x);
}

TEST(Visibility, ALaunchThatRunsSeveralTimesCountsOnce) {
  const char *text =
      "kernel void k(device uint *x, device uint *y, uint g [[threadgroup_position_in_grid]],"
      " uint n [[threadgroups_per_grid]]) {\n"
      "  uint next = x[(g + 1) % n];\n"
      "  x[g] = 7;\n"
      "  y[g] = next > 100;\n}";
  std::vector<uint32_t> x(4), y(4, 9);
  Counters counters;
  ASSERT_EQ(runPortable(text, {bind(x), bind(y)}, 4, 1, 3, &counters), "");
  EXPECT_EQ(y, (std::vector<uint32_t>{0, 0, 0, 0}));
  EXPECT_EQ(x, (std::vector<uint32_t>{7, 7, 7, 7}));
  EXPECT_EQ(counters[Counters::DeviceBytesWritten], 32u);
}

TEST(Visibility, AnUncheckedLaunchAfterAPortableOneRunsAsBefore) {
  const char *text = "kernel void k(device uint *x, uint i [[thread_position_in_grid]]) {\n"
                     "  threadgroup uint shared[64];\n"
                     "  shared[i % 64] = i;\n"
                     "  threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                     "  x[i] = shared[(i + 33) % 64];\n}";
  std::vector<uint32_t> portable(128), usual(128);
  ASSERT_EQ(runPortable(text, {bind(portable)}, 2, 64, 0), "");
  auto library = Device::get().compile(header + text);
  ASSERT_TRUE(bool(library));
  EXPECT_EQ(run(**library, "k", {bind(usual)}, {2, 1, 1}, {64, 1, 1}), "");
  EXPECT_EQ(usual, portable);
}

/// The number of marks in a kernel with this body, compiled portably or not.
unsigned marks(const std::string &body, bool portable = true) {
  llvm::LLVMContext context;
  MslOptions options;
  options.portable = portable;
  auto compiled =
      compileMsl(header + "kernel void k(device float *x) {\n" + body + "\n}", options, context);
  if (!compiled) {
    ADD_FAILURE() << llvm::toString(compiled.takeError());
    return ~0u;
  }
  unsigned count = 0;
  for (llvm::Function &function : *compiled->module)
    for (llvm::Instruction &inst : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&inst);
          call && call->getCalledFunction() &&
          call->getCalledFunction()->getName() == "__tm_coherent")
        ++count;
  return count;
}

TEST(Visibility, AccessesThroughCoherentPointersAreMarked) {
  const std::string pointer =
      "coherent(device) device float *p = (coherent(device) device float *)x;";
  EXPECT_EQ(marks(pointer + "p[0] = 1;"), 1u);
  EXPECT_EQ(marks(pointer + "*p = 1;"), 1u);
  EXPECT_EQ(marks(pointer + "*(p + 1) = p[2];"), 2u);
  EXPECT_EQ(marks("device coherent(system) float *p = x; p[0] += 1;"), 1u);
  EXPECT_EQ(marks("((coherent(device) device float4 *)x)[1].y = 1;"), 1u);
  EXPECT_EQ(marks("struct S { float a; }; ((coherent(device) device S *)x)->a = 1;"), 1u);
  EXPECT_EQ(marks(pointer + "coherent(device) device float &r = p[3]; r = 2;"), 2u);
  EXPECT_EQ(marks(pointer + "auto q = p + 1; q[0] = 1;"), 1u);
  EXPECT_EQ(marks("x[0] = 1;"), 0u);
  EXPECT_EQ(marks(pointer + "device float *q = (device float *)p; q[0] = 1;"), 0u);
  EXPECT_EQ(marks("coherent(threadgroup) device float *p = x; p[0] = 1;"), 0u);
  EXPECT_EQ(marks(pointer + "p[0] = 1;", /*portable=*/false), 0u);
}

} // namespace
