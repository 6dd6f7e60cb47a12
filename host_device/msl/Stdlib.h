// The texts of the headers of this device's Metal standard library.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace triton_metal {

struct StdlibHeader {
  llvm::StringLiteral name;
  llvm::StringLiteral text;
};

/// Whether this is the path of one of them in clang's files.
inline bool isStdlibFile(llvm::StringRef path) { return path.starts_with("/metal/include"); }

/// All headers that `#include <...>` finds.
llvm::ArrayRef<StdlibHeader> stdlibHeaders();

} // namespace triton_metal
