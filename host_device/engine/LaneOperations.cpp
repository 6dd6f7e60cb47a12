// Operations between lanes, on whole vectors: shuffles, reductions, prefix scans, the 8x8 matrix
// multiply.
#include "host_device/engine/Builtins.h"
#include "host_device/engine/Vectorize.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

namespace triton_metal::engine {

static constexpr char shuffleName[] = "__tm_engine_shuffle";

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

void SimdEmitter::emitShuffle(CallInst &call) {
  llvm::Value *value = call.getArgOperand(0), *from = call.getArgOperand(1);
  if (options.checkBounds)
    if (MDNode *node = call.getMetadata("tm.site")) {
      // A lane that does not exist or does not take part has nothing to give.
      uint32_t site = mdconst::extract<ConstantInt>(node->getOperand(0))->getZExtValue();
      Value *index = vector(from);
      Value *bad = b.CreateICmpUGE(index, splat(b.getInt32(simdWidth)));
      Value *bits = splat(maskBits(mask));
      Value *active = b.CreateTrunc(b.CreateLShr(bits, b.CreateAnd(index, splat(b.getInt32(31)))),
                                    lanesOf(b.getInt1Ty()));
      bad = b.CreateOr(bad, b.CreateNot(active));
      emitFailure(b.CreateAnd(mask, b.CreateFreeze(bad)), Failure::ShuffleLane, site,
                  b.CreateZExt(index, lanesOf(b.getInt64Ty())));
    }
  if (isUniform(value))
    return define(call, 0, uniform(value));
  if (isUniform(&call)) {
    Value *lane = b.CreateAnd(uniform(from), b.getInt32(31));
    return define(call, 0, b.CreateExtractElement(vector(value), lane));
  }
  Value *index = b.CreateAnd(vector(from), splat(b.getInt32(31)));
  auto *vector32 = lanesOf(b.getInt32Ty());
  auto callee = module.getOrInsertFunction(
      shuffleName, FunctionType::get(vector32, {vector32, vector32}, false));
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  Value *numbers = vector(value);
  if (call.getType()->isIntegerTy(32))
    return define(call, 0, b.CreateCall(callee, {numbers, index}));
  Value *low = b.CreateCall(callee, {b.CreateTrunc(numbers, vector32), index});
  Value *high = b.CreateCall(callee, {b.CreateTrunc(b.CreateLShr(numbers, 32), vector32), index});
  auto *wide = lanesOf(b.getInt64Ty());
  define(call, 0, b.CreateOr(b.CreateZExt(low, wide), b.CreateShl(b.CreateZExt(high, wide), 32)));
}

bool lowerShuffles(Function &function, const HostTraits &host) {
  SmallVector<CallInst *> work;
  for (Instruction &inst : instructions(function))
    if (auto *call = dyn_cast<CallInst>(&inst);
        call && call->getCalledFunction() && call->getCalledFunction()->getName() == shuffleName)
      work.push_back(call);
  for (CallInst *call : work) {
    IRBuilder<> b(call);
    Value *value = call->getArgOperand(0), *index = call->getArgOperand(1), *result = nullptr;
    if (auto *constant = dyn_cast<Constant>(index)) {
      SmallVector<int> mask;
      for (unsigned lane = 0; lane != simdWidth; ++lane) {
        auto *number = dyn_cast_or_null<ConstantInt>(constant->getAggregateElement(lane));
        mask.push_back(number ? int(number->getZExtValue() & 31) : -1);
      }
      result = b.CreateShuffleVector(value, mask);
    } else if (host.avx512) {
      // Two registers of 16, from which an index of five bits picks.
      SmallVector<int> low, high, whole;
      for (int i = 0; i != 16; ++i) {
        low.push_back(i);
        high.push_back(16 + i);
      }
      Value *a = b.CreateShuffleVector(value, low), *c = b.CreateShuffleVector(value, high);
      Value *first = b.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                       {a, b.CreateShuffleVector(index, low), c});
      Value *second = b.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {},
                                        {a, b.CreateShuffleVector(index, high), c});
      for (int i = 0; i != 32; ++i)
        whole.push_back(i);
      result = b.CreateShuffleVector(first, second, whole);
    } else {
      result = PoisonValue::get(value->getType());
      for (unsigned lane = 0; lane != simdWidth; ++lane)
        result = b.CreateInsertElement(
            result, b.CreateExtractElement(value, b.CreateExtractElement(index, lane)), lane);
    }
    call->replaceAllUsesWith(result);
    call->eraseFromParent();
  }
  return !work.empty();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static Constant *identity(const LaneReduction &reduction, Type *type) {
  switch (reduction.kind) {
  case ReductionKind::Sum:
    return reduction.isFloat ? ConstantFP::getNegativeZero(type) : Constant::getNullValue(type);
  case ReductionKind::Or:
  case ReductionKind::Xor:
    return Constant::getNullValue(type);
  case ReductionKind::Product:
    return reduction.isFloat ? ConstantFP::get(type, 1.0) : ConstantInt::get(type, 1);
  case ReductionKind::And:
    return Constant::getAllOnesValue(type);
  case ReductionKind::Min:
  case ReductionKind::Max: {
    bool max = reduction.kind == ReductionKind::Max;
    if (reduction.isFloat)
      return ConstantFP::getNaN(type); // the minimum of a number and NaN is the number
    unsigned width = type->getIntegerBitWidth();
    if (reduction.isSigned)
      return ConstantInt::get(type, max ? APInt::getSignedMinValue(width)
                                        : APInt::getSignedMaxValue(width));
    return ConstantInt::get(type, max ? APInt::getMinValue(width) : APInt::getMaxValue(width));
  }
  }
  llvm_unreachable("all kinds are covered");
}

