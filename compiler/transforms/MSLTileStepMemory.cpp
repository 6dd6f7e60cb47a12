// Loads, stores and atomics in a step of a loop over registers.

#include "transforms/MSLArrays.h"
#include "transforms/MSLRegisterLoops.h"
#include "transforms/MSLTileStep.h"
#include "transforms/MSLTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal::msl;

//===----------------------------------------------------------------------===//
// Registers one by one
//===----------------------------------------------------------------------===//

/// Whether all operands that are computed on demand can be computed at a loop's index. The other
/// operands are whole chunks, whose components can be indexed.
static bool canLoopOverComponents(Operation *op) {
  SmallVector<Value> roots;
  int64_t registers = 1;
  for (Value operand : op->getOperands()) {
    registers = std::max(registers, getNumRegisters(operand.getType()));
    if (isOnDemand(operand))
      roots.push_back(operand);
  }
  return canBeIndexed(roots, registers);
}

void TileStep::forEachComponent(Operation *op, int64_t part,
                                function_ref<void(const StepPart &, Value)> body) {
  Location loc = op->getLoc();
  int64_t width = getChunkWidth();
  if (width == 1 || writtenOut || !canLoopOverComponents(op)) {
    for (int64_t component = 0; component < width; ++component)
      body(part + component, createConstant(builder, loc, component, builder.getI32Type()));
    return;
  }
  OpBuilder::InsertionGuard guard(builder);
  auto loop = UnrollOp::create(builder, loc, 0, width);
  builder.setInsertionPoint(loop.getBody().front().getTerminator());
  body({part, loop.getIndex(), width}, loop.getIndex());
}

Value TileStep::createByComponent(Operation *op, int64_t part,
                                  function_ref<Value(const StepPart &)> compute) {
  Location loc = op->getLoc();
  Type type = getChunkType(op->getResult(0).getType(), getChunkWidth());
  Value variable = createVariable(builder, loc, type, getChunkWidth());
  forEachComponent(op, part, [&](const StepPart &where, Value component) {
    SetOp::create(builder, loc, compute(where), variable, Value(), component);
  });
  return readWhole(builder, loc, variable);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

/// The number of 32-bit words in a Metal vector of `width` elements.
static int64_t getNumWords(Type element, int64_t width) {
  return std::max<int64_t>(element.getIntOrFloatBitWidth(), 8) * width / 32;
}

/// The type of an access at once. Metal vectors have up to four components; wider accesses use
/// vectors of 32-bit words.
static Type getCarrier(Type element, int64_t width, bool unaligned) {
  // Not every compiler has packed vectors of bfloat.
  if (unaligned && element.isBF16())
    element = IntegerType::get(element.getContext(), 16);
  if (width <= kLargestChunk)
    return getChunkType(element, width);
  return getChunkType(IntegerType::get(element.getContext(), 32), getNumWords(element, width));
}

std::pair<Value, Value> TileStep::createAddress(const Access &access, Location loc, Value address) {
  if (access.base)
    return {access.base, address};
  return {
      IntToPtrOp::create(builder, loc, PtrType::get(access.element, AddressSpace::Device), address),
      Value()};
}

Value TileStep::createRead(const Access &access, Location loc, const StepPart &part, int64_t width,
                           SmallVectorImpl<Value> &chunks, Value group) {
  Value base = group, offset = part.index;
  if (!group)
    std::tie(base, offset) = createAddress(access, loc, get(access.addresses, part, 1));
  bool unaligned = access.unaligned && width > 1;
  Type carrier = getCarrier(access.element, width, unaligned),
       chunkType = getChunkType(access.element, width);
  bool asBits = unaligned && carrier != chunkType;
  int64_t words = getNumWords(access.element, kLargestChunk);
  Value condition, other;
  auto createZero = [&]() -> Value {
    return arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(carrier)));
  };
  if (isMasked(access)) {
    condition = get(access.mask, part, 1);
    if (!access.other || matchPattern(access.other, m_Zero()) ||
        matchPattern(access.other, m_PosZeroFloat())) {
      other = createZero();
    } else if (width <= kLargestChunk) {
      other = get(access.other, part, width);
      if (asBits)
        other = AsTypeOp::create(builder, loc, carrier, other);
    } else {
      SmallVector<Value> parts;
      for (int64_t first = 0; first < width; first += kLargestChunk)
        parts.push_back(AsTypeOp::create(builder, loc, getChunkType(builder.getI32Type(), words),
                                         get(access.other, part.plus(first), kLargestChunk)));
      other = VectorOp::create(builder, loc, carrier, parts);
    }
  }
  Value read = ReadOp::create(builder, loc, carrier, base, offset, condition, other,
                              access.isVolatile, unaligned);
  if (asBits)
    read = AsTypeOp::create(builder, loc, chunkType, read);
  if (width <= kLargestChunk) {
    chunks.push_back(read);
    return read;
  }
  for (int64_t chunk = 0; chunk < width / kLargestChunk; ++chunk)
    chunks.push_back(AsTypeOp::create(builder, loc, getChunkType(access.element, kLargestChunk),
                                      createSwizzle(builder, loc, read, chunk * words, words)));
  return read;
}

