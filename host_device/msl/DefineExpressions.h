// Defines expressions that C++ leaves undefined, before clang folds them.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/DenseSet.h"
#include <string>
#include <vector>

namespace triton_metal {

/// Clang folds constants during code generation and makes poison of undefined results. The syntax
/// tree is therefore changed before that: amounts of shifts are masked. Divisors and floats that
/// become integers pass through memory if they may be constants, so that an instruction remains
/// which `DefineArithmeticPass` can define.
class DefineExpressions {
public:
  /// A variable in the threadgroup address space, and the function that declares it.
  struct ThreadgroupVariable {
    std::string name, function;
    unsigned line = 0, column = 0;
  };
  std::vector<ThreadgroupVariable> threadgroupVariables;

  /// In portable and checked modules, amounts of shifts stay as they are, so that wide ones are
  /// seen.
  explicit DefineExpressions(bool keepsAmounts) : keepsAmounts(keepsAmounts) {}
  /// May be called several times for a declaration; nothing is changed twice.
  void run(clang::ASTContext &context, clang::Decl *declaration);

private:
  bool keepsAmounts;
  llvm::DenseSet<const clang::Stmt *> done;
};

} // namespace triton_metal
