// Parts of clang's syntax tree that passes over it add.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Expr.h"

namespace triton_metal {

/// The function with this name at the top of the text, or null.
clang::FunctionDecl *functionNamed(const clang::ASTContext &context, llvm::StringRef name);

/// A call of a function. Its arguments have the types of the parameters.
clang::CallExpr *makeCall(clang::ASTContext &context, clang::FunctionDecl *function,
                          llvm::ArrayRef<clang::Expr *> arguments, clang::SourceLocation place);

} // namespace triton_metal
