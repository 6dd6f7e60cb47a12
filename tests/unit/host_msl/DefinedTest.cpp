// What C++ leaves undefined has one meaning, the same for constants as for numbers that come at run
// time.
#include "tests/unit/host_msl/Run.h"
#include <bit>
#include <cmath>
#include <limits>

using namespace triton_metal;
using namespace triton_metal::test;

namespace {

std::vector<int64_t> integers(const std::string &body, size_t n, const std::string &before = "") {
  std::vector<int64_t> o(n, -12345);
  runKernel("device long *o", body, {out(o)}, 1, before, 1);
  return o;
}
typedef std::vector<int64_t> L;

/// A number of type T as Metal text.
template <typename T> std::string text(T value) {
  if (value == std::numeric_limits<T>::min() && sizeof(T) == 8 && std::is_signed_v<T>)
    return "(-9223372036854775807l - 1)";
  return std::to_string(value) + (sizeof(T) < 8 ? "" : std::is_signed_v<T> ? "l" : "ul");
}

/// `a op b` in a type that nothing is promoted from.
template <typename T> T reference(char op, T a, T b) {
  typedef std::make_unsigned_t<T> U;
  constexpr unsigned bits = sizeof(T) * 8;
  bool overflows = std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == T(-1);
  switch (op) {
  case '<':
    return T(U(a) << (U(b) & (bits - 1)));
  case '>':
    return T(a >> (U(b) & (bits - 1)));
  case '/':
    return b == 0 || overflows ? a : T(a / b);
  case '%':
    return b == 0 || overflows ? T(0) : T(a % b);
  case '+':
    return T(U(a) + U(b));
  case '-':
    return T(U(a) - U(b));
  default:
    return T(uint64_t(a) * uint64_t(b));
  }
}

template <typename T> std::vector<T> edges() {
  typedef std::numeric_limits<T> Limits;
  std::vector<T> values = {T(0), T(1), T(7), Limits::max(), T(Limits::max() - 1), Limits::min()};
  for (int bits : {8, 16, 32, 64})
    for (int near : {-1, 0, 1})
      values.push_back(T(bits + near));
  values.push_back(T(-1)), values.push_back(T(-31)), values.push_back(T(40));
  return values;
}

template <typename T> void checkOperators(const std::string &name) {
  typedef decltype(T() + T()) Promoted;
  std::vector<T> values = edges<T>();
  struct Case {
    std::string op;
    T a, b;
  };
  std::vector<Case> cases;
  for (const char *op : {"<<", ">>", "/", "%", "+", "-", "*"})
    for (size_t i = 0; i != 6; ++i)
      for (T b : values)
        cases.push_back({op, values[i], b});
  std::vector<T> a, b;
  std::string scalars, vectors, assigned, atRunTime;
  for (size_t i = 0; i != cases.size(); ++i) {
    Case &test = cases[i];
    a.push_back(test.a), b.push_back(test.b);
    std::string at = "o[" + std::to_string(i) + "] = ", x = name + "(" + text(test.a) + ")",
                y = name + "(" + text(test.b) + ")";
    std::string v = "vec<" + name + ", 3>(";
    scalars += at + x + " " + test.op + " " + y + ";\n";
    vectors += at + "(" + v + x + ") " + test.op + " " + v + y + ")).z;\n";
    assigned += "{ " + name + " t = " + x + "; t " + test.op + "= " + y + "; " + at + "t; }\n";
  }
  size_t each = cases.size() / 7;
  const char *ops[] = {"<<", ">>", "/", "%", "+", "-", "*"};
  for (size_t k = 0; k != 7; ++k)
    atRunTime += "if (i / " + std::to_string(each) + " == " + std::to_string(k) +
                 ") { o[i] = x[i] " + ops[k] + " y[i]; }\n";
  std::vector<int64_t> constants(cases.size()), ofVectors(cases.size()), ofTargets(cases.size()),
      runTime(cases.size());
  runKernel("device long *o", scalars, {out(constants)}, 1, "", 1);
  runKernel("device long *o", vectors, {out(ofVectors)}, 1, "", 1);
  runKernel("device long *o", assigned, {out(ofTargets)}, 1, "", 1);
  runKernel("device long *o, device const " + name + " *x, device const " + name + " *y", atRunTime,
            {out(runTime), in(a), in(b)}, cases.size());
  for (size_t i = 0; i != cases.size(); ++i) {
    Case &test = cases[i];
    auto promoted = int64_t(reference<Promoted>(test.op[0], test.a, test.b));
    // Metal's vectors promote nothing.
    auto own = int64_t(reference<T>(test.op[0], test.a, test.b));
    SCOPED_TRACE(name + ": " + text(test.a) + " " + test.op + " " + text(test.b));
    EXPECT_EQ(constants[i], promoted);
    EXPECT_EQ(runTime[i], promoted);
    EXPECT_EQ(ofTargets[i], int64_t(T(promoted)));
    EXPECT_EQ(ofVectors[i], own);
  }
}

TEST(Defined, OperatorsOnBytes) {
  checkOperators<int8_t>("char");
  checkOperators<uint8_t>("uchar");
}
TEST(Defined, OperatorsOnShorts) {
  checkOperators<int16_t>("short");
  checkOperators<uint16_t>("ushort");
}
TEST(Defined, OperatorsOnInts) {
  checkOperators<int32_t>("int");
  checkOperators<uint32_t>("uint");
}
TEST(Defined, OperatorsOnLongs) {
  checkOperators<int64_t>("long");
  checkOperators<uint64_t>("ulong");
}

template <typename T> int64_t saturated(float value) {
  if (std::isnan(value))
    return 0;
  double low = double(std::numeric_limits<T>::min()), high = double(std::numeric_limits<T>::max());
  if (value <= low)
    return int64_t(std::numeric_limits<T>::min());
  if (value >= high)
    return int64_t(std::numeric_limits<T>::max());
  return int64_t(T(value));
}

template <typename T> void checkConversions(const std::string &name) {
  const std::vector<std::pair<std::string, float>> values = {
      {"0.5f", 0.5f},           {"-0.5f", -0.5f},      {"-1.0f", -1},
      {"127.5f", 127.5f},       {"128.0f", 128},       {"-128.0f", -128},
      {"-130.0f", -130},        {"256.0f", 256},       {"32768.0f", 32768},
      {"65280.0f", 65280},      {"-65280.0f", -65280}, {"INFINITY", INFINITY},
      {"-INFINITY", -INFINITY}, {"NAN", NAN},          {"2147483648.0f", 2147483648.0f},
      {"1e20f", 1e20f},         {"-1e20f", -1e20f},
  };
  std::string constants;
  std::vector<float> x;
  for (size_t i = 0; i != values.size(); ++i) {
    std::string at = "o[" + std::to_string(6 * i) + " + ", value = values[i].first;
    x.push_back(values[i].second);
    constants += at + "0] = " + name + "(" + value + ");\n";
    constants += at + "1] = " + name + "(half(" + value + "));\n";
    constants += at + "2] = " + name + "(bfloat(" + value + "));\n";
    constants += at + "3] = vec<" + name + ", 2>(float2(" + value + ")).y;\n";
    constants += at + "4] = static_cast<" + name + ">((v = 1, " + value + "));\n";
    constants += "{ const " + name + " t = (" + name + ")" + value + "; " + at + "5] = t; }\n";
  }
  std::vector<int64_t> o(6 * values.size()), runTime(6 * values.size());
  runKernel("device long *o", "float v;\n" + constants, {out(o)}, 1, "", 1);
  runKernel("device long *o, device const float *x",
            "float f = x[i]; half h = half(f); bfloat b = bfloat(f); o[6 * i] = " + name +
                "(f); o[6 * i + 1] = " + name + "(h); o[6 * i + 2] = " + name +
                "(b); o[6 * i + 3] = o[6 * i + 4] = o[6 * i + 5] = vec<" + name +
                ", 2>(float2(f)).x;",
            {out(runTime), in(x)}, x.size());
  for (size_t i = 0; i != o.size(); ++i)
    EXPECT_EQ(o[i], runTime[i]) << name << " of " << values[i / 6].first << ", form " << i % 6;
  for (size_t i = 0; i != values.size(); ++i)
    EXPECT_EQ(o[6 * i], saturated<T>(values[i].second)) << name << "(" << values[i].first << ")";
}

TEST(Defined, ConversionsSaturate) {
  checkConversions<int8_t>("char");
  checkConversions<uint8_t>("uchar");
  checkConversions<int16_t>("short");
  checkConversions<uint16_t>("ushort");
  checkConversions<int32_t>("int");
  checkConversions<uint32_t>("uint");
  checkConversions<int64_t>("long");
  checkConversions<uint64_t>("ulong");
}

TEST(Defined, ShiftsInEveryPlaceOfUse) {
  EXPECT_EQ(integers("const int k = 1 << 33; const int l = k + 1; o[0] = k; o[1] = l;"
                     "if (1 << 32) o[2] = 3; else o[2] = 4; o[3] = (1 << 40) ? 5 : 6;"
                     "o[4] = twice<int>(3, 33); o[5] = twice<long>(3, 65); o[6] = S().member;"
                     "o[7] = fileScope; o[8] = [](int s) { return 1 << s; }(34);"
                     "int3 v = 8; v.xy >>= 33; o[9] = v.y; uint b = 1; b <<= -31; o[10] = b;"
                     "int a[4] = {1 << 33, 8 >> 34}; o[11] = a[0]; o[12] = a[1];"
                     "switch (1 << 33) { case 2: o[13] = 7; break; default: o[13] = 8; }"
                     "o[14] = withDefault(); o[15] = 1 << true; o[16] = (1, 1) << (2, 33);",
                     17,
                     "template <typename T> T twice(T v, int s) { return v << s; }\n"
                     "struct S { int member = 1 << 36; };\n"
                     "constant int fileScope = 1 << 35;\n"
                     "int withDefault(int x = 1 << 33) { return x; }\n"),
            (L{2, 3, 3, 5, 6, 6, 16, 8, 4, 4, 2, 2, 2, 7, 2, 2, 2}));
}

TEST(Defined, DivisionsInEveryPlaceOfUse) {
  EXPECT_EQ(
      integers("int z; o[0] = 5 / (z = 0); o[1] = 5 / (o[2] = 9, 0); o[3] = zeroth; o[4] = least;"
               "const int n = 7 % 0; o[5] = n; if (5 / 0) o[6] = 1; else o[6] = 2;"
               "o[7] = by(0); o[8] = (INT_MIN) / by<-1>(); o[9] = 5 / int(0.25f);",
               10,
               "constant int zeroth = 5 / 0; constant int least = (-2147483647 - 1) % -1;\n"
               "int by(int d) { return 9 / d; } template <int n> int by() { return n; }\n"),
      (L{5, 5, 9, 5, 0, 0, 1, 9, -2147483648, 5}));
}

TEST(Defined, BuiltInFunctionsOfEdges) {
  EXPECT_EQ(
      integers("o[0] = clz(0); o[1] = ctz(0); o[2] = clz(uchar(0)); o[3] = ctz(ushort(0));"
               "o[4] = abs(INT_MIN); o[5] = rotate(1u, 33u); o[6] = rotate(1, -31);"
               "o[7] = extract_bits(0xffu, 4, 0); o[8] = insert_bits(5u, 3u, 0, 0);"
               "o[9] = extract_bits(-1, 0, 32); o[10] = clamp(5, 7, 3); o[11] = mulhi(INT_MIN, -1);"
               "o[12] = clz(ulong(0)); o[13] = as_type<int>(ldexp(1.0f, INT_MAX));"
               "o[14] = as_type<int>(ldexp(1.0f, INT_MIN)); o[15] = popcount(-1);"
               "o[16] = extract_bits(0xf0u, 4, 40); o[17] = extract_bits(0xf0u, 36, 4);"
               "o[18] = insert_bits(0u, 0xffu, 4, 40); o[19] = addsat(INT_MAX, 1);",
               20),
      (L{32, 32, 8,  16,         -2147483648, 2,  2,  0,  5,     -1,
         3,  0,  64, 0x7f800000, 0,           32, 15, 15, 0xff0, 2147483647}));
}

TEST(Defined, NothingThatWasNeverWrittenTakesAStoreAway) {
  EXPECT_EQ(integers("int z; float f; float4 v; bool b; int a[4]; a[0] = 3; v.x = 1;"
                     "o[0] = z * 0; o[1] = 2; if (z) o[2] = 1; else o[2] = 2; o[2] = o[2] > 0;"
                     "if (b) o[3] = 1; o[3] = 7; o[4] = v.y * 0 == 0 ? 4 : 5; o[5] = a[9] * 0;"
                     "a[-3] = 1; a[77] = 2; o[6] = a[0]; o[7] = table[12] * 0; o[8] = value(1) * 0;"
                     "int s; for (int k = 0; k < 3; ++k) s += k; o[9] = s * 0 + 8;"
                     "o[10] = never(5) * 0 + 6; thread int *p = nullptr; if (o[1] == 3) *p = 1;"
                     "o[11] = 9; int d[2] = {1, 2}; int sum = 0;\n"
                     "_Pragma(\"unroll\") for (int k = 0; k < 8; ++k) sum += d[k]; o[12] = sum;",
                     13,
                     "constant int table[4] = {1, 2, 3, 4};\n"
                     "int value(int x) { if (x > 100) return 5; }\n"
                     "int never(int x) { if (x > 3) __builtin_unreachable(); return x; }\n"),
            (L{0, 2, 1, 7, 4, 0, 3, 0, 0, 8, 6, 9, 3}));
}

TEST(Defined, IndicesOfVectorsBeyondTheirEnd) {
  // Memory beyond a variable is nobody's, at constant places zero.
  EXPECT_EQ(integers("o[0] = int4(1, 2, 3, 4)[3]; int4 v = int4(1, 2, 3, 4); v[9] = 7; o[1] = v.x; "
                     "o[2] = v[11] * 0;",
                     3),
            (L{4, 1, 0}));
}

} // namespace
