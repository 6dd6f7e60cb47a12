// Calls: positions, buffers, barriers, the C library, counters and checks.
#include "host_device/engine/Prepare.h"
#include "host_device/engine/Vectorize.h"
#include "host_device/msl/AnyValues.h"
#include "host_device/msl/CheckValues.h"
#include "host_device/msl/LoopExits.h"
#include "host_device/msl/OutOfLine.h"
#include "host_device/msl/Variables.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace triton_metal::engine {

static uint64_t constantArgument(CallInst &call, unsigned index) {
  return cast<ConstantInt>(call.getArgOperand(index))->getZExtValue();
}

static uint32_t siteOf(Instruction &inst) {
  if (MDNode *node = inst.getMetadata("tm.site"))
    return mdconst::extract<ConstantInt>(node->getOperand(0))->getZExtValue();
  return ~0u;
}

void SimdEmitter::emitCall(CallInst &call) {
  Function *callee = call.getCalledFunction();
  if (!callee)
    return fail(&call, "calls through pointers are not supported");
  if (auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    if (!intrinsic->isAssumeLikeIntrinsic())
      fail(&call, Twine("the device has no '") + callee->getName() + "' of this form");
    return;
  }
  if (isOutOfLine(*callee))
    return emitOutOfLine(call, *callee);
  const Builtin *builtin = builtinCalledBy(&call);
  if (!builtin)
    return fail(&call, Twine("the device has no function '") + callee->getName() + "'");
  builtin->emit(*this, call);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

/// Makes an emitter of a member function.
template <auto member> static void by(SimdEmitter &emitter, CallInst &call) {
  (emitter.*member)(call);
}

/// A function of the C library. The emitter derives it from the name.
#define TM_C_LIBRARY(NAME)                                                                         \
  {                                                                                                \
    .name = "__tm_libm_" NAME "_f32", .spread = Spread::Elementwise,                               \
    .emit = by<&SimdEmitter::emitLibm>, .tally = Tally {                                           \
      Counters::MathCalls, Tally::Per::Lane                                                        \
    }                                                                                              \
  }

/// What msl/MarkMath.cpp puts at the beginning of an elementary function. It has no code.
#define TM_MATH_MARK(NAME, COUNTER)                                                                \
  {.name = "__tm_math_" NAME,                                                                      \
   .effect = Effect::Counts,                                                                       \
   .emit = [](SimdEmitter &, CallInst &) {},                                                       \
   .tally = Tally{Counters::COUNTER, Tally::Per::Lane},                                            \
   .isInternal = true}

ArrayRef<Builtin> SimdEmitter::threadFunctions() {
  static const Builtin rows[] = {
      {.name = "__tm_threadgroup_barrier",
       .effect = Effect::OrdersMemory,
       .emit = by<&SimdEmitter::emitThreadgroupBarrier>,
       .tally = Tally{Counters::ThreadgroupBarriers, Tally::Per::Threadgroup},
       .site = AccessKind::Barrier},
      {.name = "__tm_simdgroup_barrier",
       .effect = Effect::OrdersMemory,
       .emit = by<&SimdEmitter::emitSimdgroupBarrier>,
       .tally = Tally{Counters::SimdgroupBarriers, Tally::Per::Simdgroup},
       .site = AccessKind::Barrier},
      {.name = "__tm_fence", .effect = Effect::OrdersMemory, .emit = by<&SimdEmitter::emitFence>},
      {.name = stepEndName, .effect = Effect::Counts, .emit = [](SimdEmitter &, CallInst &) {}},
      {.name = coherentName, .spread = Spread::Elementwise, .emit = by<&SimdEmitter::emitCoherent>},
      {.name = threadgroupAllocName,
       .spread = Spread::Uniform,
       .emit = by<&SimdEmitter::emitThreadgroupVariable>},
      TM_C_LIBRARY("acos"),
      TM_C_LIBRARY("acosh"),
      TM_C_LIBRARY("asin"),
      TM_C_LIBRARY("asinh"),
      TM_C_LIBRARY("atan"),
      TM_C_LIBRARY("atan2"),
      TM_C_LIBRARY("atanh"),
      TM_C_LIBRARY("cosh"),
      TM_C_LIBRARY("fmod"),
      TM_C_LIBRARY("nextafter"),
      TM_C_LIBRARY("pow"),
      TM_C_LIBRARY("sinh"),
      {.name = positionName,
       .spread = Spread::Position,
       .emit = by<&SimdEmitter::emitPosition>,
       .isInternal = true},
      {.name = bufferName,
       .spread = Spread::Uniform,
       .emit = by<&SimdEmitter::emitBuffer>,
       .isInternal = true},
      {.name = threadgroupArgumentName,
       .spread = Spread::Uniform,
       .emit = by<&SimdEmitter::emitThreadgroupArgument>,
       .isInternal = true},
      {.name = operandName, .emit = by<&SimdEmitter::emitOperand>, .isInternal = true},
      {.name = resultName,
       .effect = Effect::Counts,
       .emit = by<&SimdEmitter::emitResult>,
       .isInternal = true},
      {.name = countBlockName,
       .effect = Effect::Counts,
       .emit = by<&SimdEmitter::emitCountBlock>,
       .isInternal = true},
      {.name = countLinesName,
       .effect = Effect::Counts,
       .emit = by<&SimdEmitter::emitCountLines>,
       .isInternal = true},
      {.name = countBanksName,
       .effect = Effect::Counts,
       .emit = by<&SimdEmitter::emitCountBanks>,
       .isInternal = true},
      {.name = countBranchName,
       .effect = Effect::Counts,
       .emit = by<&SimdEmitter::emitCountBranch>,
       .isInternal = true},
      TM_MATH_MARK("fast", MathFast),
      TM_MATH_MARK("precise", MathPrecise),
      TM_MATH_MARK("default", MathDefault),
      // Products are counted where they are computed.
      {.name = "__tm_math_product",
       .effect = Effect::Counts,
       .emit = [](SimdEmitter &, CallInst &) {},
       .isInternal = true},
      {.name = anyName,
       .spread = Spread::Elementwise,
       .emit = [](SimdEmitter &e, CallInst &call) { e.emitAny(call, false); },
       .isInternal = true},
      {.name = anyOfLaneName,
       .emit = [](SimdEmitter &e, CallInst &call) { e.emitAny(call, true); },
       .isInternal = true},
      {.name = directionName,
       .spread = Spread::Uniform,
       .emit =
           [](SimdEmitter &e, CallInst &call) {
             e.define(call, 0,
                      e.launchField(e.b.getInt32Ty(), offsetof(LaunchState, fastDirection),
                                    "fast_direction"));
           },
       .isInternal = true},
      {.name = checkName,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitCheck>,
       .isInternal = true},
      {.name = storedName,
       .effect = Effect::Observes,
       .emit = by<&SimdEmitter::emitStored>,
       .isInternal = true},
      {.name = loadedName,
       .spread = Spread::Elementwise,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitLoaded>,
       .isInternal = true},
      {.name = stagedName,
       .spread = Spread::Elementwise,
       .effect = Effect::Observes,
       .emit = by<&SimdEmitter::emitStaged>,
       .isInternal = true},
      {.name = writerName,
       .spread = Spread::Uniform,
       .emit = by<&SimdEmitter::emitWriter>,
       .isInternal = true},
      {.name = atomicName,
       .effect = Effect::Observes,
       .emit = by<&SimdEmitter::emitStored>,
       .isInternal = true},
      {.name = accessName,
       .effect = Effect::Observes,
       .emit = by<&SimdEmitter::emitAccess>,
       .isInternal = true},
      {.name = checkValueName,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitFail>,
       .isInternal = true},
      {.name = failName,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitFail>,
       .isInternal = true},
      {.name = stepName,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitStep>,
       .isInternal = true},
      {.name = togetherName,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitTogether>,
       .site = AccessKind::Value,
       .isInternal = true},
      {.name = waitsName,
       .effect = Effect::Checks,
       .emit = by<&SimdEmitter::emitWaits>,
       .isInternal = true},
  };
  return rows;
}

#undef TM_C_LIBRARY

//===----------------------------------------------------------------------===//
// Where a thread is, and what it was given
//===----------------------------------------------------------------------===//

Constant *SimdEmitter::laneNumbers() {
  SmallVector<uint32_t> numbers;
  for (unsigned lane = 0; lane != simdWidth; ++lane)
    numbers.push_back(lane);
  return ConstantDataVector::get(context, numbers);
}

void SimdEmitter::emitPosition(CallInst &call) {
  auto which = Position(constantArgument(call, 0));
  unsigned dimension = constantArgument(call, 1);
  auto *i32 = b.getInt32Ty();
  auto groupWord = [&](size_t offset, const char *name) {
    return groupField(i32, offset + 4 * dimension, name);
  };
  auto launchWord = [&](size_t offset, const char *name) {
    return launchField(i32, offset + 4 * dimension, name);
  };
  auto words = [&](size_t offset, unsigned d) {
    return groupField(i32, offset + 4 * d, "threads");
  };
  switch (which) {
  case Position::ThreadsPerGrid:
    return define(call, 0, launchWord(offsetof(LaunchState, gridThreads), "grid_threads"));
  case Position::ThreadsPerThreadgroup:
    return define(call, 0, groupWord(offsetof(GroupState, threads), "threads"));
  case Position::DispatchThreadsPerThreadgroup:
    return define(call, 0, launchWord(offsetof(LaunchState, dispatchThreads), "dispatch_threads"));
  case Position::ThreadgroupPositionInGrid:
    return define(call, 0, groupWord(offsetof(GroupState, position), "group_position"));
  case Position::ThreadgroupsPerGrid:
    return define(call, 0, launchWord(offsetof(LaunchState, threadgroups), "threadgroups"));
  case Position::SimdgroupIndexInThreadgroup:
    return define(call, 0, simdgroup);
  case Position::SimdgroupsPerThreadgroup:
    return define(call, 0, groupField(i32, offsetof(GroupState, simdgroups), "simdgroups"));
  case Position::DispatchSimdgroupsPerThreadgroup: {
    Value *total = b.getInt32(1);
    for (unsigned d = 0; d != 3; ++d)
      total = b.CreateMul(total, launchField(i32, offsetof(LaunchState, dispatchThreads) + 4 * d,
                                             "dispatch_threads"));
    return define(call, 0, b.CreateLShr(b.CreateAdd(total, b.getInt32(31)), 5));
  }
  case Position::ThreadIndexInSimdgroup:
    define(call, 0, laneNumbers());
    return define(call, 0, b.getInt32(0));
  case Position::ThreadIndexInThreadgroup: {
    Value *first = b.CreateShl(simdgroup, 5);
    define(call, 0, first);
    return define(call, 0, b.CreateAdd(splat(first), laneNumbers()));
  }
  case Position::ThreadPositionInThreadgroup:
  case Position::ThreadPositionInGrid: {
    Value *first = b.CreateShl(simdgroup, 5);
    Value *base = nullptr;
    if (which == Position::ThreadPositionInGrid)
      base = b.CreateMul(groupWord(offsetof(GroupState, position), "group_position"),
                         launchWord(offsetof(LaunchState, dispatchThreads), "dispatch_threads"));
    Value *width = words(offsetof(GroupState, threads), 0),
          *height = words(offsetof(GroupState, threads), 1);
    if (!options.scatteredPositions) {
      // A SIMD-group is a row along x.
      Value *row = dimension ? buildDivision(Instruction::UDiv, first, width) : nullptr;
      Value *at = dimension == 0   ? buildDivision(Instruction::URem, first, width)
                  : dimension == 1 ? buildDivision(Instruction::URem, row, height)
                                   : buildDivision(Instruction::UDiv, row, height);
      if (base)
        at = b.CreateAdd(base, at);
      define(call, 0, at);
      if (dimension == 0)
        define(call, 0, b.CreateAdd(splat(at), laneNumbers()));
      return;
    }
    Value *index = b.CreateAdd(splat(first), laneNumbers());
    Value *row = dimension ? buildDivision(Instruction::UDiv, index, splat(width)) : nullptr;
    Value *at = dimension == 0   ? buildDivision(Instruction::URem, index, splat(width))
                : dimension == 1 ? buildDivision(Instruction::URem, row, splat(height))
                                 : buildDivision(Instruction::UDiv, row, splat(height));
    return define(call, 0, base ? b.CreateAdd(at, splat(base)) : at);
  }
  default:
    fail(&call, "a position attribute is not known to the device");
  }
}

void SimdEmitter::emitBuffer(CallInst &call) {
  uint64_t index = constantArgument(call, 0);
  define(call, 0,
         launchField(b.getPtrTy(), offsetof(LaunchState, buffers) + 8 * index,
                     "buffer" + Twine(index)));
}

void SimdEmitter::emitThreadgroupVariable(CallInst &call) {
  Value *memory =
      groupField(b.getPtrTy(), offsetof(GroupState, threadgroupMemory), "threadgroup_memory");
  uint64_t place = threadgroupPlaces[constantArgument(call, 0)].first;
  define(call, 0, b.CreatePtrAdd(memory, b.getInt64(place)));
}

void SimdEmitter::emitThreadgroupArgument(CallInst &call) {
  Value *memory =
      groupField(b.getPtrTy(), offsetof(GroupState, threadgroupMemory), "threadgroup_memory");
  Value *offset = launchField(
      b.getInt32Ty(), offsetof(LaunchState, argumentOffsets) + 4 * constantArgument(call, 0),
      "argument_offset");
  define(call, 0, b.CreatePtrAdd(memory, b.CreateZExt(offset, b.getInt64Ty())));
}

//===----------------------------------------------------------------------===//
// Barriers, failures
//===----------------------------------------------------------------------===//

void SimdEmitter::emitFailure(Value *badLanes, Failure failure, uint32_t site, Value *addresses) {
  branchRarely(anyLane(badLanes), [&] {
    auto *i32 = b.getInt32Ty();
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_fail",
        FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i32, i32, b.getInt64Ty(), i32}, false));
    cast<Function>(callee.getCallee())->setDoesNotReturn();
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    cast<Function>(callee.getCallee())->addFnAttr(Attribute::Cold);
    Value *lane = firstLane(b, maskBits(badLanes));
    Value *address = b.getInt64(0);
    if (addresses) {
      AllocaInst *list = slot(addresses->getType(), "addresses");
      b.CreateStore(addresses, list);
      address = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), list, lane));
    }
    b.CreateCall(callee, {group, b.getInt32(unsigned(failure)), b.getInt32(site), address, lane});
  });
}

