// Inserts a check before every access to device, constant and threadgroup memory, and finds the
// buffers that a kernel writes.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Prepare.h"
#include "host_device/msl/Invocation.h"
#include "host_device/msl/Stdlib.h"
#include "host_device/msl/Variables.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace triton_metal::engine {

int32_t bufferOf(Value *pointer) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  int32_t result = -1;
  for (const Value *object : objects) {
    if (isa<UndefValue, ConstantPointerNull>(object))
      continue;
    if (!isCallOf(object, bufferName))
      return -1;
    int32_t index = cast<ConstantInt>(cast<CallInst>(object)->getArgOperand(0))->getSExtValue();
    if (result != -1 && result != index)
      return -1;
    result = index;
  }
  return result;
}

uint32_t findUsedBuffers(Function &function) {
  uint32_t used = 0;
  for (Instruction &inst : instructions(function))
    if (!inst.use_empty() && isCallOf(&inst, bufferName))
      used |= 1u << cast<ConstantInt>(cast<CallInst>(inst).getArgOperand(0))->getZExtValue();
  return used;
}

uint32_t findWrittenBuffers(Function &function, const KernelInfo &kernel) {
  uint32_t mutableBuffers = 0, otherBuffers = (1u << maxBufferBindings) - 1;
  for (const ParameterInfo &parameter : kernel.parameters)
    if (parameter.kind == ParameterInfo::Kind::Buffer) {
      otherBuffers &= ~(1u << parameter.index);
      if (parameter.addressSpace == AddressSpace::Device)
        mutableBuffers |= 1u << parameter.index;
    }
  uint32_t written = 0;
  auto store = [&](Value *pointer) {
    if (pointer->getType()->getPointerAddressSpace() != unsigned(AddressSpace::Device))
      return;
    int32_t buffer = bufferOf(pointer);
    written |= buffer >= 0 ? 1u << buffer : mutableBuffers;
    if (buffer >= 0)
      return;
    // An address that was read from memory may be in any buffer.
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    if (any_of(objects, [](const Value *object) {
          return !isa<UndefValue, ConstantPointerNull>(object) && !isCallOf(object, bufferName);
        }))
      written |= otherBuffers;
  };
  for (Instruction &inst : instructions(function)) {
    if (auto access = memoryAccess(inst)) {
      if (access->kind != AccessKind::Load && !isa<LoadInst>(inst))
        store(access->pointer);
    } else if (auto *memory = dyn_cast<MemIntrinsic>(&inst)) {
      store(memory->getRawDest());
    }
  }
  return written;
}

void fillLocation(Site &site, const DILocation *location) {
  if (!location)
    return;
  // The outermost location is that of the wrapper around the kernel; in it comes the kernel's own.
  const DILocation *outer = location, *own = nullptr;
  while (const DILocation *next = outer->getInlinedAt()) {
    own = outer;
    outer = next;
  }
  // Places in the standard library, which is in a folder of its own, have no meaning to the user.
  const DILocation *best = outer;
  for (const DILocation *at = location; at; at = at->getInlinedAt())
    if (at->getLine() &&
        (at->getFilename() == outer->getFilename() || !isStdlibFile(filePathOf(*at)))) {
      best = at;
      break;
    }
  site.line = best->getLine();
  site.column = best->getColumn();
  // Headers, and what #line names, are named. The kernel itself may be in one.
  auto fileOf = [](const DILocation &at) {
    return filePathOf(at) == mainPath ? std::string() : sys::path::filename(at.getFilename()).str();
  };
  site.file = fileOf(*best);
  if (!own || best == own || best == outer)
    return;
  site.callLine = own->getLine();
  site.callColumn = own->getColumn();
  site.callFile = fileOf(*own);
}

void fillLocation(Site &site, Instruction &inst) { fillLocation(site, inst.getDebugLoc().get()); }

/// Without conversions between integers.
static Value *skipIntegerCasts(Value *value) {
  while (isa<ZExtInst, SExtInst, TruncInst>(value))
    value = cast<CastInst>(value)->getOperand(0);
  return value;
}

