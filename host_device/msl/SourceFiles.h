// The files that clang sees: the standard library and the kernel's text, from memory, and the
// user's headers, which are rewritten when they are read.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Frontend.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace triton_metal {

/// `prelude` is the content of `preludePath`, unless it is empty. It must outlive the file system.
/// `texts` receives every text that was rewritten, and must also outlive the file system.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>
makeSourceFiles(llvm::StringRef source, llvm::StringRef mainPath, const MslOptions &options,
                llvm::StringRef prelude, SourceTexts &texts);

} // namespace triton_metal
