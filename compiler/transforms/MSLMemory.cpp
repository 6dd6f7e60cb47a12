// Loads, stores and atomics of one step of a loop over registers.

#include "transforms/MSLEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace triton_metal::msl;

struct Emitter::AccessInfo {
  Value base, addresses, mask, other, value;
  Type element;
  int64_t width = 1, maskWidth = 1;
  /// Whether the uniform test that chose the loop without masks speaks for this access.
  bool hasFull = false;
  bool isVolatile = false;

  bool isMasked(bool guarded) const { return mask && (guarded || !hasFull); }
  /// Elements that one access takes. Where the uniform test fails, the alignment may be what
  /// failed.
  int64_t getAccessWidth(bool guarded) const {
    if (element.isInteger(1))
      return 1;
    return isMasked(guarded) || (guarded && hasFull) ? std::min(width, maskWidth) : width;
  }
};

Emitter::AccessInfo Emitter::getAccessInfo(Operation *op) {
  AccessInfo info;
  auto fill = [&](auto access) {
    info.mask = access.getMask();
    info.width = access.getWidth();
    info.maskWidth = access.getMaskWidth();
    info.hasFull = bool(access.getFull());
  };
  if (auto load = dyn_cast<LoadOp>(op)) {
    fill(load);
    info.isVolatile = load.getIsVolatile();
    info.base = load.getBase();
    info.addresses = load.getOffsets();
    info.other = load.getOther();
    info.element = getElementTypeOrSelf(load.getType());
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    fill(store);
    info.base = store.getBase();
    info.addresses = store.getOffsets();
    info.value = store.getValue();
    info.element = getElementTypeOrSelf(store.getValue().getType());
  } else if (auto load = dyn_cast<LoadAddressOp>(op)) {
    fill(load);
    info.isVolatile = load.getIsVolatile();
    info.addresses = load.getAddresses();
    info.other = load.getOther();
    info.element = getElementTypeOrSelf(load.getType());
  } else {
    auto storeAddress = cast<StoreAddressOp>(op);
    fill(storeAddress);
    info.addresses = storeAddress.getAddresses();
    info.value = storeAddress.getValue();
    info.element = getElementTypeOrSelf(storeAddress.getValue().getType());
  }
  return info;
}

/// Metal vectors have up to four components; wider accesses go through vectors of 32-bit words.
static Type getCarrier(Type element, int64_t width) {
  if (width <= 4)
    return getChunkType(element, width);
  int64_t words = std::max<int64_t>(element.getIntOrFloatBitWidth(), 8) * width / 32;
  return getChunkType(IntegerType::get(element.getContext(), 32), words);
}

Value Emitter::emitRead(const AccessInfo &info, Operation *op, const Coord &at, int64_t width,
                        bool masked, SmallVectorImpl<Value> &parts) {
  Location loc = op->getLoc();
  Value address = get(info.addresses, at, 1), base, offset;
  if (info.base) {
    base = getScalar(info.base);
    offset = address;
  } else {
    base =
        IntToPtrOp::create(builder, loc, PtrType::get(info.element, AddressSpace::Device), address);
  }
  Type carrier = getCarrier(info.element, width);
  Value condition, other;
  if (masked) {
    condition = get(info.mask, at, 1);
    if (!info.other) {
      other =
          arith::ConstantOp::create(builder, loc, cast<TypedAttr>(builder.getZeroAttr(carrier)));
    } else if (width <= 4) {
      other = get(info.other, at, width);
    } else {
      SmallVector<Value> words;
      bool zero = true;
      int64_t bits = std::max<int64_t>(info.element.getIntOrFloatBitWidth(), 8) * 4;
      for (int64_t part = 0; part < width; part += 4) {
        Value chunk = get(info.other, at.plus(part), 4);
        Attribute attr;
        zero &=
            matchPattern(chunk, m_Constant(&attr)) && attr == builder.getZeroAttr(chunk.getType());
        words.push_back(
            AsTypeOp::create(builder, loc, getChunkType(builder.getI32Type(), bits / 32), chunk));
      }
      other = zero ? arith::ConstantOp::create(builder, loc,
                                               cast<TypedAttr>(builder.getZeroAttr(carrier)))
                         .getResult()
                   : VectorOp::create(builder, loc, carrier, words).getResult();
    }
  }
  Value read =
      ReadOp::create(builder, loc, carrier, base, offset, condition, other, info.isVolatile);
  if (width <= 4) {
    parts.push_back(read);
    return read;
  }
  int64_t words = std::max<int64_t>(info.element.getIntOrFloatBitWidth(), 8) * 4 / 32;
  for (int64_t part = 0; part < width / 4; ++part)
    parts.push_back(AsTypeOp::create(builder, loc, getChunkType(info.element, 4),
                                     swizzle(loc, read, part * words, words)));
  return read;
}

