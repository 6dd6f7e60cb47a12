// Kernels written by hand, of every kind that the engine has to tell apart.
#include "Support.h"
#include <cmath>
#include <numeric>

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

const char *addIR = R"(
define void @add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %n, i32 %gid) {
  %in = icmp ult i32 %gid, 1000
  br i1 %in, label %do, label %end
do:
  %i = zext i32 %gid to i64
  %pa = getelementptr float, ptr addrspace(1) %a, i64 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i64 %i
  %pc = getelementptr float, ptr addrspace(1) %c, i64 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %z = fadd float %x, %y
  store float %z, ptr addrspace(1) %pc
  br label %end
end:
  ret void
}
)";

KernelInfo addInfo() {
  return kernelInfo("add", {buffer("a", 0, true), buffer("b", 1, true), buffer("c", 2),
                            position("n", Position::ThreadsPerGrid),
                            position("gid", Position::ThreadPositionInGrid)});
}

TEST(Execution, AddsWithAGuardThatCuts) {
  auto library = libraryOf(addIR, addInfo());
  std::vector<float> a(1000), b(1000), c(1000, -1);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 1000);
  EXPECT_EQ(run(*library, "add", {bindConst(a), bindConst(b), bind(c)}, {4, 1, 1}, {256, 1, 1}),
            "");
  for (int i = 0; i != 1000; ++i)
    ASSERT_EQ(c[i], 1000.0f + 2 * i) << i;
}

TEST(Execution, PartialSimdgroupsTouchNothing) {
  auto library = libraryOf(addIR, addInfo());
  std::vector<float> a(1000, 1), b(1000, 2), c(1000, -1);
  EXPECT_EQ(run(*library, "add", {bindConst(a), bindConst(b), bind(c)}, {3, 1, 1}, {45, 1, 1}), "");
  for (int i = 0; i != 1000; ++i)
    ASSERT_EQ(c[i], i < 135 ? 3.0f : -1.0f) << i;
}

TEST(Execution, GridInThreadsCutsTheLastGroups) {
  auto library = libraryOf(addIR, addInfo());
  std::vector<float> a(1000, 1), b(1000, 2), c(1000, -1);
  std::vector<BufferBinding> buffers{bindConst(a), bindConst(b), bind(c)};
  Dispatch dispatch;
  dispatch.threadsPerThreadgroup = {64, 1, 1};
  dispatch.gridThreads = std::array<uint32_t, 3>{150, 1, 1};
  dispatch.buffers = buffers;
  EXPECT_EQ(errorOf((*library->kernel("add"))->dispatch(dispatch)), "");
  for (int i = 0; i != 1000; ++i)
    ASSERT_EQ(c[i], i < 150 ? 3.0f : -1.0f) << i;
}

TEST(Execution, LimitsAreErrors) {
  auto library = libraryOf(addIR, addInfo());
  std::vector<float> a(1000, 1), b(1000, 2), c(1000, -1);
  std::vector<BufferBinding> all{bindConst(a), bindConst(b), bind(c)};
  EXPECT_EQ(run(*library, "add", all, {1, 1, 1}, {1025, 1, 1}),
            "[dispatch of 'add'] a threadgroup can have at most 1024 threads, but has 1025x1x1");
  EXPECT_EQ(run(*library, "add", {bindConst(a), bindConst(b)}, {1, 1, 1}, {32, 1, 1}),
            "[dispatch of 'add'] 'c' (buffer 2) is missing");
  EXPECT_EQ(run(*library, "add", {bindConst(a), bindConst(b), bindConst(c)}, {1, 1, 1}, {32, 1, 1}),
            "[dispatch of 'add'] the kernel writes 'c' (buffer 2), which is bound read-only");
  std::vector<char> small(2);
  EXPECT_EQ(run(*library, "add", {bindConst(a), bindConst(b), bind(small)}, {1, 1, 1}, {32, 1, 1}),
            "[dispatch of 'add'] 'c' (buffer 2) needs at least 4 bytes, but has 2");
  EXPECT_EQ(run(*library, "sub", all, {1, 1, 1}, {32, 1, 1}),
            "the library has no kernel 'sub'; it has: add");
}

