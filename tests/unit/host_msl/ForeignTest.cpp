// Constructs that published kernels use.
#include "tests/unit/host_msl/Run.h"
#include <cmath>

namespace triton_metal {
namespace {

using namespace test;
using V = std::vector<float>;

V values(const std::string &body, unsigned count, const std::string &before = "") {
  V o(count + 8); // some for the kernel's own use
  runKernel("device float *o", "if (i == 0) {\n" + body + "\n}", {out(o)}, 1, before);
  o.resize(count);
  return o;
}

std::string errorOf(const std::string &text) {
  auto library = Device::get().compile("#include <metal_stdlib>\nusing namespace metal;\n" + text);
  return library ? "" : llvm::toString(library.takeError());
}

TEST(Bfloat, IsAnArithmeticTypeInConditions) {
  EXPECT_EQ(values("device bfloat *p = (device bfloat *)(o + 4); p[0] = bfloat(2.5f); threadgroup "
                   "bfloat t; t = 3;"
                   "bool c = lane == 0; o[0] = c ? p[0] : t; o[1] = c ? 0 : p[0]; o[2] = p[0] < 0 "
                   "? 0 : p[0];"
                   "o[3] = (c ? p[0] : 1.0f) + sizeof(c ? p[0] : 1.0f);",
                   4),
            (V{2.5, 0, 2.5, 6.5}));
}

TEST(Bfloat, ConvertsToAndFromClassesWithTemplatedConversions) {
  EXPECT_EQ(values("Pair a = bfloat(1.5f); bfloat b = static_cast<bfloat>(a); half h = half(b); b "
                   "= bfloat(h) + bfloat(a);"
                   "o[0] = b; o[1] = h; Pair s = lane == 0 ? a : Pair(2.0f); o[2] = s.x;",
                   3, R"(
struct Pair {
  float x;
  Pair() = default;
  template <typename T, typename = enable_if_t<is_convertible_v<T, float> && !is_same_v<T, Pair>>> Pair(T v) : x(v) {}
  template <typename T, typename = enable_if_t<is_convertible_v<float, T>>> explicit operator T() const { return T(x); }
};
)"),
            (V{3, 1.5, 1.5}));
}

TEST(Bfloat, IsTheLastChoiceAmongOverloads) {
  EXPECT_EQ(values("o[0] = f(half(1)); o[1] = f(bfloat(1)); o[2] = g(bfloat(1)); o[3] = "
                   "g(half(1)); o[4] = h(1.0f);"
                   "o[5] = is_same_v<decltype(exp(bfloat(1))), float>; o[6] = inner::f(half(1));",
                   7, R"(
int f(float) { return 1; }
int f(bfloat) { return 2; }
int g(half) { return 3; }
int g(float) { return 4; }
int h(half) { return 5; }
int h(bfloat) { return 6; }
namespace inner {
int f(bfloat) { return 7; }
int f(float) { return 8; }
}
)"),
            (V{1, 2, 4, 3, 5, 1, 8}));
}

TEST(Bfloat, NeedsACastFromOtherFloats) {
  for (const char *from : {"1.0f", "half(1)", "o[0]"})
    EXPECT_NE(errorOf(std::string("kernel void k(device float *o) { bfloat b = ") + from +
                      "; o[0] = b; }")
                  .find("becomes a 'bfloat' only by an explicit conversion"),
              std::string::npos)
        << from;
  EXPECT_EQ(errorOf("kernel void k(device float *o) { bfloat b = 1; b += 0.5f; b = b * b; o[0] = b "
                    "+ 2.0f; }"),
            "");
}

TEST(Errors, NameMetalsTypesOnly) {
  std::string error = errorOf(
      "struct S { int x; };\nkernel void k(device float *o, device bfloat *b, device half *h) {\n"
      "  S s = o; S t = b[0]; S u = h[0]; float4 v = s;\n static_assert(false, \"not a double\"); "
      "}");
  for (const char *word : {"__", "_Float16", "'double'", "vec<double"})
    EXPECT_EQ(error.find(word), std::string::npos) << error;
  for (const char *word : {"'device float *'", "bfloat", "half", "not a double"})
    EXPECT_NE(error.find(word), std::string::npos) << error;
}

TEST(Braces, InitialiseVectorsAndMatrices) {
  EXPECT_EQ(values("float4 a = {1, 2, 3}; o[0] = a.z; o[1] = a.w; o[2] = float4{7}.y; float2 b[2] "
                   "= {{1, 2}, {3, 4}};"
                   "o[3] = b[1].x; S s = {{1, 2, 3}, {{4, 5}, {6, 7}}}; o[4] = s.v.z + s.m[1][0]; "
                   "o[5] = table[1].w;"
                   "float3 c{1.0, 2.0, 3.0}; o[6] = c.y; uint4 d = {lane, 1u, 2u}; o[7] = d.z; "
                   "bool2 e{true}; o[8] = e.x + 2 * e.y;",
                   9,
                   "struct S { float3 v; float2x2 m; };\nconstant float4 table[2] = {{1, 2, 3, 4}, "
                   "{5, 6, 7, 8}};"),
            (V{3, 0, 0, 3, 9, 8, 2, 2, 1}));
}

TEST(Matrices, AreConstantsAndKeepTheirAddressSpace) {
  EXPECT_EQ(
      values(
          "constant float3 *column = &fixed[1]; o[0] = (*column)[2]; device float2x2 &m = *(device "
          "float2x2 *)(o + 4);"
          "m = float2x2(1, 2, 3, 4); device float2 *second = &m[1]; o[1] = second->y; m *= 2.0f; m "
          "+= float2x2(1);"
          "o[2] = m[0][0] * 10 + m[1][0]; o[3] = (m == m) + (-m)[0][1];",
          4,
          "constant float3x3 fixed = float3x3(float3(1, 2, 3), float3(4, 5, 6), float3(7, 8, 9));"),
      (V{6, 4, 36, -3}));
}

TEST(Constants, OfFunctionsMayBeUsedInConstantExpressions) {
  std::string text = R"(#include <metal_stdlib>
using namespace metal;
constant uint size [[function_constant(0)]];
constant uint asked [[function_constant(1)]];
constant uint count = is_function_constant_defined(asked) ? asked : 3u;
template <uint n> struct Block { uint values[n]; };
kernel void k(device uint *o) {
  threadgroup uint shared[size];
  shared[size - 1] = sizeof(Block<count>);
  o[0] = sizeof(shared) + shared[size - 1];
}
)";
  for (bool given : {false, true}) {
    LibraryOptions options;
    options.functionConstants = {{0, 4}};
    if (given)
      options.functionConstants.push_back({1, 5});
    auto library = Device::get().compile(text, options);
    ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
    std::vector<uint32_t> o(1);
    std::vector<BufferBinding> buffers = {out(o)};
    Dispatch dispatch;
    dispatch.buffers = buffers;
    llvm::Error error = (*(*library)->kernel("k"))->dispatch(dispatch);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    EXPECT_EQ(o[0], 16u + (given ? 20 : 12));
  }
  auto library = Device::get().compile(text);
  ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
  EXPECT_EQ(llvm::cantFail((*library)->info("k")).unusable,
            "function constant 'size' (index 0) is used in a constant expression but has no value");
}

TEST(Constants, ComputedFromMissingOnesRefuseOnlyTheirKernels) {
  auto library = Device::get().compile(R"(#include <metal_stdlib>
constant int a [[function_constant(0)]];
constant int b = a * 2 + 1;
constant metal::float2x2 other = metal::float2x2(3);
kernel void uses(device int *o) { o[0] = b; }
kernel void free(device float *o) { o[0] = other[1][1]; }
)");
  ASSERT_TRUE(bool(library)) << llvm::toString(library.takeError());
  EXPECT_EQ(llvm::cantFail((*library)->info("uses")).unusable,
            "function constant 'a' (index 0) is used but has no value");
  EXPECT_EQ(llvm::cantFail((*library)->info("free")).unusable, "");
}

TEST(Names, ThatMetalDoesNotHaveAreFree) {
  EXPECT_EQ(values("o[0] = forward + move + requires; o[1] = concept(2);", 2,
                   "constant int forward = 1; constant int move = 2; constant int requires = 3; "
                   "int concept(int x) { return x; }"),
            (V{6, 2}));
}

TEST(Declarations, OfConstantMembersAndConstructorsByAddressSpace) {
  EXPECT_EQ(values("o[0] = Table<4>::values[1]; threadgroup Cell<int> cells[2]; cells[0].v = "
                   "3; o[1] = cells[0].v;"
                   "threadgroup float sums[2] = {0}; sums[1] = 5; o[2] = sums[1];",
                   3, R"(
template <int n> struct Table { static constexpr constant float values[2] = {1, n}; };
template <int n> constant constexpr float Table<n>::values[2];
template <typename T> struct Cell {
  T v;
  constexpr Cell<T>() threadgroup = default;
};
)"),
            (V{4, 3, 5}));
}

TEST(Packing, RoundsToTheNearest) {
  V o = values("o[0] = pack_float_to_unorm4x8(float4(0, 0.5, 1, 2)) == 0xffff8000u; o[1] = "
               "pack_float_to_snorm2x16(float2(-1, 1)) == 0x7fff8001u;"
               "float4 v = unpack_snorm4x8_to_float(0x80817f00u); o[2] = v.x; o[3] = v.y; o[4] = "
               "v.z; o[5] = v.w;"
               "o[6] = pack_half_to_unorm10a2(half4(1, 0, 1, 1)) == 0xfff003ffu; o[7] = "
               "unpack_unorm2x16_to_half(0xffff0000u).y;",
               8);
  EXPECT_EQ(o, (V{1, 1, 0, 1, -1, -1, 1, 1}));
}

} // namespace
} // namespace triton_metal
