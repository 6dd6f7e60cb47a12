// Random programs with every kind of divergence, run by SIMD-groups and, for comparison, one thread
// after the other.
#include "RandomProgram.h"
#include "Support.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

constexpr unsigned inputs = 4096, outputsPerThread = 8;

/// Writes `void k(in, out, index, group, simdgroup, groups, size, x, y)`.
class Generator : RandomProgram {
public:
  Generator(Module &module, uint64_t seed)
      : RandomProgram(module, seed, parameters(module.getContext())) {
    thread =
        b.CreateAdd(b.CreateMul(function->getArg(3), function->getArg(6)), function->getArg(2));
    for (int i = 0; i != 5; ++i)
      numbers.push_back(b.CreateAlloca(i32, nullptr, "n" + Twine(i)));
    for (int i = 0; i != 2; ++i)
      uniforms.push_back(b.CreateAlloca(i32, nullptr, "u" + Twine(i)));
    for (int i = 0; i != 3; ++i)
      reals.push_back(b.CreateAlloca(b.getFloatTy(), nullptr, "f" + Twine(i)));
    for (auto [i, slot] : enumerate(numbers))
      b.CreateStore(b.CreateAdd(thread, b.getInt32(i)), slot);
    for (auto [i, slot] : enumerate(uniforms))
      b.CreateStore(function->getArg(3 + i), slot);
    for (auto [i, slot] : enumerate(reals))
      b.CreateStore(ConstantFP::get(b.getFloatTy(), 0.5 * i), slot);
    fillArray();
    exit = block("exit");
    body(4, 0);
    close(exit);
    b.SetInsertPoint(exit);
    for (unsigned i = 0; i != 5; ++i)
      put(b.getInt32(i), b.CreateLoad(i32, numbers[i]));
    for (unsigned i = 0; i != 3; ++i)
      put(b.getInt32(5 + i), b.CreateBitCast(b.CreateLoad(b.getFloatTy(), reals[i]), i32));
    b.CreateRetVoid();
  }

private:
  static SmallVector<Type *> parameters(LLVMContext &context) {
    Type *device = PointerType::get(context, 1), *i32 = Type::getInt32Ty(context);
    return {device, device, i32, i32, i32, i32, i32, i32, i32};
  }

  void put(Value *slot, Value *value) {
    Value *index = b.CreateAdd(b.CreateMul(thread, b.getInt32(outputsPerThread)), slot);
    b.CreateStore(value, b.CreateGEP(b.getInt32Ty(), function->getArg(1),
                                     b.CreateZExt(index, b.getInt64Ty())));
  }

  Value *uniform() {
    switch (pick(4)) {
    case 0:
      return b.getInt32(pick(9));
    case 1:
      return function->getArg(3 + pick(3));
    default:
      return b.CreateLoad(b.getInt32Ty(), uniforms[pick(uniforms.size())]);
    }
  }

