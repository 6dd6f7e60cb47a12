// Functions of floats and integers that Metal does not have: operations that round in another
// direction, roots, powers and bits. They are not forced inline: some are long, and no matrices are
// passed to them (docs/apple-quirks.md, row 24).

#include "target/msl/LibraryPrelude.h"

using namespace triton_metal::msl;

// clang-format off
static constexpr PreludeFunction functions[] = {
    {"library_round", R"(
// m * 2^e in float. Mode 0 rounds to the nearest number, 1 toward zero, 2 down, 3 up.
inline float library_round(bool negative, int e, ulong m, int mode) {
  int zeros = int(clz(m));
  int cut = max(40, zeros - e - 149);
  ulong digits = m << (zeros & 63);
  ulong whole = cut > 63 ? 0ul : digits >> (cut & 63);
  ulong rest = cut > 64 ? 1ul : cut == 64 ? digits : digits << ((64 - cut) & 63);
  bool nearest = rest > 0x8000000000000000ul || (rest == 0x8000000000000000ul && (whole & 1ul) != 0ul);
  bool up = mode == 0 ? nearest : mode == 1 ? false : rest != 0ul && (mode == 2) == negative;
  int q = e - zeros + cut;
  int bits = int(whole) + int(up);
  bits = whole >> 23 != 0ul ? bits + ((q + 149) << 23) : bits;
  bool away = mode == 0 || (mode != 1 && (mode == 2) == negative);
  bits = q > 104 || bits < 0 || bits >= 0x7f800000 ? (away ? 0x7f800000 : 0x7f7fffff) : bits;
  bits = m == 0ul ? 0 : bits;
  return as_type<float>(uint(bits) | (negative ? 0x80000000u : 0u));
}
)"},
    {"library_digits", R"(
// The digits of a number, as an integer times 2^library_exponent.
inline ulong library_digits(float x) {
  uint bits = as_type<uint>(x);
  return ulong((bits & 0x7fffffu) | ((bits & 0x7f800000u) != 0u ? 0x800000u : 0u));
}
)"},
    {"library_exponent", R"(
inline int library_exponent(float x) {
  return max(int(as_type<uint>(x) >> 23 & 0xffu), 1) - 150;
}
)"},
    {"library_fma_rounded", R"(
inline float library_fma_rounded(float x, float y, float z, int mode) {
  if (!isfinite(x) || !isfinite(y) || !isfinite(z))
    return fma(x, y, z);
  bool negative = signbit(x) != signbit(y), other = signbit(z);
  ulong m = library_digits(x) * library_digits(y), n = library_digits(z);
  if (m == 0ul || n == 0ul) {
    if (m == 0ul && n == 0ul)
      return negative == other ? z : mode == 2 ? -0.0f : 0.0f;
    return m == 0ul ? z : library_round(negative, library_exponent(x) + library_exponent(y), m, mode);
  }
  int shift = int(clz(m)) - 2, over = int(clz(n)) - 2;
  int e = library_exponent(x) + library_exponent(y) - shift, f = library_exponent(z) - over;
  m <<= shift & 63;
  n <<= over & 63;
  bool swaps = e < f || (e == f && m < n);
  ulong large = swaps ? n : m, small = swaps ? m : n;
  int gap = min(swaps ? f - e : e - f, 63);
  small = small >> gap | ulong((small & ((1ul << gap) - 1ul)) != 0ul);
  ulong sum = negative == other ? large + small : large - small;
  bool sign = sum == 0ul ? mode == 2 : swaps ? other : negative;
  return library_round(sign, max(e, f), sum, mode);
}
)"},
    {"library_fma_rz", R"(
inline float library_fma_rz(float x, float y, float z) { return library_fma_rounded(x, y, z, 1); }
)"},
    {"library_fma_rd", R"(
inline float library_fma_rd(float x, float y, float z) { return library_fma_rounded(x, y, z, 2); }
)"},
    {"library_fma_ru", R"(
inline float library_fma_ru(float x, float y, float z) { return library_fma_rounded(x, y, z, 3); }
)"},
    {"library_add_rz", R"(
inline float library_add_rz(float x, float y) { return library_fma_rounded(x, 1.0f, y, 1); }
)"},
    {"library_add_rd", R"(
inline float library_add_rd(float x, float y) { return library_fma_rounded(x, 1.0f, y, 2); }
)"},
    {"library_add_ru", R"(
inline float library_add_ru(float x, float y) { return library_fma_rounded(x, 1.0f, y, 3); }
)"},
    {"library_sub_rz", R"(
inline float library_sub_rz(float x, float y) { return library_fma_rounded(y, -1.0f, x, 1); }
)"},
    {"library_sub_rd", R"(
inline float library_sub_rd(float x, float y) { return library_fma_rounded(y, -1.0f, x, 2); }
)"},
    {"library_sub_ru", R"(
inline float library_sub_ru(float x, float y) { return library_fma_rounded(y, -1.0f, x, 3); }
)"},
    {"library_mul_rounded", R"(
inline float library_mul_rounded(float x, float y, int mode) {
  if (!isfinite(x) || !isfinite(y))
    return x * y;
  return library_round(signbit(x) != signbit(y), library_exponent(x) + library_exponent(y),
                       library_digits(x) * library_digits(y), mode);
}
)"},
    {"library_mul_rz", R"(
inline float library_mul_rz(float x, float y) { return library_mul_rounded(x, y, 1); }
)"},
    {"library_mul_rd", R"(
inline float library_mul_rd(float x, float y) { return library_mul_rounded(x, y, 2); }
)"},
    {"library_mul_ru", R"(
inline float library_mul_ru(float x, float y) { return library_mul_rounded(x, y, 3); }
)"},
    {"library_adjust", R"(
// The neighbour of r in whose direction a mode rounds. `rest` has the sign of the exact magnitude less that of r.
inline float library_adjust(float r, int rest, int mode) {
  uint bits = as_type<uint>(r);
  bool away = mode != 1 && (mode == 2) == signbit(r);
  return as_type<float>(rest > 0 && away ? bits + 1u : rest < 0 && !away ? bits - 1u : bits);
}
)"},
    {"library_div_rounded", R"(
inline float library_div_rounded(float x, float y, int mode) {
  float r = precise::divide(x, y);
  if (!isfinite(x) || !isfinite(y) || x == 0.0f || y == 0.0f)
    return r;
  if (isinf(r))
    return library_adjust(r, -1, mode);
  // x against r * y, in units of the last digit of r * y.
  long product = long(library_digits(r) * library_digits(y));
  int gap = library_exponent(x) - library_exponent(r) - library_exponent(y);
  if (r == 0.0f)
    return library_adjust(r, 1, mode);
  long exact = gap < 0 ? long(library_digits(x) >> min(-gap, 63)) : long(library_digits(x) << (gap & 63));
  return library_adjust(r, exact > product ? 1 : exact < product ? -1 : 0, mode);
}
)"},
    {"library_div_rz", R"(
inline float library_div_rz(float x, float y) { return library_div_rounded(x, y, 1); }
)"},
    {"library_div_rd", R"(
inline float library_div_rd(float x, float y) { return library_div_rounded(x, y, 2); }
)"},
    {"library_div_ru", R"(
inline float library_div_ru(float x, float y) { return library_div_rounded(x, y, 3); }
)"},
    {"library_rcp_rn", R"(
inline float library_rcp_rn(float x) { return precise::divide(1.0f, x); }
)"},
    {"library_rcp_rz", R"(
inline float library_rcp_rz(float x) { return library_div_rounded(1.0f, x, 1); }
)"},
    {"library_rcp_rd", R"(
inline float library_rcp_rd(float x) { return library_div_rounded(1.0f, x, 2); }
)"},
    {"library_rcp_ru", R"(
inline float library_rcp_ru(float x) { return library_div_rounded(1.0f, x, 3); }
)"},
    {"library_sqrt_rounded", R"(
inline float library_sqrt_rounded(float x, int mode) {
  float r = precise::sqrt(x);
  if (!isfinite(r) || r == 0.0f)
    return r;
  long square = long(library_digits(r) * library_digits(r));
  int gap = library_exponent(x) - 2 * library_exponent(r);
  long exact = long(library_digits(x) << (gap & 63));
  return library_adjust(r, exact > square ? 1 : exact < square ? -1 : 0, mode);
}
)"},
    {"library_sqrt_rz", R"(
inline float library_sqrt_rz(float x) { return library_sqrt_rounded(x, 1); }
)"},
    {"library_sqrt_rd", R"(
inline float library_sqrt_rd(float x) { return library_sqrt_rounded(x, 2); }
)"},
    {"library_sqrt_ru", R"(
inline float library_sqrt_ru(float x) { return library_sqrt_rounded(x, 3); }
)"},
    {"library_int_to_float_rz", R"(
inline float library_int_to_float_rz(int x) { return library_round(x < 0, 0, ulong(abs(long(x))), 1); }
)"},
    {"library_int_to_float_rd", R"(
inline float library_int_to_float_rd(int x) { return library_round(x < 0, 0, ulong(abs(long(x))), 2); }
)"},
    {"library_int_to_float_ru", R"(
inline float library_int_to_float_ru(int x) { return library_round(x < 0, 0, ulong(abs(long(x))), 3); }
)"},
    {"library_uint_to_float_rz", R"(
inline float library_uint_to_float_rz(uint x) { return library_round(false, 0, ulong(x), 1); }
)"},
    {"library_uint_to_float_rd", R"(
inline float library_uint_to_float_rd(uint x) { return library_round(false, 0, ulong(x), 2); }
)"},
    {"library_uint_to_float_ru", R"(
inline float library_uint_to_float_ru(uint x) { return library_round(false, 0, ulong(x), 3); }
)"},
    {"library_ll_to_float_rz", R"(
inline float library_ll_to_float_rz(long x) { return library_round(x < 0l, 0, x < 0l ? 0ul - ulong(x) : ulong(x), 1); }
)"},
    {"library_ll_to_float_rd", R"(
inline float library_ll_to_float_rd(long x) { return library_round(x < 0l, 0, x < 0l ? 0ul - ulong(x) : ulong(x), 2); }
)"},
    {"library_ll_to_float_ru", R"(
inline float library_ll_to_float_ru(long x) { return library_round(x < 0l, 0, x < 0l ? 0ul - ulong(x) : ulong(x), 3); }
)"},
    {"library_ull_to_float_rz", R"(
inline float library_ull_to_float_rz(ulong x) { return library_round(false, 0, x, 1); }
)"},
    {"library_ull_to_float_rd", R"(
inline float library_ull_to_float_rd(ulong x) { return library_round(false, 0, x, 2); }
)"},
    {"library_ull_to_float_ru", R"(
inline float library_ull_to_float_ru(ulong x) { return library_round(false, 0, x, 3); }
)"},
    {"library_clzll", R"(
inline int library_clzll(long x) { return int(clz(ulong(x))); }
)"},
    {"library_popcll", R"(
inline int library_popcll(long x) { return int(popcount(ulong(x))); }
)"},
    {"library_ffs", R"(
inline int library_ffs(int x) { return x == 0 ? 0 : ctz(x) + 1; }
)"},
    {"library_ffsll", R"(
inline int library_ffsll(long x) { return x == 0l ? 0 : int(ctz(ulong(x))) + 1; }
)"},
    {"library_brev", R"(
inline int library_brev(int x) {
  uint b = uint(x);
  b = (b & 0x55555555u) << 1 | (b >> 1 & 0x55555555u);
  b = (b & 0x33333333u) << 2 | (b >> 2 & 0x33333333u);
  b = (b & 0x0f0f0f0fu) << 4 | (b >> 4 & 0x0f0f0f0fu);
  b = (b & 0x00ff00ffu) << 8 | (b >> 8 & 0x00ff00ffu);
  return int(b << 16 | b >> 16);
}
)"},
    {"library_brevll", R"(
inline long library_brevll(long x) {
  ulong low = ulong(uint(library_brev(int(x)))), high = ulong(uint(library_brev(int(x >> 32))));
  return long(low << 32 | high);
}
)"},
    {"library_byte_perm", R"(
// Four of the eight bytes of x and y, chosen by the lower three bits of each digit of s.
inline int library_byte_perm(int x, int y, int s) {
  ulong bytes = ulong(uint(y)) << 32 | ulong(uint(x));
  uint result = 0u;
  for (int i = 0; i < 4; ++i) {
    uint digit = uint(s) >> (4 * i) & 7u;
    result |= (uint(bytes >> (8u * digit)) & 255u) << (8 * i);
  }
  return int(result);
}
)"},
    {"library_mul24", R"(
// The product of the lower 24 bits.
inline int library_mul24(int x, int y) {
  uint a = uint(x) << 8, b = uint(y) << 8;
  return int(uint(int(a) >> 8) * uint(int(b) >> 8));
}
)"},
    {"library_umul24", R"(
inline int library_umul24(int x, int y) { return int((uint(x) & 0xffffffu) * (uint(y) & 0xffffffu)); }
)"},
    {"library_sad", R"(
inline int library_sad(int x, int y, int z) {
  uint distance = x > y ? uint(x) - uint(y) : uint(y) - uint(x);
  return int(distance + uint(z));
}
)"},
    {"library_usad", R"(
inline int library_usad(int x, int y, int z) {
  uint a = uint(x), b = uint(y);
  return int((a > b ? a - b : b - a) + uint(z));
}
)"},
    {"library_hadd", R"(
inline int library_hadd(int x, int y) { return int((long(x) + long(y)) >> 1); }
)"},
    {"library_uhadd", R"(
inline int library_uhadd(int x, int y) { return int((ulong(uint(x)) + ulong(uint(y))) >> 1); }
)"},
    {"library_rhadd", R"(
inline int library_rhadd(int x, int y) { return int((long(x) + long(y) + 1l) >> 1); }
)"},
    {"library_urhadd", R"(
inline int library_urhadd(int x, int y) { return int((ulong(uint(x)) + ulong(uint(y)) + 1ul) >> 1); }
)"},
    {"library_saturate", R"(
// x between 0 and 1; NaN becomes 0.
inline float library_saturate(float x) { return x > 0.0f ? x < 1.0f ? x : 1.0f : 0.0f; }
)"},
    {"library_signbit", R"(
inline int library_signbit(float x) { return int(as_type<uint>(x) >> 31); }
)"},
    {"library_fdim", R"(
inline float library_fdim(float x, float y) { return isnan(x) || isnan(y) ? NAN : x > y ? x - y : 0.0f; }
)"},
    {"library_nextafter", R"(
inline float library_nextafter(float x, float y) {
  uint bits = as_type<uint>(x), other = as_type<uint>(y);
  if (isnan(x) || isnan(y))
    return NAN;
  if (x == y)
    return y;
  if (x == 0.0f)
    return as_type<float>((other & 0x80000000u) | 1u);
  return as_type<float>((x < y) == (x > 0.0f) ? bits + 1u : bits - 1u);
}
)"},
    {"library_ldexp", R"(
// x * 2^n, rounded once.
inline float library_ldexp(float x, int n) {
  if (!isfinite(x))
    return x;
  return library_round(signbit(x), library_exponent(x) + min(max(n, -1000), 1000), library_digits(x), 0);
}
)"},
    {"library_ilogb", R"(
inline int library_ilogb(float x) {
  if (x == 0.0f || isnan(x))
    return -2147483647 - 1;
  if (isinf(x))
    return 2147483647;
  return library_exponent(x) + 63 - int(clz(library_digits(x)));
}
)"},
    {"library_logb", R"(
inline float library_logb(float x) {
  if (isnan(x) || isinf(x))
    return fabs(x);
  return x == 0.0f ? -INFINITY : float(library_ilogb(x));
}
)"},
    {"library_remainder", R"(
// x less the multiple of y that is the nearest to it, which is exact.
inline float library_remainder(float x, float y) {
  if (isnan(x) || isnan(y) || isinf(x) || y == 0.0f)
    return NAN;
  if (isinf(y) || x == 0.0f)
    return x;
  ulong m = library_digits(x), n = library_digits(y);
  int gap = library_exponent(x) - library_exponent(y);
  // With y twice as fine as x, half of y is a whole number.
  int e = library_exponent(y) - 1;
  n <<= 1;
  if (gap < -25)
    return x;
  ulong isOdd = 0ul;
  if (gap < 0) {
    n <<= -gap;
    e += gap;
    m <<= 1;
    isOdd = m >= n ? (m / n) & 1ul : 0ul;
    m = m >= n ? m % n : m;
  } else {
    m <<= 1;
    for (int i = 0; i <= gap; ++i) {
      isOdd = 0ul;
      if (i != 0)
        m <<= 1;
      if (i == 0) {
        isOdd = (m / n) & 1ul;
        m = m % n;
      } else if (m >= n) {
        m -= n;
        isOdd = 1ul;
      }
    }
  }
  bool rounds = 2ul * m > n || (2ul * m == n && isOdd != 0ul);
  return library_round(signbit(x) != rounds, e, rounds ? n - m : m, 0);
}
)"},
    {"library_powi", R"(
inline float library_powi(float x, int n) {
  float power = precise::pow(fabs(x), float(n));
  return (n & 1) != 0 && signbit(x) ? -power : power;
}
)"},
    {"library_exp10", R"(
inline float library_exp10(float x) {
  // x * log2(10) in two parts, of which the first is whole.
  float whole = rint(x * 3.3219281f);
  float rest = fma(whole, -0.30102539f, x);
  rest = fma(whole, -4.6050410e-6f, rest);
  float power = precise::exp2(rest * 3.3219281f);
  power = x > 39.0f ? INFINITY : x < -46.0f ? 0.0f : library_ldexp(power, int(whole));
  return isnan(x) ? x : power;
}
)"},
    {"library_sinpi", R"(
inline float library_sinpi(float x) {
  // The distance from the nearest half, which is exact.
  float half_turns = rint(2.0f * x);
  float rest = fma(half_turns, -0.5f, x) * 3.1415927f;
  int quadrant = int(fmod(half_turns, 4.0f)) & 3;
  float s = (quadrant & 1) != 0 ? precise::cos(rest) : precise::sin(rest);
  s = (quadrant & 2) != 0 ? -s : s;
  s = fabs(x) >= 8388608.0f || x == trunc(x) ? copysign(0.0f, x) : s;
  return isfinite(x) ? s : NAN;
}
)"},
    {"library_cospi", R"(
inline float library_cospi(float x) {
  float half_turns = rint(2.0f * x);
  float rest = fma(half_turns, -0.5f, x) * 3.1415927f;
  int quadrant = int(fmod(half_turns, 4.0f)) & 3;
  float s = (quadrant & 1) != 0 ? precise::sin(rest) : precise::cos(rest);
  s = quadrant == 1 || quadrant == 2 ? -s : s;
  s = fabs(fmod(x, 1.0f)) == 0.5f ? 0.0f : s;
  s = fabs(x) >= 16777216.0f ? 1.0f : s;
  return isfinite(x) ? s : NAN;
}
)"},
    {"library_rsqrt_rn", R"(
inline float library_rsqrt_rn(float x) {
  bool small = x < 1.1754944e-38f;
  float a = small ? x * 16777216.0f : x;
  float r = precise::rsqrt(a);
  float p = a * r, error = fma(-p, r, 1.0f) - fma(a, r, -p) * r;
  float better = fma(0.5f * r, error, r);
  r = x > 0.0f && !isinf(x) ? better : r;
  return small ? r * 4096.0f : r;
}
)"},
    {"library_cube_root", R"(
// The cube root of a number between 1e-30 and 1e30, from its digits in two parts.
inline float library_cube_root(float a) {
  float r = precise::exp2(precise::log2(a) * 0.33333333f);
  float square = r * r, rest = fma(r, r, -square);
  float cube = square * r, error = fma(square, r, -cube) + rest * r;
  return r - ((cube - a) + error) / (3.0f * square);
}
)"},
    {"library_cbrt", R"(
inline float library_cbrt(float x) {
  float a = fabs(x);
  if (a == 0.0f || !isfinite(x))
    return x;
  float scale = a < 1e-30f ? 16777216.0f : a > 1e30f ? 5.9604645e-8f : 1.0f;
  float back = a < 1e-30f ? 0.00390625f : a > 1e30f ? 256.0f : 1.0f;
  return copysign(library_cube_root(a * scale) * back, x);
}
)"},
    {"library_rcbrt", R"(
inline float library_rcbrt(float x) {
  float a = fabs(x);
  if (a == 0.0f || !isfinite(x))
    return precise::divide(1.0f, x);
  float scale = a < 1e-30f ? 16777216.0f : a > 1e30f ? 5.9604645e-8f : 1.0f;
  float back = a < 1e-30f ? 256.0f : a > 1e30f ? 0.00390625f : 1.0f;
  a *= scale;
  float r = precise::divide(1.0f, library_cube_root(a));
  // r^3 * a less 1, in two parts.
  float square = r * r, rest = fma(r, r, -square);
  float p = square * r, low = fma(square, r, -p) + rest * r;
  float error = fma(p, a, -1.0f) + low * a;
  r = fma(r * -0.33333333f, error, r);
  return copysign(r * back, x);
}
)"},
    {"library_squares", R"(
// The sum of the squares of numbers whose largest is between 1 and 2, in two parts.
inline float2 library_squares(float a, float b, float c, float d) {
  float p = a * a, q = b * b, r = c * c, s = d * d;
  float error = (fma(a, a, -p) + fma(b, b, -q)) + (fma(c, c, -r) + fma(d, d, -s));
  float x = p + q, y = x + r, z = y + s;
  float t = x - p, u = y - x, v = z - y;
  error += ((p - (x - t)) + (q - t)) + ((x - (y - u)) + (r - u)) + ((y - (z - v)) + (s - v));
  return float2(z, error);
}
)"},
    {"library_norm4d", R"(
inline float library_norm4d(float a, float b, float c, float d) {
  float most = fmax(fmax(fabs(a), fabs(b)), fmax(fabs(c), fabs(d)));
  if (isinf(most))
    return INFINITY;
  if (isnan(a) || isnan(b) || isnan(c) || isnan(d))
    return NAN;
  if (most == 0.0f)
    return 0.0f;
  int e = library_ilogb(most);
  float2 sum = library_squares(library_ldexp(a, -e), library_ldexp(b, -e), library_ldexp(c, -e), library_ldexp(d, -e));
  float root = precise::sqrt(sum.x);
  root += (fma(-root, root, sum.x) + sum.y) / (2.0f * root);
  return library_ldexp(root, e);
}
)"},
    {"library_rnorm4d", R"(
inline float library_rnorm4d(float a, float b, float c, float d) {
  float most = fmax(fmax(fabs(a), fabs(b)), fmax(fabs(c), fabs(d)));
  if (isinf(most))
    return 0.0f;
  if (isnan(a) || isnan(b) || isnan(c) || isnan(d))
    return NAN;
  if (most == 0.0f)
    return INFINITY;
  int e = library_ilogb(most);
  float2 sum = library_squares(library_ldexp(a, -e), library_ldexp(b, -e), library_ldexp(c, -e), library_ldexp(d, -e));
  float r = precise::rsqrt(sum.x), p = sum.x * r;
  float error = (fma(-p, r, 1.0f) - fma(sum.x, r, -p) * r) - sum.y * r * r;
  return library_ldexp(fma(0.5f * r, error, r), -e);
}
)"},
    {"library_hypot", R"(
inline float library_hypot(float a, float b) { return library_norm4d(a, b, 0.0f, 0.0f); }
)"},
    {"library_rhypot", R"(
inline float library_rhypot(float a, float b) { return library_rnorm4d(a, b, 0.0f, 0.0f); }
)"},
    {"library_norm3d", R"(
inline float library_norm3d(float a, float b, float c) { return library_norm4d(a, b, c, 0.0f); }
)"},
    {"library_rnorm3d", R"(
inline float library_rnorm3d(float a, float b, float c) { return library_rnorm4d(a, b, c, 0.0f); }
)"},
};
// clang-format on

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getExactLibrary() { return functions; }
