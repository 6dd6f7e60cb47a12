// Checks rules of Metal about address spaces that this front end's clang does not enforce.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "clang/AST/ASTContext.h"
#include "llvm/ADT/ArrayRef.h"

namespace triton_metal {

/// Reports pointers in the user's text that change their address space. Objects may change it,
/// because they are copied and their methods are called this way.
void checkAddressSpaces(clang::ASTContext &context, llvm::ArrayRef<clang::Decl *> declarations,
                        DiagnosticCollector &diagnostics);

} // namespace triton_metal
