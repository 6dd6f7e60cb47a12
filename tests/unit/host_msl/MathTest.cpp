// Elementary functions against the C library in double.
#include "tests/unit/host_msl/Run.h"
#include <bit>
#include <cmath>
#include <functional>

using namespace triton_metal;
using namespace triton_metal::test;

namespace {

/// Distance in units of the last place of the float nearest to `exact`; infinite where one is NaN
/// and the other is not.
double ulps(float got, double exact) {
  float nearest = static_cast<float>(exact);
  if (std::isnan(nearest) || std::isnan(got))
    return std::isnan(nearest) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(got))
    return nearest == got ? 0
           : std::abs(exact) > 3.4028e38 && std::abs(got) > 3.4028e38 && (exact < 0) == (got < 0)
               ? 1
               : INFINITY;
  double magnitude = std::max(std::abs(exact), 0x1p-126);
  double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
  return std::abs(got - exact) / unit;
}

/// All exponents, both signs, and the values that break things.
std::vector<float> samples(float low, float high) {
  std::vector<float> values;
  for (float special :
       {0.0f,       -0.0f,       1.0f,        -1.0f,       0.5f,          INFINITY,       -INFINITY,
        NAN,        0x1p-149f,   0x1p-126f,   -0x1p-126f,  3.4028235e38f, -3.4028235e38f, 88.72284f,
        -87.33655f, -103.97208f, 3.14159274f, 1.57079637f, 1e10f,         5e-5f})
    values.push_back(special);
  // Evenly over the range that matters, and over all bit patterns.
  for (int i = 0; i <= 40000; ++i)
    values.push_back(low + (high - low) * (static_cast<float>(i) / 40000.0f));
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 104729)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return values;
}

struct Unary {
  const char *name;
  double (*exact)(double);
  double bound;
  float low, high;
};

double rsqrtExact(double x) { return 1 / std::sqrt(x); }
double exp10Exact(double x) { return std::pow(10.0, x); }
/// sin(pi * x), exact at multiples of one half.
double sinpiExact(double x) {
  if (std::isinf(x))
    return NAN;
  double r = std::remainder(x, 2.0);
  if (std::abs(r) > 0.5)
    r = std::copysign(1, r) - r;
  return std::sin(M_PI * r);
}
double cospiExact(double x) {
  double r = std::abs(std::remainder(x, 2.0));
  return std::isinf(x) ? NAN : std::sin(M_PI * (0.5 - r));
}

class UnaryMath : public testing::TestWithParam<Unary> {};

