// The estimate of a thread's registers: what each rule of the register file does to small
// functions.
#include "host_device/engine/Prepare.h"
#include "host_device/engine/RegisterCode.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/SourceMgr.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace triton_metal::engine;

namespace {

const std::string declarations = R"(
declare ptr addrspace(1) @__tm_engine_buffer.1(i32) memory(none)
declare ptr addrspace(2) @__tm_engine_buffer.2(i32) memory(none)
declare i32 @__tm_engine_position(i32, i32) memory(none)
declare <2 x float> @__tm_simdgroup_mma(<2 x float>, <2 x float>, <2 x float>) memory(none)
declare i32 @__tm_simd_shuffle_u32(i32, i32) convergent memory(none)
)";

/// A function of a thread, `body`, in which %p is a buffer, %n a number of the launch, and %i one
/// of the thread.
class Parsed {
public:
  explicit Parsed(const std::string &body) {
    SMDiagnostic error;
    module = parseAssemblyString(declarations + R"(define void @f() {
entry:
  %p = call ptr addrspace(1) @__tm_engine_buffer.1(i32 0)
  %args = call ptr addrspace(2) @__tm_engine_buffer.2(i32 1)
  %n = load i32, ptr addrspace(2) %args
  %i = call i32 @__tm_engine_position(i32 3, i32 0)
)" + body + "}\n",
                                 error, context);
    EXPECT_TRUE(module) << error.getMessage().str() << " in line " << error.getLineNo();
  }
  Function &function() { return *module->getFunction("f"); }
  registers::Code code() { return registers::readCode(function()); }

private:
  LLVMContext context;
  std::unique_ptr<Module> module;
};

unsigned demand(const std::string &body) { return registers::demandOf(Parsed(body).code()); }

/// The halves of the number that `type` has: it is loaded, lives over the load of another one, and
/// is stored.
unsigned halvesOf(const std::string &type) {
  std::string load = "load volatile " + type + ", ptr addrspace(1) %p\n";
  return demand("%x = " + load + "%y = " + load + "store volatile " + type +
                " %x, ptr addrspace(1) %p\nstore volatile " + type +
                " %y, ptr addrspace(1) %p\nret void\n") /
         2;
}

TEST(RegistersTest, NumbersTakeHalvesByTheirBits) {
  EXPECT_EQ(halvesOf("i8"), 1u);
  EXPECT_EQ(halvesOf("half"), 1u);
  EXPECT_EQ(halvesOf("i16"), 1u);
  EXPECT_EQ(halvesOf("float"), 2u);
  EXPECT_EQ(halvesOf("i64"), 4u);
  EXPECT_EQ(halvesOf("ptr addrspace(1)"), 4u);
  EXPECT_EQ(halvesOf("ptr addrspace(3)"), 1u);
  EXPECT_EQ(halvesOf("<4 x float>"), 8u);
  EXPECT_EQ(halvesOf("<16 x i8>"), 8u);
}

TEST(RegistersTest, NumbersOfTheLaunchTakeNone) {
  // n * 3 + 1 is made before the threads start, and is an operand of the addition.
  EXPECT_EQ(demand(R"(
  %a = mul i32 %n, 3
  %b = add i32 %a, 1
  %x = add i32 %b, %i
  store i32 %x, ptr addrspace(1) %p
  ret void
)"),
            2u);
}

TEST(RegistersTest, AccessesScaleAndAddAnOffsetThemselves) {
  EXPECT_EQ(demand(R"(
  %wide = zext i32 %i to i64
  %q = getelementptr float, ptr addrspace(1) %p, i64 %wide
  %x = load float, ptr addrspace(1) %q
  store float %x, ptr addrspace(1) %q
  ret void
)"),
            4u); // the offset and the number
}

TEST(RegistersTest, OtherAddressesAreArithmeticOf64Bits) {
  // The base comes from a uniform register and takes four halves, and so does the wide offset,
  // whose halves are made one after the other.
  EXPECT_EQ(demand(R"(
  %wide = zext i32 %i to i64
  %q = getelementptr [12 x i8], ptr addrspace(1) %p, i64 %wide
  %x = load float, ptr addrspace(1) %q
  store float %x, ptr addrspace(1) %q
  ret void
)"),
            8u);
}

TEST(RegistersTest, ConditionsAreComparedWhereTheyChoose) {
  EXPECT_EQ(demand(R"(
  %less = icmp slt i32 %i, %n
  %x = select i1 %less, i32 %i, i32 7
  store i32 %x, ptr addrspace(1) %p
  ret void
)"),
            2u);
}

