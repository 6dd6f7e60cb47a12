// Segments: the operations on tiles that share a loop over registers.

#include "transforms/MSLEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// Loops over registers
//===----------------------------------------------------------------------===//

void Emitter::emitNest(Location loc, ArrayRef<Dim> dims, bool unrolled, int64_t registers,
                       int64_t step, function_ref<void(const Coord &)> body) {
  if (unrolled) {
    llvm::SaveAndRestore save(written, true);
    for (int64_t first = 0; first < registers; first += step) {
      Scope scope(*this);
      body(Coord().plus(first));
    }
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  Coord at;
  for (const Dim &dim : dims) {
    auto loop = UnrollOp::create(builder, loc, 0, dim.trip);
    builder.setInsertionPoint(loop.getBody().front().getTerminator());
    at = at.plus(loop.getIndex(), dim.stride, dim.trip);
  }
  Scope scope(*this);
  body(at);
}

void Emitter::emitElements(Operation *op, const Coord &at, int64_t width,
                           function_ref<void(const Coord &, const Coord &)> body) {
  Location loc = op->getLoc();
  OpBuilder::InsertionGuard guard(builder);
  if (width == 1 || written || !canLoopOverElements(op)) {
    for (int64_t element = 0; element < width; ++element) {
      Scope scope(*this);
      body(at.plus(element), Coord().plus(element));
    }
    return;
  }
  auto loop = UnrollOp::create(builder, loc, 0, width);
  builder.setInsertionPoint(loop.getBody().front().getTerminator());
  Scope scope(*this);
  body(at.plus(loop.getIndex(), 1, width), Coord().plus(loop.getIndex(), 1, width));
}

bool Emitter::canLoopOverElements(Operation *op) {
  // What is not computed on demand is known as whole chunks, whose components have indices. A
  // segment that is one chunk has formed no loop, so that nothing has asked yet whether one can be.
  SmallVector<Value> roots;
  int64_t registers = 1;
  for (Value operand : op->getOperands()) {
    registers = std::max(registers, getNumRegisters(operand.getType()));
    if (plan.isLazy(operand))
      roots.push_back(operand);
  }
  bool unrolled = false;
  (void)getDims(roots, registers, registers, unrolled);
  return !unrolled;
}

int64_t Emitter::getStep(ArrayRef<Operation *> items, int64_t registers) {
  // As many registers as the widest access takes, or as the arrays hold that are read register by
  // register.
  int64_t step = 0;
  std::set<void *> seen;
  std::function<void(Value)> visit = [&](Value value) {
    if (getNumRegisters(value.getType()) != registers ||
        !seen.insert(value.getAsOpaquePointer()).second)
      return;
    if (auto it = stored.find(value); it != stored.end()) {
      step = std::max(step, it->second.width);
      return;
    }
    if (ssa.count(value)) {
      step = std::max(step, std::min<int64_t>(registers, 4));
      return;
    }
    Operation *op = value.getDefiningOp();
    if (op && !isa<PermuteRegistersOp>(op) && (isElementwise(op) || plan.isLazy(value)))
      llvm::for_each(op->getOperands(), visit);
  };
  for (Operation *op : items) {
    if (auto width = op->getAttrOfType<IntegerAttr>("width"); width && isAccess(op))
      step = std::max(step, width.getInt());
    llvm::for_each(op->getOperands(), visit);
    for (Value result : op->getResults())
      if (getNumRegisters(result.getType()) == registers && wantsMatrix(result))
        step = std::max<int64_t>(step, 2);
  }
  bool scalar = llvm::any_of(items, isAccess);
  if (step == 0)
    step = scalar ? 1 : 4;
  return std::min(step, registers);
}

std::vector<Dim> Emitter::getDims(ArrayRef<Value> roots, int64_t registers, int64_t step,
                                  bool &unrolled, ArrayRef<int64_t> extraBreaks) {
  // A loop ends where a constant's stride, or the register that a permutation asks for, does not
  // double from bit to bit.
  std::set<int64_t> breaks(extraBreaks.begin(), extraBreaks.end());
  unrolled = false;
  std::set<std::pair<void *, std::vector<int64_t>>> seen;
  auto breakWhere = [&](ArrayRef<int64_t> strides) {
    for (size_t bit = 1; bit < strides.size(); ++bit)
      if (strides[bit] != strides[bit - 1] * 2)
        breaks.insert(bit);
  };
  std::function<void(Value, const RegisterMap &)> visit = [&](Value value, const RegisterMap &map) {
    if (!isa<VectorType>(value.getType()) || getNumRegisters(value.getType()) == 1)
      return;
    std::vector<int64_t> key(map.bases.begin(), map.bases.end());
    key.push_back(map.offset);
    if (!seen.insert({value.getAsOpaquePointer(), key}).second)
      return;
    if (!map.isDisjoint())
      unrolled = true;
    breakWhere(map.bases);
    Operation *op = value.getDefiningOp();
    if (stored.count(value) || ssa.count(value) || !op)
      return;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      auto strides = getLinearStrides(cast<DenseElementsAttr>(constant.getValue()), map);
      if (strides)
        breakWhere(*strides);
      else
        unrolled = true;
      return;
    }
    if (auto permuteOp = dyn_cast<PermuteRegistersOp>(op)) {
      RegisterMap inner{SmallVector<int64_t>(permuteOp.getBases()), int64_t(permuteOp.getOffset())};
      visit(permuteOp.getValue(), map.then(inner));
      return;
    }
    if (isElementwise(op))
      for (Value operand : op->getOperands())
        visit(operand, map);
  };
  for (Value root : roots)
    if (getNumRegisters(root.getType()) == registers)
      visit(root, RegisterMap::identity(registers));
  std::vector<Dim> dims;
  for (int64_t stride = step; stride < registers;) {
    int64_t end = stride * 2;
    while (end < registers && !breaks.count(llvm::Log2_64(end)))
      end *= 2;
    dims.insert(dims.begin(), Dim{stride, end / stride});
    stride = end;
  }
  return dims;
}

