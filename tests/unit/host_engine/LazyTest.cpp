// A library parses its text once and lowers only the kernels that are asked for.
#include "Support.h"
#include "llvm/ADT/StringExtras.h"

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

std::string runOne(Library &library, llvm::StringRef name, std::vector<int32_t> &out) {
  auto kernel = library.kernel(name);
  if (!kernel)
    return llvm::toString(kernel.takeError());
  Dispatch dispatch;
  dispatch.threadsPerThreadgroup = {32, 1, 1};
  std::vector<BufferBinding> buffers{bind(out)};
  dispatch.buffers = buffers;
  return errorOf((*kernel)->dispatch(dispatch));
}

LibraryOptions withConstants(std::vector<FunctionConstantValue> values) {
  LibraryOptions options;
  options.functionConstants = std::move(values);
  return options;
}

/// The value of each kernel `k` with the constants.
int32_t valueWith(Library &library, std::vector<FunctionConstantValue> values) {
  auto other = llvm::cantFail(library.with(withConstants(std::move(values))));
  std::vector<int32_t> out(32, -1);
  EXPECT_EQ(runOne(*other, "k", out), "");
  return out[0];
}

TEST(Lazy, OfManyKernelsOnlyThoseAskedForAreLowered) {
  std::string text = R"(
template <int N> int mix(int x) { for (int i = 0; i < 8; ++i) x = x * N + i; return x; }
int helper(int x) { return x + 1; }
template <int N> kernel void many(device int *o) { o[0] = mix<N>(helper(o[0])); }
kernel void plain(device int *o) { o[0] = helper(41); }
)";
  for (int i = 1; i <= 500; ++i)
    text += "template [[host_name(\"many_" + llvm::utostr(i) + "\")]] kernel void many<" +
            llvm::utostr(i) + ">(device int *);\n";
  auto library = llvm::cantFail(Device::get().compile(text));
  EXPECT_EQ(library->kernels().size(), 501u);
  EXPECT_EQ(library->work().parsed, 1u);
  EXPECT_EQ(library->work().lowered, 0u);
  EXPECT_EQ(library->work().functions, 0u);
  std::vector<int32_t> out(32, 0);
  EXPECT_EQ(runOne(*library, "many_3", out), "");
  int32_t expected = 1;
  for (int i = 0; i < 8; ++i)
    expected = expected * 3 + i;
  EXPECT_EQ(out[0], expected);
  EXPECT_EQ(library->work().lowered, 1u);
  EXPECT_EQ(library->work().functions, 3u); // many<3>, mix<3> and helper
  EXPECT_EQ(runOne(*library, "plain", out), "");
  EXPECT_EQ(out[0], 42);
  EXPECT_EQ(library->work().parsed, 1u);
  EXPECT_EQ(library->work().lowered, 2u);
  EXPECT_EQ(library->work().functions, 5u);
}

TEST(Lazy, ClangsErrorsAreTheLibrarysAlsoInKernelsThatNobodyAsksFor) {
  auto library = Device::get().compile(R"(
template <typename T> kernel void k(device T *o) { o[0] = T(1).missing; }
template [[host_name("k_int")]] kernel void k<int>(device int *);
kernel void other(device int *o) { o[0] = 1; }
)",
                                       {.fileName = "wrong.metal"});
  ASSERT_FALSE(bool(library));
  EXPECT_NE(llvm::toString(library.takeError()).find("wrong.metal:2:"), std::string::npos);
}

TEST(Lazy, AKernelThatCannotBeLoweredLeavesTheOthers) {
  auto library = llvm::cantFail(Device::get().compile(R"(
int count(int n) { return n ? count(n - 1) + count(n / 2) : 1; }
kernel void recursive(device int *o) { o[0] = count(o[0]); }
kernel void right(device int *o) { o[0] = 5; }
)"));
  std::vector<int32_t> out(32);
  EXPECT_NE(runOne(*library, "recursive", out).find("is recursive"), std::string::npos);
  EXPECT_EQ(runOne(*library, "right", out), "");
  EXPECT_EQ(out[0], 5);
}

TEST(Lazy, ATextIsParsedOnceForItsListAndItsConstants) {
  auto library = llvm::cantFail(Device::get().compile(R"(
constant int size [[function_constant(0)]];
constant bool wide [[function_constant(1)]];
constant int twice = size * 2;
constant int table[2] = {size, twice + 1};
kernel void k(device int *o) {
  const int local[2] = {wide ? 10 : 20, size};
  o[0] = wide ? local[0] + table[1] : local[0] - twice + local[1];
}
)"));
  EXPECT_EQ(valueWith(*library, {{0, 3}, {1, 1}}), 10 + 7);
  EXPECT_EQ(library->work().parsed, 1u);
  // A tree keeps what was evaluated with the first values.
  EXPECT_EQ(valueWith(*library, {{0, 5}, {1, 0}}), 20 - 10 + 5);
  EXPECT_EQ(library->work().parsed, 2u);
  EXPECT_EQ(valueWith(*library, {{0, 4}, {1, 1}}), 10 + 9);
  EXPECT_NE(llvm::cantFail(library->info("k")).unusable, "");
}

TEST(Lazy, ATextThatAsksForValuesIsParsedWithThem) {
  auto library = llvm::cantFail(Device::get().compile(R"(
constant int size [[function_constant(0)]];
constant int used = is_function_constant_defined(size) ? size : 7;
kernel void k(device int *o) {
  const bool known = is_function_constant_defined(size);
  o[0] = used + (known ? 100 : 0);
}
)"));
  EXPECT_EQ(valueWith(*library, {}), 7);
  EXPECT_EQ(valueWith(*library, {{0, 3}}), 103);
  EXPECT_EQ(valueWith(*library, {}), 7);
}

TEST(Lazy, AChoiceBetweenTemplatesIsMadeWithTheValues) {
  auto library = llvm::cantFail(Device::get().compile(R"(
constant int size [[function_constant(0)]];
template <int N> struct Number { static constexpr constant int value = N; };
template <typename T> int choose(T x, Number<sizeof(T) * 0 + 3> *) { return 1; }
template <typename T> auto pick(T x, int) -> decltype(x + Number<size>::value) { return x + size; }
template <typename T> int pick(T x, long) { return 1000; }
kernel void k(device int *o) { o[0] = pick(1, 0); }
)"));
  EXPECT_EQ(valueWith(*library, {{0, 3}}), 4);
  EXPECT_EQ(valueWith(*library, {{0, 6}}), 7);
}

TEST(Lazy, ParametersExistByTheValues) {
  auto library = llvm::cantFail(Device::get().compile(R"(
constant bool has [[function_constant(0)]];
kernel void k(device int *o, device int *extra [[buffer(1), function_constant(has)]]) { o[0] = has ? extra[0] : 9; }
)"));
  EXPECT_EQ(valueWith(*library, {{0, 0}}), 9);
  auto other = llvm::cantFail(library->with(withConstants({{0, 1}})));
  EXPECT_TRUE(llvm::cantFail(other->info("k")).parameters[1].exists);
  other = llvm::cantFail(library->with(withConstants({{0, 0}})));
  EXPECT_FALSE(llvm::cantFail(other->info("k")).parameters[1].exists);
}

} // namespace
