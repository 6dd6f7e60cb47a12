// The target that clang compiles Metal for: one thread of the host Metal device.
#pragma once

#include "clang/Basic/TargetInfo.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"

namespace clang {
class CompilerInstance;
}

namespace triton_metal {

/// The triple under which clang generates code. Its calling convention keeps every parameter whole
/// (a vector stays a vector, a struct is passed by pointer), so that an LLVM function's parameters
/// are the source's, one to one.
inline constexpr const char *metalTriple = "spir64-unknown-unknown";

/// Layout of memory: little-endian, 64-bit pointers, every vector aligned to its size. It is that
/// of x86-64 and of arm64 hosts for every type that Metal has.
inline constexpr const char *metalDataLayout =
    "e-i64:64-v16:16-v24:32-v32:32-v48:64-v64:64-v96:128-v128:128-v192:256-v256:256-n8:16:32:64";

llvm::IntrusiveRefCntPtr<clang::TargetInfo> createMetalTarget(clang::DiagnosticsEngine &diagnostics,
                                                              clang::TargetOptions &options);

/// Enables `__global`, `__local` and `__constant` as qualifiers of types and methods. Metal's
/// address spaces are macros for them. Must be called at the beginning of a source file.
void enableAddressSpaces(clang::CompilerInstance &instance);

} // namespace triton_metal
