// Passes the accesses of checked code to device and threadgroup memory to Races.h.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "host_device/engine/Races.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace triton_metal::engine {

void trackRaces(Function &function, const KernelInfo &kernel, bool onlyStores, CodeFacts &facts) {
  SmallVector<std::pair<Instruction *, MemoryAccess>> accesses;
  uint64_t granules[2] = {8, 8};
  for (Instruction &inst : instructions(function)) {
    if (isCallOf(&inst, "__tm_fence"))
      facts.hasFences = true;
    auto access = memoryAccess(inst);
    if (!access || access->space == AddressSpace::Thread)
      continue;
    bool isThreadgroup = access->space == AddressSpace::Threadgroup;
    if (!isThreadgroup && !facts.writtenBuffers)
      continue;
    if (onlyStores && (isThreadgroup || isa<LoadInst>(inst)))
      continue;
    narrowToNumber(*access);
    facts.hasFences |= inst.isAtomic() && isOrdered(inst);
    uint64_t &granule = granules[isThreadgroup];
    // Metal's own alignment is checked. Clang may know of less.
    granule = std::min({granule, access->bytes & -access->bytes, access->alignment});
    accesses.push_back({&inst, *access});
  }
  facts.granule = granules[0];
  facts.threadgroupGranule = granules[1];
  Module &module = *function.getParent();
  IRBuilder<> b(module.getContext());
  Type *i32 = b.getInt32Ty();
  for (auto &[inst, access] : accesses) {
    Site site;
    fillLocation(site, *inst);
    fillObject(site, access);
    uint32_t flags = isa<LoadInst>(inst) ? 0 : raceWrites;
    if (inst->isAtomic())
      flags |= raceAtomic | (isAcquireOrStronger(orderingOf(*inst)) ? raceAcquires : 0) |
               (isReleaseOrStronger(orderingOf(*inst)) ? raceReleases : 0) |
               (isa<StoreInst>(inst) ? raceReplaces : 0);
    if (access.space == AddressSpace::Threadgroup)
      flags |= raceThreadgroup;
    Type *pointer = access.pointer->getType();
    SmallVector<Value *> operands{access.pointer, b.getInt32(access.bytes),
                                  b.getInt32(facts.sites.size()), b.getInt32(flags)};
    SmallVector<Type *> types{pointer, i32, i32, i32};
    // Two threads may store the same value.
    if (auto *store = dyn_cast<StoreInst>(inst); store && !store->isAtomic()) {
      operands.push_back(store->getValueOperand());
      types.push_back(store->getValueOperand()->getType());
    }
    std::string name;
    raw_string_ostream full(name);
    full << accessName << '.' << pointer->getPointerAddressSpace();
    if (operands.size() > 4)
      full << '.' << *types[4];
    auto callee = module.getOrInsertFunction(name, FunctionType::get(b.getVoidTy(), types, false));
    addAttributes(*cast<Function>(callee.getCallee()), *findBuiltin(accessName));
    b.SetInsertPoint(inst);
    b.CreateCall(callee, operands);
    facts.sites.push_back(site);
  }
}

} // namespace triton_metal::engine