  Value *number(unsigned depth) {
    if (depth == 0 || chance(25)) {
      switch (pick(8)) {
      case 0:
        return b.getInt32(random());
      case 1:
        return chance(50) ? thread : function->getArg(7 + pick(2));
      case 2:
        return chance(50) ? uniform() : tile();
      case 3:
        return b.CreateLoad(
            b.getInt32Ty(),
            element(b.CreateAnd(b.CreateLoad(b.getInt32Ty(), numbers[pick(5)]), b.getInt32(7))));
      case 4: {
        Value *index =
            b.CreateAnd(b.CreateLoad(b.getInt32Ty(), numbers[pick(5)]), b.getInt32(inputs - 1));
        return b.CreateLoad(b.getInt32Ty(), b.CreateGEP(b.getInt32Ty(), function->getArg(0),
                                                        b.CreateZExt(index, b.getInt64Ty())));
      }
      default:
        return b.CreateLoad(b.getInt32Ty(), numbers[pick(5)]);
      }
    }
    Value *x = number(depth - 1), *y = number(depth - 1);
    switch (pick(15)) {
    case 13: {
      Value *product =
          b.CreateMul(b.CreateSExt(x, b.getInt64Ty()), b.CreateZExt(y, b.getInt64Ty()));
      return b.CreateTrunc(b.CreateAShr(product, 17), b.getInt32Ty());
    }
    case 14:
      return b.CreateZExt(b.CreateICmpUGT(x, y), b.getInt32Ty());
    case 0:
      return b.CreateAdd(x, y);
    case 1:
      return b.CreateSub(x, y);
    case 2:
      return b.CreateMul(x, y);
    case 3:
      return b.CreateAnd(x, y);
    case 4:
      return b.CreateOr(x, y);
    case 5:
      return b.CreateXor(x, b.getInt32(pick(64)));
    case 6:
      return b.CreateShl(x, b.CreateAnd(y, b.getInt32(31)));
    case 7:
      return b.CreateLShr(x, b.getInt32(pick(8)));
    case 8:
      return b.CreateUDiv(x, b.CreateOr(y, b.getInt32(1)));
    case 9:
      return b.CreateSRem(b.CreateLShr(x, 1),
                          b.CreateOr(b.CreateAnd(y, b.getInt32(0xffff)), b.getInt32(1)));
    case 10:
      return b.CreateSelect(condition(depth - 1), x, y);
    case 11:
      return b.CreateSExt(b.CreateTrunc(x, b.getInt16Ty()), b.getInt32Ty());
    default:
      return b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::umin, {x, y});
    }
  }

  /// A number from the inputs, at an index that is regular in the thread's position.
  Value *tile() {
    Value *index =
        b.CreateAdd(b.CreateMul(function->getArg(7), b.getInt32(pick(5))),
                    chance(50) ? b.CreateMul(function->getArg(8), b.getInt32(pick(9)))
                               : b.CreateMul(b.CreateLShr(function->getArg(2), b.getInt32(pick(4))),
                                             b.CreateAnd(uniform(), b.getInt32(3))));
    if (chance(40))
      index = b.CreateXor(index, b.getInt32(pick(16)));
    index =
        b.CreateAnd(b.CreateAdd(index, b.CreateAnd(uniform(), b.getInt32(63))), b.getInt32(1023));
    Value *wide =
        chance(50) ? b.CreateZExt(index, b.getInt64Ty()) : b.CreateSExt(index, b.getInt64Ty());
    switch (pick(3)) {
    case 0:
      return b.CreateLoad(b.getInt32Ty(), b.CreateGEP(b.getInt32Ty(), function->getArg(0), wide));
    case 1: {
      unsigned count = chance(50) ? 2 : 4;
      auto *type = FixedVectorType::get(b.getInt32Ty(), count);
      Value *row =
          b.CreateAlignedLoad(type, b.CreateGEP(type, function->getArg(0), wide), Align(4));
      return b.CreateXor(b.CreateExtractElement(row, uint64_t(pick(count))),
                         b.CreateExtractElement(row, uint64_t(pick(count))));
    }
    default: {
      Value *narrow =
          b.CreateLoad(b.getInt16Ty(), b.CreateGEP(b.getInt16Ty(), function->getArg(0), wide));
      return chance(50) ? b.CreateSExt(narrow, b.getInt32Ty())
                        : b.CreateZExt(narrow, b.getInt32Ty());
    }
    }
  }

  Value *real(unsigned depth) {
    if (depth == 0 || chance(30))
      return chance(30) ? b.CreateSIToFP(b.CreateAnd(number(0), b.getInt32(1023)), b.getFloatTy())
                        : b.CreateLoad(b.getFloatTy(), reals[pick(3)]);
    Value *x = real(depth - 1), *y = real(depth - 1);
    switch (pick(6)) {
    case 3:
      return b.CreateFPExt(
          b.CreateFAdd(b.CreateFPTrunc(x, b.getHalfTy()), b.CreateFPTrunc(y, b.getHalfTy())),
          b.getFloatTy());
    case 4:
      return b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma,
                               {x, ConstantFP::get(b.getFloatTy(), 0.125), y});
    case 0:
      return b.CreateFAdd(x, y);
    case 1:
      return b.CreateFSub(x, y);
    case 2:
      return b.CreateFMul(x, ConstantFP::get(b.getFloatTy(), 0.25));
    default:
      return b.CreateSelect(b.CreateFCmpOLT(x, y), x, y);
    }
  }

  Value *condition(unsigned depth) {
    switch (pick(5)) {
    case 0:
      return b.CreateICmpULT(uniform(), b.getInt32(pick(6)));
    case 1:
      return b.CreateFCmpOLT(real(1), real(1));
    case 2:
      return b.CreateICmpEQ(b.CreateAnd(number(depth), b.getInt32(1 + pick(3))), b.getInt32(0));
    default:
      return b.CreateICmpSLT(number(depth), number(depth));
    }
  }

  void body(unsigned size, unsigned depth) {
    for (unsigned i = 0; i != size; ++i) {
      if (b.GetInsertBlock()->getTerminator())
        return;
      statement(depth);
    }
  }

  void statement(unsigned depth) {
    switch (pick(depth < 4 ? 13 : 5)) {
    case 0:
    case 1:
      b.CreateStore(number(2), numbers[pick(5)]);
      return;
    case 2:
      b.CreateStore(real(2), reals[pick(3)]);
      return;
    case 3:
      b.CreateStore(number(1), element(chance(50) ? b.CreateAnd(number(1), b.getInt32(7))
                                                  : b.CreateAnd(uniform(), b.getInt32(7))));
      return;
    case 4:
      if (chance(25)) {
        auto *type = FixedVectorType::get(b.getInt32Ty(), 2);
        Value *pair = b.CreateInsertElement(
            b.CreateInsertElement(PoisonValue::get(type), number(1), uint64_t(0)), number(1),
            uint64_t(1));
        Value *index = b.CreateAdd(b.CreateMul(thread, b.getInt32(outputsPerThread / 2)),
                                   b.getInt32(pick(outputsPerThread / 2)));
        b.CreateAlignedStore(
            pair, b.CreateGEP(type, function->getArg(1), b.CreateZExt(index, b.getInt64Ty())),
            Align(4));
        return;
      }
      put(b.CreateAnd(number(1), b.getInt32(outputsPerThread - 1)), number(1));
      return;
    case 5:
    case 6:
      return when(condition(1), [&] { body(1 + pick(3), depth + 1); });
    case 7:
      return when(
          condition(1), [&] { body(1 + pick(2), depth + 1); },
          [&] { body(1 + pick(2), depth + 1); });
    case 8:
    case 9:
    case 10: {
      Value *limit = chance(50) ? b.CreateAnd(number(1), b.getInt32(7))
                                : b.CreateAnd(uniform(), b.getInt32(7));
      return loop([&](Value *now) { return b.CreateICmpULT(now, limit); },
                  [&](Value *now, Loop around) {
                    loops.push_back(around);
                    if (chance(50))
                      b.CreateStore(b.CreateAdd(now, function->getArg(3)), uniforms[pick(2)]);
                    body(1 + pick(4), depth + 1);
                    loops.pop_back();
                  });
    }
    case 11: {
      BasicBlock *away = chance(10) || loops.empty() ? exit
                         : chance(50)                ? loops.back().latch
                                                     : loops[pick(loops.size())].end;
      if (away == exit && chance(60))
        return;
      BasicBlock *on = block("on");
      b.CreateCondBr(condition(1), away, on);
      b.SetInsertPoint(on);
      return;
    }
    default: {
      BasicBlock *join = block("join");
      auto *choice =
          b.CreateSwitch(b.CreateAnd(chance(70) ? number(1) : uniform(), b.getInt32(3)), join, 3);
      BasicBlock *fallThrough = nullptr;
      for (int i = 0; i != 3; ++i) {
        BasicBlock *way = block("case");
        choice->addCase(b.getInt32(i), way);
        if (fallThrough) {
          b.SetInsertPoint(fallThrough);
          close(chance(40) ? way : join);
        }
        b.SetInsertPoint(way);
        body(1, depth + 1);
        fallThrough = b.GetInsertBlock();
      }
      close(join);
      b.SetInsertPoint(join);
      return;
    }
    }
  }

  Value *thread = nullptr;
  SmallVector<AllocaInst *> numbers, uniforms, reals;
  BasicBlock *exit;
  std::vector<Loop> loops;
};