TEST(Execution, BoundsAreChecked) {
  LibraryOptions options;
  options.checks.bounds = true;
  auto library = libraryOf(addIR, addInfo(), options);
  std::vector<float> a(1000, 1), b(900, 2), c(1000, -1);
  std::string error =
      run(*library, "add", {bindConst(a), bindConst(b), bind(c)}, {4, 1, 1}, {256, 1, 1});
  EXPECT_NE(
      error.find(
          "a load of 4 bytes at byte 3600 of 'b' (buffer 1), element 900, which has 3600 bytes"),
      std::string::npos)
      << error;
}

TEST(Execution, ChecksKnowBuffersAndAlignment) {
  // A pointer that runs from its own buffer into the next one, and one that is not aligned.
  const char *ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %o, ptr addrspace(2) %s, i32 %gid) {
  %stride = load i32, ptr addrspace(2) %s
  %at = mul i32 %gid, %stride
  %i = zext i32 %at to i64
  %p = getelementptr i8, ptr addrspace(1) %a, i64 %i
  %x = load i32, ptr addrspace(1) %p
  %g = zext i32 %gid to i64
  %q = getelementptr i32, ptr addrspace(1) %o, i64 %g
  store i32 %x, ptr addrspace(1) %q
  ret void
}
)";
  LibraryOptions options;
  options.checks.bounds = true;
  auto library = libraryOf(ir,
                           kernelInfo("k", {buffer("a", 0, true), buffer("o", 1),
                                            buffer("s", 2, true, 4, AddressSpace::Constant),
                                            position("gid", Position::ThreadPositionInGrid)}),
                           options);
  std::vector<uint32_t> memory(128, 5), stride{4};
  BufferBinding first{memory.data(), 256, false}, second{memory.data() + 64, 256, true};
  EXPECT_EQ(run(*library, "k", {first, second, bindConst(stride)}, {1, 1, 1}, {64, 1, 1}), "");
  stride[0] = 8;
  std::string error = run(*library, "k", {first, second, bindConst(stride)}, {1, 1, 1}, {64, 1, 1});
  EXPECT_NE(error.find("a load of 4 bytes at byte 256 of 'a' (buffer 0), element 64, which has 256 "
                       "bytes (threadgroup 0,0,0, SIMD-group 1, lane 0, thread 32,0,0, in the grid "
                       "32,0,0)"),
            std::string::npos)
      << error;
  stride[0] = 2;
  error = run(*library, "k", {first, second, bindConst(stride)}, {1, 1, 1}, {64, 1, 1});
  EXPECT_NE(error.find("which is not aligned for its type"), std::string::npos) << error;
  EXPECT_NE(error.find("lane 1, thread 1,0,0"), std::string::npos) << error;
}

TEST(Execution, IndicesThatWrapAroundAreFollowed) {
  // 32-bit indices that wrap between two lanes: the wide access would be wrong.
  const char *ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %o, ptr addrspace(2) %s, i32 %gid) {
  %first = load i32, ptr addrspace(2) %s
  %at = add i32 %gid, %first
  %i = zext i32 %at to i64
  %back = sub i64 %i, 4294967280
  %small = icmp ult i64 %i, 2147483648
  %j = select i1 %small, i64 %i, i64 %back
  %p = getelementptr i32, ptr addrspace(1) %a, i64 %j
  %x = load i32, ptr addrspace(1) %p
  %w = zext i32 %at to i64
  %w2 = and i64 %w, 63
  %q = getelementptr i32, ptr addrspace(1) %o, i64 %w2
  store i32 %x, ptr addrspace(1) %q
  ret void
}
)";
  auto library = libraryOf(ir, kernelInfo("k", {buffer("a", 0, true), buffer("o", 1),
                                                buffer("s", 2, true, 4, AddressSpace::Constant),
                                                position("gid", Position::ThreadPositionInGrid)}));
  std::vector<uint32_t> a(64), o(64), first{0xfffffff0};
  std::iota(a.begin(), a.end(), 100);
  EXPECT_EQ(run(*library, "k", {bindConst(a), bind(o), bindConst(first)}, {1, 1, 1}, {32, 1, 1}),
            "");
  for (uint32_t lane = 0; lane != 32; ++lane)
    EXPECT_EQ(o[(lane + 0xfffffff0) & 63], lane < 16 ? a[lane] : a[lane - 16]) << lane;
}

