//===- MSLDialect.td - the msl dialect -----------------------------------===//

#ifndef TRITON_METAL_DIALECT_MSL_DIALECT
#define TRITON_METAL_DIALECT_MSL_DIALECT

include "mlir/IR/OpBase.td"

def MSL_Dialect : Dialect {
  let name = "msl";
  let cppNamespace = "::triton_metal::msl";
  let summary = "What one thread of a Metal compute kernel does";
  let description = [{
    Scalars and vectors of `arith` and `math`, structured control flow of `scf`, and what Metal adds: address spaces,
    positions in the grid, vector loads, SIMD-group operations, barriers, atomics, simdgroup matrices.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    /// Of a module: the `#msl.target` that its kernels are compiled for.
    static constexpr ::llvm::StringLiteral getTargetAttrName() { return "msl.target"; }
  }];
}

#endif // TRITON_METAL_DIALECT_MSL_DIALECT
