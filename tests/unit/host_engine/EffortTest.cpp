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
