// Masks of lanes that are extended by lanes that are off, and live where no mask register does:
// the code generator must keep what is off.
#include "Support.h"
#include "host_device/engine/Jit.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <numeric>

using namespace llvm;
using namespace triton_metal;
using namespace triton_metal::testing;

namespace {

using MaskFunction = void (*)(const void *in, void *out, void (*call)());

/// What the mask is of: bits in memory, the low lanes of a wider mask, numbers that are not zero,
/// or one number that is not, for all lanes.
enum class Source { Bits, Wider, Compared, Uniform };

/// How the narrow mask is made wider.
enum class Form { Shuffle, Select, And, Concat };

/// What `table` gives: the functions of the module.
using Table = const MaskFunction *(*)();

/// Adds `void mask(in, out, call)`: a mask of `narrow` lanes from `in`, extended to `wide` lanes,
/// stored to `out` after a call.
Function *addFunction(Module &module, unsigned narrow, unsigned wide, Form form, Source source,
                      bool frozen) {
  IRBuilder<> b(module.getContext());
  auto *pointer = b.getPtrTy();
  auto *function =
      Function::Create(FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer}, false),
                       GlobalValue::InternalLinkage, "mask", module);
  b.SetInsertPoint(BasicBlock::Create(module.getContext(), "", function));
  auto *narrowType = FixedVectorType::get(b.getInt1Ty(), narrow),
       *wideType = FixedVectorType::get(b.getInt1Ty(), wide);
  bool whole = form == Form::Select || form == Form::And;
  auto *sourceType = whole ? wideType : narrowType;
  unsigned count = sourceType->getNumElements();
  Value *mask = nullptr;
  switch (source) {
  case Source::Bits:
    mask = b.CreateBitCast(b.CreateLoad(b.getIntNTy(count), function->getArg(0)), sourceType);
    break;
  case Source::Wider: {
    SmallVector<int> low(count);
    std::iota(low.begin(), low.end(), 0);
    Value *all = b.CreateBitCast(b.CreateLoad(b.getInt64Ty(), function->getArg(0)),
                                 FixedVectorType::get(b.getInt1Ty(), 64));
    mask = b.CreateShuffleVector(all, low);
    break;
  }
  case Source::Compared: {
    auto *numbers = FixedVectorType::get(b.getInt32Ty(), count);
    mask = b.CreateICmpNE(b.CreateAlignedLoad(numbers, function->getArg(0), Align(4)),
                          Constant::getNullValue(numbers));
    break;
  }
  case Source::Uniform:
    mask = b.CreateVectorSplat(
        count, b.CreateICmpNE(b.CreateLoad(b.getInt32Ty(), function->getArg(0)), b.getInt32(0)));
    break;
  }
  SmallVector<Constant *> kept;
  SmallVector<int> index;
  for (unsigned lane = 0; lane != wide; ++lane) {
    kept.push_back(b.getInt1(lane < narrow));
    index.push_back(lane < narrow ? lane : narrow + lane % narrow);
  }
  switch (form) {
  case Form::Shuffle:
    mask = b.CreateShuffleVector(mask, Constant::getNullValue(narrowType), index);
    break;
  case Form::Select:
    mask = b.CreateSelect(ConstantVector::get(kept), mask, Constant::getNullValue(wideType));
    break;
  case Form::And:
    mask = b.CreateAnd(mask, ConstantVector::get(kept));
    break;
  case Form::Concat:
    for (unsigned size = narrow; size != wide; size *= 2) {
      SmallVector<int> both(2 * size);
      std::iota(both.begin(), both.end(), 0);
      mask = b.CreateShuffleVector(mask, Constant::getNullValue(mask->getType()), both);
    }
    break;
  }
  if (frozen)
    mask = b.CreateFreeze(mask);
  // Uses in this block, behind the call, and in another keep the extension before the call: it has
  // to be spilled where it stands.
  BasicBlock *use = BasicBlock::Create(module.getContext(), "", function),
             *end = BasicBlock::Create(module.getContext(), "", function);
  b.CreateCall(FunctionType::get(b.getVoidTy(), {}, false), function->getArg(2));
  b.CreateCondBr(b.CreateIsNotNull(b.CreateBitCast(mask, b.getIntNTy(wide))), use, end);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
  b.SetInsertPoint(use);
  b.CreateStore(b.CreateBitCast(mask, b.getIntNTy(wide)), function->getArg(1));
  // Not as what an instruction is masked by: that takes another class of registers, and with it
  // another way through the allocator.
  b.CreateAlignedStore(b.CreateSExt(mask, FixedVectorType::get(b.getInt8Ty(), wide)),
                       b.CreatePtrAdd(function->getArg(1), b.getInt64(8)), Align(1));
  b.CreateRetVoid();
  return function;
}

/// A processor, and how code is generated for it.
class LaneMasks : public ::testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
  std::string processorName() const { return std::get<0>(GetParam()); }
  bool isQuick() const { return std::get<1>(GetParam()); }
  LibraryOptions libraryOptions() const {
    LibraryOptions options;
    options.processor = processorName();
    options.effort = isQuick() ? Effort::Quick : Effort::Full;
    return options;
  }
};

