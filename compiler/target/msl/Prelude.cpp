// The functions that Metal does not have: written in front of the kernels that call them. Those
// here are inlined: Apple's compiler has lost matrices that were passed to functions that were not
// (docs/apple-quirks.md, row 24).

#include "target/msl/Prelude.h"

#include "target/msl/Float64Prelude.h"
#include "target/msl/LibraryPrelude.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace triton_metal::msl;

/// What a thread holds of a matrix, as a vector.
static void printElements(llvm::raw_ostream &os, FragmentShape fragment) {
  int64_t count = fragment.getNumRegisters();
  os << "\n// The " << (count == 2 ? "two" : std::to_string(count)) << " elements of an "
     << fragment.str() << " matrix that this thread holds.\n"
     << "template <typename T>\n__attribute__((always_inline)) thread vec<T, " << count
     << "> &elements(thread simdgroup_matrix<T, " << fragment.columns << ", " << fragment.rows
     << "> &m) {\n"
     << "  return reinterpret_cast<thread vec<T, " << count << "> &>(m.thread_elements());\n}\n";
}

/// The elements of cooperative tensors are those of fragments, in the layout of
/// LinearLayout::simdgroupMatrix (docs/apple.md says what this relies on). `relaxed` lets the
/// multiplication of fp32 take fewer bits.
static void printTensorMultiply(llvm::raw_ostream &os, MatrixShape shape) {
  auto assign = [&](llvm::StringRef to, llvm::StringRef from, int64_t count, bool back) {
    os << "#pragma unroll\n  for (ushort i = 0; i < " << count << "; ++i)\n    ";
    if (back)
      os << from << "[i / 4][i % 4] = " << to << "[i];\n";
    else
      os << to << "[i] = " << from << "[i / 4][i % 4];\n";
  };
  os << "\n// c += a * b, of " << shape.str() << ", on what the threads of a SIMD-group hold.\n"
     << "template <bool transpose_a, bool transpose_b, bool relaxed, typename T>\n"
     << "__attribute__((always_inline)) void " << getTensorMultiplyName(shape)
     << "(thread float4 *c, thread const vec<T, 4> *a, thread const vec<T, 4> *b) {\n"
     << "  constexpr auto sizes = mpp::tensor_ops::matmul2d_descriptor(\n      " << shape.m << ", "
     << shape.n << ", " << shape.k << ", transpose_a, transpose_b, relaxed,\n"
     << "      mpp::tensor_ops::matmul2d_descriptor::mode::multiply_accumulate);\n"
     << "  mpp::tensor_ops::matmul2d<sizes, execution_simdgroup> product;\n"
     << "  auto left = product.template get_left_input_cooperative_tensor<T, T, float>();\n"
     << "  auto right = product.template get_right_input_cooperative_tensor<T, T, float>();\n"
     << "  auto sum = product.template get_destination_cooperative_tensor<decltype(left), "
        "decltype(right), float>();\n";
  int64_t sums = shape.getAccumulator().getNumRegisters();
  assign("left", "a", shape.getOperand(0).getNumRegisters(), false);
  assign("right", "b", shape.getOperand(1).getNumRegisters(), false);
  assign("sum", "c", sums, false);
  os << "  product.run(left, right, sum);\n";
  assign("sum", "c", sums, true);
  os << "}\n";
}

static const char maximumText[] = R"(
// The greater number, NaN if either is NaN, +0 over -0.
template <typename T> __attribute__((always_inline)) T maximum(T a, T b) {
  return select(b, a, (a > b) | (a != a) | ((a == b) & signbit(b)));
}
)";

static const char minimumText[] = R"(
// The smaller number, NaN if either is NaN, -0 below +0.
template <typename T> __attribute__((always_inline)) T minimum(T a, T b) {
  return select(b, a, (a < b) | (a != a) | ((a == b) & signbit(a)));
}
)";

static const char compareExchangeText[] = R"(
// Compare and exchange that does not fail where the values agree; gives what was there.
__attribute__((always_inline)) inline uint compare_exchange(SPACE atomic_uint *p, uint expected, uint desired) {
  uint old = expected;
  while (!atomic_compare_exchange_weak_explicit(p, &old, desired, memory_order_relaxed,
                                                memory_order_relaxed) &&
         old == expected) {
  }
  return old;
}
)";