/// An atomic of the 32-bit word that holds a smaller number at p is at p - (p & m), where m is 2
/// for a number of 16 bits and 3 for a byte. The rest of the word need not be in the buffer: it
/// stays as it is. What is checked is the number.
void narrowToNumber(MemoryAccess &access) {
  auto *offset = dyn_cast<GEPOperator>(access.pointer);
  if (access.kind != AccessKind::Atomic || access.bytes != 4 || !offset ||
      offset->getNumIndices() != 1 || !offset->getSourceElementType()->isIntegerTy(8))
    return;
  Value *taken, *address;
  const APInt *mask;
  Value *number = offset->getPointerOperand();
  if (!match(offset->getOperand(1), m_Neg(m_Value(taken))) ||
      !match(skipIntegerCasts(taken), m_And(m_Value(address), m_APInt(mask))) ||
      (!match(skipIntegerCasts(address), m_PtrToInt(m_Specific(number))) &&
       !match(number, m_IntToPtr(m_Specific(skipIntegerCasts(address))))) ||
      (*mask != 2 && *mask != 3))
    return;
  access.pointer = number;
  access.bytes = access.alignment = 4 - mask->getZExtValue();
}

void fillObject(Site &site, const MemoryAccess &access) {
  site.kind = access.kind;
  site.space = access.space;
  site.bytes = access.bytes;
  if (access.space != AddressSpace::Threadgroup) {
    site.buffer = bufferOf(access.pointer);
    return;
  }
  auto *object = dyn_cast<CallInst>(getUnderlyingObject(access.pointer, 0));
  if (!object ||
      (!isCallOf(object, threadgroupAllocName) && !isCallOf(object, threadgroupArgumentName)))
    return;
  site.variable = cast<ConstantInt>(object->getArgOperand(0))->getZExtValue();
  if (isCallOf(object, threadgroupArgumentName))
    site.variable += Site::arguments;
  site.note = object->getName();
}

AllocaInst *arrayOf(Value *pointer) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  erase_if(objects,
           [](const Value *object) { return isa<UndefValue, ConstantPointerNull>(object); });
  return objects.size() == 1 ? dyn_cast<AllocaInst>(const_cast<Value *>(objects.front())) : nullptr;
}

/// Whether the pointer is of arrays of the thread, and not of its constants.
static bool isOfArrays(Value *pointer, bool hasConstants) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  return all_of(objects, [&](const Value *object) {
    return isa<UndefValue, ConstantPointerNull, AllocaInst>(object) ||
           (!isa<GlobalVariable>(object) && !hasConstants);
  });
}

/// Whether the pointer may come out of a table of the program's constants: no list of buffers has
/// those.
static bool isOutOfTable(Value *pointer, const Module &module) {
  constexpr unsigned constant = unsigned(AddressSpace::Constant);
  if (pointer->getType()->getPointerAddressSpace() != constant ||
      none_of(module.globals(), [](const GlobalVariable &variable) {
        return variable.getAddressSpace() == constant;
      }))
    return false;
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  return any_of(objects, [](const Value *object) { return isa<LoadInst>(object); });
}

/// A variable's name in the text; empty for what the compiler made itself.
static std::string nameOfVariable(const Value &object) {
  std::string full = demangle(object.getName());
  StringRef name = full;
  name.consume_front("__const.");
  if (isa<GlobalVariable>(object)) {
    // "table", "space::table", "k()::table" or "k.table".
    name = name.rsplit("::").second.empty() ? name : name.rsplit("::").second;
    auto [scope, own] = name.split('.');
    name = own.empty() || isdigit(own.front()) ? scope : own.split('.').first;
  } else if (name.contains("tmp") || name.starts_with("coerce") || name == "retval") {
    return {};
  }
  name = name.split('.').first;
  return all_of(name, [](char c) { return isalnum(c) || c == '_'; }) ? name.str() : std::string();
}