void SimdEmitter::emitThreadgroupBarrier(CallInst &call) {
  facts.usesThreadgroupBarrier = true;
  uint32_t site = siteOf(call);
  // A SIMD-group waits as a whole, as Apple's do: some of its lanes are enough, unless a check
  // asks.
  if (!currentHasAll && (options.checks.divergence || options.portable))
    emitFailure(b.CreateXor(mask, existing), Failure::DivergentBarrier, site, nullptr);
  auto callee = module.getOrInsertFunction(
      "__tm_runtime_barrier",
      FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}, false));
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  if (options.portable)
    emitBarrierFlags(call);
  if (options.checks.races)
    emitOrder(call, /*isThreadgroup=*/true);
  b.CreateCall(callee, {group, b.getInt32(site)});
}

void SimdEmitter::emitSimdgroupBarrier(CallInst &call) {
  checkTogether(call);
  if (options.checks.races)
    emitOrder(call, /*isThreadgroup=*/false);
  // Lanes run in lockstep, so only the order of memory accesses matters.
  b.CreateFence(AtomicOrdering::AcquireRelease, SyncScope::SingleThread);
}

//===----------------------------------------------------------------------===//
// The C library
//===----------------------------------------------------------------------===//

void SimdEmitter::emitLibm(CallInst &call) {
  // These functions are rare and are called for each lane.
  Function *callee = call.getCalledFunction();
  SmallVector<Type *> parameters;
  for (Use &argument : call.args()) {
    if (componentCount(argument->getType()) != 1)
      return fail(&call, Twine("'") + callee->getName() + "' takes scalars");
    parameters.push_back(componentType(argument->getType(), 0));
  }
  Type *type = componentType(call.getType(), 0);
  // __tm_libm_erf_f32 is the C library's erff.
  StringRef name = callee->getName();
  name.consume_front("__tm_libm_");
  bool isFloat = name.consume_back("_f32");
  auto function = module.getOrInsertFunction((name + (isFloat ? "f" : "")).str(),
                                             FunctionType::get(type, parameters, false));
  if (!isa<Function>(function.getCallee()))
    return fail(&call, Twine("'") + callee->getName() + "' has another type elsewhere");
  cast<Function>(function.getCallee())->setDoesNotThrow();
  if (isUniform(&call)) {
    SmallVector<Value *> arguments;
    for (Use &argument : call.args())
      arguments.push_back(uniform(argument));
    return define(call, 0, b.CreateCall(function, arguments));
  }
  SmallVector<AllocaInst *> lists;
  for (Use &argument : call.args()) {
    lists.push_back(slot(lanesOf(componentType(argument->getType(), 0)), "argument"));
    b.CreateStore(vector(argument), lists.back());
  }
  AllocaInst *results = slot(lanesOf(type), "result");
  b.CreateStore(Constant::getNullValue(lanesOf(type)), results);
  forEachActiveLane([&](Value *lane) {
    SmallVector<Value *> arguments;
    for (auto [list, parameter] : zip(lists, parameters))
      arguments.push_back(b.CreateLoad(parameter, b.CreateGEP(parameter, list, lane)));
    b.CreateStore(b.CreateCall(function, arguments), b.CreateGEP(type, results, lane));
  });
  define(call, 0, b.CreateLoad(lanesOf(type), results));
}

