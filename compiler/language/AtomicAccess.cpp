// Atomic loads, stores and polls.
#include "language/Builder.h"
#include "language/Writable.h"

#include "dialect/tt/TT.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace triton_metal::language {

/// The order of an access that is no update: `strict` ("acquire" or "release"), the default, or
/// none.
static llvm::Expected<tt::MemSemantic> orderOf(llvm::StringRef name, llvm::StringRef order,
                                               llvm::StringRef strict) {
  if (order == "relaxed")
    return tt::MemSemantic::RELAXED;
  if (order.empty() || order == strict)
    return strict == "acquire" ? tt::MemSemantic::ACQUIRE : tt::MemSemantic::RELEASE;
  return valueError(name + ": the memory semantic is '" + order + "'; '" + strict +
                    "' and 'relaxed' are known");
}

static llvm::Expected<tt::MemSyncScope> scopeOf(llvm::StringRef name, llvm::StringRef scope) {
  auto parsed = llvm::StringSwitch<std::optional<tt::MemSyncScope>>(scope)
                    .Cases({"", "gpu"}, tt::MemSyncScope::GPU)
                    .Case("cta", tt::MemSyncScope::CTA)
                    .Case("sys", tt::MemSyncScope::SYSTEM)
                    .Default(std::nullopt);
  if (!parsed)
    return valueError(name + ": the scope is '" + scope + "'; 'gpu', 'cta' and 'sys' are known");
  return *parsed;
}

static bool pointsToBool(const Value &pointer) { return pointer.type.scalar().pointee().isBool(); }

llvm::Expected<std::pair<Value, Value>>
Builder::atomicPlaces(llvm::StringRef name, const Value &pointer, std::optional<Operand> mask) {
  if (!pointer.type.scalar().isPointer())
    return typeError(name + " takes a pointer, not " + pointer.type.str());
  Type element = pointer.type.scalar().pointee();
  if (!element.isInteger() && !element.isFloating() && !element.isBool())
    return typeError(name + " does not support " + element.str());
  Value ptr = pointer;
  Result maskValue =
      mask ? toTensor(*mask)
           : constant(Constant::of(true), Type(ScalarKind::Int1), pointer.type.getShape());
  if (!maskValue)
    return maskValue.takeError();
  if (!maskValue->type.scalar().isBool())
    return valueError(name + ": the mask must be boolean, not " + maskValue->type.str());
  if (!ptr.type.isBlock() && maskValue->type.isBlock())
    return valueError(name + ": the mask is a tile (" + maskValue->type.str() +
                      "), but the pointer is a scalar");
  llvm::Expected<Operands> pair = broadcastPair(ptr, *maskValue);
  if (!pair)
    return pair.takeError();
  ptr = pair->lhs;
  Result place = memoryPointer(ptr);
  if (!place)
    return place.takeError();
  return std::pair(*place, pair->rhs);
}

llvm::Expected<Value> Builder::atomicOperand(llvm::StringRef name, const Value &pointer,
                                             const Operand &operand) {
  Result converted = cast(operand, pointer.type.scalar().pointee());
  if (!converted)
    return converted;
  if (!pointer.type.isBlock() && converted->type.isBlock())
    return valueError(name + ": the value is a tile (" + converted->type.str() +
                      "), but the pointer is a scalar");
  llvm::Expected<Operands> pair = broadcastPair(pointer, *converted);
  if (!pair)
    return pair.takeError();
  if (pair->lhs.type != pointer.type)
    return valueError(name + ": the pointer (" + pointer.type.str() + ") is smaller than " +
                      converted->type.str());
  return pair->rhs;
}

Result Builder::atomicLoad(const Value &pointer, std::optional<Operand> mask, llvm::StringRef sem,
                           llvm::StringRef scope) {
  auto places = atomicPlaces("atomic_load", pointer, mask);
  if (!places)
    return places.takeError();
  llvm::Expected<tt::MemSemantic> order = orderOf("atomic_load", sem, "acquire");
  if (!order)
    return order.takeError();
  llvm::Expected<tt::MemSyncScope> reach = scopeOf("atomic_load", scope);
  if (!reach)
    return reach.takeError();
  auto &[ptr, maskValue] = *places;
  Type type = ptr.type.withScalar(ptr.type.scalar().pointee());
  Value loaded =
      make<tt::AtomicLoadOp>(type, mlirType(type), ptr.handle, maskValue.handle, *order, *reach);
  return pointsToBool(pointer) ? cast(loaded, Type(ScalarKind::Int1)) : Result(loaded);
}

llvm::Error Builder::atomicStore(const Value &pointer, const Operand &value,
                                 std::optional<Operand> mask, llvm::StringRef sem,
                                 llvm::StringRef scope) {
  auto places = atomicPlaces("atomic_store", pointer, mask);
  if (!places)
    return places.takeError();
  if (llvm::Error error = checkWritable(pointer.type))
    return error;
  llvm::Expected<tt::MemSemantic> order = orderOf("atomic_store", sem, "release");
  if (!order)
    return order.takeError();
  llvm::Expected<tt::MemSyncScope> reach = scopeOf("atomic_store", scope);
  if (!reach)
    return reach.takeError();
  auto &[ptr, maskValue] = *places;
  llvm::Expected<Value> stored = atomicOperand("atomic_store", ptr, value);
  if (!stored)
    return stored.takeError();
  tt::AtomicStoreOp::create(builder, location, ptr.handle, stored->handle, maskValue.handle, *order,
                            *reach);
  return llvm::Error::success();
}

Result Builder::atomicPoll(const Value &pointer, const Operand &expected, llvm::StringRef sem,
                           llvm::StringRef scope, std::optional<Operand> timeout) {
  if (!pointer.type.scalar().isPointer())
    return typeError("atomic_poll takes a pointer, not " + pointer.type.str());
  Type element = pointer.type.scalar().pointee();
  if (!element.isInteger() || element.bitWidth() < 16)
    return typeError("atomic_poll takes integers of 16, 32 or 64 bits, not " + element.str());
  llvm::Expected<tt::MemSemantic> order = orderOf("atomic_poll", sem, "acquire");
  if (!order)
    return order.takeError();
  llvm::Expected<tt::MemSyncScope> reach = scopeOf("atomic_poll", scope);
  if (!reach)
    return reach.takeError();
  llvm::Expected<Value> value = atomicOperand("atomic_poll", pointer, expected);
  if (!value)
    return value.takeError();
  mlir::Value time;
  if (timeout) {
    Result number = cast(*timeout, Type::unsignedInteger(64));
    if (!number)
      return number;
    if (number->type.isBlock())
      return valueError("atomic_poll: timeout_ns is a scalar, not " + number->type.str());
    time = number->handle;
  }
  Type type = pointer.type.withScalar(Type(ScalarKind::Int1));
  return make<tt::AtomicPollOp>(type, mlirType(type), pointer.handle, value->handle, time, *order,
                                *reach);
}

} // namespace triton_metal::language
