// Random programs about memory: tiles of a few lanes that store through related addresses between
// barriers, atomics and lane operations where lanes have parted, numbers of every width at places
// known only at run time. SIMD-groups must agree with threads that run one after the other, and
// touch nothing beyond their buffers.
#include "GuardedMemory.h"
#include "RandomProgram.h"
#include "Support.h"
#include "ThreadByThread.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

// A threadgroup's words of the output: a tile, counters that many lanes add to, cells that one lane
// can claim, and each thread's own.
constexpr unsigned inputs = 1024, tileWords = 64, counters = 8, claims = 8, ownWords = 8;
constexpr unsigned sharedWords = tileWords + counters + claims;

/// Writes `void k(in, out, index, group, size, lane)`.
class Generator : RandomProgram {
public:
  /// `reference`: for ThreadByThread, else for the engine.
  Generator(Module &module, uint64_t seed, bool reference, bool full)
      : RandomProgram(module, seed, parameters(module.getContext())), reference(reference),
        full(full) {
    index = function->getArg(2);
    size = function->getArg(4);
    lane = function->getArg(5);
    for (int i = 0; i != 4; ++i)
      numbers.push_back(b.CreateAlloca(i32, nullptr, "n" + Twine(i)));
    Value *stride = b.CreateAdd(b.CreateMul(size, b.getInt32(ownWords)), b.getInt32(sharedWords));
    out = word(function->getArg(1), b.CreateMul(function->getArg(3), stride));
    own = word(out, b.CreateAdd(b.CreateMul(index, b.getInt32(ownWords)), b.getInt32(sharedWords)));
    auto alloc = module.getOrInsertFunction(
        "__tm_threadgroup_alloc", FunctionType::get(PointerType::get(module.getContext(), 3),
                                                    {i32, b.getInt64Ty(), b.getInt64Ty()}, false));
    local = b.CreateCall(alloc, {b.getInt32(0), b.getInt64(4 * tileWords), b.getInt64(4)});
    for (auto [i, slot] : enumerate(numbers))
      b.CreateStore(b.CreateAdd(b.CreateMul(index, b.getInt32(2 * i + 1)), b.getInt32(i)), slot);
    fillArray();
    // Every word of the tile in threadgroup memory.
    loop(
        [&](Value *step) {
          return b.CreateICmpULT(b.CreateMul(step, size), b.getInt32(tileWords));
        },
        [&](Value *step, Loop) {
          Value *at = b.CreateAdd(b.CreateMul(step, size), index);
          when(b.CreateICmpULT(at, b.getInt32(tileWords)),
               [&] { b.CreateStore(b.CreateXor(at, b.getInt32(99)), word(local, at)); });
        });
    barrier();
    for (unsigned i = 0, count = 2 + pick(4); i != count; ++i)
      step();
    barrier();
    for (unsigned i = 0; i != 4; ++i)
      b.CreateStore(b.CreateXor(load(numbers[i]), b.CreateLoad(i32, word(own, b.getInt32(i)))),
                    word(own, b.getInt32(i)));
    b.CreateRetVoid();
  }

private:
  static SmallVector<Type *> parameters(LLVMContext &context) {
    Type *device = PointerType::get(context, 1), *i32 = Type::getInt32Ty(context);
    return {device, device, i32, i32, i32, i32};
  }
  AllocaInst *slot() { return numbers[pick(numbers.size())]; }
  void barrier() {
    b.CreateCall(module.getOrInsertFunction("__tm_threadgroup_barrier",
                                            FunctionType::get(b.getVoidTy(), {i32}, false)),
                 {b.getInt32(3)});
  }

  Value *number(unsigned depth) {
    if (depth == 0 || chance(30))
      switch (pick(7)) {
      case 0:
        return b.getInt32(random());
      case 1:
        return chance(50) ? index : lane;
      case 2:
        return load(element(b.CreateAnd(load(slot()), b.getInt32(7))));
      case 3:
        return load(word(function->getArg(0), b.CreateAnd(load(slot()), b.getInt32(inputs - 1))));
      case 4:
        return load(word(own, b.CreateAnd(load(slot()), b.getInt32(ownWords - 1))));
      default:
        return load(slot());
      }
    Value *x = number(depth - 1), *y = number(depth - 1);
    switch (pick(6)) {
    case 0:
      return b.CreateSub(x, y);
    case 1:
      return b.CreateMul(x, y);
    case 2:
      return b.CreateXor(x, y);
    case 3:
      return b.CreateSelect(condition(), x, y);
    case 4:
      return b.CreateLShr(x, b.CreateAnd(y, b.getInt32(15)));
    default:
      return b.CreateAdd(x, y);
    }
  }