//===----------------------------------------------------------------------===//
// Where values live
//===----------------------------------------------------------------------===//

Storage Emitter::makeStorage(Location loc, Type type, int64_t width, bool matrix) {
  int64_t registers = getNumRegisters(type);
  Type element = getElementTypeOrSelf(type);
  if (matrix)
    width = 2;
  width = std::min(width, registers);
  Type cell = matrix ? Type(MatrixType::get(element)) : getChunkType(type, width);
  auto array = ArrayType::get(registers / width, cell);
  return {VarOp::create(builder, loc, array), width};
}

bool Emitter::wantsMatrix(Value value) {
  // A value that a matrix product reads or writes, directly or around loops.
  std::set<void *> seen;
  std::function<bool(Value)> visit = [&](Value v) -> bool {
    if (!seen.insert(v.getAsOpaquePointer()).second)
      return false;
    if (v.getDefiningOp<MmaOp>())
      return true;
    if (auto argument = dyn_cast<BlockArgument>(v))
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
          loop && argument.getArgNumber() >= loop.getNumInductionVars())
        if (Value yielded = loop.getTiedLoopYieldedValue(argument)->get();
            yielded.getDefiningOp<MmaOp>())
          return true;
    for (OpOperand &use : v.getUses()) {
      Operation *user = use.getOwner();
      if (isa<MmaOp>(user))
        return true;
      if (auto loop = dyn_cast<scf::ForOp>(user))
        if (auto argument = loop.getTiedLoopRegionIterArg(&use); argument && visit(argument))
          return true;
      if (isa<scf::YieldOp>(user))
        if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
          if (visit(loop.getRegionIterArg(use.getOperandNumber())))
            return true;
    }
    if (auto loop = v.getDefiningOp<scf::ForOp>())
      return visit(loop.getRegionIterArg(cast<OpResult>(v).getResultNumber()));
    return false;
  };
  return visit(value);
}