//===----------------------------------------------------------------------===//
// Counters and checks
//===----------------------------------------------------------------------===//

void SimdEmitter::emitCountBlock(CallInst &call) {
  uint64_t block = constantArgument(call, 0);
  Value *counts = groupField(b.getPtrTy(), offsetof(GroupState, counts), "counts");
  Value *active =
      b.CreateZExt(b.CreateUnaryIntrinsic(Intrinsic::ctpop, maskBits(mask)), b.getInt64Ty());
  auto add = [&](uint64_t word, Value *amount) {
    Value *at = b.CreatePtrAdd(counts, b.getInt64(word * 8));
    b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), at), amount), at);
  };
  add(3 * block, active);
  add(3 * block + 1, b.getInt64(1));
  if (!facts.blocks[block].threadgroup.empty())
    add(3 * block + 2, b.CreateZExt(b.CreateICmpEQ(simdgroup, b.getInt32(0)), b.getInt64Ty()));
}

llvm::Value *SimdEmitter::dynamicCounter(CallInst &call, unsigned index) {
  Value *counts = groupField(b.getPtrTy(), offsetof(GroupState, counts), "counts");
  return b.CreatePtrAdd(counts,
                        b.getInt64(8 * (3 * facts.blocks.size() + constantArgument(call, index))));
}

