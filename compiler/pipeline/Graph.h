// Triton IR as a program of array operations, for MLX.
#ifndef TRITON_METAL_PIPELINE_GRAPH_H
#define TRITON_METAL_PIPELINE_GRAPH_H

#include "mlir/Pass/PassManager.h"

#include <string>

namespace triton_metal {

/// tt to tt: structured control flow in one function, no descriptors, no floats of 8 bits, no
/// functions that are called for each element, pointers as offsets from an argument.
void buildGraphPipeline(mlir::OpPassManager &manager);

/// Registers `--graph-pipeline`.
void registerGraphPipeline();

/// The program of the one public function of a text of Triton IR, as JSON
/// (conversion/GraphProgram.h). Messages call the text `name`. On failure `diagnostics` holds every
/// error with its location, one a line.
mlir::FailureOr<std::string> graphProgram(llvm::StringRef ttir, llvm::StringRef name,
                                          std::string &diagnostics);

} // namespace triton_metal

#endif // TRITON_METAL_PIPELINE_GRAPH_H
