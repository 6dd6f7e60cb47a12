// Finds reads of local variables that have no value yet.
//
// Each variable gets another one beside it, of the same type, that tells for each bit whether it
// has been written. The passes that make registers of variables do so with both, and what is
// provably written loses its check. Values that are only copied are not read: a copy takes over
// what is known of each byte.
#include "host_device/msl/CheckValues.h"
#include "host_device/msl/PassRunner.h"
#include "host_device/msl/Passes.h"
#include "host_device/msl/Stdlib.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Scalar/SROA.h"

using namespace llvm;

namespace triton_metal {

namespace {

bool hasPointers(Type *type) {
  if (type->isPtrOrPtrVectorTy())
    return true;
  if (auto *array = dyn_cast<ArrayType>(type))
    return hasPointers(array->getElementType());
  if (auto *structure = dyn_cast<StructType>(type))
    return any_of(structure->elements(), hasPointers);
  return false;
}

/// Makes registers of variables that hold pointers, so that it is known what each access accesses.
void promotePointers(Function &function) {
  Module &module = *function.getParent();
  IRBuilder<> builder(function.getContext());
  SmallVector<AllocaInst *> others;
  for (Instruction &inst : instructions(function))
    if (auto *variable = dyn_cast<AllocaInst>(&inst);
        variable && !hasPointers(variable->getAllocatedType()))
      others.push_back(variable);
  auto callee = module.getOrInsertFunction(
      "__tm_keep", FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false));
  SmallVector<CallInst *> kept;
  for (AllocaInst *variable : others) {
    builder.SetInsertPoint(function.getEntryBlock().getTerminator());
    if (variable->getParent() != &function.getEntryBlock())
      builder.SetInsertPoint(variable->getNextNode());
    kept.push_back(builder.CreateCall(callee, {variable}));
  }
  FunctionPassManager manager;
  manager.addPass(DefineValuesPass());
  manager.addPass(SROAPass(SROAOptions::PreserveCFG));
  manager.addPass(DefineValuesPass());
  PassRunner().run(function, std::move(manager));
  auto *keep = cast<Function>(callee.getCallee());
  for (User *user : make_early_inc_range(keep->users()))
    cast<CallInst>(user)->eraseFromParent();
  keep->eraseFromParent();
}

/// The type with integers in place of other numbers, or null.
Type *integersLike(const DataLayout &layout, Type *type) {
  Type *scalar = type->getScalarType();
  if (scalar->isPointerTy())
    return type->getWithNewType(layout.getIntPtrType(scalar));
  unsigned bits = scalar->getPrimitiveSizeInBits();
  if (!bits || (type->isVectorTy() && bits % 8) ||
      !(scalar->isIntegerTy() || scalar->isFloatingPointTy()))
    return nullptr;
  return type->getWithNewType(Type::getIntNTy(type->getContext(), bits));
}

class Checker {
public:
  explicit Checker(Function &function)
      : function(function), layout(function.getDataLayout()), b(function.getContext()) {}