// Polynomials through the Chebyshev nodes: of erf(x) / x in x * x below 1, of log(1 - erf(x)) in x
// - 2.5 below 4.
static const char erfText[] = R"(
// The error function, within 3 units in the last place.
template <typename T> __attribute__((always_inline)) T error_function(T x) {
  T a = fabs(x), s = a * a, t = a - 2.5f;
  T p = T(-9.667045e-6f);
  p = fma(p, s, T(1.1265959e-4f));
  p = fma(p, s, T(-8.4840803e-4f));
  p = fma(p, s, T(5.2210316e-3f));
  p = fma(p, s, T(-2.686543e-2f));
  p = fma(p, s, T(1.1283782e-1f));
  p = fma(p, s, T(-3.7612638e-1f));
  p = fma(p, s, T(1.1283792f));
  T q = T(1.6371514e-6f);
  q = fma(q, t, T(-1.3315014e-5f));
  q = fma(q, t, T(7.729138e-5f));
  q = fma(q, t, T(-4.2012252e-4f));
  q = fma(q, t, T(2.1653036e-3f));
  q = fma(q, t, T(-1.0858541e-2f));
  q = fma(q, t, T(-9.4389373e-1f));
  q = fma(q, t, T(-5.3526807f));
  q = fma(q, t, T(-7.806815f));
  T far = select(T(1.0f), 1.0f - precise::exp(q), a < 4.0f);
  return select(copysign(select(far, p * a, a < 1.0f), x), x, x != x);
}
)";

// The rounding of 1 + x is undone by the quotient, after Kahan.
static const char log1pText[] = R"(
// log(1 + x), exact where x is small too.
template <typename T> __attribute__((always_inline)) T log_plus_one(T x) {
  T u = 1.0f + x;
  T y = precise::log(u) * (x / (u - 1.0f));
  return select(select(y, u, u == INFINITY), x, u == 1.0f);
}
)";

static const char expm1Text[] = R"(
// exp(x) - 1, exact where x is small too.
template <typename T> __attribute__((always_inline)) T exp_minus_one(T x) {
  T u = precise::exp(x);
  T y = (u - 1.0f) * (x / precise::log(u));
  y = select(select(y, u, u == INFINITY), T(-1.0f), u - 1.0f == -1.0f);
  return select(y, x, u == 1.0f);
}
)";

static const char roundToOddText[] = R"(
// x in the 24 bits that a float holds: what is cut off leaves the last of them set, so that a second rounding sees it.
template <int bits, typename T> __attribute__((always_inline)) T round_to_odd(T x) {
  T cut = T(bits - 24) - min(T(bits - 24), T(clz(x ^ (x >> (bits - 1)))));
  T mask = (T(1) << cut) - T(1);
  return (x & ~mask) | select(T(0), T(mask + T(1)), (x & mask) != T(0));
}
)";

// The product of bfloats is exact, and so is the rest of the sum. A product beyond the largest
// float may still have a sum that is below it: both are made 2^128 times smaller then. What the
// addend loses by that is too small to matter beside such a product.
static const char fmaToOddText[] = R"(
// a * b + c of bfloats: what is cut off leaves the last bit set, so that a second rounding sees it.
inline float fma_to_odd(float a, float b, float c) {
  bool is_large = isinf(a * b) && !isinf(a) && !isinf(b);
  if (is_large)
    a *= 5.42101086e-20f, b *= 5.42101086e-20f, c = c * 5.42101086e-20f * 5.42101086e-20f;
  float product = a * b, sum = product + c, part = sum - product;
  float rest = (product - (sum - part)) + (c - part);
  uint bits = as_type<uint>(sum);
  if ((rest < 0.0f || rest > 0.0f) && (bits & 1u) == 0u)
    bits += (rest > 0.0f) == (sum > 0.0f) ? 1u : 0xffffffffu;
  float result = as_type<float>(bits);
  return is_large ? result * 1.84467441e19f * 1.84467441e19f : result;
}
)";

// A divisor above 2^126 has a reciprocal that is subnormal, which a device may take as 0.
static const char quotientText[] = R"(
// x / y to 2.5 units in the last place, whatever y is.
template <typename T> __attribute__((always_inline)) T approximate_quotient(T x, T y) {
  T scale = select(T(1.0f), T(0.25f), fabs(y) > T(8.507059e37f));
  return fast::divide(x * scale, y * scale);
}
)";

