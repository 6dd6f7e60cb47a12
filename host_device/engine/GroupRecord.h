// The record that lies behind threadgroup memory: who has written each of its bytes (Abi.h).
#pragma once

#include "host_device/engine/Abi.h"
#include "llvm/IR/IRBuilder.h"

namespace triton_metal::engine {

/// The record of what a pointer points to.
inline llvm::Value *writersOf(llvm::IRBuilderBase &builder, llvm::Value *pointer) {
  return builder.CreatePtrAdd(pointer, builder.getInt64(threadgroupWriters));
}

/// The type of the record of a value: integers in place of other numbers. Null where a number is no
/// whole bytes.
inline llvm::Type *integersLike(llvm::Type *type) {
  llvm::Type *scalar = type->getScalarType();
  unsigned bits = scalar->getPrimitiveSizeInBits();
  if (bits % 8 || !bits || bits > 64 || !(scalar->isIntegerTy() || scalar->isFloatingPointTy()))
    return nullptr;
  return type->getWithNewType(llvm::Type::getIntNTy(type->getContext(), bits));
}

} // namespace triton_metal::engine