  void run() {
    SmallVector<AllocaInst *> variables;
    for (Instruction &inst : instructions(function))
      if (auto *variable = dyn_cast<AllocaInst>(&inst))
        variables.push_back(variable);
    for (AllocaInst *variable : variables)
      if (!variable->isArrayAllocation() && layout.getTypeAllocSize(variable->getAllocatedType()))
        findPlaces(variable);
    dropMixed();
    for (auto &[pointer, variable] : places)
      if (auto *alloca = dyn_cast<AllocaInst>(pointer))
        makeShadow(alloca);
    SmallVector<Instruction *> accesses;
    for (Instruction &inst : instructions(function))
      accesses.push_back(&inst);
    for (Instruction *inst : accesses)
      if (auto *load = dyn_cast<LoadInst>(inst))
        shadowLoad(load);
    // Values made of loaded ones, in the order of their definitions.
    for (Instruction *inst : accesses)
      derive(inst);
    for (auto &[phi, shadow] : phis)
      for (unsigned i = 0; i != phi->getNumIncomingValues(); ++i)
        shadow->addIncoming(shadowOf(phi->getIncomingValue(i)), phi->getIncomingBlock(i));
    for (Instruction *inst : accesses)
      if (auto *store = dyn_cast<StoreInst>(inst))
        shadowStore(store);
      else if (auto *memory = dyn_cast<MemIntrinsic>(inst))
        shadowTransfer(memory);
    for (auto &[value, shadow] : values)
      checkUses(value, shadow);
    for (Instruction *inst : accesses)
      if (auto *intrinsic = dyn_cast<IntrinsicInst>(inst);
          intrinsic && intrinsic->isLifetimeStartOrEnd())
        intrinsic->eraseFromParent();
    dropDeadClears();
  }

private:
  Function &function;
  const DataLayout &layout;
  IRBuilder<> b;
  /// Pointers into variables, and the variable.
  MapVector<Value *, AllocaInst *> places;
  DenseMap<Value *, Value *> shadows;
  SmallVector<std::pair<PHINode *, PHINode *>> phis;
  /// Loaded values and what is made of them, with what is known of each bit.
  MapVector<Value *, Value *> values;
  DenseMap<Value *, StringRef> names;
  DenseMap<AllocaInst *, SmallVector<Value *, 4>> byVariable;
  SmallPtrSet<Instruction *, 16> ownClears;

  /// Collects what points into the variable. One whose address goes elsewhere is not checked.
  void findPlaces(AllocaInst *variable) {
    SmallVector<Value *> work{variable};
    SmallSetVector<Value *, 16> found;
    while (!work.empty()) {
      Value *pointer = work.pop_back_val();
      if (!found.insert(pointer))
        continue;
      for (User *user : pointer->users()) {
        if (isa<GetElementPtrInst, BitCastInst, AddrSpaceCastInst, PHINode>(user) ||
            (isa<SelectInst>(user) && cast<SelectInst>(user)->getCondition() != pointer)) {
          if (user->getType()->isVectorTy())
            return;
          work.push_back(user);
          continue;
        }
        if (auto *load = dyn_cast<LoadInst>(user)) {
          if (!integersLike(layout, load->getType()) || load->isAtomic())
            return;
        } else if (auto *store = dyn_cast<StoreInst>(user)) {
          if (store->getValueOperand() == pointer || store->isAtomic() ||
              !integersLike(layout, store->getValueOperand()->getType()))
            return;
        } else if (auto *intrinsic = dyn_cast<IntrinsicInst>(user)) {
          if (!isa<MemIntrinsic>(intrinsic) && !intrinsic->isLifetimeStartOrEnd() &&
              !isa<DbgInfoIntrinsic>(intrinsic))
            return;
        } else if (!isa<ICmpInst>(user)) {
          return;
        }
      }
    }
    for (Value *pointer : found) {
      auto [place, isNew] = places.insert({pointer, variable});
      if (!isNew) // of several variables
        place->second = nullptr;
    }
  }

  /// A pointer into one of several variables is known if all that it comes from is.
  void dropMixed() {
    for (bool changed = true; changed;) {
      changed = false;
      SmallPtrSet<AllocaInst *, 4> dropped;
      for (auto &[pointer, variable] : places) {
        auto *inst = cast<Instruction>(pointer);
        if (!isa<PHINode, SelectInst>(inst))
          continue;
        unsigned first = isa<SelectInst>(inst);
        for (unsigned i = first; i != inst->getNumOperands(); ++i)
          if (Value *from = inst->getOperand(i); !places.count(from))
            for (unsigned j = first; j != inst->getNumOperands(); ++j)
              collectVariables(inst->getOperand(j), dropped);
      }
      if (dropped.empty())
        return;
      changed = true;
      // Everything that may point into them.
      SmallPtrSet<Value *, 16> gone(dropped.begin(), dropped.end());
      for (bool grows = true; grows;) {
        grows = false;
        for (auto &[pointer, variable] : places)
          if (!gone.count(pointer) && !isa<AllocaInst>(pointer) &&
              any_of(cast<Instruction>(pointer)->operands(),
                     [&](Value *operand) { return gone.count(operand); }))
            grows |= gone.insert(pointer).second;
      }
      places.remove_if([&](auto &entry) { return gone.count(entry.first); });
    }
  }

