// Passes the accesses to device memory of portable code to Visibility.h.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

static constexpr StringLiteral coherentMetadata = "tm.coherent";

void collectCoherent(Function &function) {
  MDNode *node = MDNode::get(function.getContext(), {});
  for (Instruction &inst : instructions(function)) {
    auto access = memoryAccess(inst);
    if (!access || access->space != AddressSpace::Device)
      continue;
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(access->pointer, objects, nullptr, 0);
    if (all_of(objects, [](const Value *object) { return isCallOf(object, coherentName); }))
      inst.setMetadata(coherentMetadata, node);
  }
  for (Instruction &inst : make_early_inc_range(instructions(function)))
    if (isCallOf(&inst, coherentName)) {
      inst.replaceAllUsesWith(cast<CallInst>(inst).getArgOperand(0));
      inst.eraseFromParent();
    }
}

static uint32_t flagsOf(Instruction &inst) {
  uint32_t flags = inst.hasMetadata(coherentMetadata) ? accessCoherent : 0;
  if (!inst.isAtomic())
    return flags;
  flags |= accessAtomic;
  if (isa<StoreInst>(inst))
    flags |= accessOverwrites;
  return isOrdered(inst) ? flags | accessOrdered : flags;
}

void trackVisibility(Function &function, const KernelInfo &kernel, CodeFacts &facts) {
  if (!facts.writtenBuffers)
    return;
  uint32_t deviceBuffers = 0;
  for (const ParameterInfo &parameter : kernel.parameters)
    if (parameter.kind == ParameterInfo::Kind::Buffer &&
        parameter.addressSpace == AddressSpace::Device)
      deviceBuffers |= 1u << parameter.index;
  SmallVector<std::pair<Instruction *, MemoryAccess>> accesses;
  uint64_t granule = 8;
  for (Instruction &inst : instructions(function)) {
    auto access = memoryAccess(inst);
    if (!access || access->space != AddressSpace::Device)
      continue;
    accesses.push_back({&inst, *access});
    granule = std::min({granule, access->bytes & -access->bytes, access->alignment});
    int32_t buffer = bufferOf(access->pointer);
    uint32_t &buffers = isa<LoadInst>(inst) ? facts.loadedBuffers
                        : inst.isAtomic()   ? facts.updatedBuffers
                                            : facts.storedBuffers;
    buffers |= buffer >= 0 ? 1u << buffer : deviceBuffers;
  }
  facts.granule = granule;
  Module &module = *function.getParent();
  IRBuilder<> b(module.getContext());
  Type *i32 = b.getInt32Ty(), *pointer = b.getPtrTy(unsigned(AddressSpace::Device));
  for (auto &[inst, access] : accesses) {
    Site site;
    fillLocation(site, *inst);
    site.kind = access.kind;
    site.space = access.space;
    site.bytes = access.bytes;
    site.buffer = bufferOf(access.pointer);
    Value *number = b.getInt32(facts.sites.size()), *flags = b.getInt32(flagsOf(*inst));
    facts.sites.push_back(site);
    auto *load = dyn_cast<LoadInst>(inst);
    if (!load) {
      b.SetInsertPoint(inst);
      auto callee = declareBuiltin(module, inst->isAtomic() ? atomicName : storedName,
                                   b.getVoidTy(), {pointer, i32, i32, i32});
      b.CreateCall(callee, {access.pointer, b.getInt32(access.bytes), number, flags});
      continue;
    }
    replaceByCall(*load, loadedName, {access.pointer, number, flags});
  }
}

} // namespace triton_metal::engine
