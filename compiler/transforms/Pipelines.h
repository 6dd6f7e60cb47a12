// Passes in the order in which they are run.

#ifndef TRITON_METAL_TRANSFORMS_PIPELINES_H
#define TRITON_METAL_TRANSFORMS_PIPELINES_H

#include <memory>

namespace mlir {
class OpPassManager;
class Pass;
} // namespace mlir

namespace triton_metal {

/// Adds a pass of this project and runs the verifiers after it: what it breaks is an error with a
/// place, not a crash of the next. MLIR's own passes are trusted, which costs half as much. With
/// TRITON_METAL_STRESS in the environment, canonicalisation, CSE, the removal of dead values and
/// symbols, and the verifiers run around each pass: to find what holds only for today's order of
/// passes. `make stress` runs the Python tests so. Caches keep such kernels apart from the others.
void addVerified(mlir::OpPassManager &manager, std::unique_ptr<mlir::Pass> pass);

/// `addVerified` for a pass before which nothing may fold, in stress mode neither.
void addUnfolded(mlir::OpPassManager &manager, std::unique_ptr<mlir::Pass> pass);

/// MLIR's canonicalisation of kernels whose control flow is structured.
void addCanonicalizer(mlir::OpPassManager &manager);

/// tt to tt: from what Triton prints to one structured function a kernel, with split pointers and
/// narrow indices.
void buildTTPipeline(mlir::OpPassManager &manager);

/// tt to ttm: a layout for every tensor, chosen so that memory is accessed in wide, consecutive
/// pieces, dots are on simdgroup matrices, and little has to be converted.
void buildTTMLayoutPipeline(mlir::OpPassManager &manager, int numWarps);

/// ttm to ttm: pointers, masks, reductions, atomics and layout conversions become what one
/// operation of msl can say; what cannot be compiled is refused.
void buildTTMLegalizationPipeline(mlir::OpPassManager &manager);

/// msl to msl: from the loop form to the text form, in which nothing but spelling is left to the
/// printer.
void buildMSLTextPipeline(mlir::OpPassManager &manager);

/// Makes `--msl-text-pipeline` known to a tool.
void registerMSLTextPipeline();

/// Makes `--ttm-legalization-pipeline` known to a tool.
void registerTTMLegalizationPipeline();

/// Makes `--ttm-layout-pipeline` (option `num-warps`) known to a tool.
void registerTTMLayoutPipeline();

/// msl to msl: from tiles as values to arrays of registers and loops over them.
void buildMSLLoopsPipeline(mlir::OpPassManager &manager);

/// Makes `--tt-pipeline` known to a tool.
void registerTTPipeline();

/// Makes `--msl-loops-pipeline` known to a tool.
void registerMSLLoopsPipeline();

} // namespace triton_metal

#endif
