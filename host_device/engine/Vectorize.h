// Turns the prepared function of one thread into a function that runs a SIMD-group. Uniform values
// stay scalars, other values become vectors of 32 lanes, and masks separate lanes that diverge.
#pragma once

#include "host_device/engine/Builtins.h"
#include "host_device/engine/Code.h"
#include "host_device/engine/Linearize.h"
#include "host_device/engine/Shape.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/InstSimplifyFolder.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace triton_metal::engine {

/// The properties of the host that determine which instructions are emitted. Results do not depend
/// on them.
struct HostTraits {
  bool avx512 = false;
};

/// Adds the function `name` of type KernelEntry to the module of `scalar`.
llvm::Expected<llvm::Function *> vectorizeKernel(llvm::Function &scalar, llvm::StringRef name,
                                                 const CodeOptions &options, const HostTraits &host,
                                                 CodeFacts &facts);

/// Replaces the calls of `__tm_engine_shuffle`. The optimiser may have found their lanes by then
/// (LaneOperations.cpp).
bool lowerShuffles(llvm::Function &function, const HostTraits &host);

class SimdEmitter {
public:
  SimdEmitter(llvm::Function &scalar, llvm::StringRef name, const CodeOptions &options,
              const HostTraits &host, CodeFacts &facts, const LaneAnalysis &lanes,
              const Linearization &plan, llvm::LoopInfo &loops);
  llvm::Expected<llvm::Function *> run();

  /// The table's rows (Builtins.h), with the emitters beside them.
  static llvm::ArrayRef<Builtin> laneFunctions();   // LaneOperations.cpp
  static llvm::ArrayRef<Builtin> threadFunctions(); // VectorizeCalls.cpp

private:
  using Builder = llvm::IRBuilder<llvm::InstSimplifyFolder>;
  using Value = llvm::Value;
  using Type = llvm::Type;
  using Instruction = llvm::Instruction;

  /// One scalar component of a thread's value: as a vector of lanes, and as scalars for single
  /// lanes.
  struct Component {
    Value *vector = nullptr;
    llvm::SmallDenseMap<unsigned, Value *, 1> lanes;
  };
  struct Entry {
    llvm::SmallVector<Component, 1> components;
    /// A placeholder before which new code for this value is inserted.
    Instruction *anchor = nullptr;
    /// Whether the value is computed at its definition and not on demand.
    bool eager = false;
    /// The length of the chain of operations that would have to be built for this value.
    unsigned depth = 0;
  };

  //===--------------------------------------------------------------------===//
  // Values (VectorizeValues.cpp)
  //===--------------------------------------------------------------------===//

  Type *mapScalar(Type *type);
  /// The scalar component types of a thread's value, in memory order.
  void componentTypes(Type *type, llvm::SmallVectorImpl<Type *> &out);
  unsigned componentCount(Type *type);
  Type *componentType(Type *type, unsigned component);
  void componentOffsets(Type *type, uint64_t base, llvm::SmallVectorImpl<uint64_t> &out);
  llvm::FixedVectorType *lanesOf(Type *scalar) {
    return llvm::FixedVectorType::get(scalar, simdWidth);
  }
  llvm::Constant *mapConstant(llvm::Constant *constant, unsigned component);
  Entry &entry(Value *value);
  const LaneShape &shape(Value *value) const { return lanes.shape(value); }
  bool isUniform(Value *value) const { return shape(value).isUniform(); }

