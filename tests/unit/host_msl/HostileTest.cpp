// Texts that try to end the process are errors, or are compiled.
#include "tests/unit/host_msl/Run.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// What a front end that was stopped half way had allocated stays so; a default of this program,
// which ASAN_OPTIONS overrides.
extern "C" const char *__asan_default_options() { return "detect_leaks=0"; }
#endif
#endif

using namespace triton_metal;
using namespace triton_metal::test;

namespace {

std::string repeated(const std::string &text, unsigned count) {
  std::string result;
  for (unsigned i = 0; i != count; ++i)
    result += text;
  return result;
}

/// What the device says of a kernel with this body, "" where it can be launched.
std::string problemOf(const std::string &body, const std::string &before = "") {
  auto library = Device::get().compile("#include <metal_stdlib>\nusing namespace metal;\n" +
                                       before + "\nkernel void k(device int *o) {" + body + "}\n");
  if (!library)
    return llvm::toString(library.takeError());
  auto kernel = (*library)->kernel("k");
  if (!kernel)
    return llvm::toString(kernel.takeError());
  return llvm::toString((*kernel)->prepare({}));
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(Hostile, NestingIsCompiledOrRefused) {
  for (unsigned depth : {200u, 3000u}) {
    std::pair<const char *, const char *> brackets[] = {
        {"(", ")"}, {"abs(", ")"}, {"o[", "]"}, {"[](){ return ", "; }()"}};
    for (auto [open, close] : brackets) {
      std::string problem =
          problemOf("o[0] = " + repeated(open, depth) + "1" + repeated(close, depth) + ";");
      EXPECT_EQ(problem.empty(), depth == 200) << open;
      EXPECT_TRUE(problem.empty() || contains(problem, "nesting level exceeded")) << problem;
    }
    for (const char *prefix : {"-", "~", "!", "(int)", "o[0] = ", "o[0] ? 1 : "})
      EXPECT_EQ(problemOf("o[0] = " + repeated(std::string(prefix) + " ", depth) + "1;"), "");
    for (const char *prefix : {"if (o[0]) ", "if (o[0]) o[1] = 1; else "})
      EXPECT_EQ(problemOf(repeated(prefix, depth / 10) + "o[2] = 1;"), "");
  }
}

TEST(Hostile, ExplosionsAreRefused) {
  std::string macros = "#define M0 1 + 1\n", functions = "int f0(int x) { return x + 1; }\n";
  for (int i = 0; i != 30; ++i) {
    std::string now = std::to_string(i), next = std::to_string(i + 1);
    macros += "#define M" + next + " M" + now + " + M" + now + "\n";
    functions += "int f" + next + "(int x) { return f" + now + "(x) + f" + now + "(x * 3); }\n";
  }
  EXPECT_TRUE(contains(problemOf("o[0] = M30;", macros), "more than 1000000 macros"));
  EXPECT_TRUE(contains(problemOf("o[0] = f30(o[1]);", functions),
                       "becomes more than 1000000 instructions"));
  EXPECT_TRUE(contains(problemOf(repeated("for (int i = 0; i < o[1]; ++i) ", 1000) + "o[0] += 1;"),
                       "nested deeper than 128"));
  EXPECT_TRUE(
      contains(problemOf("o[0] = f<0>();", "template <int n> int f() { return f<n + 1>() + 1; }"),
               "recursive template instantiation"));
  // And the device goes on.
  EXPECT_EQ(problemOf("o[0] = 1;"), "");
}

TEST(Hostile, WhatClangTriesAgainAndAgainIsRefused) {
  for (const char *before : {"o[0] = (", "if (o[0] > (", "int x["})
    EXPECT_TRUE(contains(problemOf(before + repeated("unknown < ", 100) + "1"),
                         "looks up unknown names more than 4000000 times"));
  // With few of them, clang says what is wrong.
  EXPECT_TRUE(contains(problemOf("o[0] = (" + repeated("unknown < ", 10) + "1);"),
                       "use of undeclared identifier 'unknown'"));
  for (const char *comparison : {"==", "!=", "<", ">="}) {
    std::string term = std::string("o[1] ") + comparison + " ";
    EXPECT_EQ(problemOf("o[0] = " + repeated(term, 500) + "1;"), "") << comparison;
    EXPECT_TRUE(contains(problemOf("o[0] = " + repeated(term, 20000) + "1;"),
                         "more than 512 comparisons after each other (line 4)"));
  }
  // These are none.
  EXPECT_EQ(problemOf("o[0] = " + repeated("as_type<int>(o[1]) + ", 5000) + "1;"), "");
  EXPECT_EQ(problemOf(repeated("o[0] += o[1] < o[2];", 5000)), "");
}

TEST(Hostile, ClangStopsAfterManyErrorsAndTheFirstAreShown) {
  std::string problem = problemOf(repeated("o[0] = unknown;\n", 300));
  EXPECT_TRUE(contains(problem, "kernel.metal:5:8: error: use of undeclared identifier 'unknown'"))
      << problem;
  EXPECT_FALSE(contains(problem, "too many errors"));
}

TEST(Hostile, HugeArraysOfVectorsAreRefused) {
  for (const char *count : {"10000000", "4294967295u"}) {
    std::string array = std::string("half3 a[") + count + "];";
    EXPECT_TRUE(contains(problemOf("threadgroup " + array + " o[0] = a[o[1]].x;"),
                         "error: threadgroup variable 'a' has "));
    EXPECT_TRUE(contains(
        problemOf("o[0] = a[o[1]].x;", "constant " + array.substr(0, array.size() - 1) + " = {};"),
        "bytes, but a constant can have at most 16777216"));
  }
  EXPECT_EQ(problemOf("threadgroup half3 a[4096]; o[0] = a[o[1]].x;"), "");
}

TEST(Hostile, ATextMayEndInThePragmaOfALoop) {
  for (const char *pragma :
       {"#pragma unroll", "#pragma unroll(4)", "#pragma clang loop unroll(full)",
        "_Pragma(\"unroll\")", "#pragma nounroll // why\n// more"})
    for (const char *end : {"", "\n", "\n\n"}) {
      auto library =
          Device::get().compile(std::string("kernel void k(device int *o) {\n") + pragma + end);
      ASSERT_FALSE(bool(library));
      std::string problem = llvm::toString(library.takeError());
      EXPECT_FALSE(contains(problem, "crash")) << problem;
      EXPECT_TRUE(contains(problem, "expected")) << problem;
    }
}

TEST(Hostile, KernelsThatNeverEndCompile) {
  EXPECT_EQ(problemOf("while (true) {}"), "");
  EXPECT_EQ(problemOf("for (;;) o[0] += 1;"), "");
  EXPECT_EQ(problemOf("if (o[0]) while (true) { o[1] += 1; } o[2] = 3;"), "");
  EXPECT_EQ(problemOf("int x = 1; while (x) {} o[2] = 3;"), "");
}

TEST(Hostile, AFaultIsAnErrorAndTheDeviceGoesOn) {
  for (const char *barrier : {"", "threadgroup_barrier(mem_flags::mem_threadgroup);"}) {
    auto library = Device::get().compile(
        std::string("#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device int *o, "
                    "uint i [[thread_index_in_threadgroup]]) { if (o[64]) o[(1l << 40) + i] = 1;") +
        barrier + "o[i] = 5; }");
    ASSERT_TRUE(bool(library));
    Kernel *kernel = llvm::cantFail((*library)->kernel("k"));
    for (int wild : {1, 0, 1, 1, 0}) {
      std::vector<int> o(65, wild);
      BufferBinding buffers[] = {out(o)};
      Dispatch dispatch;
      dispatch.threadgroups = {wild ? 100u : 1u, 1, 1};
      dispatch.threadsPerThreadgroup = {64, 1, 1};
      dispatch.buffers = buffers;
      std::string problem = llvm::toString(kernel->dispatch(dispatch));
      EXPECT_EQ(problem.empty(), !wild) << problem;
      if (wild) {
        EXPECT_TRUE(contains(problem, "kernel 'k'") && contains(problem, "faulted (SIG") &&
                    contains(problem, "check=\"bounds\""))
            << problem;
      } else {
        o.pop_back();
        EXPECT_EQ(o, std::vector<int>(64, 5));
      }
    }
  }
}

TEST(Hostile, CopiesCountAsTheAccessesOfTheText) {
  struct Case {
    const char *type;
    unsigned perThread;
    Counters::Index counter;
  };
  for (auto [type, halves, counter] :
       {Case{"half4", 4, Counters::DeviceAccesses8}, Case{"uint4", 8, Counters::DeviceAccesses16},
        Case{"half2", 2, Counters::DeviceAccesses4}, Case{"float2", 4, Counters::DeviceAccesses8},
        Case{"packed_half4", 4, Counters::DeviceAccesses8},
        Case{"packed_float2", 4, Counters::DeviceAccesses8},
        Case{"packed_float4", 8, Counters::DeviceAccesses16}}) {
    std::string at = "(p + " + std::to_string(halves) + " * i)",
                to = "(t + " + std::to_string(halves) + " * i)";
    LibraryOptions options;
    options.count = true;
    auto library = Device::get().compile(
        "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device half *p, uint i "
        "[[thread_index_in_threadgroup]]) { threadgroup half t[256]; *(threadgroup " +
            std::string(type) + " *)" + to + " = *(device " + type + " *)" + at +
            "; threadgroup_barrier(mem_flags::mem_threadgroup); if (i == 0) p[0] = t[5]; }",
        options);
    ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
    std::vector<uint16_t> memory(512);
    BufferBinding buffers[] = {out(memory)};
    Dispatch dispatch;
    dispatch.threadsPerThreadgroup = {32, 1, 1};
    dispatch.buffers = buffers;
    Counters counters;
    llvm::cantFail(llvm::cantFail((*library)->kernel("k"))->dispatch(dispatch, &counters));
    EXPECT_EQ(counters[counter], 32u) << type;
  }
}

} // namespace
