// Which elements a launch writes, regardless of the values.

#ifndef TRITON_METAL_PIPELINE_COVERAGE_H
#define TRITON_METAL_PIPELINE_COVERAGE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace triton_metal {

/// A kernel with the same arguments that stores 1 wherever the kernel of `ttir` stores, and does
/// nothing else. Run on memory of zeros, it shows which elements a launch writes. Returns nothing
/// if that depends on what the kernel reads, or if the kernel updates memory atomically.
llvm::Expected<std::optional<std::string>> coverageKernel(llvm::StringRef ttir,
                                                          llvm::StringRef name);

} // namespace triton_metal

#endif // TRITON_METAL_PIPELINE_COVERAGE_H
