#include "target/msl/Names.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace triton_metal::msl;

/// Macros of Metal's standard library.
static bool isMacro(StringRef name) {
  static const llvm::StringSet<> macros = [] {
    llvm::StringSet<> set;
    for (StringRef name :
         {"CHAR_BIT", "MAXFLOAT", "MAXHALF", "MAXBFLOAT", "HUGE_VAL", "HUGE_VALF", "HUGE_VALH",
          "HUGE_VALBF", "NULL", "TRUE", "FALSE", "METAL_FUNC", "METAL_ALIGN"})
      set.insert(name);
    for (const char *type :
         {"CHAR", "SCHAR", "UCHAR", "SHRT", "USHRT", "INT", "UINT", "LONG", "ULONG"})
      for (const char *limit : {"_MAX", "_MIN"})
        set.insert(std::string(type) + limit);
    for (const char *type : {"FLT", "HALF", "BFLT"})
      for (const char *limit : {"_DIG", "_MANT_DIG", "_MAX_10_EXP", "_MAX_EXP", "_MIN_10_EXP",
                                "_MIN_EXP", "_RADIX", "_MAX", "_MIN", "_EPSILON", "_DENORM_MIN",
                                "_ROUNDS", "_EVAL_METHOD", "_DECIMAL_DIG", "_TRUE_MIN"})
        set.insert(std::string(type) + limit);
    for (const char *number : {"E", "LOG2E", "LOG10E", "LN2", "LN10", "PI", "PI_2", "PI_4", "1_PI",
                               "2_PI", "2_SQRTPI", "SQRT2", "SQRT1_2"})
      for (const char *type : {"_F", "_H", "_BF"})
        set.insert("M_" + std::string(number) + type);
    return set;
  }();
  return macros.contains(name);
}

bool triton_metal::msl::isReserved(StringRef name) {
  static const llvm::StringSet<> words = [] {
    llvm::StringSet<> set;
    for (StringRef word :
         {// C++
          "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
          "case", "catch", "char", "char16_t", "char32_t", "class", "compl", "concept", "const",
          "const_cast", "constexpr", "continue", "decltype", "default", "delete", "do", "double",
          "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
          "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
          "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected",
          "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
          "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template",
          "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union",
          "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
          "main",
          // Metal
          "kernel", "vertex", "fragment", "device", "constant", "thread", "threadgroup",
          "threadgroup_imageblock", "metal", "half", "bfloat", "uchar", "ushort", "uint", "ulong",
          "size_t", "ptrdiff_t", "intptr_t", "uintptr_t", "nullptr_t", "std", "atomic_int",
          "atomic_uint", "atomic_float", "atomic_bool", "texture1d", "texture2d", "sampler", "simd",
          "quad", "os", "as_type", "select", "precise", "fast", "mem_flags", "memory_order_relaxed",
          "memory_order_seq_cst", "thread_scope_device", "atomic_thread_fence", "INFINITY", "NAN",
          "visible", "coherent", "matrix", "vec", "array", "ray_data", "object_data", "mesh",
          "intersection", "stitchable",
          // Attributes, because a framework that writes another signature gives parameters these
          // names.
          "dispatch_quadgroups_per_threadgroup", "dispatch_simdgroups_per_threadgroup",
          "dispatch_threads_per_threadgroup", "grid_origin", "grid_size",
          "quadgroup_index_in_threadgroup", "quadgroups_per_threadgroup",
          "simdgroup_index_in_threadgroup", "simdgroups_per_threadgroup", "thread_execution_width",
          "thread_index_in_quadgroup", "thread_index_in_simdgroup", "thread_index_in_threadgroup",
          "thread_position_in_grid", "thread_position_in_threadgroup",
          "threadgroup_position_in_grid", "threadgroups_per_grid", "threads_per_grid",
          "threads_per_simdgroup", "threads_per_threadgroup",
          // Functions that the text calls. A variable with such a name would hide the function.
          "abs", "acos", "acosh", "approximate_cos", "approximate_cos_beside_sin",
          "approximate_log", "approximate_log2", "approximate_log_limits", "approximate_log_part",
          "approximate_quotient", "approximate_quarter", "approximate_sin",
          "approximate_sin_beside_cos", "approximate_sine_part", "asin", "asinh", "atan", "atan2",
          "atanh", "ceil", "clz", "copysign", "cos", "cosh", "ctz", "elements", "error_function",
          "exp", "exp_minus_one", "exp2", "exp10", "fabs", "floor", "fma", "fma_to_odd", "fmax",
          "fmin", "fmod", "isordered", "isunordered", "log", "log_plus_one", "log2", "log10", "max",
          "maximum", "min", "minimum", "mulhi", "popcount", "pow", "rint", "round", "round_to_odd",
          "rsqrt", "simd_and", "simd_max", "simd_min", "simd_or", "simd_product", "simd_shuffle",
          "simd_shuffle_xor", "simd_sum", "simd_xor", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
          "isnan", "isinf", "isfinite", "isnormal", "signbit", "compare_exchange", "add_halves",
          "and_halves", "bfloat_bits", "compare_exchange_alone", "exchange", "exchange_alone",
          "fetch_add_float64_alone", "fetch_max_float64_alone", "fetch_min_float64_alone",
          "fetch_add", "fetch_add_alone", "fetch_add_bfloat", "fetch_and", "fetch_and_alone",
          "fetch_max", "fetch_max_alone", "fetch_max_bfloat", "fetch_min", "fetch_min_alone",
          "fetch_min_bfloat", "fetch_or", "fetch_or_alone", "fetch_xor", "fetch_xor_alone",
          "or_halves", "xor_halves", "threadgroup_barrier", "simdgroup_load", "simdgroup_store",
          "divide",
          // Of the standard library, outside of its namespace.
          "is_function_constant_defined"})
      set.insert(word);
    return set;
  }();
  return words.contains(name) || isMacro(name);
}

bool triton_metal::msl::looksLikeType(StringRef name) {
  // C++ reserves these: `_Complex` and `_Atomic` are words of clang.
  if (name.size() > 1 && name[0] == '_' && llvm::isUpper(name[1]))
    return true;
  for (StringRef type : {"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong",
                         "half", "bfloat", "float", "packed_", "simdgroup_", "__"})
    if (name.starts_with(type) &&
        (type.ends_with("_") || (name.size() > type.size() && llvm::isDigit(name[type.size()]))))
      return true;
  return false;
}

bool Names::isTaken(StringRef name) const {
  return isReserved(name) ||
         llvm::any_of(scopes, [&](const Scope &scope) { return scope.taken.contains(name); });
}

std::string Names::make(StringRef base) {
  std::string name;
  for (char c : base)
    name += llvm::isAlnum(c) || c == '_' ? c : '_';
  // A number at the end does not make such a name valid.
  if (name.empty() || llvm::isDigit(name[0]) || looksLikeType(name))
    name = "v" + name;
  // A scope only takes further names while it lasts, so no number that was taken in it is free.
  unsigned number = 0;
  for (const Scope &scope : scopes)
    number = std::max(number, scope.next.lookup(name));
  std::string unique = number ? name + "_" + std::to_string(number) : name;
  while (isTaken(unique))
    unique = name + "_" + std::to_string(++number);
  scopes.back().taken.insert(unique);
  scopes.back().next[name] = number + 1;
  return unique;
}