  /// Of one lane, of the first lanes of every so many, of one SIMD-group, of what a number says.
  Value *condition() {
    switch (pick(7)) {
    case 0:
      return b.CreateICmpEQ(index, b.getInt32(pick(40)));
    case 1:
      return b.CreateICmpULT(b.CreateAnd(index, b.getInt32((1u << pick(6)) - 1)),
                             b.getInt32(1 + pick(8)));
    case 2:
      return b.CreateICmpEQ(b.CreateLShr(index, b.getInt32(5)), b.getInt32(pick(3)));
    case 3:
      return b.CreateICmpULT(lane, b.getInt32(1u << pick(6)));
    case 4:
      return b.CreateICmpSLT(load(slot()), load(slot()));
    case 5: {
      // A select, as the condition of a tile that is smaller than its SIMD-groups.
      Value *low = b.CreateICmpULT(lane, b.getInt32(1u << pick(6)));
      return b.CreateSelect(low, b.CreateICmpULT(index, b.getInt32(32u << pick(3))), b.getFalse());
    }
    default:
      return b.CreateICmpEQ(b.CreateAnd(load(slot()), b.getInt32(1 + pick(3))), b.getInt32(0));
    }
  }

  //===--------------------------------------------------------------------===//
  // What all threads come to
  //===--------------------------------------------------------------------===//

  void step() {
    switch (pick(5)) {
    case 0:
    case 1:
      return exchange();
    case 2:
      return lanesTogether();
    default:
      return body(1 + pick(3), 0);
    }
  }

  /// The address of element `i` of `count` after a permutation of them.
  Value *permuted(Value *base, Value *i, unsigned count) {
    Value *last = b.getInt32(count - 1);
    switch (pick(5)) {
    case 0:
      return word(base, i);
    case 1:
      return word(base, b.CreateXor(i, b.getInt32(pick(count))));
    case 2: // down from the end
      return b.CreateGEP(i32, word(base, last),
                         b.CreateSExt(b.CreateNSWSub(b.getInt32(0), i), b.getInt64Ty()));
    case 3:
      return word(base, b.CreateAnd(b.CreateAdd(i, b.getInt32(pick(count))), last));
    default:
      return word(base, b.CreateAnd(b.CreateMul(i, b.getInt32(2 * pick(8) + 1)), last));
    }
  }

  /// A tile of a power of two of elements, one a lane: loaded by all, stored by its own.
  void exchange() {
    unsigned bits = pick(7), count = 1u << bits;
    Value *i = nullptr, *owner = nullptr;
    if (count <= 32 && chance(60)) {
      unsigned simdgroup = chance(70) ? 0 : pick(3);
      i = b.CreateAnd(lane, b.getInt32(count - 1));
      owner = b.CreateSelect(
          b.CreateICmpULT(lane, b.getInt32(count)),
          b.CreateICmpEQ(b.CreateLShr(index, b.getInt32(5)), b.getInt32(simdgroup)), b.getFalse());
    } else {
      i = b.CreateAnd(index, b.getInt32(count - 1));
      owner = b.CreateICmpULT(index, b.getInt32(count));
    }
    if (chance(30))
      owner = b.CreateAnd(owner, b.CreateICmpULT(i, b.getInt32(1 + pick(count))));
    if (chance(20))
      owner = b.CreateAnd(owner, condition());
    Value *base = word(chance(50) ? out : local, b.getInt32(pick(tileWords - count + 1)));
    Value *value = load(permuted(base, i, count));
    AllocaInst *kept = slot();
    b.CreateStore(b.CreateAdd(b.CreateMul(load(kept), b.getInt32(5)), value), kept);
    barrier();
    Value *next = b.CreateAdd(value, b.getInt32(1));
    for (unsigned i2 = 0, stores = 1 + pick(3); i2 != stores; ++i2) {
      Value *to = permuted(base, i, count);
      when(owner, [&] {
        if (chance(30))
          b.CreateStore(index, to); // and over it
        if (chance(25))
          b.CreateAtomicCmpXchg(to, chance(50) ? load(to) : next, next, Align(4),
                                AtomicOrdering::Monotonic, AtomicOrdering::Monotonic);
        else if (chance(25))
          b.CreateAtomicRMW(AtomicRMWInst::Add, to, next, Align(4), AtomicOrdering::Monotonic);
        else
          b.CreateStore(chance(70) ? next : b.CreateXor(next, number(1)), to);
      });
      barrier();
    }
  }

