// The dialect itself.

#ifndef TRITON_METAL_DIALECT_TT_DIALECT_TD
#define TRITON_METAL_DIALECT_TT_DIALECT_TD

include "mlir/IR/OpBase.td"

def TT_Dialect : Dialect {
  let name = "tt";
  let cppNamespace = "::triton_metal::tt";
  let summary = "Tile programs, as Triton prints them";
  let description = [{
    A kernel is a `tt.func` that every program of a grid runs. Its values are scalars and tiles (ranked
    tensors whose sizes are powers of two), and it reads and writes memory through pointers and tensors of
    pointers. The text is that of Triton 3.7 to 3.9: what one of them prints after its `ttir` stage parses
    here, and prints again as it was.

    Elementwise arithmetic comes from `arith` and `math`, control flow from `scf` and `cf`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect"
  ];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();

    /// Says which operation is not known, instead of the parser's general words.
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef opName) const override;
  }];
}

#endif