TEST(Execution, CountsWhatActiveLanesDo) {
  LibraryOptions options;
  options.count = true;
  auto library = libraryOf(addIR, addInfo(), options);
  std::vector<float> a(1032, 1), c(1032, -1);
  BufferBinding first{a.data() + 3, 4000, false}; // lines count from where the buffer begins
  Counters counters;
  EXPECT_EQ(run(*library, "add", {first, first, bind(c)}, {4, 1, 1}, {256, 1, 1}, &counters), "");
  EXPECT_EQ(counters[Counters::DeviceBytesRead], 8000u);
  EXPECT_EQ(counters[Counters::DeviceBytesWritten], 4000u);
  EXPECT_EQ(counters[Counters::DeviceLinesRead], 64u);
  EXPECT_EQ(counters[Counters::F32Add], 1000u);
  EXPECT_EQ(counters[Counters::DeviceAccesses4], 3000u);
  EXPECT_EQ(counters[Counters::Threads], 1024u);
  EXPECT_EQ(counters[Counters::Simdgroups], 32u);
  EXPECT_EQ(counters[Counters::Threadgroups], 4u);
}

TEST(Execution, CountsAnExtremeOfFloatsAsOneOperation) {
  const char *ir = R"(
define void @k(ptr addrspace(1) %a, i32 %tid) {
  %px = getelementptr float, ptr addrspace(1) %a, i32 %tid
  %py = getelementptr float, ptr addrspace(1) %px, i32 32
  %x = load float, ptr addrspace(1) %px
  %y = load float, ptr addrspace(1) %py
  %less = fcmp olt float %x, %y
  %nan = fcmp uno float %x, 0.0
  %either = or i1 %less, %nan
  %max = select i1 %either, float %y, float %x
  %alone = fcmp uno float %max, 0.0
  %result = select i1 %alone, float 1.0, float %max
  store float %result, ptr addrspace(1) %px
  ret void
})";
  LibraryOptions options;
  options.count = true;
  auto library = libraryOf(
      ir, kernelInfo("k", {buffer("a", 0), position("tid", Position::ThreadPositionInThreadgroup)}),
      options);
  std::vector<float> a(64, 2);
  Counters counters;
  EXPECT_EQ(run(*library, "k", {bind(a)}, {1, 1, 1}, {32, 1, 1}, &counters), "");
  EXPECT_EQ(a[0], 2);
  EXPECT_EQ(counters[Counters::F32Other], 64u);
  EXPECT_EQ(counters[Counters::OptimizedF32Other], 64u);
}

// What arithmetic does with its operands and its result by itself is counted before optimisations
// alone.
TEST(Execution, CountsNoConversionsThatArithmeticDoes) {
  const char *ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, i32 %tid) {
  %pa = getelementptr half, ptr addrspace(1) %a, i32 %tid
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %tid
  %h = load half, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %x = fpext half %h to float
  %minus = fneg float %y
  %sum = fadd float %x, %minus
  %product = fmul float %sum, %x
  %rounded = fptrunc float %product to half
  store half %rounded, ptr addrspace(1) %pa
  store float %sum, ptr addrspace(1) %pb
  ret void
})";
  // A number that is stored as it is needs its conversion, and so does a result that is stored in
  // both lengths.
  const char *converted = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, i32 %tid) {
  %pa = getelementptr half, ptr addrspace(1) %a, i32 %tid
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %tid
  %h = load half, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %x = fpext half %h to float
  %sum = fadd float %y, %y
  %rounded = fptrunc float %sum to half
  store half %rounded, ptr addrspace(1) %pa
  %next = getelementptr float, ptr addrspace(1) %pb, i32 32
  store float %sum, ptr addrspace(1) %pb
  store float %x, ptr addrspace(1) %next
  ret void
})";
  LibraryOptions options;
  options.count = true;
  for (auto [text, plain, optimized] :
       {std::tuple(ir, 3 * 32u, 0u), {converted, 2 * 32u, 2 * 32u}}) {
    auto library =
        libraryOf(text,
                  kernelInfo("k", {buffer("a", 0), buffer("b", 1),
                                   position("tid", Position::ThreadPositionInThreadgroup)}),
                  options);
    std::vector<uint16_t> a(32, 0x3c00);
    std::vector<float> b(64, 2);
    Counters counters;
    EXPECT_EQ(run(*library, "k", {bind(a), bind(b)}, {1, 1, 1}, {32, 1, 1}, &counters), "");
    auto others = [&](Counters::Index f32, Counters::Index f16) {
      return counters[f32] + counters[f16];
    };
    EXPECT_EQ(others(Counters::F32Other, Counters::F16Other), plain);
    EXPECT_EQ(others(Counters::OptimizedF32Other, Counters::OptimizedF16Other), optimized);
  }
}

