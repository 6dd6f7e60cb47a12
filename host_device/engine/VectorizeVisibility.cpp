// The calls of portable code that order device memory (Visibility.h).
#include "host_device/engine/Vectorize.h"

using namespace llvm;

namespace triton_metal::engine {

void SimdEmitter::emitCoherent(CallInst &call) {
  if (isUniform(&call))
    return define(call, 0, uniform(call.getArgOperand(0)));
  define(call, 0, vector(call.getArgOperand(0)));
}

void SimdEmitter::emitFence(CallInst &call) {
  b.CreateFence(AtomicOrdering::SequentiallyConsistent);
  if (options.checks.races) {
    Type *i32 = b.getInt32Ty();
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_race_fence",
        FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, i32, i32, i32, i32}, false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    auto argument = [&](unsigned index) { return scalar(call.getArgOperand(index), 0, 0); };
    b.CreateCall(callee, {group, simdgroup, maskBits(mask), argument(0), argument(1), argument(2)});
  }
  if (!options.portable)
    return;
  Type *i32 = b.getInt32Ty(), *pointer = b.getPtrTy();
  auto callee = module.getOrInsertFunction(
      "__tm_runtime_fence",
      FunctionType::get(b.getVoidTy(), {pointer, i32, i32, i32, i32, i32}, false));
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  auto argument = [&](unsigned index) { return scalar(call.getArgOperand(index), 0, 0); };
  b.CreateCall(callee, {group, simdgroup, maskBits(mask), argument(0), argument(1), argument(2)});
}

void SimdEmitter::emitBarrierFlags(CallInst &barrier) {
  Type *i32 = b.getInt32Ty();
  auto callee =
      module.getOrInsertFunction("__tm_runtime_barrier_flags",
                                 FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, i32}, false));
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  b.CreateCall(callee, {group, simdgroup, scalar(barrier.getArgOperand(0), 0, 0)});
}

/// Whether the launch tracks the memory that the site accesses.
llvm::Value *SimdEmitter::isTracked(uint32_t site) {
  Value *tracked =
      launchField(b.getInt32Ty(), offsetof(LaunchState, trackedBuffers), "tracked_buffers");
  int32_t buffer = facts.sites[site].buffer;
  if (buffer >= 0)
    tracked = b.CreateAnd(tracked, b.getInt32(1u << buffer));
  return b.CreateICmpNE(tracked, b.getInt32(0));
}

static uint32_t constantArgument(CallInst &call, unsigned index) {
  return cast<ConstantInt>(call.getArgOperand(index))->getZExtValue();
}

/// AccessFlags of the addresses of the lanes.
uint32_t SimdEmitter::patternOf(llvm::Value *pointer, uint64_t bytes) {
  const LaneShape &s = shape(pointer);
  if (s.isUniform())
    return accessUniform;
  if (!s.isOneClass() || s.speculative)
    return 0;
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    if (s.offset[lane] != int64_t(lane * bytes))
      return 0;
  return accessConsecutive;
}

void SimdEmitter::emitStored(CallInst &call) {
  uint32_t site = constantArgument(call, 2);
  llvm::Value *pointer = call.getArgOperand(0);
  branchRarely(isTracked(site), [&] {
    Type *i32 = b.getInt32Ty();
    auto callee = module.getOrInsertFunction(
        isCallOf(&call, atomicName) ? "__tm_runtime_atomic" : "__tm_runtime_stored",
        FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, b.getPtrTy(), i32, i32, i32, i32},
                          false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    AllocaInst *list = slot(lanesOf(b.getInt64Ty()), "addresses");
    b.CreateStore(b.CreatePtrToInt(vector(pointer), lanesOf(b.getInt64Ty())), list);
    uint32_t bytes = constantArgument(call, 1);
    uint32_t flags = constantArgument(call, 3) | patternOf(pointer, bytes);
    b.CreateCall(callee, {group, simdgroup, list, maskBits(mask), b.getInt32(bytes),
                          b.getInt32(site), b.getInt32(flags)});
  });
}

void SimdEmitter::emitLoaded(CallInst &call) {
  uint32_t site = constantArgument(call, 2);
  observe(call, isTracked(site), "__tm_runtime_loaded", site, constantArgument(call, 3));
}

void SimdEmitter::emitStaged(CallInst &call) {
  llvm::Value *bad = call.getArgOperand(3);
  Value *some = isUniform(&call) ? b.CreateFreeze(uniform(bad))
                                 : anyLane(b.CreateAnd(b.CreateFreeze(vector(bad)), mask));
  observe(call, some, "__tm_runtime_staged", constantArgument(call, 2), 0);
}