TEST_P(LaneMasks, ExtendedMasksLiveAcrossCalls) {
  auto processor = engine::Processor::get(processorName());
  ASSERT_TRUE(bool(processor));
  struct Case {
    unsigned narrow, wide;
    Form form;
    Source source;
  };
  std::vector<Case> cases;
  std::vector<Constant *> functions;
  LLVMContext context;
  Module module("masks", context);
  auto machine = (*processor)->machine(isQuick());
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (unsigned narrow : {8u, 16u, 32u})
    for (unsigned wide : {16u, 32u, 64u})
      for (Form form : {Form::Shuffle, Form::Select, Form::And, Form::Concat})
        for (Source source : {Source::Bits, Source::Wider, Source::Compared, Source::Uniform})
          for (bool frozen : {false, true}) {
            if (narrow >= wide)
              continue;
            cases.push_back({narrow, wide, form, source});
            functions.push_back(addFunction(module, narrow, wide, form, source, frozen));
          }
  auto *pointer = PointerType::get(context, 0);
  auto *list = ConstantArray::get(ArrayType::get(pointer, functions.size()), functions);
  auto *global =
      new GlobalVariable(module, list->getType(), true, GlobalValue::InternalLinkage, list, "list");
  IRBuilder<> b(context);
  b.SetInsertPoint(
      BasicBlock::Create(context, "",
                         Function::Create(FunctionType::get(pointer, {}, false),
                                          GlobalValue::ExternalLinkage, "table", module)));
  b.CreateRet(global);
  (*processor)->annotate(module);
  ASSERT_FALSE(verifyModule(module, &errs()));
  SmallVector<char, 0> object;
  ASSERT_EQ(errorOf((*processor)->emitObject(module, *machine, object)), "");
  auto jit = engine::Jit::get();
  ASSERT_TRUE(bool(jit));
  auto entry = (*jit)->load(StringRef(object.data(), object.size()), "table");
  ASSERT_TRUE(bool(entry));
  const MaskFunction *entries = reinterpret_cast<Table>(reinterpret_cast<void *>(*entry))();
  for (auto [number, test] : enumerate(cases)) {
    for (uint64_t bits : {~uint64_t(0), uint64_t(0), uint64_t(0x9c35a6e1d2f04b87)}) {
      std::vector<uint32_t> numbers(64);
      for (unsigned lane = 0; lane != 64; ++lane)
        numbers[lane] = bits >> lane & 1;
      bool numeric = test.source == Source::Compared || test.source == Source::Uniform;
      struct {
        uint64_t bits = 0;
        int8_t lanes[64] = {};
      } out;
      entries[number](numeric ? static_cast<const void *>(numbers.data()) : &bits, &out, [] {});
      uint64_t all = test.source == Source::Uniform ? -(bits & 1) : bits;
      uint64_t expected = all & ((uint64_t(1) << test.narrow) - 1);
      std::string what = std::to_string(test.narrow) + " to " + std::to_string(test.wide) +
                         " lanes, form " + std::to_string(int(test.form)) + ", source " +
                         std::to_string(int(test.source));
      EXPECT_EQ(out.bits, expected) << what;
      for (unsigned lane = 0; lane != test.wide; ++lane)
        EXPECT_EQ(out.lanes[lane], expected >> lane & 1 ? -1 : 0) << what << ", lane " << lane;
    }
  }
}

// Where a later LLVM calls more instructions of mask registers plain copies, somebody has to look.
TEST(LaneMaskInstructions, AreTheKnownCopies) {
  std::string error;
  Triple triple(sys::getProcessTriple());
  ASSERT_TRUE(bool(engine::Processor::get()));
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  ASSERT_TRUE(target) << error;
  std::unique_ptr<MCInstrInfo> instructions(target->createMCInstrInfo());
  auto extensions = engine::MaskExtensions::of(triple, *instructions);
  ASSERT_TRUE(bool(extensions));
  if (!triple.isX86()) {
    EXPECT_TRUE(extensions->empty());
    return;
  }
  unsigned found = 0;
  for (unsigned opcode = 0; opcode != instructions->getNumOpcodes(); ++opcode) {
    StringRef name = instructions->getName(opcode);
    if (!instructions->get(opcode).isMoveReg() || !name.starts_with("K"))
      continue;
    ++found;
    std::optional<unsigned> replacement = extensions->replacementOf(opcode);
    if (name.starts_with("KMOVQ")) {
      EXPECT_FALSE(replacement) << name.str();
      continue;
    }
    ASSERT_TRUE(replacement) << name.str();
    EXPECT_FALSE(instructions->get(*replacement).isMoveReg()) << name.str();
    EXPECT_EQ(instructions->getName(*replacement).str(), "KAND" + name.substr(4, 1).str() + "kk");
  }
  EXPECT_EQ(found, 8u);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

// Eight or sixteen lanes of one SIMD-group store through related addresses between barriers.
const char *storesIR = R"(
declare void @__tm_threadgroup_barrier(i32)
define void @k(ptr addrspace(1) %p, i32 %lane, i32 %simdgroup) {
  %i = and i32 %lane, LAST
  %end = getelementptr i32, ptr addrspace(1) %p, i64 LAST
  %back = sub i32 0, %i
  %wide = sext i32 %back to i64
  %from = getelementptr i32, ptr addrspace(1) %end, i64 %wide
  %v = load i32, ptr addrspace(1) %from
  %next = add i32 %v, 1
  %low = icmp ule i32 %lane, LAST
  %first = icmp eq i32 %simdgroup, 0
  %owner = select i1 %low, i1 %first, i1 false
  call void @__tm_threadgroup_barrier(i32 3)
  br i1 %owner, label %one, label %between
one:
  %swapped = xor i32 %lane, 1
  %j = zext i32 %swapped to i64
  %to = getelementptr i32, ptr addrspace(1) %p, i64 %j
  store i32 %next, ptr addrspace(1) %to
  br label %between
between:
  call void @__tm_threadgroup_barrier(i32 3)
  br i1 %owner, label %two, label %end.of.it
two:
  ACTION
  br label %end.of.it
end.of.it:
  ret void
}
)";