Storage Emitter::chooseStorage(Value value, int64_t width, int entry, Block *block, bool sameStep) {
  bool matrix = wantsMatrix(value);
  // The variable of the loop that the value is carried into, or of the branch that yields it.
  Operation *parent = block->getParentOp();
  for (OpOperand &use : value.getUses()) {
    auto yield = dyn_cast<scf::YieldOp>(use.getOwner());
    if (!yield || yield->getBlock() != block || !value.hasOneUse())
      continue;
    if (auto conditional = dyn_cast<scf::IfOp>(parent))
      if (auto it = stored.find(conditional.getResult(use.getOperandNumber())); it != stored.end())
        return it->second;
  }
  // The variable of an operand that nothing reads any more.
  Operation *op = value.getDefiningOp();
  if (op && (isElementwise(op) || isa<SimdReduceOp, SimdShuffleXorOp, SimdShuffleOp>(op))) {
    // A tile that a loop carries stays in its variable.
    Storage carried;
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      for (OpOperand &use : value.getUses())
        if (use.getOwner() == loop.getBody()->getTerminator())
          carried = stored.lookup(loop.getRegionIterArg(use.getOperandNumber()));
    for (Value operand : op->getOperands()) {
      auto it = stored.find(operand);
      if (it == stored.end() || operand.getType() != value.getType() ||
          it->second.isMatrix() != matrix)
        continue;
      if (carried ? !(carried == it->second) : !matrix)
        continue;
      if (plan.isDeadAfter(operand, block, entry, /*beforeLast=*/!sameStep) &&
          llvm::none_of(plan.getUsers(operand), [&](Operation *user) {
            return plan.getEntryIndex(user) == entry && user->getBlock() == block &&
                   !isElementwise(user) && !isa<StoreOp, StoreAddressOp, ReduceRegistersOp>(user);
          })) {
        // Another value of this step may have taken it already.
        if (llvm::none_of(stored, [&](auto &pair) {
              return pair.first != operand && pair.second == it->second &&
                     pair.first.getParentBlock() == block && pair.first.getDefiningOp() &&
                     plan.getEntryIndex(pair.first.getDefiningOp()) >= entry;
            }))
          return it->second;
      }
    }
  }
  return makeStorage(value.getLoc(), value.getType(), width, matrix);
}

void Emitter::copyInto(Value value, const Storage &storage) {
  auto it = stored.find(value);
  if (it != stored.end() && it->second == storage)
    return;
  // Nobody reads what is poison.
  if (value.getDefiningOp<ub::PoisonOp>())
    return;
  Location loc = value.getLoc();
  int64_t registers = getNumRegisters(value.getType());
  // A uniform value fills matrices and vectors alike.
  DenseElementsAttr dense;
  Value scalar;
  if (auto constantOp = value.getDefiningOp<arith::ConstantOp>()) {
    dense = cast<DenseElementsAttr>(constantOp.getValue());
    if (dense.isSplat())
      scalar = arith::ConstantOp::create(builder, loc,
                                         cast<TypedAttr>(*dense.getValues<Attribute>().begin()));
  } else if (auto splat = value.getDefiningOp<SplatOp>()) {
    scalar = getScalar(splat.getValue());
  }
  int64_t step = storage.width;
  bool unrolled = false;
  if (it != stored.end())
    step = std::max(step, it->second.width);
  std::vector<Dim> dims = getDims({value}, registers, step, unrolled);
  emitNest(loc, dims, unrolled, registers, step, [&](const Coord &at) {
    if (scalar && storage.isMatrix()) {
      for (int64_t part = 0; part < step; part += 2)
        FillOp::create(builder, loc, scalar, storage.variable,
                       storage.getType().getCount() == 1 ? Value()
                                                         : getIndex(loc, at.plus(part), 2));
      return;
    }
    int64_t width = std::min<int64_t>(step, 4);
    SmallVector<Value> parts;
    for (int64_t part = 0; part < step; part += width)
      parts.push_back(get(value, at.plus(part), width));
    for (int64_t part = 0; part < step; part += width)
      writeStorage(loc, storage, at.plus(part), width, parts[part / width]);
  });
}

void Emitter::copyStorage(Location loc, const Storage &from, const Storage &to) {
  int64_t step = std::max(from.width, to.width);
  int64_t registers = to.width * to.getType().getCount();
  bool unrolled = false;
  std::vector<Dim> dims = getDims({}, registers, step, unrolled);
  emitNest(loc, dims, unrolled, registers, step, [&](const Coord &at) {
    writeStorage(loc, to, at, step, readStorage(loc, from, at, step));
  });
}

