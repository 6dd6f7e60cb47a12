// One slice of rows after another: the rewrite of tt-slice-tiles.
#ifndef TRITON_METAL_TRANSFORMS_TTSLICING_H
#define TRITON_METAL_TRANSFORMS_TTSLICING_H

#include "dialect/tt/TT.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace triton_metal {

/// Of a loop over slices, while the pass runs: how many there are.
inline constexpr llvm::StringLiteral kSlicesAttr = "slices";

/// The number of slices that a loop runs over; 0 for all other loops.
inline int64_t getSlices(mlir::scf::ForOp loop) {
  auto slices = loop->getAttrOfType<mlir::IntegerAttr>(kSlicesAttr);
  return slices ? slices.getInt() : 0;
}

/// Of a loop whose steps are worked on in slices, one a step, while the pass runs: how many.
inline constexpr llvm::StringLiteral kStepSlicesAttr = "step_slices";

/// The number of slices of what was one step of a loop; 1 for all other loops.
inline int64_t getStepSlices(mlir::scf::ForOp loop) {
  auto slices = loop->getAttrOfType<mlir::IntegerAttr>(kStepSlicesAttr);
  return slices ? slices.getInt() : 1;
}

/// Gives each use of a constant tile, of a range and of a splat an operation of its own, so that
/// dimensions which only begin alike are not taken for one.
void spreadLeaves(tt::FuncOp kernel);

/// Puts the operations on tiles along a class of dimensions (`TileDims`) into a loop over `parts`
/// slices of them. Returns whether that is possible: the class is free or summed, what stands
/// between these operations may run once for each slice, and no slice reads what another one
/// writes. Products along a summed class add up what the slices give, in their order; a loop that
/// does nothing else takes a slice in each step. Where slices are not possible, the kernel may have
/// been reordered, but does the same.
bool slice(tt::FuncOp kernel, unsigned id, int64_t parts);

} // namespace triton_metal

#endif // TRITON_METAL_TRANSFORMS_TTSLICING_H
