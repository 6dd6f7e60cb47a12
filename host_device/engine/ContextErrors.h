// The errors that LLVM reports while it compiles.
#pragma once

#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/Error.h"
#include <string>

namespace llvm {
class DiagnosticInfo;
}

namespace triton_metal::engine {

/// Collects the errors of a context in a scope. LLVM prints an error for which there is no handler,
/// and ends the process.
class ContextErrors {
public:
  explicit ContextErrors(llvm::LLVMContext &context);
  ~ContextErrors();
  ContextErrors(const ContextErrors &) = delete;
  /// What was collected, as one error.
  llvm::Error take();

private:
  static void handle(const llvm::DiagnosticInfo *info, void *self);

  llvm::LLVMContext &context;
  std::string text;
};

} // namespace triton_metal::engine
