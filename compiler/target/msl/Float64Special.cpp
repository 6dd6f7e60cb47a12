// The error function's relatives, the gamma functions and the Bessel functions of 64-bit floats,
// with numbers of 64 digits. docs/libdevice.md has the errors.

#include "target/msl/Float64Prelude.h"

using namespace triton_metal::msl;

// clang-format off
static constexpr PreludeFunction functions[] = {
    {"float64_wide_square", R"(
// (k / a)^2 for a above k = 2^power: a variable for polynomials, from -1 to 1 by 2^63.
inline long float64_wide_square(ulong2 a, int power) {
  ulong f = float64_wide_fraction(float64_wide_scale(float64_wide_inverse(a), power));
  return long(mulhi(f, f) ^ 0x8000000000000000ul);
}
)"},
    {"float64_exp_square", R"(
// exp(a * a) or exp(-a * a), where a * a is scaled by 2^k, for a below 2^8.
inline ulong2 float64_exp_square(ulong2 a, bool isNegative, int k) {
  int e = 2 * int(uint(a.y)) + k;
  ulong sign = isNegative ? 0x8000000000000000ul : 0ul;
  ulong2 y = float64_wide_exp(float64_wide(sign, e + 1, mulhi(a.x, a.x)));
  // The square has 128 digits.
  return float64_wide_add(y, float64_wide_mul(y, float64_wide(sign, e - 63, a.x * a.x)));
}
)"},
    {"float64_wide_erf_small", R"(
// erf for |x| < 1.
inline ulong2 float64_wide_erf_small(ulong2 x) {
  ulong f = float64_wide_fraction(x);
  return float64_wide(x.y & 0x8000000000000000ul, int(uint(x.y)) + 1, mulhi(x.x, float64_erf_quotient(mulhi(f, f))));
}
)"},
    {"float64_wide_erfcx", R"(
// exp(a * a) * erfc(a) for a >= 0.5.
inline ulong2 float64_wide_erfcx(ulong2 a) {
  if (int(uint(a.y)) < 3)
    return float64_piece(float64_erfcx_table, -2, 19, 1, a);
  ulong2 y = float64_polynomial(float64_erfcx_far, 11, float64_wide_square(a, 3));
  return float64_wide_mul(y, float64_wide_inverse(a));
}
)"},
    {"float64_wide_erfc", R"(
// erfc of x, or of x / sqrt(2).
inline ulong2 float64_wide_erfc(ulong2 x, bool isNormal) {
  ulong2 one = float64_wide_one();
  ulong2 z = isNormal ? float64_wide_mul(x, ulong2(0xb504f333f9de6484ul, ulong(uint(-1)))) : x;
  bool isNegative = x.y >> 63 != 0ul;
  if (int(uint(z.y)) < -1)
    return float64_wide_sub(one, float64_wide_erf_small(z));
  ulong2 y = ulong2(0ul, ulong(uint(-65536)));
  ulong2 a = ulong2(x.x, ulong(uint(x.y))), b = ulong2(z.x, ulong(uint(z.y)));
  if (int(uint(x.y)) < 6)
    y = float64_wide_mul(float64_exp_square(a, true, isNormal ? -1 : 0), float64_wide_erfcx(b));
  return isNegative ? float64_wide_sub(float64_wide_scale(one, 1), y) : y;
}
)"},
    {"float64_erfc", R"(
inline ulong float64_erfc(ulong x) {
  return float64_is_nan(x) ? 0x7ff8000000000000ul : float64_shorten(float64_wide_erfc(float64_widen(x), false));
}
)"},
    {"float64_normcdf", R"(
// erfc(-x / sqrt(2)) / 2
inline ulong float64_normcdf(ulong x) {
  if (float64_is_nan(x))
    return 0x7ff8000000000000ul;
  ulong2 y = float64_wide_erfc(float64_widen(x ^ 0x8000000000000000ul), true);
  return float64_shorten(float64_wide_scale(y, -1));
}
)"},
    {"float64_erfcx", R"(
inline ulong float64_erfcx(ulong x) {
  if ((x & 0x7ffffffffffffffful) >= 0x7ff0000000000000ul)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : x >> 63 != 0ul ? 0x7ff0000000000000ul : 0ul;
  bool isNegative = x >> 63 != 0ul;
  ulong2 w = float64_widen(x), a = ulong2(w.x, ulong(uint(w.y)));
  int e = int(uint(w.y));
  if (isNegative && e >= 6)
    return 0x7ff0000000000000ul;
  if (e < -1)
    return float64_shorten(float64_wide_mul(float64_exp_square(a, false, 0), float64_wide_erfc(w, false)));
  ulong2 y = float64_wide_erfcx(a);
  if (isNegative)
    y = float64_wide_sub(float64_wide_scale(float64_exp_square(a, false, 0), 1), y);
  return float64_shorten(y);
}
)"},
    {"float64_wide_erfinv", R"(
// The number whose erf is x and whose erfc is rest, where neither is negative.
inline ulong2 float64_wide_erfinv(ulong2 x, ulong2 rest) {
  // w = -log(1 - x * x)
  ulong2 w;
  if (int(uint(x.y)) < -1)
    w = float64_wide_log1p(float64_wide_negate(float64_wide_mul(x, x)));
  else
    w = float64_wide_log(float64_wide_mul(rest, float64_wide_add(float64_wide_one(), x)));
  w = ulong2(w.x, ulong(uint(w.y)));
  ulong2 y;
  if (int(uint(w.y)) < -2)
    y = float64_polynomial(float64_erfinv_near, 11, long(float64_wide_fraction(float64_wide_scale(w, 2)) ^ 0x8000000000000000ul));
  else
    y = float64_piece(float64_erfinv_table, -2, 21, 1, float64_wide_sqrt(w));
  return float64_wide_mul(y, x);
}
)"},
    {"float64_erfinv", R"(
inline ulong float64_erfinv(ulong x) {
  ulong sign = x & 0x8000000000000000ul, a = x ^ sign;
  if (a == 0ul || a >= 0x3ff0000000000000ul)
    return a == 0ul ? x : a == 0x3ff0000000000000ul ? sign | 0x7ff0000000000000ul : 0x7ff8000000000000ul;
  ulong2 w = float64_widen(a);
  return sign | float64_shorten(float64_wide_erfinv(w, float64_wide_sub(float64_wide_one(), w)));
}
)"},
    {"float64_wide_erfcinv", R"(
// The number whose erfc is c, for c from 0 to 2.
inline ulong2 float64_wide_erfcinv(ulong2 c) {
  ulong2 one = float64_wide_one();
  bool isAbove = int(uint(c.y)) >= 0;
  c = isAbove ? float64_wide_sub(float64_wide_scale(one, 1), c) : c;
  ulong2 y = float64_wide_erfinv(float64_wide_sub(one, c), c);
  return isAbove ? float64_wide_negate(y) : y;
}
)"},
    {"float64_erfcinv", R"(
inline ulong float64_erfcinv(ulong x) {
  if (x << 1 == 0ul || x >= 0x4000000000000000ul)
    return x << 1 == 0ul ? 0x7ff0000000000000ul : x == 0x4000000000000000ul ? 0xfff0000000000000ul : 0x7ff8000000000000ul;
  return x == 0x3ff0000000000000ul ? 0ul : float64_shorten(float64_wide_erfcinv(float64_widen(x)));
}
)"},
    {"float64_normcdfinv", R"(
// -sqrt(2) erfcinv(2 x)
inline ulong float64_normcdfinv(ulong x) {
  if (x << 1 == 0ul || x >= 0x3ff0000000000000ul)
    return x << 1 == 0ul ? 0xfff0000000000000ul : x == 0x3ff0000000000000ul ? 0x7ff0000000000000ul : 0x7ff8000000000000ul;
  if (x == 0x3fe0000000000000ul)
    return 0ul;
  ulong2 y = float64_wide_erfcinv(float64_wide_scale(float64_widen(x), 1));
  return float64_shorten(float64_wide_mul(y, ulong2(0xb504f333f9de6484ul, 0x8000000000000000ul)));
}
)"},
    {"float64_stirling", R"(
// What Stirling's formula leaves of the logarithm of gamma(x), for x >= 8.
inline ulong2 float64_stirling(ulong2 x) {
  ulong2 y = float64_polynomial(float64_stirling_table, 10, float64_wide_square(x, 3));
  return float64_wide_mul(y, float64_wide_inverse(x));
}
)"},
    {"float64_wide_gamma", R"(
// gamma(x) for x > 0 below 256.
inline ulong2 float64_wide_gamma(ulong x) {
  ulong2 w = float64_widen(x), one = float64_wide_one(), y = w, product = one;
  if (int(uint(w.y)) >= 4) {
    // sqrt(2 * pi) * x^(x - 0.5) * exp(-x) and what is left
    y = float64_wide_mul(float64_wide_pow(x, float64_wide_sub(w, float64_wide_scale(one, -1))), float64_wide_exp(float64_wide_negate(w)));
    y = float64_wide_mul(y, ulong2(0xa06c98ffb1382cb3ul, 1ul));
    return float64_wide_mul(y, float64_wide_exp(float64_stirling(w)));
  }
  bool isSmall = int(uint(w.y)) < 0;
  y = isSmall ? float64_wide_add(w, one) : y;
  while (int(uint(y.y)) > 0) {
    y = float64_wide_sub(y, one);
    product = float64_wide_mul(product, y);
  }
  y = float64_piece(float64_rgamma_table, 0, 18, 0, y);
  y = float64_wide_mul(product, float64_wide_inverse(y));
  return isSmall ? float64_wide_div(y, w) : y;
}
)"},
    {"float64_tgamma", R"(
inline ulong float64_tgamma(ulong x) {
  ulong a = x & 0x7ffffffffffffffful, sign = x ^ a;
  if (a > 0x7ff0000000000000ul || (sign != 0ul && a != 0ul && (a & float64_fraction(a)) == 0ul))
    return 0x7ff8000000000000ul;
  if (a == 0ul)
    return sign | 0x7ff0000000000000ul;
  if (sign == 0ul)
    return a >= 0x4070000000000000ul ? 0x7ff0000000000000ul : float64_shorten(float64_wide_gamma(a));
  // By reflection. Below -190 all are zeros.
  ulong2 w = float64_widen(a), s = float64_wide_sinpi(w, 0u);
  if (a >= 0x4067c00000000000ul)
    return s.y & 0x8000000000000000ul ^ 0x8000000000000000ul;
  s = float64_wide_mul(float64_wide_mul(s, w), float64_wide_gamma(a));
  return float64_shorten(float64_wide_div(ulong2(0xc90fdaa22168c235ul, 0x8000000000000001ul), s));
}
)"},
    {"float64_wide_lgamma", R"(
// The logarithm of gamma(x) for x > 0.
inline ulong2 float64_wide_lgamma(ulong2 x) {
  ulong2 one = float64_wide_one(), two = float64_wide_scale(one, 1);
  int part = float64_part(x, 2);
  if (part >= 12) {
    ulong2 y = float64_wide_mul(float64_wide_sub(x, float64_wide_scale(one, -1)), float64_wide_log(x));
    ulong2 rest = float64_wide_add(float64_stirling(x), float64_wide(0ul, 0, 0x759fc72192fad29aul));
    return float64_wide_add(float64_wide_sub(y, x), rest);
  }
  ulong2 y = part < -2 ? float64_wide_add(x, one) : x, product = part < -2 ? x : one;
  while (float64_part(y, 2) > 4) {
    y = float64_wide_sub(y, one);
    product = float64_wide_mul(product, y);
  }
  ulong2 value = float64_wide_mul(float64_wide_sub(y, one), float64_wide_sub(y, two));
  value = float64_wide_mul(value, float64_piece(float64_lgamma_table, -2, 16, 2, y));
  ulong2 log = float64_wide_log(product);
  return float64_wide_add(value, part < -2 ? float64_wide_negate(log) : log);
}
)"},
    {"float64_lgamma", R"(
inline ulong float64_lgamma(ulong x) {
  ulong a = x & 0x7ffffffffffffffful;
  if (a > 0x7ff0000000000000ul)
    return 0x7ff8000000000000ul;
  if (a == 0x7ff0000000000000ul || (x >> 63 != 0ul && (a & float64_fraction(a)) == 0ul) || a == 0ul)
    return 0x7ff0000000000000ul;
  ulong2 w = float64_widen(a), y = float64_wide_lgamma(w);
  if (x >> 63 != 0ul) {
    // By reflection.
    ulong2 s = float64_wide_mul(float64_wide_sinpi(w, 0u), w);
    s = float64_wide_div(ulong2(0xc90fdaa22168c235ul, 1ul), s);
    y = float64_wide_sub(float64_wide_log(ulong2(s.x, ulong(uint(s.y)))), y);
  }
  return float64_shorten(y);
}
)"},
    {"float64_modified_bessel", R"(
// From a table of exp(-a) times the function from 1 to 16, and of that times sqrt(a) above.
inline ulong2 float64_modified_bessel(constant long *table, constant long *far, ulong2 a) {
  ulong2 e = float64_wide_exp(a);
  if (int(uint(a.y)) < 4)
    return float64_wide_mul(e, float64_piece(table, 0, 20, 1, a));
  ulong f = float64_wide_fraction(float64_wide_scale(float64_wide_inverse(a), 4));
  ulong2 y = float64_polynomial(far, 19, long(f ^ 0x8000000000000000ul));
  return float64_wide_div(float64_wide_mul(e, y), float64_wide_sqrt(a));
}
)"},
    {"float64_near", R"(
// A polynomial in the square of a number below 1.
inline ulong2 float64_near(constant long *row, int count, ulong2 a) {
  ulong f = float64_wide_fraction(a);
  return float64_polynomial(row, count, long(mulhi(f, f) ^ 0x8000000000000000ul));
}
)"},
    {"float64_cyl_bessel_i0", R"(
inline ulong float64_cyl_bessel_i0(ulong x) {
  x &= 0x7ffffffffffffffful;
  if (x >= 0x7ff0000000000000ul)
    return x;
  ulong2 a = float64_widen(x), y;
  if (int(uint(a.y)) < 0)
    y = float64_near(float64_i0_near, 10, a);
  else
    y = float64_modified_bessel(float64_i0_table, float64_i0_far, a);
  return float64_shorten(y);
}
)"},
    {"float64_cyl_bessel_i1", R"(
inline ulong float64_cyl_bessel_i1(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  x ^= sign;
  if (x >= 0x7ff0000000000000ul)
    return sign | x;
  ulong2 a = float64_widen(x), y;
  if (int(uint(a.y)) < 0)
    y = float64_wide_mul(a, float64_near(float64_i1_near, 10, a));
  else
    y = float64_modified_bessel(float64_i1_table, float64_i1_far, a);
  return sign | float64_shorten(y);
}
)"},
    {"float64_bessel_piece", R"(
// As float64_piece, of parts that are quarters of binades. Where a row names a zero, the polynomial is divided by the distance
// from it, which has 128 digits.
inline ulong2 float64_bessel_piece(constant long *table, int first, int count, ulong2 a) {
  constant long *row = table + (float64_part(a, 2) - first) * (count + 3);
  ulong2 y = float64_polynomial(row + 2, count, float64_place(a, 2));
  ulong zero = ulong(row[0]), rest = ulong(row[1]);
  if (zero == 0ul)
    return y;
  ulong high = a.x - zero - ulong(rest != 0ul), low = 0ul - rest;
  ulong sign = high & 0x8000000000000000ul;
  high = sign != 0ul ? ~high + ulong(low == 0ul) : high;
  low = sign != 0ul ? 0ul - low : low;
  ulong zeros = clz(high) & 63ul;
  int e = int(uint(a.y));
  ulong2 distance = high == 0ul ? float64_wide(sign, e - 64, low)
                                : float64_wide(sign, e - int(zeros), high << zeros | low >> 1 >> (63ul - zeros));
  return float64_wide_mul(y, distance);
}
)"},
    {"float64_bessel_far", R"(
// J or Y of order 0 or 1, for a >= 8, from the sine and the cosine of a.
inline ulong2 float64_bessel_far(ulong x, ulong2 a, bool isSecond, bool isOne) {
  uint quadrant = 0u;
  ulong sign = 0ul;
  int zeros = 0;
  ulong angle = float64_angle(x, quadrant, sign, zeros);
  ulong2 s = float64_wide_sine(angle, zeros, sign, quadrant), c = float64_wide_sine(angle, zeros, sign, quadrant + 1u);
  // cos and sin of a - pi / 4, times sqrt(2), or a quarter turn further.
  ulong2 p = float64_wide_add(s, c), q = float64_wide_sub(s, c);
  ulong2 cosine = isOne ? q : p, sine = isOne ? float64_wide_negate(p) : q;
  long t = float64_wide_square(a, 3);
  ulong2 even, odd;
  if (isOne) {
    even = float64_polynomial(float64_bessel_far_1, 20, t);
    odd = float64_polynomial(float64_bessel_far_1 + 21, 20, t);
  } else {
    even = float64_polynomial(float64_bessel_far_0, 20, t);
    odd = float64_polynomial(float64_bessel_far_0 + 21, 20, t);
  }
  odd = float64_wide_mul(odd, float64_wide_inverse(a));
  ulong2 y = isSecond ? float64_wide_add(float64_wide_mul(even, sine), float64_wide_mul(odd, cosine))
                      : float64_wide_sub(float64_wide_mul(even, cosine), float64_wide_mul(odd, sine));
  // 1 / sqrt(pi * a)
  return float64_wide_div(y, float64_wide_sqrt(float64_wide_mul(a, ulong2(0xc90fdaa22168c235ul, 1ul))));
}
)"},
    {"float64_wide_j0", R"(
// Of a finite number that is not negative.
inline ulong2 float64_wide_j0(ulong x) {
  ulong2 a = float64_widen(x);
  if (int(uint(a.y)) < 0)
    return float64_near(float64_j0_near, 10, a);
  if (int(uint(a.y)) < 3)
    return float64_bessel_piece(float64_j0_table, 0, 15, a);
  return float64_bessel_far(x, a, false, false);
}
)"},
    {"float64_wide_j1", R"(
inline ulong2 float64_wide_j1(ulong x) {
  ulong2 a = float64_widen(x);
  if (int(uint(a.y)) < 0)
    return float64_wide_mul(a, float64_near(float64_j1_near, 10, a));
  if (int(uint(a.y)) < 3)
    return float64_bessel_piece(float64_j1_table, 0, 15, a);
  return float64_bessel_far(x, a, false, true);
}
)"},
    {"float64_wide_y0", R"(
// Of a finite number above 0.
inline ulong2 float64_wide_y0(ulong x) {
  ulong2 a = float64_widen(x);
  int e = int(uint(a.y));
  if (e < -1) {
    // 2 / pi * log(a) * J0(a) and a polynomial
    ulong2 y = float64_wide_mul(float64_wide_mul(float64_wide_log(a), float64_near(float64_j0_near, 10, a)),
                                ulong2(0xa2f9836e4e44152aul, ulong(uint(-1))));
    return float64_wide_add(y, float64_near(float64_y0_near, 9, float64_wide_scale(a, 1)));
  }
  if (e < 3)
    return float64_bessel_piece(float64_y0_table, -4, 17, a);
  return float64_bessel_far(x, a, true, false);
}
)"},
    {"float64_wide_y1", R"(
inline ulong2 float64_wide_y1(ulong x) {
  ulong2 a = float64_widen(x);
  int e = int(uint(a.y));
  if (e < -1) {
    // 2 / pi * (log(a) * J1(a) - 1 / a) and a polynomial times a
    ulong2 y = float64_wide_mul(float64_wide_log(a), float64_wide_mul(a, float64_near(float64_j1_near, 10, a)));
    y = float64_wide_mul(float64_wide_sub(y, float64_wide_inverse(a)), ulong2(0xa2f9836e4e44152aul, ulong(uint(-1))));
    return float64_wide_add(y, float64_wide_mul(a, float64_near(float64_y1_near, 9, float64_wide_scale(a, 1))));
  }
  if (e < 3)
    return float64_bessel_piece(float64_y1_table, -4, 17, a);
  return float64_bessel_far(x, a, true, true);
}
)"},
    {"float64_j0", R"(
inline ulong float64_j0(ulong x) {
  x &= 0x7ffffffffffffffful;
  if (x >= 0x7ff0000000000000ul)
    return x == 0x7ff0000000000000ul ? 0ul : 0x7ff8000000000000ul;
  return float64_shorten(float64_wide_j0(x));
}
)"},
    {"float64_j1", R"(
inline ulong float64_j1(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  x ^= sign;
  if (x >= 0x7ff0000000000000ul)
    return x == 0x7ff0000000000000ul ? sign : 0x7ff8000000000000ul;
  return sign ^ float64_shorten(float64_wide_j1(x));
}
)"},
    {"float64_y0", R"(
inline ulong float64_y0(ulong x) {
  if (x - 1ul >= 0x7feffffffffffffful)
    return x << 1 == 0ul ? 0xfff0000000000000ul : x == 0x7ff0000000000000ul ? 0ul : 0x7ff8000000000000ul;
  return float64_shorten(float64_wide_y0(x));
}
)"},
    {"float64_y1", R"(
inline ulong float64_y1(ulong x) {
  if (x - 1ul >= 0x7feffffffffffffful)
    return x << 1 == 0ul ? 0xfff0000000000000ul : x == 0x7ff0000000000000ul ? 0ul : 0x7ff8000000000000ul;
  return float64_shorten(float64_wide_y1(x));
}
)"},
    {"float64_jn", R"(
inline ulong float64_jn(uint order, ulong x) {
  int n = int(order);
  ulong a = x & 0x7ffffffffffffffful, sign = (order & 1u) != 0u ? x ^ a : 0ul;
  if (n < 0 || a > 0x7ff0000000000000ul)
    return 0x7ff8000000000000ul;
  if (a == 0x7ff0000000000000ul || (a == 0ul && n != 0))
    return sign;
  if (n == 0)
    return float64_j0(x);
  ulong2 w = float64_widen(a), steps = float64_wide_scale(float64_wide_inverse(w), 1), y;
  if (a > float64_from_ulong(ulong(n))) {
    // Upward: stable before the order passes x.
    ulong2 before = float64_wide_j0(a);
    y = float64_wide_j1(a);
    for (int k = 1; k < n; ++k) {
      ulong2 next = float64_wide_sub(float64_wide_mul(float64_wide_mul(float64_wide_of(uint(k), 0), steps), y), before);
      before = y;
      y = next;
    }
  } else {
    // Downward from an order whose value is nothing, and scaled by a sum that is 1.
    ulong2 current = float64_wide_one(), above = ulong2(0ul, ulong(uint(-65536))), sum = above;
    y = above;
    int start = 2 * ((n + int(precise::sqrt(200.0f * float(n))) + 32) / 2);
    for (int k = start; k > 0; --k) {
      ulong2 below = float64_wide_sub(float64_wide_mul(float64_wide_mul(float64_wide_of(uint(k), 0), steps), current), above);
      above = current;
      current = below;
      y = k - 1 == n ? current : y;
      if ((k & 1) != 0 && k > 1)
        sum = float64_wide_add(sum, float64_wide_scale(current, 1));
    }
    y = float64_wide_div(y, float64_wide_add(sum, current));
  }
  return sign ^ float64_shorten(y);
}
)"},
    {"float64_yn", R"(
inline ulong float64_yn(uint order, ulong x) {
  int n = int(order);
  if (n < 2)
    return n < 0 ? 0x7ff8000000000000ul : n == 0 ? float64_y0(x) : float64_y1(x);
  if (x - 1ul >= 0x7feffffffffffffful)
    return x << 1 == 0ul ? 0xfff0000000000000ul : x == 0x7ff0000000000000ul ? 0ul : 0x7ff8000000000000ul;
  ulong2 before = float64_wide_y0(x), y = float64_wide_y1(x);
  ulong2 steps = float64_wide_scale(float64_wide_inverse(float64_widen(x)), 1);
  for (int k = 1; k < n && int(uint(y.y)) < 4096; ++k) {
    ulong2 next = float64_wide_sub(float64_wide_mul(float64_wide_mul(float64_wide_of(uint(k), 0), steps), y), before);
    before = y;
    y = next;
  }
  return float64_shorten(y);
}
)"},
};
// clang-format on

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getFloat64Special() { return functions; }
