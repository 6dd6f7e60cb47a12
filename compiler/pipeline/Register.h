// What a tool or an embedder must make known to a context before it reads or compiles a kernel.

#ifndef TRITON_METAL_PIPELINE_REGISTER_H
#define TRITON_METAL_PIPELINE_REGISTER_H

namespace mlir {
class DialectRegistry;
}

namespace triton_metal {

/// Every dialect that a kernel is written in on its way from TTIR to Metal.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Every pass and pipeline under the name that a command line gives it.
void registerAllPasses();

} // namespace triton_metal

#endif
