#include "dialect/msl/MSL.h"
#include "dialect/msl/ScalarTypes.h"
#include "dialect/tt/TT.h"
#include "dialect/ttm/LayoutUtils.h"
#include "transforms/Dots.h"
#include "transforms/Erase.h"
#include "transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace triton_metal {

#define GEN_PASS_DEF_TTMLOWERDOT
#include "transforms/Passes.h.inc"

namespace {

using namespace ttm;

/// One operand of a dot on its way to the product.
struct Operand {
  Value value;
  /// 0 for a, 1 for b.
  unsigned index;
  /// Elements in the tile.
  Type element;
  bool inRegisters = false;
  /// The tile is stored with the operand's dimensions exchanged.
  bool transposed = false;
  /// What is stored: the value, or what it is the transpose of; and whether that is transposed for
  /// it.
  Value source = {};
  bool isTurned = false;
  /// The outermost loop that does not change the operand; null if there is none.
  Operation *invariantLoop = nullptr;

  unsigned rank() const { return shape().size(); }
  unsigned kDim() const { return rank() - (index == 0 ? 1 : 2); }
  ArrayRef<int64_t> shape() const { return cast<RankedTensorType>(value.getType()).getShape(); }
  /// The order of dimensions that exchanges those of each matrix.
  SmallVector<int32_t> getExchange() const {
    auto order = llvm::to_vector(llvm::seq<int32_t>(0, rank()));
    std::swap(order[rank() - 2], order[rank() - 1]);
    return order;
  }
  TileType tileType(int64_t batch, int64_t k) const {
    SmallVector<int64_t> part(shape());
    if (rank() == 3)
      part[0] = batch;
    part[kDim()] = k;
    if (transposed)
      std::swap(part[rank() - 2], part[rank() - 1]);
    return getOperandTile(part, element);
  }
};

/// A tile of threadgroup memory that has an operand.
struct OperandTile {
  Value source;
  bool isTurned;
  Value tile;

  int64_t getBytes() const { return cast<TileType>(tile.getType()).getBytes(); }
  bool has(const Operand &operand, TileType type) const {
    return source == operand.source && isTurned == operand.isTurned && tile.getType() == type;
  }
};

/// A tile for a later dot of the block that takes the same operand.
struct StagedOperand : OperandTile {
  /// The last group of dots that the tile is there for.
  size_t lastGroup;
};

/// A tile that stays over loops which do not change the operand.
struct InvariantOperand : OperandTile {
  /// Loops of one block, in their order: the tile is there from the first one to the last one.
  SmallVector<Operation *, 2> loops;
};

/// The parts of a dot whose operands are in threadgroup memory at a time.
struct Parts {
  int64_t batch, k;
};

class DotLowering {
public:
  explicit DotLowering(tt::FuncOp func)
      : func(func), budget(Budget::of(func)),
        lacksMemory(func->getParentOp()->hasAttr(TTMDialect::getLacksMemoryAttrName())),
        lacksRegisters(func->getParentOp()->hasAttr(TTMDialect::getLacksRegistersAttrName())) {}

  LogicalResult run() {
    SmallVector<tt::DotOp> dots;
    func.walk([&](tt::DotOp dot) { dots.push_back(dot); });
    llvm::SmallSetVector<Block *, 4> blocks;
    for (tt::DotOp dot : dots)
      blocks.insert(dot->getBlock());
    allFit = llvm::all_of(
        blocks, [&](Block *each) { return getBlockBytes(dots, each) <= budget.getDotBytes(); });
    for (tt::DotOp dot : dots)
      if (failed(lower(dot)))
        return failure();
    return success();
  }

private:
  LogicalResult lower(tt::DotOp dot);
  /// About the bytes of all operands of a block's dots.
  static int64_t getBlockBytes(ArrayRef<tt::DotOp> dots, Block *block);
  /// Whether the operands of dots may take `more` bytes for `less`: a core then holds enough
  /// threads. Where registers are lacking, they are what limits them.
  bool mayTake(int64_t more, int64_t less) {
    int64_t enough = lacksRegisters ? Budget::kFullThreads : Budget::kEnoughThreads;
    return Budget::mayTake(more, less, kSimdWidth * int64_t(getNumSimdgroups(func)), enough);
  }
  FailureOr<Type> operandElement(tt::DotOp dot);
  Operand makeOperand(tt::DotOp dot, unsigned index, Type element, const LinearLayout &accumulator);
  /// Whether the operands of a dot that go to memory can be stored with those of the dot before it:
  /// if all are there by then, and memory for both leaves enough threads in flight. One barrier
  /// then serves both, and what waits for the second dot waits in no registers.
  bool canJoin(ArrayRef<const Operand *> stored, int64_t bytes);
  /// The tile of an earlier dot of the block that has the operand, if it can stay until this one,
  /// which stores so many bytes without it: memory leaves enough threads in flight.
  StagedOperand *findStaged(const Operand &operand, TileType type, int64_t bytes);
  /// Stores an operand, or the part at the offsets, to the tile; to a new one if there is none.
  Value stage(OpBuilder &builder, const Operand &operand, TileType type, ArrayRef<int64_t> offsets,
              Value tile = {});