//===----------------------------------------------------------------------===//
// Segments
//===----------------------------------------------------------------------===//

/// The registers of a step where masks decide: as many as the widest access that remains.
static int64_t getGuardedStep(const Segment &segment, int64_t step) {
  int64_t widest = 0;
  bool anyMasked = false;
  for (Operation *item : segment.items) {
    if (!isAccess(item))
      continue;
    auto width = item->getAttrOfType<IntegerAttr>("width"),
         maskWidth = item->getAttrOfType<IntegerAttr>("mask_width");
    int64_t access = width ? width.getInt() : 1;
    bool masked = false;
    if (auto load = dyn_cast<LoadOp>(item))
      masked = bool(load.getMask());
    else if (auto store = dyn_cast<StoreOp>(item))
      masked = bool(store.getMask());
    else if (auto load = dyn_cast<LoadAddressOp>(item))
      masked = bool(load.getMask());
    else if (auto store = dyn_cast<StoreAddressOp>(item))
      masked = bool(store.getMask());
    anyMasked |= masked;
    if (masked)
      access = std::min<int64_t>(access, maskWidth ? maskWidth.getInt() : 1);
    widest = std::max(widest, access);
  }
  return anyMasked ? std::min(step, widest) : step;
}

void Emitter::emitSegment(Segment &segment, int entry, Block *block) {
  Location loc = segment.items.front()->getLoc();
  int64_t registers = segment.registers;
  int64_t step = getStep(segment.items, registers);
  bool branches = !segment.fulls.empty();
  if (!branches)
    step = getGuardedStep(segment, step);
  // What later steps read needs a place: a value of this block where no loop is needed, or a
  // variable.
  DenseMap<Value, Storage> exports, accumulators;
  SmallVector<Value> kept;
  bool loops = step < registers || registers > 4 || branches;
  for (Operation *item : segment.items) {
    if (isa<ReduceRegistersOp>(item))
      continue;
    for (Value result : item->getResults()) {
      bool outside = llvm::any_of(plan.getUsers(result), [&](Operation *user) {
        return plan.getSegment(user) != &segment;
      });
      if (!outside)
        continue;
      if (!loops && !wantsMatrix(result))
        kept.push_back(result);
      else
        exports[result] =
            chooseStorage(result, std::min<int64_t>(step, 4), entry, block, /*sameStep=*/true);
    }
  }
  if (loops)
    for (Operation *item : segment.items)
      if (auto reduce = dyn_cast<ReduceRegistersOp>(item)) {
        int64_t width = std::min<int64_t>(step, 4);
        Type type = VectorType::get(width, getElementTypeOrSelf(reduce.getOperand(0).getType()));
        Storage storage = makeStorage(reduce.getLoc(), type, width, false);
        TypedAttr neutral = getNeutralElement(reduce);
        if (width > 1)
          neutral = DenseElementsAttr::get(cast<ShapedType>(type), Attribute(neutral));
        Value first = arith::ConstantOp::create(builder, reduce.getLoc(), neutral);
        SetOp::create(builder, reduce.getLoc(), first, storage.variable, Value(), Value());
        accumulators[reduce.getResult(0)] = storage;
      }
  // Values of this segment are read from their chunks in it; only then are they known by their
  // variables.
  auto body = [&](bool guarded) {
    int64_t narrow = guarded && branches ? getGuardedStep(segment, step) : step;
    SmallVector<Value> roots;
    for (Operation *item : segment.items)
      llvm::append_range(roots, item->getOperands());
    bool unrolled = false;
    // Where few registers go into wider vectors, one loop goes over a vector's components.
    SmallVector<int64_t> breaks;
    auto breakFor = [&](const Storage &storage) {
      if (storage.width > narrow)
        breaks.push_back(llvm::Log2_64(storage.width));
    };
    for (auto &pair : exports)
      breakFor(pair.second);
    for (auto &pair : accumulators)
      breakFor(pair.second);
    for (Value root : roots)
      if (auto it = stored.find(root);
          it != stored.end() && getNumRegisters(root.getType()) == registers)
        breakFor(it->second);
    std::vector<Dim> dims = getDims(roots, registers, narrow, unrolled, breaks);
    auto emitStep = [&](const Coord &at) {
      for (Operation *item : segment.items) {
        if (auto reduce = dyn_cast<ReduceRegistersOp>(item)) {
          auto it = accumulators.find(reduce.getResult(0));
          if (it == accumulators.end())
            continue;
          // The accumulator has one vector, whatever the register.
          int64_t width = std::min(it->second.width, narrow);
          for (int64_t part = 0; part < narrow; part += width) {
            Coord where = split(reduce.getLoc(), at.plus(part), it->second.width).second;
            Value chunk = get(reduce.getOperand(0), at.plus(part), width);
            Value old = readStorage(reduce.getLoc(), it->second, where, width);
            writeStorage(reduce.getLoc(), it->second, where, width,
                         combine(reduce, {old}, {chunk})[0]);
          }
          continue;
        }
        emitItem(item, at, narrow, guarded);
      }
      for (Operation *item : segment.items)
        for (Value result : item->getResults())
          if (auto it = exports.find(result); it != exports.end()) {
            int64_t width = std::min<int64_t>(narrow, 4);
            for (int64_t part = 0; part < narrow; part += width)
              writeStorage(result.getLoc(), it->second, at.plus(part), width,
                           get(result, at.plus(part), width));
          }
    };
    if (!loops) {
      // Chunks stay known to the rest of the block.
      memo.emplace_back();
      emitStep(Coord());
      for (Value value : kept)
        ssa[value] = get(value, Coord(), registers);
      for (Operation *item : segment.items)
        if (auto reduce = dyn_cast<ReduceRegistersOp>(item)) {
          SmallVector<Value> chunks{get(reduce.getOperand(0), Coord(), registers)};
          ssa[reduce.getResult(0)] = combineComponents(reduce, chunks, registers - 1)[0];
        }
      memo.pop_back();
      return;
    }
    emitNest(loc, dims, unrolled, registers, narrow, emitStep);
  };
  if (branches) {
    // Each condition once.
    SetVector<Value> conditions;
    std::function<void(Value)> collect = [&](Value condition) {
      if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
        collect(both.getLhs());
        collect(both.getRhs());
      } else {
        conditions.insert(condition);
      }
    };
    llvm::for_each(segment.fulls, collect);
    Value full;
    for (Value condition : conditions) {
      Value scalar = getScalar(condition);
      full = full ? arith::AndIOp::create(builder, loc, full, scalar).getResult() : scalar;
    }
    auto conditional = scf::IfOp::create(builder, loc, full, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(conditional.thenBlock()->getTerminator());
    body(/*guarded=*/false);
    builder.setInsertionPoint(conditional.elseBlock()->getTerminator());
    body(/*guarded=*/true);
  } else {
    body(/*guarded=*/true);
  }
  for (auto &[value, storage] : exports)
    stored[value] = storage;
  for (Operation *item : segment.items)
    if (auto it =
            item->getNumResults() ? accumulators.find(item->getResult(0)) : accumulators.end();
        it != accumulators.end()) {
      auto reduce = cast<ReduceRegistersOp>(item);
      Value chunk = GetOp::create(builder, reduce.getLoc(), it->second.getType().getValueType(),
                                  it->second.variable, Value(), Value());
      ssa[reduce.getResult(0)] = combineComponents(reduce, {chunk}, it->second.width - 1)[0];
    }
}

void Emitter::emitItem(Operation *op, const Coord &at, int64_t step, bool guarded) {
  if (isa<LoadOp, LoadAddressOp>(op))
    return emitLoad(op, at, step, guarded);
  if (isa<StoreOp, StoreAddressOp>(op))
    return emitStore(op, at, step, guarded);
  if (isa<AtomicRMWOp, AtomicCASOp>(op))
    return emitAtomic(op, at, step);
  int64_t width = std::min<int64_t>(step, 4);
  for (int64_t part = 0; part < step; part += width)
    get(op->getResult(0), at.plus(part), width);
}
