// Compiles Metal Shading Language text to LLVM IR in process, with clang's libraries: without files
// or subprocesses.
#pragma once

#include "host_device/Checks.h"
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

/// The value that a pipeline gives to `[[function_constant(index)]]`: its bits, in the low bits of
/// a 64-bit word.
struct FunctionConstantValue {
  uint32_t index = 0;
  uint64_t bits = 0;
  bool operator==(const FunctionConstantValue &) const = default;
};

struct MslOptions {
  /// The name of the text in diagnostics.
  std::string fileName = "kernel.metal";
  std::vector<FunctionConstantValue> functionConstants;
  /// Preprocessor macros, as -DNAME=VALUE.
  std::vector<std::pair<std::string, std::string>> macros;
  /// Folders of the host that `#include "..."` searches, for libraries of several files. Empty
  /// names are none, as a list that a program splits at commas may have one.
  std::vector<std::string> includeDirectories;
  /// Values that Metal does not promise become calls of `__tm_any` (AnyValues.h).
  bool portable = false;
  /// The kernels are for counting: their arrays become registers as they do on a GPU.
  bool count = false;
  /// The kernels are for the back end of a GPU, and not for this device: loops are unrolled as the
  /// text asks, sums of products may be fused where the text allows it, and elementary functions
  /// stay calls (KeepMath.h).
  bool gpu = false;
  /// What the code of the kernels is checked for: the values of its operations.
  Checks checks;
};

/// The metadata with the loops of portable code: for each, the line and the column of its first and
/// last tokens.
inline constexpr const char *loopsMetadata = "tm.loops";

/// A module in which every kernel is one LLVM function `void NAME(parameters in source order)` that
/// does the work of one thread. Everything that it calls is inlined. Threadgroup variables are
/// calls of `__tm_threadgroup_alloc`; cross-lane operations are calls of the `__tm_*` functions,
/// which the device implements.
struct CompiledMsl {
  std::unique_ptr<llvm::Module> module;
  std::vector<KernelInfo> kernels;
};

/// Compiles MSL. Errors contain clang's diagnostics with lines and columns of the user's text. May
/// be called from several threads, each with a context of its own.
llvm::Expected<CompiledMsl> compileMsl(llvm::StringRef source, const MslOptions &options,
                                       llvm::LLVMContext &context);

/// Identifies everything besides the text and its options that determines the result of
/// `compileMsl`, for cache keys.
std::string frontendVersion();

} // namespace triton_metal
