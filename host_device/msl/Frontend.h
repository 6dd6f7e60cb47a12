// Metal Shading Language text to LLVM IR, in process: clang's libraries, no files and no
// subprocess.
#pragma once

#include "host_device/KernelInfo.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace triton_metal {

/// The value that a pipeline gives to `[[function_constant(index)]]`: its bits, in the low end of a
/// 64-bit word.
struct FunctionConstantValue {
  uint32_t index = 0;
  uint64_t bits = 0;
};

struct MslOptions {
  /// Names the text in diagnostics.
  std::string fileName = "kernel.metal";
  std::vector<FunctionConstantValue> functionConstants;
  /// Preprocessor macros, as -DNAME=VALUE.
  std::vector<std::pair<std::string, std::string>> macros;
  /// Folders of the host that `#include "..."` searches, for libraries of several files.
  std::vector<std::string> includeDirectories;
};

/// A module in which every kernel is one LLVM function `void NAME(parameters in source order)` that
/// does what one thread does. Everything that it calls is inlined; threadgroup variables are calls
/// of `__tm_threadgroup_alloc`; cross-lane operations are calls of the `__tm_*` functions, which
/// the device implements.
struct CompiledMsl {
  std::unique_ptr<llvm::Module> module;
  std::vector<KernelInfo> kernels;
};

/// Compiles MSL. What does not parse is an error that carries clang's diagnostics in the user's own
/// lines and columns. May be called from several threads, each with a context of its own.
llvm::Expected<CompiledMsl> compileMsl(llvm::StringRef source, const MslOptions &options,
                                       llvm::LLVMContext &context);

/// Names everything that decides what `compileMsl` makes of one text: for keys of caches.
std::string frontendVersion();

} // namespace triton_metal
