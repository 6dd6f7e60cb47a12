#include "host_device/msl/AnyValues.h"
#include "host_device/msl/CheckValues.h"
#include "host_device/msl/Passes.h"
#include "host_device/msl/Variables.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/SROA.h"

using namespace llvm;

namespace triton_metal {

/// Whether an access of so many bytes at a constant offset lies outside the variable that the
/// pointer comes from.
static bool isOutside(const DataLayout &layout, Value *pointer, Type *type) {
  APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  Value *object = pointer->stripAndAccumulateConstantOffsets(layout, offset,
                                                             /*AllowNonInbounds=*/true);
  std::optional<uint64_t> size = sizeOfVariable(layout, object);
  uint64_t bytes = layout.getTypeStoreSize(type);
  return size && (offset.isNegative() || bytes > *size || offset.ugt(*size - bytes));
}

/// Reports an access at a constant offset outside of its variable, if bounds are checked. Other
/// accesses are checked later.
static void reportOutside(Instruction *inst, StringRef what, Value *pointer, Type *type) {
  Module &module = *inst->getModule();
  if (!checksOf(module).bounds || isPortable(module))
    return;
  const DataLayout &layout = module.getDataLayout();
  APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  Value *object = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
  std::string text;
  raw_string_ostream(text) << what << " of " << layout.getTypeStoreSize(type).getFixedValue()
                           << " bytes outside of the variable '"
                           << object->getName().split('.').first << "': at byte "
                           << offset.getSExtValue() << " of " << *sizeOfVariable(layout, object);
  IRBuilder<> builder(inst);
  buildCheck(builder, builder.getTrue(), text);
}

static bool isOpen(const Value *value) { return isa<UndefValue>(value); }

/// A phi with only one known incoming value is that value, if the value is available at the phi.
static bool foldsToOne(PHINode *phi, const DominatorTree &dominators) {
  Value *known = nullptr;
  for (Value *value : phi->incoming_values()) {
    if (isOpen(value) || value == phi)
      continue;
    if (known && known != value)
      return false;
    known = value;
  }
  auto *inst = dyn_cast_or_null<Instruction>(known);
  return !known || !inst || dominators.dominates(inst, phi);
}

PreservedAnalyses DefineValuesPass::run(Function &function, FunctionAnalysisManager &analyses) {
  const DataLayout &layout = function.getDataLayout();
  auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
  bool changed = false;
  for (Instruction &inst : make_early_inc_range(instructions(function))) {
    if (auto *load = dyn_cast<LoadInst>(&inst);
        load && isOutside(layout, load->getPointerOperand(), load->getType())) {
      reportOutside(load, "a load", load->getPointerOperand(), load->getType());
      Value *result = Constant::getNullValue(load->getType());
      if (Type *type = load->getType(); isPortable(*function.getParent()) &&
                                        (type->isIntOrIntVectorTy() || type->isFPOrFPVectorTy())) {
        IRBuilder<> builder(load);
        result = buildAny(
            builder, builder.getTrue(), type,
            {Unpromised::OutsideVariable,
             getUnderlyingObject(load->getPointerOperand())->getName().split('.').first, true});
      }
      load->replaceAllUsesWith(result);
      load->eraseFromParent();
      changed = true;
    } else if (auto *store = dyn_cast<StoreInst>(&inst);
               store &&
               isOutside(layout, store->getPointerOperand(), store->getValueOperand()->getType())) {
      reportOutside(store, "a store", store->getPointerOperand(),
                    store->getValueOperand()->getType());
      store->eraseFromParent();
      changed = true;
    }
  }
  for (Instruction &inst : instructions(function)) {
    // A shuffle may ignore undefined elements, and a freeze selects a value itself.
    if (isa<ShuffleVectorInst, FreezeInst>(inst))
      continue;
    if (auto *phi = dyn_cast<PHINode>(&inst); phi && foldsToOne(phi, dominators))
      continue;
    for (Use &use : inst.operands())
      if (isOpen(use) && use->getType()->isFirstClassType() && !use->getType()->isMetadataTy() &&
          !use->getType()->isTokenTy() && !use->getType()->isLabelTy()) {
        use.set(Constant::getNullValue(use->getType()));
        changed = true;
      }
  }
  if (!changed)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

void addVariablesToRegisters(FunctionPassManager &passes) {
  passes.addPass(DefineValuesPass());
  passes.addPass(SROAPass(SROAOptions::ModifyCFG));
  passes.addPass(DefineValuesPass());
}

} // namespace triton_metal