void TileStep::lowerLoad(Operation *op) {
  Access access = *Access::get(op);
  Location loc = op->getLoc();
  int64_t chunkWidth = getChunkWidth(), width = getAccessWidth(access);
  SmallVector<Value, 1> chunks;
  if (getKnown(access.mask) == false) {
    // Nothing is read, and the same goes on as where a mask is false.
    for (int64_t part = 0; part < step; part += chunkWidth) {
      Type type = getChunkType(access.element, chunkWidth);
      chunks.push_back(access.other ? get(access.other, part, chunkWidth)
                                    : arith::ConstantOp::create(
                                          builder, loc, cast<TypedAttr>(builder.getZeroAttr(type)))
                                          .getResult());
    }
    computed[op->getResult(0)] = std::move(chunks);
    return;
  }
  if (width >= chunkWidth) {
    for (int64_t part = 0; part < step; part += width)
      createRead(access, loc, part, width, chunks);
    computed[op->getResult(0)] = std::move(chunks);
    return;
  }
  for (int64_t part = 0; part < step; part += chunkWidth) {
    if (width == 1 && chunkWidth > 2) {
      // Neighbours in memory of which the mask lets some pass have one address: a sum for each of
      // them would be an offset of 64 bits, as it may wrap around where the pointer does not.
      Value group;
      if (access.base && areNeighbours(access) && canLoopOverComponents(op) && !writtenOut)
        group = PtrAddOp::create(builder, loc, access.base.getType(), access.base,
                                 get(access.addresses, part, 1));
      chunks.push_back(createByComponent(op, part, [&](const StepPart &where) {
        SmallVector<Value> parts;
        return createRead(access, loc, where, 1, parts, group);
      }));
      continue;
    }
    // The chunk is read in pieces.
    SmallVector<Value> parts;
    for (int64_t piece = 0; piece < chunkWidth; piece += width)
      createRead(access, loc, part + piece, width, parts);
    chunks.push_back(
        VectorOp::create(builder, loc, getChunkType(access.element, chunkWidth), parts));
  }
  computed[op->getResult(0)] = std::move(chunks);
}

