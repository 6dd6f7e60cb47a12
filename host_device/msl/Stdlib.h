// The text of the Metal standard library's headers, as this device has them.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace triton_metal {

struct StdlibHeader {
  llvm::StringLiteral name;
  llvm::StringLiteral text;
};

/// Every header that `#include <...>` finds.
llvm::ArrayRef<StdlibHeader> stdlibHeaders();

} // namespace triton_metal
