// The files that clang sees: the standard library and the kernel's text from memory, a user's
// headers rewritten as they are read.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "host_device/msl/Frontend.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace triton_metal {

/// `prelude` is what stands at `preludePath`, if it is not empty; it must outlive the file system.
/// `texts` receives every text that was rewritten, and must outlive the file system.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>
makeSourceFiles(llvm::StringRef source, llvm::StringRef mainPath, const MslOptions &options,
                llvm::StringRef prelude, SourceTexts &texts);

} // namespace triton_metal
