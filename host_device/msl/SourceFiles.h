// The files that clang sees: the standard library and the kernel's text, from memory, and the
// user's headers, which are rewritten when they are read.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Frontend.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <map>
#include <optional>
#include <string>

namespace triton_metal {

/// What the host's file system has under a path: nothing, a folder, or a file with its text.
struct HostFile {
  std::optional<llvm::vfs::Status> status;
  std::string text;
};

/// The host's files that a text depends on, by the paths that clang asked for: those that it
/// includes, and those that it did not find.
using HostFiles = std::map<std::string, HostFile>;

/// What the host has under a path now.
HostFile readHostFile(const std::string &path);

/// `prelude` is the content of `preludePath`, unless it is empty. It must outlive the file system.
/// `texts` receives every text that was rewritten, and must also outlive the file system. Files of
/// the host are as in `hostFiles`; the others that clang asks for are read and added.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>
makeSourceFiles(llvm::StringRef source, llvm::StringRef mainPath, const MslOptions &options,
                llvm::StringRef prelude, SourceTexts &texts, HostFiles &hostFiles);

} // namespace triton_metal
