// Estimates the registers that a thread takes on a GPU: what a GPU's compiler would be given is
// made of a copy of the thread's code, read as the register file sees it, ordered, and placed.
#include "host_device/engine/Lines.h"
#include "host_device/engine/Prepare.h"
#include "host_device/engine/RegisterCode.h"
#include "host_device/engine/RegisterSink.h"
#include "host_device/msl/PassRunner.h"
#include "llvm/Analysis/TargetTransformInfoImpl.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopStrengthReduce.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Vectorize/LoadStoreVectorizer.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {
/// The costs of a thread's instructions, as a compiler for a GPU's intermediate language sees them:
/// neighbouring accesses of up to 16 bytes are merged, and an access adds a constant or a number to
/// its address.
class IntermediateTTI final : public TargetTransformInfoImplCRTPBase<IntermediateTTI> {
public:
  explicit IntermediateTTI(const DataLayout &layout) : TargetTransformInfoImplCRTPBase(layout) {}
  unsigned getLoadStoreVecRegBitWidth(unsigned) const override { return 128; }
  bool allowsMisalignedMemoryAccesses(LLVMContext &, unsigned, unsigned, Align,
                                      unsigned *fast) const override {
    if (fast)
      *fast = 1;
    return true;
  }
  bool isLegalAddressingMode(Type *, GlobalValue *global, int64_t offset, bool hasBase,
                             int64_t scale, unsigned, Instruction * = nullptr,
                             int64_t = 0) const override {
    if (global || !isInt<16>(offset))
      return false;
    return scale == 0 || (scale == 1 && !(hasBase && offset)) ||
           (scale == 2 && !hasBase && !offset);
  }
};
} // namespace

uint32_t estimateRegisters(Function &function) {
  ValueToValueMapTy map;
  Function *copy = CloneFunction(&function, map);
  // Marks would order the code around them.
  for (Instruction &inst : make_early_inc_range(instructions(*copy)))
    if (isMathMark(inst))
      inst.eraseFromParent();
  PassRunner runner(/*machine=*/nullptr, TargetIRAnalysis([](const Function &each) {
                      return TargetTransformInfo(
                          std::make_unique<IntermediateTTI>(each.getDataLayout()));
                    }));
  {
    FunctionPassManager passes;
    ScalarizerPassOptions scalarizer;
    scalarizer.ScalarizeLoadStore = false;
    passes.addPass(LoadStoreVectorizerPass());
    passes.addPass(ScalarizerPass(scalarizer));
    passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
    passes.addPass(ADCEPass());
    runner.run(*copy, std::move(passes));
  }
  registers::narrowNumbers(*copy);
  {
    FunctionPassManager passes;
    // What LLVM's code generators do for all targets: addresses that a loop increments, and
    // numbers that are made where they are used.
    passes.addPass(createFunctionToLoopPassAdaptor(LoopStrengthReducePass()));
    passes.addPass(EarlyCSEPass());
    runner.run(*copy, std::move(passes));
  }
  registers::narrowNumbers(*copy);
  registers::sinkNumbers(*copy);
  registers::flattenConditions(*copy);
  {
    FunctionPassManager passes;
    passes.addPass(EarlyCSEPass());
    runner.run(*copy, std::move(passes));
  }
  registers::Code code = registers::readCode(*copy);
  copy->eraseFromParent();
  registers::orderSteps(code);
  return divideCeil(registers::allocate(code), 2);
}

} // namespace triton_metal::engine