void Emitter::emitLoad(Operation *op, const Coord &at, int64_t step, bool guarded) {
  AccessInfo info = getAccessInfo(op);
  Value result = op->getResult(0);
  bool masked = info.isMasked(guarded);
  int64_t access = info.getAccessWidth(guarded);
  int64_t chunk = std::min<int64_t>(step, 4);
  access = std::min(access, step);
  Location loc = op->getLoc();
  if (access >= chunk) {
    for (int64_t part = 0; part < step; part += access) {
      SmallVector<Value> parts;
      emitRead(info, op, at.plus(part), access, masked, parts);
      for (auto [index, piece] : llvm::enumerate(parts))
        remember(result, at.plus(part + index * chunk), chunk, piece);
    }
    return;
  }
  for (int64_t part = 0; part < step; part += chunk) {
    Coord first = at.plus(part);
    if (access > 1 || chunk == 2) {
      // Two halves.
      SmallVector<Value> parts;
      for (int64_t piece = 0; piece < chunk; piece += access)
        emitRead(info, op, first.plus(piece), access, masked, parts);
      remember(
          result, first, chunk,
          VectorOp::create(builder, loc, getChunkType(info.element, chunk), parts).getResult());
      continue;
    }
    Storage storage = makeStorage(loc, VectorType::get(chunk, info.element), chunk, false);
    emitElements(op, first, chunk, [&](const Coord &element, const Coord &component) {
      SmallVector<Value> parts;
      emitRead(info, op, element, 1, masked, parts);
      SetOp::create(builder, loc, parts[0], storage.variable, Value(),
                    getComponent(loc, component));
    });
    remember(result, first, chunk, readStorage(loc, storage, Coord(), chunk));
  }
}

void Emitter::emitWrite(const AccessInfo &info, Operation *op, const Coord &at, int64_t width,
                        bool masked, ValueRange parts) {
  Location loc = op->getLoc();
  Value value = parts[0];
  if (width > 4) {
    SmallVector<Value> words;
    int64_t count = std::max<int64_t>(info.element.getIntOrFloatBitWidth(), 8) * 4 / 32;
    for (Value part : parts)
      words.push_back(
          AsTypeOp::create(builder, loc, getChunkType(builder.getI32Type(), count), part));
    value = VectorOp::create(builder, loc, getCarrier(info.element, width), words);
  }
  OpBuilder::InsertionGuard guard(builder);
  std::optional<Scope> scope;
  if (masked) {
    auto conditional =
        scf::IfOp::create(builder, loc, get(info.mask, at, 1), /*withElseRegion=*/false);
    builder.setInsertionPoint(conditional.thenBlock()->getTerminator());
    scope.emplace(*this);
  }
  Value address = get(info.addresses, at, 1);
  if (info.base)
    WriteOp::create(builder, loc, value, getScalar(info.base), address);
  else
    WriteOp::create(
        builder, loc, value,
        IntToPtrOp::create(builder, loc, PtrType::get(info.element, AddressSpace::Device), address),
        Value());
}

void Emitter::emitStore(Operation *op, const Coord &at, int64_t step, bool guarded) {
  AccessInfo info = getAccessInfo(op);
  bool masked = info.isMasked(guarded);
  int64_t access = info.getAccessWidth(guarded);
  int64_t chunk = std::min<int64_t>(step, 4);
  access = std::min(access, step);
  SmallVector<Value> parts;
  if (access >= chunk || !plan.isLazy(info.value))
    for (int64_t part = 0; part < step; part += chunk)
      parts.push_back(get(info.value, at.plus(part), chunk));
  if (access >= chunk) {
    int64_t count = access / chunk;
    for (int64_t part = 0; part < step; part += access)
      emitWrite(info, op, at.plus(part), access, masked,
                ArrayRef(parts).slice(part / chunk, count));
    return;
  }
  for (int64_t part = 0; part < step; part += chunk) {
    Coord first = at.plus(part);
    if (access > 1 || chunk == 2) {
      for (int64_t piece = 0; piece < chunk; piece += access)
        emitWrite(info, op, first.plus(piece), access, masked,
                  {get(info.value, first.plus(piece), access)});
      continue;
    }
    emitElements(op, first, chunk, [&](const Coord &element, const Coord &) {
      emitWrite(info, op, element, 1, masked, {get(info.value, element, 1)});
    });
  }
}

void Emitter::emitAtomic(Operation *op, const Coord &at, int64_t step) {
  Location loc = op->getLoc();
  Value result = op->getResult(0);
  int64_t chunk = std::min<int64_t>(step, 4);
  auto emitOne = [&](const Coord &element) -> Value {
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, get(operand, element, 1));
    Operation *scalar = builder.clone(*op, mapping);
    scalar->getResult(0).setType(getChunkType(result.getType(), 1));
    return scalar->getResult(0);
  };
  for (int64_t part = 0; part < step; part += chunk) {
    Coord first = at.plus(part);
    if (chunk == 1) {
      remember(result, first, 1, emitOne(first));
      continue;
    }
    // The operands' chunks are made before the loop over their components.
    for (Value operand : op->getOperands())
      if (getNumRegisters(operand.getType()) > 1 && !plan.isLazy(operand))
        get(operand, first, chunk);
    if (result.use_empty()) {
      emitElements(op, first, chunk,
                   [&](const Coord &element, const Coord &) { emitOne(element); });
      continue;
    }
    Storage storage = makeStorage(
        loc, VectorType::get(chunk, getElementTypeOrSelf(result.getType())), chunk, false);
    emitElements(op, first, chunk, [&](const Coord &element, const Coord &component) {
      SetOp::create(builder, loc, emitOne(element), storage.variable, Value(),
                    getComponent(loc, component));
    });
    remember(result, first, chunk, readStorage(loc, storage, Coord(), chunk));
  }
}
