// How clang is set up for Metal, and the standard library as it is after parsing.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Frontend.h"
#include "clang/Frontend/CompilerInstance.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <memory>

namespace triton_metal {

/// The path under which clang sees the kernel's text.
inline constexpr const char *mainPath = "/metal/main.metal";
/// The path under which clang sees the parsed standard library.
inline constexpr const char *preludePath = "/metal/stdlib.pch";

/// Clang ready to parse `path`, whose files are `files`.
std::unique_ptr<clang::CompilerInstance>
makeInstance(llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files, const char *path,
             const MslOptions &options, DiagnosticCollector &diagnostics, bool withPrelude);

/// The standard library as a precompiled header in memory: from the program itself, or made when
/// first asked for if the program runs with another clang than it was built with. Empty if that
/// failed; then every compilation reads the library's text.
llvm::StringRef parsedPrelude();

/// Parses the standard library into bytes.
std::string parsePrelude();

/// What the build put into the program, and the clang that made it.
struct EmbeddedPrelude {
  llvm::StringRef bytes;
  llvm::StringRef clangVersion;
};
EmbeddedPrelude embeddedPrelude();

} // namespace triton_metal
