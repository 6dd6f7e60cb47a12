// Portable launches on several threads.
#include "tests/unit/host_engine/Support.h"
#include <algorithm>

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

constexpr uint32_t groups = 300, threads = 64;

TEST(Apart, NeighboursThatShareALineOfMemoryAreTold) {
  // Each threadgroup reads the last number of the previous one, which has changed it, or will.
  const char *text = "kernel void k(device uint *x, uint i [[thread_position_in_grid]]) {\n"
                     "  uint before = i ? x[i - 1] : 0;\n"
                     "  x[i] = before + 1;\n}";
  for (uint64_t seed = 0; seed != 4; ++seed) {
    std::vector<uint32_t> x(groups * threads, 7), was = x;
    std::string error = runPortable(text, {bind(x)}, groups, threads, seed);
    EXPECT_NE(error.find("kernel 'k', line 4:"), std::string::npos) << error;
    EXPECT_EQ(x, was);
  }
}

TEST(Apart, ConflictingStoresHaveTheOrderOfTheSeed) {
  // The last number of a threadgroup is also the first one of the next.
  const char *text = "kernel void k(device uint *x, uint g [[threadgroup_position_in_grid]],\n"
                     "              uint i [[thread_index_in_threadgroup]]) { x[g * 63 + i] = g; }";
  for (uint64_t seed = 0; seed != 4; ++seed) {
    std::vector<uint32_t> first, x(groups * 63 + 1);
    for (int repeat = 0; repeat != 4; ++repeat) {
      ASSERT_EQ(runPortable(text, {bind(x)}, groups, threads, seed), "");
      if (!repeat)
        first = x;
      EXPECT_EQ(x, first) << seed;
    }
    if (seed == 1) // from the last threadgroup to the first
      for (uint32_t group = 1; group != groups; ++group)
        ASSERT_EQ(x[group * 63], group - 1);
    if (seed == 3)
      for (uint32_t group = 1; group != groups; ++group)
        ASSERT_EQ(x[group * 63], group);
  }
}

/// Divides, and keeps `other` where the divisor is zero.
std::string division(const char *other) {
  return "kernel void k(device int *x, device const int *y,\n"
         "              uint i [[thread_position_in_grid]]) {\n"
         "  int quotient = x[i] / y[i];\n"
         "  x[i] = " +
         std::string(other) + ";\n}";
}

TEST(Apart, OnlyThreadgroupsRunAgainInWhichAValueIsAnyValue) {
  for (uint32_t place : {0u, 64u * 150 + 5, groups * threads - 1}) {
    std::vector<int32_t> x(groups * threads, 12), y(groups * threads, 3), was = x;
    y[place] = 0;
    for (uint64_t seed = 0; seed != 4; ++seed) {
      std::fill(x.begin(), x.end(), 12);
      Counters counters;
      ASSERT_EQ(runPortable(division("y[i] ? quotient : -1"), {bind(x), bindConst(y)}, groups,
                            threads, seed, &counters),
                "");
      EXPECT_EQ(std::count(x.begin(), x.end(), 4), groups * threads - 1);
      EXPECT_EQ(x[place], -1);
      EXPECT_EQ(counters[Counters::DeviceBytesWritten], uint64_t(groups) * threads * 4);
      std::fill(x.begin(), x.end(), 12);
      std::string error =
          runPortable(division("quotient"), {bind(x), bindConst(y)}, groups, threads, seed);
      EXPECT_NE(error.find("kernel 'k', line 5:"), std::string::npos) << error;
      EXPECT_EQ(x, was);
    }
  }
}

TEST(Apart, AnyValueMayChooseTheAddress) {
  // Where the divisor is zero, a place in the second half is written, which nothing else writes.
  auto text = [](const char *number) {
    return std::string("kernel void k(device uint *x, device const int *y,\n"
                       "              uint i [[thread_position_in_grid]]) {\n"
                       "  uint at = uint(5 / y[i]) % 19200 + 19200;\n"
                       "  x[y[i] ? i : at] = ") +
           number + ";\n}";
  };
  std::vector<uint32_t> x(2 * groups * threads);
  std::vector<int32_t> y(groups * threads, 3);
  y[77] = 0;
  for (uint64_t seed = 0; seed != 4; ++seed) {
    std::fill(x.begin(), x.end(), 9);
    std::string error = runPortable(text("i"), {bind(x), bindConst(y)}, groups, threads, seed);
    EXPECT_NE(error.find("kernel 'k', line 5:"), std::string::npos) << error;
    EXPECT_EQ(std::count(x.begin(), x.end(), 9), std::ptrdiff_t(x.size()));
    // The same number that is there: nothing can tell.
    EXPECT_EQ(runPortable(text("9"), {bind(x), bindConst(y)}, groups, threads, seed), "");
    EXPECT_EQ(std::count(x.begin(), x.end(), 9), std::ptrdiff_t(x.size()));
  }
}

TEST(Apart, BarriersAndSeveralSimdgroups) {
  const char *text = "kernel void k(device uint *x, uint i [[thread_position_in_grid]],\n"
                     "              uint t [[thread_index_in_threadgroup]]) {\n"
                     "  threadgroup uint all[64];\n"
                     "  for (uint step = 0; step != 6; ++step) {\n"
                     "    all[t] = x[i];\n"
                     "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                     "    x[i] = all[(t + 1) % 64] + 1;\n"
                     "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
                     "  }\n}";
  for (uint64_t seed = 0; seed != 4; ++seed) {
    std::vector<uint32_t> x(groups * threads);
    for (size_t i = 0; i != x.size(); ++i)
      x[i] = i;
    ASSERT_EQ(runPortable(text, {bind(x)}, groups, threads, seed), "");
    for (size_t i = 0; i != x.size(); ++i)
      ASSERT_EQ(x[i], i / 64 * 64 + (i % 64 + 6) % 64 + 6);
  }
}

} // namespace