std::string storesText(unsigned lanes, StringRef action) {
  std::string text = storesIR;
  auto replace = [&](StringRef what, const std::string &with) {
    for (size_t at; (at = text.find(what.str())) != std::string::npos;)
      text.replace(at, what.size(), with);
  };
  replace("ACTION", action.str());
  replace("LAST", std::to_string(lanes - 1));
  return text;
}

TEST_P(LaneMasks, OnlyTheTilesLanesStore) {
  for (unsigned lanes : {1u, 2u, 4u, 8u, 16u, 32u})
    for (unsigned simdgroups : {1u, 2u, 4u, 8u})
      for (int variant = 0; variant != 4; ++variant) {
        LibraryOptions options = libraryOptions();
        options.checks.bounds = variant == 1;
        options.count = variant == 2;
        auto library = libraryOf(
            storesText(lanes, "store i32 %next, ptr addrspace(1) %from"),
            kernelInfo("k", {buffer("p", 0), position("lane", Position::ThreadIndexInSimdgroup),
                             position("simdgroup", Position::SimdgroupIndexInThreadgroup)}),
            options);
        ASSERT_TRUE(library);
        std::vector<int32_t> memory(256), expected(256);
        std::iota(memory.begin(), memory.end(), 0);
        expected = memory;
        for (unsigned i = 0; i != lanes; ++i)
          expected[i] = i + 1;
        if (lanes == 1)
          expected[1] = 1;
        Dispatch dispatch;
        dispatch.threadsPerThreadgroup = {32 * simdgroups, 1, 1};
        std::vector<BufferBinding> buffers{bind(memory)};
        dispatch.buffers = buffers;
        if (variant == 3)
          dispatch.scheduleSeed = lanes;
        ASSERT_EQ(errorOf((*library->kernel("k"))->dispatch(dispatch)), "");
        EXPECT_EQ(memory, expected)
            << lanes << " lanes, " << simdgroups << " SIMD-groups, variant " << variant;
      }
}

TEST_P(LaneMasks, OnlyTheTilesLanesCompareAndExchange) {
  for (unsigned lanes : {4u, 8u, 16u})
    for (unsigned simdgroups : {1u, 4u}) {
      LibraryOptions options = libraryOptions();
      // Any lane but the tile's would find what the tile's have left, and count it up.
      auto library = libraryOf(
          storesText(lanes,
                     "%expected = add i32 %i, 1\n  %old = cmpxchg ptr addrspace(1) %from, i32 "
                     "%next, i32 1000 monotonic monotonic\n  %count = getelementptr i32, ptr "
                     "addrspace(1) %p, i64 64\n  %ignored = atomicrmw add ptr addrspace(1) "
                     "%count, i32 1 monotonic"),
          kernelInfo("k", {buffer("p", 0), position("lane", Position::ThreadIndexInSimdgroup),
                           position("simdgroup", Position::SimdgroupIndexInThreadgroup)}),
          options);
      ASSERT_TRUE(library);
      std::vector<int32_t> memory(256);
      std::iota(memory.begin(), memory.end(), 0);
      Dispatch dispatch;
      dispatch.threadsPerThreadgroup = {32 * simdgroups, 1, 1};
      std::vector<BufferBinding> buffers{bind(memory)};
      dispatch.buffers = buffers;
      ASSERT_EQ(errorOf((*library->kernel("k"))->dispatch(dispatch)), "");
      EXPECT_EQ(memory[64], int(64 + lanes)) << lanes << " lanes";
      for (unsigned i = lanes; i != 64; ++i)
        EXPECT_EQ(memory[i], int(i)) << lanes << " lanes";
    }
}

std::string nameOf(const ::testing::TestParamInfo<std::tuple<std::string, bool>> &info) {
  auto [processor, quick] = info.param;
  std::string name = processor.empty() ? "host" : processor;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + (quick ? "_quick" : "_full");
}

INSTANTIATE_TEST_SUITE_P(Processors, LaneMasks,
                         ::testing::Combine(::testing::ValuesIn(processors()), ::testing::Bool()),
                         nameOf);

} // namespace
