// Loads, stores and atomic updates.
#include "language/Builder.h"
#include "language/CacheHints.h"
#include "language/Writable.h"

#include "dialect/tt/TT.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace triton_metal::language {

static llvm::Error badPointer(const Value &pointer, const char *operation) {
  return typeError(llvm::Twine(operation) + " takes a pointer, not " + pointer.type.str() +
                   ": a pointer is an array argument, or the sum of one and integers");
}

static llvm::Expected<tt::CacheModifier> cacheModifier(llvm::StringRef name, bool isStore) {
  using tt::CacheModifier;
  auto parsed = llvm::StringSwitch<std::optional<CacheModifier>>(name)
                    .Case("", CacheModifier::NONE)
                    .Case(".ca", CacheModifier::CA)
                    .Case(".cg", CacheModifier::CG)
                    .Case(".wb", CacheModifier::WB)
                    .Case(".cs", CacheModifier::CS)
                    .Case(".wt", CacheModifier::WT)
                    .Case(".cv", CacheModifier::CV)
                    .Default(std::nullopt);
  bool fits = parsed && (isStore ? *parsed != CacheModifier::CA && *parsed != CacheModifier::CV
                                 : *parsed != CacheModifier::WB && *parsed != CacheModifier::WT);
  if (!fits)
    return valueError("unknown cache modifier '" + name + "': " +
                      (isStore ? "a store knows '.wb', '.cg', '.cs' and '.wt'"
                               : "a load knows '.ca', '.cg', '.cs' and '.cv'"));
  return *parsed;
}

static llvm::Expected<tt::EvictionPolicy> evictionPolicy(llvm::StringRef name) {
  if (name.empty())
    return tt::EvictionPolicy::NORMAL;
  if (name == "evict_last")
    return tt::EvictionPolicy::EVICT_LAST;
  if (name == "evict_first")
    return tt::EvictionPolicy::EVICT_FIRST;
  return valueError("unknown eviction policy '" + name +
                    "': 'evict_first' and 'evict_last' are known");
}

llvm::Expected<tt::CachePolicyAttr> cachePolicy(MLIRContext *context, llvm::StringRef modifier,
                                                llvm::StringRef eviction, bool isStore) {
  llvm::Expected<tt::CacheModifier> cache = cacheModifier(modifier, isStore);
  if (!cache)
    return cache.takeError();
  llvm::Expected<tt::EvictionPolicy> policy = evictionPolicy(eviction);
  if (!policy)
    return policy.takeError();
  if (*cache == tt::CacheModifier::NONE && *policy == tt::EvictionPolicy::NORMAL)
    return tt::CachePolicyAttr();
  return tt::CachePolicyAttr::get(context, *cache, *policy);
}

static bool pointsToBool(const Value &pointer) { return pointer.type.scalar().pointee().isBool(); }

Result Builder::memoryPointer(const Value &pointer) {
  if (!pointsToBool(pointer))
    return pointer;
  return cast(pointer, Type::pointerTo(Type(ScalarKind::Int8), pointer.type.scalar().isConst()));
}

/// Whether a number becomes a constant of the element's type directly. An integer type must hold
/// the number; other numbers are converted, and wrap. As in Triton, a float is a float32 first, and
/// rounding that is left to an operation.
static bool fitsDirectly(const Constant &number, Type element) {
  if (element.isFloating())
    return number.kind != Constant::Kind::Float || element.is(ScalarKind::Float32);
  if (!element.isInteger() || element.isBool() || number.kind == Constant::Kind::Float)
    return false;
  unsigned valueBits = element.bitWidth() - (element.isSigned() ? 1 : 0);
  __int128 limit = static_cast<__int128>(1) << valueBits;
  return number.integer < limit && number.integer >= (element.isSigned() ? -limit : 0);
}

