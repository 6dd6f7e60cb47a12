// Variables of IR: a thread's arrays, and constants of the program.
#pragma once

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Value.h"
#include <cstdint>
#include <optional>

namespace triton_metal {

/// Bytes of a thread's variable or of a constant with a known value; nothing for other values.
std::optional<uint64_t> sizeOfVariable(const llvm::DataLayout &layout, const llvm::Value *object);

} // namespace triton_metal
