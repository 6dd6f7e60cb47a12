// Files that are there as a whole or not at all.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace triton_metal::engine {

/// Makes a new file whose name begins with `path`, and opens it.
std::error_code createFileBeside(llvm::StringRef path, int &descriptor, std::string &name);

/// Writes to an open file, and closes it. Returns what went wrong.
std::error_code writeTo(llvm::raw_fd_ostream &out,
                        llvm::function_ref<void(llvm::raw_ostream &)> write);

/// Writes a file beside `path` and renames it. If that fails, what was there stays, and nothing
/// else is left.
std::error_code replaceFile(llvm::StringRef path,
                            llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace triton_metal::engine
