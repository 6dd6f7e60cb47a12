// Loads and stores of device, constant and threadgroup memory: one scalar access if all lanes
// agree, wide vectors if lanes are adjacent, and gathers and scatters otherwise. Inactive lanes
// never access memory.
#include "host_device/engine/Permute.h"
#include "host_device/engine/Vectorize.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"

using namespace llvm;

namespace triton_metal::engine {

template <typename Access> Access *SimdEmitter::copyMetadata(Access *access, Instruction &from) {
  for (unsigned kind : {LLVMContext::MD_alias_scope, LLVMContext::MD_noalias})
    if (MDNode *node = from.getMetadata(kind))
      access->setMetadata(kind, node);
  if constexpr (std::is_same_v<Access, LoadInst>) {
    auto &load = cast<LoadInst>(from);
    if (load.getPointerAddressSpace() == unsigned(AddressSpace::Constant) ||
        load.hasMetadata(LLVMContext::MD_invariant_load))
      access->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(context, {}));
  }
  return access;
}

unsigned SimdEmitter::pieceElements(Type *element) {
  unsigned bytes = layout.getTypeStoreSize(element);
  return std::min(64 / bytes, 32u);
}

//===----------------------------------------------------------------------===//
// Windows: what each class of lanes touches
//===----------------------------------------------------------------------===//

std::optional<SimdEmitter::AccessPlan> SimdEmitter::planAccess(const LaneShape &s,
                                                               unsigned components, unsigned size) {
  AccessPlan result;
  unsigned total = 0;
  result.exact = true;
  for (unsigned rep = 0; rep != simdWidth; ++rep) {
    if (s.representative[rep] != rep)
      continue;
    SmallVector<unsigned, 32> members;
    for (unsigned lane = 0; lane != simdWidth; ++lane)
      if (s.representative[lane] == rep) {
        if (s.offset[lane] % int64_t(size))
          return std::nullopt;
        members.push_back(lane);
      }
    sort(members, [&](unsigned x, unsigned y) {
      return std::pair(s.offset[x], x) < std::pair(s.offset[y], y);
    });
    // A class has one window for each run of lanes without a wide gap, such as the row of a tile.
    for (unsigned i = 0; i != members.size(); ++i) {
      int64_t offset = s.offset[members[i]];
      Window *window = i ? &result.windows.back() : nullptr;
      if (!window || offset - (window->first + int64_t(window->elements) * size) >= 16) {
        result.windows.emplace_back();
        window = &result.windows.back();
        window->representative = rep;
        window->first = offset;
      }
      window->elements =
          std::max<unsigned>(window->elements, (offset - window->first) / size + components);
      window->lanes.push_back(members[i]);
    }
  }
  for (Window &window : result.windows) {
    sort(window.lanes);
    SmallVector<uint8_t> covered(window.elements, 0);
    for (unsigned lane : window.lanes)
      for (unsigned c = 0; c != components; ++c)
        if (covered[(s.offset[lane] - window.first) / size + c]++)
          result.exact = false;
    if (is_contained(covered, 0))
      result.exact = false;
    total += window.elements;
  }
  // One wide access for each lane is still better than gathering the components.
  unsigned most = components >= 2 && components * size >= 8 && components * size <= 64
                      ? simdWidth
                      : simdWidth / 2;
  if (result.windows.size() > most || total > 4 * simdWidth * components)
    return std::nullopt;
  return result;
}

