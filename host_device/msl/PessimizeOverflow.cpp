// Signed arithmetic that overflows is any value, if a thread computes data with it. Loop counters
// and addresses are left alone: they are most of a kernel's signed arithmetic, they would no longer
// have a known shape, and addresses are checked in any case.
#include "host_device/msl/AnyValues.h"
#include "host_device/msl/Stdlib.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace triton_metal {

/// Whether the function is the standard library's. Its integers wrap.
static bool isOfTheLibrary(const Function &function) {
  const DISubprogram *program = function.getSubprogram();
  return !program || isStdlibFile(filePathOf(*program));
}

/// `phi + constant`, where the phi carries the sum.
static bool isCounter(const BinaryOperator *operation) {
  for (unsigned side : {0u, 1u}) {
    auto *phi = dyn_cast<PHINode>(operation->getOperand(side));
    if (phi && isa<Constant>(operation->getOperand(1 - side)) &&
        is_contained(phi->incoming_values(), operation))
      return true;
  }
  return false;
}

/// Whether the value becomes a part of an address.
static bool reachesAddress(const Instruction *value) {
  SmallPtrSet<const Instruction *, 16> seen;
  SmallVector<const Instruction *> work{value};
  while (!work.empty()) {
    const Instruction *inst = work.pop_back_val();
    if (!seen.insert(inst).second)
      continue;
    if (seen.size() > 64)
      return true;
    for (const User *user : inst->users()) {
      if (isa<GetElementPtrInst>(user))
        return true;
      if (isa<BinaryOperator, PHINode, SelectInst, ZExtInst, SExtInst, TruncInst>(user))
        work.push_back(cast<Instruction>(user));
    }
  }
  return false;
}

static bool neverOverflows(const BinaryOperator *operation) {
  const Value *left = operation->getOperand(0), *right = operation->getOperand(1);
  SimplifyQuery query(operation->getDataLayout(), operation);
  OverflowResult result = operation->getOpcode() == Instruction::Add
                              ? computeOverflowForSignedAdd(left, right, query)
                          : operation->getOpcode() == Instruction::Sub
                              ? computeOverflowForSignedSub(left, right, query)
                              : computeOverflowForSignedMul(left, right, query);
  return result == OverflowResult::NeverOverflows;
}

static Value *overflows(IRBuilderBase &builder, BinaryOperator *operation) {
  Value *left = operation->getOperand(0), *right = operation->getOperand(1);
  Type *type = operation->getType();
  if (operation->getOpcode() == Instruction::Mul) {
    Type *wide = builder.getIntNTy(2 * type->getIntegerBitWidth());
    Value *product =
        builder.CreateMul(builder.CreateSExt(left, wide), builder.CreateSExt(right, wide));
    return builder.CreateICmpNE(product, builder.CreateSExt(operation, wide));
  }
  // The sign is one that the operands do not allow.
  Value *first = builder.CreateXor(left, operation);
  Value *second = operation->getOpcode() == Instruction::Add ? builder.CreateXor(right, operation)
                                                             : builder.CreateXor(left, right);
  return builder.CreateICmpSLT(builder.CreateAnd(first, second), ConstantInt::getNullValue(type));
}

void pessimizeOverflow(Function &function) {
  if (isOfTheLibrary(function))
    return;
  SmallVector<BinaryOperator *> operations;
  for (Instruction &inst : instructions(function)) {
    auto *operation = dyn_cast<BinaryOperator>(&inst);
    if (!operation || !isa<OverflowingBinaryOperator>(operation) ||
        operation->getOpcode() == Instruction::Shl || !operation->hasNoSignedWrap())
      continue;
    Type *type = operation->getType();
    bool isProduct = operation->getOpcode() == Instruction::Mul;
    if (type->isIntegerTy() && type->getIntegerBitWidth() <= (isProduct ? 32 : 64))
      operations.push_back(operation);
  }
  SmallVector<BinaryOperator *> data;
  for (BinaryOperator *operation : operations)
    if (!isCounter(operation) && !reachesAddress(operation) && !neverOverflows(operation))
      data.push_back(operation);
  for (BinaryOperator *operation : operations)
    operation->setHasNoSignedWrap(false);
  for (BinaryOperator *operation : data) {
    IRBuilder<> builder(operation->getNextNode());
    builder.SetCurrentDebugLocation(operation->getDebugLoc());
    SmallVector<Use *> uses;
    for (Use &use : operation->uses())
      uses.push_back(&use);
    AnyValue what{Unpromised::SignedOverflow};
    what.salt = builder.CreateZExt(operation, builder.getInt64Ty());
    Value *bad = overflows(builder, operation);
    Value *result = buildAnyIf(builder, bad, operation, what);
    for (Use *use : uses)
      use->set(result);
    // A compiler may take `x + 1 > x` for true, although it holds for no value of the sum.
    for (Use *use : uses)
      if (auto *comparison = dyn_cast<ICmpInst>(use->getUser())) {
        SmallVector<Use *> its;
        for (Use &other : comparison->uses())
          its.push_back(&other);
        builder.SetInsertPoint(comparison->getNextNode());
        builder.SetCurrentDebugLocation(comparison->getDebugLoc());
        Value *either = buildAnyIf(builder, bad, comparison, {Unpromised::SignedOverflow});
        for (Use *other : its)
          other->set(either);
      }
  }
}

} // namespace triton_metal
