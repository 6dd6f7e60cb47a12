// Operations across a SIMD-group, atomics and SIMD-group matrices.
#include "tests/unit/host_msl/Run.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

using namespace triton_metal;
using namespace triton_metal::test;

namespace {

TEST(Shuffles, MoveEveryType) {
  for (const char *type : {"float", "int", "uint", "half", "short", "ushort", "char", "uchar",
                           "bfloat", "long", "ulong", "float2", "half4", "uint3"}) {
    std::vector<uint32_t> bad(1);
    runKernel("device atomic_uint *bad", "typedef " + std::string(type) + R"( T;
T x = T(lane + 3);
auto fail = [&](bool ok) { if (!ok) atomic_fetch_add_explicit(bad, 1, memory_order_relaxed); };
fail(same(simd_shuffle(x, ushort((lane * 7) & 31)), T(((lane * 7) & 31) + 3)));
fail(same(simd_shuffle_xor(x, 5), T((lane ^ 5) + 3)));
fail(same(simd_shuffle_up(x, 3), T((lane >= 3 ? lane - 3 : lane) + 3)));
fail(same(simd_shuffle_down(x, 30), T((lane < 2 ? lane + 30 : lane) + 3)));
fail(same(simd_shuffle_rotate_up(x, 1), T(((lane + 31) & 31) + 3)));
fail(same(simd_shuffle_rotate_down(x, 9), T(((lane + 9) & 31) + 3)));
fail(same(simd_broadcast(x, 11), T(14)));
fail(same(simd_broadcast_first(x), T(3)));
fail(same(simd_shuffle_and_fill_up(x, T(100), 2), lane >= 2 ? T(lane + 1) : T(100)));
fail(same(simd_shuffle_and_fill_down(x, T(100), 4), lane < 28 ? T(lane + 7) : T(100)));
fail(same(quad_shuffle(x, 2), T((lane & ~3u) + 5)));
fail(same(quad_broadcast(x, 0), T((lane & ~3u) + 3)));
fail(same(quad_broadcast_first(x), T((lane & ~3u) + 3)));
fail(same(quad_shuffle_up(x, 1), T((lane & 3) ? lane + 2 : lane + 3)));
fail(same(quad_shuffle_down(x, 2), T((lane & 3) < 2 ? lane + 5 : lane + 3)));
fail(same(quad_shuffle_rotate_up(x, 1), T((lane & ~3u) + ((lane + 3) & 3) + 3)));
fail(same(quad_shuffle_rotate_down(x, 3), T((lane & ~3u) + ((lane + 3) & 3) + 3)));
T f = T(lane + 50); // of 0 1 2 3 and 50 51 52 53: 52 53 0 1, and 2 3 50 51
fail(same(quad_shuffle_and_fill_up(x, f, 2), (lane & 3) >= 2 ? T(lane + 1) : T(lane + 52)));
fail(same(quad_shuffle_and_fill_down(x, f, 2), (lane & 3) < 2 ? T(lane + 5) : T(lane + 48)));
fail(same(quad_shuffle_and_fill_up(x, f, 1, 2), (lane & 1) ? T(lane + 2) : T(lane + 51)));
)",
              {out(bad)}, 64, R"(
template <typename T> bool same(T a, T b) { return a == b; }
template <typename T, int N> bool same(vec<T, N> a, vec<T, N> b) { return all(a == b); }
)");
    EXPECT_EQ(bad[0], 0u) << type;
  }
}

TEST(Reductions, TakeActiveThreadsOnly) {
  std::vector<float> f(32);
  std::vector<int32_t> s(32), scans(64);
  std::vector<uint32_t> votes(8);
  runKernel("device float *f, device int *s, device int *scans, device uint *votes", R"(
f[i] = -1;
s[i] = -1;
if (lane % 3 == 1) {
  f[i] = simd_sum(float(lane)) + 1000 * float(simd_max(half(lane))) + simd_min(float(lane)) * 0.5f;
  s[i] = simd_sum(int(lane)) * 100 + simd_min(-short(lane));
}
scans[i] = simd_prefix_inclusive_sum(int(lane)) - simd_prefix_exclusive_sum(int(lane));
scans[32 + i] = simd_prefix_exclusive_sum(uint(lane));
uint odd = 0;
if (lane & 1) odd = uint(ulong(simd_active_threads_mask()));
if (lane == 1) votes[0] = odd;
uint all_odd = simd_all((lane & 1) == 0), any_odd = simd_any(lane == 31), or_all = simd_or(1u << (lane / 2)), x = simd_xor(lane), a = simd_and(uchar(lane | 0xf0));
uint ballot = uint(ulong(simd_ballot(lane < 4)));
bool first = simd_is_first();
if (lane == 0) { votes[1] = all_odd; votes[2] = any_odd; votes[3] = or_all; votes[4] = x; votes[5] = a; votes[6] = ballot; }
if (first) votes[7] = lane + 1;
)",
            {out(f), out(s), out(scans), out(votes)}, 32);
  int sum = 0;
  for (int lane = 1; lane < 32; lane += 3)
    sum += lane;
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(f[lane], lane % 3 == 1 ? sum + 31000.5f : -1);
    EXPECT_EQ(s[lane], lane % 3 == 1 ? sum * 100 - 31 : -1);
    EXPECT_EQ(scans[lane], lane);
    EXPECT_EQ(scans[32 + lane], lane * (lane - 1) / 2);
  }
  EXPECT_EQ(votes, (std::vector<uint32_t>{0xaaaaaaaau, 0, 1, 0xffff, 0, 0xf0, 0xf, 1}));
}

