// Attributes and variables of Metal that clang's own tree decides on: in macros and templates, and
// in declarations whose tokens alone do not say what they declare.
#include "host_device/msl/Frontend.h"
#include "tests/unit/host_msl/Run.h"

using namespace triton_metal;
using namespace triton_metal::test;

namespace {

/// The kernels of a text, or none and its errors.
std::vector<KernelInfo> kernelsOf(const std::string &text, std::string *errors = nullptr) {
  llvm::LLVMContext context;
  auto result = compileMsl(text, MslOptions(), context);
  if (result)
    return result->kernels;
  std::string message = llvm::toString(result.takeError());
  if (errors)
    *errors = message;
  else
    ADD_FAILURE() << message;
  return {};
}

std::string errorsOf(const std::string &text) {
  std::string errors;
  EXPECT_TRUE(kernelsOf(text, &errors).empty());
  return errors;
}

TEST(Attributes, ComeFromMacrosAndTemplates) {
  auto kernels = kernelsOf(R"(
#define AT(n) [[buffer(n)]]
#define GRID [[thread_position_in_grid]]
#define ENTRY [[kernel, max_total_threads_per_threadgroup(size * 2)]]
constant constexpr int size = 64, third = 2;
ENTRY void f(device float *a AT(4), [[buffer(third)]] constant float *b, uint3 at GRID,
             threadgroup float *t [[threadgroup(3)]]) { a[at.x] = b[0]; t[0] = 1; }
template <typename T, int n> [[kernel]] void g(device T *a [[buffer(n)]], device T *b [[buffer(n + 1)]]) { a[0] = b[0]; }
#define instantiate(name, ...) \
  template [[host_name(name)]] [[kernel]] \
  decltype(g<__VA_ARGS__>) g<__VA_ARGS__>;
instantiate("g_float", float, 5)
template [[host_name("g_int"), kernel]] void g<int, 7>(device int *, device int *);
)");
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].name, "f");
  EXPECT_EQ(kernels[0].maxTotalThreadsPerThreadgroup, 128u);
  ASSERT_EQ(kernels[0].parameters.size(), 4u);
  EXPECT_EQ(kernels[0].parameters[0].index, 4u);
  EXPECT_EQ(kernels[0].parameters[1].index, 2u);
  EXPECT_EQ(kernels[0].parameters[2].kind, ParameterInfo::Kind::Position);
  EXPECT_EQ(kernels[0].parameters[3].index, 3u);
  EXPECT_EQ(kernels[1].name, "g_float");
  EXPECT_EQ(kernels[1].parameters[1].index, 6u);
  EXPECT_EQ(kernels[2].name, "g_int");
  EXPECT_EQ(kernels[2].parameters[0].index, 7u);
}

TEST(Attributes, OfArraysAndReferences) {
  auto kernels = kernelsOf("kernel void f(constant int s[3] [[buffer(6)]], constant int (&r)[2], "
                           "device int &o [[buffer(1)]], constant int t [[buffer(9)]] [2], "
                           "constant int m[2][3]) { o = s[2] + r[1] + t[1] + m[1][2]; }");
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].parameters.size(), 5u);
  EXPECT_EQ(kernels[0].parameters[0].index, 6u);
  EXPECT_EQ(kernels[0].parameters[1].elementSize, 8u);
  EXPECT_TRUE(kernels[0].parameters[2].isReference);
  EXPECT_EQ(kernels[0].parameters[3].index, 9u);
  EXPECT_EQ(kernels[0].parameters[4].elementSize, 12u);
}

TEST(Attributes, ThatCannotBeAreRefused) {
  EXPECT_NE(errorsOf("kernel void f(device int *a [[buffer(nothing)]]) {}")
                .find("1:38: error: use of undeclared identifier 'nothing'"),
            std::string::npos);
  EXPECT_NE(errorsOf("kernel void f(device int *a [[buffer(0), function_constant(3)]]) {}")
                .find("attribute 'function_constant' of a parameter needs the name"),
            std::string::npos);
  auto staged = kernelsOf("kernel void f(device int *a, int i [[stage_in]]) {}");
  ASSERT_EQ(staged.size(), 1u);
  EXPECT_EQ(staged[0].unusable,
            "parameter 'i' (line 1) is a stage_in input, which the host device does not have");
  EXPECT_NE(errorsOf("kernel void f(device int *a [[threadgroup(0), buffer(x.y)]]) {}")
                .find("undeclared identifier 'x'"),
            std::string::npos);
}

TEST(Variables, AreSharedAndPointersToThemAreNot) {
  std::vector<float> o(64);
  runKernel("device float *o", R"(
SHARED float tile[8][8], *own = &tile[0][0] + local;
*own = float(local);
threadgroup_barrier(mem_flags::mem_threadgroup);
threadgroup float (*rows)[8] = tile + (local / 8);
threadgroup const auto &corner = (*rows)[7];
threadgroup_barrier(mem_flags::mem_threadgroup);
float sum = corner + apply([](threadgroup float *p) { return p[0]; }, rows[0]);
for (threadgroup float *p = &rows[0][2], *end = p + 2; p != end; ++p)
  sum += *p;
if (threadgroup float *q = own; local & 1)
  sum += 1000 * *q;
o[i] = sum;
)",
            {out(o)}, 64, R"(
#define SHARED threadgroup
template <typename F> float apply(F f, threadgroup float *p) { return f(p); }
)",
            64);
  for (int local = 0; local != 64; ++local) {
    int row = local / 8 * 8;
    EXPECT_EQ(o[local], row + 7 + row + row + 2 + row + 3 + (local & 1 ? 1000 * local : 0))
        << local;
  }
}