  /// A reduction, a scan or a shuffle of the lanes for which something holds.
  void lanesTogether() {
    static constexpr std::pair<LaneOperation, const char *> operations[] = {
        {LaneOperation::Sum, "__tm_simd_sum_i32"},
        {LaneOperation::Xor, "__tm_simd_xor_u32"},
        {LaneOperation::Or, "__tm_simd_or_u32"},
        {LaneOperation::MaxSigned, "__tm_simd_max_i32"},
        {LaneOperation::MinUnsigned, "__tm_simd_min_u32"},
        {LaneOperation::Inclusive, "__tm_simd_inclusive_sum_u32"},
        {LaneOperation::Exclusive, "__tm_simd_exclusive_sum_u32"},
        {LaneOperation::QuadInclusive, "__tm_quad_inclusive_sum_i32"},
        {LaneOperation::QuadExclusive, "__tm_quad_exclusive_sum_u32"},
        {LaneOperation::Ballot, "__tm_simd_ballot"},
        {LaneOperation::Shuffle, "__tm_simd_shuffle_u32"}};
    auto [operation, name] = operations[pick(std::size(operations) - (full ? 0 : 1))];
    Value *value = number(1);
    Value *from = b.CreateAnd(chance(50) ? b.CreateXor(lane, b.getInt32(pick(32))) : number(1),
                              b.getInt32(31));
    unsigned number = site++;
    AllocaInst *kept = slot();
    auto emit = [&] {
      Value *result;
      if (reference)
        result = b.CreateCall(module.getOrInsertFunction(
                                  "lanes", FunctionType::get(i32, {i32, i32, i32, i32}, false)),
                              {b.getInt32(unsigned(operation)), b.getInt32(number), value, from});
      else if (operation == LaneOperation::Shuffle)
        result = call(name, i32, {value, from});
      else if (operation == LaneOperation::Ballot)
        result = b.CreateTrunc(call(name, b.getInt64Ty(), {value}), i32);
      else
        result = call(name, i32, {value});
      b.CreateStore(b.CreateXor(load(kept), result), kept);
    };
    // A shuffle reads lanes that take part.
    if (operation == LaneOperation::Shuffle || chance(30))
      return emit();
    when(condition(), emit);
  }

  Value *call(const char *name, Type *result, ArrayRef<Value *> arguments) {
    SmallVector<Type *> types;
    for (Value *argument : arguments)
      types.push_back(argument->getType());
    auto callee = module.getOrInsertFunction(name, FunctionType::get(result, types, false));
    cast<Function>(callee.getCallee())->addFnAttr(Attribute::Convergent);
    auto *made = b.CreateCall(callee, arguments);
    made->addFnAttr(Attribute::Convergent);
    return made;
  }

  //===--------------------------------------------------------------------===//
  // What each thread does for itself
  //===--------------------------------------------------------------------===//

  void body(unsigned statements, unsigned depth) {
    for (unsigned i = 0; i != statements; ++i)
      statement(depth);
  }