  /// The component of `value` in all lanes, or in one lane.
  Value *vector(Value *value, unsigned component = 0);
  Value *scalar(Value *value, unsigned component, unsigned lane);
  Value *uniform(Value *value, unsigned component = 0) { return scalar(value, component, 0); }
  Value *splat(Value *value) { return b.CreateVectorSplat(simdWidth, value); }
  static bool isOnDemand(const Instruction &inst);
  /// Whether a number can be added to values of this type: a truth value differs from another's
  /// by one modulo two, but is no number here.
  static bool isNumber(Type *type) {
    return (type->isIntegerTy() && !type->isIntegerTy(1)) || type->isPointerTy();
  }
  /// Whether the value of lane 0 is enough to know that of every lane.
  static bool isTracked(const LaneShape &shape, Type *type, unsigned components) {
    return shape.isUniform() ||
           (shape.isOneClass() && !shape.speculative && isNumber(type) && components == 1);
  }
  void define(Instruction &inst, unsigned component, Value *value);
  /// The condition under which the speculative offsets of the value hold; null if they always hold.
  Value *assumption(Value *value);

  //===--------------------------------------------------------------------===//
  // Operations (VectorizeOperations.cpp)
  //===--------------------------------------------------------------------===//

  using Operand = llvm::function_ref<Value *(Value *, unsigned)>;
  Value *buildOperation(Instruction &inst, unsigned component, bool asVector, Operand operand);
  Value *buildBinary(unsigned opcode, Type *type, Value *left, Value *right, Instruction &inst);
  Value *buildDivision(unsigned opcode, Value *left, Value *right);
  Value *buildCast(llvm::CastInst &cast, unsigned component, bool asVector, Operand operand);
  Value *buildRebundle(Type *from, Type *to, unsigned component, bool asVector,
                       llvm::function_ref<Value *(unsigned)> part);
  Value *buildAddress(llvm::GetElementPtrInst &gep, bool asVector, Operand operand);
  Value *buildIntrinsic(llvm::CallInst &call, unsigned component, bool asVector, Operand operand);
  Value *toFloat(Value *bits);
  Value *fromFloat(Value *number);

  //===--------------------------------------------------------------------===//
  // Control flow (Vectorize.cpp)
  //===--------------------------------------------------------------------===//

  void emitPrologue();
  void emitBlock(const Linearization::BlockPlan &block);
  void emitTerminator(const Linearization::BlockPlan &block);
  void emitEdge(llvm::BasicBlock *from, llvm::BasicBlock *to, Value *edgeMask, bool divergent);
  void jump(unsigned place);
  void emitPhis(llvm::BasicBlock &block);
  void emitInstruction(Instruction &inst);
  void boundDepth(Instruction &inst);
  void repair();
  Value *anyLane(Value *mask);
  Value *allLanes(Value *mask);
  Value *maskBits(Value *mask);
  /// The first or last lane whose bit is set; any lane if no bit is set. LLVM moves this, and the
  /// vector access that uses it, before the test whether a bit is set. An index beyond the last
  /// element would then read outside of the stack.
  static Value *firstLane(llvm::IRBuilderBase &builder, Value *bits);
  static Value *lastLane(llvm::IRBuilderBase &builder, Value *bits);
  llvm::AllocaInst *slot(Type *type, const llvm::Twine &name);
  llvm::BasicBlock *newBlock(const llvm::Twine &name);
  void placeAnchor();
  void fail(Instruction *inst, const llvm::Twine &message);
  /// Whether it is known that all 32 lanes exist and are active.
  bool maskIsFull() const { return currentHasAll && !options.partial; }
  /// Runs `body` for each active lane in turn, in new blocks.
  void forEachActiveLane(llvm::function_ref<void(Value *lane)> body);
  /// Runs `then` if the condition holds, otherwise `otherwise`.
  void branch(Value *condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise);
  void branchRarely(Value *condition, llvm::function_ref<void()> then);
  /// The active lane whose store takes effect last.
  Value *lastActiveLane();

  //===--------------------------------------------------------------------===//
  // Memory (VectorizeMemory.cpp, VectorizePrivate.cpp)
  //===--------------------------------------------------------------------===//

