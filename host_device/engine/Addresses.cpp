// Makes the arithmetic of addresses explicit, for the counters.
#include "host_device/engine/Prepare.h"
#include "host_device/msl/PassRunner.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/TargetTransformInfoImpl.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h"

using namespace llvm;

namespace triton_metal::engine {

namespace {
/// Accesses add a constant to their address.
class OffsetTTI final : public TargetTransformInfoImplCRTPBase<OffsetTTI> {
public:
  explicit OffsetTTI(const DataLayout &layout) : TargetTransformInfoImplCRTPBase(layout) {}
  bool isLegalAddressingMode(Type *, GlobalValue *global, int64_t, bool, int64_t scale, unsigned,
                             Instruction * = nullptr, int64_t = 0) const override {
    return !global && (scale == 0 || scale == 1);
  }
};
} // namespace

/// Writes the offset of an address in bytes as arithmetic, in front of it.
static void expandOffset(GetElementPtrInst &address) {
  const DataLayout &layout = address.getDataLayout();
  unsigned bits = layout.getIndexTypeSizeInBits(address.getType());
  SmallMapVector<Value *, APInt, 4> parts;
  APInt constant(bits, 0);
  if (!address.getType()->isPointerTy() || address.hasAllConstantIndices() ||
      !cast<GEPOperator>(address).collectOffset(layout, bits, parts, constant))
    return;
  IRBuilder<> builder(&address);
  Type *type = builder.getIntNTy(bits);
  Value *sum = nullptr;
  for (auto [index, scale] : parts) {
    Value *part = builder.CreateSExtOrTrunc(index, type);
    if (scale.isPowerOf2()) {
      if (!scale.isOne())
        part = builder.CreateShl(part, scale.logBase2());
    } else {
      part = builder.CreateMul(part, builder.getInt(scale));
    }
    sum = sum ? builder.CreateAdd(sum, part) : part;
  }
  Value *place = builder.CreatePtrAdd(address.getPointerOperand(), sum);
  if (!constant.isZero())
    place = builder.CreatePtrAdd(place, builder.getInt(constant));
  address.replaceAllUsesWith(place);
  address.eraseFromParent();
}

void expandAddresses(Function &function) {
  PassRunner runner(/*machine=*/nullptr, TargetIRAnalysis([](const Function &function) {
                      return TargetTransformInfo(
                          std::make_unique<OffsetTTI>(function.getDataLayout()));
                    }));
  {
    FunctionPassManager passes;
    passes.addPass(SeparateConstOffsetFromGEPPass());
    runner.run(function, std::move(passes));
  }
  for (Instruction &inst : make_early_inc_range(instructions(function)))
    if (auto *address = dyn_cast<GetElementPtrInst>(&inst))
      expandOffset(*address);
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  LoopPassManager loop;
  loop.addPass(LICMPass(LICMOptions()));
  passes.addPass(createFunctionToLoopPassAdaptor(std::move(loop), /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass());
  passes.addPass(ADCEPass());
  runner.run(function, std::move(passes));
}

} // namespace triton_metal::engine