// A register's upper half is a register of 16 bits; a shift to anywhere else is an operation.
TEST(Execution, CountsNoShiftToTheUpperHalf) {
  for (auto [amount, shifts] : {std::pair(16, 0u), {15, 32u}}) {
    std::string ir = R"(
define void @k(ptr addrspace(1) %a, i32 %tid) {
  %pa = getelementptr i32, ptr addrspace(1) %a, i32 %tid
  %x = load i32, ptr addrspace(1) %pa
  %low = trunc i32 %x to i16
  %shifted = lshr i32 %x, )" +
                     std::to_string(amount) +
                     R"(
  %high = trunc i32 %shifted to i16
  %next = getelementptr i16, ptr addrspace(1) %pa, i32 1
  store i16 %high, ptr addrspace(1) %pa
  store i16 %low, ptr addrspace(1) %next
  ret void
})";
    LibraryOptions options;
    options.count = true;
    auto library = libraryOf(
        ir.c_str(),
        kernelInfo("k", {buffer("a", 0), position("tid", Position::ThreadPositionInThreadgroup)}),
        options);
    std::vector<uint32_t> a(32, 0x12345678);
    Counters counters;
    EXPECT_EQ(run(*library, "k", {bind(a)}, {1, 1, 1}, {32, 1, 1}, &counters), "");
    EXPECT_EQ(counters[Counters::OptimizedIntOther], shifts);
  }
}

const char *sumIR = R"(
declare float @__tm_simd_sum_f32(float) convergent
declare void @__tm_threadgroup_barrier(i32) convergent
declare ptr addrspace(3) @__tm_threadgroup_alloc(i32, i64, i64)
define void @sum(ptr addrspace(1) %a, ptr addrspace(1) %o, i32 %n, i32 %tid, i32 %sg, i32 %lane, i32 %size, i32 %group) {
entry:
  %s = call ptr addrspace(3) @__tm_threadgroup_alloc(i32 0, i64 128, i64 4)
  %begin = mul i32 %group, 1000
  br label %head
head:
  %i = phi i32 [ %tid, %entry ], [ %next, %body ]
  %acc = phi float [ 0.0, %entry ], [ %acc1, %body ]
  %more = icmp ult i32 %i, 1000
  br i1 %more, label %body, label %done
body:
  %at = add i32 %begin, %i
  %wide = zext i32 %at to i64
  %p = getelementptr float, ptr addrspace(1) %a, i64 %wide
  %x = load float, ptr addrspace(1) %p
  %acc1 = fadd float %acc, %x
  %next = add i32 %i, %size
  br label %head
done:
  %r = call float @__tm_simd_sum_f32(float %acc)
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %put, label %meet
put:
  %w = zext i32 %sg to i64
  %q = getelementptr float, ptr addrspace(3) %s, i64 %w
  store float %r, ptr addrspace(3) %q
  br label %meet
meet:
  call void @__tm_threadgroup_barrier(i32 2)
  %zero = icmp eq i32 %tid, 0
  br i1 %zero, label %total, label %end
total:
  %sgs = lshr i32 %size, 5
  br label %loop
loop:
  %j = phi i32 [ 0, %total ], [ %j1, %loop ]
  %t = phi float [ 0.0, %total ], [ %t1, %loop ]
  %jw = zext i32 %j to i64
  %jp = getelementptr float, ptr addrspace(3) %s, i64 %jw
  %y = load float, ptr addrspace(3) %jp
  %t1 = fadd float %t, %y
  %j1 = add i32 %j, 1
  %again = icmp ult i32 %j1, %sgs
  br i1 %again, label %loop, label %write
write:
  %gw = zext i32 %group to i64
  %op = getelementptr float, ptr addrspace(1) %o, i64 %gw
  store float %t1, ptr addrspace(1) %op
  br label %end
end:
  ret void
}
)";

