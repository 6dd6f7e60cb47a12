// The texts of the headers of this device's Metal standard library.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace triton_metal {

struct StdlibHeader {
  llvm::StringLiteral name;
  llvm::StringLiteral text;
};

/// Whether this is the path of one of them in clang's files.
inline bool isStdlibFile(llvm::StringRef path) { return path.starts_with("/metal/include/"); }

/// The path of the file that an item of debug information (a location, a function) names. Clang
/// writes a file's folder apart.
template <typename ItemT> std::string filePathOf(const ItemT &item) {
  llvm::StringRef name = item.getFilename(), folder = item.getDirectory();
  if (name.starts_with("/") || folder.empty())
    return name.str();
  return (folder + "/" + name).str();
}

/// All headers that `#include <...>` finds.
llvm::ArrayRef<StdlibHeader> stdlibHeaders();

} // namespace triton_metal