  /// The tile of an operand that a loop does not change, staged in front of it; null if memory has
  /// no room for it. Loops that follow each other share one.
  Value stageInvariant(const Operand &operand, TileType type);
  /// Has an operand that a loop does not change, and that memory has no room for, stay in registers
  /// as the products take it, if it needs no more of them than it does otherwise.
  void keepInRegisters(Operand &operand, const LinearLayout &accumulator);
  /// Takes a tile back from the loop of an operand.
  LogicalResult release(const Operand &operand, Value tile);

  tt::FuncOp func;
  Budget budget;
  bool lacksMemory, lacksRegisters;
  /// Of the dot that is lowered.
  const msl::MatrixInstruction *instruction = nullptr;
  /// All operands of each block fit into threadgroup memory at once.
  bool allFit = false;
  /// What stays staged over loops.
  SmallVector<InvariantOperand> invariants;
  /// What stays in registers over loops, in front of which it was converted.
  SmallVector<ConvertLayoutOp> fragments;
  /// Of the tiles, what is there while the dot that is lowered runs.
  int64_t invariantBytes = 0;
  /// Groups of dots of one block whose operands are stored together: the bytes that are in use from
  /// then on to the next group, and the operands. The last one is stored in front of `group`, if
  /// others may join it.
  SmallVector<int64_t> groupBytes;
  SmallVector<StagedOperand> staged;
  Operation *group = nullptr;
  Block *block = nullptr;
};

int64_t DotLowering::getBlockBytes(ArrayRef<tt::DotOp> dots, Block *block) {
  llvm::MapVector<Value, int64_t> sources;
  for (tt::DotOp dot : dots)
    if (dot->getBlock() == block)
      for (Value source : {Value(dot.getA()), Value(dot.getB())}) {
        // The wider one's elements; int8 is staged as float16.
        unsigned bits = std::max(dot.getA().getType().getElementTypeBitWidth(),
                                 dot.getB().getType().getElementTypeBitWidth());
        Builder builder(dot.getContext());
        Type element = bits <= 16 ? builder.getF16Type() : builder.getF32Type();
        while (isa_and_nonnull<ConvertLayoutOp, tt::TransOp>(source.getDefiningOp()))
          source = source.getDefiningOp()->getOperand(0);
        ArrayRef<int64_t> shape = cast<RankedTensorType>(source.getType()).getShape();
        int64_t bytes = getOperandTile(shape, element).getBytes();
        sources[source] = std::max(sources[source], bytes);
      }
  int64_t total = 0;
  for (const auto &[source, bytes] : sources)
    total += bytes;
  return total;
}

FailureOr<Type> DotLowering::operandElement(tt::DotOp dot) {
  Type a = dot.getA().getType().getElementType(), b = dot.getB().getType().getElementType();
  Builder builder(dot.getContext());
  if (instruction->takes(a) && instruction->takes(b)) {
    msl::Feature feature = msl::ScalarType::get(a)->feature;
    bool isThere = feature == msl::Feature::None || budget.has(feature);
    return a == b && isThere ? a : builder.getF32Type();
  }
  if (a.isInteger(8) && b.isInteger(8))
    return Type(builder.getF16Type());
  dot.emitOpError("multiplies ")
      << a << " by " << b
      << ", which simdgroup matrices cannot: use float16, bfloat16, float32 or int8";
  return failure();
}

Operand DotLowering::makeOperand(tt::DotOp dot, unsigned index, Type element,
                                 const LinearLayout &accumulator) {
  Operand operand{index == 0 ? dot.getA() : dot.getB(), index, element};
  Type type = cast<RankedTensorType>(operand.value.getType()).getElementType();
  if (auto operands = RegisterOperands::get(dot)) {
    operand.inRegisters = true;
    operand.transposed = operands->transposed[index];
    OpBuilder builder(dot);
    operand.value = convertLayout(builder, operand.value,
                                  *getOperandLayout(operand.shape(), instruction->shape, index,
                                                    accumulator, operand.transposed));
  } else if (isOperandLayout(*getLayout(operand.value), instruction->shape, index, accumulator)) {
    operand.inRegisters = true;
  } else if (auto convert = operand.value.getDefiningOp<ConvertLayoutOp>()) {
    // Memory takes the operand in whatever layout it is.
    operand.value = convert.getSrc();
  }
  // A float of the wrong width is converted first; int8 when it is stored.
  if (type != element && (operand.inRegisters || isa<FloatType>(type))) {
    OpBuilder builder(dot);
    auto tensor = cast<RankedTensorType>(operand.value.getType());
    auto wide = RankedTensorType::get(tensor.getShape(), element, tensor.getEncoding());
    if (isa<FloatType>(type))
      operand.value = arith::ExtFOp::create(builder, dot.getLoc(), wide, operand.value);
    else
      operand.value = arith::SIToFPOp::create(builder, dot.getLoc(), wide, operand.value);
  }
  if (operand.inRegisters) {
    OpBuilder builder(dot);
    if (operand.transposed)
      operand.value = transpose(builder, dot.getLoc(), operand.value, {1, 0});
    return operand;
  }
  operand.transposed = areColumnsFastest(*getLayout(operand.value));
  operand.source = operand.value;
  operand.isTurned = operand.transposed;
  auto turn = operand.value.getDefiningOp<tt::TransOp>();
  if (turn && turn.getOrder() == ArrayRef<int32_t>(operand.getExchange())) {
    operand.source = turn.getSrc();
    operand.isTurned = !operand.transposed;
  }
  for (Operation *parent = dot->getParentOp(); parent != func; parent = parent->getParentOp())
    if (auto loop = dyn_cast<LoopLikeOpInterface>(parent)) {
      if (!loop.isDefinedOutsideOfLoop(operand.value))
        break;
      operand.invariantLoop = parent;
    }
  return operand;
}

Value DotLowering::stage(OpBuilder &builder, const Operand &operand, TileType type,
                         ArrayRef<int64_t> offsets, Value tile) {
  // The tile has the operand's name.
  Location loc = operand.value.getLoc();
  Value value = operand.source;
  SmallVector<int64_t> partOffsets(offsets);
  if (operand.isTurned)
    value = transpose(builder, loc, value, operand.getExchange());
  if (operand.transposed && !partOffsets.empty())
    std::swap(partOffsets[operand.rank() - 2], partOffsets[operand.rank() - 1]);
  if (!tile)
    tile = AllocTileOp::create(builder, loc, type);
  StoreTileOp::create(builder, loc, value, tile, Value(),
                      partOffsets.empty() ? DenseI64ArrayAttr()
                                          : builder.getDenseI64ArrayAttr(partOffsets));
  return tile;
}

bool DotLowering::canJoin(ArrayRef<const Operand *> stored, int64_t bytes) {
  if (!group || stored.empty() || lacksMemory)
    return false;
  int64_t apart = invariantBytes + std::max(groupBytes.back(), bytes);
  int64_t together = invariantBytes + groupBytes.back() + bytes;
  return together <= budget.getDotBytes() && mayTake(together, apart) &&
         llvm::all_of(stored, [&](const Operand *operand) {
           Operation *op = operand->source.getDefiningOp();
           return !op || op->getBlock() != block || op->isBeforeInBlock(group);
         });
}

StagedOperand *DotLowering::findStaged(const Operand &operand, TileType type, int64_t bytes) {
  StagedOperand *found =
      llvm::find_if(staged, [&](const StagedOperand &each) { return each.has(operand, type); });
  if (operand.inRegisters || found == staged.end() || lacksMemory)
    return nullptr;
  int64_t before = bytes, with = bytes;
  for (auto [index, each] : llvm::enumerate(groupBytes)) {
    before = std::max(before, each);
    with = std::max(with, each + (index > found->lastGroup ? found->getBytes() : 0));
  }
  bool fits = invariantBytes + with <= budget.getDotBytes() &&
              mayTake(invariantBytes + with, invariantBytes + before);
  return fits ? found : nullptr;
}

/// Whether a dot is left between two loops of a block.
static bool isDotBetween(Operation *first, Operation *last) {
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode())
    if (op->walk([](Operation *each) {
            return isa<tt::DotOp, MMAOp>(each) ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted())
      return true;
  return false;
}

Value DotLowering::stageInvariant(const Operand &operand, TileType type) {
  Operation *loop = operand.invariantLoop;
  if (operand.inRegisters || !loop || lacksMemory)
    return {};
  // Dots between the loops were placed without the tile.
  auto hasTile = [&](const InvariantOperand &each) {
    Operation *last = each.loops.back();
    return each.has(operand, type) && last->getBlock() == loop->getBlock() &&
           (last == loop || (last->isBeforeInBlock(loop) && !isDotBetween(last, loop)));
  };
  InvariantOperand *found = llvm::find_if(invariants, hasTile);
  if (found != invariants.end() && found->loops.back() == loop)
    return found->tile;
  if (!allFit && invariantBytes + type.getBytes() > budget.getInvariantBytes())
    return {};
  invariantBytes += type.getBytes();
  if (found != invariants.end()) {
    found->loops.push_back(loop);
    return found->tile;
  }
  OpBuilder before(loop);
  Value tile = stage(before, operand, type, {});
  invariants.push_back({{operand.source, operand.isTurned, tile}, {loop}});
  return tile;
}

/// Whether nothing needs the value from the loop on but operands of dots and their conversions.
static bool isOperandAlone(Value value, Operation *loop) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<ConvertLayoutOp, tt::TransOp>(user))
      return isOperandAlone(user->getResult(0), loop);
    Operation *ancestor = loop->getBlock()->findAncestorOpInBlock(*user);
    return isa<tt::DotOp>(user) || (ancestor && ancestor->isBeforeInBlock(loop));
  });
}

