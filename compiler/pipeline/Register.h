// Dialects and passes that must be registered before a kernel can be read or compiled.

#ifndef TRITON_METAL_PIPELINE_REGISTER_H
#define TRITON_METAL_PIPELINE_REGISTER_H

namespace mlir {
class DialectRegistry;
}

namespace triton_metal {

/// Every dialect that a kernel uses between TTIR and Metal.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Every pass and pipeline, under its command-line name.
void registerAllPasses();

} // namespace triton_metal

#endif
