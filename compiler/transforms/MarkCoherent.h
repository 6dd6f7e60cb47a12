#ifndef TRITON_METAL_TRANSFORMS_MARKCOHERENT_H
#define TRITON_METAL_TRANSFORMS_MARKCOHERENT_H

#include "analysis/PointerOrigins.h"

namespace triton_metal::msl {

/// Marks the memory as coherent beyond the threadgroup: the arguments that it may belong to, and
/// the kernel if its pointers are unknown. Returns whether an argument was not marked before.
bool markCoherent(KernelOp kernel, const Origins &memory);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MARKCOHERENT_H
