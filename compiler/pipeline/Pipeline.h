// The whole way of a kernel: a module of Triton IR and options in, Metal text and launch metadata
// out.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace triton_metal {

struct CompileOptions {
  int numWarps = 4;
  int numStages = 2;
  /// What the kernel is printed for, as msl::TargetAttr::parseSpec reads it; empty for the
  /// baseline.
  std::string target;
  /// Loops that name their own number of stages get it.
  bool obeyLoopStages = true;
  /// The texts of the dialects between Triton IR and Metal are printed, too.
  bool printStages = true;
};

/// What a kernel is at each stop of the way. `metadataJson` is the launch contract.
struct CompiledKernel {
  std::string ttir;
  std::string ttm;
  std::string msl;
  std::string metal;
  std::string metadataJson;
};

/// Compiles the one public function of `module`. The module is left unchanged: the pipeline works
/// on a copy of it. On failure `diagnostics` holds every error with its location, one a line, and
/// nothing is printed.
mlir::FailureOr<CompiledKernel> compileModule(mlir::ModuleOp module, const CompileOptions &options,
                                              std::string &diagnostics);

/// The same from the text of Triton IR, which `name` stands for in messages.
mlir::FailureOr<CompiledKernel> compileText(llvm::StringRef ttir, llvm::StringRef name,
                                            const CompileOptions &options,
                                            std::string &diagnostics);

/// tt -> ttm with layouts: tile programs with a layout on every tensor.
void buildTTToTTMPipeline(mlir::OpPassManager &pm, const CompileOptions &options);
/// ttm -> msl in value form, ready for the loop former.
void buildTTMToMSLPipeline(mlir::OpPassManager &pm, const CompileOptions &options);
/// msl value form -> msl text form.
void buildMSLPipeline(mlir::OpPassManager &pm, const CompileOptions &options);

/// Makes `--metal-pipeline` known to a tool: all of these, as a compilation runs them.
void registerMetalPipeline();

} // namespace triton_metal
