// Values that Metal does not promise: the launch draws them.
#include "host_device/engine/Prepare.h"
#include "host_device/engine/Vectorize.h"

using namespace llvm;

namespace triton_metal::engine {

uint32_t SimdEmitter::siteOfAny(CallInst &call, Unpromised reason, Type *type) {
  Site site;
  fillLocation(site, call);
  site.kind = AccessKind::AnyValue;
  site.space = AddressSpace::Thread;
  site.reason = reason;
  site.bits = type->getPrimitiveSizeInBits();
  facts.sites.push_back(site);
  return facts.sites.size() - 1;
}

llvm::Value *SimdEmitter::anyBits(Value *badLanes, uint32_t site, bool ofLane, Value *salts) {
  auto *i32 = b.getInt32Ty();
  auto *i64 = b.getInt64Ty();
  bool single = !badLanes->getType()->isVectorTy();
  Type *type = single ? static_cast<Type *>(i64) : lanesOf(i64);
  AllocaInst *saltsSlot = slot(lanesOf(i64), "salts"), *bitsSlot = slot(lanesOf(i64), "bits");
  AllocaInst *result = slot(type, "any");
  // In the usual case nothing is asked for, and the value is not used.
  b.CreateStore(Constant::getNullValue(type), result);
  branchRarely(single ? badLanes : anyLane(badLanes), [&] {
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_any",
        FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, i32, i32, b.getPtrTy(), b.getPtrTy()},
                          false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    cast<Function>(callee.getCallee())->addFnAttr(Attribute::Cold);
    b.CreateStore(salts->getType()->isVectorTy() ? salts : splat(salts), saltsSlot);
    b.CreateCall(callee, {group, b.getInt32(site), single ? maskBits(mask) : maskBits(badLanes),
                          b.getInt32(ofLane), saltsSlot, bitsSlot});
    if (single)
      b.CreateStore(b.CreateLoad(i64, b.CreateGEP(i64, bitsSlot, firstLane(b, maskBits(mask)))),
                    result);
    else
      b.CreateStore(b.CreateLoad(type, bitsSlot), result);
  });
  return b.CreateLoad(type, result);
}

void SimdEmitter::emitAny(CallInst &call, bool ofLane) {
  auto *number = dyn_cast<ConstantInt>(call.getArgOperand(1));
  uint32_t site = number ? number->getZExtValue() : ~0u;
  if (!options.portable || site >= facts.sites.size())
    return define(call, 0,
                  isUniform(&call) ? b.getInt64(0)
                                   : Constant::getNullValue(lanesOf(b.getInt64Ty())));
  if (isUniform(&call))
    return define(call, 0,
                  anyBits(b.CreateFreeze(uniform(call.getArgOperand(0))), site, ofLane,
                          uniform(call.getArgOperand(2))));
  Value *lanes = b.CreateAnd(b.CreateFreeze(vector(call.getArgOperand(0))), mask);
  define(call, 0, anyBits(lanes, site, ofLane, vector(call.getArgOperand(2))));
}

} // namespace triton_metal::engine
