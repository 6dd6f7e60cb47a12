// Code that is compiled quickly, and its replacement by optimised code in the background.
#include "Support.h"
#include <atomic>
#include <cstdlib>
#include <thread>

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

/// Runs `rounds` iterations a thread, and has values and control flow that differ by lane.
const std::string text = header + R"(
kernel void k(device float *out [[buffer(0)]], constant uint &rounds [[buffer(1)]],
              uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[64];
  float sum = 0;
  for (uint n = 0; n < rounds; ++n) {
    shared[i % 64] = float(n ^ i);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float other = shared[(i * 7 + n) % 64];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane % 3 == n % 3)
      sum += sqrt(other) * 0.25f;
    else
      sum = simd_shuffle_xor(sum, 1) - other;
  }
  out[i] = sum;
}
)";

struct Launcher {
  std::shared_ptr<Library> library;
  Kernel *kernel = nullptr;
  std::vector<float> out = std::vector<float>(256);
  std::vector<uint32_t> rounds{1};
  std::vector<BufferBinding> buffers;
  Dispatch dispatch;

  explicit Launcher(LibraryOptions options, const std::string &source = text) {
    auto made = Device::get().compile(source, options);
    if (!made) {
      ADD_FAILURE() << llvm::toString(made.takeError());
      return;
    }
    library = *made;
    kernel = llvm::cantFail(library->kernel("k"));
    dispatch.threadgroups = {4, 1, 1};
    dispatch.threadsPerThreadgroup = {64, 1, 1};
  }
  std::string run(uint32_t count, Counters *counters = nullptr) {
    rounds[0] = count;
    buffers = {bind(out), bindConst(rounds)};
    dispatch.buffers = buffers;
    return errorOf(kernel->dispatch(dispatch, counters));
  }
  bool isQuick() { return llvm::cantFail(kernel->isQuick(dispatch)); }
};

LibraryOptions with(Effort effort) {
  LibraryOptions options;
  options.effort = effort;
  return options;
}

TEST(Effort, QuickAndOptimisedCodeGiveTheSameResultsAndCounts) {
  for (bool count : {false, true}) {
    LibraryOptions quick = with(Effort::Quick), full = with(Effort::Full);
    quick.count = full.count = count;
    Launcher a(quick), b(full);
    Counters counted, expected;
    ASSERT_EQ(a.run(25, &counted), "");
    ASSERT_EQ(b.run(25, &expected), "");
    EXPECT_EQ(a.out, b.out);
    EXPECT_EQ(counted.values, expected.values);
    EXPECT_TRUE(a.isQuick());
    EXPECT_FALSE(b.isQuick());
  }
}

/// Functions that are called often stay functions in quick code: with branches, loops, arrays,
/// tables, each other, and 64-bit numbers.
const std::string repeated = header + R"(
constant float table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
float steps(float x, uint n) {
  float held[4] = {x, x + 1, x * 2, 0};
  for (uint j = 0; j < n % 5; ++j)
    held[j % 4] += held[(j + n) % 4] * 0.5f;
  return held[n % 4] + table[n % 8];
}
uint high(uint a, uint b) { return uint((ulong(a) * ulong(b) + ulong(b)) >> 32) ^ (a << 3); }
float both(float x, uint n) {
  if (n % 3 == 0)
    return steps(x, n) - 1;
  if (n % 3 == 1)
    return exp2(steps(-x, high(n, 0x9e3779b9u)) * 0.0625f);
  return float(high(n, n * 77777u) % 1000u);
}
kernel void k(device float *out [[buffer(0)]], constant uint &rounds [[buffer(1)]],
              uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float sum = 0;
  for (uint n = 0; n < rounds; ++n) {
    float4 x = float4(float(i), float(n), sum, 3) * 0.25f;
    uint4 y = uint4(i, lane, n, i * n + 7);
    float4 z = float4(both(x.x, y.x), both(x.y, y.y), both(x.z, y.z), both(x.w, y.w));
    if (lane % 4 != n % 4)
      z += float4(both(z.x, 3), both(z.y, y.w), both(z.w, rounds), steps(1, y.x));
    else if (y.y > 20)
      break;
    uint4 w = mulhi(y * 0xD2511F53u, y) ^ mulhi(uint4(n), y + 0x80000000u);
    sum += dot(exp(-abs(z) * 0.01f), float4(w & 15));
    sum += float(high(w.x, 1) + high(w.y, 2) + high(w.z, rounds)) * 0x1p-20f;
  }
  out[i] = sum;
}
)";

TEST(Effort, RepeatedFunctionsGiveTheSameResultsAndCounts) {
  for (bool count : {false, true}) {
    LibraryOptions quick = with(Effort::Quick), full = with(Effort::Full);
    quick.count = full.count = count;
    Launcher a(quick, repeated), b(full, repeated);
    Counters counted, expected;
    ASSERT_EQ(a.run(9, &counted), "");
    ASSERT_EQ(b.run(9, &expected), "");
    EXPECT_EQ(a.out, b.out);
    EXPECT_NE(a.out[1], a.out[2]);
    EXPECT_EQ(counted.values, expected.values);
  }
}

TEST(Effort, KernelsThatRunForLongAreOptimisedInTheBackground) {
  Launcher launcher(with(Effort::Adaptive), text + "// improves\n"), judge(with(Effort::Full));
  ASSERT_EQ(launcher.run(3), "");
  EXPECT_TRUE(launcher.isQuick());
  // Some threads launch it while the code is replaced.
  ASSERT_EQ(judge.run(2000), "");
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  std::vector<std::string> problems(2);
  for (std::string &problem : problems)
    threads.emplace_back([&] {
      Launcher own(with(Effort::Adaptive), text + "// improves\n");
      while (!stop && problem.empty()) {
        problem = own.run(2000);
        if (own.out != judge.out)
          problem += "wrong result";
      }
    });
  for (int attempt = 0; attempt != 3000 && launcher.isQuick(); ++attempt) {
    ASSERT_EQ(launcher.run(2000), "");
    EXPECT_EQ(launcher.out, judge.out);
  }
  Device::get().finishCompilations();
  stop = true;
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &problem : problems)
    EXPECT_EQ(problem, "");
  EXPECT_FALSE(launcher.isQuick());
  ASSERT_EQ(launcher.run(2000), "");
  EXPECT_EQ(launcher.out, judge.out);
}

TEST(Effort, TheEnvironmentDecidesWhereTheProgramDoesNot) {
  setenv("TRITON_METAL_HOST_EFFORT", "full", 1);
  EXPECT_FALSE(Launcher(with(Effort::Adaptive), text + "// by environment\n").isQuick());
  EXPECT_TRUE(Launcher(with(Effort::Quick), text + "// by environment\n").isQuick());
  setenv("TRITON_METAL_HOST_EFFORT", "much", 1);
  auto library = Device::get().compile(text + "// refused\n");
  ASSERT_FALSE(bool(library));
  EXPECT_EQ(llvm::toString(library.takeError()),
            "TRITON_METAL_HOST_EFFORT is 'much', but must be quick or full");
  unsetenv("TRITON_METAL_HOST_EFFORT");
}

} // namespace
