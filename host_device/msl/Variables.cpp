#include "host_device/msl/Variables.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace triton_metal {

std::optional<uint64_t> sizeOfVariable(const DataLayout &layout, const Value *object) {
  std::optional<TypeSize> size;
  if (auto *variable = dyn_cast<AllocaInst>(object))
    size = variable->getAllocationSize(layout);
  else if (auto *constant = dyn_cast<GlobalVariable>(object);
           constant && constant->hasDefinitiveInitializer())
    size = layout.getTypeAllocSize(constant->getValueType());
  return size ? std::optional(size->getFixedValue()) : std::nullopt;
}

} // namespace triton_metal
