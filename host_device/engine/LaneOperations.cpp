// The functions that cross lanes, on whole vectors: shuffles, reductions, prefix scans, the 8x8
// matrix multiply. A new one needs a function of LaneFunctions here, a row in the table at the end
// of this file, and its declaration in stdlib/metal_simdgroup.
#include "host_device/engine/Vectorize.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"

using namespace llvm;

namespace triton_metal::engine {

/// An intermediate call for a shuffle of vectors, which lowerShuffles replaces.
static constexpr char shuffleName[] = "__tm_engine_shuffle";

enum class ReductionKind { Sum, Product, Min, Max, And, Or, Xor };
enum class Number { Float, Signed, Unsigned };

/// What combines the lanes' values.
struct Reduction {
  ReductionKind kind;
  Number number;
  bool isFloat() const { return number == Number::Float; }
  bool isSigned() const { return number == Number::Signed; }
};

/// The emitters. Each defines the result of the call in the SIMD-group's code.
struct SimdEmitter::LaneFunctions {
  static void laneNumber(SimdEmitter &e, CallInst &call);
  static void simdgroupIndex(SimdEmitter &e, CallInst &call);
  static void shuffle(SimdEmitter &e, CallInst &call);
  /// A lane that is inactive or does not exist has any value to give.
  static void shufflePortably(SimdEmitter &e, CallInst &call);
  /// The 32- or 64-bit numbers of the lanes `from`.
  static Value *fromLanes(SimdEmitter &e, Value *numbers, Value *from);
  static void ballot(SimdEmitter &e, CallInst &call);
  static void multiplyMatrices(SimdEmitter &e, CallInst &call);
  static void reduce(SimdEmitter &e, CallInst &call, Reduction reduction);
  /// A prefix scan over groups of `width` lanes. If `inclusive`, it includes the lane's own value.
  static void scan(SimdEmitter &e, CallInst &call, Reduction reduction, bool inclusive,
                   unsigned width);

