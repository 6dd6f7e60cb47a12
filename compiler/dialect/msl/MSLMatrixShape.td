//===- MSLMatrixShape.td - the shape of a matrix instruction --------------===//
//
// By itself, because operations of ttm have it too.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_METAL_DIALECT_MSL_MATRIXSHAPE
#define TRITON_METAL_DIALECT_MSL_MATRIXSHAPE

include "mlir/IR/AttrTypeBase.td"
include "dialect/msl/MSLDialect.td"

def MSL_MatrixShapeAttr : AttrDef<MSL_Dialect, "MatrixShape"> {
  let mnemonic = "matrix_shape";
  let summary = "What one matrix instruction computes";
  let description = [{
    `#msl.matrix_shape<8x8x8>` is m, n and k: the instruction adds the product of an m x k and a k x n fragment to an m x n
    fragment. The lanes of a SIMD-group share each fragment, so that a thread holds m * n / 32 registers of the last.
  }];
  let parameters = (ins "::triton_metal::msl::MatrixShape":$shape);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  // Operations give and take the shape itself.
  let returnType = "::triton_metal::msl::MatrixShape";
  let convertFromStorage = "$_self.getShape()";
  let constBuilderCall = "::triton_metal::msl::MatrixShapeAttr::get($_builder.getContext(), $0)";
}

#endif // TRITON_METAL_DIALECT_MSL_MATRIXSHAPE