Result Builder::load(const Value &pointer, std::optional<Operand> mask,
                     std::optional<Operand> other, llvm::StringRef cache, llvm::StringRef eviction,
                     bool isVolatile) {
  if (!pointer.type.scalar().isPointer())
    return badPointer(pointer, "load");
  llvm::Expected<tt::CachePolicyAttr> policy =
      cachePolicy(builder.getContext(), cache, eviction, /*isStore=*/false);
  if (!policy)
    return policy.takeError();
  if (!mask && other)
    return valueError("load: `other` needs a `mask`");

  Value ptr = pointer;
  std::optional<Value> maskValue, otherValue;
  if (mask) {
    Result tensor = toTensor(*mask);
    if (!tensor)
      return tensor;
    maskValue = *tensor;
    if (!maskValue->type.scalar().isBool())
      return valueError("load: the mask must be boolean, not " + maskValue->type.str());
    if (!ptr.type.isBlock() && maskValue->type.isBlock())
      return valueError("load: the mask is a tile (" + maskValue->type.str() +
                        "), but the pointer is a scalar");
    llvm::Expected<Operands> pair =
        broadcastPair(ptr, *maskValue, "load: the pointer and the mask: ");
    if (!pair)
      return pair.takeError();
    ptr = pair->lhs;
    maskValue = pair->rhs;
  }
  bool isBool = pointsToBool(ptr);
  Type element = memoryType(ptr.type.scalar().pointee());
  if (other) {
    const Constant *number = std::get_if<Constant>(&*other);
    Result tensor = number && fitsDirectly(*number, element)
                        ? constant(*number, element, ptr.type.getShape())
                        : cast(*other, element);
    if (!tensor)
      return tensor;
    if (!ptr.type.isBlock() && tensor->type.isBlock())
      return valueError("load: `other` is a tile (" + tensor->type.str() +
                        "), but the pointer is a scalar");
    llvm::Expected<Operands> pair = broadcastPair(ptr, *tensor, "load: the pointer and `other`: ");
    if (!pair)
      return pair.takeError();
    if (pair->lhs.type != ptr.type)
      return valueError("load: `other` (" + tensor->type.str() + ") is larger than the pointer (" +
                        ptr.type.str() + ")");
    otherValue = pair->rhs;
  }
  Result place = memoryPointer(ptr);
  if (!place)
    return place;
  ptr = *place;
  Type type = ptr.type.withScalar(element);
  Value loaded = make<tt::LoadOp>(type, mlirType(type), ptr.handle,
                                  maskValue ? maskValue->handle : mlir::Value(),
                                  otherValue ? otherValue->handle : mlir::Value(),
                                  tt::CacheModifier::NONE, tt::EvictionPolicy::NORMAL, *policy,
                                  isVolatile, mlir::DenseI32ArrayAttr(), mlir::IntegerAttr());
  return isBool ? cast(loaded, Type(ScalarKind::Int1)) : Result(loaded);
}