void SimdEmitter::loadWindows(const AccessPlan &access, Value *pointer, Type *element,
                              unsigned components, ArrayRef<Value *> homes, Instruction &inst) {
  const LaneShape &s = shape(pointer);
  unsigned size = layout.getTypeStoreSize(element), width = pieceElements(element);
  if (access.windows.size() > simdWidth / 2) {
    auto *numbers = lanesOf(b.getIntNTy(size * 8));
    AllocaInst *rows = slot(ArrayType::get(numbers, components), "rows");
    rows->setAlignment(Align(64));
    b.CreateCall(rowsHelper(element, components, false), {vector(pointer), rows});
    for (unsigned c = 0; c != components; ++c) {
      Value *value =
          b.CreateAlignedLoad(numbers, b.CreateGEP(numbers, rows, b.getInt64(c)), Align(64));
      auto *type = lanesOf(element);
      b.CreateStore(element->isPointerTy() ? b.CreateIntToPtr(value, type)
                                           : b.CreateBitCast(value, type),
                    homes[c]);
    }
    return;
  }
  // The pieces have the width of a register. A long window has several pieces, and several short
  // windows share one.
  SmallVector<Value *> pieces;
  SmallVector<unsigned> start; // each window's first element among the pieces'
  unsigned longest = 1;
  for (const Window &window : access.windows)
    longest = std::max(longest, window.elements);
  unsigned slotSize = std::min<unsigned>(width, PowerOf2Ceil(longest));
  auto widened = [&](Value *value, unsigned to) -> Value * {
    unsigned count = cast<FixedVectorType>(value->getType())->getNumElements();
    if (count == to)
      return value;
    SmallVector<int> mask(to, -1);
    for (unsigned i = 0; i != count; ++i)
      mask[i] = i;
    return b.CreateShuffleVector(value, mask);
  };
  SmallVector<Value *> shared; // short windows that wait for company
  auto flush = [&] {
    while (shared.size() > 1) {
      SmallVector<Value *> joined;
      for (unsigned i = 0; i < shared.size(); i += 2) {
        unsigned count = cast<FixedVectorType>(shared[i]->getType())->getNumElements();
        SmallVector<int> mask;
        for (unsigned k = 0; k != 2 * count; ++k)
          mask.push_back(k);
        Value *second =
            i + 1 < shared.size() ? shared[i + 1] : PoisonValue::get(shared[i]->getType());
        joined.push_back(b.CreateShuffleVector(shared[i], second, mask));
      }
      shared = std::move(joined);
    }
    if (!shared.empty())
      pieces.push_back(widened(shared[0], width));
    shared.clear();
  };
  for (const Window &window : access.windows) {
    Value *base = scalar(pointer, 0, window.representative);
    auto load = [&](unsigned at, unsigned count) -> Value * {
      Value *address = b.CreatePtrAdd(base, b.getInt64(window.first + int64_t(at) * size));
      return copyMetadata(
          b.CreateAlignedLoad(FixedVectorType::get(element, count), address, Align(1)), inst);
    };
    if (slotSize < width) {
      start.push_back(pieces.size() * width + shared.size() * slotSize);
      shared.push_back(widened(load(0, window.elements), slotSize));
      if (shared.size() == width / slotSize)
        flush();
      continue;
    }
    start.push_back(pieces.size() * width);
    for (unsigned at = 0; at < window.elements; at += width)
      pieces.push_back(widened(load(at, std::min(width, window.elements - at)), width));
  }
  flush();
  SmallVector<SmallVector<int>> places(components, SmallVector<int>(simdWidth, -1));
  for (unsigned c = 0; c != components; ++c)
    for (auto [number, window] : enumerate(access.windows))
      for (unsigned lane : window.lanes)
        places[c][lane] = start[number] + (s.offset[lane] - window.first) / size + c;
  for (auto [c, value] : enumerate(permute(b, pieces, width, places)))
    b.CreateStore(value, homes[c]);
}