  void statement(unsigned depth) {
    switch (pick(depth < 3 ? 10 : 7)) {
    case 0:
      b.CreateStore(number(2), slot());
      return;
    case 1:
      b.CreateStore(number(1), element(b.CreateAnd(number(1), b.getInt32(7))));
      return;
    case 2: { // several stores of one thread, in order
      Value *at = b.CreateAnd(number(1), b.getInt32(ownWords - 1));
      b.CreateStore(number(1), word(own, at));
      b.CreateStore(number(1), word(own, b.CreateXor(at, b.getInt32(pick(ownWords)))));
      if (chance(50))
        b.CreateStore(load(word(own, b.CreateXor(at, b.getInt32(pick(ownWords))))), slot());
      return;
    }
    case 3: { // of other widths
      unsigned bytes = 1u << pick(4);
      auto *type = b.getIntNTy(8 * bytes);
      Value *at = b.CreateZExt(b.CreateAnd(number(1), b.getInt32(4 * ownWords / bytes - 1)),
                               b.getInt64Ty());
      Value *to = b.CreateGEP(type, own, at);
      b.CreateAlignedStore(b.CreateZExtOrTrunc(number(1), type), to, Align(std::min(bytes, 4u)));
      b.CreateStore(
          b.CreateZExtOrTrunc(b.CreateAlignedLoad(type, to, Align(std::min(bytes, 4u))), i32),
          slot());
      return;
    }
    case 4: { // many lanes to one counter, whose order does not matter
      unsigned which = pick(counters);
      static constexpr AtomicRMWInst::BinOp kinds[] = {AtomicRMWInst::Add, AtomicRMWInst::Xor,
                                                       AtomicRMWInst::UMax, AtomicRMWInst::Or};
      b.CreateAtomicRMW(kinds[which % 4], word(out, b.getInt32(tileWords + which)), number(1),
                        Align(4), AtomicOrdering::Monotonic);
      return;
    }
    case 5: { // one lane of many gets the cell
      unsigned which = pick(claims - 1);
      Value *pair = b.CreateAtomicCmpXchg(word(out, b.getInt32(tileWords + counters + which)),
                                          b.getInt32(0), b.getInt32(17 + which), Align(4),
                                          AtomicOrdering::Monotonic, AtomicOrdering::Monotonic);
      when(b.CreateExtractValue(pair, 1), [&] {
        b.CreateAtomicRMW(AtomicRMWInst::Add,
                          word(out, b.getInt32(tileWords + counters + claims - 1)),
                          b.getInt32(1u << (4 * which)), Align(4), AtomicOrdering::Monotonic);
      });
      return;
    }
    case 6: { // atomics on a word of one's own, with their results
      Value *to = word(own, b.CreateAnd(number(1), b.getInt32(ownWords - 1)));
      if (chance(50)) {
        Value *pair =
            b.CreateAtomicCmpXchg(to, chance(60) ? load(to) : number(1), number(1), Align(4),
                                  AtomicOrdering::Monotonic, AtomicOrdering::Monotonic);
        b.CreateStore(b.CreateAdd(b.CreateExtractValue(pair, 0),
                                  b.CreateZExt(b.CreateExtractValue(pair, 1), i32)),
                      slot());
        return;
      }
      static constexpr AtomicRMWInst::BinOp kinds[] = {
          AtomicRMWInst::Add, AtomicRMWInst::Sub, AtomicRMWInst::And,  AtomicRMWInst::Or,
          AtomicRMWInst::Xor, AtomicRMWInst::Max, AtomicRMWInst::UMin, AtomicRMWInst::Xchg};
      b.CreateStore(
          b.CreateAtomicRMW(kinds[pick(8)], to, number(1), Align(4), AtomicOrdering::Monotonic),
          slot());
      return;
    }
    case 7: {
      Value *times = b.CreateAnd(number(1), b.getInt32(3));
      loop([&](Value *now) { return b.CreateICmpULT(now, times); },
           [&](Value *, Loop) { body(1 + pick(2), depth + 1); });
      return;
    }
    case 8:
      return when(
          condition(), [&] { body(1 + pick(2), depth + 1); },
          [&] { body(1 + pick(2), depth + 1); });
    default:
      return when(condition(), [&] { body(1 + pick(3), depth + 1); });
    }
  }

  bool reference, full;
  Value *index, *size, *lane, *out, *own, *local;
  SmallVector<AllocaInst *> numbers;
  unsigned site = 0;
};

/// The program for ThreadByThread, as machine code of the host that LLVM makes without this engine.
class Reference {
public:
  using Function = void (*)(const void *, void *, uint32_t, uint32_t, uint32_t, uint32_t);

  Reference(uint64_t seed, bool full) {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    jit = cantFail(orc::LLJITBuilder().create());
    auto context = std::make_unique<LLVMContext>();
    auto module = std::make_unique<Module>("reference", *context);
    module->setDataLayout(jit->getDataLayout());
    Generator(*module, seed, /*reference=*/true, full);
    orc::SymbolMap symbols;
    auto add = [&](const char *name, auto *function) {
      symbols[jit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function),
                                             JITSymbolFlags::Exported};
    };
    add("__tm_threadgroup_barrier", +[](uint32_t) { ThreadByThread::barrier(); });
    add(
        "__tm_threadgroup_alloc",
        +[](uint32_t, uint64_t, uint64_t) { return static_cast<void *>(threadgroupMemory); });
    add("lanes", &ThreadByThread::lanes);
    cantFail(jit->getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols))));
    cantFail(jit->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))));
    function = cantFail(jit->lookup("k")).toPtr<Function>();
  }

  bool run(const uint32_t *in, uint32_t *out, uint32_t groups, uint32_t size) {
    for (uint32_t group = 0; group != groups; ++group)
      if (!threads.run(size,
                       [&](uint32_t index) { function(in, out, index, group, size, index % 32); }))
        return false;
    return true;
  }

