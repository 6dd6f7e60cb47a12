// The error function's relatives, the gamma functions and the Bessel functions of floats. The
// polynomials are least-squares fits of the relative error at Chebyshev nodes, in the distance from
// the middle of their interval. Near a zero of a Bessel function, the distance from the zero, which
// has two parts, is a factor. docs/libdevice.md has the errors.

#include "target/msl/LibraryPrelude.h"

using namespace triton_metal::msl;

// clang-format off
static constexpr PreludeFunction functions[] = {
    {"library_erfcx_positive", R"(
// exp(x * x) * erfc(x) for x >= 0.
inline float library_erfcx_positive(float x) {
  float t = precise::divide(x - 2.0f, x + 2.0f);
  float p = 6.319267e-05f;
  p = fma(p, t, 0.0001604207f);
  p = fma(p, t, -0.00035735662f);
  p = fma(p, t, -0.0013947535f);
  p = fma(p, t, 0.0012167486f);
  p = fma(p, t, 0.00868833f);
  p = fma(p, t, -0.0080186175f);
  p = fma(p, t, -0.054211665f);
  p = fma(p, t, 0.16404937f);
  p = fma(p, t, -0.16603114f);
  p = fma(p, t, -0.09276376f);
  p = fma(p, t, 1.2769784f);
  float q = precise::divide(p, fma(2.0f, x, 1.0f));
  // One step of division in two parts.
  return x > 1e9f ? precise::divide(0.56418958f, x) : q;
}
)"},
    {"library_erfc_of", R"(
// erfc of x + rest for x >= 0.5.
inline float library_erfc_of(float x, float rest) {
  float square = x * x, low = fma(x, x, -square) + 2.0f * x * rest;
  float e = precise::exp(-square);
  return x > 10.1f ? 0.0f : fma(-e, low, e) * library_erfcx_positive(x + rest);
}
)"},
    {"library_erf_small", R"(
// erf for |x| <= 1.
inline float library_erf_small(float x) {
  float s = x * x;
  float p = 7.847259e-05f;
  p = fma(p, s, -0.00080081896f);
  p = fma(p, s, 0.005188099f);
  p = fma(p, s, -0.026853692f);
  p = fma(p, s, 0.112835824f);
  p = fma(p, s, -0.37612626f);
  p = fma(p, s, 1.1283791f);
  return p * x;
}
)"},
    {"library_erfc", R"(
inline float library_erfc(float x) {
  float a = fabs(x);
  float tail = library_erfc_of(a, 0.0f);
  float y = a < 0.5f ? 1.0f - library_erf_small(x) : x < 0.0f ? 2.0f - tail : tail;
  return isnan(x) ? x : y;
}
)"},
    {"library_erfcx", R"(
inline float library_erfcx(float x) {
  float y = library_erfcx_positive(fabs(x));
  if (x < 0.0f) {
    float square = x * x, low = fma(x, x, -square);
    float e = precise::exp(square);
    y = isinf(2.0f * e) ? INFINITY : fma(2.0f * e, low, 2.0f * e) - y;
  }
  return isnan(x) ? x : isinf(x) && x > 0.0f ? 0.0f : y;
}
)"},
    {"library_normcdf", R"(
inline float library_normcdf(float x) {
  // -x / sqrt(2) in two parts.
  float z = x * -0.70710677f, rest = fma(x, -0.70710677f, -z) + x * -1.21016175e-8f;
  float a = fabs(z);
  float tail = library_erfc_of(a, z < 0.0f ? -rest : rest);
  float y = a < 0.5f ? 0.5f - 0.5f * library_erf_small(z) : z < 0.0f ? 1.0f - 0.5f * tail : 0.5f * tail;
  return isnan(x) ? x : isinf(x) ? (x > 0.0f ? 1.0f : 0.0f) : y;
}
)"},
    {"library_erfinv", R"(
inline float library_erfinv(float x) {
  float w = -precise::log(fma(-x, x, 1.0f));
  float s = precise::sqrt(w) - 3.0f, t = w - 2.5f;
  float p = -8.941414e-09f;
  p = fma(p, t, 2.32648e-08f);
  p = fma(p, t, 4.6826696e-07f);
  p = fma(p, t, -3.463093e-06f);
  p = fma(p, t, -4.9730697e-06f);
  p = fma(p, t, 0.00021834589f);
  p = fma(p, t, -0.0012527253f);
  p = fma(p, t, -0.0041773883f);
  p = fma(p, t, 0.24664028f);
  p = fma(p, t, 1.5014094f);
  float q = 0.00012300762f;
  q = fma(q, s, -0.0003164738f);
  q = fma(q, s, -6.6612425e-05f);
  q = fma(q, s, 0.0014934216f);
  q = fma(q, s, -0.0035927445f);
  q = fma(q, s, 0.0056838826f);
  q = fma(q, s, -0.0076381667f);
  q = fma(q, s, 0.009445641f);
  q = fma(q, s, 1.001675f);
  q = fma(q, s, 2.8329768f);
  float y = (w < 5.0f ? p : q) * x;
  return fabs(x) < 1.0f ? y : fabs(x) == 1.0f ? copysign(INFINITY, x) : NAN;
}
)"},
    {"library_erfcinv_small", R"(
// The number whose erfc is x, for 0 < x <= 0.5.
inline float library_erfcinv_small(float x) {
  float r = precise::sqrt(-precise::log(x * (2.0f - x)));
  if (r < 1.6f) {
    float t = r - 1.05f;
    float p = 0.00016512822f;
    p = fma(p, t, 0.00018931285f);
    p = fma(p, t, -0.0007757243f);
    p = fma(p, t, -0.003127685f);
    p = fma(p, t, 0.0051779402f);
    p = fma(p, t, 0.028116964f);
    p = fma(p, t, 0.9184988f);
    p = fma(p, t, 0.9421857f);
    return p;
  }
  if (r < 3.2f) {
    float t = r - 2.4f;
    float p = 6.098107e-05f;
    p = fma(p, t, 9.310817e-06f);
    p = fma(p, t, -0.00040215417f);
    p = fma(p, t, 0.0005754484f);
    p = fma(p, t, 0.0009931555f);
    p = fma(p, t, -0.006476049f);
    p = fma(p, t, 0.015797358f);
    p = fma(p, t, 0.98963964f);
    p = fma(p, t, 2.234574f);
    return p;
  }
  if (r < 6.0f) {
    float t = r - 4.6f;
    float p = -2.2047527e-06f;
    p = fma(p, t, 9.835553e-06f);
    p = fma(p, t, -3.3862478e-05f);
    p = fma(p, t, 0.00012677677f);
    p = fma(p, t, -0.00037527492f);
    p = fma(p, t, 0.00020752128f);
    p = fma(p, t, 1.0102861f);
    p = fma(p, t, 4.44578f);
    return p;
  }
  {
    float t = r - 8.2f;
    float p = 1.0381721e-07f;
    p = fma(p, t, -5.239084e-07f);
    p = fma(p, t, 7.028992e-07f);
    p = fma(p, t, 2.0218278e-05f);
    p = fma(p, t, -0.00045803198f);
    p = fma(p, t, 1.007421f);
    p = fma(p, t, 8.078616f);
    return p;
  }
}
)"},
    {"library_erfcinv", R"(
inline float library_erfcinv(float x) {
  if (!(x >= 0.0f && x <= 2.0f))
    return NAN;
  if (x == 0.0f || x == 2.0f)
    return x == 0.0f ? INFINITY : -INFINITY;
  return x < 0.5f ? library_erfcinv_small(x) : x > 1.5f ? -library_erfcinv_small(2.0f - x) : library_erfinv(1.0f - x);
}
)"},
    {"library_normcdfinv", R"(
inline float library_normcdfinv(float x) {
  if (!(x >= 0.0f && x <= 1.0f))
    return NAN;
  if (x == 0.0f || x == 1.0f)
    return x == 0.0f ? -INFINITY : INFINITY;
  float y = x < 0.25f ? -library_erfcinv_small(2.0f * x) : x > 0.75f ? library_erfcinv_small(2.0f - 2.0f * x) : library_erfinv(fma(2.0f, x, -1.0f));
  return fma(y, 1.4142135f, y * 2.4203234e-8f);
}
)"},
    {"library_lgamma_near_1", R"(
// log(gamma(1 + t)) for -0.5 <= t <= 0.5.
inline float library_lgamma_near_1(float t) {
  float p = 0.08132771f;
  p = fma(p, t, -0.086599715f);
  p = fma(p, t, 0.027168505f);
  p = fma(p, t, -0.030671198f);
  p = fma(p, t, 0.055214453f);
  p = fma(p, t, -0.06149155f);
  p = fma(p, t, 0.066524595f);
  p = fma(p, t, -0.07711245f);
  p = fma(p, t, 0.09224598f);
  p = fma(p, t, -0.11515312f);
  p = fma(p, t, 0.15543419f);
  p = fma(p, t, -0.24525131f);
  p = fma(p, t, 0.5772157f);
  return p * t * (t - 1.0f) + 0.0f;
}
)"},
    {"library_lgamma_positive", R"(
inline float library_lgamma_positive(float x) {
  if (x < 0.5f)
    return library_lgamma_near_1(x) - precise::log(x);
  if (x < 1.5f)
    return library_lgamma_near_1(x - 1.0f);
  if (x < 8.0f) {
    float product = 1.0f, y = x;
    while (y >= 3.0f) {
      y -= 1.0f;
      product *= y;
    }
    float t = y - 2.25f;
    float p = -3.5981626e-05f;
    p = fma(p, t, 8.859513e-05f);
    p = fma(p, t, -0.00016967813f);
    p = fma(p, t, 0.0004307851f);
    p = fma(p, t, -0.0011418059f);
    p = fma(p, t, 0.0030431468f);
    p = fma(p, t, -0.0084639685f);
    p = fma(p, t, 0.02526821f);
    p = fma(p, t, -0.085880846f);
    p = fma(p, t, 0.39958948f);
    return fma(p, (y - 1.0f) * (y - 2.0f), precise::log(product));
  }
  // Stirling's series.
  float r = precise::divide(1.0f, x), s = r * r;
  float p = fma(fma(-5.952381e-4f, s, 7.936508e-4f), s, -2.7777778e-3f);
  p = fma(p, s, 0.083333336f) * r;
  float l = precise::log(x);
  return fma(x - 0.5f, l, -x) + (0.9189385f + p);
}
)"},
    {"library_lgamma", R"(
inline float library_lgamma(float x) {
  if (isnan(x) || isinf(x))
    return fabs(x);
  float a = fabs(x);
  if (x > 0.0f)
    return x > 4.0850034e36f ? INFINITY : library_lgamma_positive(x);
  if (x == floor(x))
    return INFINITY;
  if (a < 1e-20f)
    return -precise::log(a);
  // By reflection.
  float s = fabs(library_sinpi(x));
  return precise::log(precise::divide(3.1415927f, s * a)) - library_lgamma_positive(a);
}
)"},
    {"library_gamma_scaled", R"(
// gamma(x) / 2^64 for 0.5 <= x < 43.
inline float library_gamma_scaled(float x) {
  // A product in two parts, from gamma of a number between 1.5 and 2.5 on.
  float high = 5.421011e-20f, low = 0.0f, y = x;
  while (y >= 2.5f) {
    y -= 1.0f;
    float p = high * y;
    low = fma(low, y, fma(high, y, -p));
    high = p;
  }
  float t = x < 1.5f ? x - 1.0f : y - 2.0f;
  float p = 0.0025005874f;
  p = fma(p, t, -0.0034219297f);
  p = fma(p, t, 0.011049086f);
  p = fma(p, t, -0.00015764465f);
  p = fma(p, t, 0.07426033f);
  p = fma(p, t, 0.0815693f);
  p = fma(p, t, 0.4118399f);
  p = fma(p, t, 0.42278448f);
  p = fma(p, t, 1.0f);
  float q = high * p, rest = fma(high, p, -q) + low * p;
  return x < 1.5f ? precise::divide(q, x) : q + rest;
}
)"},
    {"library_tgamma", R"(
inline float library_tgamma(float x) {
  if (isnan(x) || x == 0.0f)
    return isnan(x) ? x : copysign(INFINITY, x);
  if (x > 35.05f)
    return INFINITY;
  if (x < 0.0f && (x == floor(x) || isinf(x)))
    return NAN;
  float a = fabs(x);
  if (a < 1e-7f)
    return precise::divide(1.0f, x) - 0.57721567f;
  if (x >= 0.5f)
    return library_gamma_scaled(x) * 1.8446744e19f;
  if (x > 0.0f)
    return precise::divide(library_gamma_scaled(x + 1.0f) * 1.8446744e19f, x);
  if (x < -42.5f)
    return copysign(0.0f, library_sinpi(0.5f * floor(x) + 0.25f));
  // By reflection.
  float g = a < 0.5f ? precise::divide(library_gamma_scaled(a + 1.0f), a) : library_gamma_scaled(a);
  return precise::divide(3.1415927f, library_sinpi(x) * a * (g * 4.2949673e9f)) * 2.3283064e-10f;
}
)"},
    {"library_cyl_bessel_i0", R"(
inline float library_cyl_bessel_i0(float x) {
  float a = fabs(x), s = a * a, u = precise::divide(1.0f, a);
  if (a < 3.0f) {
    float p = 5.477628e-10f;
    p = fma(p, s, 6.690859e-08f);
    p = fma(p, s, 6.786868e-06f);
    p = fma(p, s, 0.00043401297f);
    p = fma(p, s, 0.015625019f);
    p = fma(p, s, 0.24999999f);
    p = fma(p, s, 1.0f);
    return p;
  }
  if (isinf(a))
    return a;
  float t = u - 0.16666667f;
  float p = 18020.018f;
  p = fma(p, t, 7601.306f);
  p = fma(p, t, -2621.6868f);
  p = fma(p, t, -865.41943f);
  p = fma(p, t, 179.75592f);
  p = fma(p, t, 49.204487f);
  p = fma(p, t, -7.776682f);
  p = fma(p, t, -2.520993f);
  p = fma(p, t, 0.07994239f);
  p = fma(p, t, 0.13745618f);
  p = fma(p, t, 0.062028103f);
  p = fma(p, t, 0.06330196f);
  p = fma(p, t, 0.4082257f);
  // The exponential in two factors, which do not overflow before the product does.
  float e = precise::exp(0.5f * fmin(a, 170.0f));
  float y = precise::divide(p, precise::sqrt(a)) * e * e;
  return y;
}
)"},
    {"library_cyl_bessel_i1", R"(
inline float library_cyl_bessel_i1(float x) {
  float a = fabs(x), s = a * a, u = precise::divide(1.0f, a);
  if (a < 3.0f) {
    float p = 3.8515875e-11f;
    p = fma(p, s, 5.592277e-09f);
    p = fma(p, s, 6.7851704e-07f);
    p = fma(p, s, 5.4252432e-05f);
    p = fma(p, s, 0.0026041681f);
    p = fma(p, s, 0.0625f);
    p = fma(p, s, 0.5f);
    return p * x;
  }
  if (isinf(a))
    return x;
  float t = u - 0.16666667f;
  float p = 242941.34f;
  p = fma(p, t, -21766.486f);
  p = fma(p, t, -29692.002f);
  p = fma(p, t, 3134.8296f);
  p = fma(p, t, 1640.9009f);
  p = fma(p, t, -214.16454f);
  p = fma(p, t, -62.82679f);
  p = fma(p, t, 9.527865f);
  p = fma(p, t, 2.8014495f);
  p = fma(p, t, -0.14640097f);
  p = fma(p, t, -0.17512494f);
  p = fma(p, t, -0.090936154f);
  p = fma(p, t, -0.17063317f);
  p = fma(p, t, 0.3724485f);
  // The exponential in two factors, which do not overflow before the product does.
  float e = precise::exp(0.5f * fmin(a, 170.0f));
  float y = precise::divide(p, precise::sqrt(a)) * e * e;
  return copysign(y, x);
}
)"},
    {"library_bessel_far_0", R"(
// sqrt(2 / (pi * x)) times the two functions whose products with cos and sin are J0 and Y0, for x >= 8.
inline float2 library_bessel_far_0(float x) {
  float r = precise::divide(8.0f, x), u = r * r;
  float p = -1.6545622e-06f;
  p = fma(p, u, 2.7083322e-05f);
  p = fma(p, u, -0.0010985762f);
  p = fma(p, u, 1.0f);
  float q = 4.6001305e-06f;
  q = fma(q, u, -5.4352982e-05f);
  q = fma(q, u, 0.0011442036f);
  q = fma(q, u, -0.12499999f);
  q = precise::divide(q, x);
  float s = precise::sin(x), c = precise::cos(x);
  float scale = precise::divide(0.56418958f, precise::sqrt(x));
  // cos and sin of x - pi / 4, times sqrt(2).
  float cs = c + s, sn = s - c;
  return scale * float2(p * cs - q * sn, p * sn + q * cs);
}
)"},
    {"library_bessel_far_1", R"(
// sqrt(2 / (pi * x)) times the two functions whose products with cos and sin are J1 and Y1, for x >= 8.
inline float2 library_bessel_far_1(float x) {
  float r = precise::divide(8.0f, x), u = r * r;
  float p = 1.9768968e-06f;
  p = fma(p, u, -3.486362e-05f);
  p = fma(p, u, 0.00183099f);
  p = fma(p, u, 1.0f);
  float q = -5.36527e-06f;
  q = fma(q, u, 6.6535045e-05f);
  q = fma(q, u, -0.0016019408f);
  q = fma(q, u, 0.375f);
  q = precise::divide(q, x);
  float s = precise::sin(x), c = precise::cos(x);
  float scale = precise::divide(0.56418958f, precise::sqrt(x));
  // cos and sin of x - 3 * pi / 4, times sqrt(2).
  float cs = s - c, sn = -s - c;
  return scale * float2(p * cs - q * sn, p * sn + q * cs);
}
)"},
    {"library_j0", R"(
inline float library_j0(float x) {
  float a = fabs(x);
  if (a < 1.5f) {
    float s = a * a;
    float p = 6.397762e-06f;
    p = fma(p, s, -0.0004332467f);
    p = fma(p, s, 0.01562434f);
    p = fma(p, s, -0.2499998f);
    p = fma(p, s, 1.0f);
    return p;
  }
  if (a < 3.25f) {
    float t = a - 2.375f;
    float p = -4.1781022e-06f;
    p = fma(p, t, 4.379504e-05f);
    p = fma(p, t, 0.0002564846f);
    p = fma(p, t, -0.002232642f);
    p = fma(p, t, -0.008393581f);
    p = fma(p, t, 0.05736459f);
    p = fma(p, t, 0.10453948f);
    p = fma(p, t, -0.5223163f);
    return p * ((a - 2.4048254f) - 1.08705905e-07f);
  }
  if (a < 4.75f) {
    float t = a - 4.0f;
    float p = -3.205504e-05f;
    p = fma(p, t, 0.0003324527f);
    p = fma(p, t, 0.001395434f);
    p = fma(p, t, -0.012325132f);
    p = fma(p, t, -0.026179262f);
    p = fma(p, t, 0.19031924f);
    p = fma(p, t, 0.06604333f);
    p = fma(p, t, -0.3971498f);
    return p;
  }
  if (a < 6.5f) {
    float t = a - 5.625f;
    float p = 3.6219183e-06f;
    p = fma(p, t, -4.317862e-05f);
    p = fma(p, t, -0.00020369077f);
    p = fma(p, t, 0.0021575934f);
    p = fma(p, t, 0.00555812f);
    p = fma(p, t, -0.051383797f);
    p = fma(p, t, -0.041776706f);
    p = fma(p, t, 0.33645335f);
    return p * ((a - 5.520078f) - -7.1934146e-08f);
  }
  if (a < 8.0f) {
    float t = a - 7.25f;
    float p = 2.7724622e-05f;
    p = fma(p, t, -0.00030758535f);
    p = fma(p, t, -0.0010951466f);
    p = fma(p, t, 0.010726821f);
    p = fma(p, t, 0.017708004f);
    p = fma(p, t, -0.14126846f);
    p = fma(p, t, -0.06858171f);
    p = fma(p, t, 0.29199693f);
    return p;
  }
  return isinf(a) ? 0.0f : library_bessel_far_0(a).x;
}
)"},
    {"library_j1_positive", R"(
inline float library_j1_positive(float a) {
  if (a < 2.0f) {
    float s = a * a;
    float p = -5.2524314e-09f;
    p = fma(p, s, 6.763442e-07f);
    p = fma(p, s, -5.424958e-05f);
    p = fma(p, s, 0.0026041628f);
    p = fma(p, s, -0.0625f);
    p = fma(p, s, 0.5f);
    return p * a;
  }
  if (a < 3.0f) {
    float t = a - 2.5f;
    float p = -0.00027712225f;
    p = fma(p, t, -0.0017375343f);
    p = fma(p, t, 0.010174344f);
    p = fma(p, t, 0.038656358f);
    p = fma(p, t, -0.15933514f);
    p = fma(p, t, -0.24722135f);
    p = fma(p, t, 0.4970941f);
    return p;
  }
  if (a < 4.75f) {
    float t = a - 3.875f;
    float p = -3.2045007e-06f;
    p = fma(p, t, 4.440402e-05f);
    p = fma(p, t, 0.00018655282f);
    p = fma(p, t, -0.0021936144f);
    p = fma(p, t, -0.0055631036f);
    p = fma(p, t, 0.052712657f);
    p = fma(p, t, 0.057151005f);
    p = fma(p, t, -0.40038434f);
    return p * ((a - 3.831706f) - -7.685059e-08f);
  }
  if (a < 6.0f) {
    float t = a - 5.375f;
    float p = -1.9178824e-05f;
    p = fma(p, t, 0.0003441585f);
    p = fma(p, t, 0.00075718854f);
    p = fma(p, t, -0.011943202f);
    p = fma(p, t, -0.011773094f);
    p = fma(p, t, 0.16557261f);
    p = fma(p, t, 0.014486822f);
    p = fma(p, t, -0.34581026f);
    return p;
  }
  if (a < 8.0f) {
    float t = a - 7.0f;
    float p = 2.2897605e-06f;
    p = fma(p, t, -4.4111133e-05f);
    p = fma(p, t, -0.000121276076f);
    p = fma(p, t, 0.0021144855f);
    p = fma(p, t, 0.0029987178f);
    p = fma(p, t, -0.04711363f);
    p = fma(p, t, -0.019922737f);
    p = fma(p, t, 0.30043772f);
    return p * ((a - 7.015587f) - -1.8321172e-07f);
  }
  return isinf(a) ? 0.0f : library_bessel_far_1(a).x;
}
)"},
    {"library_j1", R"(
inline float library_j1(float x) {
  float y = library_j1_positive(fabs(x));
  return isnan(x) ? x : x < 0.0f ? -y : y;
}
)"},
    {"library_y0", R"(
inline float library_y0(float x) {
  float a = x;
  if (!(x > 0.0f))
    return x == 0.0f ? -INFINITY : NAN;
  if (a < 0.6f) {
    float s = a * a;
    float p = 0.0005318039f;
    p = fma(p, s, -0.01607244f);
    p = fma(p, s, 0.17760591f);
    p = fma(p, s, -0.0738043f);
    return fma(0.63661975f * precise::log(a), library_j0(a), p);
  }
  if (a < 1.2f) {
    float t = a - 0.9f;
    float p = -0.23223184f;
    p = fma(p, t, 0.23137403f);
    p = fma(p, t, -0.18025658f);
    p = fma(p, t, 0.18478431f);
    p = fma(p, t, -0.19756696f);
    p = fma(p, t, 0.21262236f);
    p = fma(p, t, -0.22057858f);
    p = fma(p, t, 0.21624783f);
    p = fma(p, t, -0.48927346f);
    p = fma(p, t, 0.8762692f);
    return p * ((a - 0.893577f) - -1.3357979e-08f);
  }
  if (a < 2.0f) {
    float t = a - 1.6f;
    float p = -0.0021369867f;
    p = fma(p, t, 0.0036506734f);
    p = fma(p, t, -0.0063514123f);
    p = fma(p, t, 0.011419665f);
    p = fma(p, t, -0.0061274422f);
    p = fma(p, t, 0.031124568f);
    p = fma(p, t, -0.31883144f);
    p = fma(p, t, 0.34757796f);
    p = fma(p, t, 0.4204269f);
    return p;
  }
  if (a < 3.2f) {
    float t = a - 2.6f;
    float p = 0.00015457299f;
    p = fma(p, t, -0.0006058097f);
    p = fma(p, t, -0.0011167935f);
    p = fma(p, t, 0.0078027816f);
    p = fma(p, t, 0.0529603f);
    p = fma(p, t, -0.20444198f);
    p = fma(p, t, -0.18836349f);
    p = fma(p, t, 0.4813306f);
    return p;
  }
  if (a < 4.75f) {
    float t = a - 3.975f;
    float p = -4.974842e-06f;
    p = fma(p, t, 4.9988168e-05f);
    p = fma(p, t, 0.00020055642f);
    p = fma(p, t, -0.002166253f);
    p = fma(p, t, -0.0070032687f);
    p = fma(p, t, 0.058163796f);
    p = fma(p, t, 0.052877136f);
    p = fma(p, t, -0.40164426f);
    return p * ((a - 3.9576783f) - 1.0129118e-07f);
  }
  if (a < 6.25f) {
    float t = a - 5.5f;
    float p = -2.3801726e-05f;
    p = fma(p, t, 0.000343529f);
    p = fma(p, t, 0.0009819549f);
    p = fma(p, t, -0.012415647f);
    p = fma(p, t, -0.013985197f);
    p = fma(p, t, 0.16758019f);
    p = fma(p, t, 0.02375824f);
    p = fma(p, t, -0.33948058f);
    return p;
  }
  if (a < 8.0f) {
    float t = a - 7.125f;
    float p = 2.8401864e-06f;
    p = fma(p, t, -4.4328448e-05f);
    p = fma(p, t, -0.00015124468f);
    p = fma(p, t, 0.0021471467f);
    p = fma(p, t, 0.0036551727f);
    p = fma(p, t, -0.047616545f);
    p = fma(p, t, -0.024900595f);
    p = fma(p, t, 0.2992002f);
    return p * ((a - 7.086051f) - 7.305812e-08f);
  }
  return isinf(a) ? 0.0f : library_bessel_far_0(a).y;
}
)"},
    {"library_y1", R"(
inline float library_y1(float x) {
  float a = x;
  if (!(x > 0.0f))
    return x == 0.0f ? -INFINITY : NAN;
  if (a < 0.8f) {
    float s = a * a;
    float p = 7.03823e-05f;
    p = fma(p, s, -0.0029548025f);
    p = fma(p, s, 0.054348625f);
    p = fma(p, s, -0.1960571f);
    if (a < 1e-30f)
      return precise::divide(-0.63661975f, a);
    float near = fma(precise::log(a), library_j1_positive(a), precise::divide(-1.0f, a));
    return fma(0.63661975f, near, p * a);
  }
  if (a < 1.2f) {
    float t = a - 1.0f;
    float p = 0.67423356f;
    p = fma(p, t, -0.67963684f);
    p = fma(p, t, 0.6233893f);
    p = fma(p, t, -0.6213308f);
    p = fma(p, t, 0.5502266f);
    p = fma(p, t, -0.43474576f);
    p = fma(p, t, 0.8694698f);
    p = fma(p, t, -0.7812128f);
    return p;
  }
  if (a < 1.7f) {
    float t = a - 1.45f;
    float p = 0.032892037f;
    p = fma(p, t, -0.048524015f);
    p = fma(p, t, 0.067973256f);
    p = fma(p, t, -0.0958822f);
    p = fma(p, t, 0.06939414f);
    p = fma(p, t, -0.11362869f);
    p = fma(p, t, 0.66820955f);
    p = fma(p, t, -0.4454431f);
    return p;
  }
  if (a < 2.7f) {
    float t = a - 2.2f;
    float p = -0.00056153315f;
    p = fma(p, t, 0.0011824438f);
    p = fma(p, t, -0.0025678661f);
    p = fma(p, t, 0.007365437f);
    p = fma(p, t, -0.00471361f);
    p = fma(p, t, -0.03289716f);
    p = fma(p, t, -0.118702516f);
    p = fma(p, t, 0.5204473f);
    return p * ((a - 2.1971414f) - -8.288927e-08f);
  }
  if (a < 3.5f) {
    float t = a - 3.1f;
    float p = -0.0005967023f;
    p = fma(p, t, 0.0012421646f);
    p = fma(p, t, 0.011208439f);
    p = fma(p, t, -0.013475321f);
    p = fma(p, t, -0.19377214f);
    p = fma(p, t, 0.23031925f);
    p = fma(p, t, 0.34962946f);
    return p;
  }
  if (a < 4.5f) {
    float t = a - 4.0f;
    float p = -0.00034186628f;
    p = fma(p, t, -0.0012429777f);
    p = fma(p, t, 0.010659412f);
    p = fma(p, t, 0.029234711f);
    p = fma(p, t, -0.17197484f);
    p = fma(p, t, -0.116422094f);
    p = fma(p, t, 0.3979257f);
    return p;
  }
  if (a < 6.25f) {
    float t = a - 5.375f;
    float p = -2.6000157e-06f;
    p = fma(p, t, 4.6657526e-05f);
    p = fma(p, t, 0.00013120318f);
    p = fma(p, t, -0.002203576f);
    p = fma(p, t, -0.003682132f);
    p = fma(p, t, 0.05159122f);
    p = fma(p, t, 0.025731012f);
    p = fma(p, t, -0.34187868f);
    return p * ((a - 5.429681f) - 2.1651435e-07f);
  }
  if (a < 8.0f) {
    float t = a - 7.125f;
    float p = -4.938087e-06f;
    p = fma(p, t, -2.263098e-05f);
    p = fma(p, t, 0.00031544155f);
    p = fma(p, t, 0.0009177411f);
    p = fma(p, t, -0.010708317f);
    p = fma(p, t, -0.014955187f);
    p = fma(p, t, 0.14242274f);
    p = fma(p, t, 0.05351042f);
    p = fma(p, t, -0.29823035f);
    return p;
  }
  return isinf(a) ? 0.0f : library_bessel_far_1(a).y;
}
)"},
    {"library_jn", R"(
inline float library_jn(int n, float x) {
  if (n < 0)
    return NAN;
  float a = fabs(x), y;
  if (n == 0)
    return library_j0(x);
  if (isnan(x) || isinf(x) || a == 0.0f)
    return isnan(x) ? x : 0.0f;
  if (a > float(n)) {
    // Upward: stable before the order passes x.
    float before = library_j0(a);
    y = library_j1_positive(a);
    for (int k = 1; k < n; ++k) {
      float next = fma(precise::divide(2.0f * float(k), a), y, -before);
      before = y;
      y = next;
    }
  } else {
    // Downward from an order whose value is nothing, and scaled by a sum that is 1.
    int start = 2 * ((n + int(precise::sqrt(48.0f * float(n))) + 16) / 2);
    float above = 0.0f, current = 1e-30f, sum = 0.0f;
    y = 0.0f;
    for (int k = start; k > 0; --k) {
      float below = fma(precise::divide(2.0f * float(k), a), current, -above);
      above = current;
      current = below;
      if (fabs(current) > 1e20f) {
        current *= 1e-20f;
        above *= 1e-20f;
        y *= 1e-20f;
        sum *= 1e-20f;
      }
      y = k - 1 == n ? current : y;
      sum += (k & 1) != 0 && k > 1 ? 2.0f * current : 0.0f;
    }
    y = precise::divide(y, sum + current);
  }
  return x < 0.0f && (n & 1) != 0 ? -y : y;
}
)"},
    {"library_yn", R"(
inline float library_yn(int n, float x) {
  if (n < 0)
    return NAN;
  if (n == 0)
    return library_y0(x);
  if (!(x > 0.0f) || isinf(x))
    return x == 0.0f ? -INFINITY : isinf(x) && x > 0.0f ? 0.0f : NAN;
  float before = library_y0(x), y = library_y1(x);
  for (int k = 1; k < n && !isinf(y); ++k) {
    float next = fma(precise::divide(2.0f * float(k), x), y, -before);
    before = y;
    y = next;
  }
  return y;
}
)"},
};
// clang-format on

llvm::ArrayRef<PreludeFunction> triton_metal::msl::getSpecialLibrary() { return functions; }
