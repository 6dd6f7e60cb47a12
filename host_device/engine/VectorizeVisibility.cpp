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
    b.CreateCall(callee,
                 {group, simdgroup, list, maskBits(mask), b.getInt32(constantArgument(call, 1)),
                  b.getInt32(site), b.getInt32(constantArgument(call, 3))});
  });
}

void SimdEmitter::emitLoaded(CallInst &call) {
  llvm::Value *value = call.getArgOperand(0), *pointer = call.getArgOperand(1);
  uint32_t site = constantArgument(call, 2);
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
  branchRarely(isTracked(site), [&] {
    Type *i32 = b.getInt32Ty(), *address = b.getPtrTy();
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_loaded",
        FunctionType::get(b.getVoidTy(),
                          {address, i32, address, i32, i32, i32, i32, i32, address, i32}, false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    AllocaInst *list = slot(lanesOf(b.getInt64Ty()), "addresses");
    b.CreateStore(b.CreatePtrToInt(vector(pointer), lanesOf(b.getInt64Ty())), list);
    for (auto [c, type] : enumerate(types)) {
      uint64_t bytes = layout.getTypeStoreSize(type);
      Type *whole = one ? type : lanesOf(type);
      AllocaInst *values = slot(whole, "values");
      b.CreateStore(b.CreateLoad(whole, results[c]), values);
      b.CreateCall(callee,
                   {group, simdgroup, list, maskBits(mask), b.getInt32(offsets[c]),
                    b.getInt32(bytes), b.getInt32(site), b.getInt32(constantArgument(call, 3)),
                    values, b.getInt32(one ? 0 : bytes)});
      b.CreateStore(b.CreateLoad(whole, values), results[c]);
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
  emitFailure(b.CreateAnd(mask, splat(all)), Failure::Waits, constantArgument(call, 1), nullptr);
}

} // namespace triton_metal::engine
