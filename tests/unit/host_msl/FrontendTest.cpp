// What the front end says about a text: signatures, constants, and what is wrong with it.
#include "host_device/msl/Frontend.h"
#include "host_device/msl/Invocation.h"
#include "host_device/msl/Rewriter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "gtest/gtest.h"
#include <atomic>
#include <thread>

using namespace triton_metal;

namespace {

CompiledMsl compiled(llvm::StringRef text, llvm::LLVMContext &context,
                     const MslOptions &options = {}) {
  auto result = compileMsl(text, options, context);
  EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
  return result ? std::move(*result) : CompiledMsl();
}

std::string errorOf(llvm::StringRef text, const MslOptions &options = {}) {
  llvm::LLVMContext context;
  auto result = compileMsl(text, options, context);
  if (!result)
    return llvm::toString(result.takeError());
  ADD_FAILURE() << "this compiles: " << text.str();
  return "";
}

TEST(Signature, SaysWhereEveryParameterComesFrom) {
  llvm::LLVMContext context;
  CompiledMsl msl = compiled(R"(
#include <metal_stdlib>
using namespace metal;
struct Sizes { uint n; float4 scale; };
[[max_total_threads_per_threadgroup(128)]] kernel void f(
    const device half4 *a [[buffer(3)]], device float *b, constant Sizes &sizes, threadgroup float *scratch [[threadgroup(1)]],
    uint3 group [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  threadgroup uint own[16];
  own[lane & 15] = group.y;
  scratch[lane] = a[lane].x;
  b[lane] = scratch[31 - lane] * sizes.scale.x + own[0] + sizes.n;
})",
                             context);
  ASSERT_EQ(msl.kernels.size(), 1u);
  const KernelInfo &info = msl.kernels[0];
  EXPECT_EQ(info.name, "f");
  EXPECT_EQ(info.line, 5u);
  EXPECT_EQ(info.maxTotalThreadsPerThreadgroup, 128u);
  ASSERT_EQ(info.parameters.size(), 6u);
  EXPECT_EQ(info.parameters[0].index, 3u);
  EXPECT_TRUE(info.parameters[0].isConst);
  EXPECT_EQ(info.parameters[0].elementType, "half4");
  EXPECT_EQ(info.parameters[0].elementSize, 8u);
  EXPECT_EQ(info.parameters[0].elementAlignment, 8u);
  EXPECT_EQ(info.parameters[1].index, 0u);
  EXPECT_FALSE(info.parameters[1].isConst);
  EXPECT_EQ(info.parameters[2].index, 1u);
  EXPECT_EQ(info.parameters[2].addressSpace, AddressSpace::Constant);
  EXPECT_TRUE(info.parameters[2].isReference);
  EXPECT_EQ(info.parameters[2].elementSize, 32u);
  EXPECT_EQ(info.parameters[3].kind, ParameterInfo::Kind::Threadgroup);
  EXPECT_EQ(info.parameters[3].index, 1u);
  EXPECT_EQ(info.parameters[4].position, Position::ThreadgroupPositionInGrid);
  EXPECT_EQ(info.parameters[4].vectorWidth, 3u);
  EXPECT_EQ(info.parameters[5].position, Position::ThreadIndexInSimdgroup);
  EXPECT_EQ(info.parameters[5].scalarBits, 16u);
  ASSERT_EQ(info.threadgroupVariables.size(), 1u);
  EXPECT_EQ(info.threadgroupVariables[0].name, "own");
  EXPECT_EQ(info.threadgroupVariables[0].size, 64u);

  llvm::Function *function = msl.module->getFunction("f");
  ASSERT_TRUE(function);
  EXPECT_TRUE(function->getArg(0)->getType()->isPointerTy());
  EXPECT_EQ(function->getArg(0)->getType()->getPointerAddressSpace(), 1u);
  EXPECT_EQ(function->getArg(2)->getType()->getPointerAddressSpace(), 2u);
  EXPECT_EQ(function->getArg(3)->getType()->getPointerAddressSpace(), 3u);
  EXPECT_TRUE(function->getArg(4)->getType()->isVectorTy());
  EXPECT_TRUE(function->getArg(5)->getType()->isIntegerTy(16));
  // Nothing is left that the address space of an access is not known of.
  for (llvm::Instruction &instruction : llvm::instructions(*function)) {
    if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
      EXPECT_NE(load->getPointerAddressSpace(), 0u);
    if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
      EXPECT_NE(store->getPointerAddressSpace(), 0u);
  }
}

TEST(Signature, KernelsOfTemplatesHaveTheirHostNames) {
  llvm::LLVMContext context;
  CompiledMsl msl = compiled(R"(
template <typename T, int n> [[kernel]] void scale(device T *a [[buffer(n)]], uint i [[thread_position_in_grid]]) { a[i] *= n; }
#define instantiate(name, ...) template [[host_name(name)]] [[kernel]] decltype(scale<__VA_ARGS__>) scale<__VA_ARGS__>;
instantiate("scale_float", float, 2)
instantiate("scale_half", half, 3)
)",
                             context);
  ASSERT_EQ(msl.kernels.size(), 2u);
  EXPECT_EQ(msl.kernels[0].name, "scale_float");
  EXPECT_EQ(msl.kernels[0].parameters[0].index, 2u);
  EXPECT_EQ(msl.kernels[1].name, "scale_half");
  EXPECT_EQ(msl.kernels[1].parameters[0].index, 3u);
  EXPECT_EQ(msl.kernels[1].parameters[0].elementType, "half");
  EXPECT_TRUE(msl.module->getFunction("scale_half"));
}

