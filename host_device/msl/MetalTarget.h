// Clang's target for Metal: one thread of the host Metal device.
#pragma once

#include "clang/Basic/TargetInfo.h"
#include "llvm/ADT/IntrusiveRefCntPtr.h"

namespace clang {
class CompilerInstance;
}

namespace triton_metal {

/// The triple for code generation. Its calling convention does not split parameters: a vector stays
/// a vector, and a struct is passed by pointer. The parameters of an LLVM function therefore
/// correspond to those of the source.
inline constexpr const char *metalTriple = "spir64-unknown-unknown";

/// The layout of memory: little-endian, 64-bit pointers, vectors aligned to their size. It agrees
/// with x86-64 and arm64 for all types of Metal.
inline constexpr const char *metalDataLayout =
    "e-i64:64-v16:16-v24:32-v32:32-v48:64-v64:64-v96:128-v128:128-v192:256-v256:256-n8:16:32:64";

/// The same for a GPU's compiler: arithmetic of 64 bits takes several instructions and two
/// registers there, so counters are not made so wide.
inline constexpr const char *gpuDataLayout =
    "e-i64:64-v16:16-v24:32-v32:32-v48:64-v64:64-v96:128-v128:128-v192:256-v256:256-n8:16:32";

llvm::IntrusiveRefCntPtr<clang::TargetInfo> createMetalTarget(clang::DiagnosticsEngine &diagnostics,
                                                              clang::TargetOptions &options);

/// Enables `__global`, `__local` and `__constant` as qualifiers of types and methods. Metal's
/// address spaces are macros for them. Makes `float` and `__tm_bfloat` the keywords of clang's
/// types double and float, which have the formats of Metal's float and bfloat here; `double`
/// becomes an ordinary name. Must be called at the beginning of a source file.
void enableKeywords(clang::CompilerInstance &instance);

/// The standard library is written in C++23, and kernels in C++17, as for Metal 4: a class with a
/// constructor that is only declared as defaulted can be initialised by braces, and `requires` is a
/// name. Must be called after the standard library has been read.
void useMetalsLanguage(clang::CompilerInstance &instance);

} // namespace triton_metal
