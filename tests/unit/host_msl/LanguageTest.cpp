// Metal's language, run.
#include "tests/unit/host_msl/Run.h"
#include <bit>
#include <cmath>
#include <numeric>

using namespace triton_metal;
using namespace triton_metal::test;
using llvm::StringRef;

namespace {

/// Numbers that one thread writes to `device float *o`.
std::vector<float> values(const std::string &body, size_t n, const std::string &before = "") {
  std::vector<float> o(n, -12345.0f);
  runKernel("device float *o", body, {out(o)}, 1, before, 1);
  return o;
}
typedef std::vector<float> V;

TEST(Vectors, AreConstructedFromPartsAndSplats) {
  EXPECT_EQ(
      values(
          "float4 v = float4(float2(1, 2), 3, 4); o[0] = v.x; o[1] = v.y; o[2] = v.z; o[3] = v.w;",
          4),
      (V{1, 2, 3, 4}));
  EXPECT_EQ(
      values("float4 v = float4(float3(1, 2, 3), 4); o[0] = dot(v, float4(1, 10, 100, 1000));", 1),
      (V{4321}));
  EXPECT_EQ(values("float4 v(1, float3(2)); o[0] = dot(v, float4(1, 10, 100, 1000));", 1),
            (V{2221}));
  EXPECT_EQ(
      values(
          "float4 v = 3; int4 w = int4(2.9f, -2.9f, 1e9f, 0); o[0] = v.z; o[1] = w.x; o[2] = w.y;",
          3),
      (V{3, 2, -2}));
  EXPECT_EQ(values("float3 v = {1, 2, 3}; half3 h = half3(v); o[0] = h.z; o[1] = sizeof(float3); "
                   "o[2] = sizeof(packed_float3);",
                   3),
            (V{3, 16, 12}));
  EXPECT_EQ(
      values("auto v = vec<T, 4>(T(1), T(2), T(3), T(4)); o[0] = V(5, 6, 7, 8).z; o[1] = v.w;", 2,
             "typedef half T; using V = vec<T, 4>;"),
      (V{7, 4}));
  EXPECT_EQ(values("o[0] = make<float4>(1, 2, 3, 4).w;", 1,
                   "template <typename T, typename... A> T make(A... a) { return T(a...); }"),
            (V{4}));
}

TEST(Vectors, Swizzle) {
  EXPECT_EQ(values("float4 v = float4(1, 2, 3, 4); float4 w = v.wzyx; float2 t = v.rb; o[0] = w.x; "
                   "o[1] = t.y; o[2] = v.xxyy.z;",
                   3),
            (V{4, 3, 2}));
  EXPECT_EQ(values("float4 v = 0; v.xw = float2(5, 6); v.yz += float2(1, 2); v.xyz *= 2; v[2] += "
                   "1; int k = int(o[0]) & 0; v[k + 1] -= 1;"
                   "o[0] = v.x; o[1] = v.y; o[2] = v.z; o[3] = v.w;",
                   4),
            (V{10, 1, 5, 6}));
}

TEST(Vectors, AnAssignmentToASwizzleHasAValue) {
  EXPECT_EQ(values("float4 v(1, 2, 3, 4); v.xy = v.yx = v.zw; o[0] = v.x; o[1] = v.y; o[2] = v.z; "
                   "o[3] = v.xyz[1];",
                   4),
            (V{3, 4, 3, 4}));
}

TEST(Vectors, ASwizzleOfASwizzleIsNotAssigned) {
  for (StringRef statement :
       {"v.wzyx.xy = float2(9, 8);", "v.wzyx.xy += 1;", "v.xyz[1] = 7;", "p.xyz.xy = v.xy;"}) {
    auto library = Device::get().compile(
        ("#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device float4 *o) {\n"
         "  float4 v = o[0];\n  packed_float4 p = v;\n  " +
         statement + "\n  o[0] = v + float4(p);\n}\n")
            .str());
    ASSERT_FALSE(bool(library)) << statement.str();
    std::string message = llvm::toString(library.takeError());
    EXPECT_NE(message.find("assign"), std::string::npos) << message;
  }
}

TEST(Vectors, ShiftsByConstantsCountModuloTheWidth) {
  EXPECT_EQ(values("ushort4 z = ushort4(1) << ushort4(17, 15, 3, 16); o[0] = z.x; o[1] = z.y; "
                   "o[2] = z.z; o[3] = z.w; short2 s = short2(-32768, 16384) >> short2(18, 16); "
                   "o[4] = s.x; o[5] = s.y; constexpr uint2 c = uint2(1) << uint2(33, 32); "
                   "o[6] = c.x; o[7] = c.y;",
                   8),
            (V{2, 32768, 8, 1, -8192, 16384, 2, 1}));
}

TEST(Literals, PastedTogetherAreFloats) {
  EXPECT_EQ(
      values("o[0] = F(1.1); o[1] = sizeof(F(1.1)); o[2] = CAT(2, .5e0f); o[3] = CAT(1.1, h); "
             "o[4] = CAT(0x1, f);",
             5, "#define F(x) x##f\n#define CAT(a, b) a##b\n"),
      (V{1.1f, 4, 2.5f, float(_Float16(1.1f)), 31}));
}

TEST(Guards, DifferencesAreThoseOfTheLanesThatRun) {
  // The first lanes do not, in which the difference would wrap around.
  for (uint32_t n : {1u, 5u, 32u, 40u}) {
    std::vector<uint64_t> o(128), of(128), back(128);
    std::vector<float> x(128), y(128, -1);
    std::iota(x.begin(), x.end(), 0.0f);
    std::vector<uint32_t> number{n};
    runKernel("device ulong *o, device ulong *of, device ulong *back, device float *x, "
              "device float *y, constant uint &n",
              "if (i >= n) { o[i] = ulong(i - n); y[i] = x[i - n]; of[i] = &x[i - n] - x; }"
              "back[i] = i < n ? ulong(n - 1 - i) : 7ul;",
              {out(o), out(of), out(back), in(x), out(y), in(number)}, 128, "", 128);
    for (uint32_t i = 0; i < 128; ++i) {
      EXPECT_EQ(o[i], i >= n ? i - n : 0) << n << " " << i;
      EXPECT_EQ(of[i], i >= n ? i - n : 0) << n << " " << i;
      EXPECT_EQ(back[i], i < n ? n - 1 - i : 7) << n << " " << i;
      EXPECT_EQ(y[i], i >= n ? float(i - n) : -1.0f) << n << " " << i;
    }
  }
}

TEST(Functions, FractIsBelowOneInItsType) {
  EXPECT_EQ(
      values("o[0] = fract(half(-6e-8f)); o[1] = fract(half(INFINITY)); o[2] = fract(-1e-9f); "
             "o[3] = fract(2.75h); o[4] = fract(half2(-0.25h, 7.5h)).x; o[5] = fract(-0.25f);",
             6),
      (V{0x1.ffcp-1f, 0x1.ffcp-1f, 0x1.fffffep-1f, 0.75f, 0.75f, 0.75f}));
}

TEST(Vectors, CompareToBools) {
  EXPECT_EQ(
      values(
          "float4 a = float4(1, 2, 3, NAN), b = float4(2); bool4 m = a < b; float4 f = float4(m);"
          "o[0] = f.x; o[1] = f.y; o[2] = any(m); o[3] = all(m || a >= b); o[4] = select(a, b, "
          "!m).z; o[5] = any(a != a);",
          6),
      (V{1, 0, 1, 0, 2, 1}));
  EXPECT_EQ(values("bool3 m = bool3(true, false, true); uint3 u = uint3(m); o[0] = u.x + u.y + "
                   "u.z; o[1] = sizeof(bool3); "
                   "o[2] = all(m.xz); o[3] = any(int2(3, 4) == int2(4, 3));",
                   4),
            (V{2, 4, 1, 0}));
}

TEST(Vectors, MathTakesNumbersForVectors) {
  EXPECT_EQ(values("float4 v = float4(-2, -1, 1, 2); o[0] = max(v, 0.0f).x; o[1] = clamp(v, -1.0f, "
                   "1.5f).w; o[2] = fma(v, 2.0f, 1.0f).w;"
                   "o[3] = abs(v).x; o[4] = pow(v, 2.0f).w; o[5] = mix(v, float4(0), 0.5f).x; o[6] "
                   "= length(float2(3, 4));"
                   "o[7] = max(half4(1, 2, 3, 4), half(2.5h)).y;",
                   8),
            (V{0, 1.5, 5, 2, 4, -1, 5, 2.5}));
}

TEST(Vectors, PackedOnesHaveNoPadding) {
  std::vector<float> data(12);
  for (size_t i = 0; i < 12; ++i)
    data[i] = static_cast<float>(i);
  std::vector<float> result(4);
  runKernel("device const packed_float3 *p, device float *o",
            "float3 v = p[i]; o[i] = v.x + 10 * v.y + 100 * v.z + (p[i] * 2.0f).x;",
            {in(data), out(result)}, 4);
  for (size_t i = 0; i < 4; ++i) {
    float x = static_cast<float>(3 * i);
    EXPECT_EQ(result[i], x + 10 * (x + 1) + 100 * (x + 2) + 2 * x);
  }
}

TEST(Numbers, LiteralsAreFloats) {
  EXPECT_EQ(values("o[0] = sizeof(1.0); o[1] = sizeof(1.0h); o[2] = sizeof(1.0bf); o[3] = 0.1 == "
                   "0.1f; o[4] = 1.0h / 3; "
                   "o[5] = is_same_v<decltype(1.0h), half>;",
                   6),
            (V{4, 2, 2, 1, 0.33325195f, 1}));
}

TEST(Numbers, BfloatRoundsAfterEachOperation) {
  EXPECT_EQ(values("bfloat a = bfloat(1.0f), b = bfloat(0.00390625f); bfloat c = a + b; o[0] = c; "
                   "bfloat d = a * bfloat(3) - 1; o[1] = d;"
                   "o[2] = a + 0.001f; bfloat e = bfloat(half(2.5h)); o[3] = half(e); o[4] = a < "
                   "e; o[5] = -e; bfloat2 v = bfloat2(a, e); "
                   "v += v; o[6] = v.y; o[7] = exp(bfloat(0));",
                   8),
            (V{1, 2, 1.001f, 2.5, 1, -2.5, 5, 1}));
}

TEST(Numbers, AsTypeKeepsBits) {
  EXPECT_EQ(values("uint u = as_type<uint>(1.0f); o[0] = u == 0x3f800000u; half2 h = "
                   "as_type<half2>(0x40003c00u); o[1] = h.x; o[2] = h.y;"
                   "uint4 w = as_type<uint4>(float4(0, 1, 2, 4)); o[3] = w.y >> 23; o[4] = "
                   "as_type<float>(as_type<int>(-0.0f)) == 0;"
                   "ulong l = as_type<ulong>(uint2(5, 1)); o[5] = l == 0x100000005ul; o[6] = "
                   "as_type<bfloat>(ushort(0x3fc0));",
                   7),
            (V{1, 1, 2, 127, 1, 1, 1.5}));
}

TEST(Numbers, LimitsAndTraits) {
  EXPECT_EQ(values("o[0] = numeric_limits<half>::max(); o[1] = numeric_limits<uchar>::max(); o[2] "
                   "= numeric_limits<float>::infinity() > 1e38f;"
                   "o[3] = numeric_limits<int>::lowest(); o[4] = is_same_v<make_unsigned_t<short>, "
                   "ushort>; o[5] = is_floating_point<bfloat>::value;"
                   "o[6] = conditional_t<is_integral_v<char>, integral_constant<int, 3>, "
                   "false_type>::value; o[7] = isnan(numeric_limits<float>::quiet_NaN());",
                   8),
            (V{65504, 255, 1, -2147483648.0f, 1, 1, 3, 1}));
}

TEST(Memory, ConstantTablesStructsAndMethods) {
  V result = values("Pair p = pairs[1]; Pair q = p; q.b.y += 1; thread Pair &r = q; r.scale(2); "
                    "o[0] = r.sum(); o[1] = table[2] + offset; "
                    "o[2] = Holder<int>::n; o[3] = sum3(table); device Pair *d = (device Pair *)(o "
                    "+ 8); *d = q; o[4] = d->sum(); Pair e = *d; "
                    "o[5] = e.b.y; constant Pair &c = pairs[0]; o[6] = c.sum();",
                    16,
                    R"(
constant float table[4] = {1, 2, 4, 8};
constant int offset = 10;
constant constexpr int size = 3;
struct Pair {
  int a;
  float2 b;
  void scale(float s) thread { a *= int(s); b *= s; }
  float sum() const thread { return a + b.x + b.y; }
  float sum() const device { return a + b.x + b.y; }
  float sum() const constant { return a + b.x + b.y; }
};
constant Pair pairs[2] = {{1, {2, 3}}, {4, {5, 6}}};
template <typename T> struct Holder { static constexpr constant int n = sizeof(T) * size; };
float sum3(constant float *t) { float s = 0; for (int i = 0; i < size; ++i) s += t[i]; return s; }
)");
  EXPECT_EQ(V(result.begin(), result.begin() + 7), (V{32, 14, 12, 7, 32, 14, 6}));
  EXPECT_EQ(std::bit_cast<int32_t>(result[8]), 8);
  EXPECT_EQ(result[10], 10);
  EXPECT_EQ(result[11], 14);
}

TEST(Memory, ThreadgroupVariablesOfHelpersAreShared) {
  std::vector<uint32_t> result(128);
  runKernel("device uint *o",
            "threadgroup uint2 x[64]; x[local] = uint2(i, 1); "
            "threadgroup_barrier(mem_flags::mem_threadgroup); "
            "uint s = total<uint>(local, x[63 - local].x); o[i] = s + x[local].y;",
            {out(result)}, 128, R"(
template <typename T> T total(uint local, T value) {
  threadgroup T parts[64];
  threadgroup T sum;
  parts[local] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local == 0) { sum = 0; for (uint k = 0; k < 64; ++k) sum += parts[k]; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return sum;
})");
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(result[i], (i < 64 ? 2016u : 6112u) + 1);
}

TEST(Memory, TablesOfThreadgroupVariables) {
  std::vector<float> result(64);
  runKernel("device float *o",
            "threadgroup float a[64], b[64]; a[local] = local; b[local] = 100 + local; "
            "threadgroup_barrier(mem_flags::mem_threadgroup); "
            "threadgroup float *table[2] = {a, b}; threadgroup float *const other[2] = {b + 1, a}; "
            "const S s[2][1] = {{{a, 7}}, {{b, 8}}}; uint k = local & 1, n = i / 64; "
            "o[i] = table[k][63 - local] + 1000 * other[n][3] + s[k][0].p[1] * s[n][0].k;",
            {out(result)}, 64, "struct S { threadgroup float *p; int k; };");
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(result[i], (i % 2 ? 100 : 0) + 63 - i + 104000 + (i % 2 ? 101 : 1) * 7) << i;
}

TEST(Memory, MethodsOfConditionalsChangeTheObject) {
  std::vector<int> result(4);
  runKernel("device S *s",
            "(i ? s[0] : s[2]).add(5); (i ? s[0] : s[3]).v -= (i ? s[1] : s[2]).get();",
            {out(result)}, 1,
            "struct S { int v; void add(int n) device { v += n; } void add(int n) thread { v += "
            "100 * n; }\n"
            "int get() device const { return v; } int get() thread const { return 100; } };",
            1);
  EXPECT_EQ(result, (std::vector<int>{0, 0, 5, -5}));
}

TEST(Memory, CoherentPointersKeepTheirAddressSpace) {
  EXPECT_EQ(
      values("coherent(device) device const float *p = (coherent(device) device const float *)o;"
             "coherent(device) device float *q = (coherent(device) device float *)o;"
             "q[0] = 1; q[1] = 2;"
             "float2 v = *(coherent(device) device const float2 *)(p + 0); o[2] = v.x + v.y;",
             3),
      (V{1, 2, 3}));
}

TEST(Numbers, VectorsAreOrderedByComponents) {
  EXPECT_EQ(
      values(
          "float3 a = float3(1, NAN, 2), b = float3(NAN, 2, 3); o[0] = isordered(a, b).x; "
          "o[1] = isordered(a, b).z; o[2] = isunordered(half4(half3(a), 1), half4(half3(b), 1)).y; "
          "o[3] = isunordered(half4(half3(a), 1), half4(half3(b), 1)).w;",
          4),
      (V{0, 1, 1, 0}));
}

TEST(Memory, BfloatsOfDifferentPlacesMeetInConditionals) {
  EXPECT_EQ(values("device bfloat *a = (device bfloat *)(o + 4);"
                   "a[0] = 1; a[1] = 2; threadgroup bfloat t[2]; t[0] = 4; bfloat v = 8;"
                   "bool c = o[0] < 0;"
                   "o[0] = c ? bfloat(*a) : *(a + 1); o[1] = c ? *(a + 1) : v;"
                   "o[2] = c ? t[0] : a[1]; o[3] = c ? v : t[0]; o[4] = 0;",
                   5),
            (V{1, 2, 4, 8, 0}));
}

TEST(Memory, PointersKeepTheirAddressSpaceThroughCasts) {
  EXPECT_EQ(values("device uchar *bytes = (device uchar *)o; *reinterpret_cast<device float "
                   "*>(bytes + 4) = 2; float t[3] = {1, 2, 3}; "
                   "thread float *p = t + 1; o[0] = p[1]; o[2] = get(p) + get((device const float "
                   "*)o); float (&r)[3] = t; r[0] = 9; o[3] = t[0];",
                   4,
                   "float get(const thread float *p) { return *p; } float get(const device float "
                   "*p) { return *p * 100; }"),
            (V{3, 2, 302, 9}));
}

TEST(Memory, ConditionalsMixLoadsAndValues) {
  std::vector<float> data = {1, 2, 3, 4, 5, 6, 7, 8}, result(8);
  runKernel(
      "const device float4 *p, device float4 *o",
      "o[i] = i == 0 ? p[i + 1] : float4(-1); float4 v = i ? float4(2) : *p; o[i] += v;"
      "constant float *t = i ? table : table + 1; o[i].x += i ? t[0] : o[i].x > 5 ? t[1] : 0;",
      {in(data), out(result)}, 2, "constant float table[3] = {10, 20, 30};");
  EXPECT_EQ(result, (V{36, 8, 10, 12, 11, 1, 1, 1}));
}

TEST(Memory, ArrayParametersArePointers) {
  std::vector<float> result(1);
  std::vector<int64_t> strides = {5, 7};
  runKernel("constant const int64_t strides[2] [[buffer(0)]], device float *o [[buffer(1)]]",
            "o[0] = at(uint2(2, 3), strides);", {in(strides), out(result)}, 1,
            "long at(uint2 p, constant const int64_t s[2]) { return p.x * s[0] + p.y * s[1]; }", 1);
  EXPECT_EQ(result[0], 31);
}

TEST(Language, LambdasTemplatesAndLoops) {
  EXPECT_EQ(
      values("float acc = 0; auto add = [&](float x) { acc += x; }; for (int k = 0; k < 4; ++k) "
             "add(k); o[0] = acc;"
             "float r[8]; \n#pragma unroll\n for (int k = 0; k < 8; ++k) r[k] = k * k;\n#pragma "
             "clang loop unroll(full)\n"
             "for (int k = 0; k < 8; ++k) acc += r[7 - k];\n o[1] = acc; int n = 0; do { n += 3; } "
             "while (n < 10); o[2] = n;"
             "switch (n) { case 12: o[3] = 1; break; default: o[3] = 2; } o[4] = fold(1, 2, 3);",
             5,
             "#pragma METAL fp math_mode(safe)\ntemplate <typename... A> float fold(A... a) { "
             "return (a + ...); }"),
      (V{6, 146, 12, 1, 6}));
}

TEST(Language, PreprocessorMacrosOfMetal) {
  EXPECT_EQ(values("\n#ifdef __METAL__\n o[0] = __METAL_VERSION__ >= 310;\n#endif\n o[1] = M_PI_F; "
                   "o[2] = isinf(INFINITY) && isnan(NAN);"
                   "o[3] = FLT_MAX > 1e38; o[4] = UINT_MAX;",
                   5),
            (V{1, 3.14159265f, 1, 1, 4294967295.0f}));
}

TEST(Matrices, MultiplyByColumns) {
  EXPECT_EQ(values("float2x2 m = float2x2(float2(1, 2), float2(3, 4)); float2 v = m * float2(1, "
                   "10); o[0] = v.x; o[1] = v.y; "
                   "o[2] = (m * m)[1][0]; o[3] = transpose(m)[0][1]; o[4] = determinant(m); o[5] = "
                   "(float2(1, 10) * m).y;",
                   6),
            (V{31, 42, 15, 3, -2, 43}));
}

TEST(Arithmetic, IsNeverContracted) {
  // a * b rounds before c is added.
  std::vector<float> o(2);
  std::vector<float> x = {1 + 0x1p-12f, -(1 + 0x1p-11f)};
  runKernel("device const float *x, device float *o",
            "o[0] = x[0] * x[0] + x[1]; o[1] = fma(x[0], x[0], x[1]);", {in(x), out(o)}, 1, "", 1);
  EXPECT_EQ(o[0], 0);
  EXPECT_EQ(o[1], 0x1p-24f);
}

} // namespace