// x = 2^n (1 + f) with f from -1/3 to 1/3. A logarithm of f's own is exact near 1.
static const char logText[] = R"(
// log(1 + f) for f from -1/3 to 1/3, from the bits of 1 + f with an exponent, and the exponent.
inline float approximate_log_part(float x, thread float &n) {
  uint exponent = (as_type<uint>(x) - 0x3f2aaaabu) & 0xff800000u;
  float f = as_type<float>(as_type<uint>(x) - exponent) - 1.0f;
  n = float(as_type<int>(exponent)) * 1.1920929e-7f;
  float p = -0.12951067f;
  p = fma(p, f, 0.1400679f);
  p = fma(p, f, -0.12166705f);
  p = fma(p, f, 0.14000781f);
  p = fma(p, f, -0.16682337f);
  p = fma(p, f, 0.20010768f);
  p = fma(p, f, -0.24999717f);
  p = fma(p, f, 0.3333321f);
  p = fma(p, f, -0.5f);
  return fma(f * f, p, f);
}

// The logarithm of what is no positive number: an infinity, a NaN, or 0, as which subnormals count.
inline float approximate_log_limits(float x, float y) {
  y = x < INFINITY ? y : x;
  return x < 1.1754944e-38f ? (x < 0.0f ? NAN : -INFINITY) : y;
}
)";

static const char naturalLogText[] = R"(
inline float approximate_log(float x) {
  float n, y = approximate_log_part(x, n);
  return approximate_log_limits(x, fma(n, 0.6931472f, y));
}
)";

static const char binaryLogText[] = R"(
inline float approximate_log2(float x) {
  float n, y = approximate_log_part(x, n);
  return approximate_log_limits(x, fma(y, 1.442695f, fma(y, 1.925963e-8f, n)));
}
)";

static const char sinePartText[] = R"(
// sin(r) for |r| up to a little more than half of pi.
inline float approximate_sine_part(float r) {
  float s = r * r;
  float p = 2.602776e-6f;
  p = fma(p, s, -1.9808306e-4f);
  p = fma(p, s, 8.33305e-3f);
  p = fma(p, s, -0.16666658f);
  return fma(r * s, p, r);
}
)";

// Pi as the sum of two floats: the first product is taken off exactly. The polynomial is odd, so
// that its argument takes the sign of the half turn: what has this sign need not wait for the
// result. The sign of x comes last, as sin(-0) is -0.
static const char sineText[] = R"(
inline float approximate_sin(float x) {
  float a = fabs(x);
  if (!(a <= 131072.0f))
    return precise::sin(x);
  float k = rint(a * 0.31830987f);
  float r = fma(k, 8.742278e-8f, fma(k, -3.1415927f, a));
  float y = approximate_sine_part(as_type<float>(as_type<uint>(r) ^ (uint(k) << 31)));
  return as_type<float>(as_type<uint>(y) ^ (as_type<uint>(x) & 0x80000000u));
}
)";

static const char cosineText[] = R"(
inline float approximate_cos(float x) {
  float a = fabs(x);
  if (!(a <= 131072.0f))
    return precise::cos(x);
  float k = rint(fma(a, 0.31830987f, 0.5f));
  float r = fma(k - 0.5f, 8.742278e-8f, fma(k - 0.5f, -3.1415927f, a));
  return approximate_sine_part(as_type<float>(as_type<uint>(r) ^ (uint(k) << 31)));
}
)";

// Half of pi as the sum of two floats. A sum with 1.5 * 2^23 rounds to an integer, whose lowest
// bits are those of the sum. It is of use only up to 131072, but no other x gives what is
// undefined.
static const char quarterText[] = R"(
// The sine and the cosine of what is left of x, not negative, without multiples of half of pi, and
// the bits of their number.
inline uint approximate_quarter(float x, thread float &sine, thread float &cosine) {
  float t = fma(x, 0.63661975f, 12582912.0f);
  float k = t - 12582912.0f;
  float r = fma(k, 4.371139e-8f, fma(k, -1.5707964f, x));
  float s = r * r;
  sine = fma(r * s, fma(fma(-1.9513e-4f, s, 8.33215e-3f), s, -0.16666655f), r);
  cosine = fma(fma(fma(-1.35944e-3f, s, 0.04165605f), s, -0.49999891f), s, 1.0f);
  return as_type<uint>(t);
}
)";

// The sine and the cosine of one number: compilers compute what both have in common once, as it
// stands before all branches.
static const char sineBesideText[] = R"(
inline float approximate_sin_beside_cos(float x) {
  float a = fabs(x), sine, cosine;
  uint k = approximate_quarter(a, sine, cosine);
  float y = k & 1 ? cosine : sine;
  y = as_type<float>(as_type<uint>(y) ^ (((k << 30) ^ as_type<uint>(x)) & 0x80000000u));
  if (!(a <= 131072.0f))
    y = precise::sin(x);
  return y;
}
)";

