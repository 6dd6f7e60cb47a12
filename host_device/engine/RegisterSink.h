#ifndef TRITON_METAL_HOST_DEVICE_ENGINE_REGISTERSINK_H
#define TRITON_METAL_HOST_DEVICE_ENGINE_REGISTERSINK_H

namespace llvm {
class Function;
} // namespace llvm

namespace triton_metal::engine::registers {

/// Moves what computes numbers to the blocks that use them, as compilers of GPUs do, but not into
/// loops, and not what makes one float of several.
void sinkNumbers(llvm::Function &function);

} // namespace triton_metal::engine::registers

#endif // TRITON_METAL_HOST_DEVICE_ENGINE_REGISTERSINK_H