  void collectVariables(Value *pointer, SmallPtrSetImpl<AllocaInst *> &variables) {
    SmallVector<Value *> work{pointer};
    SmallPtrSet<Value *, 16> seen;
    while (!work.empty()) {
      Value *value = work.pop_back_val();
      if (!seen.insert(value).second || !places.count(value))
        continue;
      if (auto *alloca = dyn_cast<AllocaInst>(value))
        variables.insert(alloca);
      else
        for (Value *operand : cast<Instruction>(value)->operands())
          work.push_back(operand);
    }
  }

  void clear(Value *shadow, Type *type) {
    ownClears.insert(b.CreateMemSet(shadow, b.getInt8(0),
                                    layout.getTypeAllocSize(type).getFixedValue(),
                                    cast<AllocaInst>(shadow)->getAlign()));
  }

  /// Drops clears of shadows that are written as a whole before they are read, as most of those of
  /// temporaries are. LLVM's pass that makes registers of vectors reads a vector before it clears
  /// it: each such shadow would live around the loop, which costs that pass a time that grows with
  /// the cube of their number.
  void dropDeadClears() {
    SmallVector<Instruction *> dead;
    for (BasicBlock &block : function) {
      DenseMap<Value *, Instruction *> clears; // that nothing has read yet
      auto read = [&](Value *pointer) {
        Value *object = getUnderlyingObject(pointer, /*MaxLookup=*/0);
        if (isa<PHINode, SelectInst>(object))
          clears.clear();
        else
          clears.erase(object);
      };
      auto overwrite = [&](Value *pointer, uint64_t bytes, Instruction *clear) {
        auto *variable = dyn_cast<AllocaInst>(pointer);
        if (!variable || layout.getTypeAllocSize(variable->getAllocatedType()) != bytes)
          return;
        if (Instruction *earlier = clears.lookup(variable))
          dead.push_back(earlier);
        clears.erase(variable);
        if (clear)
          clears[variable] = clear;
      };
      for (Instruction &inst : block) {
        if (auto *load = dyn_cast<LoadInst>(&inst))
          read(load->getPointerOperand());
        else if (auto *transfer = dyn_cast<MemTransferInst>(&inst))
          read(transfer->getRawSource());
        if (auto *store = dyn_cast<StoreInst>(&inst))
          overwrite(store->getPointerOperand(),
                    layout.getTypeStoreSize(store->getValueOperand()->getType()), nullptr);
        else if (auto *memory = dyn_cast<MemIntrinsic>(&inst);
                 memory && isa<ConstantInt>(memory->getLength()))
          overwrite(memory->getRawDest(), cast<ConstantInt>(memory->getLength())->getZExtValue(),
                    ownClears.contains(memory) ? memory : nullptr);
      }
    }
    for (Instruction *clear : dead)
      clear->eraseFromParent();
  }

  void makeShadow(AllocaInst *variable) {
    b.SetInsertPoint(variable->getNextNode());
    b.SetCurrentDebugLocation(DebugLoc());
    auto *shadow = b.CreateAlloca(variable->getAllocatedType(), variable->getAddressSpace(),
                                  nullptr, variable->getName() + ".written");
    shadow->setAlignment(variable->getAlign());
    shadows[variable] = shadow;
    SmallVector<Instruction *> starts;
    for (User *user : variable->users())
      if (auto *marker = dyn_cast<IntrinsicInst>(user);
          marker && marker->getIntrinsicID() == Intrinsic::lifetime_start)
        starts.push_back(marker);
    // Where it is declared, and only there: a variable that lives in one block costs LLVM little to
    // make a register of, and there may be many thousands of them.
    if (starts.empty())
      clear(shadow, variable->getAllocatedType());
    for (Instruction *start : starts) {
      b.SetInsertPoint(start);
      clear(shadow, variable->getAllocatedType());
    }
  }

