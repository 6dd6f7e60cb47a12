#include "host_device/msl/LoopExits.h"
#include "host_device/msl/Marks.h"
#include "host_device/msl/Stdlib.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace triton_metal {

namespace {

constexpr StringLiteral loopName = "__tm_loop", leaveName = "__tm_leave";

/// The function that an instruction calls, or null.
Function *calleeOf(Instruction &inst) {
  auto *call = dyn_cast<CallBase>(&inst);
  return call ? call->getCalledFunction() : nullptr;
}

CallInst *callOf(Instruction &inst, StringRef name) {
  Function *callee = calleeOf(inst);
  return callee && callee->getName() == name ? dyn_cast<CallInst>(&inst) : nullptr;
}

uint64_t numberOf(const CallInst &call, unsigned argument) {
  return cast<ConstantInt>(call.getArgOperand(argument))->getZExtValue();
}

/// The functions in which threads of a SIMD-group see each other's values.
DenseSet<const Function *> findExchanges(Module &module) {
  DenseSet<const Function *> found;
  SmallVector<Function *> open;
  for (Function &function : module)
    if (StringRef name = function.getName();
        function.isDeclaration() && function.isConvergent() &&
        (name.starts_with("__tm_simd_") || name.starts_with("__tm_quad_")))
      open.push_back(&function);
  while (!open.empty()) {
    Function *function = open.pop_back_val();
    if (!found.insert(function).second)
      continue;
    for (User *user : function->users())
      if (auto *call = dyn_cast<CallBase>(user))
        open.push_back(call->getFunction());
  }
  return found;
}

/// Whether the standard library has the function. Its conditions are the same for all threads that
/// exchange values.
bool isOfStdlib(const Function &function) {
  const DISubprogram *program = function.getSubprogram();
  return program && isStdlibFile(filePathOf(*program));
}

/// The functions in which some threads may exchange values and others not.
class DividingFunctions {
public:
  explicit DividingFunctions(const DenseSet<const Function *> &exchanges) : exchanges(exchanges) {}

  bool contains(Function &function) {
    if (function.isDeclaration() || !exchanges.contains(&function) || isOfStdlib(function))
      return false;
    auto [found, isNew] = known.try_emplace(&function, true); // true for recursion, too
    if (!isNew)
      return found->second;
    DominatorTree dominators(function);
    LoopInfo info(dominators);
    SmallVector<BasicBlock *> ends;
    for (BasicBlock &block : function)
      if (isa<ReturnInst>(block.getTerminator()))
        ends.push_back(&block);
    bool divides = any_of(instructions(function), [&](Instruction &inst) {
      Function *callee = calleeOf(inst);
      if (!callee || !exchanges.contains(callee))
        return false;
      if (contains(*callee))
        return true;
      // What divides threads in a loop is a matter of that loop.
      BasicBlock *block = inst.getParent();
      if (Loop *loop = info.getLoopFor(block))
        block = loop->getOutermostLoop()->getHeader();
      return any_of(ends, [&](BasicBlock *end) { return !dominators.dominates(block, end); });
    });
    return known[&function] = divides;
  }

private:
  const DenseSet<const Function *> &exchanges;
  DenseMap<const Function *, bool> known;
};

class FunctionExits {
public:
  FunctionExits(Function &function, const DenseSet<const Function *> &exchanges,
                DividingFunctions &dividing)
      : function(function), exchanges(exchanges), dividing(dividing) {}

  void run() {
    for (Instruction &inst : instructions(function)) {
      if (CallInst *call = callOf(inst, loopName))
        loops[numberOf(*call, 0)] = call;
      else if (CallInst *call = callOf(inst, leaveName))
        leaves.push_back(call);
    }
    analyze();
    SmallVector<BasicBlock *> divided;
    for (Loop *loop : info.getLoopsInPreorder())
      if (dividesExchange(*loop))
        divided.push_back(loop->getHeader());
    for (CallInst *leave : leaves) {
      keep(*leave, divided);
      analyze();
    }
    for (BasicBlock *header : divided) {
      SmallVector<BasicBlock *> exiting;
      info.getLoopFor(header)->getExitingBlocks(exiting);
      for (BasicBlock *block : exiting) {
        // No pass leads a thread around the first block of a loop, which must be free to move.
        if (block == header &&
            !callsIn(block, [&](Function &callee) { return dividing.contains(callee); }))
          continue;
        if (block != endOf(*info.getLoopFor(header)).branch->getParent()) {
          IRBuilder<> builder(block->getTerminator());
          markEnd(builder);
        }
      }
      endOf(*info.getLoopFor(header));
      analyze();
    }
    if (!ends.empty())
      reachUses();
  }

private:
  Function &function;
  const DenseSet<const Function *> &exchanges;
  DividingFunctions &dividing;
  MapVector<uint64_t, CallInst *> loops;
  SmallVector<CallInst *> leaves;
  DominatorTree dominators;
  LoopInfo info;
  /// Where the threads of a step meet, by the first block of the loop.
  struct StepEnd {
    SwitchInst *branch;
    AllocaInst *way;
  };
  DenseMap<BasicBlock *, StepEnd> ends;

