// What an access asks of caches.
#ifndef TRITON_METAL_LANGUAGE_CACHEHINTS_H
#define TRITON_METAL_LANGUAGE_CACHEHINTS_H

#include "dialect/tt/TT.h"
#include "llvm/Support/Error.h"

namespace triton_metal::language {

/// The cache modifier and the eviction policy of an access, from their names; null where both are
/// the defaults.
llvm::Expected<tt::CachePolicyAttr> cachePolicy(mlir::MLIRContext *context,
                                                llvm::StringRef modifier, llvm::StringRef eviction,
                                                bool isStore);

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_CACHEHINTS_H
