#ifndef TRITON_METAL_TRANSFORMS_MSLSERIALIZEPROGRAMS_H
#define TRITON_METAL_TRANSFORMS_MSLSERIALIZEPROGRAMS_H

#include "dialect/msl/MSL.h"

namespace triton_metal::msl {

/// The first threadgroup works all programs of the grid, one after the other, and the others end at
/// once. The threads of updates with the form `alone` take turns.
void serializePrograms(KernelOp kernel);

} // namespace triton_metal::msl

#endif // TRITON_METAL_TRANSFORMS_MSLSERIALIZEPROGRAMS_H
