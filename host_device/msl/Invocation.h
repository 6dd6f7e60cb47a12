// Clang's configuration for Metal, and the parsed standard library.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Frontend.h"
#include "clang/Frontend/CompilerInstance.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <memory>

namespace triton_metal {

/// The end of the user's text for clang: see beginUsersText.
inline constexpr const char *pragmaAtEnd = "\n#pragma clang attribute pop\n";

/// Prepares for the user's text, after the standard library: applies the attribute that orders
/// overloads to each function, and selects Metal's version of C++.
void beginUsersText(clang::CompilerInstance &instance, bool hasPrelude);

/// The path under which clang sees the kernel's text.
inline constexpr const char *mainPath = "/metal/main.metal";
/// The path under which clang sees the parsed standard library.
inline constexpr const char *preludePath = "/metal/stdlib.pch";

/// A compiler instance that is ready to parse `path`. Its files are those in `files`.
std::unique_ptr<clang::CompilerInstance>
makeInstance(llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> files, const char *path,
             const MslOptions &options, DiagnosticCollector &diagnostics, bool withPrelude);

/// The standard library as a precompiled header in memory. It is part of the program; if the
/// program runs with another clang than it was built with, it is created on first use. Empty if
/// that fails; then every compilation parses the library's text.
llvm::StringRef parsedPrelude();

/// Parses the standard library and serialises it.
std::string parsePrelude();

/// The data that the build has embedded in the program, and the clang that created it.
struct EmbeddedPrelude {
  llvm::StringRef bytes;
  llvm::StringRef clangVersion;
};
EmbeddedPrelude embeddedPrelude();

} // namespace triton_metal