void TileStep::createWrite(const Access &access, Location loc, const StepPart &part, int64_t width,
                           ValueRange chunks) {
  Value value = chunks[0];
  if (width > kLargestChunk) {
    Type words = getChunkType(builder.getI32Type(), getNumWords(access.element, kLargestChunk));
    SmallVector<Value> parts;
    for (Value chunk : chunks)
      parts.push_back(AsTypeOp::create(builder, loc, words, chunk));
    value = VectorOp::create(builder, loc, getCarrier(access.element, width, false), parts);
  }
  bool unaligned = access.unaligned && width > 1;
  if (Type carrier = getCarrier(access.element, width, unaligned);
      unaligned && carrier != value.getType())
    value = AsTypeOp::create(builder, loc, carrier, value);
  OpBuilder::InsertionGuard guard(builder);
  if (isMasked(access)) {
    auto conditional =
        scf::IfOp::create(builder, loc, get(access.mask, part, 1), /*withElseRegion=*/false);
    builder.setInsertionPoint(conditional.thenBlock()->getTerminator());
  }
  auto [base, offset] = createAddress(access, loc, get(access.addresses, part, 1));
  WriteOp::create(builder, loc, value, base, offset, unaligned);
}

void TileStep::lowerStore(Operation *op) {
  Access access = *Access::get(op);
  Location loc = op->getLoc();
  int64_t chunkWidth = getChunkWidth(), width = getAccessWidth(access);
  if (getKnown(access.mask) == false)
    return;
  // Chunks of values that are computed on demand are computed at the store.
  SmallVector<Value> chunks;
  if (width >= chunkWidth || !isOnDemand(access.value))
    for (int64_t part = 0; part < step; part += chunkWidth)
      chunks.push_back(get(access.value, part, chunkWidth));
  if (width >= chunkWidth) {
    for (int64_t part = 0; part < step; part += width)
      createWrite(access, loc, part, width,
                  ArrayRef(chunks).slice(part / chunkWidth, width / chunkWidth));
    return;
  }
  for (int64_t part = 0; part < step; part += chunkWidth) {
    if (width == 1 && chunkWidth > 2) {
      forEachComponent(op, part, [&](const StepPart &where, Value) {
        createWrite(access, loc, where, 1, get(access.value, where, 1));
      });
      continue;
    }
    for (int64_t piece = 0; piece < chunkWidth; piece += width)
      createWrite(access, loc, part + piece, width, get(access.value, part + piece, width));
  }
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

void triton_metal::msl::addAtomicBase(OpBuilder &builder, Operation *op) {
  auto update = [&](auto atomic) {
    if (atomic.getBase())
      return;
    Location loc = op->getLoc();
    Type element = atomic.getType();
    atomic.getBaseMutable().assign(IntToPtrOp::create(
        builder, loc, PtrType::get(element, AddressSpace::Device), atomic.getOffsets()));
    atomic.getOffsetsMutable().assign(createConstant(builder, loc, 0, builder.getI32Type()));
  };
  if (auto rmw = dyn_cast<AtomicRMWOp>(op))
    update(rmw);
  else
    update(cast<AtomicCASOp>(op));
}

Value TileStep::createAtomic(Operation *op, const StepPart &part) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, get(operand, part, 1));
  Operation *atomic = builder.clone(*op, mapping);
  atomic->getResult(0).setType(getElementTypeOrSelf(op->getResult(0).getType()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(atomic);
  addAtomicBase(builder, atomic);
  return atomic->getResult(0);
}

void TileStep::lowerAtomic(Operation *op) {
  Value result = op->getResult(0);
  int64_t chunkWidth = getChunkWidth();
  SmallVector<Value, 1> chunks;
  for (int64_t part = 0; part < step; part += chunkWidth) {
    if (chunkWidth == 1) {
      chunks.push_back(createAtomic(op, part));
      continue;
    }
    // The chunks of the operands are computed before the loop over their components.
    for (Value operand : op->getOperands())
      if (isTile(operand) && !isOnDemand(operand))
        get(operand, part, chunkWidth);
    if (result.use_empty())
      forEachComponent(op, part, [&](const StepPart &where, Value) { createAtomic(op, where); });
    else
      chunks.push_back(createByComponent(
          op, part, [&](const StepPart &where) { return createAtomic(op, where); }));
  }
  if (!chunks.empty())
    computed[result] = std::move(chunks);
}