  void analyze() {
    dominators.recalculate(function);
    info.releaseMemory();
    info.analyze(dominators);
  }

  bool callsIn(BasicBlock *block, function_ref<bool(Function &callee)> isWanted) const {
    return any_of(*block, [&](Instruction &inst) {
      Function *callee = calleeOf(inst);
      return callee && isWanted(*callee);
    });
  }
  bool exchangesIn(BasicBlock *block) const {
    return callsIn(block, [&](Function &callee) { return exchanges.contains(&callee); });
  }

  /// Whether some threads may exchange values in a step and others not. Where those leave the loop
  /// after it, by any condition, a pass would lead them from there past the rest of the step.
  bool dividesExchange(Loop &loop) const {
    SmallVector<BasicBlock *> latches;
    loop.getLoopLatches(latches);
    auto isDivided = [&](BasicBlock *block) {
      return any_of(latches,
                    [&](BasicBlock *latch) { return !dominators.dominates(block, latch); });
    };
    return any_of(loop.blocks(), [&](BasicBlock *block) {
      Loop *inner = info.getLoopFor(block);
      if (inner == &loop)
        return callsIn(block, [&](Function &callee) { return dividing.contains(callee); }) ||
               (exchangesIn(block) && isDivided(block));
      // An inner loop that all threads come to: what divides them in it is a matter of its own.
      while (inner->getParentLoop() != &loop)
        inner = inner->getParentLoop();
      return exchangesIn(block) && isDivided(inner->getHeader());
    });
  }

  /// The loop that a statement leaves, as the code has it. A loop of the text that is never
  /// repeated is none.
  Loop *loopLeftBy(CallInst &leave) {
    uint64_t number = numberOf(leave, 0);
    bool returns = numberOf(leave, 1);
    while (number) {
      auto found = loops.find(number);
      if (found == loops.end())
        return nullptr; // its body is never reached
      uint64_t parent = numberOf(*found->second, 1);
      Loop *loop = info.getLoopFor(found->second->getParent());
      auto outer = loops.find(parent);
      Loop *around = outer == loops.end() ? nullptr : info.getLoopFor(outer->second->getParent());
      if (loop && loop != around)
        return loop;
      // A return leaves the next loop, too. A break goes on in it.
      number = returns ? parent : 0;
    }
    return nullptr;
  }

  void keep(CallInst &leave, ArrayRef<BasicBlock *> divided) {
    Loop *loop = loopLeftBy(leave);
    BasicBlock *block = leave.getParent();
    if (!loop || loop->contains(block) || !dominators.dominates(loop->getHeader(), block))
      return;
    bool returns = numberOf(leave, 1);
    // The way from the loop to the statement, and the statement.
    SetVector<BasicBlock *> way;
    way.insert(block);
    for (unsigned i = 0; i != way.size(); ++i)
      for (BasicBlock *before : predecessors(way[i]))
        if (!loop->contains(before))
          way.insert(before);
    SmallVector<std::pair<BasicBlock *, BasicBlock *>> exits;
    if (!returns) {
      auto *branch = dyn_cast<BranchInst>(block->getTerminator());
      if (!branch || branch->isConditional())
        return;
      exits.push_back({block, branch->getSuccessor(0)});
    } else {
      // The value of a return is computed after the mark.
      SmallVector<BasicBlock *> after;
      for (BasicBlock &other : function)
        if (dominators.dominates(block, &other))
          after.push_back(&other);
      for (BasicBlock *other : after) {
        way.insert(other);
        if (isa<ReturnInst>(other->getTerminator()))
          exits.push_back({other, SplitBlock(other, other->getTerminator()->getIterator(),
                                             &dominators, &info)});
        else
          for (BasicBlock *next : successors(other))
            if (!dominators.dominates(block, next))
              exits.push_back({other, next});
      }
    }
    bool isExchanged = is_contained(divided, loop->getHeader()) ||
                       any_of(way, [&](BasicBlock *each) { return exchangesIn(each); });
    bool hasPhis = isa<PHINode>(loop->getHeader()->front()) ||
                   any_of(exits, [](auto &exit) { return isa<PHINode>(exit.second->front()); });
    if (!isExchanged || hasPhis)
      return;
    StepEnd &end = endOf(*loop);
    for (auto [from, to] : exits) {
      Instruction *branch = from->getTerminator();
      if (branch->getNumSuccessors() != 1)
        branch = SplitEdge(from, to)->getTerminator();
      IRBuilder<> builder(branch);
      auto *number = builder.getInt32(end.branch->getNumCases() + 1);
      builder.CreateStore(number, end.way);
      branch->setSuccessor(0, end.branch->getParent());
      end.branch->addCase(number, to);
    }
  }

