// 64-bit floats after IEEE 754, which no Metal has: rounded to nearest, ties to even, with
// subnormals, infinities and signed zeros. A NaN that is computed is 0x7ff8000000000000. The
// functions are not forced inline: they are long, and no matrices are passed to them
// (docs/apple-quirks.md, row 24).

#include "target/msl/Float64Prelude.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace triton_metal::msl;

static constexpr PreludeFunction functions[] = {
    {"float64_digits", R"(
// The bits of a number of 64 bits: its highest digit in bit 63, also where it is subnormal.
inline ulong float64_digits(ulong x) {
  ulong m = x << 11 & 0x7ffffffffffff800ul;
  return x << 1 >> 53 != 0ul ? m | 0x8000000000000000ul : m << (clz(m) & 63ul);
}
)"},
    {"float64_exponent", R"(
// Its exponent, as of a normal number.
inline int float64_exponent(ulong x) {
  int e = int(x >> 52 & 0x7fful);
  return e != 0 ? e : 1 - int(clz(x << 11 & 0x7ffffffffffff800ul));
}
)"},
    {"float64_is_nan", R"(
inline bool float64_is_nan(ulong x) {
  return (x & 0x7ffffffffffffffful) > 0x7ff0000000000000ul;
}
)"},
    {"float64_round", R"(
// m * 2^(e - 1086) to the nearest number, ties to even. m has bit 63, or is 0.
inline ulong float64_round(ulong sign, int e, ulong m) {
  ulong cut = ulong(min(max(1 - e, 0), 63));
  ulong whole = m >> cut | ulong((m & ((1ul << cut) - 1ul)) != 0ul);
  ulong x = (m != 0ul ? ulong(min(max(e - 1, 0), 2046)) << 52 : 0ul) + (whole >> 11);
  x += ulong((whole & 0x7fful) + (whole >> 11 & 1ul) > 0x400ul);
  return sign | min(x, 0x7ff0000000000000ul);
}
)"},
    {"float64_round_to", R"(
// Mode 0 rounds to the nearest number, 1 toward zero, 2 down, 3 up.
template <int mode> inline ulong float64_round_to(ulong sign, int e, ulong m) {
  if (mode == 0)
    return float64_round(sign, e, m);
  bool isAway = mode != 1 && (mode == 2) == (sign != 0ul);
  ulong cut = ulong(min(max(1 - e, 0), 63));
  ulong whole = m >> cut | ulong((m & ((1ul << cut) - 1ul)) != 0ul);
  ulong x = (m != 0ul ? ulong(min(max(e - 1, 0), 2046)) << 52 : 0ul) + (whole >> 11);
  x += ulong(isAway && (whole & 0x7fful) != 0ul);
  return sign | min(x, isAway ? 0x7ff0000000000000ul : 0x7feffffffffffffful);
}
)"},
    {"float64_add_to", R"(
template <int mode> inline ulong float64_add_to(ulong a, ulong b) {
  bool swaps = (a & 0x7ffffffffffffffful) < (b & 0x7ffffffffffffffful);
  ulong x = swaps ? b : a, y = swaps ? a : b;
  int e = int(x >> 52 & 0x7fful), f = int(y >> 52 & 0x7fful);
  ulong m = (x << 10 & 0x3ffffffffffffc00ul) | (e != 0 ? 0x4000000000000000ul : 0ul);
  ulong n = (y << 10 & 0x3ffffffffffffc00ul) | (f != 0 ? 0x4000000000000000ul : 0ul);
  ulong cut = ulong(min(max(e, 1) - max(f, 1), 63));
  n = n >> cut | ulong((n & ((1ul << cut) - 1ul)) != 0ul);
  bool differ = (a ^ b) >> 63 != 0ul;
  m = differ ? m - n : m + n;
  ulong zeros = clz(m);
  ulong none = mode == 2 ? 0x8000000000000000ul : 0ul;
  ulong sign = m == 0ul && differ ? none : x & 0x8000000000000000ul;
  ulong sum = float64_round_to<mode>(sign, max(e, 1) + 1 - int(zeros), m << (zeros & 63ul));
  bool undefined = float64_is_nan(x) || (differ && (y & 0x7ffffffffffffffful) == 0x7ff0000000000000ul);
  return e != 0x7ff ? sum : undefined ? 0x7ff8000000000000ul : x;
}
)"},
    {"float64_add", R"(
inline ulong float64_add(ulong a, ulong b) {
  return float64_add_to<0>(a, b);
}
)"},
    {"float64_sub", R"(
inline ulong float64_sub(ulong a, ulong b) {
  return float64_add(a, b ^ 0x8000000000000000ul);
}
)"},
    {"float64_mul_to", R"(
template <int mode> inline ulong float64_mul_to(ulong a, ulong b) {
  ulong x = a & 0x7ffffffffffffffful, y = b & 0x7ffffffffffffffful;
  ulong sign = (a ^ b) & 0x8000000000000000ul;
  ulong m = float64_digits(a), n = float64_digits(b);
  ulong high = mulhi(m, n) | ulong(m * n != 0ul);
  ulong carry = high >> 63;
  int e = float64_exponent(a) + float64_exponent(b) - 1023 + int(carry);
  ulong product = float64_round_to<mode>(sign, e, high << (1ul - carry));
  bool undefined = max(x, y) > 0x7ff0000000000000ul || min(x, y) == 0ul;
  return max(x, y) < 0x7ff0000000000000ul ? product : undefined ? 0x7ff8000000000000ul : sign | 0x7ff0000000000000ul;
}
)"},
    {"float64_mul", R"(
inline ulong float64_mul(ulong a, ulong b) {
  return float64_mul_to<0>(a, b);
}
)"},
    {"float64_fma_to", R"(
// a * b + c, rounded once. The sum has 128 bits.
template <int mode> inline ulong float64_fma_to(ulong a, ulong b, ulong c) {
  ulong x = a & 0x7ffffffffffffffful, y = b & 0x7ffffffffffffffful, z = c & 0x7ffffffffffffffful;
  ulong sign = (a ^ b) & 0x8000000000000000ul;
  bool differ = (sign ^ c) >> 63 != 0ul;
  ulong m = float64_digits(a), n = float64_digits(b);
  ulong low = m * n, high = mulhi(m, n);
  low = low >> 1 | high << 63;
  high >>= 1;
  ulong addend = float64_digits(c) >> 1, rest = 0ul;
  int e = high != 0ul ? float64_exponent(a) + float64_exponent(b) - 1022 : -4096;
  int f = addend != 0ul ? float64_exponent(c) : -4096;
  // The one with the smaller exponent moves to the right.
  bool swaps = e < f;
  ulong h = swaps ? high : addend, l = swaps ? low : rest;
  ulong cut = ulong(min(swaps ? f - e : e - f, 127));
  bool isFar = cut >= 64ul;
  bool isCut = isFar && l != 0ul;
  l = isFar ? h : l;
  h = isFar ? 0ul : h;
  cut &= 63ul;
  isCut = isCut || (l & ((1ul << cut) - 1ul)) != 0ul;
  l = l >> cut | h << 1 << (63ul - cut) | ulong(isCut);
  h >>= cut;
  ulong top = swaps ? addend : high, bottom = swaps ? rest : low;
  ulong resultSign = swaps ? c & 0x8000000000000000ul : sign;
  // h, l is added to top, bottom, or subtracted from it.
  ulong sumLow = differ ? bottom - l : bottom + l;
  ulong carry = ulong(differ ? bottom < l : sumLow < l);
  ulong sumHigh = differ ? top - h - carry : top + h + carry;
  bool isNegative = differ && sumHigh >> 63 != 0ul;
  resultSign ^= isNegative ? 0x8000000000000000ul : 0ul;
  sumHigh = isNegative ? ~sumHigh + ulong(sumLow == 0ul) : sumHigh;
  sumLow = isNegative ? 0ul - sumLow : sumLow;
  int exponent = (swaps ? f : e) + 1;
  bool isLow = sumHigh == 0ul;
  sumHigh = isLow ? sumLow : sumHigh;
  sumLow = isLow ? 0ul : sumLow;
  ulong zeros = clz(sumHigh);
  exponent -= int(zeros) + (isLow ? 64 : 0);
  ulong none = mode == 2 ? 0x8000000000000000ul : 0ul;
  resultSign = sumHigh == 0ul && differ ? none : resultSign;
  zeros &= 63ul;
  ulong digits = sumHigh << zeros | sumLow >> 1 >> (63ul - zeros) | ulong(sumLow << zeros != 0ul);
  ulong sum = float64_round_to<mode>(resultSign, exponent, digits);
  ulong largest = max(max(x, y), z);
  bool isInfinite = max(x, y) == 0x7ff0000000000000ul;
  bool undefined = largest > 0x7ff0000000000000ul || (isInfinite && (min(x, y) == 0ul || (differ && z == 0x7ff0000000000000ul)));
  return largest < 0x7ff0000000000000ul ? sum : undefined ? 0x7ff8000000000000ul : isInfinite ? sign | 0x7ff0000000000000ul : c;
}
)"},
    {"float64_fma", R"(
inline ulong float64_fma(ulong a, ulong b, ulong c) {
  return float64_fma_to<0>(a, b, c);
}
)"},
    {"float64_div_to", R"(
// Two digits of the quotient, from a reciprocal, and what is left decides the last bit.
template <int mode> inline ulong float64_div_to(ulong a, ulong b) {
  ulong x = a & 0x7ffffffffffffffful, y = b & 0x7ffffffffffffffful;
  ulong sign = (a ^ b) & 0x8000000000000000ul;
  ulong m = float64_digits(a), n = float64_digits(b) | 0x8000000000000000ul;
  bool isLess = m < n;
  m = isLess ? m : m >> 1;
  int e = float64_exponent(a) - float64_exponent(b) + (isLess ? 1022 : 1023);
  // 2^31 / n, then 2^63 / n, where n is 1 to 2.
  ulong seed = ulong(uint(18014398509481984.0f / float(uint(n >> 40))));
  ulong error = 0x4000000000000000ul - mulhi(n, seed << 32);
  ulong reciprocal = (seed << 32) + ulong(long(seed * ulong(long(error) >> 8)) >> 22);
  ulong quotient = mulhi(m, reciprocal) >> 20;
  ulong divisor = n >> 11;
  ulong rest = (m << 31) - quotient * divisor;
  quotient = (quotient << 14) + ulong(long(ulong(long(rest) >> 24) * (reciprocal >> 32)) >> 45);
  rest = (m << 45) - quotient * divisor;
  bool isOver = rest >> 63 != 0ul;
  quotient -= ulong(isOver);
  rest += isOver ? divisor : 0ul;
  bool isUnder = rest >= divisor;
  quotient += ulong(isUnder);
  rest -= isUnder ? divisor : 0ul;
  ulong result = float64_round_to<mode>(sign, e, m != 0ul ? quotient << 8 | ulong(rest != 0ul) : 0ul);
  ulong largest = max(x, y);
  bool undefined = largest > 0x7ff0000000000000ul || x == y;
  ulong infinity = 0x7ff0000000000000ul;
  ulong special = largest == 0ul || (largest >= infinity && undefined) ? 0x7ff8000000000000ul
                  : y == infinity ? sign : sign | infinity;
  return y == 0ul || largest >= infinity ? special : result;
}
)"},
    {"float64_div", R"(
inline ulong float64_div(ulong a, ulong b) {
  return float64_div_to<0>(a, b);
}
)"},
    {"float64_sqrt_to", R"(
// As the quotient.
template <int mode> inline ulong float64_sqrt_to(ulong a) {
  int e = float64_exponent(a) - 1023;
  ulong m = float64_digits(a) | 0x8000000000000000ul;
  m = (e & 1) != 0 ? m : m >> 1;
  // 2^31 / sqrt(m), then 2^63 / sqrt(m), where m is 1 to 4.
  ulong seed = ulong(uint(4398046511104.0f / precise::sqrt(float(uint(m >> 40)))));
  ulong error = 0x1000000000000000ul - mulhi(m, seed * seed);
  ulong reciprocal = (seed << 32) + ulong(long(seed * ulong(long(error) >> 8)) >> 21);
  ulong root = mulhi(m, reciprocal) >> 20;
  ulong rest = (m << 20) - root * root;
  root = (root << 14) + ulong(long(ulong(long(rest) >> 16) * (reciprocal >> 32)) >> 43);
  rest = (m << 48) - root * root;
  bool isOver = rest >> 63 != 0ul;
  root -= ulong(isOver);
  rest += isOver ? root * 2ul + 1ul : 0ul;
  bool isUnder = rest > root * 2ul;
  rest -= isUnder ? root * 2ul + 1ul : 0ul;
  root += ulong(isUnder);
  ulong result = float64_round_to<mode>(0ul, (e >> 1) + 1023, root << 8 | ulong(rest != 0ul));
  bool keeps = a << 1 == 0ul || a == 0x7ff0000000000000ul;
  return keeps ? a : a < 0x7ff0000000000000ul ? result : 0x7ff8000000000000ul;
}
)"},
    {"float64_sqrt", R"(
inline ulong float64_sqrt(ulong a) {
  return float64_sqrt_to<0>(a);
}
)"},
    {"float64_equal", R"(
inline bool float64_equal(ulong a, ulong b) {
  return (a == b || ((a | b) << 1) == 0ul) && !float64_is_nan(a);
}
)"},
    {"float64_order", R"(
// The order of numbers as that of signed integers, with -0 below +0.
inline long float64_order(ulong x) {
  return long(x ^ (ulong(long(x) >> 63) >> 1));
}
)"},
    {"float64_less", R"(
inline bool float64_less(ulong a, ulong b) {
  bool ordered = !float64_is_nan(a) && !float64_is_nan(b) && ((a | b) << 1) != 0ul;
  return ordered && float64_order(a) < float64_order(b);
}
)"},
    {"float64_less_equal", R"(
inline bool float64_less_equal(ulong a, ulong b) {
  bool ordered = !float64_is_nan(a) && !float64_is_nan(b);
  return ordered && (float64_order(a) <= float64_order(b) || ((a | b) << 1) == 0ul);
}
)"},
    {"float64_maximum", R"(
// The greater number; NaN if either is NaN.
inline ulong float64_maximum(ulong a, ulong b) {
  bool isNaN = float64_is_nan(a) || float64_is_nan(b);
  return isNaN ? 0x7ff8000000000000ul : float64_order(a) > float64_order(b) ? a : b;
}
)"},
    {"float64_minimum", R"(
inline ulong float64_minimum(ulong a, ulong b) {
  bool isNaN = float64_is_nan(a) || float64_is_nan(b);
  return isNaN ? 0x7ff8000000000000ul : float64_order(a) < float64_order(b) ? a : b;
}
)"},
    {"float64_max", R"(
// The greater number; the other one if one is NaN.
inline ulong float64_max(ulong a, ulong b) {
  return float64_is_nan(b) || (!float64_is_nan(a) && float64_order(a) > float64_order(b)) ? a : b;
}
)"},
    {"float64_min", R"(
inline ulong float64_min(ulong a, ulong b) {
  return float64_is_nan(b) || (!float64_is_nan(a) && float64_order(a) < float64_order(b)) ? a : b;
}
)"},
    {"float64_from_ulong", R"(
inline ulong float64_from_ulong(ulong x) {
  ulong zeros = clz(x);
  return float64_round(0ul, 1086 - int(zeros), x << (zeros & 63ul));
}
)"},
    {"float64_from_long", R"(
inline ulong float64_from_long(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  return sign | float64_from_ulong(sign != 0ul ? 0ul - x : x);
}
)"},
    {"float64_from_float", R"(
inline ulong float64_from_float(float x) {
  uint bits = as_type<uint>(x);
  uint e = bits >> 23 & 0xffu, fraction = bits & 0x7fffffu;
  uint zeros = min(clz(fraction), 31u);
  ulong subnormal = fraction != 0u ? (ulong(904u - zeros) << 52) + (ulong(fraction) << (21u + zeros)) : 0ul;
  ulong normal = (ulong(e == 0xffu ? 0x7ffu : e + 896u) << 52) | ulong(fraction) << 29;
  ulong magnitude = e != 0u ? normal : subnormal;
  return ulong(bits >> 31) << 63 | magnitude | (magnitude > 0x7ff0000000000000ul ? 0x8000000000000ul : 0ul);
}
)"},
    {"float64_narrow", R"(
// The bits of a number with so many digits behind the point and such a bias of the exponent. The modes are those of
// float64_round_to.
template <int digits, int bias, int mode> inline uint float64_narrow(ulong x) {
  int e = int(x >> 52 & 0x7fful) - (1023 - bias);
  ulong m = x << 11 | 0x8000000000000000ul;
  ulong cut = ulong(min(max(1 - e, 0), 63));
  m = m >> cut | ulong((m & ((1ul << cut) - 1ul)) != 0ul);
  ulong rest = m & ((1ul << (63 - digits)) - 1ul);
  m >>= 63 - digits;
  uint infinity = uint(2 * bias + 1) << digits;
  uint bits = (uint(min(max(e - 1, 0), 2 * bias)) << digits) + uint(m);
  bool isAway = mode == 0 ? rest + (m & 1ul) > 1ul << (62 - digits) : mode != 1 && rest != 0ul && x << 1 != 0ul && (mode == 2) == (x >> 63 != 0ul);
  bool isLargest = mode != 0 && (mode == 1 || (mode == 2) != (x >> 63 != 0ul)) && (x << 1) != 0xffe0000000000000ul;
  bits = min(bits + uint(isAway), isLargest ? infinity - 1u : infinity);
  bits = float64_is_nan(x) ? infinity | 1u << (digits - 1) : bits;
  return uint(x >> 63) * (infinity + (1u << digits)) | bits;
}
)"},
    {"float64_to_ulong", R"(
// Toward zero, to the nearest number of the type; 0 for a NaN.
inline ulong float64_to_ulong(ulong x) {
  int e = int(x >> 52 & 0x7fful);
  ulong m = x << 11 | 0x8000000000000000ul;
  m = e < 1023 ? 0ul : e > 1086 ? 0xfffffffffffffffful : m >> ulong(min(max(1086 - e, 0), 63));
  return x > 0x7ff0000000000000ul ? 0ul : m;
}
)"},
    {"float64_to_long", R"(
inline ulong float64_to_long(ulong x) {
  bool isNegative = x >> 63 != 0ul;
  ulong m = float64_to_ulong(x & 0x7ffffffffffffffful);
  m = min(m, isNegative ? 0x8000000000000000ul : 0x7ffffffffffffffful);
  return isNegative ? 0ul - m : m;
}
)"},
    {"float64_fraction", R"(
// The bits of a fraction.
inline ulong float64_fraction(ulong x) {
  int e = int(x >> 52 & 0x7fful);
  return e < 1023 ? 0x7ffffffffffffffful : e > 1074 ? 0ul : 0xffffffffffffful >> ulong(min(max(e - 1023, 0), 63));
}
)"},
    {"float64_trunc", R"(
inline ulong float64_trunc(ulong x) {
  return x & ~float64_fraction(x);
}
)"},
    {"float64_floor", R"(
inline ulong float64_floor(ulong x) {
  ulong mask = float64_fraction(x), magnitude = x & 0x7ffffffffffffffful;
  if (magnitude < 0x3ff0000000000000ul)
    return magnitude == 0ul ? x : x >> 63 != 0ul ? 0xbff0000000000000ul : 0ul;
  return (x >> 63 != 0ul ? x + mask : x) & ~mask;
}
)"},
    {"float64_ceil", R"(
inline ulong float64_ceil(ulong x) {
  return float64_floor(x ^ 0x8000000000000000ul) ^ 0x8000000000000000ul;
}
)"},
    {"float64_nearest", R"(
// Halves go away from zero.
inline ulong float64_nearest(ulong x) {
  ulong mask = float64_fraction(x), sign = x & 0x8000000000000000ul;
  if ((x ^ sign) < 0x3ff0000000000000ul)
    return (x ^ sign) < 0x3fe0000000000000ul ? sign : sign | 0x3ff0000000000000ul;
  return (x + ((mask + 1ul) >> 1)) & ~mask;
}
)"},
    {"float64_rint", R"(
// Halves go to the even number.
inline ulong float64_rint(ulong x) {
  ulong mask = float64_fraction(x), sign = x & 0x8000000000000000ul;
  if ((x ^ sign) < 0x3ff0000000000000ul)
    return (x ^ sign) <= 0x3fe0000000000000ul ? sign : sign | 0x3ff0000000000000ul;
  ulong isOdd = ulong((x & (mask + 1ul)) != 0ul);
  return mask == 0ul ? x : (x + (mask >> 1) + isOdd) & ~mask;
}
)"},
    {"float64_fmod", R"(
// The remainder with the sign of a, which is exact.
inline ulong float64_fmod(ulong a, ulong b) {
  ulong x = a & 0x7ffffffffffffffful, y = b & 0x7ffffffffffffffful;
  if (x >= 0x7ff0000000000000ul || y == 0ul || y > 0x7ff0000000000000ul)
    return 0x7ff8000000000000ul;
  if (x < y)
    return a;
  ulong m = float64_digits(x) >> 1, n = float64_digits(y) >> 1;
  int e = float64_exponent(y), steps = float64_exponent(x) - e;
  for (int i = 0; i < steps; ++i)
    m = (m >= n ? m - n : m) << 1;
  m = m >= n ? m - n : m;
  ulong zeros = clz(m);
  return float64_round(a & 0x8000000000000000ul, e + 1 - int(zeros), m << (zeros & 63ul));
}
)"},
};

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getFloat64Arithmetic() {
  static const llvm::SmallVector<PreludeFunction, 0> all = [] {
    llvm::SmallVector<PreludeFunction, 0> both(std::begin(functions), std::end(functions));
    for (llvm::ArrayRef<PreludeFunction> more :
         {getFloat64Math(), getFloat64Exact(), getFloat64Tables(), getFloat64Elementary(),
          getFloat64Special()})
      llvm::append_range(both, more);
    return both;
  }();
  return all;
}