TEST_P(UnaryMath, IsWithinItsBound) {
  Unary function = GetParam();
  std::vector<float> x = samples(function.low, function.high), y(x.size());
  runKernel("device const float *x, device float *y",
            std::string("y[i] = ") + function.name + "(x[i]);", {in(x), out(y)},
            static_cast<uint32_t>(x.size()));
  double worst = 0;
  size_t where = 0;
  for (size_t i = 0; i < x.size(); ++i)
    if (double error = ulps(y[i], function.exact(x[i])); error > worst) {
      worst = error;
      where = i;
    }
  EXPECT_LE(worst, function.bound)
      << function.name << "(" << std::hexfloat << x[where] << ") = " << y[where] << ", exactly "
      << function.exact(x[where]);
  // The sign of a zero's value, which no distance shows.
  for (size_t i = 0; i < x.size(); ++i)
    if (double exact = function.exact(x[i]); x[i] == 0.0f && !std::isnan(exact))
      EXPECT_EQ(std::signbit(y[i]), std::signbit(exact)) << function.name << "(" << x[i] << ")";
  RecordProperty("ulps", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(
    Functions, UnaryMath,
    testing::Values(Unary{"exp", std::exp, 2, -104, 89}, Unary{"exp2", std::exp2, 2, -150, 128},
                    Unary{"exp10", exp10Exact, 2, -45, 38.5}, Unary{"log", std::log, 2, 0.1f, 10},
                    Unary{"log2", std::log2, 2, 0.1f, 10}, Unary{"log10", std::log10, 2, 0.1f, 10},
                    Unary{"sin", std::sin, 2, -31000, 31000}, Unary{"cos", std::cos, 2, -100, 100},
                    Unary{"tan", std::tan, 4, -100, 100}, Unary{"tanh", std::tanh, 2, -10, 10},
                    Unary{"sqrt", std::sqrt, 0.5, 0, 10}, Unary{"rsqrt", rsqrtExact, 1.5, 0, 10},
                    Unary{"sinpi", sinpiExact, 4, -4, 4}, Unary{"cospi", cospiExact, 4, -4, 4},
                    Unary{"asin", std::asin, 2, -1, 1}, Unary{"acos", std::acos, 2, -1, 1},
                    Unary{"atan", std::atan, 2, -10, 10}, Unary{"sinh", std::sinh, 2, -90, 90},
                    Unary{"cosh", std::cosh, 2, -90, 90}, Unary{"asinh", std::asinh, 2, -10, 10},
                    Unary{"acosh", std::acosh, 2, 1, 10}, Unary{"atanh", std::atanh, 2, -1, 1},
                    Unary{"floor", std::floor, 0, -10, 10}, Unary{"ceil", std::ceil, 0, -10, 10},
                    Unary{"trunc", std::trunc, 0, -10, 10},
                    Unary{"rint", std::nearbyint, 0, -10, 10},
                    Unary{"round", std::round, 0, -10, 10}, Unary{"fabs", std::fabs, 0, -10, 10},
                    Unary{"precise::exp", std::exp, 2, -104, 89},
                    Unary{"fast::exp2", std::exp2, 2, -150, 128},
                    Unary{"precise::tanh", std::tanh, 2, -1, 1}),
    [](const testing::TestParamInfo<Unary> &info) {
      std::string name = info.param.name;
      for (char &c : name)
        c = c == ':' ? '_' : c;
      return name;
    });

TEST(BinaryMath, IsWithinItsBound) {
  struct Binary {
    const char *name;
    double (*exact)(double, double);
    double bound;
  };
  std::vector<float> some = {0.0f,  -0.0f,  1.0f,     -1.0f,     0.3f, -2.5f,  7.0f, 1e-40f,
                             1e30f, -1e30f, INFINITY, -INFINITY, NAN,  100.5f, 3.0f};
  std::vector<float> x, y;
  for (float a : some)
    for (float b : some) {
      x.push_back(a);
      y.push_back(b);
    }
  for (Binary function :
       {Binary{"pow", std::pow, 2}, Binary{"fmod", std::fmod, 0}, Binary{"atan2", std::atan2, 2},
        Binary{"fmin", std::fmin, 0}, Binary{"fmax", std::fmax, 0}, Binary{"max", std::fmax, 0},
        Binary{"min", std::fmin, 0}, Binary{"copysign", std::copysign, 0},
        Binary{"fdim", std::fdim, 0.5}}) {
    std::vector<float> z(x.size());
    runKernel("device const float *x, device const float *y, device float *z",
              std::string("z[i] = ") + function.name + "(x[i], y[i]);", {in(x), in(y), out(z)},
              static_cast<uint32_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_LE(ulps(z[i], function.exact(x[i], y[i])), function.bound)
          << function.name << "(" << x[i] << ", " << y[i] << ") = " << z[i];
  }
}

/// x rounded to a type of `mantissa` explicit bits and the least normal exponent `least`.
double rounded(double x, int mantissa, int least) {
  if (x == 0 || !std::isfinite(x))
    return x;
  int exponent = std::max(std::ilogb(x), least);
  return std::ldexp(std::nearbyint(std::ldexp(x, mantissa - exponent)), exponent - mantissa);
}

TEST(Conversions, HalfAndBfloatRoundToNearestEven) {
  std::vector<float> x = samples(-70000, 70000);
  for (uint32_t low : {0x7fffu, 0x8000u, 0x8001u, 0xffffu})
    for (uint32_t high = 0; high < 0x10000; high += 7)
      x.push_back(std::bit_cast<float>(high << 16 | low));
  for (uint32_t low : {0x0fffu, 0x1000u, 0x1001u, 0x3000u})
    for (uint32_t high = 0x33000000; high < 0x47800000; high += 0x2000)
      x.push_back(std::bit_cast<float>(high | low));
  std::vector<float> h(x.size()), b(x.size());
  runKernel("device const float *x, device float *h, device float *b",
            "h[i] = half(x[i]); bfloat t = bfloat(x[i]); b[i] = t;", {in(x), out(h), out(b)},
            static_cast<uint32_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(h[i]) && std::isnan(b[i]));
      continue;
    }
    double half = rounded(x[i], 10, -14), bfloat = rounded(x[i], 7, -126);
    if (std::abs(half) > 65504)
      half = std::copysign(INFINITY, half);
    if (std::abs(bfloat) > 3.3895313892515355e38)
      bfloat = std::copysign(INFINITY, bfloat);
    ASSERT_EQ(h[i], half) << x[i];
    ASSERT_EQ(b[i], bfloat) << x[i];
  }
}

TEST(Conversions, FloatToIntegerStaysInRange) {
  std::vector<float> x = {0,    -0.9f, 1.9f,     -1.9f,     3e9f,   -3e9f,
                          5e9f, NAN,   INFINITY, -INFINITY, 255.9f, 300.0f};
  std::vector<int32_t> s(x.size());
  std::vector<uint32_t> u(x.size());
  std::vector<uint8_t> c(x.size());
  runKernel("device const float *x, device int *s, device uint *u, device uchar *c",
            "s[i] = int(x[i]); u[i] = uint(x[i]); c[i] = uchar(x[i]);",
            {in(x), out(s), out(u), out(c)}, static_cast<uint32_t>(x.size()));
  EXPECT_EQ(s, (std::vector<int32_t>{0, 0, 1, -1, INT32_MAX, INT32_MIN, INT32_MAX, 0, INT32_MAX,
                                     INT32_MIN, 255, 300}));
  EXPECT_EQ(u, (std::vector<uint32_t>{0, 0, 1, 0, 3000000000u, 0, UINT32_MAX, 0, UINT32_MAX, 0, 255,
                                      300}));
  EXPECT_EQ(c, (std::vector<uint8_t>{0, 0, 1, 0, 255, 0, 255, 0, 255, 0, 255, 255}));
}

TEST(Integers, AgreeWithTheirDefinitions) {
  std::vector<int32_t> a, b;
  std::vector<int32_t> some = {0,  1,         -1,        2,         7,          -8,    31, 32,
                               33, INT32_MAX, INT32_MIN, 123456789, -987654321, 65536, 255};
  for (int32_t p : some)
    for (int32_t q : some) {
      a.push_back(p);
      b.push_back(q);
    }
  size_t n = a.size();
  auto check = [&](const std::string &expression,
                   const std::function<int32_t(int32_t, int32_t)> &exact) {
    std::vector<int32_t> c(n);
    runKernel("device const int *a, device const int *b, device int *c",
              "c[i] = " + expression + ";", {in(a), in(b), out(c)}, static_cast<uint32_t>(n));
    for (size_t i = 0; i < n; ++i)
      EXPECT_EQ(c[i], exact(a[i], b[i])) << expression << " of " << a[i] << " and " << b[i];
  };
  auto u = [](int32_t x) { return static_cast<uint32_t>(x); };
  auto s = [](uint64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); };
  check("a[i] + b[i]", [&](int32_t p, int32_t q) { return s(u(p) + u(q)); });
  check("a[i] * b[i]", [&](int32_t p, int32_t q) { return s(u(p) * u(q)); });
  check("a[i] << b[i]", [&](int32_t p, int32_t q) { return s(u(p) << (q & 31)); });
  check("a[i] >> b[i]", [&](int32_t p, int32_t q) { return p >> (q & 31); });
  check("mulhi(a[i], b[i])",
        [&](int32_t p, int32_t q) { return static_cast<int32_t>((int64_t(p) * q) >> 32); });
  check("int(mulhi(uint(a[i]), uint(b[i])))",
        [&](int32_t p, int32_t q) { return s((uint64_t(u(p)) * u(q)) >> 32); });
  check("clz(a[i])", [&](int32_t p, int32_t) { return std::countl_zero(u(p)); });
  check("ctz(a[i])", [&](int32_t p, int32_t) { return std::countr_zero(u(p)); });
  check("popcount(a[i])", [&](int32_t p, int32_t) { return std::popcount(u(p)); });
  check("rotate(a[i], b[i])", [&](int32_t p, int32_t q) { return s(std::rotl(u(p), q & 31)); });
  check("addsat(a[i], b[i])", [&](int32_t p, int32_t q) {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t(p) + q, INT32_MIN, INT32_MAX));
  });
  check("subsat(a[i], b[i])", [&](int32_t p, int32_t q) {
    return static_cast<int32_t>(std::clamp<int64_t>(int64_t(p) - q, INT32_MIN, INT32_MAX));
  });
  check("hadd(a[i], b[i])",
        [&](int32_t p, int32_t q) { return static_cast<int32_t>((int64_t(p) + q) >> 1); });
  check("rhadd(a[i], b[i])",
        [&](int32_t p, int32_t q) { return static_cast<int32_t>((int64_t(p) + q + 1) >> 1); });
  check("int(absdiff(a[i], b[i]))",
        [&](int32_t p, int32_t q) { return s(uint64_t(std::abs(int64_t(p) - q))); });
  check("min(a[i], b[i])", [&](int32_t p, int32_t q) { return std::min(p, q); });
  check("int(max(uint(a[i]), uint(b[i])))",
        [&](int32_t p, int32_t q) { return s(std::max(u(p), u(q))); });
  check("reverse_bits(a[i])", [&](int32_t p, int32_t) {
    uint32_t r = 0;
    for (int k = 0; k < 32; ++k)
      r |= (u(p) >> k & 1) << (31 - k);
    return s(r);
  });
  check("b[i] == 0 || (a[i] == INT_MIN && b[i] == -1) ? 0 : a[i] / b[i]",
        [&](int32_t p, int32_t q) { return q == 0 || (p == INT32_MIN && q == -1) ? 0 : p / q; });
  check("b[i] == 0 || (a[i] == INT_MIN && b[i] == -1) ? 0 : a[i] % b[i]",
        [&](int32_t p, int32_t q) { return q == 0 || (p == INT32_MIN && q == -1) ? 0 : p % q; });
  check("int(mulhi(long(a[i]) << 32 | 12345, long(b[i]) * 77))", [&](int32_t p, int32_t q) {
    return s(static_cast<uint64_t>(
        (static_cast<__int128>((int64_t(p) * (int64_t(1) << 32)) | 12345) * (int64_t(q) * 77)) >>
        64));
  });
  check("extract_bits(a[i], 5, 7)", [&](int32_t p, int32_t) { return s(u(p) << 20) >> 25; });
  check("insert_bits(a[i], b[i], 4, 8)",
        [&](int32_t p, int32_t q) { return s((u(p) & ~0xff0u) | ((u(q) & 0xff) << 4)); });
}