template <typename Builder>
static Value *combine(Builder &b, const LaneReduction &reduction, Value *x, Value *y) {
  switch (reduction.kind) {
  case ReductionKind::Sum:
    return reduction.isFloat ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  case ReductionKind::Product:
    return reduction.isFloat ? b.CreateFMul(x, y) : b.CreateMul(x, y);
  case ReductionKind::And:
    return b.CreateAnd(x, y);
  case ReductionKind::Or:
    return b.CreateOr(x, y);
  case ReductionKind::Xor:
    return b.CreateXor(x, y);
  case ReductionKind::Min:
    return b.CreateBinaryIntrinsic(reduction.isFloat    ? Intrinsic::minnum
                                   : reduction.isSigned ? Intrinsic::smin
                                                        : Intrinsic::umin,
                                   x, y);
  case ReductionKind::Max:
    return b.CreateBinaryIntrinsic(reduction.isFloat    ? Intrinsic::maxnum
                                   : reduction.isSigned ? Intrinsic::smax
                                                        : Intrinsic::umax,
                                   x, y);
  }
  llvm_unreachable("all kinds are covered");
}

void SimdEmitter::emitReduction(CallInst &call) {
  StringRef name = call.getCalledFunction()->getName();
  llvm::Value *operand = call.getArgOperand(0);
  if (name == "__tm_simd_ballot") {
    Value *value = vector(operand);
    if (!operand->getType()->isIntegerTy(1))
      value = b.CreateICmpNE(value, Constant::getNullValue(value->getType()));
    if (!isa<Constant>(value))
      value = b.CreateFreeze(value);
    return define(call, 0, b.CreateZExt(maskBits(b.CreateAnd(value, mask)), b.getInt64Ty()));
  }
  LaneReduction reduction = *LaneReduction::parse(name);
  Value *value = vector(operand);
  Type *type = value->getType()->getScalarType();
  Constant *neutral = identity(reduction, type);
  auto *neutralVector = ConstantVector::getSplat(ElementCount::getFixed(simdWidth), neutral);
  if (!maskIsFull())
    value = b.CreateSelect(mask, value, neutralVector);
  if (!reduction.isScan) {
    // A tree whose shape is the same on every machine.
    for (unsigned width = simdWidth / 2; width; width /= 2) {
      SmallVector<int> low, high;
      for (unsigned i = 0; i != width; ++i) {
        low.push_back(i);
        high.push_back(width + i);
      }
      value = combine(b, reduction, b.CreateShuffleVector(value, low),
                      b.CreateShuffleVector(value, high));
    }
    return define(call, 0, b.CreateExtractElement(value, b.getInt64(0)));
  }
  auto shifted = [&](Value *from, unsigned distance, Constant *fill) {
    SmallVector<int> mask;
    for (unsigned lane = 0; lane != simdWidth; ++lane)
      mask.push_back(lane >= distance ? int(lane - distance) : int(simdWidth));
    return b.CreateShuffleVector(
        from, ConstantVector::getSplat(ElementCount::getFixed(simdWidth), fill), mask);
  };
  for (unsigned distance = 1; distance != simdWidth; distance *= 2)
    value = combine(b, reduction, shifted(value, distance, neutral), value);
  if (!reduction.inclusive) {
    // What is before the first lane: Metal's neutral element, plus zero for sums.
    Constant *first = reduction.kind == ReductionKind::Sum ? Constant::getNullValue(type) : neutral;
    value = shifted(value, 1, first);
  }
  define(call, 0, value);
}