  /// All steps end in one block, from which each thread goes the way that it has chosen.
  StepEnd &endOf(Loop &loop) {
    BasicBlock *header = loop.getHeader();
    auto [found, isNew] = ends.try_emplace(header);
    StepEnd &end = found->second;
    if (!isNew)
      return end;
    LLVMContext &context = function.getContext();
    MDNode *properties = loop.getLoopID();
    IRBuilder<> builder(context);
    builder.SetInsertPoint(&function.getEntryBlock(), function.getEntryBlock().begin());
    end.way = builder.CreateAlloca(builder.getInt32Ty(), nullptr, "way");
    auto *block = BasicBlock::Create(context, "step.end", &function, header);
    SmallSetVector<BasicBlock *, 4> latches;
    for (BasicBlock *before : predecessors(header))
      if (loop.contains(before))
        latches.insert(before);
    for (BasicBlock *latch : latches) {
      Instruction *branch = latch->getTerminator();
      builder.SetInsertPoint(branch);
      builder.CreateStore(builder.getInt32(0), end.way);
      branch->replaceSuccessorWith(header, block);
      branch->setMetadata(LLVMContext::MD_loop, nullptr);
    }
    builder.SetInsertPoint(block);
    builder.SetCurrentDebugLocation(latches.front()->getTerminator()->getDebugLoc());
    markEnd(builder);
    Value *way = builder.CreateLoad(builder.getInt32Ty(), end.way);
    end.branch = builder.CreateSwitch(way, header);
    if (properties)
      end.branch->setMetadata(LLVMContext::MD_loop, properties);
    return end;
  }

  void markEnd(IRBuilder<> &builder) {
    FunctionCallee callee = declareMark(*function.getParent(), stepEndName,
                                        FunctionType::get(builder.getVoidTy(), false));
    builder.CreateCall(callee)->setConvergent();
  }

  /// A value that is used behind the loop passes through memory now: the loop no longer ends with
  /// what computes it.
  void reachUses() {
    dominators.recalculate(function);
    SmallVector<Instruction *> values;
    for (Instruction &inst : instructions(function))
      if (any_of(inst.uses(), [&](const Use &use) { return !dominators.dominates(&inst, use); }))
        values.push_back(&inst);
    for (Instruction *value : values)
      DemoteRegToStack(*value, /*VolatileLoads=*/false,
                       function.getEntryBlock().getFirstInsertionPt());
  }
};

} // namespace

void dropLoopExits(Module &module) {
  for (StringRef name : {loopName, leaveName}) {
    eraseCalls(module, name);
    if (Function *mark = module.getFunction(name); mark && mark->use_empty())
      mark->eraseFromParent();
  }
}

void keepExitsInLoops(Module &module) {
  DenseSet<const Function *> exchanges = findExchanges(module);
  DividingFunctions dividing(exchanges);
  for (Function &function : module)
    dividing.contains(function); // before their control flow changes
  for (Function &function : module)
    if (!function.isDeclaration() && exchanges.contains(&function) && !isOfStdlib(function))
      FunctionExits(function, exchanges, dividing).run();
  dropLoopExits(module);
}

} // namespace triton_metal
