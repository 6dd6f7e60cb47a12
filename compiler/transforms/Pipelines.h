// The order of the passes.

#ifndef TRITON_METAL_TRANSFORMS_PIPELINES_H
#define TRITON_METAL_TRANSFORMS_PIPELINES_H

#include <memory>

namespace mlir {
class OpPassManager;
class Pass;
} // namespace mlir

namespace triton_metal {

/// Adds a pass of this project. With TRITON_METAL_STRESS in the environment, canonicalisation, CSE,
/// the removal of dead values and symbols, and the verifiers run around each pass. This finds
/// assumptions that only hold for the present order of passes; `make stress` runs the Python tests
/// this way. Such kernels have cache entries of their own.
void addStep(mlir::OpPassManager &manager, std::unique_ptr<mlir::Pass> pass);

/// `addStep` for the last pass of a form: tiles of Triton, tiles with layouts, tiles as msl's
/// values, loops. The verifiers run after it, so that an error of a pass is reported with its
/// location, and no Metal text is made of it. After each pass, outside of stress mode, they would
/// take a sixth of the time of a compilation.
void addVerified(mlir::OpPassManager &manager, std::unique_ptr<mlir::Pass> pass);

/// Makes the next verification of this thread begin anew: operations of another kernel, or types of
/// another context, may have the addresses of those that have been verified.
void forgetVerified();

/// `addStep` for a pass before which nothing may fold, not even in stress mode.
void addUnfolded(mlir::OpPassManager &manager, std::unique_ptr<mlir::Pass> pass);

/// MLIR's canonicalisation of kernels whose control flow is structured.
void addCanonicalizer(mlir::OpPassManager &manager);

/// What a launch allows of arithmetic.
struct Arithmetic {
  /// Functions and quotients are rounded as precisely as the device can (`precise_math`).
  bool precise = false;
  /// Products that are only added become math.fma (`enable_fp_fusion`).
  bool fused = true;
};

/// tt to tt: from Triton's output to one structured function for each kernel, with split pointers
/// and narrow indices.
void buildTTPipeline(mlir::OpPassManager &manager, const Arithmetic &arithmetic = {});

/// tt to ttm: a layout for every tensor, such that memory accesses are wide and consecutive, dots
/// use simdgroup matrices, and few conversions are needed.
void buildTTMLayoutPipeline(mlir::OpPassManager &manager, int numWarps);

/// ttm to ttm: pointers, masks, reductions, atomics and layout conversions become operations that
/// have counterparts in msl. Refuses what cannot be compiled.
void buildTTMLegalizationPipeline(mlir::OpPassManager &manager);

/// msl to msl: from the loop form to the text form. The printer only has to write it.
void buildMSLTextPipeline(mlir::OpPassManager &manager);

/// Registers `--msl-text-pipeline`.
void registerMSLTextPipeline();

/// Registers `--ttm-legalization-pipeline`.
void registerTTMLegalizationPipeline();

/// Registers `--ttm-layout-pipeline` (option `num-warps`).
void registerTTMLayoutPipeline();

/// msl to msl: from tiles as values to arrays of registers and loops over them.
void buildMSLLoopsPipeline(mlir::OpPassManager &manager);

/// Registers `--tt-pipeline`.
void registerTTPipeline();

/// Registers `--msl-loops-pipeline`.
void registerMSLLoopsPipeline();

} // namespace triton_metal

#endif
