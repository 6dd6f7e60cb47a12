// Which elements a launch writes, without what it writes there.

#ifndef TRITON_METAL_PIPELINE_COVERAGE_H
#define TRITON_METAL_PIPELINE_COVERAGE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace triton_metal {

/// A kernel with the same arguments that stores 1 wherever the kernel of `ttir` stores anything,
/// and does nothing else: run over memory of zeros, it shows what a launch writes. Nothing, where
/// that depends on what the kernel reads, or where it updates memory atomically.
llvm::Expected<std::optional<std::string>> coverageKernel(llvm::StringRef ttir,
                                                          llvm::StringRef name);

} // namespace triton_metal

#endif // TRITON_METAL_PIPELINE_COVERAGE_H
