"""What `metal_mutator` puts into texts: declarations, statements, attributes, and names that can take each other's place."""

from __future__ import annotations

TYPES = (
    "bool char uchar short ushort int uint long ulong half bfloat float bool2 char4 uchar3 short2 ushort4 int2 int3 int4 uint2 uint3 "
    "uint4 long2 ulong4 half2 half3 half4 bfloat2 bfloat4 float2 float3 float4 packed_float3 packed_half2 packed_int4 float2x2 "
    "float4x4 half3x2 size_t int8_t uint16_t"
).split()
# Of one operand, of two, of three, of a value and a lane, of atomics, and of SIMD-groups.
FUNCTIONS = tuple(
    names.split()
    for names in (
        "abs sin cos tan exp exp2 exp10 log log2 log10 sqrt rsqrt floor ceil trunc rint round fract sign saturate clz ctz popcount "
        "reverse_bits isnan isinf signbit any all not tanh sinh cosh asin acos atan asinh acosh atanh fabs length normalize "
        "fast::sin precise::sin fast::exp precise::sqrt transpose determinant simd_sum simd_product simd_max simd_min simd_and "
        "simd_or simd_xor simd_prefix_inclusive_sum simd_prefix_exclusive_sum simd_broadcast_first quad_sum",
        "min max pow powr fmod atan2 fmin fmax copysign ldexp step dot cross distance reflect mulhi hadd rhadd addsat subsat absdiff "
        "rotate fdim nextafter simd_shuffle simd_shuffle_xor simd_shuffle_up simd_shuffle_down simd_broadcast "
        "simd_shuffle_rotate_down quad_shuffle quad_broadcast precise::pow fast::fmod",
        "fma clamp mix select smoothstep mad mad24 madhi madsat extract_bits median3 min3 max3 faceforward refract",
        "atomic_fetch_add_explicit atomic_fetch_sub_explicit atomic_fetch_or_explicit atomic_fetch_and_explicit atomic_fetch_xor_explicit "
        "atomic_fetch_max_explicit atomic_fetch_min_explicit atomic_exchange_explicit",
        "threadgroup_barrier simdgroup_barrier",
        "mem_none mem_device mem_threadgroup mem_texture mem_threadgroup_imageblock",
        "memory_order_relaxed memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst",
        "thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid thread_index_in_threadgroup "
        "thread_index_in_simdgroup simdgroup_index_in_threadgroup threads_per_threadgroup threads_per_grid threadgroups_per_grid "
        "simdgroups_per_threadgroup threads_per_simdgroup grid_size dispatch_threads_per_threadgroup thread_execution_width",
    )
)
ATTRIBUTES = (
    "buffer(0)", "buffer(1)", "buffer(30)", "buffer(31)", "buffer(-1)", "buffer(65536)", "buffer(id)", "threadgroup(0)",
    "threadgroup(3)", "texture(0)", "sampler(0)", "kernel", "vertex", "fragment", "host_name(\"other\")", "host_name(\"\")",
    "function_constant(0)", "function_constant(7)", "function_constant(70000)", "max_total_threads_per_threadgroup(32)",
    "max_total_threads_per_threadgroup(0)", "max_total_threads_per_threadgroup(4096)", "required_threads_per_threadgroup(8, 8, 1)",
    "id(3)", "stage_in", "visible", "stitchable", "unroll", "nodiscard", "maybe_unused", "clang::noinline", "gnu::packed", "early_fragment_tests",
    "user(x)", "position", "invariant", "color(0)", "raster_order_group(0)", "payload", "intersection(triangle)",
    "thread_position_in_grid", "threads_per_grid", "thread_index_in_simdgroup", "thread_index_in_quadgroup", "no_such_attribute", "",
)  # fmt: skip
# @T is a type, @N a number, @V a name of the text, and @C a count.
DECLARATIONS = (
    "constant @T fz_a = @T(@N);",
    "constant @T fz_b[@C] = {@N, @N, @N};",
    "constant int fz_c[4] = {[2] = @N, 1};",
    "constant constexpr int fz_d = @N @V @N;",
    "constant @T fz_k [[function_constant(@C)]];",
    "constant @T fz_l [[function_constant(0)]]; constant @T fz_m = fz_l + @N;",
    "constant bool fz_defined = is_function_constant_defined(@V);",
    "struct FzS { @T a; @T b[@C]; struct { @T c; } d; @T e : 3; };",
    "struct FzT { @T a = @N; FzT operator+(FzT o) const thread { return {a + o.a}; } operator @T() const { return a; } };",
    "struct alignas(@C) FzU { union { @T a; @T b; uchar c[@C]; }; };",
    "enum class FzE : @T { a = @N, b, c = @N };",
    "typedef @T fz_t[@C];",
    "using @V = @T;",
    "template <typename T> struct FzV { static constant constexpr T v = T(@N); T x[sizeof(T)]; };",
    "template <int N> struct FzW { enum { v = N + FzW<N - 1>::v }; }; template <> struct FzW<0> { enum { v = 0 }; };",
    "template <int N> int fz_rec() { if constexpr (N > 0) return fz_rec<N - 1>() + N; else return 0; } constant int fz_r = fz_rec<@C>();",
    "template <typename... A> auto fz_sum(A... a) { return (a + ... + @N); }",
    "template <typename T, typename U = @T> T fz_to(U x) { return static_cast<T>(x); } template int fz_to<int, @T>(@T);",
    "constexpr int fz_loop(int n) { int s = 0; for (int i = 0; i < n; ++i) s += i % @C; return s; } constant int fz_lo = fz_loop(@C * @C);",
    "constexpr int fz_endless(int n) { while (n >= 0) n ^= 1; return n; } constant int fz_en = fz_endless(@N);",
    "int fz_f(@T x, @T y = @N) { return x > y ? fz_f(y) : int(x); }",
    "int fz_g(int n); int fz_h(int n) { return n ? fz_g(n - 1) : @N; } int fz_g(int n) { return n ? fz_h(n - 1) : @N; }",
    "static inline __attribute__((noinline)) @T fz_n(thread @T &x, device @T *p, threadgroup @T *q) { x = p[@C]; q[0] = x; return x; }",
    "#define @V @N",
    "#define @V(x) ((x) @V (x))",
    "#undef @V",
    "#define FZ_A FZ_B FZ_B\n#define FZ_B FZ_C FZ_C\n#define FZ_C @V",
    "#define FZ_CAT(a, b) a##b\n#define FZ_STR(a) #a\nconstant int FZ_CAT(fz_, @V) = sizeof(FZ_STR(@V @N));",
    "#define FZ_1(x) x, x, x, x, x, x, x, x\n#define FZ_2(x) FZ_1(FZ_1(x))\n#define FZ_3(x) FZ_2(FZ_2(x))\nconstant int fz_many[] = {FZ_3(@N)};",
    "#if @N\n#else\nint fz_else;\n#endif",
    "#ifdef @V\n#include <metal_@V>\n#endif",
    "#include <metal_math>", "#include <metal_simdgroup_matrix>", "#include <metal_atomic>", "#include <metal_tensor>",
    "#include \"kernel.metal\"", "#include \"/dev/zero\"", "#include \"no/such.h\"", "#include \"/\"", "#include <@V>", "#include __FILE__",
    "#pragma once", "#pragma METAL fp math_mode(fast)", "#pragma clang loop unroll(full)", "#pragma pack(1)", "#line 7 \"@V\"",
    "#line 4294967295", "#error @V", "#warning @V", "#pragma clang diagnostic push", "#pragma GCC system_header",
    "_Pragma(\"unroll\")", "static_assert(sizeof(@T) == @C, \"@V\");", "asm(\"nop\");", "int *fz_p = nullptr;", "@T fz_global;",
    "threadgroup @T fz_shared[@C];", "extern constant @T fz_ext;", "using namespace metal::precise;", "namespace metal { int @V; }",
    "namespace { namespace fz { inline namespace v { constant @T a = @N; } } } using fz::a;",
    "constant char fz_raw[] = R\"x(@V \" ) \\ // /* #define )x\";",
    "constant float4x4 fz_mat = float4x4(@N); constant float4 fz_vec = fz_mat[@C % 4].wzyx;",
    "kernel void fz_kernel(device @T *p [[buffer(0)]], constant @T &q [[buffer(@C % 31)]], uint i [[thread_position_in_grid]]) { p[i] = @T(q); }",
    "kernel void fz_shared_kernel(threadgroup @T *p [[threadgroup(0)]], device @T *q, ushort3 i [[thread_position_in_threadgroup]]) { p[i.x] = q[i.x]; threadgroup_barrier(mem_flags::mem_threadgroup); q[i.x] = p[@C]; }",
    "template <typename T> kernel void fz_tk(device T *p, uint i [[thread_position_in_grid]]) { p[i] += T(@N); } template [[host_name(\"fz_@T\")]] kernel void fz_tk<@T>(device @T *, uint);",
    "kernel void @V(device atomic_uint *p) { atomic_fetch_add_explicit(p + @C, @N, memory_order_relaxed); }",
)  # fmt: skip
STATEMENTS = (
    "@T fz_x = @T(@N); @V = fz_x;",
    "@T fz_y[@C]; fz_y[@V] = @N; @V += fz_y[@C];",
    "@T fz_z[@C][@C][@C] = {}; fz_z[@N][0][@V] = @V;",
    "@V = @V + @N;", "@V ^= @N;", "@V = -@V;", "@V[@N] = @N;", "@V.x = @V.y;", "@V = @V.zyx;", "++@V[@V];",
    "for (int fz_i = 0; fz_i < @N; ++fz_i) @V += fz_i;",
    "for (int fz_i = 0; fz_i < @C; ++fz_i) for (int fz_j = fz_i; fz_j < @C; ++fz_j) for (int fz_k = 0; fz_k < @C; ++fz_k) { if (fz_k == @V) continue; @V += fz_k * fz_j; if (@V > @N) break; }",
    "#pragma unroll\nfor (int fz_i = 0; fz_i < @C; ++fz_i) { @V += fz_i; }",
    "#pragma unroll(@C)\nfor (uint fz_i = @N; fz_i != 0; fz_i >>= 1) @V ^= fz_i;",
    "_Pragma(\"clang loop unroll(full)\") for (int fz_i = 0; fz_i < @N; fz_i += @C) @V = fz_i;",
    "while (@V) { @V >>= 1; }", "while (true) { if (@V++ > @N) break; }", "do { @V -= @N; } while (@V > @N);", "for (;;) {}",
    "if (@V > @N) return;", "if (@V) @V = @N; else @V += @V;", "if (int fz_q = @V; fz_q % 3) @V = fz_q;",
    "switch (@V) { case 0: @V = 1; case @C: break; default: @V += 2; case @N: ; }",
    "switch (int(@V)) { case 0 ... @C: @V = @N; break; }",
    "fz_label: @V += @N; if (@V < @N) goto fz_label;", "goto fz_in; { int fz_o = @N; fz_in: @V = fz_o; }",
    "threadgroup @T fz_tg[@C]; fz_tg[@V] = @N; threadgroup_barrier(mem_flags::mem_threadgroup); @V = fz_tg[@C - 1];",
    "threadgroup_barrier(mem_flags::mem_device);", "if (@V & 1) threadgroup_barrier(mem_flags::mem_threadgroup);",
    "simdgroup_barrier(mem_flags::mem_none);", "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);",
    "@V = simd_sum(@V);", "@V = simd_shuffle_down(@V, @C);", "@V = simd_shuffle(@V, @V);", "@V = simd_ballot(@V > @N) ? @V : @N;",
    "@V = quad_shuffle_xor(@V, 1);", "@V = simd_prefix_exclusive_sum(@V);", "while (simd_any(@V > @N)) --@V;",
    "auto fz_l = [&](auto v) { @V += v; return v @V v; }; @V = fz_l(@N);",
    "auto fz_l = [=]() mutable -> @T { return @V; }; fz_l();",
    "thread auto &fz_r = @V; fz_r = @N;", "thread auto *fz_p = &@V; fz_p[@C] = @N;", "device auto *fz_d = &@V[@N]; *fz_d = fz_d[-1];",
    "device char *fz_c = (device char *)@V; fz_c[@N] = @N;", "*(device @T *)(@V + @N) = @T(@N);", "*(device int *)@Nul = @N;",
    "atomic_store_explicit((device atomic_int *)@V + @C, @N, memory_order_relaxed);",
    "atomic_fetch_max_explicit((device atomic_uint *)(@V + @N), @V, memory_order_relaxed);",
    "@V = atomic_load_explicit((threadgroup atomic_int *)@V, memory_order_relaxed);",
    "simdgroup_float8x8 fz_m(@N); simdgroup_load(fz_m, @V, @N); simdgroup_multiply(fz_m, fz_m, fz_m); simdgroup_store(fz_m, @V + @N, @C);",
    "float4x4 fz_m = float4x4(@N) * float4x4(@V); @V = fz_m[@V][@C & 3];", "@V = as_type<@T>(@V);", "@V = @T(@V) / @T(@N);", "@V = @V % @N;",
    "@V = @V << @V;", "@V = select(@V, @T(@N), @V > @N);", "@V = metal::@V(@V);", "static const constant @T fz_t[] = {@N, @N}; @V = fz_t[@V];",
    "struct { @T a; uchar b[@C]; } fz_st; fz_st.b[@V] = @N; @V = fz_st.a;", "union { @T a; uint b; } fz_un = {@T(@N)}; @V = fz_un.b;",
    "volatile int fz_v = @N; @V = fz_v;", "int fz_big[70000]; fz_big[@V] = 1; @V = fz_big[@N];", "assert(@V > @N);", "return @V;", "discard_fragment();",
    "os_log_default.log(\"%d %s\", @V);", "printf(\"%d\", @V);", "__builtin_trap();", "__builtin_unreachable();", "throw @N;", "delete &@V;",
    "try { @V = @N; } catch (...) {}", "long fz_w = long(@V) * @N; @V = fz_w >> 32;", "half fz_h = half(@V); @V = fz_h * fz_h + @N;",
    "static_assert(@N > @N);", "using namespace fz;", "typedef @T @V;", "constexpr auto fz_ce = @N @V @N; @V = fz_ce;",
    "constexpr int fz_n = @C; int fz_vl[fz_n * fz_n] = {@N}; for (auto v : fz_vl) @V += v;", "int fz_vla[@V]; fz_vla[0] = @N;",
)  # fmt: skip
