// Private arrays that did not become registers. Element e of all 32 lanes is stored side by side,
// so that an access with a uniform index is one vector access. A private pointer is a number: the
// offset in bytes from the thread's point of view.
#include "host_device/engine/Vectorize.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

void SimdEmitter::layOutPrivateMemory() {
  SmallVector<AllocaInst *> arrays;
  for (Instruction &inst : instructions(source))
    if (auto *alloca = dyn_cast<AllocaInst>(&inst))
      arrays.push_back(alloca);
  if (arrays.empty())
    return;
  // Arrays that one access may reach form a group.
  EquivalenceClasses<AllocaInst *> classes;
  for (AllocaInst *array : arrays)
    classes.insert(array);
  SmallVector<std::tuple<AllocaInst *, unsigned>>
      units; // an array of the group, a size that its unit must divide
  auto objectsOf = [&](llvm::Value *pointer) {
    SmallVector<const llvm::Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    SmallVector<AllocaInst *, 4> result;
    for (const llvm::Value *object : objects) {
      if (isa<UndefValue, ConstantPointerNull>(object))
        continue;
      if (auto *alloca = dyn_cast<AllocaInst>(const_cast<llvm::Value *>(object)))
        result.push_back(alloca);
      else
        return SmallVector<AllocaInst *, 4>(arrays.begin(), arrays.end()); // could be any
    }
    return result;
  };
  auto join = [&](llvm::Value *pointer) {
    auto objects = objectsOf(pointer);
    for (AllocaInst *object : objects)
      classes.unionSets(objects[0], object);
    return objects.empty() ? nullptr : objects[0];
  };
  for (Instruction &inst : instructions(source)) {
    llvm::Value *pointer = nullptr;
    Type *type = nullptr;
    Align alignment;
    if (auto *load = dyn_cast<LoadInst>(&inst)) {
      pointer = load->getPointerOperand();
      type = load->getType();
      alignment = load->getAlign();
    } else if (auto *store = dyn_cast<StoreInst>(&inst)) {
      pointer = store->getPointerOperand();
      type = store->getValueOperand()->getType();
      alignment = store->getAlign();
    } else if (isa<AtomicRMWInst, AtomicCmpXchgInst>(inst) &&
               inst.getOperand(0)->getType()->getPointerAddressSpace() == 0) {
      return fail(&inst, "atomics on thread memory are not supported");
    }
    if (!pointer || pointer->getType()->getPointerAddressSpace() != 0)
      continue;
    AllocaInst *array = join(pointer);
    if (!array)
      continue;
    SmallVector<Type *> types;
    SmallVector<uint64_t> offsets;
    componentTypes(type, types);
    componentOffsets(type, 0, offsets);
    unsigned unit = std::min<uint64_t>(alignment.value(), 8);
    for (auto [component, offset] : zip(types, offsets)) {
      unit = std::min<unsigned>(unit, layout.getTypeStoreSize(component));
      while (offset % unit)
        unit /= 2;
    }
    units.push_back({array, std::max(unit, 1u)});
  }
  DenseMap<AllocaInst *, unsigned> groupOf;
  for (AllocaInst *array : arrays) {
    auto size = array->getAllocationSize(layout);
    if (!size || size->isScalable())
      return fail(array, "arrays of thread memory need a constant size");
    AllocaInst *leader = classes.getLeaderValue(array);
    auto [it, inserted] = groupOf.try_emplace(leader, privateGroups.size());
    if (inserted) {
      privateGroups.emplace_back();
      privateGroups.back().unit = 8;
    }
    PrivateGroup &group = privateGroups[it->second];
    group.bytes = alignTo(group.bytes, std::max<uint64_t>(array->getAlign().value(), 16));
    privatePlaces[array] = {it->second, group.bytes};
    group.bytes += size->getFixedValue();
  }
  for (auto [array, unit] : units) {
    PrivateGroup &group = privateGroups[privatePlaces[array].first];
    group.unit = std::min(group.unit, unit);
  }
  // This is far more than a thread of a GPU has. All threads of a threadgroup need it at the same
  // time.
  constexpr uint64_t mostBytes = uint64_t(256) << 10;
  uint64_t bytes = 0;
  for (const PrivateGroup &group : privateGroups)
    bytes = SaturatingAdd(bytes, group.bytes);
  if (bytes > mostBytes)
    return fail(arrays.front(), "arrays of thread memory have " + Twine(bytes) +
                                    " bytes a thread, but may have " + Twine(mostBytes));
  for (PrivateGroup &group : privateGroups) {
    group.bytes = alignTo(group.bytes, 16);
    auto *type = ArrayType::get(b.getInt8Ty(), group.bytes * simdWidth);
    group.storage = new AllocaInst(type, 0, "private", allocas->getTerminator()->getIterator());
    group.storage->setAlignment(Align(64));
    facts.stackBytes += group.bytes * simdWidth;
  }
}