TEST(RegistersTest, ConditionsThatOnlyChooseAreNoBranches) {
  Parsed parsed(R"(
  %less = icmp slt i32 %i, %n
  br i1 %less, label %yes, label %no
yes:
  %a = mul i32 %i, 5
  br label %end
no:
  %b = add i32 %i, 9
  br label %end
end:
  %x = phi i32 [ %a, %yes ], [ %b, %no ]
  store i32 %x, ptr addrspace(1) %p
  ret void
)");
  registers::flattenConditions(parsed.function());
  EXPECT_EQ(parsed.function().size(), 1u);
  EXPECT_EQ(registers::demandOf(parsed.code()), 6u); // both sides, and what the condition compares
}

TEST(RegistersTest, ConditionsWithAccessesStayBranches) {
  Parsed parsed(R"(
  %less = icmp slt i32 %i, %n
  br i1 %less, label %yes, label %end
yes:
  store i32 %i, ptr addrspace(1) %p
  br label %end
end:
  ret void
)");
  registers::flattenConditions(parsed.function());
  EXPECT_EQ(parsed.function().size(), 3u);
  EXPECT_EQ(registers::demandOf(parsed.code()), 3u); // and the nesting of conditions
}

/// Loads `count` numbers, adds them up, and stores the sum.
std::string sum(unsigned count) {
  std::string text, last;
  for (unsigned i = 0; i != count; ++i)
    text += "%a" + std::to_string(i) + " = load float, ptr addrspace(1) %p\n";
  for (unsigned i = 0; i != count; ++i) {
    std::string k = std::to_string(i);
    text += "%s" + k + " = fadd float %a" + k + ", " + (i ? last : "1.0") + "\n";
    last = "%s" + k;
  }
  return text + "store float " + last + ", ptr addrspace(1) %p\nret void\n";
}

TEST(RegistersTest, SumsAreOrderedBehindWhatTheyAdd) {
  registers::Code code = Parsed(sum(16)).code();
  EXPECT_EQ(registers::demandOf(code), 32u);
  registers::orderSteps(code);
  EXPECT_EQ(registers::demandOf(code), 4u); // the sum, and the number that was just loaded
}

TEST(RegistersTest, AccessesKeepTheirOrder) {
  registers::Code code = Parsed(sum(16)).code();
  auto accesses = [](const registers::Code &of) {
    std::vector<std::pair<size_t, size_t>> shapes;
    for (const registers::Step &step : of.blocks.front().steps)
      if (step.isOrdered)
        shapes.emplace_back(step.defines.empty() ? ~0u : step.defines.front(), step.uses.size());
    return shapes;
  };
  auto before = accesses(code);
  registers::orderSteps(code);
  EXPECT_EQ(before.size(), 17u);
  EXPECT_EQ(accesses(code), before);
}

TEST(RegistersTest, VectorsAreAlignedToTheirSize) {
  // A half is in the first place, so that the vector of four is in the second eight halves.
  registers::Code code = Parsed(R"(
  %h = load volatile half, ptr addrspace(1) %p
  %v = load volatile <4 x float>, ptr addrspace(1) %p
  store volatile <4 x float> %v, ptr addrspace(1) %p
  store volatile half %h, ptr addrspace(1) %p
  ret void
)")
                             .code();
  EXPECT_EQ(registers::demandOf(code), 9u);
  EXPECT_EQ(registers::allocate(code), 16u);
}

TEST(RegistersTest, AccumulatorsOfALoopAreInPlace) {
  auto loop = [](const std::string &after) {
    return demand(R"(
  %v = load <2 x float>, ptr addrspace(1) %p
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x0 = phi float [ 0.0, %entry ], [ %y0, %loop ]
  %x1 = phi float [ 0.0, %entry ], [ %y1, %loop ]
  %x.0 = insertelement <2 x float> poison, float %x0, i64 0
  %x = insertelement <2 x float> %x.0, float %x1, i64 1
  %y = call <2 x float> @__tm_simdgroup_mma(<2 x float> %v, <2 x float> %v, <2 x float> %x)
  %y0 = extractelement <2 x float> %y, i64 0
  %y1 = extractelement <2 x float> %y, i64 1
  %next = add i32 %k, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %z0 = phi float [ %y0, %loop ]
)" + after);
  };
  // The matrix, the accumulators, the counter, and the nesting of loops.
  EXPECT_EQ(loop("store float %z0, ptr addrspace(1) %p\n ret void\n"), 11u);
}

TEST(RegistersTest, OffsetsOf16BitsAreWidened) {
  EXPECT_EQ(demand(R"(
  %k = trunc i32 %i to i16
  %wide = zext i16 %k to i64
  %q = getelementptr float, ptr addrspace(1) %p, i64 %wide
  %x = load float, ptr addrspace(1) %q
  store float %x, ptr addrspace(1) %q
  ret void
)"),
            8u); // the base, the offset, and the offset in 64 bits
}

