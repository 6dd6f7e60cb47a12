// Metal's own rules about address spaces, which this front end's clang is more lenient about.
#pragma once

#include "host_device/msl/Diagnostics.h"
#include "clang/AST/ASTContext.h"
#include "llvm/ADT/ArrayRef.h"

namespace triton_metal {

/// Reports pointers of the user's text that change their address space. (Objects may: that is how
/// their methods are called and how they are copied.)
void checkAddressSpaces(clang::ASTContext &context, llvm::ArrayRef<clang::Decl *> declarations,
                        DiagnosticCollector &diagnostics);

} // namespace triton_metal