llvm::Value *SimdEmitter::addressList(llvm::Value *pointer) {
  auto *numbers = lanesOf(b.getInt64Ty());
  AllocaInst *list = slot(numbers, "addresses");
  b.CreateStore(b.CreatePtrToInt(vector(pointer), numbers), list);
  return list;
}

void SimdEmitter::emitCountLines(CallInst &call) {
  llvm::Value *pointer = call.getArgOperand(0);
  auto *i32 = b.getInt32Ty();
  auto callee = module.getOrInsertFunction(
      "__tm_runtime_count_lines", FunctionType::get(b.getVoidTy(),
                                                    {b.getPtrTy(), b.getPtrTy(), i32, b.getPtrTy(),
                                                     b.getPtrTy(), i32, i32, i32, i32, i32},
                                                    false));
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  b.CreateCall(callee, {launch, group, simdgroup, dynamicCounter(call, 2), addressList(pointer),
                        maskBits(mask), b.getInt32(constantArgument(call, 1)),
                        b.getInt32(bufferOf(pointer)), b.getInt32(constantArgument(call, 3)),
                        b.getInt32(constantArgument(call, 4))});
}

void SimdEmitter::emitCountBanks(CallInst &call) {
  auto *i32 = b.getInt32Ty();
  auto callee = module.getOrInsertFunction(
      "__tm_runtime_count_banks",
      FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), i32, i32}, false));
  cast<Function>(callee.getCallee())->setDoesNotThrow();
  b.CreateCall(callee, {dynamicCounter(call, 2), addressList(call.getArgOperand(0)), maskBits(mask),
                        b.getInt32(constantArgument(call, 1))});
}