void insertChecks(Function &function, bool accessesToo, CodeFacts &facts) {
  Module &module = *function.getParent();
  IRBuilder<> b(module.getContext());
  SmallVector<std::pair<Instruction *, MemoryAccess>> accesses;
  SmallVector<std::pair<Instruction *, AccessKind>> calls;
  for (Instruction &inst : instructions(function)) {
    if (auto access = memoryAccess(inst)) {
      if (accessesToo)
        accesses.push_back({&inst, *access});
    } else if (auto *memory = dyn_cast<MemIntrinsic>(&inst)) {
      if (!accessesToo)
        continue;
      auto *length = dyn_cast<ConstantInt>(memory->getLength());
      if (!length)
        continue;
      if (memory->getDestAddressSpace())
        accesses.push_back({&inst,
                            {memory->getRawDest(), length->getZExtValue(), 1, AccessKind::Store,
                             AddressSpace(memory->getDestAddressSpace())}});
      if (auto *transfer = dyn_cast<MemTransferInst>(memory);
          transfer && transfer->getSourceAddressSpace())
        accesses.push_back({&inst,
                            {transfer->getRawSource(), length->getZExtValue(), 1, AccessKind::Load,
                             AddressSpace(transfer->getSourceAddressSpace())}});
    } else if (const Builtin *builtin = builtinCalledBy(&inst); builtin && builtin->site) {
      calls.push_back({&inst, *builtin->site});
    }
  }
  bool hasConstants = any_of(module.globals(), [](const GlobalVariable &variable) {
    return variable.getAddressSpace() == unsigned(AddressSpace::Thread);
  });
  for (auto &[inst, access] : accesses) {
    narrowToNumber(access);
    if (isOutOfTable(access.pointer, module))
      continue;
    Value *object = getUnderlyingObject(access.pointer, 0);
    // A pointer that a loop moves through an array.
    if (AllocaInst *array = arrayOf(access.pointer))
      object = array;
    // Private arrays in memory, and constants of the program. Accesses with constant offsets have
    // been checked by the front end.
    if (access.space == AddressSpace::Thread || isa<GlobalVariable>(object)) {
      const DataLayout &layout = function.getDataLayout();
      std::optional<uint64_t> size = sizeOfVariable(layout, object);
      APInt offset(64, 0);
      if (!size && (isa<GlobalVariable>(object) || !isOfArrays(access.pointer, hasConstants)))
        continue;
      if (size &&
          (access.pointer->stripAndAccumulateConstantOffsets(layout, offset, true) == object &&
           access.bytes <= *size && offset.ule(*size - access.bytes)))
        continue;
      access.alignment = 1;
    }
    Site site;
    fillLocation(site, *inst);
    fillObject(site, access);
    site.alignment = std::min<uint64_t>(access.alignment, 16);
    if (access.space == AddressSpace::Thread || isa<GlobalVariable>(object))
      if (auto size = sizeOfVariable(function.getDataLayout(), object)) {
        site.note = nameOfVariable(*object);
        site.variableBytes = *size;
      }
    Type *pointer = access.pointer->getType();
    auto callee = declareBuiltin(module, checkName, b.getVoidTy(),
                                 {pointer, b.getInt64Ty(), b.getInt32Ty(), b.getInt32Ty()},
                                 pointer->getPointerAddressSpace());
    b.SetInsertPoint(inst);
    b.CreateCall(callee, {access.pointer, b.getInt64(access.bytes), b.getInt32(facts.sites.size()),
                          b.getInt32(site.alignment)});
    facts.sites.push_back(site);
  }
  for (auto &[call, kind] : calls) {
    Site site;
    fillLocation(site, *call);
    site.kind = kind;
    call->setMetadata(
        "tm.site",
        MDNode::get(module.getContext(), ConstantAsMetadata::get(b.getInt32(facts.sites.size()))));
    facts.sites.push_back(site);
  }
}

} // namespace triton_metal::engine