KernelInfo sumInfo() {
  return kernelInfo("sum",
                    {buffer("a", 0, true), buffer("o", 1), position("n", Position::ThreadsPerGrid),
                     position("tid", Position::ThreadIndexInThreadgroup),
                     position("sg", Position::SimdgroupIndexInThreadgroup),
                     position("lane", Position::ThreadIndexInSimdgroup),
                     position("size", Position::ThreadsPerThreadgroup),
                     position("group", Position::ThreadgroupPositionInGrid)});
}

TEST(Execution, ReducesAcrossSimdgroups) {
  auto library = libraryOf(sumIR, sumInfo());
  std::vector<float> a(5000), o(5, -1);
  for (int i = 0; i != 5000; ++i)
    a[i] = i % 17;
  for (uint32_t size : {32u, 64u, 256u, 1024u})
    for (std::optional<uint64_t> seed : {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
      std::fill(o.begin(), o.end(), -1);
      EXPECT_EQ(
          run(*library, "sum", {bindConst(a), bind(o)}, {5, 1, 1}, {size, 1, 1}, nullptr, seed),
          "");
      for (int g = 0; g != 5; ++g)
        EXPECT_EQ(o[g], std::accumulate(a.begin() + 1000 * g, a.begin() + 1000 * (g + 1), 0.0f))
            << g << " size " << size;
    }
}

TEST(Execution, CountsBarriersOnceForAThreadgroup) {
  LibraryOptions options;
  options.count = true;
  auto library = libraryOf(sumIR, sumInfo(), options);
  std::vector<float> a(5000), o(5);
  Counters counters;
  EXPECT_EQ(run(*library, "sum", {bindConst(a), bind(o)}, {5, 1, 1}, {256, 1, 1}, &counters), "");
  EXPECT_EQ(counters[Counters::ThreadgroupBarriers], 5u);
  EXPECT_EQ(counters[Counters::SimdReductions], 40u);
  EXPECT_EQ(counters[Counters::DeviceBytesRead], 20000u);
  EXPECT_EQ(counters[Counters::ThreadgroupBytesWritten], 4u * 8 * 5);
}

TEST(Execution, DivergentBarriersAreReported) {
  const char *ir = R"(
declare void @__tm_threadgroup_barrier(i32) convergent
define void @k(ptr addrspace(1) %o, i32 %tid, i32 %limit) {
  %c = icmp ult i32 %tid, %limit
  br i1 %c, label %a, label %b
a:
  %p = getelementptr float, ptr addrspace(1) %o, i32 %tid
  store float 1.0, ptr addrspace(1) %p
  call void @__tm_threadgroup_barrier(i32 1)
  store float 2.0, ptr addrspace(1) %p
  br label %b
b:
  ret void
}
)";
  KernelInfo info =
      kernelInfo("k", {buffer("o", 0), position("tid", Position::ThreadIndexInThreadgroup),
                       position("limit", Position::ThreadgroupsPerGrid)});
  LibraryOptions options;
  options.checks.divergence = true;
  auto library = libraryOf(ir, info, options);
  std::vector<float> o(64);
  std::string error = run(*library, "k", {bind(o)}, {16, 1, 1}, {32, 1, 1});
  EXPECT_NE(error.find("not all threads of the SIMD-group come to this threadgroup barrier"),
            std::string::npos)
      << error;
  error = run(*library, "k", {bind(o)}, {32, 1, 1}, {64, 1, 1});
  EXPECT_NE(error.find("1 of 2 SIMD-groups wait at a barrier"), std::string::npos) << error;
  EXPECT_EQ(run(*library, "k", {bind(o)}, {64, 1, 1}, {64, 1, 1}), "");

  // Without the check, SIMD-groups wait as a whole, for those that have not ended.
  auto unchecked = libraryOf(ir, info);
  EXPECT_EQ(run(*unchecked, "k", {bind(o)}, {16, 1, 1}, {32, 1, 1}), "");
  EXPECT_EQ(run(*unchecked, "k", {bind(o)}, {32, 1, 1}, {64, 1, 1}), "");
  EXPECT_EQ(run(*unchecked, "k", {bind(o)}, {40, 1, 1}, {64, 1, 1}), "");
  EXPECT_EQ(o[39], 2);
}

