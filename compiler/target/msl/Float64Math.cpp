// Functions of 64-bit floats that are not exact, in fixed point of 64 bits: within 2 units in the
// last place, most within 0.51. Polynomials go through the Chebyshev nodes of their intervals.

#include "target/msl/Float64Prelude.h"

using namespace triton_metal::msl;

static constexpr PreludeFunction functions[] = {
    {"float64_wide", R"(
// A number with 64 digits: m / 2^63 * 2^e. x has the digits, with bit 63, and y the exponent and, in bit 63, the sign.
inline ulong2 float64_wide(ulong sign, int e, ulong m) {
  ulong shift = clz(m);
  return ulong2(m << (shift & 63ul), sign | ulong(uint(m != 0ul ? e - int(shift) : -65536)));
}
)"},
    {"float64_widen", R"(
inline ulong2 float64_widen(ulong x) {
  return float64_wide(x & 0x8000000000000000ul, float64_exponent(x) - 1023, float64_digits(x));
}
)"},
    {"float64_shorten", R"(
inline ulong float64_shorten(ulong2 w) {
  return float64_round(w.y & 0x8000000000000000ul, int(uint(w.y)) + 1023, w.x);
}
)"},
    {"float64_power_of_2", R"(
// 2^(f / 2^64) by 2^63, from a polynomial for 2^x - 1.
inline ulong float64_power_of_2(ulong f) {
  ulong p = 0x214d124ul;
  p = 0x1a7c5766ul + mulhi(p, f);
  p = 0x1ebcc1445ul + mulhi(p, f);
  p = 0x1e49a967dful + mulhi(p, f);
  p = 0x1b527aa4153ul + mulhi(p, f);
  p = 0x162c00eaea04ul + mulhi(p, f);
  p = 0xffe5fe97ce77ul + mulhi(p, f);
  p = 0xa184897aaa792ul + mulhi(p, f);
  p = 0x5761ff9e2d427dul + mulhi(p, f);
  p = 0x276556df7497d0aul + mulhi(p, f);
  p = 0xe35846b8250637ful + mulhi(p, f);
  p = 0x3d7f7bff058b1d40ul + mulhi(p, f);
  p = 0xb17217f7d1cf79acul + mulhi(p, f);
  return 0x8000000000000000ul | mulhi(p, f) >> 1;
}
)"},
    {"float64_exp2", R"(
inline ulong float64_exp2(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023;
  bool isNegative = x >> 63 != 0ul;
  if (e >= 11)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : isNegative ? 0ul : 0x7ff0000000000000ul;
  if (e < -60)
    return 0x3ff0000000000000ul;
  ulong m = float64_digits(x);
  ulong whole = e < 0 ? 0ul : m >> ulong(63 - e);
  ulong f = e < -1 ? m >> ulong(-1 - e) : m << ulong(e + 1);
  int k = isNegative ? -int(whole) - int(f != 0ul) : int(whole);
  return float64_round(0ul, k + 1023, float64_power_of_2(isNegative ? 0ul - f : f));
}
)"},
    {"float64_exp2_digits", R"(
// 2^x by 2^(63 - k), where x is m * 2^(e - 63) times a factor, which has 128 bits. e is -61 to 20.
inline ulong float64_exp2_digits(ulong m, int e, bool isNegative, ulong factor, ulong rest, thread int &k) {
  ulong low = mulhi(m, rest), high = mulhi(m, factor);
  ulong sum = m * factor + low;
  high += ulong(sum < low);
  // The point is 64 bits from the right after a shift by 62 - e.
  ulong cut = ulong(62 - e) & 63ul;
  bool isSmall = e < -1;
  ulong whole = isSmall ? 0ul : high >> cut;
  ulong f = isSmall ? high >> cut : high << 1 << (63ul - cut) | sum >> cut;
  k = isNegative ? -int(whole) - int(f != 0ul) : int(whole);
  return float64_power_of_2(isNegative ? 0ul - f : f);
}
)"},
    {"float64_exp_digits", R"(
// exp(x) likewise.
inline ulong float64_exp_digits(ulong m, int e, bool isNegative, thread int &k) {
  return float64_exp2_digits(m, e, isNegative, 0xb8aa3b295c17f0bbul, 0xbe87fed0691d3e88ul, k);
}
)"},
    {"float64_exp", R"(
inline ulong float64_exp(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023, k = 0;
  if (e >= 10)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : x >> 63 != 0ul ? 0ul : 0x7ff0000000000000ul;
  if (e < -60)
    return 0x3ff0000000000000ul;
  ulong digits = float64_exp_digits(float64_digits(x), e, x >> 63 != 0ul, k);
  return float64_round(0ul, k + 1023, digits);
}
)"},
    {"float64_reciprocal", R"(
// 2^63 / n, where n is 1 to 2, to 61 bits.
inline ulong float64_reciprocal(ulong n) {
  ulong seed = ulong(uint(18014398509481984.0f / float(uint(n >> 40))));
  ulong error = 0x4000000000000000ul - mulhi(n, seed << 32);
  ulong r = (seed << 32) + ulong(long(seed * ulong(long(error) >> 8)) >> 22);
  error = 0x4000000000000000ul - mulhi(n, r);
  return r + ulong(long((r >> 32) * error) >> 30);
}
)"},
    {"float64_logarithm", R"(
// The logarithm of 2^k (1 + d) or 2^k (1 - d) to a base. d is distance / 2^(63 + zeros), or half of it where isBelow; divisor is
// 2 + d by 2^62, or 2 - d by 2^63; scale is the logarithm of e, unit that of 2, both by 2^63.
inline ulong2 float64_logarithm(int k, ulong distance, int zeros, ulong divisor, bool isBelow, ulong scale, ulong unit) {
  // d / (2 + d) by 2^(63 + zeros), and its square by 2^64.
  ulong s = mulhi(distance, float64_reciprocal(divisor));
  ulong fraction = zeros < 64 ? s << 1 >> ulong(zeros) : 0ul, z = mulhi(fraction, fraction);
  ulong p = 0xdf7e3fc53f92e66ul;
  p = 0xd5bfd775d2cffcful + mulhi(p, z);
  p = 0xf10166f0f0e6a6ful + mulhi(p, z);
  p = 0x11110b809a7e9c90ul + mulhi(p, z);
  p = 0x13b13b2644adcfa6ul + mulhi(p, z);
  p = 0x1745d1743765e171ul + mulhi(p, z);
  p = 0x1c71c71c71f2fea1ul + mulhi(p, z);
  p = 0x2492492492490aa5ul + mulhi(p, z);
  p = 0x3333333333333339ul + mulhi(p, z);
  p = 0x5555555555555555ul + mulhi(p, z);
  ulong y = mulhi(s + mulhi(s, mulhi(p, z)), scale);
  if (k == 0)
    return float64_wide(isBelow ? 0x8000000000000000ul : 0ul, 2 - zeros, y);
  // k * unit and y have the point 63 bits from the right.
  y = zeros < 2 ? y << 1 : zeros < 66 ? y >> ulong(zeros - 2) : 0ul;
  ulong steps = ulong(k < 0 ? -k : k);
  ulong low = steps * unit, high = mulhi(steps, unit);
  bool differ = (k < 0) != isBelow;
  ulong sum = differ ? low - y : low + y;
  high += ulong(!differ && sum < low) - ulong(differ && low < y);
  ulong shift = high != 0ul ? clz(high) : 64ul + clz(sum);
  ulong digits = shift >= 64ul ? sum << (shift - 64ul) : high << shift | sum >> 1 >> (63ul - shift);
  return float64_wide(k < 0 ? 0x8000000000000000ul : 0ul, 64 - int(shift), digits);
}
)"},
    {"float64_logarithm_of", R"(
// Of m / 2^63 * 2^k: d is that of m from 1 to sqrt(2), or of m / 2 from sqrt(1/2) to 1.
inline ulong2 float64_logarithm_of(ulong m, int k, ulong scale, ulong unit) {
  bool isBelow = m > 0xb504f333f9de6484ul;
  ulong distance = isBelow ? 0ul - m : m - 0x8000000000000000ul;
  ulong divisor = (m >> 1) + (isBelow ? 0x8000000000000000ul : 0x4000000000000000ul);
  int zeros = int(clz(distance));
  return float64_logarithm(k + int(isBelow), distance << ulong(zeros & 63), zeros, divisor, isBelow, scale, unit);
}
)"},
    {"float64_logarithm_to", R"(
inline ulong float64_logarithm_to(ulong x, ulong scale, ulong unit) {
  if (x - 1ul >= 0x7feffffffffffffful)
    return x << 1 == 0ul ? 0xfff0000000000000ul : x == 0x7ff0000000000000ul ? x : 0x7ff8000000000000ul;
  return float64_shorten(float64_logarithm_of(float64_digits(x), float64_exponent(x) - 1023, scale, unit));
}
)"},
    {"float64_log", R"(
inline ulong float64_log(ulong x) {
  return float64_logarithm_to(x, 0x8000000000000000ul, 0x58b90bfbe8e7bcd6ul);
}
)"},
    {"float64_log2", R"(
inline ulong float64_log2(ulong x) {
  return float64_logarithm_to(x, 0xb8aa3b295c17f0bcul, 0x8000000000000000ul);
}
)"},
    {"float64_log10", R"(
inline ulong float64_log10(ulong x) {
  return float64_logarithm_to(x, 0x3796f62a4dca1c65ul, 0x268826a13ef3fde6ul);
}
)"},
    {"float64_wide_log1p", R"(
// log(1 + x), where x is above -1. Where x is small it is d itself.
inline ulong2 float64_wide_log1p(ulong2 x) {
  bool isBelow = x.y >> 63 != 0ul;
  ulong m = x.x;
  int e = int(uint(x.y));
  ulong part = e < 0 ? m >> ulong(min(-e, 63)) : 0ul;
  if (e < -2) {
    ulong divisor = isBelow ? 0ul - part : 0x8000000000000000ul + (part >> 1);
    return float64_logarithm(0, m, isBelow ? -1 - e : -e, divisor, isBelow, 0x8000000000000000ul, 0x58b90bfbe8e7bcd6ul);
  }
  ulong sum = isBelow ? 0x8000000000000000ul - part
              : e < 0 ? 0x4000000000000000ul + (part >> 1) : (m >> 1) + (0x4000000000000000ul >> ulong(min(e, 63)));
  int k = isBelow ? 0 : max(e, 0) + 1, shift = int(clz(sum));
  return float64_logarithm_of(sum << ulong(shift & 63), k - shift, 0x8000000000000000ul, 0x58b90bfbe8e7bcd6ul);
}
)"},
    {"float64_log1p", R"(
inline ulong float64_log1p(ulong x) {
  ulong magnitude = x & 0x7ffffffffffffffful;
  if (magnitude >= 0x7ff0000000000000ul || magnitude == 0ul)
    return float64_is_nan(x) || x == 0xfff0000000000000ul ? 0x7ff8000000000000ul : x;
  if (x >= 0xbff0000000000000ul)
    return magnitude == 0x3ff0000000000000ul ? 0xfff0000000000000ul : 0x7ff8000000000000ul;
  return float64_shorten(float64_wide_log1p(float64_widen(x)));
}
)"},
    {"float64_two_over_pi", R"(
// The bits of 2 / pi, behind 128 zeros.
constant ulong float64_two_over_pi[20] = {
    0x0ul, 0x0ul, 0xa2f9836e4e441529ul, 0xfc2757d1f534ddc0ul, 0xdb6295993c439041ul,
    0xfe5163abdebbc561ul, 0xb7246e3a424dd2e0ul, 0x6492eea09d1921cul, 0xfe1deb1cb129a73eul, 0xe88235f52ebb4484ul,
    0xe99c7026b45f7e41ul, 0x3991d639835339f4ul, 0x9c845f8bbdf9283bul, 0x1ff897ffde05980ful, 0xef2f118b5a0a6d1ful,
    0x6d367ecf27cb09b7ul, 0x4f463f669e5fea2dul, 0x7527bac7ebe5f17bul, 0x3d0739f78a5292eaul, 0x6bfb5fb11f8d5d08ul};
)"},
    {"float64_angle", R"(
// The distance of x from the nearest quadrant by 2^(63 + zeros), with its sign. The exponent of x is -28 to 1023.
inline ulong float64_angle(ulong x, thread uint &quadrant, thread ulong &sign, thread int &zeros) {
  // x * 2 / pi modulo 4, with 190 bits behind the point.
  uint place = uint(x >> 52 & 0x7fful) - 960u, word = place >> 6;
  ulong bit = ulong(place & 63u), m = float64_digits(x);
  ulong w0 = float64_two_over_pi[word], w1 = float64_two_over_pi[word + 1u];
  ulong w2 = float64_two_over_pi[word + 2u], w3 = float64_two_over_pi[word + 3u];
  w0 = w0 << bit | w1 >> 1 >> (63ul - bit);
  w1 = w1 << bit | w2 >> 1 >> (63ul - bit);
  w2 = w2 << bit | w3 >> 1 >> (63ul - bit);
  ulong r2 = m * w2, r1 = m * w1, middle = mulhi(m, w2);
  r1 += middle;
  ulong r0 = m * w0 + mulhi(m, w1) + ulong(r1 < middle);
  ulong high = r0 << 2 | r1 >> 62, low = r1 << 2 | r2 >> 62;
  bool isFar = high >> 63 != 0ul, isNegative = x >> 63 != 0ul;
  uint steps = uint(r0 >> 62) + uint(isFar);
  quadrant += isNegative ? 0u - steps : steps;
  high = isFar ? ~high + ulong(low == 0ul) : high;
  low = isFar ? 0ul - low : low;
  sign = isFar != isNegative ? 0x8000000000000000ul : 0ul;
  zeros = high != 0ul ? int(clz(high)) : 64 + min(int(clz(low)), 63);
  ulong shift = ulong(zeros & 63);
  ulong digits = zeros < 64 ? high << shift | low >> 1 >> (63ul - shift) : low << shift;
  return mulhi(digits, 0xc90fdaa22168c235ul);
}
)"},
    {"float64_square", R"(
// Of an angle, its square by 2^64.
inline ulong float64_square(ulong angle, int zeros) {
  ulong fraction = zeros == 0 ? angle << 1 : zeros < 64 ? angle >> ulong(zeros - 1) : 0ul;
  return mulhi(fraction, fraction);
}
)"},
    {"float64_sine_digits", R"(
// The sine of an angle by 2^(63 + zeros).
inline ulong float64_sine_digits(ulong angle, ulong t) {
  ulong p = 0x97ul;
  p = 0xca95ul - mulhi(p, t);
  p = 0xd73f9ful - mulhi(p, t);
  p = 0xb092309dul - mulhi(p, t);
  p = 0x6b99159fd5ul - mulhi(p, t);
  p = 0x2e3bc74aad8eul - mulhi(p, t);
  p = 0xd00d00d00d00dul - mulhi(p, t);
  p = 0x222222222222222ul - mulhi(p, t);
  p = 0x2aaaaaaaaaaaaaabul - mulhi(p, t);
  return angle - mulhi(angle, mulhi(p, t));
}
)"},
    {"float64_cosine_digits", R"(
// The cosine by 2^63.
inline ulong float64_cosine_digits(ulong t) {
  ulong p = 0xb2cul;
  p = 0xd73e2ul - mulhi(p, t);
  p = 0xc9cba45ul - mulhi(p, t);
  p = 0x8f76c77f7ul - mulhi(p, t);
  p = 0x49f93edde27ul - mulhi(p, t);
  p = 0x1a01a01a01a01ul - mulhi(p, t);
  p = 0x5b05b05b05b05bul - mulhi(p, t);
  p = 0xaaaaaaaaaaaaaabul - mulhi(p, t);
  p = 0x8000000000000000ul - mulhi(p, t);
  return 0x8000000000000000ul - (mulhi(p, t) >> 1);
}
)"},
    {"float64_wide_sine", R"(
// The sine of an angle by 2^(63 + zeros) and so many quadrants more.
inline ulong2 float64_wide_sine(ulong angle, int zeros, ulong sign, uint quadrant) {
  ulong t = float64_square(angle, zeros), y = 0ul;
  bool isOdd = (quadrant & 1u) != 0u;
  if (isOdd)
    y = float64_cosine_digits(t);
  else
    y = float64_sine_digits(angle, t);
  sign = (isOdd ? 0ul : sign) ^ ((quadrant & 2u) != 0u ? 0x8000000000000000ul : 0ul);
  return float64_wide(sign, isOdd ? 0 : -zeros, y);
}
)"},
    {"float64_sine", R"(
// The sine of x and so many quadrants more.
inline ulong float64_sine(ulong x, uint quadrant) {
  int e = int(x >> 52 & 0x7fful), zeros = 0;
  if (e == 2047)
    return 0x7ff8000000000000ul;
  if (e < 995)
    return quadrant == 0u ? x : 0x3ff0000000000000ul;
  ulong sign = 0ul, angle = float64_angle(x, quadrant, sign, zeros);
  return float64_shorten(float64_wide_sine(angle, zeros, sign, quadrant));
}
)"},
    {"float64_sin", R"(
inline ulong float64_sin(ulong x) {
  return float64_sine(x, 0u);
}
)"},
    {"float64_cos", R"(
inline ulong float64_cos(ulong x) {
  return float64_sine(x, 1u);
}
)"},
    {"float64_tan", R"(
// The quotient of the sine and the cosine, or of the cosine and the sine.
inline ulong float64_tan(ulong x) {
  int e = int(x >> 52 & 0x7fful), zeros = 0;
  if (e == 2047)
    return 0x7ff8000000000000ul;
  if (e < 995)
    return x;
  uint quadrant = 0u;
  ulong sign = 0ul, angle = float64_angle(x, quadrant, sign, zeros), t = float64_square(angle, zeros);
  ulong s = float64_sine_digits(angle, t), c = float64_cosine_digits(t);
  bool isOdd = (quadrant & 1u) != 0u;
  int sShift = int(clz(s)), cShift = int(clz(c));
  s <<= ulong(sShift & 63);
  c <<= ulong(cShift & 63);
  ulong y = mulhi(isOdd ? c : s, float64_reciprocal(isOdd ? s : c)), shift = clz(y);
  int exponent = cShift - sShift - zeros;
  sign ^= isOdd ? 0x8000000000000000ul : 0ul;
  return float64_round(sign, 1024 + (isOdd ? -exponent : exponent) - int(shift), y << (shift & 63ul));
}
)"},
    {"float64_rsqrt", R"(
inline ulong float64_rsqrt(ulong x) {
  return float64_div(0x3ff0000000000000ul, float64_sqrt(x));
}
)"},
    {"float64_erfc_table", R"(
// 1 - erf between 1 and 6, by 2^62: a polynomial for each half.
constant long float64_erfc_table[160] = {
    884315304l, -5876799048l, -13496931803l, 230547055100l, -198656803360l,
    -5517884901723l, 16977522973877l, 86056465433272l, -546006600084427l, -332351568566328l,
    9970549166846091l, -19941098353186861l, -79764393416677782l, 478586360499736549l, -957172720999469810l,
    725414553863514738l, -449334715l, 4683534938l, -11018504162l, -86696256058l,
    572534520187l, 418585430979l, -15400687900830l, 42562196012133l, 170886511537782l,
    -1392597459105532l, 2142457625417468l, 12854745749482425l, -79985084663766801l, 205675931992551281l,
    -274234575990068506l, 156312422096453788l, 116433513l, -1824686223l, 10468239695l,
    -7613992491l, -232027989620l, 1182417495237l, 452017251109l, -28661672762808l,
    121737336977337l, -33093640547611l, -1886336769645691l, 9928088270717778l, -27798647158472591l,
    47654823700254682l, -47654823700254958l, 21572245010004378l, 829948l, 243766852l,
    -3241596234l, 16686486948l, -12392813346l, -354293118564l, 2254052422677l,
    -4695691515806l, -19542417794106l, 201652474993972l, -881602789365867l, 2485230412288387l,
    -4813498903618076l, 6278476830799197l, -5022781464639229l, 1876734929021736l, -9450440l,
    71824973l, 53971839l, -3592226022l, 24488929784l, -70465118492l,
    -125188521338l, 2427898443230l, -14071818428692l, 53181469648036l, -146499902082428l,
    301027196548311l, -454885541484709l, 481643514514581l, -321095676343079l, 101874436148489l,
    1969306l, -26874624l, 168715923l, -495712674l, -1006827341l,
    20906003587l, -138090103553l, 617159635736l, -2096615162800l, 5602063422660l,
    -11834203470350l, 19518330089656l, -24381701373167l, 21787903354691l, -12450230488394l,
    3426936374043l, 65538l, 319603l, -13602456l, 140380754l,
    -907389877l, 4373273606l, -16783834440l, 52718762200l, -136764291296l,
    292394729840l, -509352365629l, 707603278699l, -756403504258l, 585602712950l,
    -292801356475l, 71099552701l, -36908l, 506713l, -3699829l,
    19319433l, -80578002l, 280955834l, -832785939l, 2105264314l,
    -4519839217l, 8159024145l, -12183886943l, 14683313752l, -13747932329l,
    9397320835l, -4176587038l, 906731462l, -2689l, 31838l,
    -194260l, 831272l, -2832632l, 8148142l, -20228352l,
    43481334l, -80417349l, 126407677l, -165842488l, 176908767l,
    -147549445l, 90336395l, -36134558l, 7090282l, -68l,
    752l, -4182l, 15952l, -47663l, 119401l,
    -258507l, 487337l, -795854l, 1111766l, -1303711l,
    1249298l, -940183l, 521446l, -189617l, 33932l};
)"},
    {"float64_erf_quotient", R"(
// erf(x) / x by 2^63 / 2, of x * x by 2^64.
inline ulong float64_erf_quotient(ulong z) {
  ulong p = 0x27548ul;
  p = 0x39f22cul - mulhi(p, z);
  p = 0x3a665cful - mulhi(p, z);
  p = 0x33beffa1ul - mulhi(p, z);
  p = 0x2a39fc018ul - mulhi(p, z);
  p = 0x1fcc4c8ec3ul - mulhi(p, z);
  p = 0x15f74291398ul - mulhi(p, z);
  p = 0xdcf364ca25ful - mulhi(p, z);
  p = 0x7d34970edca7ul - mulhi(p, z);
  p = 0x3f3464df34eedul - mulhi(p, z);
  p = 0x1c02db400406a3ul - mulhi(p, z);
  p = 0xab2de687352982ul - mulhi(p, z);
  p = 0x37059c625116a15ul - mulhi(p, z);
  p = 0xe71790d0215f0dbul - mulhi(p, z);
  p = 0x3024e8d606f3cd84ul - mulhi(p, z);
  p = 0x906eba8214db688dul - mulhi(p, z);
  return p;
}
)"},
    {"float64_erf", R"(
// From the quotient of x below 1, and from 1 above.
inline ulong float64_erf(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023;
  ulong sign = x & 0x8000000000000000ul, m = float64_digits(x);
  if (e < 0) {
    ulong fraction = e < -32 ? 0ul : m >> ulong(-1 - e);
    ulong y = mulhi(m, float64_erf_quotient(mulhi(fraction, fraction))), shift = clz(y);
    return float64_round(sign, float64_exponent(x) + 1 - int(shift), y << (shift & 63ul));
  }
  if ((x ^ sign) >= 0x4018000000000000ul)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : sign | 0x3ff0000000000000ul;
  // x with the point 60 bits from the right, in halves from 1 on.
  ulong halves = (m >> ulong(min(max(3 - e, 0), 3))) - 0x1000000000000000ul;
  uint at = uint(halves >> 59) * 16u;
  long t = long(halves << 5 >> 1), y = float64_erfc_table[at];
  for (uint i = 1u; i < 16u; ++i)
    y = float64_erfc_table[at + i] + mulhi(y, t) * 2l;
  ulong rest = 0x4000000000000000ul - ulong(y), shift = clz(rest);
  return float64_round(sign, 1024 - int(shift), rest << (shift & 63ul));
}
)"},
    {"float64_expm1", R"(
// exp(x) - 1: from the quotient by x where x is small.
inline ulong float64_expm1(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023, k = 0;
  bool isNegative = x >> 63 != 0ul;
  ulong sign = x & 0x8000000000000000ul;
  if (e >= 10)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : isNegative ? 0xbff0000000000000ul : 0x7ff0000000000000ul;
  if (e < -1) {
    ulong m = float64_digits(x), a = e < -60 ? 0ul : m >> ulong(-1 - e);
    ulong minus = 0ul - (x >> 63);
    ulong p = 0x6bfeeeul;
    p = 0x654ae80ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x5848f49eul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x47bb3dd21ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x35cc8ad6bcul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x24fc9f76301ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x171de3a55615ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0xd00d00d00125ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x6806806806810ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x2d82d82d82d8cdul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x111111111111111ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x555555555555552ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x1555555555555555ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x4000000000000000ul + ((mulhi(p, a) ^ minus) - minus);
    p = 0x8000000000000000ul + ((mulhi(p, a) ^ minus) - minus);
    ulong y = mulhi(m, p), shift = clz(y);
    return float64_round(sign, float64_exponent(x) + 1 - int(shift), y << (shift & 63ul));
  }
  ulong digits = float64_exp_digits(float64_digits(x), e, isNegative, k);
  // 1 - exp(x), or exp(x) - 1, by 2^63 or by 2^(63 - k).
  ulong one = k < 64 ? 0x8000000000000000ul >> ulong(max(k, 0)) : 0ul;
  ulong y = isNegative ? 0x8000000000000000ul - (digits >> ulong(min(max(-k, 0), 63))) : digits - one, shift = clz(y);
  return float64_round(sign, 1023 + max(k, 0) - int(shift), y << (shift & 63ul));
}
)"},
    {"float64_hyperbolic", R"(
// (exp(x) - exp(-x)) / 2, where differ, or (exp(x) + exp(-x)) / 2. The exponent of x is not above 9.
inline ulong float64_hyperbolic(ulong x, bool differ) {
  int k = 0;
  ulong digits = float64_exp_digits(float64_digits(x), int(x >> 52 & 0x7fful) - 1023, false, k);
  ulong inverse = float64_reciprocal(digits);
  // Both by 2^(62 - k); the inverse is by 2^(63 + k).
  inverse = k < 31 ? inverse >> 1 >> ulong(2 * k) : 0ul;
  ulong y = differ ? (digits >> 1) - inverse : (digits >> 1) + inverse, shift = clz(y);
  return float64_round(differ ? x & 0x8000000000000000ul : 0ul, 1023 + k - int(shift), y << (shift & 63ul));
}
)"},
    {"float64_sinh", R"(
inline ulong float64_sinh(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023;
  if (e >= 10)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : x & 0x8000000000000000ul | 0x7ff0000000000000ul;
  if (e >= 0)
    return float64_hyperbolic(x, true);
  ulong m = float64_digits(x), fraction = e < -32 ? 0ul : m >> ulong(-1 - e), z = mulhi(fraction, fraction);
  ulong p = 0x4dul;
  p = 0x6549ul + mulhi(p, z);
  p = 0x6b9fd2ul + mulhi(p, z);
  p = 0x5849184dul + mulhi(p, z);
  p = 0x35cc8acfebul + mulhi(p, z);
  p = 0x171de3a556c7ul + mulhi(p, z);
  p = 0x6806806806807ul + mulhi(p, z);
  p = 0x111111111111111ul + mulhi(p, z);
  p = 0x1555555555555555ul + mulhi(p, z);
  p = 0x8000000000000000ul + mulhi(p, z);
  ulong y = mulhi(m, p), shift = clz(y);
  return float64_round(x & 0x8000000000000000ul, float64_exponent(x) + 1 - int(shift), y << (shift & 63ul));
}
)"},
    {"float64_cosh", R"(
inline ulong float64_cosh(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023;
  if (e >= 10)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : 0x7ff0000000000000ul;
  return e < -28 ? 0x3ff0000000000000ul : float64_hyperbolic(x, false);
}
)"},
    {"float64_tanh", R"(
// 1 - 2 / (exp(2 x) + 1), or from the quotient by x where x is small.
inline ulong float64_tanh(ulong x) {
  int e = int(x >> 52 & 0x7fful) - 1023, k = 0;
  ulong sign = x & 0x8000000000000000ul;
  if (e >= 5)
    return float64_is_nan(x) ? 0x7ff8000000000000ul : sign | 0x3ff0000000000000ul;
  if (e < -1) {
    ulong m = float64_digits(x), fraction = e < -32 ? 0ul : m >> ulong(-1 - e), z = mulhi(fraction, fraction);
    ulong p = 0xa8b15e71751ul;
    p = 0x2dc883189c2ful - mulhi(p, z);
    p = 0x81a53dfc9670ul - mulhi(p, z);
    p = 0x14840c7ee099eul - mulhi(p, z);
    p = 0x32cb5037ea541ul - mulhi(p, z);
    p = 0x7d5ea58917969ul - mulhi(p, z);
    p = 0x135580ee9d0f1aul - mulhi(p, z);
    p = 0x2fb46c6d3407c5ul - mulhi(p, z);
    p = 0x75b4f43698838ful - mulhi(p, z);
    p = 0x1226e355e59df32ul - mulhi(p, z);
    p = 0x2cc9e910581a1edul - mulhi(p, z);
    p = 0x6e86e86e86e84e2ul - mulhi(p, z);
    p = 0x111111111111110dul - mulhi(p, z);
    p = 0x2aaaaaaaaaaaaaabul - mulhi(p, z);
    p = 0x8000000000000000ul - mulhi(p, z);
    ulong y = mulhi(m, p), shift = clz(y);
    return float64_round(sign, float64_exponent(x) + 1 - int(shift), y << (shift & 63ul));
  }
  ulong digits = float64_exp_digits(float64_digits(x), e + 1, false, k);
  // exp(2 x) + 1 by 2^(62 - k), and 2 / (exp(2 x) + 1) by 2^64.
  ulong sum = (digits >> 1) + (k < 63 ? 0x4000000000000000ul >> ulong(k) : 0ul), shift = clz(sum);
  ulong rest = float64_reciprocal(sum << (shift & 63ul));
  k += 1 - int(shift);
  rest = k < 2 ? rest << 1 : rest >> ulong(min(k - 2, 63));
  ulong y = 0ul - max(rest, 1ul);
  shift = clz(y);
  return float64_round(sign, 1022 - int(shift), y << (shift & 63ul));
}
)"},
};

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getFloat64Math() { return functions; }