  struct Window {
    unsigned representative = 0;
    int64_t first = 0;     // bytes from the representative's address
    unsigned elements = 0; // of the component's size
    llvm::SmallVector<unsigned, 32> lanes;
  };
  struct AccessPlan {
    llvm::SmallVector<Window, 4> windows;
    bool exact = false; // every element belongs to exactly one lane
  };
  std::optional<AccessPlan> planAccess(const LaneShape &shape, unsigned components, unsigned size);
  void emitLoad(llvm::LoadInst &load);
  void emitStore(llvm::StoreInst &store);
  void emitUniformLoad(llvm::LoadInst &load);
  void loadWindows(const AccessPlan &plan, Value *pointer, Type *element, unsigned components,
                   llvm::ArrayRef<Value *> results, Instruction &inst);
  void storeWindows(const AccessPlan &plan, Value *pointer, Type *element,
                    llvm::ArrayRef<Value *> values, Instruction &inst);
  /// If `rare`, the code is unlikely to run and should be short.
  Value *gather(Type *element, Value *pointers, bool rare = false);
  void scatter(Value *value, Value *pointers, bool rare = false);
  Value *offsetPointers(Value *pointers, uint64_t offset);
  unsigned pieceElements(Type *element);
  llvm::Function *rowsHelper(Type *element, unsigned components, bool isStore);
  llvm::Function *gatherHelper(unsigned bits);
  llvm::Function *scatterHelper(unsigned bits);
  template <typename Access> Access *copyMetadata(Access *access, Instruction &from);

  struct PrivateGroup {
    llvm::AllocaInst *storage = nullptr;
    unsigned unit = 16;
    uint64_t bytes = 0;
  };
  void layOutPrivateMemory();
  PrivateGroup &privateGroup(Value *pointer);
  void emitPrivateLoad(llvm::LoadInst &load);
  void emitPrivateStore(llvm::StoreInst &store);
  Value *privateAddress(PrivateGroup &group, Value *pointer, uint64_t offset, bool asVector);

  //===--------------------------------------------------------------------===//
  // Calls (VectorizeCalls.cpp, VectorizeAtomics.cpp, LaneOperations.cpp)
  //===--------------------------------------------------------------------===//

  void emitCall(llvm::CallInst &call);
  void emitAtomicRMW(llvm::AtomicRMWInst &rmw);
  void emitCompareExchange(llvm::AtomicCmpXchgInst &exchange);
  void emitAtomicStore(llvm::StoreInst &store);
  void emitAtomicLoad(llvm::LoadInst &load);
  /// The emitters of functions that cross lanes.
  struct LaneFunctions;
  void emitThreadgroupBarrier(llvm::CallInst &call);
  void emitSimdgroupBarrier(llvm::CallInst &call);
  void emitLibm(llvm::CallInst &call);
  // LaneFunctions.cpp
  void emitOperand(llvm::CallInst &call);
  void emitResult(llvm::CallInst &call);
  void emitOutOfLine(llvm::CallInst &call, llvm::Function &callee);
  Value *frameSlot(Value *frame, uint64_t offset);
  Value *lanesOfFrame();
  /// The lanes whose access is outside of every constant of the program that the pointer may point
  /// to.
  llvm::Value *outsideConstants(llvm::Value *pointer, uint64_t bytes);
  void emitCheck(llvm::CallInst &call);
  void emitAny(llvm::CallInst &call, bool ofLane);
  /// The site of a call whose result is any value in some cases.
  uint32_t siteOfAny(llvm::CallInst &call, Unpromised reason, Type *type);
  /// Any bits for the lanes of a mask, or one value if `lanes` is a single condition. What is not
  /// asked for is not defined.
  Value *anyBits(Value *lanes, uint32_t site, bool ofLane, Value *salts);
  void emitCountBlock(llvm::CallInst &call);
  void emitCountLines(llvm::CallInst &call);
  void emitCountBanks(llvm::CallInst &call);
  void emitCountBranch(llvm::CallInst &call);
  /// The address of the dynamic counter that operand `index` names.
  llvm::Value *dynamicCounter(llvm::CallInst &call, unsigned index);
  /// The addresses of all lanes, in memory.
  llvm::Value *addressList(llvm::Value *pointer);
  // In VectorizeVisibility.cpp.
  void emitFence(llvm::CallInst &call);
  void emitCoherent(llvm::CallInst &call);
  void emitBarrierFlags(llvm::CallInst &barrier);
  void emitStored(llvm::CallInst &call);
  void emitLoaded(llvm::CallInst &call);
  void emitStaged(llvm::CallInst &call);
  void emitWriter(llvm::CallInst &call);
  /// Calls a function of the runtime with what a load got, if `condition` holds. It may change it.
  void observe(llvm::CallInst &call, Value *condition, llvm::StringRef function, uint32_t site,
               uint32_t flags);
  void emitWaits(llvm::CallInst &call);
  // In VectorizeChecks.cpp.
  void emitAccess(llvm::CallInst &call);
  void emitFail(llvm::CallInst &call);
  void emitStep(llvm::CallInst &call);
  void emitTogether(llvm::CallInst &call);
  /// Fails if a thread of the SIMD-group does not take part in the call.
  void checkTogether(llvm::CallInst &call);
  void emitOrder(llvm::CallInst &barrier, bool isThreadgroup);
  Value *isTracked(uint32_t site);
  uint32_t patternOf(Value *pointer, uint64_t bytes);
  void emitPosition(llvm::CallInst &call);
  void emitBuffer(llvm::CallInst &call);
  void emitThreadgroupArgument(llvm::CallInst &call);
  void emitThreadgroupVariable(llvm::CallInst &call);
  Value *launchField(Type *type, uint64_t offset, const llvm::Twine &name);
  Value *groupField(Type *type, uint64_t offset, const llvm::Twine &name);
  Value *vectorCallArgument(Value *value, Type *type);
  void emitFailure(Value *badLanes, Failure failure, uint32_t site, Value *addresses);
  llvm::Constant *laneNumbers();