void SimdEmitter::storeWindows(const AccessPlan &access, Value *pointer, Type *element,
                               ArrayRef<Value *> values, Instruction &inst) {
  const LaneShape &s = shape(pointer);
  unsigned size = layout.getTypeStoreSize(element), width = pieceElements(element);
  unsigned perVector = simdWidth / width;
  if (access.windows.size() > simdWidth / 2) {
    auto *numbers = lanesOf(b.getIntNTy(size * 8));
    AllocaInst *rows = slot(ArrayType::get(numbers, values.size()), "rows");
    rows->setAlignment(Align(64));
    for (auto [c, value] : enumerate(values))
      b.CreateAlignedStore(element->isPointerTy() ? b.CreatePtrToInt(value, numbers)
                                                  : b.CreateBitCast(value, numbers),
                           b.CreateGEP(numbers, rows, b.getInt64(c)), Align(64));
    b.CreateCall(rowsHelper(element, values.size(), true), {vector(pointer), rows});
    return;
  }
  // The registers of the components are the pieces to choose from.
  SmallVector<Value *> pieces;
  for (Value *value : values)
    for (unsigned part = 0; part != perVector; ++part) {
      SmallVector<int> take;
      for (unsigned i = 0; i != width; ++i)
        take.push_back(part * width + i);
      pieces.push_back(perVector == 1 ? value : b.CreateShuffleVector(value, take));
    }
  struct Part {
    const Window *window;
    unsigned at;
    SmallVector<int> owner;
  };
  SmallVector<Part> parts;
  SmallVector<SmallVector<int>> places;
  for (const Window &window : access.windows) {
    SmallVector<int> index(window.elements, -1);
    SmallVector<int> owner(window.elements, -1);
    for (unsigned lane : window.lanes)
      for (unsigned c = 0; c != values.size(); ++c) {
        unsigned at = (s.offset[lane] - window.first) / size + c;
        index[at] = c * simdWidth + lane;
        owner[at] = lane;
      }
    for (unsigned at = 0; at < window.elements; at += width) {
      unsigned count = std::min(width, window.elements - at);
      parts.push_back({&window, at, SmallVector<int>(ArrayRef(owner).slice(at, count))});
      places.emplace_back(ArrayRef(index).slice(at, count));
    }
  }
  for (auto [part, value] : zip(parts, permute(b, pieces, width, places))) {
    Value *base = scalar(pointer, 0, part.window->representative);
    Value *address = b.CreatePtrAdd(base, b.getInt64(part.window->first + int64_t(part.at) * size));
    if (maskIsFull() || allActive) {
      copyMetadata(b.CreateAlignedStore(value, address, Align(1)), inst);
      continue;
    }
    Value *active = b.CreateShuffleVector(mask, part.owner);
    copyMetadata(b.CreateMaskedStore(value, address, Align(1), active), inst);
  }
}