TEST(Memory, VectorsAreReadAndWrittenWhole) {
  llvm::LLVMContext context;
  CompiledMsl msl = compiled(R"(
using namespace metal;
kernel void f(device const float4 *a, device half4 *b, uint i [[thread_position_in_grid]]) {
  float4 v = a[i];
  v.xz += 1;
  b[i] = half4(v.wzyx);
})",
                             context);
  unsigned loads = 0, stores = 0;
  for (llvm::Instruction &instruction : llvm::instructions(*msl.module->getFunction("f"))) {
    if (auto *load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
      ++loads;
      EXPECT_EQ(load->getType()->getPrimitiveSizeInBits(), 128u);
    } else if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      ++stores;
      EXPECT_EQ(store->getValueOperand()->getType()->getPrimitiveSizeInBits(), 64u);
    }
  }
  EXPECT_EQ(loads, 1u);
  EXPECT_EQ(stores, 1u);
}

TEST(FunctionConstants, SpecialiseAndAreMissed) {
  const char *text = R"(
constant bool wide [[function_constant(4)]];
constant uint count [[function_constant(5)]];
kernel void f(device uint *a [[buffer(0), function_constant(wide)]], device uint *b) { b[0] = wide ? 1 : 2; }
kernel void g(device uint *b) { b[0] = 1; }
)";
  llvm::LLVMContext other;
  CompiledMsl without = compiled(text, other);
  ASSERT_EQ(without.kernels.size(), 2u);
  EXPECT_EQ(without.kernels[0].unusable,
            "function constant 'wide' (index 4) is used but has no value");
  EXPECT_EQ(without.kernels[1].unusable, "");
  MslOptions options;
  options.functionConstants = {{4, 0}};
  llvm::LLVMContext context;
  CompiledMsl msl = compiled(text, context, options);
  ASSERT_EQ(msl.kernels.size(), 2u);
  EXPECT_EQ(msl.kernels[0].unusable, "");
  EXPECT_FALSE(msl.kernels[0].parameters[0].exists);
  ASSERT_EQ(msl.kernels[0].functionConstants.size(), 2u);
  EXPECT_TRUE(msl.kernels[0].functionConstants[0].defined);
  EXPECT_FALSE(msl.kernels[0].functionConstants[1].defined);
  for (llvm::Instruction &instruction : llvm::instructions(*msl.module->getFunction("f")))
    if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      auto *value = llvm::dyn_cast<llvm::ConstantInt>(store->getValueOperand());
      ASSERT_TRUE(value);
      EXPECT_EQ(value->getZExtValue(), 2u);
    }
  EXPECT_FALSE(msl.module->getFunction("f")->isDeclaration());
}

TEST(FunctionConstants, DerivedValuesFollow) {
  const char *text = R"(
constant uint given [[function_constant(0)]];
constant uint used = is_function_constant_defined(given) ? given : 7;
kernel void f(device uint *b) { b[0] = used; }
)";
  for (auto [options, expected] :
       {std::pair(MslOptions(), 7u), std::pair(MslOptions{"k.metal", {{0, 5}}, {}, {}}, 5u)}) {
    llvm::LLVMContext context;
    CompiledMsl msl = compiled(text, context, options);
    ASSERT_TRUE(msl.module);
    for (llvm::Instruction &instruction : llvm::instructions(*msl.module->getFunction("f")))
      if (auto *store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        auto *value = llvm::dyn_cast<llvm::ConstantInt>(store->getValueOperand());
        ASSERT_TRUE(value);
        EXPECT_EQ(value->getZExtValue(), expected);
      }
  }
}

TEST(Diagnostics, StandInTheUsersOwnLinesAndColumns) {
  std::string error = errorOf("kernel void f(device float *a [[buffer(0)]], uint i "
                              "[[thread_position_in_grid]]) { a[j] = 1; }");
  EXPECT_EQ(error, "kernel.metal:1:86: error: use of undeclared identifier 'j'\n"
                   "kernel void f(device float *a [[buffer(0)]], uint i "
                   "[[thread_position_in_grid]]) { a[j] = 1; }\n" +
                       std::string(85, ' ') + "^");
  MslOptions options;
  options.fileName = "dir/mine.metal";
  error = errorOf("// comment\n\nkernel void f(device float *a) {\n  threadgroup float x[4]; "
                  "constant int y = 3;\n\tx[0] = a;\n}\n",
                  options);
  EXPECT_EQ(error, "dir/mine.metal:5:9: error: assigning to 'float' from incompatible type 'device "
                   "float *'; dereference with *\n"
                   "\tx[0] = a;\n\t       ^");
}