  llvm::Function &source;
  llvm::Module &module;
  llvm::LLVMContext &context;
  const llvm::DataLayout &layout;
  const CodeOptions &options;
  const HostTraits &host;
  CodeFacts &facts;
  const LaneAnalysis &lanes;
  const Linearization &plan;
  llvm::LoopInfo &loops;

  llvm::Function *result = nullptr;
  Builder b;
  Value *launch = nullptr, *group = nullptr, *simdgroup = nullptr;
  llvm::BasicBlock *allocas = nullptr, *bodyStart = nullptr, *bodyEnd = nullptr;
  Value *existing = nullptr, *mask = nullptr;
  bool currentHasAll = true;
  /// Counts the iterations of loops.
  llvm::AllocaInst *steps = nullptr;
  /// Whether the code that is being emitted only runs if all lanes are active.
  bool allActive = false;
  Instruction *anchor = nullptr;
  unsigned anchorUses = 0;
  llvm::SmallVector<Instruction *> anchors;
  llvm::DenseMap<Value *, Entry> entries;
  llvm::DenseMap<Value *, Value *> assumptions;
  std::vector<llvm::BasicBlock *> blockEntries;
  std::vector<llvm::AllocaInst *> pendingSlots;
  llvm::SmallVector<llvm::AllocaInst *> slots;
  /// The slots of phis: one for each component, or one for each class of lanes.
  llvm::DenseMap<llvm::PHINode *, llvm::SmallVector<llvm::AllocaInst *, 1>> phiSlots;
  llvm::DenseMap<std::pair<const void *, uint64_t>, Value *> fields;
  llvm::DenseMap<llvm::AllocaInst *, std::pair<unsigned, uint64_t>> privatePlaces; // group, offset
  std::vector<PrivateGroup> privateGroups;
  llvm::DenseMap<uint32_t, std::pair<uint64_t, uint64_t>> threadgroupPlaces;
  uint64_t threadgroupEnd = 0;
  std::string error;
};

/// The lowest virtual address of private memory. It is not zero, so that no valid address is null.
inline constexpr uint64_t privateBase = 0x10000;

} // namespace triton_metal::engine