TEST(Integers, SaturateProductsOfLongs) {
  constexpr int64_t least = INT64_MIN, most = INT64_MAX;
  const int64_t numbers[] = {0,          1,           -1,         2,          -2,
                             3037000499, -3037000500, 3037000500, 4294967295, 4294967296,
                             least,      least + 1,   most,       most - 1,   1234567890123456789};
  std::vector<int64_t> a, b, c;
  for (int64_t p : numbers)
    for (int64_t q : numbers)
      for (int64_t r : numbers) {
        a.push_back(p);
        b.push_back(q);
        c.push_back(r);
      }
  size_t n = a.size();
  std::vector<int64_t> signedly(n), vectorwise(n);
  std::vector<uint64_t> unsignedly(n);
  runKernel(
      "device const long *a, device const long *b, device const long *c, device long *s, "
      "device ulong *u, device long *v",
      "s[i] = madsat(a[i], b[i], c[i]); u[i] = madsat(ulong(a[i]), ulong(b[i]), ulong(c[i])); "
      "v[i] = madsat(long2(0, a[i]), long2(0, b[i]), long2(0, c[i])).y;",
      {in(a), in(b), in(c), out(signedly), out(unsignedly), out(vectorwise)},
      static_cast<uint32_t>(n));
  for (size_t i = 0; i < n; ++i) {
    auto exact = static_cast<__int128>(a[i]) * b[i] + c[i];
    int64_t expected = exact < least ? least : exact > most ? most : static_cast<int64_t>(exact);
    EXPECT_EQ(signedly[i], expected) << a[i] << " * " << b[i] << " + " << c[i];
    EXPECT_EQ(vectorwise[i], expected) << a[i] << " * " << b[i] << " + " << c[i];
    auto p = static_cast<uint64_t>(a[i]), q = static_cast<uint64_t>(b[i]);
    auto product = static_cast<unsigned __int128>(p) * q;
    bool overflows = product > UINT64_MAX - static_cast<uint64_t>(c[i]);
    uint64_t sum = static_cast<uint64_t>(product) + static_cast<uint64_t>(c[i]);
    EXPECT_EQ(unsignedly[i], overflows ? UINT64_MAX : sum) << p << " * " << q;
  }
}

} // namespace
