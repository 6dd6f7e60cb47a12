// Diagnostics of the compiler as the text that a user reads.
#ifndef TRITON_METAL_PIPELINE_DIAGNOSTICS_H
#define TRITON_METAL_PIPELINE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <optional>
#include <string>

namespace triton_metal {

/// Adds a diagnostic, as `file:line:column: kind: message`, and a line for each call that led
/// there. One that has no place points to `otherwise`.
void appendDiagnostic(std::string &text, const mlir::Diagnostic &diagnostic, llvm::StringRef kind,
                      std::optional<mlir::Location> otherwise = std::nullopt);

} // namespace triton_metal

#endif // TRITON_METAL_PIPELINE_DIAGNOSTICS_H