//===----------------------------------------------------------------------===//
// simdgroup_matrix
//===----------------------------------------------------------------------===//

void SimdEmitter::emitMatrixMultiply(CallInst &call) {
  // Where a lane's two elements are.
  auto rowOf = [](unsigned lane) { return (lane / 4 & 4) + (lane / 2) % 4; };
  auto columnOf = [](unsigned lane) { return (lane / 4 & 2) * 2 + (lane % 2) * 2; };
  unsigned holder[8][4]; // the lane that has row r, columns 2c and 2c + 1
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    holder[rowOf(lane)][columnOf(lane) / 2] = lane;
  llvm::Value *a = call.getArgOperand(0), *bm = call.getArgOperand(1), *c = call.getArgOperand(2);
  if (componentCount(a->getType()) != 2 || componentCount(bm->getType()) != 2 ||
      componentCount(c->getType()) != 2)
    return fail(&call, "a matrix multiply takes two elements a lane");
  Value *left[2] = {vector(a, 0), vector(a, 1)}, *right[2] = {vector(bm, 0), vector(bm, 1)};
  // Lanes 0 to 15 hold rows 0 to 3, the others rows 4 to 7, with the same columns: one register's
  // worth at a time, so that the rows of B are spread once for both.
  Value *result[2] = {nullptr, nullptr};
  Value *halves[2][2];
  for (unsigned half : {0u, 1u})
    for (unsigned part : {0u, 1u}) {
      SmallVector<int> take;
      for (unsigned lane = 0; lane != 16; ++lane)
        take.push_back(half * 16 + lane);
      halves[half][part] = b.CreateShuffleVector(vector(c, part), take);
    }
  for (unsigned k = 0; k != 8; ++k) {
    Value *row[2];
    for (unsigned part : {0u, 1u}) {
      SmallVector<int> take;
      for (unsigned lane = 0; lane != 16; ++lane)
        take.push_back(holder[k][columnOf(lane) / 2]);
      row[part] = b.CreateShuffleVector(right[part], take);
    }
    for (unsigned half : {0u, 1u}) {
      SmallVector<int> take;
      for (unsigned lane = 0; lane != 16; ++lane)
        take.push_back(holder[rowOf(half * 16 + lane)][k / 2]);
      Value *column = b.CreateShuffleVector(left[k % 2], take);
      for (unsigned part : {0u, 1u})
        halves[half][part] = b.CreateIntrinsic(Intrinsic::fma, {column->getType()},
                                               {column, row[part], halves[half][part]});
    }
  }
  for (unsigned part : {0u, 1u}) {
    SmallVector<int> join;
    for (unsigned lane = 0; lane != simdWidth; ++lane)
      join.push_back(lane);
    result[part] = b.CreateShuffleVector(halves[0][part], halves[1][part], join);
    define(call, part, result[part]);
  }
}

} // namespace triton_metal::engine