TEST(Quads, ReduceFourThreads) {
  std::vector<int32_t> o(32);
  runKernel(
      "device int *o",
      "o[i] = quad_sum(int(lane)) + 1000 * quad_max(int(lane)) + 100000 * quad_all(lane < 8);",
      {out(o)}, 32);
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(o[lane], (lane & ~3) * 4 + 6 + 1000 * (lane | 3) + 100000 * (lane < 8));
}

TEST(Quads, ReduceTheActiveThreads) {
  // Each quad-group has other threads that are active: the bits of its number.
  std::vector<int32_t> o(64), most(64);
  runKernel("device int *o, device int *most",
            "int quad = i >> 2; o[i] = -1; if (quad >> (lane & 3) & 1) {"
            " o[i] = quad_sum(1 << (lane & 3)) + 16 * quad_product(2) + 1000 * quad_xor(lane & 3);"
            " most[i] = quad_max(-int(lane & 3)) * 10 - quad_and(lane & 3); }",
            {out(o), out(most)}, 64);
  for (int i = 0; i < 64; ++i) {
    int active = i >> 2, mixed = 0, all = 3, first = 4;
    for (int lane = 0; lane < 4; ++lane)
      if (active >> lane & 1) {
        mixed ^= lane, all &= lane;
        first = std::min(first, lane);
      }
    bool isActive = active >> (i & 3) & 1;
    EXPECT_EQ(o[i], isActive ? active + (16 << std::popcount(unsigned(active))) + 1000 * mixed : -1)
        << i;
    EXPECT_EQ(most[i], isActive ? -10 * first - all : 0) << i;
  }
}

/// The prefix scans of four and of 32 lanes, of which some may be absent, against a loop.
template <typename T>
void scanTest(const std::string &type, const std::string &number, uint32_t absent) {
  constexpr uint32_t lanes = 32;
  std::vector<T> o(8 * lanes);
  runKernel("device " + type + " *o", R"(
if ((ABSENT >> lane & 1) == 0) {
  T x = T(lane % 5) + T(1), y = T(lane % 3 == 1 ? 2 : 1);
  o[lane] = simd_prefix_inclusive_sum(x);
  o[32 + lane] = simd_prefix_exclusive_sum(x);
  o[64 + lane] = simd_prefix_inclusive_product(y);
  o[96 + lane] = simd_prefix_exclusive_product(y);
  o[128 + lane] = quad_prefix_inclusive_sum(x);
  o[160 + lane] = quad_prefix_exclusive_sum(x);
  o[192 + lane] = quad_prefix_inclusive_product(y);
  o[224 + lane] = quad_prefix_exclusive_product(y);
})",
            {out(o)}, lanes,
            "typedef " + number + " T;\n#define ABSENT " + std::to_string(absent) + "u\n", 32);
  for (uint32_t width : {lanes, 4u}) {
    const T *at = o.data() + (width == 4 ? 4 * lanes : 0);
    T sum = 0, product = 1;
    for (uint32_t lane = 0; lane != lanes; ++lane) {
      if (lane % width == 0) {
        sum = 0;
        product = 1;
      }
      if (absent >> lane & 1)
        continue;
      T x = T(lane % 5) + T(1), y = T(lane % 3 == 1 ? 2 : 1);
      EXPECT_EQ(at[lanes + lane], sum) << type << " " << width << " " << lane;
      EXPECT_EQ(at[3 * lanes + lane], product) << type << " " << width << " " << lane;
      sum += x;
      product *= y;
      EXPECT_EQ(at[lane], sum) << type << " " << width << " " << lane;
      EXPECT_EQ(at[2 * lanes + lane], product) << type << " " << width << " " << lane;
    }
  }
}