void SimdEmitter::emitCountBranch(CallInst &call) {
  Value *condition = vector(call.getArgOperand(0));
  Value *number = b.CreateBinaryIntrinsic(Intrinsic::cttz, maskBits(mask), b.getFalse());
  Value *lane = b.CreateAnd(number, b.getInt32(simdWidth - 1));
  Value *differs =
      b.CreateAnd(b.CreateICmpNE(condition, splat(b.CreateExtractElement(condition, lane))), mask);
  Value *at = dynamicCounter(call, 1);
  Value *amount = b.CreateZExt(anyLane(differs), b.getInt64Ty());
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), at), amount), at);
}

llvm::Value *SimdEmitter::outsideConstants(llvm::Value *pointer, uint64_t bytes) {
  SmallVector<const llvm::Value *, 4> objects;
  getUnderlyingObjects(pointer, objects, nullptr, 0);
  Value *outside = mask;
  auto *numbers = lanesOf(b.getInt64Ty());
  for (const llvm::Value *object : objects) {
    auto *constant = dyn_cast<GlobalVariable>(object);
    uint64_t size = constant ? sizeOfVariable(layout, constant).value_or(0) : 0;
    if (size < bytes)
      continue;
    Value *start =
        b.CreatePtrToInt(mapConstant(const_cast<GlobalVariable *>(constant), 0), b.getInt64Ty());
    Value *offset = b.CreateSub(b.CreatePtrToInt(vector(pointer), numbers), splat(start));
    Value *beyond = b.CreateICmpUGT(offset, ConstantInt::get(numbers, size - bytes));
    outside = b.CreateAnd(outside, b.CreateFreeze(beyond));
  }
  return outside;
}