TEST(RegistersTest, PositionsAndMovedArgumentsLiveFromTheBeginning) {
  EXPECT_EQ(demand(R"(
  br label %later
later:
  %j = call i32 @__tm_engine_position(i32 3, i32 0)
  %k = add i32 %i, %j
  store i32 %k, ptr addrspace(1) %p
  ret void
)"),
            5u); // both positions, and the nesting of conditions
}

TEST(RegistersTest, AccumulatorsThatAreTakenTwiceAreCopied) {
  auto loop = [](const std::string &end) {
    return demand(R"(
  %v = load <2 x float>, ptr addrspace(1) %p
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %x0 = phi float [ 0.0, %entry ], [ %y0, %loop ]
  %x1 = phi float [ 0.0, %entry ], [ %y1, %loop ]
  %x.0 = insertelement <2 x float> poison, float %x0, i64 0
  %x = insertelement <2 x float> %x.0, float %x1, i64 1
  %y = call <2 x float> @__tm_simdgroup_mma(<2 x float> %v, <2 x float> %v, <2 x float> %x)
  %y0 = extractelement <2 x float> %y, i64 0
  %y1 = extractelement <2 x float> %y, i64 1
  %next = add i32 %k, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %z0 = phi float [ 0.0, %entry ], [ %y0, %loop ]
  %z1 = phi float [ 0.0, %entry ], [ %y1, %loop ]
)" + end);
  };
  unsigned floats = loop(R"(
  store float %z0, ptr addrspace(1) %p
  store float %z1, ptr addrspace(1) %p
  ret void
)");
  unsigned halves = loop(R"(
  %h0 = fptrunc float %z0 to half
  %h1 = fptrunc float %z1 to half
  store half %h0, ptr addrspace(1) %p
  store half %h1, ptr addrspace(1) %p
  ret void
)");
  // The matrix, two pairs of accumulators, the counter, and the nesting of loops.
  EXPECT_EQ(floats, 15u);
  // Halves are made of the accumulators before control leaves the loop.
  EXPECT_EQ(halves, 13u);
}

TEST(RegistersTest, AnyShuffleTakesAQuad) {
  std::string shuffle = "%x = call i32 @__tm_simd_shuffle_u32(i32 %i, i32 ";
  std::string end = ")\n store i32 %x, ptr addrspace(1) %p\n ret void\n";
  EXPECT_EQ(demand("%lane = xor i32 %i, 16\n" + shuffle + "%lane" + end), 2u);
  unsigned any = demand("%lane = load i32, ptr addrspace(1) %p\n" + shuffle + "%lane" + end);
  EXPECT_GE(any, 2u + 4 * 2u);
}

TEST(RegistersTest, MoreNumbersThanRegistersCountAsTheyAre) {
  Parsed parsed(sum(10000));
  registers::Code code = parsed.code();
  EXPECT_EQ(registers::demandOf(code), 20000u); // more than there is: a kernel that spills
  registers::orderSteps(code);
  EXPECT_EQ(registers::allocate(code), 4u);
}

/// How many instructions of a function's blocks, in their order, `isCounted` holds for.
template <typename Condition>
std::vector<unsigned> countsOf(Function &function, Condition isCounted) {
  std::vector<unsigned> counts;
  for (BasicBlock &block : function)
    counts.push_back(llvm::count_if(block, isCounted));
  return counts;
}

TEST(RegistersTest, AddressesOfOneBlockShareALongOffset) {
  // Two bases and one offset.
  EXPECT_EQ(demand(R"(
  %p2 = call ptr addrspace(1) @__tm_engine_buffer.1(i32 2)
  %wide = zext i32 %i to i64
  %q = getelementptr [12 x i8], ptr addrspace(1) %p, i64 %wide
  %r = getelementptr [12 x i8], ptr addrspace(1) %p2, i64 %wide
  %x = load float, ptr addrspace(1) %q
  store float %x, ptr addrspace(1) %r
  ret void
)"),
            12u);
}

TEST(RegistersTest, TwoBytesAreOneShortNumber) {
  EXPECT_EQ(halvesOf("<2 x i8>"), 1u);
  // An access does not scale an offset by less than its number has bytes.
  auto of = [](const std::string &type) {
    return demand(R"(
  %wide = zext i32 %i to i64
  %q = getelementptr i8, ptr addrspace(1) %p, i64 %wide
  %x = load )" + type +
                  R"(, ptr addrspace(1) %q
  store )" + type +
                  R"( %x, ptr addrspace(1) %q
  ret void
)");
  };
  EXPECT_EQ(of("i8"), 3u);
  EXPECT_EQ(of("<2 x i8>"), 8u);
}

