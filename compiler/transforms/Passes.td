// Every pass of the compiler: what it does, and a piece of IR before and after.

#ifndef TRITON_METAL_TRANSFORMS_PASSES_TD
#define TRITON_METAL_TRANSFORMS_PASSES_TD

include "transforms/TTPasses.td"
include "transforms/TTMPasses.td"
include "transforms/MSLPasses.td"
include "transforms/MSLTextPasses.td"

#endif
