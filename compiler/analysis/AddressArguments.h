// Which arguments of a kernel its addresses and masks depend on.
#ifndef TRITON_METAL_ANALYSIS_ADDRESSARGUMENTS_H
#define TRITON_METAL_ANALYSIS_ADDRESSARGUMENTS_H

#include "mlir/IR/Value.h"

namespace triton_metal {

/// Whether an address or a mask may depend on `value`. What is only stored, or only bounds a loop,
/// has no part in how memory is accessed.
bool reachesAddressOrMask(mlir::Value value);

} // namespace triton_metal

#endif // TRITON_METAL_ANALYSIS_ADDRESSARGUMENTS_H
