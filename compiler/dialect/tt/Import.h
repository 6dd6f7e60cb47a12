// Reading the text of Triton IR.

#ifndef TRITON_METAL_DIALECT_TT_IMPORT_H
#define TRITON_METAL_DIALECT_TT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class SourceMgr;
}

namespace triton_metal::tt {

/// Parses a module; errors go to the context's diagnostics, with `name` as the file, and the result
/// is null.
///
/// Triton prints the Python name of a value as its location and, for what a loop carries, only as
/// its name in the text. Block arguments get that name as their location here, so that nothing
/// after this needs the text.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(llvm::StringRef text, llvm::StringRef name,
                                              mlir::MLIRContext *context);

/// The same for the main buffer of sources, for who wants to show the lines of errors.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(const llvm::SourceMgr &sources,
                                              mlir::MLIRContext *context);

/// Whether MLIR's parser can be trusted with a text: what would end the process is an error with
/// its place.
llvm::LogicalResult checkText(llvm::StringRef text, llvm::StringRef name,
                              mlir::MLIRContext *context);

/// What the verifiers and passes after it rely on, whatever made the module: operations of the
/// dialects that Triton IR consists of, on values of types that it has. Runs before verifiers.
llvm::LogicalResult checkModule(mlir::ModuleOp module);

} // namespace triton_metal::tt

#endif
