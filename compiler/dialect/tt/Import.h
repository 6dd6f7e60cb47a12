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

/// Parses a module. Errors are reported as diagnostics with `name` as the file, and the result is
/// null.
///
/// Triton prints the Python name of a value as its location, but the names of values that loops
/// carry only as SSA names. Here, block arguments get these names as locations, so that later
/// stages do not need the text.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(llvm::StringRef text, llvm::StringRef name,
                                              mlir::MLIRContext *context);

/// The same for the main buffer of `sources`, for callers that show the lines of errors.
mlir::OwningOpRef<mlir::ModuleOp> parseModule(const llvm::SourceMgr &sources,
                                              mlir::MLIRContext *context);

/// Checks that MLIR's parser can read a text safely. Input that would end the process becomes an
/// error with a location.
llvm::LogicalResult checkText(llvm::StringRef text, llvm::StringRef name,
                              mlir::MLIRContext *context);

/// Checks what verifiers and passes rely on, however the module was created: that it consists of
/// the dialects of Triton IR and has only their types. Runs before the verifiers.
llvm::LogicalResult checkModule(mlir::ModuleOp module);

} // namespace triton_metal::tt

#endif
