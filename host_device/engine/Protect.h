// Compilations, which clang and LLVM may end with a crash of their own.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace triton_metal::engine {

/// Runs the code on a thread with a stack for any nesting that clang takes. If it crashes, or ends
/// with a fatal error of LLVM's, no destructor of its frames runs, and the result says what ended
/// it: what it was given may then be left in any state.
std::optional<std::string> runProtected(llvm::function_ref<void()> code);

} // namespace triton_metal::engine