TEST(Diagnostics, SayWhatMetalDoesNotHave) {
  EXPECT_NE(errorOf("kernel void f(device double *a) {}").find("unknown type name 'double'"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device float *a, uint i) {}")
                .find("parameter 'i' of a kernel must be a pointer"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(float *a) {}")
                .find("must be in the device, constant or threadgroup address space"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device float *a [[buffer(31)]]) {}")
                .find("needs an index from 0 to 30"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device int *a [[buffer(1)]], device int *b [[buffer(1)]]) {}")
                .find("index 1 is used by two parameters"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(float i [[thread_position_in_grid]]) {}")
                .find("type 'float' is not valid for attribute"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel int f(device int *a) { return 0; }").find("must return void"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device int *a) {} kernel void f(device uint *a) {}")
                .find("two kernels have the name 'f'"),
            std::string::npos);
  EXPECT_NE(errorOf("int g(int n) { return n < 2 ? n : g(n - 1) + g(n - 2); }\nkernel void "
                    "f(device int *a) { a[0] = g(a[1]); }")
                .find("recursive"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(constant int *a) { *(constant int *)a = 1; }").find("constant"),
            std::string::npos);
  EXPECT_NE(errorOf("int count = 0; kernel void f(device int *a) { a[0] = ++count; }")
                .find("constant address space"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device int *a) { static int n = 0; a[0] = n++; }")
                .find("constant address space"),
            std::string::npos);
  EXPECT_NE(errorOf("float g(thread float *p) { return *p; }\nkernel void f(device float *a) { "
                    "a[0] = g(a + 1); }")
                .find("kernel.metal:2:43: error: a pointer 'device float *' cannot become 'thread "
                      "float *', which points to another address space"),
            std::string::npos);
  EXPECT_NE(
      errorOf("kernel void f(device float *a) { thread float *p = (thread float *)a; p[0] = 1; }")
          .find("another address space"),
      std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device float *a) { threadgroup float *p = (threadgroup float "
                    "*)a; p[0] = 1; }")
                .find("address space"),
            std::string::npos);
  EXPECT_NE(
      errorOf("#include \"other.h\"\n").find("kernel.metal:1:10: error: 'other.h' file not found"),
      std::string::npos);
  EXPECT_NE(errorOf("words that are no Metal\n")
                .find("kernel.metal:1:1: error: unknown type name 'words'"),
            std::string::npos);
  EXPECT_NE(errorOf("kernel void f(device int *a) {").find("error: expected '}'"),
            std::string::npos);
}

TEST(Rewriter, KeepsLinesAndMapsOffsetsBack) {
  std::string text = "[[kernel]] void f(\n  device int* a [[buffer(\n 0)]]) {\n threadgroup int "
                     "x[2]; x[0] = a[0];\n}\n"
                     "#define M(n) constant int k##n = n;\n"
                     "struct S { int v; S() constant : v(0) {} int get() threadgroup { return v; } "
                     "int get() const\nconstant { return v; } int get() constant; };\n";
  RewrittenText result = rewriteMsl(text);
  EXPECT_EQ(llvm::StringRef(result.text).count('\n'), llvm::StringRef(text).count('\n'));
  EXPECT_EQ(result.originalOffset(result.text.find("x[0]")), text.find("x[0]"));
  EXPECT_EQ(result.originalOffset(result.text.find("struct S")), text.find("struct S"));
  EXPECT_NE(result.text.find("[[__tm_kernel]] void f"), std::string::npos);
  EXPECT_NE(result.text.find("S() __constant : v(0)"), std::string::npos);
  EXPECT_NE(result.text.find("get() __local __restrict  __attribute__"), std::string::npos);
  EXPECT_NE(result.text.find("get() const\n__constant __restrict "), std::string::npos);
  EXPECT_NE(result.text.find("get() __constant __restrict const"), std::string::npos);
}

TEST(Prelude, ComesFromTheBuildAndCanBeMadeAgain) {
  EXPECT_FALSE(embeddedPrelude().bytes.empty());
  EXPECT_EQ(parsedPrelude().data(), embeddedPrelude().bytes.data());
  EXPECT_TRUE(parsePrelude() == embeddedPrelude().bytes);
}

TEST(Threads, CompileAtTheSameTime) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &right] {
      for (int k = 0; k < 5; ++k) {
        llvm::LLVMContext context;
        std::string n = std::to_string(t * 10 + k);
        bool wrong = k == 3;
        auto result =
            compileMsl("kernel void f" + n +
                           "(device float4 *a, uint i [[thread_position_in_grid]]) { a[i].xy *= " +
                           (wrong ? "b" : n) + "; }",
                       MslOptions(), context);
        if (wrong)
          right +=
              !result && llvm::toString(result.takeError()).find("undeclared identifier 'b'") !=
                             std::string::npos;
        else
          right += result && result->kernels.size() == 1 && result->kernels[0].name == "f" + n;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 20);
}

TEST(Includes, AreReadFromTheFoldersGivenAndNowhereElse) {
  EXPECT_NE(errorOf("#include \"/etc/passwd\"\n").find("file not found"), std::string::npos);
}

} // namespace
