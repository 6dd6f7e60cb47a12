// The passes of the compiler; Passes.td describes them.

#ifndef TRITON_METAL_TRANSFORMS_PASSES_H
#define TRITON_METAL_TRANSFORMS_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace triton_metal {

#define GEN_PASS_DECL
#include "transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "transforms/Passes.h.inc"

} // namespace triton_metal

#endif