/// A function that loads or stores the components of each lane with one access. The values pass
/// through memory of the caller.
Function *SimdEmitter::rowsHelper(Type *element, unsigned components, bool isStore) {
  unsigned bits = layout.getTypeSizeInBits(element), width = pieceElements(element);
  std::string name = (isStore ? "__tm_store_rows_" : "__tm_load_rows_") +
                     std::to_string(components) + "x" + std::to_string(bits);
  if (Function *known = module.getFunction(name))
    return known;
  auto *number = b.getIntNTy(bits);
  auto *helper = Function::Create(
      FunctionType::get(b.getVoidTy(), {lanesOf(b.getPtrTy()), b.getPtrTy()}, false),
      GlobalValue::InternalLinkage, name, module);
  helper->addFnAttr(Attribute::NoInline);
  helper->setDoesNotThrow();
  IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(BasicBlock::Create(context, "", helper));
  Value *addresses = helper->getArg(0), *home = helper->getArg(1);
  auto *row = FixedVectorType::get(number, components), *all = lanesOf(number);
  auto homeOf = [&](unsigned c) { return b.CreateGEP(all, home, b.getInt64(c)); };
  auto address = [&](unsigned lane) { return b.CreateExtractElement(addresses, b.getInt64(lane)); };
  unsigned slotSize = PowerOf2Ceil(components), rowsInPiece = std::max(1u, width / slotSize);
  SmallVector<Value *> pieces;
  if (isStore) {
    unsigned parts = simdWidth / width;
    for (unsigned c = 0; c != components; ++c)
      for (unsigned part = 0; part != parts; ++part)
        pieces.push_back(b.CreateAlignedLoad(
            FixedVectorType::get(number, width),
            b.CreateGEP(FixedVectorType::get(number, width), homeOf(c), b.getInt64(part)),
            Align(1)));
    SmallVector<SmallVector<int>> places;
    for (unsigned lane = 0; lane < simdWidth; lane += rowsInPiece) {
      SmallVector<int> &index = places.emplace_back();
      for (unsigned i = 0; i != rowsInPiece; ++i)
        for (unsigned c = 0; c != slotSize; ++c)
          index.push_back(c < components ? int(c * simdWidth + lane + i) : -1);
    }
    for (auto [number, piece] : enumerate(permute(b, pieces, width, places))) {
      unsigned lane = number * rowsInPiece;
      for (unsigned i = 0; i != rowsInPiece; ++i) {
        SmallVector<int> take;
        for (unsigned c = 0; c != components; ++c)
          take.push_back(i * slotSize + c);
        b.CreateAlignedStore(b.CreateShuffleVector(piece, take), address(lane + i), Align(1));
      }
    }
  } else {
    for (unsigned lane = 0; lane < simdWidth; lane += rowsInPiece) {
      Value *piece = PoisonValue::get(FixedVectorType::get(number, width));
      for (unsigned i = 0; i != rowsInPiece; ++i) {
        Value *part = b.CreateAlignedLoad(row, address(lane + i), Align(1));
        SmallVector<int> widen(width, -1), blend;
        for (unsigned c = 0; c != components; ++c)
          widen[i * slotSize + c] = c;
        part = b.CreateShuffleVector(part, widen);
        for (unsigned k = 0; k != width; ++k)
          blend.push_back(k / slotSize == i ? width + k : k);
        piece = b.CreateShuffleVector(piece, part, blend);
      }
      pieces.push_back(piece);
    }
    SmallVector<SmallVector<int>> places(components);
    for (unsigned c = 0; c != components; ++c)
      for (unsigned lane = 0; lane != simdWidth; ++lane)
        places[c].push_back(lane / rowsInPiece * width + lane % rowsInPiece * slotSize + c);
    for (auto [c, value] : enumerate(permute(b, pieces, width, places)))
      b.CreateAlignedStore(value, homeOf(c), Align(64));
  }
  b.CreateRetVoid();
  return helper;
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

/// A function that loads the numbers of the active lanes one by one.
Function *SimdEmitter::gatherHelper(unsigned bits) {
  std::string name = "__tm_gather_" + std::to_string(bits);
  if (Function *known = module.getFunction(name))
    return known;
  IRBuilder<> h(context);
  auto *element = h.getIntNTy(bits);
  auto *vector = lanesOf(element), *pointers = lanesOf(h.getPtrTy());
  auto *helper = Function::Create(FunctionType::get(vector, {pointers, h.getInt32Ty()}, false),
                                  GlobalValue::InternalLinkage, name, module);
  helper->addFnAttr(Attribute::NoInline);
  helper->setDoesNotThrow();
  auto *start = BasicBlock::Create(context, "", helper),
       *head = BasicBlock::Create(context, "", helper),
       *body = BasicBlock::Create(context, "", helper),
       *end = BasicBlock::Create(context, "", helper);
  h.SetInsertPoint(start);
  auto *values = h.CreateAlloca(vector), *addresses = h.CreateAlloca(pointers);
  h.CreateStore(Constant::getNullValue(vector), values);
  h.CreateStore(helper->getArg(0), addresses);
  h.CreateBr(head);
  h.SetInsertPoint(head);
  PHINode *left = h.CreatePHI(h.getInt32Ty(), 2);
  left->addIncoming(helper->getArg(1), start);
  h.CreateCondBr(h.CreateICmpNE(left, h.getInt32(0)), body, end);
  h.SetInsertPoint(body);
  llvm::Value *lane = firstLane(h, left);
  llvm::Value *address = h.CreateLoad(h.getPtrTy(), h.CreateGEP(h.getPtrTy(), addresses, lane));
  h.CreateStore(h.CreateAlignedLoad(element, address, Align(1)),
                h.CreateGEP(element, values, lane));
  left->addIncoming(h.CreateAnd(left, h.CreateSub(left, h.getInt32(1))), body);
  h.CreateBr(head);
  h.SetInsertPoint(end);
  h.CreateRet(h.CreateLoad(vector, values));
  return helper;
}

/// A function that stores the numbers of the active lanes one by one, in the order of lanes or in a
/// given order.
Function *SimdEmitter::scatterHelper(unsigned bits) {
  std::string name = "__tm_scatter_" + std::to_string(bits);
  if (Function *known = module.getFunction(name))
    return known;
  IRBuilder<> h(context);
  auto *element = h.getIntNTy(bits);
  auto *vector = lanesOf(element), *pointers = lanesOf(h.getPtrTy());
  auto *helper = Function::Create(
      FunctionType::get(h.getVoidTy(), {vector, pointers, h.getInt32Ty(), h.getPtrTy()}, false),
      GlobalValue::InternalLinkage, name, module);
  helper->addFnAttr(Attribute::NoInline);
  helper->setDoesNotThrow();
  auto *start = BasicBlock::Create(context, "", helper),
       *head = BasicBlock::Create(context, "", helper),
       *body = BasicBlock::Create(context, "", helper),
       *next = BasicBlock::Create(context, "", helper),
       *end = BasicBlock::Create(context, "", helper);
  h.SetInsertPoint(start);
  auto *values = h.CreateAlloca(vector), *addresses = h.CreateAlloca(pointers);
  h.CreateStore(helper->getArg(0), values);
  h.CreateStore(helper->getArg(1), addresses);
  h.CreateBr(head);
  h.SetInsertPoint(head);
  PHINode *index = h.CreatePHI(h.getInt32Ty(), 2);
  index->addIncoming(h.getInt32(0), start);
  llvm::Value *lane = index;
  if (options.seeded)
    lane = h.CreateZExt(
        h.CreateLoad(h.getInt8Ty(), h.CreateGEP(h.getInt8Ty(), helper->getArg(3), index)),
        h.getInt32Ty());
  h.CreateCondBr(h.CreateTrunc(h.CreateLShr(helper->getArg(2), lane), h.getInt1Ty()), body, next);
  h.SetInsertPoint(body);
  llvm::Value *address = h.CreateLoad(h.getPtrTy(), h.CreateGEP(h.getPtrTy(), addresses, lane));
  h.CreateAlignedStore(h.CreateLoad(element, h.CreateGEP(element, values, lane)), address,
                       Align(1));
  h.CreateBr(next);
  h.SetInsertPoint(next);
  llvm::Value *following = h.CreateAdd(index, h.getInt32(1));
  index->addIncoming(following, next);
  h.CreateCondBr(h.CreateICmpULT(following, h.getInt32(simdWidth)), head, end);
  h.SetInsertPoint(end);
  h.CreateRetVoid();
  return helper;
}

llvm::Value *SimdEmitter::gather(Type *element, Value *pointers, bool rare) {
  unsigned bits = layout.getTypeSizeInBits(element);
  auto *type = lanesOf(element);
  if (bits >= 32 && host.avx512 && !rare)
    return b.CreateMaskedGather(type, pointers, Align(1), mask, Constant::getNullValue(type));
  Value *values = b.CreateCall(gatherHelper(bits), {pointers, maskBits(mask)});
  return element->isPointerTy() ? b.CreateIntToPtr(values, type) : b.CreateBitCast(values, type);
}

void SimdEmitter::scatter(Value *value, Value *pointers, bool rare) {
  Type *element = value->getType()->getScalarType();
  unsigned bits = layout.getTypeSizeInBits(element);
  if (bits >= 32 && host.avx512 && !options.seeded && !rare) {
    b.CreateMaskedScatter(value, pointers, Align(1), mask);
    return;
  }
  auto *numbers = lanesOf(b.getIntNTy(bits));
  value =
      element->isPointerTy() ? b.CreatePtrToInt(value, numbers) : b.CreateBitCast(value, numbers);
  Value *order = options.seeded
                     ? groupField(b.getPtrTy(), offsetof(GroupState, laneOrder), "lane_order")
                     : ConstantPointerNull::get(b.getPtrTy());
  b.CreateCall(scatterHelper(bits), {value, pointers, maskBits(mask), order});
}

llvm::Value *SimdEmitter::offsetPointers(Value *pointers, uint64_t offset) {
  return offset ? b.CreateGEP(b.getInt8Ty(), pointers, b.getInt64(offset)) : pointers;
}

llvm::Value *SimdEmitter::lastActiveLane() {
  if (options.seeded) {
    // The last lane in the given order.
    AllocaInst *last = slot(b.getInt32Ty(), "last");
    b.CreateStore(b.getInt32(0), last);
    forEachActiveLane([&](Value *lane) { b.CreateStore(lane, last); });
    return b.CreateLoad(b.getInt32Ty(), last);
  }
  if (maskIsFull())
    return b.getInt32(simdWidth - 1);
  return lastLane(b, maskBits(mask));
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// The type for loading or storing a whole value of a thread, if all components have one type and
/// are adjacent.
static bool isDense(ArrayRef<Type *> types, ArrayRef<uint64_t> offsets, const DataLayout &layout) {
  for (unsigned i = 0; i != types.size(); ++i)
    if (types[i] != types[0] || offsets[i] != i * layout.getTypeStoreSize(types[0]))
      return false;
  return true;
}

void SimdEmitter::emitUniformLoad(LoadInst &load) {
  SmallVector<Type *> types;
  SmallVector<uint64_t> offsets;
  componentTypes(load.getType(), types);
  componentOffsets(load.getType(), 0, offsets);
  Value *base = uniform(load.getPointerOperand());
  if (types.size() > 1 && isDense(types, offsets, layout) && !types[0]->isPointerTy()) {
    Value *whole = copyMetadata(
        b.CreateAlignedLoad(FixedVectorType::get(types[0], types.size()), base, Align(1)), load);
    for (unsigned c = 0; c != types.size(); ++c)
      define(load, c, b.CreateExtractElement(whole, b.getInt64(c)));
    return;
  }
  for (unsigned c = 0; c != types.size(); ++c)
    define(load, c,
           copyMetadata(b.CreateAlignedLoad(types[c], b.CreatePtrAdd(base, b.getInt64(offsets[c])),
                                            Align(1)),
                        load));
}

void SimdEmitter::emitLoad(LoadInst &load) {
  if (load.isAtomic())
    return emitAtomicLoad(load);
  llvm::Value *pointer = load.getPointerOperand();
  if (load.getType()->getScalarType()->isIntegerTy() && load.getType()->getScalarSizeInBits() % 8)
    return fail(&load, "loads of types that are no whole bytes are not supported");
  if (load.getPointerAddressSpace() == 0)
    return emitPrivateLoad(load);
  if (isUniform(pointer)) {
    emitUniformLoad(load);
    // The load itself may still differ between lanes, for example if it is volatile.
    if (!isUniform(&load))
      for (Component &component : entry(&load).components)
        component.vector = splat(component.lanes[0]);
    return;
  }
  SmallVector<Type *> types;
  SmallVector<uint64_t> offsets;
  componentTypes(load.getType(), types);
  componentOffsets(load.getType(), 0, offsets);
  unsigned size = layout.getTypeStoreSize(types[0]);
  std::optional<AccessPlan> access;
  if (isDense(types, offsets, layout) && isPowerOf2_32(size) && size <= 8)
    access = planAccess(shape(pointer), types.size(), size);
  auto gatherAll = [&](SmallVectorImpl<Value *> &values) {
    Value *pointers = vector(pointer);
    for (unsigned c = 0; c != types.size(); ++c)
      values.push_back(
          gather(types[c], offsetPointers(pointers, offsets[c]), /*rare=*/access.has_value()));
  };
  if (!access) {
    SmallVector<Value *> values;
    gatherAll(values);
    for (unsigned c = 0; c != types.size(); ++c)
      define(load, c, values[c]);
    return;
  }
  SmallVector<Value *> homes;
  for (Type *type : types)
    homes.push_back(slot(lanesOf(type), "loaded"));
  auto fast = [&] { loadWindows(*access, pointer, types[0], types.size(), homes, load); };
  auto slow = [&] {
    SmallVector<Value *> values;
    gatherAll(values);
    for (unsigned c = 0; c != types.size(); ++c)
      b.CreateStore(values[c], homes[c]);
  };
  Value *holds = assumption(pointer);
  // Each lane loads one element, in the order of the lanes, which a masked load can do with any
  // mask.
  bool inOrder = types.size() == 1 && access->windows.size() == 1 && access->exact &&
                 access->windows[0].first == 0;
  if (inOrder)
    for (unsigned lane = 0; lane != simdWidth; ++lane)
      inOrder &= shape(pointer).offset[lane] == int64_t(lane * size);
  if (!maskIsFull() && inOrder && !types[0]->isPointerTy()) {
    auto masked = [&] {
      auto *type = lanesOf(types[0]);
      b.CreateStore(copyMetadata(b.CreateMaskedLoad(type, scalar(pointer, 0, 0), Align(1), mask,
                                                    Constant::getNullValue(type)),
                                 load),
                    homes[0]);
    };
    branch(holds ? holds : b.getTrue(), masked, slow);
  } else {
    Value *condition = maskIsFull() ? nullptr : allLanes(mask);
    if (holds)
      condition = condition ? b.CreateAnd(condition, holds) : holds;
    branch(condition ? condition : b.getTrue(), fast, slow);
  }
  for (unsigned c = 0; c != types.size(); ++c)
    define(load, c, b.CreateLoad(lanesOf(types[c]), homes[c]));
}

void SimdEmitter::emitStore(StoreInst &store) {
  if (store.isAtomic())
    return emitAtomicStore(store);
  llvm::Value *pointer = store.getPointerOperand(), *value = store.getValueOperand();
  if (value->getType()->getScalarType()->isIntegerTy() &&
      value->getType()->getScalarSizeInBits() % 8)
    return fail(&store, "stores of types that are no whole bytes are not supported");
  if (store.getPointerAddressSpace() == 0)
    return emitPrivateStore(store);
  SmallVector<Type *> types;
  SmallVector<uint64_t> offsets;
  componentTypes(value->getType(), types);
  componentOffsets(value->getType(), 0, offsets);
  if (isUniform(pointer)) {
    // All lanes store to one address. The last store takes effect.
    Value *base = uniform(pointer);
    Value *lane = isUniform(value) ? nullptr : lastActiveLane();
    SmallVector<Value *> parts;
    for (unsigned c = 0; c != types.size(); ++c)
      parts.push_back(lane ? b.CreateExtractElement(vector(value, c), lane) : uniform(value, c));
    if (types.size() > 1 && isDense(types, offsets, layout) && !types[0]->isPointerTy()) {
      Value *whole = PoisonValue::get(FixedVectorType::get(types[0], types.size()));
      for (unsigned c = 0; c != types.size(); ++c)
        whole = b.CreateInsertElement(whole, parts[c], b.getInt64(c));
      copyMetadata(b.CreateAlignedStore(whole, base, Align(1)), store);
      return;
    }
    for (unsigned c = 0; c != types.size(); ++c)
      copyMetadata(
          b.CreateAlignedStore(parts[c], b.CreatePtrAdd(base, b.getInt64(offsets[c])), Align(1)),
          store);
    return;
  }
  unsigned size = layout.getTypeStoreSize(types[0]);
  std::optional<AccessPlan> access;
  if (isDense(types, offsets, layout) && isPowerOf2_32(size) && size <= 8)
    access = planAccess(shape(pointer), types.size(), size);
  if (access && (!access->exact || (options.seeded && access->windows.size() > 1)))
    access.reset();
  SmallVector<Value *> values;
  for (unsigned c = 0; c != types.size(); ++c)
    values.push_back(vector(value, c));
  auto slow = [&] {
    Value *pointers = vector(pointer);
    for (unsigned c = 0; c != types.size(); ++c)
      scatter(values[c], offsetPointers(pointers, offsets[c]), /*rare=*/access.has_value());
  };
  if (!access)
    return slow();
  auto fast = [&] { storeWindows(*access, pointer, types[0], values, store); };
  Value *condition = assumption(pointer);
  bool maskable = types.size() == 1 && access->windows.size() == 1;
  if (!maskIsFull() && !maskable) {
    Value *all = allLanes(mask);
    condition = condition ? b.CreateAnd(condition, all) : all;
  }
  allActive = !maskIsFull() && !maskable;
  branch(condition ? condition : b.getTrue(), fast, [&] {
    allActive = false;
    slow();
  });
  allActive = false;
}

} // namespace triton_metal::engine
