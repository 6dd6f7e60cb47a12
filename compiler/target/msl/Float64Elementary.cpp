// Powers, roots, inverse functions and others of 64-bit floats, computed with numbers of 64 digits
// and rounded once at the end.

#include "target/msl/Float64Prelude.h"

using namespace triton_metal::msl;

// clang-format off
static constexpr PreludeFunction functions[] = {
    {"float64_wide_scale", R"(
// a * 2^k
inline ulong2 float64_wide_scale(ulong2 a, int k) {
  return ulong2(a.x, (a.y & 0x8000000000000000ul) | ulong(uint(int(uint(a.y)) + k)));
}
)"},
    {"float64_wide_negate", R"(
inline ulong2 float64_wide_negate(ulong2 a) {
  return ulong2(a.x, a.y ^ 0x8000000000000000ul);
}
)"},
    {"float64_wide_mul", R"(
inline ulong2 float64_wide_mul(ulong2 a, ulong2 b) {
  ulong high = mulhi(a.x, b.x), carry = high >> 63;
  ulong m = carry != 0ul ? high : high << 1 | (a.x * b.x) >> 63;
  int e = int(uint(a.y)) + int(uint(b.y)) + int(carry);
  return ulong2(m, ((a.y ^ b.y) & 0x8000000000000000ul) | ulong(uint(e)));
}
)"},
    {"float64_wide_add", R"(
inline ulong2 float64_wide_add(ulong2 a, ulong2 b) {
  int i = int(uint(a.y)), k = int(uint(b.y));
  bool swaps = i < k || (i == k && a.x < b.x);
  ulong2 p = swaps ? b : a, q = swaps ? a : b;
  int e = max(i, k), gap = e - min(i, k);
  ulong cut = ulong(min(gap, 63)), small = gap < 64 ? q.x : 0ul;
  ulong high = small >> cut, low = small << 1 << (63ul - cut);
  if (((a.y ^ b.y) >> 63) != 0ul) {
    high = p.x - high - ulong(low != 0ul);
    low = 0ul - low;
    ulong zeros = clz(high);
    ulong m = zeros < 64ul ? high << (zeros & 63ul) | low >> 1 >> ((63ul - zeros) & 63ul) : low;
    ulong y = (p.y & 0x8000000000000000ul) | ulong(uint(e - int(zeros)));
    return ulong2(m, m != 0ul ? y : ulong(uint(-65536)));
  }
  ulong sum = p.x + high;
  bool isOver = sum < high;
  return ulong2(isOver ? sum >> 1 | 0x8000000000000000ul : sum, isOver ? float64_wide_scale(p, 1).y : p.y);
}
)"},
    {"float64_wide_sub", R"(
inline ulong2 float64_wide_sub(ulong2 a, ulong2 b) {
  return float64_wide_add(a, float64_wide_negate(b));
}
)"},
    {"float64_wide_inverse", R"(
// 1 / a, with 60 digits.
inline ulong2 float64_wide_inverse(ulong2 a) {
  return float64_wide(a.y & 0x8000000000000000ul, 0 - int(uint(a.y)), float64_reciprocal(a.x));
}
)"},
    {"float64_wide_div", R"(
inline ulong2 float64_wide_div(ulong2 a, ulong2 b) {
  return float64_wide_mul(a, float64_wide_inverse(b));
}
)"},
    {"float64_wide_sqrt", R"(
// The root of a number that is not negative, with 59 digits.
inline ulong2 float64_wide_sqrt(ulong2 a) {
  int e = int(uint(a.y));
  if (a.x == 0ul)
    return a;
  ulong m = (e & 1) != 0 ? a.x : a.x >> 1;
  // 2^31 / sqrt(m), then 2^63 / sqrt(m), where m is 1 to 4.
  ulong seed = ulong(uint(4398046511104.0f / precise::sqrt(float(uint(m >> 40)))));
  ulong error = 0x1000000000000000ul - mulhi(m, seed * seed);
  ulong r = (seed << 32) + ulong(long(seed * ulong(long(error) >> 8)) >> 21);
  error = 0x1000000000000000ul - mulhi(m, mulhi(r, r));
  r += ulong(long((r >> 32) * error) >> 29);
  ulong high = mulhi(m, r), low = m * r;
  return float64_wide(0ul, e >> 1, high >> 62 != 0ul ? 0xfffffffffffffffful : high << 2 | low >> 62);
}
)"},
    {"float64_wide_one", R"(
inline ulong2 float64_wide_one() { return ulong2(0x8000000000000000ul, 0ul); }
)"},
    {"float64_wide_of", R"(
// An integer that is not negative, by 2^cut.
inline ulong2 float64_wide_of(uint n, int cut) { return float64_wide(0ul, 63 - cut, ulong(n)); }
)"},
    {"float64_wide_fraction", R"(
// The absolute value of a number below 1, by 2^64.
inline ulong float64_wide_fraction(ulong2 a) {
  int cut = -1 - int(uint(a.y));
  return cut < 0 ? 0xfffffffffffffffful : cut < 64 ? a.x >> ulong(cut & 63) : 0ul;
}
)"},
    {"float64_wide_log", R"(
inline ulong2 float64_wide_log(ulong2 a) {
  return float64_logarithm_of(a.x, int(uint(a.y)), 0x8000000000000000ul, 0x58b90bfbe8e7bcd6ul);
}
)"},
    {"float64_wide_exp", R"(
inline ulong2 float64_wide_exp(ulong2 a) {
  int e = int(uint(a.y)), k = 0;
  if (e < -61)
    return float64_wide_one();
  ulong digits = float64_exp_digits(a.x, min(e, 13), a.y >> 63 != 0ul, k);
  return float64_wide(0ul, k, digits);
}
)"},
    {"float64_polynomial", R"(
// A polynomial of t / 2^63: a row has an exponent and then the coefficients, the highest power's first.
inline ulong2 float64_polynomial(constant long *row, int count, long t) {
  long p = row[1];
  for (int i = 2; i <= count; ++i)
    p = row[i] + mulhi(p, t) * 2l;
  ulong sign = ulong(p) & 0x8000000000000000ul;
  return float64_wide(sign, int(row[0]), sign != 0ul ? 0ul - ulong(p) : ulong(p));
}
)"},
    {"float64_part", R"(
// The number of the part of a binade in which a number is, where each has 2^bits of them.
inline int float64_part(ulong2 a, int bits) {
  return int(uint(a.y)) * (1 << bits) + int((a.x & 0x7ffffffffffffffful) >> ulong(63 - bits));
}
)"},
    {"float64_place", R"(
// The place in its part, from -1 to 1 by 2^63.
inline long float64_place(ulong2 a, int bits) {
  return long((a.x << ulong(bits + 1)) ^ 0x8000000000000000ul);
}
)"},
    {"float64_piece", R"(
// The polynomial of the part in which a number is.
inline ulong2 float64_piece(constant long *table, int first, int count, int bits, ulong2 a) {
  int at = (float64_part(a, bits) - first) * (count + 1);
  return float64_polynomial(table + at, count, float64_place(a, bits));
}
)"},
    {"float64_wide_log2", R"(
// log2(x) with 120 digits, of which the second half is `rest`. x is above 0 and finite.
inline ulong2 float64_wide_log2(ulong x, thread ulong &rest) {
  ulong m = float64_digits(x);
  uint i = uint(m >> 58) & 31u;
  bool isUpper = i > 13u;
  int k = float64_exponent(x) - 1023 + int(isUpper);
  // m * c or m / 2 * c is 1 + d, with the point 60 or 61 bits from the right, where 256 is 1 in c.
  ulong d = (m >> 11) * float64_log2_table[i * 3u] - (isUpper ? 0x2000000000000000ul : 0x1000000000000000ul);
  bool isNegative = d >> 63 != 0ul;
  // log2(1 + d) is d times the logarithm of e and less.
  long t = long(d << (isUpper ? 7ul : 8ul)), p = float64_log2_series[1];
  for (int n = 2; n < 15; ++n)
    p = float64_log2_series[n] + mulhi(p, t) * 2l;
  long q = mulhi(p, t);
  ulong low = 0xbe87fed0691d3e88ul + (ulong(q) << 60);
  ulong high = 0xb8aa3b295c17f0bbul + ulong(q >> 4) + ulong(low < 0xbe87fed0691d3e88ul);
  d = isNegative ? 0ul - d : d;
  int zeros = int(clz(d)), e = (isUpper ? 2 : 3) - zeros;
  d <<= ulong(zeros & 63);
  ulong carry = mulhi(d, low);
  low = d * high + carry;
  high = mulhi(d, high) + ulong(low < carry);
  ulong sign = isNegative ? 0x8000000000000000ul : 0ul;
  if (high >> 63 == 0ul) {
    high = high << 1 | low >> 63;
    low <<= 1;
    --e;
  }
  ++e;
  if (k == 0 && (i == 0u || i == 31u)) {
    rest = low;
    return float64_wide(d != 0ul ? sign : 0ul, e, d != 0ul ? high : 0ul);
  }
  // The sum has the point 116 bits from the right.
  ulong cut = ulong(11 - e), far = cut & 63ul;
  low = cut < 64ul ? low >> far | high << 1 << (63ul - far) : high >> far;
  high = cut < 64ul ? high >> far : 0ul;
  low = d != 0ul ? low : 0ul;
  high = d != 0ul ? high : 0ul;
  ulong top = float64_log2_table[i * 3u + 1u] + (ulong(long(k)) << 52), bottom = float64_log2_table[i * 3u + 2u];
  ulong sum = isNegative ? bottom - low : bottom + low;
  top = isNegative ? top - high - ulong(bottom < low) : top + high + ulong(sum < low);
  sign = top & 0x8000000000000000ul;
  top = sign != 0ul ? ~top + ulong(sum == 0ul) : top;
  sum = sign != 0ul ? 0ul - sum : sum;
  ulong shift = clz(top) & 63ul;
  rest = sum << shift;
  return ulong2(top << shift | sum >> 1 >> (63ul - shift), sign | ulong(uint(11 - int(shift))));
}
)"},
    {"float64_wide_pow", R"(
// x^y for x above 0 and finite.
inline ulong2 float64_wide_pow(ulong x, ulong2 y) {
  ulong rest = 0ul;
  ulong2 a = float64_wide_log2(x, rest);
  int e = int(uint(a.y)) + int(uint(y.y)), k = 0;
  if (a.x == 0ul || y.x == 0ul || e < -61)
    return float64_wide_one();
  ulong digits = float64_exp2_digits(y.x, min(e, 20), ((a.y ^ y.y) >> 63) != 0ul, a.x, rest, k);
  return float64_wide(0ul, k, digits);
}
)"},
    {"float64_pow", R"(
inline ulong float64_pow(ulong x, ulong y) {
  ulong a = x & 0x7ffffffffffffffful, b = y & 0x7ffffffffffffffful;
  ulong infinity = 0x7ff0000000000000ul, one = 0x3ff0000000000000ul;
  if (x == one || b == 0ul)
    return one;
  if (a > infinity || b > infinity)
    return 0x7ff8000000000000ul;
  ulong mask = float64_fraction(y);
  bool isWhole = (y & mask) == 0ul;
  bool isOdd = isWhole && b < 0x4340000000000000ul && (y & (mask + 1ul)) != 0ul;
  ulong sign = x >> 63 != 0ul && isOdd ? 0x8000000000000000ul : 0ul;
  bool isNegative = y >> 63 != 0ul;
  if (b == infinity)
    return a == one ? one : (a > one) != isNegative ? infinity : 0ul;
  if (a == 0ul || a == infinity)
    return sign | ((a == 0ul) == isNegative ? infinity : 0ul);
  if (x >> 63 != 0ul && !isWhole)
    return 0x7ff8000000000000ul;
  return sign | float64_shorten(float64_wide_pow(a, float64_widen(y)));
}
)"},
    {"float64_powi", R"(
inline ulong float64_powi(ulong x, uint n) {
  return float64_pow(x, float64_from_long(ulong(long(int(n)))));
}
)"},
    {"float64_exp10", R"(
inline ulong float64_exp10(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023, k = 0;
  if (e >= 9)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : x >> 63 != 0ul ? 0ul : 0x7ff0000000000000ul;
  if (e < -60)
    return 0x3ff0000000000000ul;
  // log2(10) / 2 with 128 digits.
  ulong digits = float64_exp2_digits(float64_digits(x), e + 1, x >> 63 != 0ul, 0xd49a784bcd1b8afeul, 0x492bf6ff4dafdb4cul, k);
  return float64_round(0ul, k + 1023, digits);
}
)"},
    {"float64_cube_root", R"(
// The cube root of x, or its reciprocal. x is finite, and not 0.
inline ulong float64_cube_root(ulong x, bool inverts) {
  ulong2 w = float64_widen(x);
  int e = int(uint(w.y)), k = (e + 3000) / 3 - 1000;
  ulong2 log = float64_wide_log(ulong2(w.x, ulong(uint(e - 3 * k))));
  ulong2 third = float64_wide_mul(log, ulong2(0xaaaaaaaaaaaaaaabul, ulong(uint(-2))));
  third = float64_wide_exp(inverts ? float64_wide_negate(third) : third);
  return (x & 0x8000000000000000ul) | float64_shorten(float64_wide_scale(third, inverts ? -k : k));
}
)"},
    {"float64_cbrt", R"(
inline ulong float64_cbrt(ulong x) {
  if ((x & 0x7ffffffffffffffful) - 1ul >= 0x7feffffffffffffful)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : x;
  return float64_cube_root(x, false);
}
)"},
    {"float64_rcbrt", R"(
inline ulong float64_rcbrt(ulong x) {
  if ((x & 0x7ffffffffffffffful) - 1ul >= 0x7feffffffffffffful)
    return float64_div(0x3ff0000000000000ul, x);
  return float64_cube_root(x, true);
}
)"},
    {"float64_norm", R"(
// The root of the sum of four squares, or its reciprocal.
inline ulong float64_norm(ulong a, ulong b, ulong c, ulong d, bool inverts) {
  ulong infinity = 0x7ff0000000000000ul;
  a &= 0x7ffffffffffffffful;
  b &= 0x7ffffffffffffffful;
  c &= 0x7ffffffffffffffful;
  d &= 0x7ffffffffffffffful;
  if (a == infinity || b == infinity || c == infinity || d == infinity)
    return inverts ? 0ul : infinity;
  ulong largest = max(max(a, b), max(c, d));
  if (largest > infinity || largest == 0ul)
    return largest != 0ul ? 0x7ff8000000000000ul : inverts ? infinity : 0ul;
  ulong2 x = float64_widen(a), y = float64_widen(b), z = float64_widen(c), w = float64_widen(d);
  ulong2 sum = float64_wide_add(float64_wide_mul(x, x), float64_wide_mul(y, y));
  sum = float64_wide_add(float64_wide_add(sum, float64_wide_mul(z, z)), float64_wide_mul(w, w));
  ulong2 root = float64_wide_sqrt(sum);
  return float64_shorten(inverts ? float64_wide_inverse(root) : root);
}
)"},
    {"float64_norm3d", R"(
inline ulong float64_norm3d(ulong a, ulong b, ulong c) { return float64_norm(a, b, c, 0ul, false); }
)"},
    {"float64_norm4d", R"(
inline ulong float64_norm4d(ulong a, ulong b, ulong c, ulong d) { return float64_norm(a, b, c, d, false); }
)"},
    {"float64_hypot", R"(
inline ulong float64_hypot(ulong a, ulong b) { return float64_norm(a, b, 0ul, 0ul, false); }
)"},
    {"float64_rnorm3d", R"(
inline ulong float64_rnorm3d(ulong a, ulong b, ulong c) { return float64_norm(a, b, c, 0ul, true); }
)"},
    {"float64_rnorm4d", R"(
inline ulong float64_rnorm4d(ulong a, ulong b, ulong c, ulong d) { return float64_norm(a, b, c, d, true); }
)"},
    {"float64_rhypot", R"(
inline ulong float64_rhypot(ulong a, ulong b) { return float64_norm(a, b, 0ul, 0ul, true); }
)"},
    {"float64_wide_atan", R"(
// The angle of the point (x, y), of which no coordinate is negative, and one is not 0.
inline ulong2 float64_wide_atan(ulong2 y, ulong2 x) {
  int gap = int(uint(x.y)) - int(uint(y.y));
  bool swaps = gap < 0 || (gap == 0 && y.x > x.x);
  ulong2 p = swaps ? x : y, q = swaps ? y : x;
  gap = abs(gap);
  // The quotient is about i / 8, whose angle a table has.
  float ratio = float(uint(p.x >> 40)) / float(uint(q.x >> 40)) / float(1u << uint(min(gap, 8)));
  uint i = gap < 8 ? uint(ratio * 8.0f + 0.5f) : 0u;
  ulong2 k = float64_wide_of(i, 3);
  ulong2 r = float64_wide_sub(p, float64_wide_mul(k, q));
  r = float64_wide_div(r, float64_wide_add(q, float64_wide_mul(k, p)));
  ulong f = float64_wide_fraction(r), z = mulhi(f, f);
  ulong s = 0x787878787878788ul;
  s = 0x888888888888889ul - mulhi(s, z);
  s = 0x9d89d89d89d89d9ul - mulhi(s, z);
  s = 0xba2e8ba2e8ba2e9ul - mulhi(s, z);
  s = 0xe38e38e38e38e39ul - mulhi(s, z);
  s = 0x1249249249249249ul - mulhi(s, z);
  s = 0x199999999999999aul - mulhi(s, z);
  s = 0x2aaaaaaaaaaaaaabul - mulhi(s, z);
  s = 0x8000000000000000ul - mulhi(s, z);
  r = float64_wide_mul(r, float64_wide(0ul, 0, s));
  r = float64_wide_add(float64_wide(0ul, 0, float64_atan_table[i]), r);
  return swaps ? float64_wide_sub(ulong2(0xc90fdaa22168c235ul, 0ul), r) : r;
}
)"},
    {"float64_atan", R"(
inline ulong float64_atan(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  if (float64_is_nan(x))
    return 0x7ff8000000000000ul;
  // Infinity is a large number here.
  return sign | float64_shorten(float64_wide_atan(float64_widen(x ^ sign), float64_wide_one()));
}
)"},
    {"float64_atan2", R"(
inline ulong float64_atan2(ulong y, ulong x) {
  ulong a = y & 0x7ffffffffffffffful, b = x & 0x7ffffffffffffffful, sign = y ^ a;
  ulong infinity = 0x7ff0000000000000ul, one = 0x3ff0000000000000ul;
  if (max(a, b) > infinity)
    return 0x7ff8000000000000ul;
  // The angle of (1, 0) for that of (0, 0), as that of (1, 1) for that of two infinities.
  if (max(a, b) == infinity) {
    a = a == infinity ? one : 0ul;
    b = b == infinity ? one : 0ul;
  }
  b = max(a, b) == 0ul ? one : b;
  ulong2 angle = float64_wide_atan(float64_widen(a), float64_widen(b));
  if (x >> 63 != 0ul)
    angle = float64_wide_sub(ulong2(0xc90fdaa22168c235ul, 1ul), angle);
  return sign | float64_shorten(angle);
}
)"},
    {"float64_cosine_of", R"(
// sqrt(1 - x * x)
inline ulong2 float64_cosine_of(ulong2 x) {
  ulong2 one = float64_wide_one();
  return float64_wide_sqrt(float64_wide_mul(float64_wide_sub(one, x), float64_wide_add(one, x)));
}
)"},
    {"float64_asin", R"(
inline ulong float64_asin(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  if ((x ^ sign) > 0x3ff0000000000000ul)
    return 0x7ff8000000000000ul;
  ulong2 w = float64_widen(x ^ sign);
  return sign | float64_shorten(float64_wide_atan(w, float64_cosine_of(w)));
}
)"},
    {"float64_acos", R"(
inline ulong float64_acos(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  if ((x ^ sign) > 0x3ff0000000000000ul)
    return 0x7ff8000000000000ul;
  ulong2 w = float64_widen(x ^ sign), angle = float64_wide_atan(float64_cosine_of(w), w);
  return float64_shorten(sign != 0ul ? float64_wide_sub(ulong2(0xc90fdaa22168c235ul, 1ul), angle) : angle);
}
)"},
    {"float64_asinh", R"(
// log(1 + x + x^2 / (1 + sqrt(1 + x^2)))
inline ulong float64_asinh(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  if ((x ^ sign) - 1ul >= 0x7feffffffffffffful)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : x;
  ulong2 w = float64_widen(x ^ sign), square = float64_wide_mul(w, w), one = float64_wide_one();
  ulong2 root = float64_wide_sqrt(float64_wide_add(one, square));
  w = float64_wide_add(w, float64_wide_div(square, float64_wide_add(one, root)));
  return sign | float64_shorten(float64_wide_log1p(w));
}
)"},
    {"float64_acosh", R"(
// log(1 + t + sqrt(t * (t + 2))) of t = x - 1
inline ulong float64_acosh(ulong x) {
  if (x - 0x3ff0000000000000ul >= 0x4000000000000000ul)
    return x == 0x7ff0000000000000ul ? x : 0x7ff8000000000000ul;
  ulong2 t = float64_wide_sub(float64_widen(x), float64_wide_one());
  ulong2 square = float64_wide_mul(t, float64_wide_add(t, ulong2(0x8000000000000000ul, 1ul)));
  return float64_shorten(float64_wide_log1p(float64_wide_add(t, float64_wide_sqrt(square))));
}
)"},
    {"float64_atanh", R"(
// log(1 + 2 x / (1 - x)) / 2
inline ulong float64_atanh(ulong x) {
  ulong sign = x & 0x8000000000000000ul, a = x ^ sign;
  if (a == 0ul || a >= 0x3ff0000000000000ul)
    return a == 0ul ? x : a == 0x3ff0000000000000ul ? sign | 0x7ff0000000000000ul : 0x7ff8000000000000ul;
  ulong2 w = float64_widen(a), rest = float64_wide_sub(float64_wide_one(), w);
  ulong2 log = float64_wide_log1p(float64_wide_scale(float64_wide_div(w, rest), 1));
  return sign | float64_shorten(float64_wide_scale(log, -1));
}
)"},
    {"float64_half_turns", R"(
// As float64_angle, of pi * x.
inline ulong float64_half_turns(ulong2 x, thread uint &quadrant, thread ulong &sign, thread int &zeros) {
  int e = int(uint(x.y));
  bool isNegative = x.y >> 63 != 0ul;
  ulong high = x.x;
  uint steps = 0u;
  zeros = -2 - e;
  sign = 0ul;
  if (e >= -2) {
    steps = e < 62 ? uint(x.x >> 1 >> ulong(61 - e)) : 0u;
    high = e < 62 ? x.x << ulong(e + 2) : 0ul;
    bool isFar = high >> 63 != 0ul;
    high = isFar ? 0ul - high : high;
    steps += uint(isFar);
    sign = isFar ? 0x8000000000000000ul : 0ul;
    zeros = int(clz(high));
    high <<= ulong(zeros & 63);
  }
  quadrant += isNegative ? 0u - steps : steps;
  sign ^= isNegative ? 0x8000000000000000ul : 0ul;
  return mulhi(high, 0xc90fdaa22168c235ul);
}
)"},
    {"float64_wide_sinpi", R"(
// The sine of pi * x and so many quadrants more.
inline ulong2 float64_wide_sinpi(ulong2 x, uint quadrant) {
  ulong sign = 0ul;
  int zeros = 0;
  ulong angle = float64_half_turns(x, quadrant, sign, zeros);
  return float64_wide_sine(angle, zeros, sign, quadrant);
}
)"},
    {"float64_sinpi", R"(
inline ulong float64_sinpi(ulong x) {
  if ((x & 0x7ffffffffffffffful) >= 0x7ff0000000000000ul)
    return 0x7ff8000000000000ul;
  ulong2 y = float64_wide_sinpi(float64_widen(x), 0u);
  return y.x == 0ul ? x & 0x8000000000000000ul : float64_shorten(y);
}
)"},
    {"float64_cospi", R"(
inline ulong float64_cospi(ulong x) {
  if ((x & 0x7ffffffffffffffful) >= 0x7ff0000000000000ul)
    return 0x7ff8000000000000ul;
  ulong2 y = float64_wide_sinpi(float64_widen(x), 1u);
  return y.x == 0ul ? 0ul : float64_shorten(y);
}
)"},
};
// clang-format on

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getFloat64Elementary() { return functions; }
