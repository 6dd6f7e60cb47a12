// Tables of constants: a thread's own that never change, and the program's.
#include "tests/unit/host_msl/Run.h"

using namespace triton_metal;
using namespace triton_metal::test;

namespace {

typedef std::vector<float> V;

/// `count` numbers, k + 0.5 for index k, each written as a value of `type`.
std::string listOf(const std::string &type, unsigned count) {
  std::string text;
  for (unsigned k = 0; k < count; ++k)
    text += (k ? ", " : "") + type + "(" + std::to_string(k % 64) + ".5f)";
  return "{" + text + "}";
}

class Tables : public testing::TestWithParam<std::tuple<const char *, unsigned>> {};

TEST_P(Tables, AreReadAtAnyIndex) {
  auto [type, count] = GetParam();
  std::vector<int> index(64);
  V found(64), chosen(64), expected(64), expectedChosen(64);
  bool isInteger = std::string(type) == "char";
  for (int k = 0; k < 64; ++k) {
    index[k] = (k * 37 + 11) % count;
    expected[k] = static_cast<float>(index[k] % 64) + (isInteger ? 0.0f : 0.5f);
    expectedChosen[k] = index[k] & 1 ? expected[k] : 3;
  }
  std::string table = std::string("const ") + type + " table[" + std::to_string(count) +
                      "] = " + listOf(type, count) + ";\n";
  // One of two arrays, of which one changes.
  std::string body = table + type + " own[" + std::to_string(count) + "] = " + listOf(type, count) +
                     ";\nint at = index[i]; own[at] = " + type +
                     "(3);\n"
                     "found[i] = float(table[at]);\n"
                     "thread const " +
                     type +
                     " *either = at & 1 ? table : own;\n"
                     "chosen[i] = float(either[at]);";
  runKernel("device const int *index, device float *found, device float *chosen", body,
            {in(index), out(found), out(chosen)}, 64);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(chosen, expectedChosen);
}

INSTANTIATE_TEST_SUITE_P(Types, Tables,
                         testing::Combine(testing::Values("float", "half", "bfloat", "char"),
                                          testing::Values(3, 8, 64, 65, 300)));

TEST(Constants, OfBfloatComeThroughBranches) {
  std::vector<int> x = {7};
  V o(64);
  runKernel("device const int *x, device float *o",
            "bfloat2 value = bfloat(-2.5f);\n"
            "if (x[0] > 3) { o[i] = 1; value = value; } else { o[i] = 2; value = value; }\n"
            "o[i] = float(value.x) * float(value.y);",
            {in(x), out(o)}, 64);
  EXPECT_EQ(o, V(64, 6.25f));
}

/// The error of a checked run over 32 threads, whose index comes from `index`.
std::string checkedRun(const std::string &body, std::vector<int> index,
                       const std::string &before = "") {
  LibraryOptions options;
  options.checks.bounds = true;
  auto library =
      Device::get().compile("#include <metal_stdlib>\nusing namespace metal;\n" + before +
                                "\nkernel void k(device const int *index, device float "
                                "*o, constant float *more, uint i "
                                "[[thread_position_in_grid]]) {\n" +
                                body + "\n}\n",
                            options);
  if (!library)
    return llvm::toString(library.takeError());
  auto kernel = (*library)->kernel("k");
  if (!kernel)
    return llvm::toString(kernel.takeError());
  index.resize(32);
  V o(32), more(8, 9);
  std::vector<BufferBinding> buffers = {in(index), out(o), in(more)};
  Dispatch dispatch;
  dispatch.gridThreads = {32, 1, 1};
  dispatch.threadsPerThreadgroup = {32, 1, 1};
  dispatch.buffers = buffers;
  return llvm::toString((*kernel)->dispatch(dispatch));
}

TEST(Constants, OfFunctionsAreLargeEnough) {
  // Every exponent of a float, infinity and NaN too.
  for (int first = 0; first < 256; first += 32) {
    std::vector<int> bits;
    for (int exponent = first; exponent < first + 32; ++exponent)
      bits.push_back(exponent << 23 | 0x7fffff);
    EXPECT_EQ(checkedRun("float x = as_type<float>(index[i]); o[i] = sin(x) + cos(-x) + tan(x) + "
                         "exp(x) + log(x) + pow(x, 3.0f) + sinh(x); ",
                         bits),
              "");
  }
  EXPECT_EQ(checkedRun("o[i] = sin(as_type<float>(index[i]));", std::vector<int>(32, 0x7f800000)),
            "");
}

TEST(Constants, HaveALimit) {
  std::string error =
      checkedRun("o[i] = large[index[i]];", {0, 2}, "constant int large[2147483647] = {1, 2, 3};");
  EXPECT_NE(error.find("constant variable 'large' has 8589934588 bytes"), std::string::npos)
      << error;
  for (std::string count : {"100000", "2147483647"}) {
    std::string array = "int large[" + count + "] = {1, 2, 3}; ";
    for (std::string body : {"const " + array + "o[i] = large[index[i]];",
                             array + "large[index[i] + 1] = i; o[i] = large[index[i]];"}) {
      error = checkedRun(body, {0, 2});
      EXPECT_NE(error.find("of thread memory have"), std::string::npos) << error;
      EXPECT_NE(error.find(" bytes a thread, but may have 262144"), std::string::npos) << error;
    }
  }
}

TEST(Constants, AreCheckedLikeBuffers) {
  const char *table = "const float table[5] = {1, 2, 3, 4, 5}; o[i] = table[index[i]];";
  EXPECT_EQ(checkedRun(table, {0, 4, 2}), "");
  EXPECT_NE(checkedRun(table, {0, 4, 5}).find("lane 2"), std::string::npos);
  EXPECT_NE(checkedRun(table, {-1}).find("lane 0"), std::string::npos);

  const char *program = "constant float program[5] = {1, 2, 3, 4, 5};";
  EXPECT_EQ(checkedRun("o[i] = program[index[i]];", {0, 4, 2}, program), "");
  EXPECT_NE(checkedRun("o[i] = program[index[i]];", {0, 5}, program).find("lane 1"),
            std::string::npos);

  // One of several objects: each has its own end.
  const char *either = "constant float *p = i & 1 ? more : program; o[i] = p[index[i]];";
  EXPECT_EQ(checkedRun(either, {4, 7, 4, 5, 0, 6}, program), "");
  EXPECT_NE(checkedRun(either, {4, 8}, program).find("lane 1"), std::string::npos);
  EXPECT_NE(checkedRun(either, {4, 7, 5}, program).find("lane 2"), std::string::npos);
}

} // namespace
