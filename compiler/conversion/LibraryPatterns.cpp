// Calls of a device library: operations that MLIR or msl has, and functions that the text brings
// along. The symbols are those with which Triton calls libdevice.

#include "conversion/TTMToMSL.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace triton_metal {

namespace {

enum class Kind {
  /// An operation with the same operands, and perhaps a conversion of what it gives.
  Operation,
  /// A test whose result is an integer.
  Test,
  /// The upper half of a product; "unsigned" or not.
  HighProduct,
  /// `msl.library`.
  Library,
};

struct LibraryFunction {
  StringLiteral symbol;
  Kind kind;
  StringLiteral name;
  StringLiteral conversion;
};

/// Sorted by symbol.
constexpr LibraryFunction functions[] = {
    // clang-format off
    {"__nv_abs", Kind::Operation, "math.absi", ""},
    {"__nv_acos", Kind::Operation, "math.acos", ""},
    {"__nv_acosf", Kind::Operation, "math.acos", ""},
    {"__nv_acosh", Kind::Operation, "math.acosh", ""},
    {"__nv_acoshf", Kind::Operation, "math.acosh", ""},
    {"__nv_asin", Kind::Operation, "math.asin", ""},
    {"__nv_asinf", Kind::Operation, "math.asin", ""},
    {"__nv_asinh", Kind::Operation, "math.asinh", ""},
    {"__nv_asinhf", Kind::Operation, "math.asinh", ""},
    {"__nv_atan", Kind::Operation, "math.atan", ""},
    {"__nv_atan2", Kind::Operation, "math.atan2", ""},
    {"__nv_atan2f", Kind::Operation, "math.atan2", ""},
    {"__nv_atanf", Kind::Operation, "math.atan", ""},
    {"__nv_atanh", Kind::Operation, "math.atanh", ""},
    {"__nv_atanhf", Kind::Operation, "math.atanh", ""},
    {"__nv_brev", Kind::Library, "brev", ""},
    {"__nv_brevll", Kind::Library, "brevll", ""},
    {"__nv_byte_perm", Kind::Library, "byte_perm", ""},
    {"__nv_cbrt", Kind::Library, "cbrt", ""},
    {"__nv_cbrtf", Kind::Library, "cbrt", ""},
    {"__nv_ceil", Kind::Operation, "math.ceil", ""},
    {"__nv_ceilf", Kind::Operation, "math.ceil", ""},
    {"__nv_clz", Kind::Operation, "math.ctlz", ""},
    {"__nv_clzll", Kind::Library, "clzll", ""},
    {"__nv_copysign", Kind::Operation, "math.copysign", ""},
    {"__nv_copysignf", Kind::Operation, "math.copysign", ""},
    {"__nv_cos", Kind::Operation, "math.cos", ""},
    {"__nv_cosf", Kind::Operation, "math.cos", ""},
    {"__nv_cosh", Kind::Operation, "math.cosh", ""},
    {"__nv_coshf", Kind::Operation, "math.cosh", ""},
    {"__nv_cospi", Kind::Library, "cospi", ""},
    {"__nv_cospif", Kind::Library, "cospi", ""},
    {"__nv_cyl_bessel_i0", Kind::Library, "cyl_bessel_i0", ""},
    {"__nv_cyl_bessel_i0f", Kind::Library, "cyl_bessel_i0", ""},
    {"__nv_cyl_bessel_i1", Kind::Library, "cyl_bessel_i1", ""},
    {"__nv_cyl_bessel_i1f", Kind::Library, "cyl_bessel_i1", ""},
    {"__nv_dadd_rd", Kind::Library, "add_rd", ""},
    {"__nv_dadd_rn", Kind::Operation, "arith.addf", ""},
    {"__nv_dadd_ru", Kind::Library, "add_ru", ""},
    {"__nv_dadd_rz", Kind::Library, "add_rz", ""},
    {"__nv_ddiv_rd", Kind::Library, "div_rd", ""},
    {"__nv_ddiv_rn", Kind::Operation, "msl.precise_div", ""},
    {"__nv_ddiv_ru", Kind::Library, "div_ru", ""},
    {"__nv_ddiv_rz", Kind::Library, "div_rz", ""},
    {"__nv_dmul_rd", Kind::Library, "mul_rd", ""},
    {"__nv_dmul_rn", Kind::Operation, "arith.mulf", ""},
    {"__nv_dmul_ru", Kind::Library, "mul_ru", ""},
    {"__nv_dmul_rz", Kind::Library, "mul_rz", ""},
    {"__nv_double2float_rd", Kind::Library, "double_to_float_rd", ""},
    {"__nv_double2float_rn", Kind::Operation, "arith.truncf", ""},
    {"__nv_double2float_ru", Kind::Library, "double_to_float_ru", ""},
    {"__nv_double2float_rz", Kind::Library, "double_to_float_rz", ""},
    {"__nv_double2hiint", Kind::Library, "high_word", ""},
    {"__nv_double2int_rd", Kind::Operation, "math.floor", "arith.fptosi"},
    {"__nv_double2int_rn", Kind::Operation, "math.roundeven", "arith.fptosi"},
    {"__nv_double2int_ru", Kind::Operation, "math.ceil", "arith.fptosi"},
    {"__nv_double2int_rz", Kind::Operation, "arith.fptosi", ""},
    {"__nv_double2ll_rd", Kind::Operation, "math.floor", "arith.fptosi"},
    {"__nv_double2ll_rn", Kind::Operation, "math.roundeven", "arith.fptosi"},
    {"__nv_double2ll_ru", Kind::Operation, "math.ceil", "arith.fptosi"},
    {"__nv_double2ll_rz", Kind::Operation, "arith.fptosi", ""},
    {"__nv_double2loint", Kind::Library, "low_word", ""},
    {"__nv_double2uint_rd", Kind::Operation, "math.floor", "arith.fptoui"},
    {"__nv_double2uint_rn", Kind::Operation, "math.roundeven", "arith.fptoui"},
    {"__nv_double2uint_ru", Kind::Operation, "math.ceil", "arith.fptoui"},
    {"__nv_double2uint_rz", Kind::Operation, "arith.fptoui", ""},
    {"__nv_double2ull_rd", Kind::Operation, "math.floor", "arith.fptoui"},
    {"__nv_double2ull_rn", Kind::Operation, "math.roundeven", "arith.fptoui"},
    {"__nv_double2ull_ru", Kind::Operation, "math.ceil", "arith.fptoui"},
    {"__nv_double2ull_rz", Kind::Operation, "arith.fptoui", ""},
    {"__nv_double_as_longlong", Kind::Operation, "arith.bitcast", ""},
    {"__nv_drcp_rd", Kind::Library, "rcp_rd", ""},
    {"__nv_drcp_rn", Kind::Library, "rcp_rn", ""},
    {"__nv_drcp_ru", Kind::Library, "rcp_ru", ""},
    {"__nv_drcp_rz", Kind::Library, "rcp_rz", ""},
    {"__nv_dsqrt_rd", Kind::Library, "sqrt_rd", ""},
    {"__nv_dsqrt_rn", Kind::Operation, "msl.precise_sqrt", ""},
    {"__nv_dsqrt_ru", Kind::Library, "sqrt_ru", ""},
    {"__nv_dsqrt_rz", Kind::Library, "sqrt_rz", ""},
    {"__nv_dsub_rd", Kind::Library, "sub_rd", ""},
    {"__nv_dsub_rn", Kind::Operation, "arith.subf", ""},
    {"__nv_dsub_ru", Kind::Library, "sub_ru", ""},
    {"__nv_dsub_rz", Kind::Library, "sub_rz", ""},
    {"__nv_erf", Kind::Operation, "math.erf", ""},
    {"__nv_erfc", Kind::Library, "erfc", ""},
    {"__nv_erfcf", Kind::Library, "erfc", ""},
    {"__nv_erfcinv", Kind::Library, "erfcinv", ""},
    {"__nv_erfcinvf", Kind::Library, "erfcinv", ""},
    {"__nv_erfcx", Kind::Library, "erfcx", ""},
    {"__nv_erfcxf", Kind::Library, "erfcx", ""},
    {"__nv_erff", Kind::Operation, "math.erf", ""},
    {"__nv_erfinv", Kind::Library, "erfinv", ""},
    {"__nv_erfinvf", Kind::Library, "erfinv", ""},
    {"__nv_exp", Kind::Operation, "math.exp", ""},
    {"__nv_exp10", Kind::Library, "exp10", ""},
    {"__nv_exp10f", Kind::Library, "exp10", ""},
    {"__nv_exp2", Kind::Operation, "math.exp2", ""},
    {"__nv_exp2f", Kind::Operation, "math.exp2", ""},
    {"__nv_expf", Kind::Operation, "math.exp", ""},
    {"__nv_expm1", Kind::Operation, "math.expm1", ""},
    {"__nv_expm1f", Kind::Operation, "math.expm1", ""},
    {"__nv_fabs", Kind::Operation, "math.absf", ""},
    {"__nv_fabsf", Kind::Operation, "math.absf", ""},
    {"__nv_fadd_rd", Kind::Library, "add_rd", ""},
    {"__nv_fadd_rn", Kind::Operation, "arith.addf", ""},
    {"__nv_fadd_ru", Kind::Library, "add_ru", ""},
    {"__nv_fadd_rz", Kind::Library, "add_rz", ""},
    {"__nv_fast_cosf", Kind::Operation, "math.cos", ""},
    {"__nv_fast_exp10f", Kind::Library, "exp10", ""},
    {"__nv_fast_expf", Kind::Operation, "math.exp", ""},
    {"__nv_fast_fdividef", Kind::Operation, "arith.divf", ""},
    {"__nv_fast_log10f", Kind::Operation, "math.log10", ""},
    {"__nv_fast_log2f", Kind::Operation, "math.log2", ""},
    {"__nv_fast_logf", Kind::Operation, "math.log", ""},
    {"__nv_fast_powf", Kind::Operation, "math.powf", ""},
    {"__nv_fast_sinf", Kind::Operation, "math.sin", ""},
    {"__nv_fast_tanf", Kind::Operation, "math.tan", ""},
    {"__nv_fdim", Kind::Library, "fdim", ""},
    {"__nv_fdimf", Kind::Library, "fdim", ""},
    {"__nv_fdiv_rd", Kind::Library, "div_rd", ""},
    {"__nv_fdiv_rn", Kind::Operation, "msl.precise_div", ""},
    {"__nv_fdiv_ru", Kind::Library, "div_ru", ""},
    {"__nv_fdiv_rz", Kind::Library, "div_rz", ""},
    {"__nv_ffs", Kind::Library, "ffs", ""},
    {"__nv_ffsll", Kind::Library, "ffsll", ""},
    {"__nv_finitef", Kind::Test, "math.isfinite", ""},
    {"__nv_float2int_rd", Kind::Operation, "math.floor", "arith.fptosi"},
    {"__nv_float2int_rn", Kind::Operation, "math.roundeven", "arith.fptosi"},
    {"__nv_float2int_ru", Kind::Operation, "math.ceil", "arith.fptosi"},
    {"__nv_float2int_rz", Kind::Operation, "arith.fptosi", ""},
    {"__nv_float2ll_rd", Kind::Operation, "math.floor", "arith.fptosi"},
    {"__nv_float2ll_rn", Kind::Operation, "math.roundeven", "arith.fptosi"},
    {"__nv_float2ll_ru", Kind::Operation, "math.ceil", "arith.fptosi"},
    {"__nv_float2ll_rz", Kind::Operation, "arith.fptosi", ""},
    {"__nv_float2uint_rd", Kind::Operation, "math.floor", "arith.fptoui"},
    {"__nv_float2uint_rn", Kind::Operation, "math.roundeven", "arith.fptoui"},
    {"__nv_float2uint_ru", Kind::Operation, "math.ceil", "arith.fptoui"},
    {"__nv_float2uint_rz", Kind::Operation, "arith.fptoui", ""},
    {"__nv_float2ull_rd", Kind::Operation, "math.floor", "arith.fptoui"},
    {"__nv_float2ull_rn", Kind::Operation, "math.roundeven", "arith.fptoui"},
    {"__nv_float2ull_ru", Kind::Operation, "math.ceil", "arith.fptoui"},
    {"__nv_float2ull_rz", Kind::Operation, "arith.fptoui", ""},
    {"__nv_float_as_int", Kind::Operation, "arith.bitcast", ""},
    {"__nv_float_as_uint", Kind::Operation, "arith.bitcast", ""},
    {"__nv_floor", Kind::Operation, "math.floor", ""},
    {"__nv_floorf", Kind::Operation, "math.floor", ""},
    {"__nv_fma", Kind::Operation, "math.fma", ""},
    {"__nv_fma_rd", Kind::Library, "fma_rd", ""},
    {"__nv_fma_rn", Kind::Operation, "math.fma", ""},
    {"__nv_fma_ru", Kind::Library, "fma_ru", ""},
    {"__nv_fma_rz", Kind::Library, "fma_rz", ""},
    {"__nv_fmaf", Kind::Operation, "math.fma", ""},
    {"__nv_fmaf_rd", Kind::Library, "fma_rd", ""},
    {"__nv_fmaf_rn", Kind::Operation, "math.fma", ""},
    {"__nv_fmaf_ru", Kind::Library, "fma_ru", ""},
    {"__nv_fmaf_rz", Kind::Library, "fma_rz", ""},
    {"__nv_fmod", Kind::Operation, "arith.remf", ""},
    {"__nv_fmodf", Kind::Operation, "arith.remf", ""},
    {"__nv_fmul_rd", Kind::Library, "mul_rd", ""},
    {"__nv_fmul_rn", Kind::Operation, "arith.mulf", ""},
    {"__nv_fmul_ru", Kind::Library, "mul_ru", ""},
    {"__nv_fmul_rz", Kind::Library, "mul_rz", ""},
    {"__nv_frcp_rd", Kind::Library, "rcp_rd", ""},
    {"__nv_frcp_rn", Kind::Library, "rcp_rn", ""},
    {"__nv_frcp_ru", Kind::Library, "rcp_ru", ""},
    {"__nv_frcp_rz", Kind::Library, "rcp_rz", ""},
    {"__nv_frsqrt_rn", Kind::Library, "rsqrt_rn", ""},
    {"__nv_fsqrt_rd", Kind::Library, "sqrt_rd", ""},
    {"__nv_fsqrt_rn", Kind::Operation, "msl.precise_sqrt", ""},
    {"__nv_fsqrt_ru", Kind::Library, "sqrt_ru", ""},
    {"__nv_fsqrt_rz", Kind::Library, "sqrt_rz", ""},
    {"__nv_fsub_rd", Kind::Library, "sub_rd", ""},
    {"__nv_fsub_rn", Kind::Operation, "arith.subf", ""},
    {"__nv_fsub_ru", Kind::Library, "sub_ru", ""},
    {"__nv_fsub_rz", Kind::Library, "sub_rz", ""},
    {"__nv_hadd", Kind::Library, "hadd", ""},
    {"__nv_hiloint2double", Kind::Library, "of_words", ""},
    {"__nv_hypot", Kind::Library, "hypot", ""},
    {"__nv_hypotf", Kind::Library, "hypot", ""},
    {"__nv_ilogb", Kind::Library, "ilogb", ""},
    {"__nv_ilogbf", Kind::Library, "ilogb", ""},
    {"__nv_int2double_rn", Kind::Operation, "arith.sitofp", ""},
    {"__nv_int2float_rd", Kind::Library, "int_to_float_rd", ""},
    {"__nv_int2float_rn", Kind::Operation, "arith.sitofp", ""},
    {"__nv_int2float_ru", Kind::Library, "int_to_float_ru", ""},
    {"__nv_int2float_rz", Kind::Library, "int_to_float_rz", ""},
    {"__nv_int_as_float", Kind::Operation, "arith.bitcast", ""},
    {"__nv_isfinited", Kind::Test, "math.isfinite", ""},
    {"__nv_isinfd", Kind::Test, "math.isinf", ""},
    {"__nv_isinff", Kind::Test, "math.isinf", ""},
    {"__nv_isnand", Kind::Test, "math.isnan", ""},
    {"__nv_isnanf", Kind::Test, "math.isnan", ""},
    {"__nv_j0", Kind::Library, "j0", ""},
    {"__nv_j0f", Kind::Library, "j0", ""},
    {"__nv_j1", Kind::Library, "j1", ""},
    {"__nv_j1f", Kind::Library, "j1", ""},
    {"__nv_jn", Kind::Library, "jn", ""},
    {"__nv_jnf", Kind::Library, "jn", ""},
    {"__nv_ldexp", Kind::Library, "ldexp", ""},
    {"__nv_ldexpf", Kind::Library, "ldexp", ""},
    {"__nv_lgamma", Kind::Library, "lgamma", ""},
    {"__nv_lgammaf", Kind::Library, "lgamma", ""},
    {"__nv_ll2double_rd", Kind::Library, "ll_to_double_rd", ""},
    {"__nv_ll2double_rn", Kind::Operation, "arith.sitofp", ""},
    {"__nv_ll2double_ru", Kind::Library, "ll_to_double_ru", ""},
    {"__nv_ll2double_rz", Kind::Library, "ll_to_double_rz", ""},
    {"__nv_ll2float_rd", Kind::Library, "ll_to_float_rd", ""},
    {"__nv_ll2float_rn", Kind::Operation, "arith.sitofp", ""},
    {"__nv_ll2float_ru", Kind::Library, "ll_to_float_ru", ""},
    {"__nv_ll2float_rz", Kind::Library, "ll_to_float_rz", ""},
    {"__nv_llabs", Kind::Operation, "math.absi", ""},
    {"__nv_llrint", Kind::Operation, "math.roundeven", "arith.fptosi"},
    {"__nv_llrintf", Kind::Operation, "math.roundeven", "arith.fptosi"},
    {"__nv_llround", Kind::Operation, "math.round", "arith.fptosi"},
    {"__nv_llroundf", Kind::Operation, "math.round", "arith.fptosi"},
    {"__nv_log", Kind::Operation, "math.log", ""},
    {"__nv_log10", Kind::Operation, "math.log10", ""},
    {"__nv_log10f", Kind::Operation, "math.log10", ""},
    {"__nv_log1p", Kind::Operation, "math.log1p", ""},
    {"__nv_log1pf", Kind::Operation, "math.log1p", ""},
    {"__nv_log2", Kind::Operation, "math.log2", ""},
    {"__nv_log2f", Kind::Operation, "math.log2", ""},
    {"__nv_logb", Kind::Library, "logb", ""},
    {"__nv_logbf", Kind::Library, "logb", ""},
    {"__nv_logf", Kind::Operation, "math.log", ""},
    {"__nv_longlong_as_double", Kind::Operation, "arith.bitcast", ""},
    {"__nv_mul24", Kind::Library, "mul24", ""},
    {"__nv_mul64hi", Kind::HighProduct, "", ""},
    {"__nv_mulhi", Kind::HighProduct, "", ""},
    {"__nv_nearbyint", Kind::Operation, "math.roundeven", ""},
    {"__nv_nearbyintf", Kind::Operation, "math.roundeven", ""},
    {"__nv_nextafter", Kind::Library, "nextafter", ""},
    {"__nv_nextafterf", Kind::Library, "nextafter", ""},
    {"__nv_norm3d", Kind::Library, "norm3d", ""},
    {"__nv_norm3df", Kind::Library, "norm3d", ""},
    {"__nv_norm4d", Kind::Library, "norm4d", ""},
    {"__nv_norm4df", Kind::Library, "norm4d", ""},
    {"__nv_normcdf", Kind::Library, "normcdf", ""},
    {"__nv_normcdff", Kind::Library, "normcdf", ""},
    {"__nv_normcdfinv", Kind::Library, "normcdfinv", ""},
    {"__nv_normcdfinvf", Kind::Library, "normcdfinv", ""},
    {"__nv_popc", Kind::Operation, "math.ctpop", ""},
    {"__nv_popcll", Kind::Library, "popcll", ""},
    {"__nv_pow", Kind::Operation, "math.powf", ""},
    {"__nv_powf", Kind::Operation, "math.powf", ""},
    {"__nv_powi", Kind::Library, "powi", ""},
    {"__nv_powif", Kind::Library, "powi", ""},
    {"__nv_rcbrt", Kind::Library, "rcbrt", ""},
    {"__nv_rcbrtf", Kind::Library, "rcbrt", ""},
    {"__nv_rcp64h", Kind::Library, "rcp64h", ""},
    {"__nv_remainder", Kind::Library, "remainder", ""},
    {"__nv_remainderf", Kind::Library, "remainder", ""},
    {"__nv_rhadd", Kind::Library, "rhadd", ""},
    {"__nv_rhypot", Kind::Library, "rhypot", ""},
    {"__nv_rhypotf", Kind::Library, "rhypot", ""},
    {"__nv_rint", Kind::Operation, "math.roundeven", ""},
    {"__nv_rintf", Kind::Operation, "math.roundeven", ""},
    {"__nv_rnorm3d", Kind::Library, "rnorm3d", ""},
    {"__nv_rnorm3df", Kind::Library, "rnorm3d", ""},
    {"__nv_rnorm4d", Kind::Library, "rnorm4d", ""},
    {"__nv_rnorm4df", Kind::Library, "rnorm4d", ""},
    {"__nv_round", Kind::Operation, "math.round", ""},
    {"__nv_roundf", Kind::Operation, "math.round", ""},
    {"__nv_rsqrt", Kind::Operation, "math.rsqrt", ""},
    {"__nv_rsqrtf", Kind::Operation, "math.rsqrt", ""},
    {"__nv_sad", Kind::Library, "sad", ""},
    {"__nv_saturatef", Kind::Library, "saturate", ""},
    {"__nv_scalbn", Kind::Library, "ldexp", ""},
    {"__nv_scalbnf", Kind::Library, "ldexp", ""},
    {"__nv_signbitd", Kind::Library, "signbit", ""},
    {"__nv_signbitf", Kind::Library, "signbit", ""},
    {"__nv_sin", Kind::Operation, "math.sin", ""},
    {"__nv_sinf", Kind::Operation, "math.sin", ""},
    {"__nv_sinh", Kind::Operation, "math.sinh", ""},
    {"__nv_sinhf", Kind::Operation, "math.sinh", ""},
    {"__nv_sinpi", Kind::Library, "sinpi", ""},
    {"__nv_sinpif", Kind::Library, "sinpi", ""},
    {"__nv_sqrt", Kind::Operation, "msl.precise_sqrt", ""},
    {"__nv_sqrtf", Kind::Operation, "msl.precise_sqrt", ""},
    {"__nv_tan", Kind::Operation, "math.tan", ""},
    {"__nv_tanf", Kind::Operation, "math.tan", ""},
    {"__nv_tanh", Kind::Operation, "math.tanh", ""},
    {"__nv_tanhf", Kind::Operation, "math.tanh", ""},
    {"__nv_tgamma", Kind::Library, "tgamma", ""},
    {"__nv_tgammaf", Kind::Library, "tgamma", ""},
    {"__nv_trunc", Kind::Operation, "math.trunc", ""},
    {"__nv_truncf", Kind::Operation, "math.trunc", ""},
    {"__nv_uhadd", Kind::Library, "uhadd", ""},
    {"__nv_uint2double_rn", Kind::Operation, "arith.uitofp", ""},
    {"__nv_uint2float_rd", Kind::Library, "uint_to_float_rd", ""},
    {"__nv_uint2float_rn", Kind::Operation, "arith.uitofp", ""},
    {"__nv_uint2float_ru", Kind::Library, "uint_to_float_ru", ""},
    {"__nv_uint2float_rz", Kind::Library, "uint_to_float_rz", ""},
    {"__nv_uint_as_float", Kind::Operation, "arith.bitcast", ""},
    {"__nv_ull2double_rd", Kind::Library, "ull_to_double_rd", ""},
    {"__nv_ull2double_rn", Kind::Operation, "arith.uitofp", ""},
    {"__nv_ull2double_ru", Kind::Library, "ull_to_double_ru", ""},
    {"__nv_ull2double_rz", Kind::Library, "ull_to_double_rz", ""},
    {"__nv_ull2float_rd", Kind::Library, "ull_to_float_rd", ""},
    {"__nv_ull2float_rn", Kind::Operation, "arith.uitofp", ""},
    {"__nv_ull2float_ru", Kind::Library, "ull_to_float_ru", ""},
    {"__nv_ull2float_rz", Kind::Library, "ull_to_float_rz", ""},
    {"__nv_umul24", Kind::Library, "umul24", ""},
    {"__nv_umul64hi", Kind::HighProduct, "unsigned", ""},
    {"__nv_umulhi", Kind::HighProduct, "unsigned", ""},
    {"__nv_urhadd", Kind::Library, "urhadd", ""},
    {"__nv_usad", Kind::Library, "usad", ""},
    {"__nv_y0", Kind::Library, "y0", ""},
    {"__nv_y0f", Kind::Library, "y0", ""},
    {"__nv_y1", Kind::Library, "y1", ""},
    {"__nv_y1f", Kind::Library, "y1", ""},
    {"__nv_yn", Kind::Library, "yn", ""},
    {"__nv_ynf", Kind::Library, "yn", ""},
    // clang-format on
};

const LibraryFunction *find(StringRef symbol) {
  const auto *found =
      llvm::lower_bound(functions, symbol, [](const LibraryFunction &function, StringRef name) {
        return function.symbol < name;
      });
  return found != std::end(functions) && found->symbol == symbol ? found : nullptr;
}

struct ExternElementwisePattern : RegisterPattern<tt::ExternElementwiseOp> {
  using RegisterPattern::RegisterPattern;

