// Operations that look places of a tile up by number: gathers and histograms.
#ifndef TRITON_METAL_TRANSFORMS_TTMLOOKUPS_H
#define TRITON_METAL_TRANSFORMS_TTMLOOKUPS_H

#include "transforms/TTMScratch.h"

namespace triton_metal::ttm {

/// The result of a gather: the operation itself where shuffles do it, or what is read from scratch
/// tiles, in rounds where the source does not fit into one.
mlir::Value lowerGather(Scratch &scratch, tt::GatherOp op);

/// The result of a histogram, counted in a scratch tile, in rounds where the bins do not fit into
/// one.
mlir::Value lowerHistogram(Scratch &scratch, tt::HistogramOp op);

} // namespace triton_metal::ttm

#endif
