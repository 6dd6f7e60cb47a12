// Functions of 64-bit floats that are exact, or rounded in another direction than to the nearest
// number: those that device libraries have beside IEEE 754's own.

#include "target/msl/Float64Prelude.h"

using namespace triton_metal::msl;

// clang-format off
static constexpr PreludeFunction functions[] = {
    {"float64_round_integer", R"(
// The number of an integer.
template <int mode> inline ulong float64_round_integer(ulong sign, ulong x) {
  ulong zeros = clz(x);
  return float64_round_to<mode>(sign, 1086 - int(zeros), x << (zeros & 63ul));
}
)"},
    {"float64_from_ulong_to", R"(
template <int mode> inline ulong float64_from_ulong_to(ulong x) {
  return float64_round_integer<mode>(0ul, x);
}
)"},
    {"float64_from_long_to", R"(
template <int mode> inline ulong float64_from_long_to(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  return float64_round_integer<mode>(sign, sign != 0ul ? 0ul - x : x);
}
)"},
    {"float64_sub_to", R"(
template <int mode> inline ulong float64_sub_to(ulong a, ulong b) {
  return float64_add_to<mode>(a, b ^ 0x8000000000000000ul);
}
)"},
    {"float64_rcp_to", R"(
template <int mode> inline ulong float64_rcp_to(ulong x) {
  return float64_div_to<mode>(0x3ff0000000000000ul, x);
}
)"},
    {"float64_rcp64h", R"(
// The upper half of the reciprocal. Subnormal numbers are zeros.
inline ulong float64_rcp64h(ulong x) {
  ulong sign = x & 0x8000000000000000ul;
  ulong y = float64_div(0x3ff0000000000000ul, (x ^ sign) < 0x10000000000000ul ? sign : x);
  return (y ^ sign) < 0x10000000000000ul ? sign : y & 0xffffffff00000000ul;
}
)"},
    {"float64_signbit", R"(
inline uint float64_signbit(ulong x) { return uint(x >> 63); }
)"},
    {"float64_high_word", R"(
inline uint float64_high_word(ulong x) { return uint(x >> 32); }
)"},
    {"float64_low_word", R"(
inline uint float64_low_word(ulong x) { return uint(x); }
)"},
    {"float64_of_words", R"(
inline ulong float64_of_words(uint high, uint low) { return ulong(high) << 32 | ulong(low); }
)"},
    {"float64_fdim", R"(
inline ulong float64_fdim(ulong a, ulong b) {
  if (float64_is_nan(a) || float64_is_nan(b))
    return 0x7ff8000000000000ul;
  return float64_less(b, a) ? float64_sub(a, b) : 0ul;
}
)"},
    {"float64_nextafter", R"(
inline ulong float64_nextafter(ulong a, ulong b) {
  if (float64_is_nan(a) || float64_is_nan(b))
    return 0x7ff8000000000000ul;
  if (float64_equal(a, b))
    return b;
  if (a << 1 == 0ul)
    return (b & 0x8000000000000000ul) | 1ul;
  return float64_less(a, b) == (a >> 63 == 0ul) ? a + 1ul : a - 1ul;
}
)"},
    {"float64_ldexp", R"(
// x * 2^n, rounded once.
inline ulong float64_ldexp(ulong x, uint n) {
  if ((x & 0x7ffffffffffffffful) >= 0x7ff0000000000000ul || x << 1 == 0ul)
    return x;
  int e = float64_exponent(x) + min(max(int(n), -5000), 5000);
  return float64_round(x & 0x8000000000000000ul, e, float64_digits(x));
}
)"},
    {"float64_ilogb", R"(
inline uint float64_ilogb(ulong x) {
  ulong magnitude = x & 0x7ffffffffffffffful;
  if (magnitude == 0ul || magnitude > 0x7ff0000000000000ul)
    return 0x80000000u;
  return magnitude == 0x7ff0000000000000ul ? 0x7fffffffu : uint(float64_exponent(x) - 1023);
}
)"},
    {"float64_logb", R"(
inline ulong float64_logb(ulong x) {
  ulong magnitude = x & 0x7ffffffffffffffful;
  if (magnitude >= 0x7ff0000000000000ul)
    return magnitude;
  return magnitude == 0ul ? 0xfff0000000000000ul : float64_from_long(ulong(long(float64_exponent(x) - 1023)));
}
)"},
    {"float64_remainder", R"(
// a less the multiple of b that is the nearest to it, or the even one of two, which is exact.
inline ulong float64_remainder(ulong a, ulong b) {
  ulong x = a & 0x7ffffffffffffffful, y = b & 0x7ffffffffffffffful, sign = a ^ x;
  if (x >= 0x7ff0000000000000ul || y == 0ul || y > 0x7ff0000000000000ul)
    return 0x7ff8000000000000ul;
  if (y == 0x7ff0000000000000ul)
    return a;
  x = y < 0x7fe0000000000000ul ? float64_fmod(x, float64_add(y, y)) : x;
  // x is 0 to 2 y. A difference that is not exact is not less than the other operand.
  bool isOver = float64_sub(y, x) < x || x > y;
  x = isOver ? float64_sub(x, y) : x;
  bool isFar = isOver && x >> 63 == 0ul && float64_sub(y, x) <= x;
  x = isFar ? float64_sub(x, y) : x;
  return x << 1 == 0ul ? sign : x ^ sign;
}
)"},
};
// clang-format on

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getFloat64Exact() { return functions; }
