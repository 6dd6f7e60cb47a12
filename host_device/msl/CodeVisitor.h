// Visits the syntax tree that code is generated from, each node after its children.
#pragma once

#include "clang/AST/RecursiveASTVisitor.h"

namespace triton_metal {

template <typename Derived> class CodeVisitor : public clang::RecursiveASTVisitor<Derived> {
public:
  using DataRecursionQueue = typename clang::RecursiveASTVisitor<Derived>::DataRecursionQueue;

  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }
  bool shouldTraversePostOrder() const { return true; }

  /// A property (`v.xy <<= 1`) has the tree that code comes from beside the one that was written.
  bool TraversePseudoObjectExpr(clang::PseudoObjectExpr *object, DataRecursionQueue * = nullptr) {
    for (clang::Expr *part : object->semantics())
      if (!this->getDerived().TraverseStmt(part))
        return false;
    return true;
  }
  bool VisitOpaqueValueExpr(clang::OpaqueValueExpr *value) {
    return !value->getSourceExpr() || this->getDerived().TraverseStmt(value->getSourceExpr());
  }
};

} // namespace triton_metal