private:
  static inline uint32_t threadgroupMemory[tileWords];
  std::unique_ptr<orc::LLJIT> jit;
  Function function = nullptr;
  ThreadByThread threads;
};

class RandomMemory : public ::testing::TestWithParam<int> {};

TEST_P(RandomMemory, AgreesWithThreadsOneByOne) {
  static const std::vector<std::string> names = processors();
  const char *only = std::getenv("TRITON_METAL_TEST_PROGRAM");
  for (uint64_t program = 0; program != 25; ++program) {
    uint64_t seed = uint64_t(GetParam()) * 1000 + program;
    if (only && std::strtoull(only, nullptr, 10) != seed)
      continue;
    std::mt19937_64 random(~seed);
    // Programs with shuffles need SIMD-groups without a gap.
    bool full = random() % 2;
    uint32_t sizes[] = {1, 5, 8, 31, 33, 40, 72, 100}, fullSizes[] = {32, 64, 96, 128};
    uint32_t size = full ? fullSizes[random() % 4] : sizes[random() % 8];
    uint32_t groups = 1 + random() % 2;
    LibraryOptions options;
    options.checks.bounds = random() % 4 == 0;
    options.count = random() % 4 == 0;
    options.effort = program % 2 ? Effort::Full : Effort::Quick;
    Reference reference(seed, full);
    LLVMContext context;
    Module module("random", context);
    Generator(module, seed, /*reference=*/false, full);
    ASSERT_FALSE(verifyModule(module, &errs())) << "seed " << seed;
    std::string ir;
    raw_string_ostream(ir) << module;
    if (only)
      errs() << ir;

    GuardedMemory in(inputs, random() % 2);
    for (uint32_t &number : in.data())
      number = random();
    uint32_t words = groups * (sharedWords + size * ownWords);
    std::vector<uint32_t> expected(words);
    for (uint32_t i = 0; i != words; ++i) {
      uint32_t at = i % (sharedWords + size * ownWords);
      expected[i] = at >= tileWords && at < sharedWords ? 0 : random();
    }
    const std::vector<uint32_t> start = expected;
    ASSERT_TRUE(reference.run(in.data().data(), expected.data(), groups, size)) << "seed " << seed;
    KernelInfo info = kernelInfo("k", {buffer("in", 0, true), buffer("out", 1),
                                       position("index", Position::ThreadIndexInThreadgroup),
                                       position("group", Position::ThreadgroupPositionInGrid),
                                       position("size", Position::ThreadsPerThreadgroup),
                                       position("lane", Position::ThreadIndexInSimdgroup)});
    bool atEnd = random() % 2, seeded = random() % 3 == 0;
    for (const std::string &name : names) {
      options.processor = name;
      auto library = libraryOf(ir, info, options);
      ASSERT_TRUE(library);
      GuardedMemory out(words, atEnd);
      llvm::copy(start, out.data().begin());
      std::vector<BufferBinding> buffers{{in.data().data(), inputs * 4, false},
                                         {out.data().data(), words * 4, true}};
      Dispatch dispatch;
      dispatch.threadgroups = {groups, 1, 1};
      dispatch.threadsPerThreadgroup = {size, 1, 1};
      dispatch.buffers = buffers;
      if (seeded)
        dispatch.scheduleSeed = seed;
      std::string what = "seed " + std::to_string(seed) + " for '" + name + "', " +
                         std::to_string(size) + " threads" + (seeded ? ", scheduled" : "") +
                         (options.checks.bounds ? ", checked" : "") +
                         (options.count ? ", counted" : "");
      ASSERT_EQ(errorOf((*library->kernel("k"))->dispatch(dispatch)), "") << what;
      EXPECT_TRUE(out.intact()) << what;
      for (uint32_t i = 0; i != words; ++i)
        ASSERT_EQ(out.data()[i], expected[i])
            << what << ": word " << i % (sharedWords + size * ownWords) << " of threadgroup "
            << i / (sharedWords + size * ownWords);
    }
  }
}

// 25 programs each.
INSTANTIATE_TEST_SUITE_P(Seeds, RandomMemory, ::testing::Range(seeds(1).first, seeds(1).second));

} // namespace
