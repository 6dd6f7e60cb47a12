// Marks the accesses that go through `coherent(device)` pointers.
#pragma once

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/DenseSet.h"

namespace triton_metal {

/// `coherent(device)` is a part of a pointer's type that clang's code generation drops. The syntax
/// tree is therefore changed before that: where a pointer to coherent memory is dereferenced, it
/// passes through a call of `__tm_coherent`, which returns it. A pointer that has lost the
/// qualifier by a conversion, or as the argument of a function without it, is not marked.
class CoherentPointers {
public:
  /// May be called several times for a declaration; nothing is marked twice.
  void run(clang::ASTContext &context, clang::Decl *declaration);

private:
  llvm::DenseSet<const clang::Stmt *> done;
  clang::FunctionDecl *marker = nullptr;
};

} // namespace triton_metal
