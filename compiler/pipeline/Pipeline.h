// Compiles a kernel: from a module of Triton IR and options to Metal text and launch metadata.
#pragma once

#include "transforms/Pipelines.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace triton_metal {

class PassManagers;

struct CompileOptions {
  /// SIMD-groups of a threadgroup, and stages of loops that stage tiles; 0 has the compiler choose.
  int numWarps = 0;
  int numStages = 0;
  /// Which functions may be approximated, and whether products and sums are fused.
  Arithmetic arithmetic;
  /// The target, as msl::TargetAttr::parseSpec reads it; empty for the baseline.
  std::string target;
  /// Loops that name a number of stages get that number.
  bool obeyLoopStages = true;
  /// Tiles for which a thread lacks registers are worked on in slices.
  bool sliceTiles = true;
  /// Operands of products stay in threadgroup memory for later products, and over loops.
  bool sharesOperands = true;
  /// A number for each argument of the kernel: arguments with the same number may point into the
  /// same memory; with 0, or without a number, an argument shares it with none.
  std::vector<int> memory;
  /// Whether the texts of the dialects between Triton IR and Metal are printed, too.
  bool printStages = true;
};

/// The texts of a kernel at each stage. `metadataJson` is the launch contract.
struct CompiledKernel {
  std::string ttir;
  std::string ttm;
  std::string msl;
  std::string metal;
  std::string metadataJson;
  /// Where each line of the text comes from, and what is in threadgroup memory, if stages are
  /// printed.
  std::string linesJson;
};

/// Compiles the one public function of `module`. The module is left unchanged: the pipeline works
/// on a copy of it. On failure `diagnostics` holds every error with its location, one a line, and
/// nothing is printed. `managers` are those of the module's context, if it has been lent.
mlir::FailureOr<CompiledKernel> compileModule(mlir::ModuleOp module, const CompileOptions &options,
                                              std::string &diagnostics,
                                              PassManagers *managers = nullptr);

/// The same for the text of Triton IR. Messages call the text `name`.
mlir::FailureOr<CompiledKernel> compileText(llvm::StringRef ttir, llvm::StringRef name,
                                            const CompileOptions &options,
                                            std::string &diagnostics);

/// tt -> ttm: a layout for every tensor, operands of products in threadgroup memory.
void buildTTToTTMPipeline(mlir::OpPassManager &pm, const CompileOptions &options);
/// ttm -> msl in value form, with threadgroup memory and barriers.
void buildTTMToMSLPipeline(mlir::OpPassManager &pm, const CompileOptions &options);
/// msl value form -> msl text form.
void buildMSLPipeline(mlir::OpPassManager &pm, const CompileOptions &options);

/// Makes `--metal-pipeline` known to a tool: all of these, as a compilation runs them.
void registerMetalPipeline();

} // namespace triton_metal
