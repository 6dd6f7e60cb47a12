// Atomic accesses, lane by lane.
#include "host_device/engine/Vectorize.h"

using namespace llvm;

namespace triton_metal::engine {

/// Orders stronger than relaxed also apply to threads of other threadgroups.
static AtomicOrdering orderOf(AtomicOrdering ordering) {
  return ordering == AtomicOrdering::NotAtomic || ordering == AtomicOrdering::Unordered
             ? AtomicOrdering::Monotonic
             : ordering;
}

void SimdEmitter::emitAtomicRMW(AtomicRMWInst &rmw) {
  llvm::Value *pointer = rmw.getPointerOperand(), *operand = rmw.getValOperand();
  Type *type = componentType(rmw.getType(), 0);
  if (rmw.getType()->isBFloatTy() || type->isPointerTy())
    return fail(&rmw, "atomics of this type are not supported");
  Align alignment(layout.getTypeStoreSize(type));
  AllocaInst *pointers = nullptr, *operands = nullptr, *results = nullptr;
  Value *onePointer = isUniform(pointer) ? uniform(pointer) : nullptr;
  Value *oneOperand = isUniform(operand) ? uniform(operand) : nullptr;
  if (!onePointer)
    b.CreateStore(vector(pointer), pointers = slot(lanesOf(b.getPtrTy()), "pointers"));
  if (!oneOperand)
    b.CreateStore(vector(operand), operands = slot(lanesOf(type), "operands"));
  if (!rmw.use_empty()) {
    results = slot(lanesOf(type), "results");
    b.CreateStore(Constant::getNullValue(lanesOf(type)), results);
  }
  forEachActiveLane([&](Value *lane) {
    Value *at = onePointer ? onePointer
                           : b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), pointers, lane));
    Value *number = oneOperand ? oneOperand : b.CreateLoad(type, b.CreateGEP(type, operands, lane));
    Value *old =
        b.CreateAtomicRMW(rmw.getOperation(), at, number, alignment, orderOf(rmw.getOrdering()));
    if (results)
      b.CreateStore(old, b.CreateGEP(type, results, lane));
  });
  if (results)
    define(rmw, 0, b.CreateLoad(lanesOf(type), results));
  else
    define(rmw, 0, Constant::getNullValue(lanesOf(type)));
}

void SimdEmitter::emitCompareExchange(AtomicCmpXchgInst &exchange) {
  Type *type = componentType(exchange.getCompareOperand()->getType(), 0);
  if (type->isPointerTy())
    return fail(&exchange, "atomics of this type are not supported");
  Align alignment(layout.getTypeStoreSize(type));
  AllocaInst *pointers = slot(lanesOf(b.getPtrTy()), "pointers"),
             *expected = slot(lanesOf(type), "expected"), *desired = slot(lanesOf(type), "desired"),
             *old = slot(lanesOf(type), "old"), *success = slot(lanesOf(b.getInt8Ty()), "success");
  b.CreateStore(vector(exchange.getPointerOperand()), pointers);
  b.CreateStore(vector(exchange.getCompareOperand()), expected);
  b.CreateStore(vector(exchange.getNewValOperand()), desired);
  b.CreateStore(Constant::getNullValue(lanesOf(type)), old);
  b.CreateStore(Constant::getNullValue(lanesOf(b.getInt8Ty())), success);
  forEachActiveLane([&](Value *lane) {
    Value *at = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), pointers, lane));
    Value *compare = b.CreateLoad(type, b.CreateGEP(type, expected, lane));
    Value *next = b.CreateLoad(type, b.CreateGEP(type, desired, lane));
    Value *fails = b.getFalse();
    if (options.portable) {
      // Metal only has a weak form. One that fails without a reason leaves what is there.
      Type *i32 = b.getInt32Ty();
      auto callee = module.getOrInsertFunction(
          "__tm_runtime_fails", FunctionType::get(i32, {b.getPtrTy(), i32, i32}, false));
      cast<Function>(callee.getCallee())->setDoesNotThrow();
      fails = b.CreateICmpNE(b.CreateCall(callee, {group, simdgroup, lane}), b.getInt32(0));
      next = b.CreateSelect(fails, compare, next);
    }
    Value *pair =
        b.CreateAtomicCmpXchg(at, compare, next, alignment, orderOf(exchange.getSuccessOrdering()),
                              orderOf(exchange.getFailureOrdering()));
    b.CreateStore(b.CreateExtractValue(pair, 0), b.CreateGEP(type, old, lane));
    Value *succeeds = b.CreateAnd(b.CreateExtractValue(pair, 1), b.CreateNot(fails));
    b.CreateStore(b.CreateZExt(succeeds, b.getInt8Ty()), b.CreateGEP(b.getInt8Ty(), success, lane));
  });
  define(exchange, 0, b.CreateLoad(lanesOf(type), old));
  define(exchange, 1,
         b.CreateTrunc(b.CreateLoad(lanesOf(b.getInt8Ty()), success), lanesOf(b.getInt1Ty())));
}

void SimdEmitter::emitAtomicStore(StoreInst &store) {
  llvm::Value *pointer = store.getPointerOperand(), *stored = store.getValueOperand();
  if (componentCount(stored->getType()) != 1 || store.getPointerAddressSpace() == 0)
    return fail(&store, "atomic stores of this type are not supported");
  Type *type = componentType(stored->getType(), 0);
  AllocaInst *pointers = slot(lanesOf(b.getPtrTy()), "pointers"),
             *values = slot(lanesOf(type), "values");
  b.CreateStore(vector(pointer), pointers);
  b.CreateStore(vector(stored), values);
  forEachActiveLane([&](Value *lane) {
    Value *at = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), pointers, lane));
    auto *next = b.CreateAlignedStore(b.CreateLoad(type, b.CreateGEP(type, values, lane)), at,
                                      Align(layout.getTypeStoreSize(type)));
    next->setAtomic(orderOf(store.getOrdering()));
  });
}

void SimdEmitter::emitAtomicLoad(LoadInst &load) {
  llvm::Value *pointer = load.getPointerOperand();
  if (componentCount(load.getType()) != 1 || load.getPointerAddressSpace() == 0)
    return fail(&load, "atomic loads of this type are not supported");
  Type *type = componentType(load.getType(), 0);
  Align alignment(layout.getTypeStoreSize(type));
  if (isUniform(pointer)) {
    auto *value = b.CreateAlignedLoad(type, uniform(pointer), alignment);
    value->setAtomic(orderOf(load.getOrdering()));
    if (isUniform(&load))
      return define(load, 0, value);
    return define(load, 0, splat(value));
  }
  AllocaInst *pointers = slot(lanesOf(b.getPtrTy()), "pointers"),
             *results = slot(lanesOf(type), "results");
  b.CreateStore(vector(pointer), pointers);
  b.CreateStore(Constant::getNullValue(lanesOf(type)), results);
  forEachActiveLane([&](Value *lane) {
    Value *at = b.CreateLoad(b.getPtrTy(), b.CreateGEP(b.getPtrTy(), pointers, lane));
    auto *value = b.CreateAlignedLoad(type, at, alignment);
    value->setAtomic(orderOf(load.getOrdering()));
    b.CreateStore(value, b.CreateGEP(type, results, lane));
  });
  define(load, 0, b.CreateLoad(lanesOf(type), results));
}

} // namespace triton_metal::engine
