// Forms of IR that passes of LLVM make, or make wrong code of.
#include "host_device/engine/ContextErrors.h"
#include "tests/unit/host_engine/Support.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <bit>

using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

TEST(CodeGenerator, WordsAreReadBitByBit) {
  // What LLVM makes of the tests of a word's bits: lane l reads word l, not bit 8 * l.
  const char *ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %o, i32 %gid) {
  %i = zext i32 %gid to i64
  %pa = getelementptr i16, ptr addrspace(1) %a, i64 %i
  %po = getelementptr i32, ptr addrspace(1) %o, i64 %i
  %bits = load <16 x i1>, ptr addrspace(1) %pa
  %b0 = extractelement <16 x i1> %bits, i64 0
  %b3 = extractelement <16 x i1> %bits, i64 3
  %b15 = extractelement <16 x i1> %bits, i64 15
  %x = select i1 %b0, i32 1, i32 0
  %y = select i1 %b3, i32 2, i32 0
  %z = select i1 %b15, i32 4, i32 0
  %xy = or i32 %x, %y
  %xyz = or i32 %xy, %z
  store i32 %xyz, ptr addrspace(1) %po
  ret void
}
)";
  auto library = libraryOf(ir, kernelInfo("k", {buffer("a", 0, true, 2), buffer("o", 1),
                                                position("gid", Position::ThreadPositionInGrid)}));
  std::vector<uint16_t> a(64);
  std::vector<uint32_t> o(64), expected(64);
  for (uint32_t i = 0; i != 64; ++i) {
    a[i] = static_cast<uint16_t>(i * 40503);
    expected[i] = (a[i] & 1) | (a[i] >> 3 & 1) << 1 | a[i] >> 15 << 2;
  }
  EXPECT_EQ(run(*library, "k", {bindConst(a), bind(o)}, {1, 1, 1}, {64, 1, 1}), "");
  EXPECT_EQ(o, expected);
}

TEST(CodeGenerator, HalvesAreComparedAsBfloats) {
  // LLVM's InstCombine takes what such a cast comes from for an integer.
  for (auto [from, to] :
       {std::pair<std::string, std::string>("half", "bfloat"), {"bfloat", "half"}}) {
    std::string ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %o, i32 %gid) {
  %i = zext i32 %gid to i64
  %pa = getelementptr i16, ptr addrspace(1) %a, i64 %i
  %po = getelementptr i32, ptr addrspace(1) %o, i64 %i
  %x = load FROM, ptr addrspace(1) %pa
  %twice = fadd FROM %x, %x
  %y = bitcast FROM %twice to TO
  %zero = fcmp oeq TO %y, 0.0
  %r = select i1 %zero, i32 1, i32 0
  store i32 %r, ptr addrspace(1) %po
  ret void
}
)";
    for (auto [name, type] : {std::pair(std::string("FROM"), from), {"TO", to}})
      for (size_t at; (at = ir.find(name)) != std::string::npos;)
        ir.replace(at, name.size(), type);
    auto library =
        libraryOf(ir, kernelInfo("k", {buffer("a", 0, true, 2), buffer("o", 1),
                                       position("gid", Position::ThreadPositionInGrid)}));
    std::vector<uint16_t> a = {0,      0x8000, 1,      0x8001, 0x3c00,
                               0x3f80, 0x7c00, 0x7c01, 0x7f80, 0xff81};
    std::vector<uint32_t> o(10), expected;
    for (uint16_t bits : a)
      expected.push_back((bits & 0x7fff) == 0);
    EXPECT_EQ(run(*library, "k", {bindConst(a), bind(o)}, {1, 1, 1}, {10, 1, 1}), "");
    EXPECT_EQ(o, expected) << from;
  }
}

TEST(CodeGenerator, BfloatsAreNotHalvesOfFewerDigits) {
  // LLVM's InstCombine rounds the operands of such operations to half: 65536 would be infinite.
  for (std::string op : {"fadd", "fsub", "fmul", "fdiv"}) {
    std::string ir = R"(
define void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %o, i32 %gid) {
  %i = zext i32 %gid to i64
  %pa = getelementptr i16, ptr addrspace(1) %a, i64 %i
  %pb = getelementptr i16, ptr addrspace(1) %b, i64 %i
  %po = getelementptr i16, ptr addrspace(1) %o, i64 %i
  %x = load half, ptr addrspace(1) %pa
  %y = load bfloat, ptr addrspace(1) %pb
  %wx = fpext half %x to float
  %wy = fpext bfloat %y to float
  %w = OP float %wx, %wy
  %z = fptrunc float %w to half
  store half %z, ptr addrspace(1) %po
  ret void
}
)";
    ir.replace(ir.find("OP"), 2, op);
    auto library =
        libraryOf(ir, kernelInfo("k", {buffer("a", 0, true, 2), buffer("b", 1, true, 2),
                                       buffer("o", 2, false, 2),
                                       position("gid", Position::ThreadPositionInGrid)}));
    // 1, the largest half, and their negatives, with 65536, 2^-20 and 1.
    std::vector<uint16_t> a, b, o(12), expected;
    auto halfOf = [](float number) {
      llvm::APFloat value(number);
      bool loses;
      value.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &loses);
      return static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue());
    };
    for (float x : {1.0f, 65504.0f, -1.0f, -65504.0f})
      for (float y : {65536.0f, 0x1p-20f, 1.0f}) {
        a.push_back(halfOf(x));
        b.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(y) >> 16));
        expected.push_back(halfOf(op == "fadd"   ? x + y
                                  : op == "fsub" ? x - y
                                  : op == "fmul" ? x * y
                                                 : x / y));
      }
    EXPECT_EQ(run(*library, "k", {bindConst(a), bindConst(b), bind(o)}, {1, 1, 1}, {12, 1, 1}), "");
    EXPECT_EQ(o, expected) << op;
  }
}

TEST(CodeGenerator, ErrorsOfLlvmDoNotEndTheProcess) {
  llvm::LLVMContext context;
  engine::ContextErrors errors(context);
  EXPECT_FALSE(bool(errors.take()));
  context.emitError("first");
  context.emitError("second");
  EXPECT_EQ(llvm::toString(errors.take()), "an error of LLVM's code generator: first; second");
  EXPECT_FALSE(bool(errors.take()));
}

} // namespace
