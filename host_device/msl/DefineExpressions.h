// Expressions that C++ leaves undefined, before clang folds them.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/DenseSet.h"

namespace triton_metal {

/// clang folds constants while it generates code, and what it folds is poison where C++ leaves the
/// result open. So the syntax tree is changed before code is generated from it: amounts of shifts
/// are masked, and divisors and floats that become integers go through memory, where they may be
/// constants, so that an instruction is left that `DefineArithmeticPass` defines.
class DefineExpressions {
public:
  /// May be called with the same declaration again: nothing is changed twice.
  void run(clang::ASTContext &context, clang::Decl *declaration);

private:
  llvm::DenseSet<const clang::Stmt *> done;
};

} // namespace triton_metal