TEST(Execution, ShufflesAndScans) {
  const char *ir = R"(
declare i32 @__tm_simd_shuffle_u32(i32, i32) convergent
declare i64 @__tm_simd_shuffle_u64(i64, i32) convergent
declare i32 @__tm_simd_inclusive_sum_i32(i32) convergent
declare i32 @__tm_simd_exclusive_sum_i32(i32) convergent
declare float @__tm_simd_max_f32(float) convergent
declare i64 @__tm_simd_ballot(i32) convergent
define void @k(ptr addrspace(1) %o, i32 %lane, i32 %group) {
  %sq = mul i32 %lane, %lane
  %x = xor i32 %lane, 5
  %s1 = call i32 @__tm_simd_shuffle_u32(i32 %sq, i32 %x)
  %d = mul i32 %sq, 7
  %dd = and i32 %d, 31
  %s2 = call i32 @__tm_simd_shuffle_u32(i32 %sq, i32 %dd)
  %s3 = call i32 @__tm_simd_shuffle_u32(i32 %sq, i32 %group)
  %w = zext i32 %sq to i64
  %w1 = mul i64 %w, 4294967297
  %s4l = call i64 @__tm_simd_shuffle_u64(i64 %w1, i32 %x)
  %s4h = lshr i64 %s4l, 32
  %s4 = trunc i64 %s4h to i32
  %s5 = call i32 @__tm_simd_inclusive_sum_i32(i32 %lane)
  %s6 = call i32 @__tm_simd_exclusive_sum_i32(i32 %lane)
  %f = uitofp i32 %x to float
  %fm = call float @__tm_simd_max_f32(float %f)
  %s7 = fptosi float %fm to i32
  %odd = and i32 %lane, 1
  %bal = call i64 @__tm_simd_ballot(i32 %odd)
  %s8 = trunc i64 %bal to i32
  %base = mul i32 %lane, 8
  %b0 = zext i32 %base to i64
  %p0 = getelementptr i32, ptr addrspace(1) %o, i64 %b0
  store i32 %s1, ptr addrspace(1) %p0
  %p1 = getelementptr i32, ptr addrspace(1) %p0, i64 1
  store i32 %s2, ptr addrspace(1) %p1
  %p2 = getelementptr i32, ptr addrspace(1) %p0, i64 2
  store i32 %s3, ptr addrspace(1) %p2
  %p3 = getelementptr i32, ptr addrspace(1) %p0, i64 3
  store i32 %s4, ptr addrspace(1) %p3
  %p4 = getelementptr i32, ptr addrspace(1) %p0, i64 4
  store i32 %s5, ptr addrspace(1) %p4
  %p5 = getelementptr i32, ptr addrspace(1) %p0, i64 5
  store i32 %s6, ptr addrspace(1) %p5
  %p6 = getelementptr i32, ptr addrspace(1) %p0, i64 6
  store i32 %s7, ptr addrspace(1) %p6
  %p7 = getelementptr i32, ptr addrspace(1) %p0, i64 7
  store i32 %s8, ptr addrspace(1) %p7
  ret void
}
)";
  auto library = libraryOf(
      ir, kernelInfo("k", {buffer("o", 0), position("lane", Position::ThreadIndexInSimdgroup),
                           position("group", Position::ThreadgroupsPerGrid)}));
  std::vector<uint32_t> o(256);
  EXPECT_EQ(run(*library, "k", {bind(o)}, {1, 1, 1}, {32, 1, 1}), "");
  for (uint32_t l = 0; l != 32; ++l) {
    EXPECT_EQ(o[8 * l], (l ^ 5) * (l ^ 5));
    uint32_t from = l * l * 7 & 31;
    EXPECT_EQ(o[8 * l + 1], from * from);
    EXPECT_EQ(o[8 * l + 2], 1u);
    EXPECT_EQ(o[8 * l + 3], (l ^ 5) * (l ^ 5));
    EXPECT_EQ(o[8 * l + 4], l * (l + 1) / 2);
    EXPECT_EQ(o[8 * l + 5], l * (l - 1) / 2);
    EXPECT_EQ(o[8 * l + 6], 31u);
    EXPECT_EQ(o[8 * l + 7], 0xaaaaaaaau);
  }
}