  LogicalResult matchAndRewrite(tt::ExternElementwiseOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    const LibraryFunction *function = find(op.getSymbol());
    if (!function)
      return failure();
    Type type = convert(op.getType());
    ValueRange operands = adaptor.getSrcs();
    auto create = [&](StringRef name, Type result, ValueRange inputs) -> Value {
      OperationState state(op.getLoc(), name, inputs, result);
      return rewriter.create(state)->getResult(0);
    };
    switch (function->kind) {
    case Kind::Operation: {
      if (function->conversion.empty()) {
        rewriter.replaceOp(op, create(function->name, type, operands));
        break;
      }
      Value rounded = create(function->name, operands[0].getType(), operands);
      rewriter.replaceOp(op, create(function->conversion, type, rounded));
      break;
    }
    case Kind::Test: {
      Value holds = create(function->name, withElement(operands[0].getType(), rewriter.getI1Type()),
                           operands);
      rewriter.replaceOpWithNewOp<arith::ExtUIOp>(op, type, holds);
      break;
    }
    case Kind::HighProduct:
      rewriter.replaceOpWithNewOp<msl::MulhiOp>(op, operands[0], operands[1],
                                                /*is_unsigned=*/!function->name.empty());
      break;
    case Kind::Library:
      rewriter.replaceOpWithNewOp<msl::LibraryOp>(op, type, function->name, operands);
      break;
    }
    return success();
  }
};

} // namespace

bool isLibraryFunction(tt::ExternElementwiseOp call) { return find(call.getSymbol()); }

void populateLibraryPatterns(const TTMToMSLTypes &types, RewritePatternSet &patterns) {
  patterns.add<ExternElementwisePattern>(types, patterns.getContext());
}

} // namespace triton_metal