TEST(RegistersTest, AConstantBesideAnOffsetOfBytesJoinsTheUniformAddress) {
  auto of = [](const std::string &type) {
    return demand(R"(
  %wide = zext i32 %i to i64
  %q = getelementptr )" +
                  type + R"(, ptr addrspace(1) %p, i64 %wide
  %r = getelementptr )" +
                  type + R"(, ptr addrspace(1) %q, i64 16
  %x = load )" + type +
                  R"(, ptr addrspace(1) %r
  store )" + type +
                  R"( %x, ptr addrspace(1) %r
  ret void
)");
  };
  EXPECT_EQ(of("i8"), 3u);
  EXPECT_EQ(of("i16"), 8u);
}

TEST(RegistersTest, PositionsWithoutASignStayLong) {
  auto of = [](const std::string &position) {
    return demand("  %g = call i32 @__tm_engine_position(i32 " + position + R"(, i32 0)
  %wide = zext i32 %g to i64
  %q = getelementptr float, ptr addrspace(1) %p, i64 %wide
  %x = load float, ptr addrspace(1) %q
  store float %x, ptr addrspace(1) %q
  ret void
)");
  };
  EXPECT_EQ(of("0"), 8u); // thread_position_in_grid
  EXPECT_EQ(of("3"), 4u); // thread_index_in_simdgroup
}

TEST(RegistersTest, DivisionsTakeNumbersForTheirSteps) {
  auto of = [](const std::string &by) {
    return demand("  %j = call i32 @__tm_engine_position(i32 9, i32 0)\n  %x = sdiv i32 %i, " + by +
                  R"(
  store i32 %x, ptr addrspace(1) %p
  ret void
)");
  };
  unsigned byPower = of("4"), byConstant = of("100"), byUniform = of("%n"), byNumber = of("%j");
  EXPECT_LT(byPower, byConstant);
  EXPECT_LT(byConstant, byUniform);
  EXPECT_LT(byUniform, byNumber);
}

TEST(RegistersTest, WidenedSumsAreOf32BitsAgain) {
  auto longSums = [](const std::string &flags) {
    Parsed parsed(R"(
  %k = trunc i32 %i to i16
  %a = zext i16 %k to i64
  %b = shl )" + flags +
                  R"( i64 %a, 6
  %sum = add )" + flags +
                  R"( i64 %a, %b
  %q = getelementptr float, ptr addrspace(1) %p, i64 %sum
  store float 0.0, ptr addrspace(1) %q
  ret void
)");
    registers::narrowNumbers(parsed.function());
    return countsOf(parsed.function(), [](Instruction &inst) {
      return isa<BinaryOperator>(inst) && inst.getType()->isIntegerTy(64);
    })[0];
  };
  EXPECT_EQ(longSums("nuw nsw"), 0u);
  EXPECT_EQ(longSums(""), 2u); // the text's own
}

TEST(RegistersTest, OfTwoOffsetsTheAccessAddsTheOneWithASign) {
  auto indices = [](const std::string &first, const std::string &second) {
    Parsed parsed("  %j = call i32 @__tm_engine_position(i32 9, i32 0)\n  %a = " + first +
                  " i32 %i to i64\n  %b = " + second + R"( i32 %j to i64
  %q = getelementptr float, ptr addrspace(1) %p, i64 %a
  %r = getelementptr float, ptr addrspace(1) %q, i64 %b
  store float 0.0, ptr addrspace(1) %r
  ret void
)");
    registers::narrowNumbers(parsed.function());
    auto *store = cast<StoreInst>(parsed.function().front().getTerminator()->getPrevNode());
    return cast<GetElementPtrInst>(store->getPointerOperand())->getOperand(1)->getName().str();
  };
  EXPECT_EQ(indices("sext", "zext"), "a");
  EXPECT_EQ(indices("zext", "sext"), "b");
  EXPECT_EQ(indices("zext", "zext"), ""); // their sum
}

TEST(RegistersTest, ArithmeticOfOneNumberIsDoneWhereItIsUsed) {
  // The conversions come after the second load.
  Parsed parsed(R"(
  %x = load volatile i32, ptr addrspace(1) %p
  %a = trunc i32 %x to i16
  %b = sext i16 %a to i32
  %y = load volatile i32, ptr addrspace(1) %p
  %c = add i32 %y, %b
  store volatile i32 %c, ptr addrspace(1) %p
  ret void
)");
  registers::Code code = parsed.code();
  registers::orderSteps(code);
  std::vector<bool> isOrdered;
  for (const registers::Step &step : code.blocks.front().steps)
    isOrdered.push_back(step.isOrdered);
  EXPECT_EQ(isOrdered, (std::vector<bool>{true, true, false, false, false, true}));
}

} // namespace