  /// The shadow's address for a pointer into a variable.
  Value *shadowPlace(Value *pointer) {
    if (Value *known = shadows.lookup(pointer))
      return known;
    auto *inst = cast<Instruction>(pointer);
    Instruction *copy = inst->clone();
    copy->insertBefore(inst->getIterator());
    shadows[pointer] = copy;
    unsigned first = isa<SelectInst>(inst);
    unsigned end = isa<PHINode, SelectInst>(inst) ? inst->getNumOperands() : 1;
    for (unsigned i = first; i != end; ++i)
      copy->setOperand(i, shadowPlace(inst->getOperand(i)));
    return copy;
  }

  ArrayRef<Value *> placesOf(AllocaInst *variable) {
    if (byVariable.empty())
      for (auto &[place, of] : places)
        byVariable[of].push_back(place);
    return byVariable[variable];
  }

  /// The name of the variable that an access reads. A function of the standard library has copied
  /// it from the user's.
  StringRef nameOf(Value *pointer, const DILocation *location, unsigned depth = 0) {
    AllocaInst *variable = places.lookup(pointer);
    if (!variable || depth == 16)
      return "";
    if (!location || !isStdlibFile(filePathOf(*location)))
      return variable->getName().split('.').first;
    for (Value *place : placesOf(variable)) {
      for (User *user : place->users()) {
        auto *inst = cast<Instruction>(user);
        // The library was given the address of the user's own.
        if (const DILocation *at = inst->getDebugLoc().get();
            at && at->getLine() && isa<StoreInst>(inst) && inst->getOperand(1) == place &&
            !isStdlibFile(filePathOf(*at)))
          return variable->getName().split('.').first;
        Value *source = nullptr;
        const Instruction *reader = inst;
        if (auto *transfer = dyn_cast<MemTransferInst>(inst);
            transfer && transfer->getRawDest() == place) {
          source = transfer->getRawSource();
        } else if (auto *store = dyn_cast<StoreInst>(inst);
                   store && store->getPointerOperand() == place) {
          Value *value = store->getValueOperand();
          while (isa<CastInst, ExtractElementInst, InsertElementInst>(value) || isShuffle(value))
            value = cast<Instruction>(value)->getOperand(isa<InsertElementInst>(value) ? 1 : 0);
          if (auto *load = dyn_cast<LoadInst>(value)) {
            source = load->getPointerOperand();
            reader = load;
          }
        }
        if (!source || places.lookup(source) == variable)
          continue;
        if (StringRef name = nameOf(source, reader->getDebugLoc().get(), depth + 1); !name.empty())
          return name;
      }
    }
    return "";
  }

  void shadowLoad(LoadInst *load) {
    Value *pointer = load->getPointerOperand();
    if (!places.count(pointer))
      return;
    b.SetInsertPoint(load);
    values[load] = b.CreateAlignedLoad(integersLike(layout, load->getType()), shadowPlace(pointer),
                                       load->getAlign());
    names[load] = nameOf(pointer, load->getDebugLoc().get());
  }

  Value *shadowOf(Value *value) {
    if (Value *known = values.lookup(value))
      return known;
    return Constant::getAllOnesValue(integersLike(layout, value->getType()));
  }

  /// Whether it is a shuffle, which moves values from lane to lane.
  static bool isShuffle(const Value *value) {
    auto *call = dyn_cast<CallInst>(value);
    const Function *callee = call ? call->getCalledFunction() : nullptr;
    return callee && callee->getName().starts_with("__tm_simd_shuffle_u");
  }

  /// Whether it is a step of an access to a bit-field, which loads and stores the whole unit. Clang
  /// names these.
  static bool isOfBitField(const Value *value) {
    return value->getName().starts_with("bf.") && isa<BinaryOperator, CastInst>(value);
  }

  /// What is known of each bit of a step of an access to a bit-field; null for other operations.
  Value *shadowOfBitField(Instruction *inst) {
    Value *shadow = shadowOf(inst->getOperand(0)), *unknown = b.CreateNot(shadow);
    Value *by = inst->getOperand(1);
    switch (inst->getOpcode()) {
    case Instruction::Or:
      return b.CreateAnd(shadow, shadowOf(by));
    case Instruction::And:
      return b.CreateNot(b.CreateAnd(unknown, by));
    case Instruction::Shl:
      return b.CreateNot(b.CreateShl(unknown, by));
    case Instruction::LShr:
      return b.CreateNot(b.CreateLShr(unknown, by));
    case Instruction::AShr:
      return b.CreateNot(b.CreateAShr(unknown, by));
    default:
      return nullptr;
    }
  }