TEST(Scans, AgreeWithALoop) {
  for (uint32_t absent : {0u, 1u, 0x80000000u, 0x12345678u, 0xfffffff0u, 0x77777777u}) {
    scanTest<float>("float", "float", absent);
    scanTest<int32_t>("int", "int", absent);
    scanTest<uint32_t>("uint", "uint", absent);
    scanTest<float>("float", "half", absent);
    scanTest<int16_t>("short", "short", absent);
    scanTest<uint8_t>("uchar", "uchar", absent);
  }
}

TEST(Quads, Vote) {
  std::vector<uint32_t> o(32), first(32);
  runKernel("device uint *o, device uint *first", R"(
o[i] = uint(quad_ballot(lane % 3 == 0)) | uint(quad_any(lane == 9)) << 8 | uint(quad_all(lane < 10)) << 9;
if (lane % 5 != 0)
  first[i] = uint(quad_is_first()) | uint(quad_active_threads_mask()) << 8 | quad_broadcast_first(lane) << 16;
)",
            {out(o), out(first)}, 32);
  for (uint32_t lane = 0; lane != 32; ++lane) {
    uint32_t base = lane & ~3u, votes = 0, active = 0, least = 32;
    for (uint32_t k = 0; k != 4; ++k) {
      votes |= uint32_t((base + k) % 3 == 0) << k;
      if ((base + k) % 5 == 0)
        continue;
      active |= 1u << k;
      least = std::min(least, base + k);
    }
    EXPECT_EQ(o[lane], votes | uint32_t(base == 8) << 8 | uint32_t(base + 3 < 10) << 9) << lane;
    EXPECT_EQ(first[lane], lane % 5 == 0 ? 0u : uint32_t(lane == least) | active << 8 | least << 16)
        << lane;
  }
}

TEST(Atomics, CountEveryThread) {
  std::vector<int32_t> o = {0, 100, 0, 0, INT32_MAX, INT32_MIN, -1, 7};
  std::vector<float> f(2);
  std::vector<uint64_t> wide = {0, ~0ull};
  runKernel("device atomic_int *o, device float *f, device atomic_ulong *wide", R"(
atomic_fetch_add_explicit(&o[0], 1, memory_order_relaxed);
atomic_fetch_sub_explicit(o + 1, 2, memory_order_relaxed);
atomic_fetch_or_explicit((device atomic_uint *)o + 2, 1u << (i & 31), memory_order_relaxed);
atomic_fetch_xor_explicit(&o[3], int(i), memory_order_relaxed);
atomic_fetch_min_explicit(&o[4], int(i) - 5, memory_order_relaxed);
atomic_fetch_max_explicit(&o[5], int(i), memory_order_relaxed);
atomic_fetch_and_explicit(&o[6], ~(1 << (i & 3)), memory_order_relaxed);
atomic_fetch_add_explicit((device atomic<float> *)f, 0.5f, memory_order_relaxed);
device atomic_float *slot = (device atomic_float *)f + 1;
float old = atomic_load_explicit(slot, memory_order_relaxed);
while (!atomic_compare_exchange_weak_explicit(slot, &old, max(old, float(i)), memory_order_relaxed, memory_order_relaxed)) {}
if (i == 0) atomic_store_explicit(&o[7], atomic_exchange_explicit(&o[7], 3, memory_order_relaxed) + 1, memory_order_relaxed);
atomic_max_explicit(&wide[0], ulong(i) << 40, memory_order_relaxed);
atomic_min_explicit(&wide[1], ulong(i + 1) << 33, memory_order_relaxed);
)",
            {out(o), out(f), out(wide)}, 1000);
  EXPECT_EQ(o[0], 1000);
  EXPECT_EQ(o[1], 100 - 2000);
  EXPECT_EQ(o[2], -1);
  int32_t expected = 0;
  for (int32_t i = 0; i < 1000; ++i)
    expected ^= i;
  EXPECT_EQ(o[3], expected);
  EXPECT_EQ(o[4], -5);
  EXPECT_EQ(o[5], 999);
  EXPECT_EQ(o[6], -16);
  EXPECT_EQ(o[7], 8);
  EXPECT_EQ(f[0], 500.0f);
  EXPECT_EQ(f[1], 999.0f);
  EXPECT_EQ(wide, (std::vector<uint64_t>{999ull << 40, 1ull << 33}));
}

