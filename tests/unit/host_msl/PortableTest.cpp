// Portable launches: what they leave in the buffers, and what they say.
#include "host_device/Device.h"
#include "gtest/gtest.h"
#include <numeric>

using namespace triton_metal;

namespace {

/// Runs the only kernel of a text over `threads` threads, 64 a group. Returns its error.
std::string launch(const std::string &body, std::vector<int> &out, uint32_t threads = 64,
                   uint64_t seed = 0, Counters *counters = nullptr, bool portable = true) {
  LibraryOptions options;
  options.portable = portable;
  options.count = counters;
  auto library = Device::get().compile(
      "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device int *out "
      "[[buffer(0)]], uint i "
      "[[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {\n" +
          body + "\n}\n",
      options);
  if (!library)
    return llvm::toString(library.takeError());
  auto kernel = (*library)->kernel("k");
  if (!kernel)
    return llvm::toString(kernel.takeError());
  std::vector<BufferBinding> buffers{{out.data(), out.size() * sizeof(int), true}};
  Dispatch dispatch;
  dispatch.gridThreads = {threads, 1, 1};
  dispatch.threadsPerThreadgroup = {64, 1, 1};
  dispatch.buffers = buffers;
  dispatch.portableSeed = seed;
  llvm::Error error = (*kernel)->dispatch(dispatch, counters);
  return error ? llvm::toString(std::move(error)) : "";
}

TEST(Portable, ReportsTheVariableAndRestoresTheBuffer) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    std::vector<int> out(64, 5);
    std::string error = launch("int v;\nif (i < 60) v = 1;\nout[i] = v;", out, 64, seed);
    EXPECT_NE(error.find("kernel 'k', line 4:1: byte "), std::string::npos) << error;
    EXPECT_NE(
        error.find("of 'out' (buffer 0) depends on a value that Metal does not promise: "
                   "variable 'v' is read before it has a value (threadgroup 0,0,0, SIMD-group "),
        std::string::npos)
        << error;
    EXPECT_EQ(out, std::vector<int>(64, 5));
  }
}

TEST(Portable, KeepsTheResultOfTheFirstRun) {
  std::vector<int> out(64);
  std::iota(out.begin(), out.end(), 0);
  EXPECT_EQ(launch("int v;\nif (i < 60) v = 1;\nout[i] += i < 60 ? v : 2;", out), "");
  for (int i = 0; i != 64; ++i)
    EXPECT_EQ(out[i], i + (i < 60 ? 1 : 2));
}

TEST(Portable, TakesComponentsThatAreKnownOnlyAtRunTime) {
  std::vector<int> out(64);
  std::iota(out.begin(), out.end(), 0);
  EXPECT_EQ(launch("int4 v;\nfor (uint k = 0; k < 4; ++k) v[k] = out[i] + int(k);\n"
                   "packed_int3 p = v.xyz;\nfloat2x2 m;\n"
                   "for (uint k = 0; k < 4; ++k) m[k / 2][k % 2] = k;\n"
                   "out[i] = v[i % 4] + p[i % 3] + int(m[i % 2][1]);",
                   out),
            "");
  for (int i = 0; i != 64; ++i)
    EXPECT_EQ(out[i], 2 * i + i % 4 + i % 3 + 1 + 2 * (i % 2));
}

TEST(Portable, RunsGroupsThatAreCut) {
  const char *sum = "threadgroup int tile[64];\ntile[t] = i;\n"
                    "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = tile[t];";
  std::vector<int> out(100);
  EXPECT_EQ(launch(sum, out, 100), "");
  EXPECT_EQ(out[99], 99);
  // The last group has 36 threads, so that element 63 has not been written in it.
  const char *mirrored = "threadgroup int tile[64];\ntile[t] = i;\n"
                         "threadgroup_barrier(mem_flags::mem_threadgroup);\nout[i] = tile[63 - t];";
  std::string error = launch(mirrored, out, 100);
  EXPECT_NE(error.find("line 7:"), std::string::npos) << error;
  EXPECT_NE(error.find("threadgroup memory 'tile' (declared in line 4:17)"), std::string::npos)
      << error;
  EXPECT_NE(error.find("(threadgroup 1,0,0"), std::string::npos) << error;
}

TEST(Portable, CountsOneRun) {
  std::vector<int> out(64);
  const char *body = "int v;\nif (i < 60) v = 1;\nout[i] = i < 60 ? v : 2;";
  Counters plain, portable;
  EXPECT_EQ(launch(body, out, 64, 0, &plain, false), "");
  EXPECT_EQ(launch(body, out, 64, 0, &portable), "");
  EXPECT_EQ(plain[Counters::DeviceBytesWritten], 256u);
  EXPECT_EQ(portable[Counters::DeviceBytesWritten], 256u);
}

TEST(Portable, EndsLoopsThatAValueMakesEndless) {
  std::vector<int> out(64);
  std::string error = launch("int v;\nif (i == 64) v = 1;\n"
                             "for (int k = 0; k != v; k = v < 0 ? 0 : k + 1)\n  out[i] = k;",
                             out);
  EXPECT_NE(error.find("variable 'v' is read before it has a value"), std::string::npos) << error;
  EXPECT_EQ(out, std::vector<int>(64));
}

TEST(Portable, RefusesItsOwnFunctionsElsewhere) {
  LibraryOptions options;
  auto library = Device::get().compile(
      "extern \"C\" long __tm_any(bool, int, long);\nkernel void k(device long *out [[buffer(0)]]) "
      "{ *out = __tm_any(true, 0, 1); }",
      options);
  ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
  auto kernel = (*library)->kernel("k");
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  llvm::Error error = (*kernel)->prepare({});
  EXPECT_NE(llvm::toString(std::move(error)).find("is the device's own"), std::string::npos);
}

} // namespace