  static bool isTransparent(const User *user, const Value *value) {
    if (isOfBitField(user))
      return user->getNumOperands() == 1 || isa<Constant>(user->getOperand(1)) ||
             cast<Instruction>(user)->getOpcode() == Instruction::Or;
    if (isShuffle(user))
      return user->getOperand(0) == value && user->getOperand(1) != value;
    // Shuffles take whole words, and a bool has a byte in memory.
    Type *from = value->getType(), *to = user->getType();
    if (isa<SExtInst, ZExtInst>(user))
      return (from->isIntegerTy(1) && to->isIntegerTy(8)) ||
             (!user->use_empty() && all_of(user->users(), isShuffle));
    if (isa<TruncInst>(user))
      return (from->isIntegerTy(8) && to->isIntegerTy(1)) || isShuffle(value);
    if (auto *compare = dyn_cast<ICmpInst>(user))
      return (from->isIntegerTy(8) || isShuffle(value)) &&
             compare->getPredicate() == ICmpInst::ICMP_NE &&
             isa<ConstantInt>(compare->getOperand(1)) &&
             cast<ConstantInt>(compare->getOperand(1))->isZero();
    if (auto *store = dyn_cast<StoreInst>(user))
      return store->getValueOperand() == value;
    if (auto *extract = dyn_cast<ExtractElementInst>(user))
      return extract->getVectorOperand() == value && isa<ConstantInt>(extract->getIndexOperand());
    if (auto *insert = dyn_cast<InsertElementInst>(user))
      return isa<ConstantInt>(insert->getOperand(2));
    if (auto *cast = dyn_cast<BitCastInst>(user))
      return cast->getType()->isIntOrIntVectorTy() || cast->getType()->isFPOrFPVectorTy();
    return isa<ShuffleVectorInst>(user) || isa<PHINode>(user);
  }

  void derive(Instruction *inst) {
    if (values.count(inst) || !integersLike(layout, inst->getType()))
      return;
    if (none_of(inst->operands(), [&](Value *operand) { return values.count(operand); }) ||
        none_of(inst->operands(), [&](Value *operand) {
          return values.count(operand) && isTransparent(inst, operand);
        }))
      return;
    if (isa<StoreInst>(inst))
      return;
    b.SetInsertPoint(inst);
    Value *shadow = nullptr;
    auto *type = integersLike(layout, inst->getType());
    if (isOfBitField(inst) && isa<BinaryOperator>(inst)) {
      shadow = shadowOfBitField(inst);
    } else if (isa<ExtractElementInst>(inst)) {
      shadow = b.CreateExtractElement(shadowOf(inst->getOperand(0)), inst->getOperand(1));
    } else if (isa<InsertElementInst>(inst)) {
      shadow = b.CreateInsertElement(shadowOf(inst->getOperand(0)), shadowOf(inst->getOperand(1)),
                                     inst->getOperand(2));
    } else if (auto *shuffle = dyn_cast<ShuffleVectorInst>(inst)) {
      shadow = b.CreateShuffleVector(shadowOf(shuffle->getOperand(0)),
                                     shadowOf(shuffle->getOperand(1)), shuffle->getShuffleMask());
      // An element that is not chosen has no value to be read.
      for (auto [i, element] : enumerate(shuffle->getShuffleMask()))
        if (element < 0)
          shadow = b.CreateInsertElement(shadow, Constant::getAllOnesValue(type->getScalarType()),
                                         uint64_t(i));
    } else if (isa<BitCastInst>(inst)) {
      shadow = b.CreateBitCast(shadowOf(inst->getOperand(0)), type);
    } else if (isShuffle(inst)) {
      shadow = shuffled(shadowOf(inst->getOperand(0)), inst->getOperand(1));
    } else if (isa<SExtInst>(inst)) {
      shadow = b.CreateSExt(shadowOf(inst->getOperand(0)), type);
    } else if (isa<ZExtInst>(inst)) {
      shadow = b.CreateNot(b.CreateZExt(b.CreateNot(shadowOf(inst->getOperand(0))), type));
    } else if (isa<TruncInst>(inst)) {
      shadow = b.CreateTrunc(shadowOf(inst->getOperand(0)), type);
    } else if (isa<ICmpInst>(inst)) {
      Value *from = shadowOf(inst->getOperand(0));
      shadow = b.CreateICmpEQ(from, Constant::getAllOnesValue(from->getType()));
    } else if (auto *phi = dyn_cast<PHINode>(inst)) {
      PHINode *copy = b.CreatePHI(type, phi->getNumIncomingValues());
      phis.push_back({phi, copy});
      shadow = copy;
    }
    if (!shadow)
      return;
    values[inst] = shadow;
    for (Value *operand : inst->operands())
      if (StringRef name = names.lookup(operand); !name.empty())
        names[inst] = name;
  }