static const char cosineBesideText[] = R"(
inline float approximate_cos_beside_sin(float x) {
  float a = fabs(x), sine, cosine;
  uint k = approximate_quarter(a, sine, cosine);
  float y = k & 1 ? sine : cosine;
  y = as_type<float>(as_type<uint>(y) ^ (((k + 1) << 30) & 0x80000000u));
  if (!(a <= 131072.0f))
    y = precise::cos(x);
  return y;
}
)";

/// The approximate functions: what others call stands before them.
static constexpr PreludeFunction approximations[] = {
    {"approximate_quotient", quotientText},
    {"approximate_log_part", logText},
    {"approximate_log", naturalLogText},
    {"approximate_log2", binaryLogText},
    {"approximate_sine_part", sinePartText},
    {"approximate_sin", sineText},
    {"approximate_cos", cosineText},
    {"approximate_quarter", quarterText},
    {"approximate_sin_beside_cos", sineBesideText},
    {"approximate_cos_beside_sin", cosineBesideText},
};

/// In the order in which they are written.
static constexpr PreludeFunction functions[] = {
    {"maximum", maximumText},     {"minimum", minimumText},     {"error_function", erfText},
    {"log_plus_one", log1pText},  {"exp_minus_one", expm1Text}, {"round_to_odd", roundToOddText},
    {"fma_to_odd", fmaToOddText},
};

void Prelude::use(llvm::StringRef function) {
  function = function.take_until([](char c) { return c == '<'; });
  for (auto [index, known] : llvm::enumerate(functions))
    if (known.name == function)
      used |= 1u << index;
  if (function.starts_with("float64_"))
    float64.insert(function);
  if (function.starts_with("library_"))
    library.insert(function);
  if (function.starts_with("approximate_"))
    approximate.insert(function);
}

void Prelude::useCompareExchange(llvm::StringRef space) {
  (space == "device" ? exchangesInDevice : exchangesInThreadgroup) = true;
}

void Prelude::useElements(FragmentShape fragment) {
  if (!llvm::is_contained(fragments, fragment))
    fragments.push_back(fragment);
}

/// Whether a text has the name as a word of its own.
static bool mentions(llvm::StringRef text, llvm::StringRef name) {
  for (size_t at = text.find(name); at != llvm::StringRef::npos; at = text.find(name, at + 1))
    if (char next = text.substr(at + name.size(), 1)[0]; !llvm::isAlnum(next) && next != '_')
      return true;
  return false;
}

/// The functions of tables that are called, and those that these call. A function calls what stands
/// before it.
static void printCalled(llvm::raw_ostream &os,
                        llvm::ArrayRef<llvm::ArrayRef<PreludeFunction>> tables,
                        llvm::StringSet<> needed) {
  if (needed.empty())
    return;
  llvm::SmallVector<const PreludeFunction *> known, printed;
  for (llvm::ArrayRef<PreludeFunction> table : tables)
    for (const PreludeFunction &function : table)
      known.push_back(&function);
  for (; !known.empty(); known.pop_back()) {
    const PreludeFunction *function = known.back();
    if (!needed.contains(function->name))
      continue;
    printed.push_back(function);
    for (const PreludeFunction *other : llvm::drop_end(known))
      if (mentions(function->text, other->name))
        needed.insert(other->name);
  }
  for (const PreludeFunction *function : llvm::reverse(printed))
    os << function->text;
}

static void printInSpace(llvm::raw_ostream &os, llvm::StringRef text, llvm::StringRef space) {
  auto [front, back] = text.split("SPACE");
  os << front << space << back;
}

void Prelude::print(llvm::raw_ostream &os) const {
  for (FragmentShape fragment : fragments)
    printElements(os, fragment);
  for (MatrixShape shape : tensorMultiplies)
    printTensorMultiply(os, shape);
  for (auto [index, function] : llvm::enumerate(functions))
    if (used & 1u << index)
      os << function.text;
  printCalled(os, {approximations}, approximate);
  printCalled(os, {getFloat64Arithmetic()}, float64);
  printCalled(os, {getExactLibrary(), getSpecialLibrary()}, library);
  if (exchangesInDevice)
    printInSpace(os, compareExchangeText, "device");
  if (exchangesInThreadgroup)
    printInSpace(os, compareExchangeText, "threadgroup");
  atomics.print(os);
}