  template <ReductionKind kind, Number number>
  static void reduceBy(SimdEmitter &e, CallInst &call) {
    reduce(e, call, {kind, number});
  }
  template <ReductionKind kind, Number number, bool inclusive, unsigned width>
  static void scanBy(SimdEmitter &e, CallInst &call) {
    scan(e, call, {kind, number}, inclusive, width);
  }

private:
  /// The operand of active lanes, and `neutral` for all others.
  static Value *activeOperand(SimdEmitter &e, CallInst &call, Constant *neutral);
};

void SimdEmitter::LaneFunctions::laneNumber(SimdEmitter &e, CallInst &call) {
  e.define(call, 0, e.laneNumbers());
  e.define(call, 0, e.b.getInt32(0));
}

void SimdEmitter::LaneFunctions::simdgroupIndex(SimdEmitter &e, CallInst &call) {
  e.define(call, 0, e.simdgroup);
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

void SimdEmitter::LaneFunctions::shuffle(SimdEmitter &e, CallInst &call) {
  auto &b = e.b;
  llvm::Value *value = call.getArgOperand(0), *from = call.getArgOperand(1);
  if (e.options.portable)
    return shufflePortably(e, call);
  if (e.options.checks.bounds || e.options.checks.divergence)
    if (MDNode *node = call.getMetadata("tm.site")) {
      // A missing or inactive lane has no value to give. That of an inactive one may not matter:
      // right kernels ask for it where threads have returned early, so only the check for
      // divergence reports it.
      uint32_t site = mdconst::extract<ConstantInt>(node->getOperand(0))->getZExtValue();
      Value *index = e.vector(from);
      Value *bad = b.CreateICmpUGE(index, e.splat(b.getInt32(simdWidth)));
      Value *bits = e.splat(e.maskBits(e.options.checks.divergence ? e.mask : e.existing));
      Value *active = b.CreateTrunc(b.CreateLShr(bits, b.CreateAnd(index, e.splat(b.getInt32(31)))),
                                    e.lanesOf(b.getInt1Ty()));
      bad = b.CreateOr(bad, b.CreateNot(active));
      e.emitFailure(b.CreateAnd(e.mask, b.CreateFreeze(bad)), Failure::ShuffleLane, site,
                    b.CreateZExt(index, e.lanesOf(b.getInt64Ty())));
    }
  if (e.isUniform(value))
    return e.define(call, 0, e.uniform(value));
  if (e.isUniform(&call)) {
    Value *lane = b.CreateAnd(e.uniform(from), b.getInt32(31));
    return e.define(call, 0, b.CreateExtractElement(e.vector(value), lane));
  }
  e.define(call, 0, fromLanes(e, e.vector(value), e.vector(from)));
}

void SimdEmitter::LaneFunctions::shufflePortably(SimdEmitter &e, CallInst &call) {
  auto &b = e.b;
  llvm::Value *value = call.getArgOperand(0), *from = call.getArgOperand(1);
  uint32_t site = e.siteOfAny(call, Unpromised::Shuffle, call.getType());
  Value *active = e.maskBits(e.mask);
  auto isBad = [&](Value *index, Value *bits) {
    auto constant = [&](uint32_t number) { return ConstantInt::get(index->getType(), number); };
    Value *inactive = b.CreateICmpEQ(
        b.CreateAnd(b.CreateLShr(bits, b.CreateAnd(index, constant(31))), constant(1)),
        constant(0));
    return b.CreateFreeze(b.CreateOr(inactive, b.CreateICmpUGE(index, constant(simdWidth))));
  };
  if (e.isUniform(&call)) {
    Value *index = e.uniform(from);
    Value *bad = isBad(index, active);
    Value *any = e.anyBits(bad, site, /*ofLane=*/false, b.getInt64(0));
    Value *lane = b.CreateAnd(index, b.getInt32(31));
    Value *good = b.CreateExtractElement(e.vector(value), lane);
    return e.define(call, 0, b.CreateSelect(bad, b.CreateTrunc(any, good->getType()), good));
  }
  Value *index = e.vector(from);
  Value *bad = b.CreateAnd(e.mask, isBad(index, e.splat(active)));
  Value *any = e.anyBits(bad, site, /*ofLane=*/true, b.getInt64(0));
  Value *good = fromLanes(e, e.vector(value), index);
  e.define(call, 0, b.CreateSelect(bad, b.CreateTrunc(any, good->getType()), good));
}

Value *SimdEmitter::LaneFunctions::fromLanes(SimdEmitter &e, Value *numbers, Value *from) {
  auto &b = e.b;
  Value *index = b.CreateAnd(from, e.splat(b.getInt32(31)));
  auto *vector32 = e.lanesOf(b.getInt32Ty());
  auto callee = e.module.getOrInsertFunction(
      shuffleName, FunctionType::get(vector32, {vector32, vector32}, false));
  auto *function = cast<Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  if (numbers->getType() == vector32)
    return b.CreateCall(callee, {numbers, index});
  Value *low = b.CreateCall(callee, {b.CreateTrunc(numbers, vector32), index});
  Value *high = b.CreateCall(callee, {b.CreateTrunc(b.CreateLShr(numbers, 32), vector32), index});
  auto *wide = e.lanesOf(b.getInt64Ty());
  return b.CreateOr(b.CreateZExt(low, wide), b.CreateShl(b.CreateZExt(high, wide), 32));
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
      // The vector occupies two registers of 16 elements. An index of five bits selects from both.
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

static Constant *neutralElement(Reduction reduction, Type *type) {
  switch (reduction.kind) {
  case ReductionKind::Sum:
    return reduction.isFloat() ? ConstantFP::getNegativeZero(type) : Constant::getNullValue(type);
  case ReductionKind::Or:
  case ReductionKind::Xor:
    return Constant::getNullValue(type);
  case ReductionKind::Product:
    return reduction.isFloat() ? ConstantFP::get(type, 1.0) : ConstantInt::get(type, 1);
  case ReductionKind::And:
    return Constant::getAllOnesValue(type);
  case ReductionKind::Min:
  case ReductionKind::Max: {
    bool max = reduction.kind == ReductionKind::Max;
    if (reduction.isFloat())
      return ConstantFP::getNaN(type); // the minimum of a number and NaN is the number
    unsigned width = type->getIntegerBitWidth();
    if (reduction.isSigned())
      return ConstantInt::get(type, max ? APInt::getSignedMinValue(width)
                                        : APInt::getSignedMaxValue(width));
    return ConstantInt::get(type, max ? APInt::getMinValue(width) : APInt::getMaxValue(width));
  }
  }
  llvm_unreachable("all kinds are covered");
}

template <typename Builder>
static Value *combine(Builder &b, Reduction reduction, Value *x, Value *y) {
  switch (reduction.kind) {
  case ReductionKind::Sum:
    return reduction.isFloat() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  case ReductionKind::Product:
    return reduction.isFloat() ? b.CreateFMul(x, y) : b.CreateMul(x, y);
  case ReductionKind::And:
    return b.CreateAnd(x, y);
  case ReductionKind::Or:
    return b.CreateOr(x, y);
  case ReductionKind::Xor:
    return b.CreateXor(x, y);
  case ReductionKind::Min:
    return b.CreateBinaryIntrinsic(reduction.isFloat()    ? Intrinsic::minnum
                                   : reduction.isSigned() ? Intrinsic::smin
                                                          : Intrinsic::umin,
                                   x, y);
  case ReductionKind::Max:
    return b.CreateBinaryIntrinsic(reduction.isFloat()    ? Intrinsic::maxnum
                                   : reduction.isSigned() ? Intrinsic::smax
                                                          : Intrinsic::umax,
                                   x, y);
  }
  llvm_unreachable("all kinds are covered");
}

void SimdEmitter::LaneFunctions::ballot(SimdEmitter &e, CallInst &call) {
  auto &b = e.b;
  Value *value = e.vector(call.getArgOperand(0));
  if (!value->getType()->getScalarType()->isIntegerTy(1))
    value = b.CreateICmpNE(value, Constant::getNullValue(value->getType()));
  if (!isa<Constant>(value))
    value = b.CreateFreeze(value);
  e.define(call, 0, b.CreateZExt(e.maskBits(b.CreateAnd(value, e.mask)), b.getInt64Ty()));
}

Value *SimdEmitter::LaneFunctions::activeOperand(SimdEmitter &e, CallInst &call,
                                                 Constant *neutral) {
  Value *value = e.vector(call.getArgOperand(0));
  return e.maskIsFull() ? value : e.b.CreateSelect(e.mask, value, e.splat(neutral));
}

void SimdEmitter::LaneFunctions::reduce(SimdEmitter &e, CallInst &call, Reduction reduction) {
  auto &b = e.b;
  Value *value = activeOperand(e, call, neutralElement(reduction, call.getType()));
  // The shape of the tree is the same on every machine.
  for (unsigned width = simdWidth / 2; width; width /= 2) {
    SmallVector<int> low, high;
    for (unsigned i = 0; i != width; ++i) {
      low.push_back(i);
      high.push_back(width + i);
    }
    value = combine(b, reduction, b.CreateShuffleVector(value, low),
                    b.CreateShuffleVector(value, high));
  }
  Value *result = b.CreateExtractElement(value, b.getInt64(0));
  if (e.options.portable && reduction.isFloat() &&
      (reduction.kind == ReductionKind::Min || reduction.kind == ReductionKind::Max)) {
    // Metal does not say what a NaN among the values does.
    Value *given = e.vector(call.getArgOperand(0));
    Value *some = e.anyLane(b.CreateAnd(e.mask, b.CreateFreeze(b.CreateFCmpUNO(given, given))));
    uint32_t site = e.siteOfAny(call, Unpromised::ReductionOfNaN, b.getInt1Ty());
    Value *bits = e.anyBits(some, site, /*ofLane=*/false, b.getInt64(0));
    result = b.CreateSelect(b.CreateAnd(some, b.CreateTrunc(bits, b.getInt1Ty())),
                            ConstantFP::getNaN(call.getType()), result);
  }
  e.define(call, 0, result);
}

void SimdEmitter::LaneFunctions::scan(SimdEmitter &e, CallInst &call, Reduction reduction,
                                      bool inclusive, unsigned width) {
  auto &b = e.b;
  Type *type = call.getType();
  Constant *neutral = neutralElement(reduction, type);
  Value *value = activeOperand(e, call, neutral);
  auto shifted = [&](Value *from, unsigned distance, Constant *fill) {
    SmallVector<int> mask;
    for (unsigned lane = 0; lane != simdWidth; ++lane)
      mask.push_back(lane % width >= distance ? int(lane - distance) : int(simdWidth));
    return b.CreateShuffleVector(from, e.splat(fill), mask);
  };
  for (unsigned distance = 1; distance != width; distance *= 2)
    value = combine(b, reduction, shifted(value, distance, neutral), value);
  if (!inclusive) {
    // The value before the first lane: the neutral element of the operation, and +0 for sums.
    Constant *first = reduction.kind == ReductionKind::Sum ? Constant::getNullValue(type) : neutral;
    value = shifted(value, 1, first);
  }
  e.define(call, 0, value);
}

//===----------------------------------------------------------------------===//
// simdgroup_matrix
//===----------------------------------------------------------------------===//

void SimdEmitter::LaneFunctions::multiplyMatrices(SimdEmitter &e, CallInst &call) {
  e.checkTogether(call);
  auto &b = e.b;
  // The positions of a lane's two elements.
  auto rowOf = [](unsigned lane) { return (lane / 4 & 4) + (lane / 2) % 4; };
  auto columnOf = [](unsigned lane) { return (lane / 4 & 2) * 2 + (lane % 2) * 2; };
  unsigned holder[8][4]; // the lane that has row r, columns 2c and 2c + 1
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    holder[rowOf(lane)][columnOf(lane) / 2] = lane;
  llvm::Value *a = call.getArgOperand(0), *bm = call.getArgOperand(1), *c = call.getArgOperand(2);
  if (e.componentCount(a->getType()) != 2 || e.componentCount(bm->getType()) != 2 ||
      e.componentCount(c->getType()) != 2)
    return e.fail(&call, "a matrix multiply takes two elements a lane");
  Value *left[2] = {e.vector(a, 0), e.vector(a, 1)}, *right[2] = {e.vector(bm, 0), e.vector(bm, 1)};
  // Lanes 0 to 15 hold rows 0 to 3, and the others hold rows 4 to 7, with the same columns. Working
  // on one half at a time lets both halves use the same broadcast rows of B.
  Value *result[2] = {nullptr, nullptr};
  Value *halves[2][2];
  for (unsigned half : {0u, 1u})
    for (unsigned part : {0u, 1u}) {
      SmallVector<int> take;
      for (unsigned lane = 0; lane != 16; ++lane)
        take.push_back(half * 16 + lane);
      halves[half][part] = b.CreateShuffleVector(e.vector(c, part), take);
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
    e.define(call, part, result[part]);
  }
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

ArrayRef<Builtin> SimdEmitter::laneFunctions() {
  using F = LaneFunctions;
  using K = ReductionKind;
  constexpr Tally shuffles{Counters::SimdShuffles, Tally::Per::Simdgroup},
      reductions{Counters::SimdReductions, Tally::Per::Simdgroup},
      multiplies{Counters::SimdgroupMatrixMultiplies, Tally::Per::Simdgroup};
  constexpr auto lanes = Effect::ReadsLanes;
// One row for each type, with an emitter for that type.
#define TM_REDUCTION(NAME, KIND, TYPE, NUMBER)                                                     \
  {"__tm_simd_" NAME TYPE, Spread::Uniform, lanes, F::reduceBy<K::KIND, Number::NUMBER>, reductions}
#define TM_REDUCTIONS(NAME, KIND)                                                                  \
  TM_REDUCTION(NAME, KIND, "_f32", Float), TM_REDUCTION(NAME, KIND, "_i32", Signed),               \
      TM_REDUCTION(NAME, KIND, "_u32", Unsigned)
#define TM_SCAN(NAME, KIND, TYPE, NUMBER, INCLUSIVE, WIDTH)                                        \
  {NAME TYPE, Spread::PerLane, lanes, F::scanBy<K::KIND, Number::NUMBER, INCLUSIVE, WIDTH>,        \
   reductions}
#define TM_SCANS(NAME, KIND, INCLUSIVE, WIDTH)                                                     \
  TM_SCAN(NAME, KIND, "_f32", Float, INCLUSIVE, WIDTH),                                            \
      TM_SCAN(NAME, KIND, "_i32", Signed, INCLUSIVE, WIDTH),                                       \
      TM_SCAN(NAME, KIND, "_u32", Unsigned, INCLUSIVE, WIDTH)
  static const Builtin rows[] = {
      // name, spread, effect, emitter, counter, what can fail
      {"__tm_lane", Spread::LaneNumber, lanes, F::laneNumber},
      {"__tm_simd_shuffle_u32", Spread::Shuffle, lanes, F::shuffle, shuffles, AccessKind::Shuffle},
      {"__tm_simd_shuffle_u64", Spread::Shuffle, lanes, F::shuffle, shuffles, AccessKind::Shuffle},
      {"__tm_simd_move_u32", Spread::Shuffle, lanes, F::shuffle},
      {"__tm_simdgroup_index", Spread::Uniform, Effect::None, F::simdgroupIndex},
      {"__tm_simd_ballot", Spread::Uniform, lanes, F::ballot, reductions},
      {"__tm_simdgroup_mma", Spread::PerLane, lanes, F::multiplyMatrices, multiplies,
       AccessKind::Value},
      TM_REDUCTIONS("sum", Sum),
      TM_REDUCTIONS("product", Product),
      TM_REDUCTIONS("min", Min),
      TM_REDUCTIONS("max", Max),
      TM_REDUCTION("and", And, "_u32", Unsigned),
      TM_REDUCTION("or", Or, "_u32", Unsigned),
      TM_REDUCTION("xor", Xor, "_u32", Unsigned),
      TM_SCANS("__tm_simd_inclusive_sum", Sum, true, simdWidth),
      TM_SCANS("__tm_simd_inclusive_product", Product, true, simdWidth),
      TM_SCANS("__tm_simd_exclusive_sum", Sum, false, simdWidth),
      TM_SCANS("__tm_simd_exclusive_product", Product, false, simdWidth),
      TM_SCANS("__tm_quad_inclusive_sum", Sum, true, 4),
      TM_SCANS("__tm_quad_inclusive_product", Product, true, 4),
      TM_SCANS("__tm_quad_exclusive_sum", Sum, false, 4),
      TM_SCANS("__tm_quad_exclusive_product", Product, false, 4),
  };
#undef TM_REDUCTION
#undef TM_REDUCTIONS
#undef TM_SCAN
#undef TM_SCANS
  return rows;
}

} // namespace triton_metal::engine
