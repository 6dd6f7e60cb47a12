// The calls of checked code: accesses that may race, values that are wrong, operations of a whole
// SIMD-group, and iterations of loops.
#include "host_device/engine/Races.h"
#include "host_device/engine/Vectorize.h"
#include "host_device/msl/CheckValues.h"

using namespace llvm;

namespace triton_metal::engine {

static uint32_t constantArgument(CallInst &call, unsigned index) {
  return cast<ConstantInt>(call.getArgOperand(index))->getZExtValue();
}

void SimdEmitter::emitAccess(CallInst &call) {
  llvm::Value *pointer = call.getArgOperand(0);
  uint32_t bytes = constantArgument(call, 1), site = constantArgument(call, 2);
  uint32_t flags = constantArgument(call, 3) | patternOf(pointer, bytes);
  auto emit = [&] {
    Type *i32 = b.getInt32Ty();
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_access",
        FunctionType::get(b.getVoidTy(),
                          {b.getPtrTy(), i32, b.getPtrTy(), i32, i32, i32, i32, b.getPtrTy(), i32},
                          false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    AllocaInst *list = slot(lanesOf(b.getInt64Ty()), "addresses");
    b.CreateStore(b.CreatePtrToInt(vector(pointer), lanesOf(b.getInt64Ty())), list);
    // The numbers that are stored, all first components before all second ones.
    Value *values = ConstantPointerNull::get(b.getPtrTy());
    uint64_t each = 0;
    if (call.arg_size() > 4) {
      llvm::Value *value = call.getArgOperand(4);
      SmallVector<Type *> types;
      componentTypes(value->getType(), types);
      each = layout.getTypeStoreSize(types[0]);
      if (all_equal(types) && each * types.size() == bytes) {
        AllocaInst *home = slot(ArrayType::get(lanesOf(types[0]), types.size()), "stored");
        for (unsigned c = 0; c != types.size(); ++c)
          b.CreateAlignedStore(vector(value, c),
                               b.CreateGEP(b.getInt8Ty(), home, b.getInt64(c * each * simdWidth)),
                               Align(1));
        values = home;
      }
    }
    b.CreateCall(callee, {group, simdgroup, list, maskBits(mask), b.getInt32(bytes),
                          b.getInt32(site), b.getInt32(flags), values, b.getInt32(each)});
  };
  if (flags & raceThreadgroup)
    emit();
  else
    branch(isTracked(site), emit, [] {});
}

void SimdEmitter::emitOrder(CallInst &barrier, bool isThreadgroup) {
  Type *i32 = b.getInt32Ty();
  auto callee = module.getOrInsertFunction(
      "__tm_runtime_order", FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, i32, i32}, false));
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  b.CreateCall(callee, {group, simdgroup, scalar(barrier.getArgOperand(0), 0, 0),
                        b.getInt32(isThreadgroup)});
}

void SimdEmitter::emitFail(CallInst &call) {
  uint32_t site = constantArgument(call, 1);
  Value *lanes = b.CreateAnd(mask, b.CreateFreeze(vector(call.getArgOperand(0))));
  if (facts.sites[site].kind == AccessKind::Value)
    return emitFailure(lanes, Failure::Value, site, nullptr);
  llvm::Value *pointer = call.getArgOperand(2);
  branchRarely(anyLane(lanes), [&] {
    Type *i32 = b.getInt32Ty();
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_unwritten",
        FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, b.getPtrTy(), i32, i32}, false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    cast<Function>(callee.getCallee())->addFnAttr(Attribute::Cold);
    AllocaInst *list = slot(lanesOf(b.getInt64Ty()), "addresses");
    b.CreateStore(b.CreatePtrToInt(vector(pointer), lanesOf(b.getInt64Ty())), list);
    b.CreateCall(callee, {group, simdgroup, list, maskBits(lanes), b.getInt32(site)});
  });
}

void SimdEmitter::emitStep(CallInst &call) {
  Type *i64 = b.getInt64Ty();
  if (!steps) {
    steps = slot(i64, "steps");
    IRBuilder<> start(bodyStart, bodyStart->getFirstInsertionPt());
    start.CreateStore(start.getInt64(0), steps);
  }
  Value *count = b.CreateAdd(b.CreateLoad(i64, steps), b.getInt64(1));
  b.CreateStore(count, steps);
  Value *most = launchField(i64, offsetof(LaunchState, maxSteps), "max_steps");
  branchRarely(b.CreateICmpUGE(count, most),
               [&] { emitFailure(mask, Failure::Steps, constantArgument(call, 0), splat(count)); });
}

void SimdEmitter::checkTogether(CallInst &call) {
  MDNode *node = call.getMetadata("tm.site");
  if (!options.checks.divergence || currentHasAll || !node)
    return;
  uint32_t site = mdconst::extract<ConstantInt>(node->getOperand(0))->getZExtValue();
  StringRef name = call.getCalledFunction()->getName();
  facts.sites[site].note = isCallOf(&call, togetherName) ? "operation on a simdgroup_matrix"
                           : name.contains("barrier")    ? "simdgroup_barrier"
                                                         : "multiplication of simdgroup matrices";
  emitFailure(b.CreateXor(mask, existing), Failure::DivergentOperation, site, nullptr);
}

void SimdEmitter::emitTogether(CallInst &call) { checkTogether(call); }

} // namespace triton_metal::engine