/// The byte that stands for this SIMD-group in the record of threadgroup memory's writers, eight
/// times. A single SIMD-group sees all that it writes.
void SimdEmitter::emitWriter(CallInst &call) {
  Value *count = groupField(b.getInt32Ty(), offsetof(GroupState, simdgroups), "simdgroups");
  Value *own = b.CreateMul(b.CreateAdd(b.CreateZExt(simdgroup, b.getInt64Ty()), b.getInt64(1)),
                           b.getInt64(0x0101010101010101));
  define(call, 0,
         b.CreateSelect(b.CreateICmpEQ(count, b.getInt32(1)), b.getInt64(~uint64_t(0)), own));
}

void SimdEmitter::observe(CallInst &call, Value *condition, StringRef function, uint32_t site,
                          uint32_t accessFlags) {
  llvm::Value *value = call.getArgOperand(0), *pointer = call.getArgOperand(1);
  SmallVector<Type *> types;
  SmallVector<uint64_t> offsets;
  componentTypes(call.getType(), types);
  componentOffsets(call.getType(), 0, offsets);
  bool one = isUniform(&call);
  // The result is in slots of its own, which become registers.
  SmallVector<AllocaInst *> results;
  for (auto [c, type] : enumerate(types)) {
    results.push_back(slot(one ? type : lanesOf(type), "seen"));
    b.CreateStore(one ? uniform(value, c) : vector(value, c), results[c]);
  }
  branchRarely(condition, [&] {
    Type *i32 = b.getInt32Ty(), *address = b.getPtrTy();
    auto callee = module.getOrInsertFunction(
        function, FunctionType::get(
                      b.getVoidTy(),
                      {address, i32, address, i32, i32, i32, i32, i32, address, i32, i32}, false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    // Neighbouring components of one size are one access.
    for (unsigned first = 0, end; first != types.size(); first = end) {
      uint64_t bytes = layout.getTypeStoreSize(types[first]);
      for (end = first + 1; end != types.size() && types[end] == types[first] &&
                            offsets[end] == offsets[first] + (end - first) * bytes;)
        ++end;
      unsigned count = end - first;
      Type *whole = one ? types[first] : lanesOf(types[first]);
      AllocaInst *list = slot(lanesOf(b.getInt64Ty()), "addresses");
      Value *pointers = offsetPointers(vector(pointer), offsets[first]);
      b.CreateStore(b.CreatePtrToInt(pointers, lanesOf(b.getInt64Ty())), list);
      AllocaInst *values = slot(ArrayType::get(whole, count), "values");
      auto home = [&](unsigned c) { return b.CreateGEP(whole, values, b.getInt64(c - first)); };
      for (unsigned c = first; c != end; ++c)
        b.CreateStore(b.CreateLoad(whole, results[c]), home(c));
      uint32_t flags = accessFlags | patternOf(pointer, count * bytes);
      b.CreateCall(callee,
                   {group, simdgroup, list, maskBits(mask), b.getInt32(bytes), b.getInt32(count),
                    b.getInt32(site), b.getInt32(flags), values, b.getInt32(one ? 0 : bytes),
                    b.getInt32(layout.getTypeAllocSize(whole))});
      for (unsigned c = first; c != end; ++c)
        b.CreateStore(b.CreateLoad(whole, home(c)), results[c]);
    }
  });
  for (auto [c, type] : enumerate(types))
    define(call, c, b.CreateLoad(one ? type : lanesOf(type), results[c]));
}

void SimdEmitter::emitWaits(CallInst &call) {
  // A loop only ends by itself if one of the threads that are left in it does.
  Value *waiting = vector(call.getArgOperand(0));
  Value *others = b.CreateAnd(mask, b.CreateNot(waiting));
  Value *all = b.CreateAnd(anyLane(mask), b.CreateNot(anyLane(others)));
  // A compare-and-exchange that failed without a reason may succeed next time.
  Type *i32 = b.getInt32Ty();
  AllocaInst *excused = slot(i32, "excused");
  b.CreateStore(b.getInt32(0), excused);
  branchRarely(all, [&] {
    auto callee = module.getOrInsertFunction("__tm_runtime_has_failed",
                                             FunctionType::get(i32, {b.getPtrTy()}, false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    b.CreateStore(b.CreateCall(callee, {group}), excused);
  });
  all = b.CreateAnd(all, b.CreateICmpEQ(b.CreateLoad(i32, excused), b.getInt32(0)));
  emitFailure(b.CreateAnd(mask, splat(all)), Failure::Waits, constantArgument(call, 1), nullptr);
}

} // namespace triton_metal::engine