struct Shape {
  uint32_t groups;
  std::array<uint32_t, 3> threads;
};

class RandomPrograms : public ::testing::TestWithParam<int> {};

TEST_P(RandomPrograms, AgreeWithThreadsOneByOne) {
  static const bool ready = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return true;
  }();
  ASSERT_TRUE(ready);
  static const std::vector<std::string> names = processors();
  for (int program = 0; program != 3; ++program) {
    uint64_t seed = uint64_t(GetParam()) * 1000 + program;
    auto context = std::make_unique<LLVMContext>();
    auto module = std::make_unique<Module>("random", *context);
    auto jit = cantFail(orc::LLJITBuilder().create());
    module->setDataLayout(jit->getDataLayout());
    Generator(*module, seed);
    ASSERT_FALSE(verifyModule(*module, &errs()));
    std::string ir;
    raw_string_ostream(ir) << *module << R"(
define void @wrapper(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %index, i32 %group, i32 %simdgroup, i32 %groups, <3 x i32> %threads, <3 x i32> %at) {
  %tx = extractelement <3 x i32> %threads, i64 0
  %ty = extractelement <3 x i32> %threads, i64 1
  %tz = extractelement <3 x i32> %threads, i64 2
  %t = mul i32 %tx, %ty
  %size = mul i32 %t, %tz
  %x = extractelement <3 x i32> %at, i64 0
  %y = extractelement <3 x i32> %at, i64 1
  call void @k(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %index, i32 %group, i32 %simdgroup, i32 %groups, i32 %size, i32 %x, i32 %y)
  ret void
}
)";
    cantFail(jit->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))));
    auto *reference = cantFail(jit->lookup("k"))
                          .toPtr<void (*)(void *, void *, uint32_t, uint32_t, uint32_t, uint32_t,
                                          uint32_t, uint32_t, uint32_t)>();

    std::mt19937 numbers(seed);
    std::vector<uint32_t> in(inputs);
    for (uint32_t &number : in)
      number = numbers();
    // Vectors of positions are taken apart by a wrapper.
    KernelInfo info =
        kernelInfo("wrapper", {buffer("in", 0, true), buffer("out", 1),
                               position("index", Position::ThreadIndexInThreadgroup),
                               position("group", Position::ThreadgroupPositionInGrid),
                               position("simdgroup", Position::SimdgroupIndexInThreadgroup),
                               position("groups", Position::ThreadgroupsPerGrid),
                               position("threads", Position::ThreadsPerThreadgroup, 3),
                               position("at", Position::ThreadPositionInThreadgroup, 3)});
    for (int variant = 0; variant != 3; ++variant) {
      LibraryOptions options;
      options.count = variant == 1;
      options.checks.bounds = variant == 2;
      options.processor = names[(seed + variant) % names.size()]; // each in its turn
      options.effort = (program + variant) % 2 ? Effort::Full : Effort::Quick;
      auto library = libraryOf(ir, info, options);
      ASSERT_TRUE(library);
      for (Shape shape : {Shape{2, {64, 1, 1}}, Shape{2, {40, 1, 1}}, Shape{1, {8, 4, 3}},
                          Shape{2, {32, 2, 1}}, Shape{1, {5, 7, 1}}}) {
        if (variant && shape.threads[1] != 1 && program % 3)
          continue;
        uint32_t size = shape.threads[0] * shape.threads[1] * shape.threads[2],
                 total = size * shape.groups;
        std::vector<uint32_t> expected(total * outputsPerThread, 77), out = expected;
        for (uint32_t group = 0; group != shape.groups; ++group)
          for (uint32_t index = 0; index != size; ++index)
            reference(in.data(), expected.data(), index, group, index / 32, shape.groups, size,
                      index % shape.threads[0], index / shape.threads[0] % shape.threads[1]);
        std::vector<BufferBinding> buffers{bindConst(in), bind(out)};
        Dispatch dispatch;
        dispatch.threadgroups = {shape.groups, 1, 1};
        dispatch.threadsPerThreadgroup = shape.threads;
        dispatch.buffers = buffers;
        if (variant == 1)
          dispatch.scheduleSeed = seed;
        ASSERT_EQ(errorOf((*library->kernel("wrapper"))->dispatch(dispatch)), "")
            << "seed " << seed;
        for (uint32_t i = 0; i != out.size(); ++i)
          ASSERT_EQ(out[i], expected[i])
              << "seed " << seed << " thread " << i / outputsPerThread << " slot "
              << i % outputsPerThread << " variant " << variant << " size " << size
              << " processor '" << options.processor << "' effort " << int(options.effort);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, ::testing::Range(seeds(6).first, seeds(6).second));

} // namespace
