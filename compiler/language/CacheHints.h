// The names of cache modifiers and eviction policies.
#ifndef TRITON_METAL_LANGUAGE_CACHEHINTS_H
#define TRITON_METAL_LANGUAGE_CACHEHINTS_H

#include "dialect/tt/TT.h"
#include "llvm/Support/Error.h"

namespace triton_metal::language {

llvm::Expected<tt::CacheModifier> cacheModifier(llvm::StringRef name, bool isStore);
llvm::Expected<tt::EvictionPolicy> evictionPolicy(llvm::StringRef name);

} // namespace triton_metal::language

#endif // TRITON_METAL_LANGUAGE_CACHEHINTS_H
