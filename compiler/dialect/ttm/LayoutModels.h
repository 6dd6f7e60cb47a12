#ifndef TRITON_METAL_DIALECT_TTM_LAYOUTMODELS_H
#define TRITON_METAL_DIALECT_TTM_LAYOUTMODELS_H

namespace mlir {
class MLIRContext;
}

namespace triton_metal::ttm {

/// Gives operations of `tt`, `arith`, `scf` and `ub` the LayoutTransferOpInterface.
void attachLayoutModels(mlir::MLIRContext *context);

} // namespace triton_metal::ttm

#endif // TRITON_METAL_DIALECT_TTM_LAYOUTMODELS_H