TEST(Execution, MultipliesMatrices) {
  const char *ir = R"(
declare <2 x float> @__tm_simdgroup_mma(<2 x float>, <2 x float>, <2 x float>) convergent
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, ptr addrspace(2) %s, i32 %lane) {
  %stride = load i32, ptr addrspace(2) %s
  %l4 = lshr i32 %lane, 2
  %r0 = and i32 %l4, 4
  %l2 = lshr i32 %lane, 1
  %r1 = and i32 %l2, 3
  %row = add i32 %r0, %r1
  %c0 = and i32 %l4, 2
  %c1 = shl i32 %c0, 1
  %o0 = and i32 %lane, 1
  %o1 = shl i32 %o0, 1
  %col = add i32 %c1, %o1
  %ro = mul i32 %row, %stride
  %at = add i32 %ro, %col
  %i = sext i32 %at to i64
  %pa = getelementptr float, ptr addrspace(1) %a, i64 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i64 %i
  %pc = getelementptr float, ptr addrspace(1) %c, i64 %i
  %x = load <2 x float>, ptr addrspace(1) %pa, align 4
  %y = load <2 x float>, ptr addrspace(1) %pb, align 4
  %z = load <2 x float>, ptr addrspace(1) %pc, align 4
  %d = call <2 x float> @__tm_simdgroup_mma(<2 x float> %x, <2 x float> %y, <2 x float> %z)
  store <2 x float> %d, ptr addrspace(1) %pc, align 4
  ret void
}
)";
  ParameterInfo stride = buffer("stride", 3, true, 4, AddressSpace::Constant);
  stride.isReference = true;
  auto library =
      libraryOf(ir, kernelInfo("k", {buffer("a", 0, true), buffer("b", 1, true), buffer("c", 2),
                                     stride, position("lane", Position::ThreadIndexInSimdgroup)}));
  for (uint32_t width : {8u, 11u, 64u}) {
    std::vector<float> a(8 * width), b(8 * width), c(8 * width, 1.5f), expected = c;
    std::vector<uint32_t> strides{width};
    for (uint32_t i = 0; i != a.size(); ++i) {
      a[i] = 0.1f * (i % 17) - 0.7f;
      b[i] = 0.3f * (i % 13) - 1.9f;
    }
    for (uint32_t row = 0; row != 8; ++row)
      for (uint32_t column = 0; column != 8; ++column)
        for (uint32_t k = 0; k != 8; ++k)
          expected[row * width + column] =
              std::fma(a[row * width + k], b[k * width + column], expected[row * width + column]);
    EXPECT_EQ(run(*library, "k", {bindConst(a), bindConst(b), bind(c), bindConst(strides)},
                  {1, 1, 1}, {32, 1, 1}),
              "");
    EXPECT_EQ(c, expected) << width;
  }
  std::vector<float> small(64);
  EXPECT_EQ(
      run(*library, "k", {bindConst(small), bindConst(small), bind(small)}, {1, 1, 1}, {32, 1, 1}),
      "[dispatch of 'k'] 'stride' (buffer 3) is missing");
}