void DotLowering::keepInRegisters(Operand &operand, const LinearLayout &accumulator) {
  Operation *loop = operand.invariantLoop;
  auto type = cast<RankedTensorType>(operand.value.getType());
  // Where registers are lacking, loops along K read one fragment after the other from memory.
  if (operand.inRegisters || !loop || lacksRegisters || type.getElementType() != operand.element)
    return;
  auto wanted =
      getOperandLayout(operand.shape(), instruction->shape, operand.index, accumulator, false);
  if (!wanted || wanted->getNumRegisters() > getLayout(operand.value)->getNumRegisters() ||
      !isOperandAlone(operand.source, loop))
    return;
  auto *known = llvm::find_if(fragments, [&](ConvertLayoutOp each) {
    return each.getSrc() == operand.value && *getLayout(each.getResult()) == *wanted &&
           each->getBlock() == loop->getBlock() && each->isBeforeInBlock(loop);
  });
  if (known != fragments.end()) {
    operand.value = known->getResult();
  } else {
    OpBuilder before(loop);
    operand.value = convertLayout(before, operand.value, *wanted);
    if (auto convert = operand.value.getDefiningOp<ConvertLayoutOp>())
      fragments.push_back(convert);
  }
  operand.inRegisters = true;
  operand.transposed = false;
}