TEST(Atomics, OfThreadgroupMemory) {
  std::vector<uint32_t> histogram(8);
  runKernel("device atomic_uint *h", R"(
threadgroup atomic_uint bins[8];
if (local < 8) atomic_store_explicit(&bins[local], 0, memory_order_relaxed);
threadgroup_barrier(mem_flags::mem_threadgroup);
atomic_fetch_add_explicit(&bins[(i * 5) & 7], 1u, memory_order_relaxed);
threadgroup_barrier(mem_flags::mem_threadgroup);
if (local < 8) atomic_fetch_add_explicit(&h[local], atomic_load_explicit(&bins[local], memory_order_relaxed), memory_order_relaxed);
)",
            {out(histogram)}, 640);
  EXPECT_EQ(histogram, std::vector<uint32_t>(8, 80));
}

/// An 8x8 product of matrices inside larger arrays.
template <typename T> void matrixTest(const char *type, const std::string &space, bool transpose) {
  std::vector<float> a(16 * 20), b(16 * 20);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>((static_cast<int>(i * 7) % 23) - 11);
    b[i] = static_cast<float>((static_cast<int>(i * 5) % 19) - 9);
  }
  std::vector<float> c(16 * 20, -1), e(8 * 8);
  std::string t = transpose ? "true" : "false";
  std::string body = "typedef " + std::string(type) + " T;\n" + R"(
threadgroup T ta[320], tb[320];
for (uint k = lane; k < 320; k += 32) { ta[k] = T(a[k]); tb[k] = T(b[k]); }
simdgroup_barrier(mem_flags::mem_threadgroup);
simdgroup_matrix<T, 8, 8> x, y;
simdgroup_float8x8 z = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);
simdgroup_load(x, ta, 20, ulong2(4, 8));
simdgroup_load(y, tb + 20, 20, ulong2(8, 0), )" +
                     t + R"();
simdgroup_multiply_accumulate(z, x, y, z);
simdgroup_store(z, c, 20, ulong2(3, 5), )" +
                     t + R"();
simdgroup_float8x8 d = make_diagonal_simdgroup_matrix<float, 8, 8>(3.0f), p;
simdgroup_multiply(p, d, z);
simdgroup_store(p, e);
)";
  runKernel("device const float *a, device const float *b, device float *c, device float *e", body,
            {in(a), in(b), out(c), out(e)}, 32, "", 32);
  for (size_t row = 0; row < 8; ++row)
    for (size_t column = 0; column < 8; ++column) {
      float exact = 2;
      for (size_t k = 0; k < 8; ++k) {
        float y = transpose ? b[20 + column * 20 + 8 + k] : b[20 + k * 20 + 8 + column];
        exact += a[(8 + row) * 20 + 4 + k] * y;
      }
      size_t at = transpose ? (5 + column) * 20 + 3 + row : (5 + row) * 20 + 3 + column;
      ASSERT_EQ(c[at], exact) << type << " " << row << " " << column;
      ASSERT_EQ(e[row * 8 + column], 3 * exact);
    }
  EXPECT_EQ(std::count(c.begin(), c.end(), -1.0f) >= 256, true);
}

TEST(Matrices, MultiplyWhatTheyLoaded) {
  for (bool transpose : {false, true}) {
    matrixTest<float>("float", "threadgroup", transpose);
    matrixTest<float>("half", "threadgroup", transpose);
    matrixTest<float>("bfloat", "threadgroup", transpose);
  }
}

TEST(Matrices, ThreadElementsAreWhereMetalHasThem) {
  std::vector<float> o(64);
  runKernel("device float *o", R"(
simdgroup_float8x8 m;
m.thread_elements()[0] = lane * 2;
m.thread_elements().y = lane * 2 + 1;
simdgroup_store(m, o, 8);
)",
            {out(o)}, 32, "", 32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t row = (lane / 4 & 4) + (lane / 2) % 4, column = (lane / 4 & 2) * 2 + (lane % 2) * 2;
    EXPECT_EQ(o[row * 8 + column], lane * 2);
    EXPECT_EQ(o[row * 8 + column + 1], lane * 2 + 1);
  }
}

TEST(Matrices, RoundToTheTypeOfTheResult) {
  std::vector<float> o(64);
  runKernel("device float *o", R"(
simdgroup_half8x8 a = make_filled_simdgroup_matrix<half, 8, 8>(half(1)), b = make_diagonal_simdgroup_matrix<half, 8, 8>(half(0.0001f)), d;
simdgroup_multiply_accumulate(d, a, b, a);
simdgroup_float8x8 f;
f.thread_elements() = float2(d.thread_elements());
simdgroup_store(f, o, 8);
)",
            {out(o)}, 32, "", 32);
  for (float value : o)
    EXPECT_EQ(value, 1.0f);
}

} // namespace