  /// What is known of the value of another lane.
  Value *shuffled(Value *shadow, Value *lane) {
    Type *word = b.getInt32Ty(), *type = shadow->getType();
    auto move = function.getParent()->getOrInsertFunction(
        "__tm_simd_move_u32", FunctionType::get(word, {word, word}, false));
    auto *callee = cast<Function>(move.getCallee());
    callee->setConvergent();
    callee->setDoesNotAccessMemory();
    callee->setDoesNotThrow();
    if (type == word)
      return b.CreateCall(move, {shadow, lane});
    Value *low = b.CreateCall(move, {b.CreateTrunc(shadow, word), lane});
    Value *high = b.CreateCall(move, {b.CreateTrunc(b.CreateLShr(shadow, 32), word), lane});
    return b.CreateOr(b.CreateZExt(low, type), b.CreateShl(b.CreateZExt(high, type), 32));
  }

  void shadowStore(StoreInst *store) {
    Value *pointer = store->getPointerOperand();
    if (!places.count(pointer))
      return;
    b.SetInsertPoint(store);
    b.CreateAlignedStore(shadowOf(store->getValueOperand()), shadowPlace(pointer),
                         store->getAlign());
  }

  void shadowTransfer(MemIntrinsic *memory) {
    if (!places.count(memory->getRawDest()))
      return;
    b.SetInsertPoint(memory);
    Value *shadow = shadowPlace(memory->getRawDest());
    auto *transfer = dyn_cast<MemTransferInst>(memory);
    if (transfer && places.count(transfer->getRawSource()))
      b.CreateMemMove(shadow, memory->getDestAlign(), shadowPlace(transfer->getRawSource()),
                      transfer->getSourceAlign(), memory->getLength());
    else
      b.CreateMemSet(shadow, b.getInt8(0xff), memory->getLength(), memory->getDestAlign());
  }

  void checkUses(Value *value, Value *shadow) {
    bool isRead = any_of(value->users(), [&](User *user) {
      if (auto *store = dyn_cast<StoreInst>(user); store && store->getValueOperand() == value)
        return !places.count(store->getPointerOperand());
      return !isTransparent(user, value) || (!isa<StoreInst>(user) && !values.count(user));
    });
    auto *inst = cast<Instruction>(value);
    if (!isRead)
      return;
    b.SetInsertPoint(isa<PHINode>(inst) ? &*inst->getParent()->getFirstInsertionPt()
                                        : inst->getNextNode());
    b.SetCurrentDebugLocation(inst->getDebugLoc());
    Value *bad = b.CreateICmpNE(shadow, Constant::getAllOnesValue(shadow->getType()));
    StringRef name = names.lookup(value);
    buildCheck(b, bad,
               name.empty() ? std::string("a variable is read before it has a value")
                            : ("the variable '" + name + "' is read before it has a value").str());
  }
};

} // namespace

void checkVariables(Function &function) {
  promotePointers(function);
  Checker(function).run();
}

} // namespace triton_metal