LogicalResult DotLowering::release(const Operand &operand, Value tile) {
  Operation *loop = operand.invariantLoop;
  InvariantOperand *found = llvm::find_if(invariants, [&](const InvariantOperand &each) {
    return each.tile == tile && each.loops.back() == loop;
  });
  // The other operand may have had the same tile, and an earlier dot of the loop may have it, too.
  if (found == invariants.end() || llvm::any_of(tile.getUsers(), [&](Operation *user) {
        return isa<MMAOp>(user) && loop->isProperAncestor(user);
      }))
    return success();
  invariantBytes -= found->getBytes();
  found->loops.pop_back();
  if (!found->loops.empty())
    return success();
  invariants.erase(found);
  for (Operation *user : llvm::make_early_inc_range(tile.getUsers()))
    if (failed(eraseUnread(user)))
      return failure();
  return eraseUnread(tile.getDefiningOp());
}

LogicalResult DotLowering::lower(tt::DotOp dot) {
  auto type = cast<RankedTensorType>(dot.getType());
  std::optional<LinearLayout> layout = getLayout(type);
  // The layouts of operands in registers have been chosen for an instruction.
  if (auto operands = RegisterOperands::get(dot))
    instruction = msl::MatrixInstruction::get(operands->instruction);
  else
    instruction = getInstruction(dot, budget);
  auto tiling =
      instruction && layout ? getSimdgroupMatrixTiling(*layout, instruction->shape) : std::nullopt;
  if (!tiling)
    return dot.emitOpError("has a result that is not laid out as simdgroup matrices");
  FailureOr<Type> element = operandElement(dot);
  if (failed(element))
    return failure();
  Operand a = makeOperand(dot, 0, *element, *layout), b = makeOperand(dot, 1, *element, *layout);

  // Operands that a loop does not change stay staged over it, while there is room for those it
  // does.
  OpBuilder builder(dot);
  Location loc = dot.getLoc();
  ArrayRef<int64_t> shapeOfA = dot.getA().getType().getShape();
  const Parts all{shapeOfA.size() == 3 ? shapeOfA[0] : 1, shapeOfA.back()};
  // Loops that follow each other use the same memory.
  invariantBytes = 0;
  for (const InvariantOperand &each : invariants)
    if (llvm::any_of(each.loops, [&](Operation *loop) { return loop->isProperAncestor(dot); }))
      invariantBytes += each.getBytes();
  Value wholeA = stageInvariant(a, a.tileType(all.batch, all.k));
  Value wholeB = stageInvariant(b, b.tileType(all.batch, all.k));
  for (auto [operand, whole] : {std::pair(&a, wholeA), std::pair(&b, wholeB)})
    if (!whole)
      keepInRegisters(*operand, *layout);
  auto choosePart = [&] {
    Parts part = all;
    auto fits = [&] {
      int64_t bytes = (a.inRegisters || wholeA ? 0 : a.tileType(part.batch, part.k).getBytes()) +
                      (b.inRegisters || wholeB ? 0 : b.tileType(part.batch, part.k).getBytes());
      return bytes <= budget.getDotBytes() - invariantBytes;
    };
    // Each SIMD-group along the batch has a product in each part.
    while (!fits() && part.batch > int64_t(tiling->batch))
      part.batch /= 2;
    while (!fits() && part.k > int64_t(instruction->shape.k))
      part.k /= 2;
    return part;
  };
  Parts part = choosePart();
  bool isWhole = part.batch == all.batch && part.k == all.k;
  if (!isWhole && (wholeA || wholeB)) {
    // A tile that is multiplied in slices is staged in slices.
    for (auto [whole, operand] : {std::pair(&wholeA, &a), std::pair(&wholeB, &b)})
      if (*whole) {
        if (failed(release(*operand, *whole)))
          return failure();
        *whole = Value();
      }
    part = choosePart();
    isWhole = part.batch == all.batch && part.k == all.k;
  }

  // What an earlier dot has staged is taken from there.
  if (dot->getBlock() != block) {
    block = dot->getBlock();
    group = nullptr;
    groupBytes.clear();
    staged.clear();
  }
  SmallVector<StagedOperand *> kept;
  auto bytesOf = [&](const Operand &operand, Value whole) {
    return operand.inRegisters || whole ? 0 : operand.tileType(part.batch, part.k).getBytes();
  };
  for (auto [operand, whole] : {std::pair(&a, &wholeA), std::pair(&b, &wholeB)})
    if (isWhole && !*whole)
      if (StagedOperand *found = findStaged(*operand, operand->tileType(all.batch, all.k),
                                            bytesOf(a, wholeA) + bytesOf(b, wholeB))) {
        *whole = found->tile;
        kept.push_back(found);
        for (size_t index = found->lastGroup + 1; index < groupBytes.size(); ++index)
          groupBytes[index] += found->getBytes();
        found->lastGroup = groupBytes.size() - 1;
      }

  // The sum is float32 whatever the accumulator.
  Type resultElement = type.getElementType();
  auto f32 = RankedTensorType::get(type.getShape(), builder.getF32Type(), type.getEncoding());
  Value acc = dot.getC();
  if (isa<IntegerType>(resultElement))
    acc = arith::ConstantOp::create(builder, loc,
                                    DenseElementsAttr::get(f32, builder.getF32FloatAttr(0)));
  else if (!resultElement.isF32())
    acc = arith::ExtFOp::create(builder, loc, f32, acc);
  SmallVector<const Operand *> stored;
  int64_t bytes = 0;
  for (auto [operand, whole] : {std::pair(&a, wholeA), std::pair(&b, wholeB)})
    if (!operand->inRegisters && !whole) {
      stored.push_back(operand);
      bytes += bytesOf(*operand, {});
    }
  bool joins = isWhole && canJoin(stored, bytes);
  OpBuilder storing(joins ? group : dot);
  Operation *first = nullptr;
  Value tileA, tileB;
  for (int64_t batch = 0; batch < all.batch; batch += part.batch)
    for (int64_t offset = 0; offset < all.k; offset += part.k) {
      auto operandOf = [&](const Operand &operand, Value whole, Value &tile) {
        if (operand.inRegisters)
          return operand.value;
        if (whole)
          return whole;
        SmallVector<int64_t> offsets;
        if (!isWhole) {
          offsets.assign(operand.rank(), 0);
          if (operand.rank() == 3)
            offsets[0] = batch;
          offsets[operand.kDim()] = offset;
        }
        return tile = stage(storing, operand, operand.tileType(part.batch, part.k), offsets, tile);
      };
      Value operandA = operandOf(a, wholeA, tileA), operandB = operandOf(b, wholeB, tileB);
      // Registers hold all of K, tiles this part.
      int64_t registerOffset = a.inRegisters || b.inRegisters ? offset : 0;
      acc = MMAOp::create(builder, loc, f32, acc, operandA, Value(), operandB, Value(),
                          instruction->shape, a.transposed, b.transposed, isRelaxed(dot),
                          registerOffset, batch);
      first = first ? first : acc.getDefiningOp();
    }
  if (joins) {
    groupBytes.back() += bytes;
  } else {
    group = isWhole && bytes ? first : nullptr;
    groupBytes.push_back(bytes);
    for (StagedOperand *each : kept) {
      groupBytes.back() += each->getBytes();
      each->lastGroup = groupBytes.size() - 1;
    }
  }
  for (auto [operand, tile] : {std::pair(&a, tileA), std::pair(&b, tileB)})
    if (tile && isWhole)
      staged.push_back({{operand->source, operand->isTurned, tile}, groupBytes.size() - 1});
  Value result = acc;
  if (isa<IntegerType>(resultElement))
    result = arith::AddIOp::create(builder, loc, arith::FPToSIOp::create(builder, loc, type, acc),
                                   dot.getC());
  else if (!resultElement.isF32())
    result = arith::TruncFOp::create(builder, loc, type, acc);
  dot.getResult().replaceAllUsesWith(result);
  // Conversions and transposes that memory has made superfluous; one may be several operands.
  llvm::SmallSetVector<Operation *, 3> converts;
  for (Value operand : dot->getOperands())
    if (isa_and_nonnull<ConvertLayoutOp, tt::TransOp>(operand.getDefiningOp()))
      converts.insert(operand.getDefiningOp());
  if (failed(eraseUnread(dot)))
    return failure();
  for (Operation *convert : converts)
    if (convert->use_empty())
      convert->erase();
  return success();
}

struct TTMLowerDotPass : impl::TTMLowerDotBase<TTMLowerDotPass> {
  void runOnOperation() override {
    for (tt::FuncOp func : getOperation().getOps<tt::FuncOp>())
      if (failed(DotLowering(func).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace triton_metal