TEST(Execution, AtomicsGoLaneByLane) {
  const char *ir = R"(
define void @k(ptr addrspace(1) %o, i32 %gid) {
  %old = atomicrmw add ptr addrspace(1) %o, i32 1 monotonic
  %s = and i32 %gid, 3
  %s1 = add i32 %s, 1
  %i = zext i32 %s1 to i64
  %p = getelementptr i32, ptr addrspace(1) %o, i64 %i
  %old2 = atomicrmw umax ptr addrspace(1) %p, i32 %gid monotonic
  %j0 = add i32 %old, 8
  %j = zext i32 %j0 to i64
  %q = getelementptr i32, ptr addrspace(1) %o, i64 %j
  store i32 1, ptr addrspace(1) %q
  ret void
}
)";
  auto library = libraryOf(
      ir, kernelInfo("k", {buffer("o", 0), position("gid", Position::ThreadPositionInGrid)}));
  std::vector<uint32_t> o(8 + 4096);
  EXPECT_EQ(run(*library, "k", {bind(o)}, {32, 1, 1}, {128, 1, 1}), "");
  EXPECT_EQ(o[0], 4096u);
  for (int s = 0; s != 4; ++s)
    EXPECT_EQ(o[1 + s], 4092u + s);
  for (int i = 0; i != 4096; ++i)
    ASSERT_EQ(o[8 + i], 1u) << i;
}

TEST(Execution, SeedsOrderConflictsTheSameWayEachTime) {
  const char *ir = R"(
define void @k(ptr addrspace(1) %o, i32 %gid) {
  store i32 %gid, ptr addrspace(1) %o
  %s = and i32 %gid, 7
  %s1 = mul i32 %s, %s
  %i = zext i32 %s1 to i64
  %p = getelementptr i32, ptr addrspace(1) %o, i64 %i
  %p1 = getelementptr i32, ptr addrspace(1) %p, i64 1
  store i32 %gid, ptr addrspace(1) %p1
  ret void
}
)";
  auto library = libraryOf(
      ir, kernelInfo("k", {buffer("o", 0), position("gid", Position::ThreadPositionInGrid)}));
  std::vector<std::vector<uint32_t>> results;
  for (uint64_t seed : {1, 1, 2, 3}) {
    std::vector<uint32_t> o(64);
    EXPECT_EQ(run(*library, "k", {bind(o)}, {8, 1, 1}, {64, 1, 1}, nullptr, seed), "");
    results.push_back(o);
    EXPECT_LT(o[0], 512u);
    EXPECT_EQ(o[1] % 8, 0u);
    EXPECT_EQ(o[5] % 8, 2u);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
  EXPECT_NE(results[2], results[3]);
}

TEST(Execution, ReadsAndWritesVectorsOfFour) {
  const char *ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %o, i32 %gid, i32 %n) {
  %c = icmp ult i32 %gid, %n
  br i1 %c, label %do, label %end
do:
  %i = zext i32 %gid to i64
  %pa = getelementptr <4 x float>, ptr addrspace(1) %a, i64 %i
  %po = getelementptr <4 x float>, ptr addrspace(1) %o, i64 %i
  %x = load <4 x float>, ptr addrspace(1) %pa
  %y = shufflevector <4 x float> %x, <4 x float> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  store <4 x float> %y, ptr addrspace(1) %po
  br label %end
end:
  ret void
}
)";
  auto library = libraryOf(ir, kernelInfo("k", {buffer("a", 0, true, 16), buffer("o", 1, false, 16),
                                                position("gid", Position::ThreadPositionInGrid),
                                                position("n", Position::ThreadgroupsPerGrid)}));
  for (uint32_t groups : {2u, 70u}) {
    std::vector<float> a(4 * 70 * 64), o(4 * 70 * 64, -1);
    std::iota(a.begin(), a.end(), 0);
    EXPECT_EQ(run(*library, "k", {bindConst(a), bind(o)}, {groups, 1, 1}, {64, 1, 1}), "");
    for (uint32_t i = 0; i != o.size(); ++i)
      ASSERT_EQ(o[i], i / 4 < groups ? a[i / 4 * 4 + 3 - i % 4] : -1.0f) << i;
  }
}

} // namespace