llvm::Error Builder::store(const Value &pointer, const Operand &value, std::optional<Operand> mask,
                           llvm::StringRef cache, llvm::StringRef eviction) {
  if (!pointer.type.scalar().isPointer())
    return badPointer(pointer, "store");
  if (llvm::Error error = checkWritable(pointer.type))
    return error;
  llvm::Expected<tt::CachePolicyAttr> policy =
      cachePolicy(builder.getContext(), cache, eviction, /*isStore=*/true);
  if (!policy)
    return policy.takeError();

  Value ptr = pointer;
  Type element = ptr.type.scalar().pointee();
  const Constant *number = std::get_if<Constant>(&value);
  Result stored = number && fitsDirectly(*number, element)
                      ? constant(*number, element, ptr.type.getShape())
                      : toTensor(value);
  if (!stored)
    return stored.takeError();
  std::optional<Value> maskValue;
  if (mask) {
    Result tensor = toTensor(*mask);
    if (!tensor)
      return tensor.takeError();
    maskValue = *tensor;
    if (!maskValue->type.scalar().isBool())
      return valueError("store: the mask must be boolean, not " + maskValue->type.str());
  }
  if (!ptr.type.isBlock()) {
    if (stored->type.isBlock())
      return valueError("store: the value is a tile (" + stored->type.str() +
                        "), but the pointer is a scalar: add offsets such as tl.arange to it");
    if (maskValue && maskValue->type.isBlock())
      return valueError("store: the mask is a tile (" + maskValue->type.str() +
                        "), but the pointer is a scalar");
  } else {
    for (Value *operand : {&*stored, maskValue ? &*maskValue : nullptr}) {
      if (!operand)
        continue;
      llvm::StringRef name = operand == &*stored ? "value" : "mask";
      llvm::Expected<Operands> pair =
          broadcastPair(ptr, *operand, "store: the pointer and the " + name + ": ");
      if (!pair)
        return pair.takeError();
      if (pair->lhs.type != ptr.type)
        return valueError("store: the pointer (" + ptr.type.str() + ") is smaller than " +
                          operand->type.str() + ", which is stored or masks it");
      *operand = pair->rhs;
    }
  }
  Result converted = cast(*stored, element);
  if (!converted)
    return converted.takeError();
  Result place = memoryPointer(ptr);
  if (!place)
    return place.takeError();
  converted = cast(*converted, memoryType(element));
  if (!converted)
    return converted.takeError();
  tt::StoreOp::create(builder, location, place->handle, converted->handle,
                      maskValue ? maskValue->handle : mlir::Value(), tt::CacheModifier::NONE,
                      tt::EvictionPolicy::NORMAL, *policy, mlir::DenseI32ArrayAttr());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

static llvm::Expected<tt::MemSemantic> semantic(llvm::StringRef name) {
  auto parsed = llvm::StringSwitch<std::optional<tt::MemSemantic>>(name)
                    .Cases({"", "acq_rel"}, tt::MemSemantic::ACQUIRE_RELEASE)
                    .Case("acquire", tt::MemSemantic::ACQUIRE)
                    .Case("release", tt::MemSemantic::RELEASE)
                    .Case("relaxed", tt::MemSemantic::RELAXED)
                    .Default(std::nullopt);
  if (!parsed)
    return valueError("unknown memory semantic '" + name +
                      "': 'acquire', 'release', 'acq_rel' and 'relaxed' are known");
  return *parsed;
}

static llvm::Expected<tt::MemSyncScope> syncScope(llvm::StringRef name) {
  auto parsed = llvm::StringSwitch<std::optional<tt::MemSyncScope>>(name)
                    .Cases({"", "gpu"}, tt::MemSyncScope::GPU)
                    .Case("cta", tt::MemSyncScope::CTA)
                    .Case("sys", tt::MemSyncScope::SYSTEM)
                    .Default(std::nullopt);
  if (!parsed)
    return valueError("unknown memory scope '" + name + "': 'gpu', 'cta' and 'sys' are known");
  return *parsed;
}

Result Builder::atomicRmw(AtomicOp op, const Value &pointer, const Operand &value,
                          std::optional<Operand> mask, llvm::StringRef sem, llvm::StringRef scope) {
  static const char *const names[] = {"add", "and", "or", "xor", "max", "min", "xchg"};
  std::string name = std::string("atomic_") + names[static_cast<unsigned>(op)];
  if (!pointer.type.scalar().isPointer())
    return badPointer(pointer, name.c_str());
  if (llvm::Error error = checkWritable(pointer.type))
    return std::move(error);
  llvm::Expected<tt::MemSemantic> semanticKind = semantic(sem);
  if (!semanticKind)
    return semanticKind.takeError();
  llvm::Expected<tt::MemSyncScope> scopeKind = syncScope(scope);
  if (!scopeKind)
    return scopeKind.takeError();

  Type element = pointer.type.scalar().pointee();
  bool isHalf = element.is(ScalarKind::Float16) || element.is(ScalarKind::BFloat16);
  bool narrowInteger = element.isInteger() && element.bitWidth() < 32;
  // Floats of 8 bits are only exchanged.
  bool narrowFloat = element.isFloating() && element.bitWidth() < 16 && op != AtomicOp::Xchg;
  bool bitwise = op == AtomicOp::And || op == AtomicOp::Or || op == AtomicOp::Xor;
  if ((isHalf && op != AtomicOp::Add) || narrowInteger || narrowFloat || element.isPointer() ||
      (bitwise && !element.isInteger()))
    return typeError(name + " does not support " + element.str());

  Result stored = cast(value, element);
  if (!stored)
    return stored;
  Value ptr = pointer, val = *stored;
  std::optional<Value> maskValue;
  if (mask) {
    Result tensor = toTensor(*mask);
    if (!tensor)
      return tensor;
    maskValue = *tensor;
    if (!maskValue->type.scalar().isBool())
      return valueError(name + ": the mask must be boolean, not " + maskValue->type.str());
  }
  if (!ptr.type.isBlock() && (val.type.isBlock() || (maskValue && maskValue->type.isBlock())))
    return valueError(name + ": the value or the mask is a tile, but the pointer is a scalar");
  if (!maskValue) {
    Result all = constant(Constant::of(true), Type(ScalarKind::Int1), ptr.type.getShape());
    if (!all)
      return all;
    maskValue = *all;
  }
  for (Value *operand : {&val, &*maskValue}) {
    llvm::Expected<Operands> pair = broadcastPair(ptr, *operand);
    if (!pair)
      return pair.takeError();
    if (pair->lhs.type != ptr.type)
      return valueError(name + ": the pointer (" + ptr.type.str() + ") is smaller than " +
                        operand->type.str());
    *operand = pair->rhs;
  }
  if (element.isFloating() && (op == AtomicOp::Max || op == AtomicOp::Min))
    return atomicFloatMinMax(op == AtomicOp::Max, ptr, val, *maskValue, sem, scope);

  tt::RMWOp kind;
  switch (op) {
  case AtomicOp::Add:
    kind = element.isFloating() ? tt::RMWOp::FADD : tt::RMWOp::ADD;
    break;
  case AtomicOp::And:
    kind = tt::RMWOp::AND;
    break;
  case AtomicOp::Or:
    kind = tt::RMWOp::OR;
    break;
  case AtomicOp::Xor:
    kind = tt::RMWOp::XOR;
    break;
  case AtomicOp::Max:
    kind = element.isSigned() ? tt::RMWOp::MAX : tt::RMWOp::UMAX;
    break;
  case AtomicOp::Min:
    kind = element.isSigned() ? tt::RMWOp::MIN : tt::RMWOp::UMIN;
    break;
  case AtomicOp::Xchg:
    kind = tt::RMWOp::XCHG;
    break;
  }
  return make<tt::AtomicRMWOp>(val.type, val.handle.getType(), kind, ptr.handle, val.handle,
                               maskValue->handle, *semanticKind, *scopeKind);
}

/// The order of non-negative floats is that of their bits as signed integers, and the order of
/// negative ones is the reverse of their bits as unsigned ones: one masked update for each sign.
Result Builder::atomicFloatMinMax(bool isMax, const Value &pointer, const Value &value,
                                  const Value &mask, llvm::StringRef sem, llvm::StringRef scope) {
  unsigned width = value.type.scalar().bitWidth();
  Type signedType = Type::signedInteger(width), unsignedType = Type::unsignedInteger(width);
  Result bits = bitcast(value, signedType);
  if (!bits)
    return bits;
  Result signedPtr = cast(pointer, Type::pointerTo(signedType));
  if (!signedPtr)
    return signedPtr;
  Result unsignedBits = bitcast(value, unsignedType);
  if (!unsignedBits)
    return unsignedBits;
  Result unsignedPtr = cast(pointer, Type::pointerTo(unsignedType));
  if (!unsignedPtr)
    return unsignedPtr;
  Result sign =
      binary(BinaryOp::Shr, *unsignedBits, Constant::of(static_cast<__int128>(width - 1)));
  if (!sign)
    return sign;
  Result negative = cast(*sign, Type(ScalarKind::Int1));
  if (!negative)
    return negative;
  Result positive = unary(UnaryOp::Not, *negative);
  if (!positive)
    return positive;
  Result positiveMask = binary(BinaryOp::And, mask, *positive);
  if (!positiveMask)
    return positiveMask;
  Result a = atomicRmw(isMax ? AtomicOp::Max : AtomicOp::Min, *signedPtr, *bits,
                       Operand(*positiveMask), sem, scope);
  if (!a)
    return a;
  Result negativeMask = binary(BinaryOp::And, mask, *negative);
  if (!negativeMask)
    return negativeMask;
  Result b = atomicRmw(isMax ? AtomicOp::Min : AtomicOp::Max, *unsignedPtr, *unsignedBits,
                       Operand(*negativeMask), sem, scope);
  if (!b)
    return b;
  Result old = where(*positive, *a, *b);
  if (!old)
    return old;
  return bitcast(*old, value.type.scalar());
}

Result Builder::atomicCas(const Value &pointer, const Operand &compareOperand, const Operand &value,
                          llvm::StringRef sem, llvm::StringRef scope) {
  if (!pointer.type.scalar().isPointer())
    return badPointer(pointer, "atomic_cas");
  llvm::Expected<tt::MemSemantic> semanticKind = semantic(sem);
  if (!semanticKind)
    return semanticKind.takeError();
  llvm::Expected<tt::MemSyncScope> scopeKind = syncScope(scope);
  if (!scopeKind)
    return scopeKind.takeError();
  Type element = pointer.type.scalar().pointee();
  if (element.bitWidth() < 16)
    return typeError("atomic_cas takes elements of 16, 32 or 64 bits, not " + element.str());
  Value operands[2];
  const Operand *sources[] = {&compareOperand, &value};
  for (auto [operand, source] : llvm::zip(operands, sources)) {
    Result converted = cast(*source, element);
    if (!converted)
      return converted;
    llvm::Expected<Operands> pair = broadcastPair(pointer, *converted);
    if (!pair)
      return pair.takeError();
    if (pair->lhs.type != pointer.type)
      return valueError("atomic_cas: the pointer (" + pointer.type.str() + ") is smaller than " +
                        converted->type.str());
    operand = pair->rhs;
  }
  return make<tt::AtomicCASOp>(operands[1].type, operands[1].handle.getType(), pointer.handle,
                               operands[0].handle, operands[1].handle, *semanticKind, *scopeKind);
}

} // namespace triton_metal::language