TEST(Variables, OfOneNameInSeveralPlacesAreSeveral) {
  std::vector<int32_t> o(32);
  runKernel("device int *o", R"(
{ threadgroup int x[32]; x[local] = 1; { threadgroup int x[32]; x[local] = 2; } o[i] = x[local]; }
{ threadgroup int x[32]; x[local] = 4; o[i] += x[local] + helper<int>(local) + helper<short>(local); }
constant int y[2] = {10, 20};
{ constant int y[2] = {30, 40}; o[i] += y[1]; }
o[i] += y[1];
)",
            {out(o)}, 32, R"(
template <typename T> int helper(uint local) {
  threadgroup T x[32];
  x[local] = T(sizeof(T) * 100);
  { threadgroup T x[32]; x[local] = 0; }
  return x[local];
}
)",
            32);
  for (int32_t value : o)
    EXPECT_EQ(value, 1 + 4 + 400 + 200 + 40 + 20);
}

TEST(Methods, KnowTheAddressSpaceOfTheirObject) {
  std::vector<int32_t> o(16);
  runKernel("device int *o", R"(
threadgroup Where shared;
shared.v = 7;
Where own;
device Where &there = *(device Where *)(o + 15);
o[0] = there.where();
o[1] = shared.where();
o[2] = table.where();
o[3] = own.where();
o[4] = there.plain() + shared.plain() + table.plain() + own.plain();
o[5] = int(there) + int(table) + int(own);
there += 5;
o[6] = there.v;
o[7] = of(there) * 1000 + of(shared) * 100 + of(table) * 10 + of(own);
o[8] = Box<int>{{3, 4}}.first();
device Counted &far = *(device Counted *)(o + 14);
Counted near;
const Counted fixed = near;
o[9] = far.get() * 1000 + ((device const Counted &)far).get() * 100 + near.get() * 10 + fixed.get();
far = 5;
near = 6;
o[10] = far.v * 1000 + near.v;
o[11] = far.either() * 1000 + near.either() * 100 + far.later() * 10 + near.later();
o[12] = far.mix(far);
)",
            {out(o)}, 1, R"(
struct Where {
  int v;
  constexpr Where() thread : v(20) {}
  Where() device = default;
  Where() threadgroup = default;
  constexpr Where(int v) constant : v(v) {}
  constexpr Where(int v) thread : v(v) {}
  int where() device { return 1; }
  int where() const threadgroup noexcept { return 2; }
  int where() constant { return 3; }
  int where() const thread { return 4; }
  int plain() const { return v; }
  operator int() const device { return 100; }
  operator int() const constant { return 200; }
  operator int() const thread { return 300; }
  void operator+=(int n) volatile device { v += n; }
};
constant Where table(30);
template <typename T> int of(T &where) { return where.where(); }
template <typename T> struct Box {
  T parts[2];
  T first() const thread;
  T first() const device;
};
struct Counted {
  int v;
  int get() device { return 1; }
  int get() thread { return 2; }
  int get() const device { return 3; }
  int get() const thread { return 4; }
  device Counted &operator=(int n) device { v = n; return *this; }
  thread Counted &operator=(int n) thread { v = n + 100; return *this; }
  int either() const { return 1; }
  int either() const device { return 2; }
  int mix(device Counted &other) device { v = 1; other.v = 2; return v + 10 * other.v; }
  int later() device;
  int later();
};
int Counted::later() { return 3; }
int Counted::later() device { return 4; }
template <typename T> T Box<T>::first() const thread { return parts[0]; }
template <typename T> T Box<T>::first() const device { return parts[1]; }
)",
            1);
  EXPECT_EQ(
      std::vector<int32_t>(o.begin(), o.begin() + 13),
      (std::vector<int32_t>{1, 2, 3, 4, 0 + 7 + 30 + 20, 600, 5, 1234, 3, 1324, 5106, 2143, 22}));
}

TEST(Methods, OfAnotherAddressSpaceAreNotCalled) {
  for (const char *qualifiers : {"const device", "device", "threadgroup"})
    EXPECT_NE(errorsOf("struct S { int v; int get() " + std::string(qualifiers) +
                       " { return v; } };\n"
                       "kernel void f(device int *a) { S s; a[0] = s.get(); }")
                  .find("2:44: error: "),
              std::string::npos);
  // What only the preprocessor sees to be a method's address space.
  EXPECT_NE(errorsOf("#define GET(SPACE) int get() SPACE { return v; }\n"
                     "struct S { int v; GET(device) };\n"
                     "kernel void f(device int *a) { S s; a[0] = s.get(); }")
                .find("3:44: error: the method 'get' is for objects in another address space than "
                      "this 'S'"),
            std::string::npos);
  EXPECT_NE(errorsOf("struct S { int v; void set() { v = 1; } };\n"
                     "kernel void f(constant S *s) { s->set(); }")
                .find("2:32: error: 'this' argument to member function 'set' has type 'const "
                      "constant S', but function is not marked const"),
            std::string::npos);
}

TEST(Words, OfOpenClAreNames) {
  std::vector<int32_t> o(1);
  runKernel("device int *o",
            "int global = 1, generic = 2, pipe = 4, private_ = 8, vec_step = 16, read_only = 32, "
            "addrspace_cast = 64; o[0] = global + int(local) + generic + pipe + private_ + "
            "vec_step + read_only + addrspace_cast;",
            {out(o)}, 1, "", 1);
  EXPECT_EQ(o[0], 127);
}

} // namespace