SimdEmitter::PrivateGroup &SimdEmitter::privateGroup(llvm::Value *pointer) {
  SmallVector<const llvm::Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  for (const llvm::Value *object : objects)
    if (auto *alloca = dyn_cast<AllocaInst>(const_cast<llvm::Value *>(object)))
      return privateGroups[privatePlaces[alloca].first];
  if (privateGroups.empty()) {
    fail(nullptr, "a pointer to thread memory points to nothing that the device knows");
    privateGroups.emplace_back();
  }
  return privateGroups[0];
}

llvm::Value *SimdEmitter::privateAddress(PrivateGroup &group, llvm::Value *pointer, uint64_t offset,
                                         bool asVector) {
  // Byte o of lane l is at (o / unit) * 32 * unit + l * unit.
  Value *at = asVector ? vector(pointer) : uniform(pointer);
  Type *type = at->getType();
  at = b.CreateAdd(at, ConstantInt::get(type, int64_t(offset) - int64_t(privateBase), true));
  at = b.CreateMul(at, ConstantInt::get(type, simdWidth));
  if (!asVector)
    return b.CreatePtrAdd(group.storage, at);
  SmallVector<uint64_t> lanes;
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    lanes.push_back(lane * group.unit);
  at = b.CreateAdd(at, ConstantDataVector::get(context, lanes));
  return b.CreateGEP(b.getInt8Ty(), group.storage, at);
}

void SimdEmitter::emitPrivateLoad(LoadInst &load) {
  SmallVector<Type *> types;
  SmallVector<uint64_t> offsets;
  componentTypes(load.getType(), types);
  componentOffsets(load.getType(), 0, offsets);
  llvm::Value *pointer = load.getPointerOperand();
  PrivateGroup &group = privateGroup(pointer);
  if (!error.empty())
    return;
  bool one = isUniform(pointer);
  auto *unit = b.getIntNTy(group.unit * 8);
  for (unsigned c = 0; c != types.size(); ++c) {
    unsigned size = layout.getTypeStoreSize(types[c]);
    auto *whole = lanesOf(b.getIntNTy(size * 8));
    Value *value = nullptr;
    for (unsigned at = 0; at < size; at += group.unit) {
      Value *address = privateAddress(group, pointer, offsets[c] + at, !one);
      Value *part =
          one ? b.CreateAlignedLoad(lanesOf(unit), address, Align(std::min(64u, 32 * group.unit)))
              : gather(unit, address);
      part = b.CreateZExt(part, whole);
      value = value ? b.CreateOr(value, b.CreateShl(part, at * 8)) : part;
    }
    define(load, c,
           types[c]->isPointerTy() ? b.CreateIntToPtr(value, lanesOf(types[c]))
                                   : b.CreateBitCast(value, lanesOf(types[c])));
  }
}

void SimdEmitter::emitPrivateStore(StoreInst &store) {
  llvm::Value *pointer = store.getPointerOperand(), *stored = store.getValueOperand();
  SmallVector<Type *> types;
  SmallVector<uint64_t> offsets;
  componentTypes(stored->getType(), types);
  componentOffsets(stored->getType(), 0, offsets);
  PrivateGroup &group = privateGroup(pointer);
  if (!error.empty())
    return;
  bool one = isUniform(pointer);
  auto *unit = b.getIntNTy(group.unit * 8);
  Align alignment(std::min(64u, 32 * group.unit));
  for (unsigned c = 0; c != types.size(); ++c) {
    unsigned size = layout.getTypeStoreSize(types[c]);
    auto *whole = lanesOf(b.getIntNTy(size * 8));
    Value *value = vector(stored, c);
    value =
        types[c]->isPointerTy() ? b.CreatePtrToInt(value, whole) : b.CreateBitCast(value, whole);
    for (unsigned at = 0; at < size; at += group.unit) {
      Value *part = b.CreateTrunc(b.CreateLShr(value, at * 8), lanesOf(unit));
      Value *address = privateAddress(group, pointer, offsets[c] + at, !one);
      if (!one) {
        scatter(part, address);
      } else {
        // Each lane has memory of its own, so an inactive lane can store the value that is there
        // already.
        if (!maskIsFull())
          part = b.CreateSelect(mask, part, b.CreateAlignedLoad(lanesOf(unit), address, alignment));
        b.CreateAlignedStore(part, address, alignment);
      }
    }
  }
}

} // namespace triton_metal::engine