void SimdEmitter::emitCheck(CallInst &call) {
  llvm::Value *pointer = call.getArgOperand(0);
  uint64_t bytes = constantArgument(call, 1);
  uint32_t site = constantArgument(call, 2);
  uint64_t alignment = constantArgument(call, 3);
  const Site &where = facts.sites[site];
  auto *i64 = b.getInt64Ty();
  auto *numbers = lanesOf(i64);
  auto asNumber = [&](Value *address) {
    if (address->getType()->getScalarType()->isPointerTy())
      return b.CreatePtrToInt(
          address, address->getType()->isVectorTy() ? static_cast<Type *>(numbers) : i64);
    return address;
  };
  // The memory that the pointer may point into; null if only the runtime knows.
  Value *start = nullptr, *length = nullptr, *forbidden = nullptr;
  // The pointer may point to constants of the program, among other objects. Only these lanes are
  // left for the runtime.
  Value *unknown = mask;
  auto *constant = dyn_cast<GlobalVariable>(getUnderlyingObject(pointer, 0));
  bool isOneVariable = constant || (where.space == AddressSpace::Thread && arrayOf(pointer));
  if (!isOneVariable)
    facts.sites[site].variableBytes = 0; // one of several by now
  if (constant) {
    start = asNumber(mapConstant(constant, 0));
    length = b.getInt64(*sizeOfVariable(layout, constant));
  } else if (where.space == AddressSpace::Thread) {
    if (AllocaInst *array = arrayOf(pointer)) {
      start = b.getInt64(privateBase + privatePlaces[array].second);
      length = b.getInt64(*sizeOfVariable(layout, array));
    } else { // one of several by now
      start = b.getInt64(privateBase);
      length = b.getInt64(privateGroup(pointer).bytes);
    }
  } else if (where.space == AddressSpace::Threadgroup) {
    Value *memory = b.CreatePtrToInt(
        groupField(b.getPtrTy(), offsetof(GroupState, threadgroupMemory), "threadgroup_memory"),
        i64);
    auto *object = dyn_cast<CallInst>(getUnderlyingObject(pointer, 0));
    if (object && isCallOf(object, threadgroupAllocName)) {
      auto [offset, size] = threadgroupPlaces[constantArgument(*object, 0)];
      start = b.CreateAdd(memory, b.getInt64(offset));
      length = b.getInt64(size);
    } else if (object && isCallOf(object, threadgroupArgumentName)) {
      uint64_t index = constantArgument(*object, 0);
      Value *offset = launchField(
          b.getInt32Ty(), offsetof(LaunchState, argumentOffsets) + 4 * index, "argument_offset");
      start = b.CreateAdd(memory, b.CreateZExt(offset, i64));
      length =
          b.CreateZExt(launchField(b.getInt32Ty(), offsetof(LaunchState, argumentBytes) + 4 * index,
                                   "argument_bytes"),
                       i64);
    } else {
      start = memory;
      length = b.getInt64(maxThreadgroupMemory);
    }
  } else if (where.buffer >= 0) {
    start = b.CreatePtrToInt(launchField(b.getPtrTy(),
                                         offsetof(LaunchState, bufferStarts) + 8 * where.buffer,
                                         "buffer_start"),
                             i64);
    length =
        launchField(i64, offsetof(LaunchState, bufferBytes) + 8 * where.buffer, "buffer_bytes");
    if (where.kind != AccessKind::Load)
      forbidden = b.CreateICmpEQ(launchField(b.getInt8Ty(),
                                             offsetof(LaunchState, bufferWritable) + where.buffer,
                                             "writable"),
                                 b.getInt8(0));
  }
  // A quick test that never accepts an invalid access. If it fails, the runtime checks each lane.
  const LaneShape &s = shape(pointer);
  Value *suspicious = forbidden;
  auto suspect = [&](Value *condition) {
    suspicious = suspicious ? b.CreateOr(suspicious, condition) : condition;
  };
  if (!start) {
    unknown = outsideConstants(pointer, bytes);
    suspect(unknown == mask ? b.getTrue() : anyLane(unknown));
  } else if (s.classes() <= 4 && !s.speculative) {
    for (unsigned rep = 0; rep != simdWidth; ++rep) {
      if (s.representative[rep] != rep)
        continue;
      int64_t low = 0, high = 0;
      bool crooked = false;
      for (unsigned lane = 0; lane != simdWidth; ++lane)
        if (s.representative[lane] == rep) {
          low = std::min(low, s.offset[lane]);
          high = std::max(high, s.offset[lane]);
          crooked |= s.offset[lane] % int64_t(alignment) != 0;
        }
      Value *first = b.CreateAdd(asNumber(scalar(pointer, 0, rep)), b.getInt64(low));
      uint64_t span = high - low + bytes;
      suspect(b.CreateICmpULT(length, b.getInt64(span)));
      suspect(b.CreateICmpUGT(b.CreateSub(first, start), b.CreateSub(length, b.getInt64(span))));
      if (alignment > 1)
        suspect(crooked
                    ? b.getTrue()
                    : b.CreateICmpNE(b.CreateAnd(first, b.getInt64(alignment - 1)), b.getInt64(0)));
    }
  } else {
    Value *address = asNumber(vector(pointer));
    suspect(b.CreateICmpULT(length, b.getInt64(bytes)));
    Value *bad = b.CreateICmpUGT(b.CreateSub(address, splat(start)),
                                 splat(b.CreateSub(length, b.getInt64(bytes))));
    if (alignment > 1)
      bad = b.CreateOr(
          bad, b.CreateICmpNE(b.CreateAnd(address, ConstantInt::get(numbers, alignment - 1)),
                              Constant::getNullValue(numbers)));
    suspect(anyLane(b.CreateAnd(mask, b.CreateFreeze(bad))));
  }
  if (!isa<Constant>(suspicious))
    suspicious = b.CreateFreeze(suspicious);
  branchRarely(suspicious, [&] {
    auto *i32 = b.getInt32Ty();
    auto *pointerType = b.getPtrTy();
    auto callee = module.getOrInsertFunction(
        "__tm_runtime_check",
        FunctionType::get(
            b.getVoidTy(),
            {pointerType, pointerType, pointerType, i32, i32, i64, i64, i32, i32, i32}, false));
    cast<Function>(callee.getCallee())->setDoesNotThrow();
    cast<Function>(callee.getCallee())->addFnAttr(Attribute::Cold);
    AllocaInst *list = slot(numbers, "addresses");
    b.CreateStore(asNumber(vector(pointer)), list);
    b.CreateCall(
        callee,
        {launch, group, list, maskBits(unknown), b.getInt32(site), start ? start : b.getInt64(0),
         start ? length : b.getInt64(0), b.getInt32(bytes), b.getInt32(alignment),
         b.getInt32((start ? 0 : 1) | (isOneVariable ? 4 : 0) |
                    (where.kind != AccessKind::Load && where.space != AddressSpace::Thread &&
                             where.space != AddressSpace::Threadgroup
                         ? 2
                         : 0))});
  });
}

} // namespace triton_metal::engine
