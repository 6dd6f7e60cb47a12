// Protects the process from crashes of clang and LLVM during compilation.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <string>

namespace triton_metal::engine {

/// Runs the code on a thread whose stack is large enough for deep nesting in clang. If it crashes
/// or ends with a fatal error of LLVM, the result is the reason. Destructors of its frames do not
/// run then, and its data may be in any state.
std::optional<std::string> runProtected(llvm::function_ref<void()> code);

} // namespace triton_metal::engine
