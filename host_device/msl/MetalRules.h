// Checks rules of Metal that this front end's clang does not enforce.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "clang/AST/ASTContext.h"
#include "llvm/ADT/ArrayRef.h"

namespace triton_metal {

/// Reports in the user's text: pointers that change their address space (objects may change it,
/// because they are copied and their methods are called this way), conversions to bfloat that Metal
/// wants explicit, variables outside of functions that are not constant, calls of kernels, and
/// goto.
void checkMetalRules(clang::ASTContext &context, llvm::ArrayRef<clang::Decl *> declarations,
                     DiagnosticCollector &diagnostics);

} // namespace triton_metal
