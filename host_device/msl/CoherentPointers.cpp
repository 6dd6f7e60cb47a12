#include "host_device/msl/CoherentPointers.h"
#include "host_device/msl/CodeVisitor.h"
#include "host_device/msl/SyntaxTree.h"
#include "clang/AST/ExprCXX.h"
#include "clang/Basic/SourceManager.h"

using namespace clang;

namespace triton_metal {

namespace {

/// Whether a type, as it is spelled, is that of coherent memory.
bool isCoherent(QualType type, const ASTContext &context) {
  while (!type.isNull()) {
    if (auto *attributed = dyn_cast<AttributedType>(type.getTypePtr());
        attributed && attributed->getAttrKind() == attr::NoDeref)
      return true;
    QualType next = type.getSingleStepDesugaredType(context);
    if (next.getTypePtr() == type.getTypePtr())
      return false;
    type = next;
  }
  return false;
}

class Visitor : public CodeVisitor<Visitor> {
public:
  Visitor(ASTContext &context, llvm::DenseSet<const Stmt *> &done, FunctionDecl *marker)
      : context(context), done(done), marker(marker) {}

  bool VisitUnaryOperator(UnaryOperator *operation) {
    if (operation->getOpcode() == UO_Deref && isMarked(operation, operation->getSubExpr()))
      operation->setSubExpr(mark(operation->getSubExpr()));
    return true;
  }
  bool VisitArraySubscriptExpr(ArraySubscriptExpr *subscript) {
    if (isMarked(subscript, subscript->getLHS()))
      subscript->setLHS(mark(subscript->getLHS()));
    else if (isMarked(subscript, subscript->getRHS()))
      subscript->setRHS(mark(subscript->getRHS()));
    return true;
  }
  bool VisitMemberExpr(MemberExpr *member) {
    if (member->isArrow() && isMarked(member, member->getBase()))
      member->setBase(mark(member->getBase()));
    return true;
  }
  /// A reference is an address that is dereferenced wherever its name occurs.
  bool VisitCastExpr(CastExpr *cast) {
    if (Expr *marked = markedReference(cast, cast->getSubExpr()))
      cast->setSubExpr(marked);
    return true;
  }
  bool VisitBinaryOperator(BinaryOperator *operation) {
    if (!operation->isAssignmentOp())
      return true;
    if (Expr *marked = markedReference(operation, operation->getLHS()))
      operation->setLHS(marked);
    return true;
  }

private:
  ASTContext &context;
  llvm::DenseSet<const Stmt *> &done;
  FunctionDecl *marker;

  bool isMarked(const Expr *access, const Expr *pointer) {
    if (access->isInstantiationDependent() || pointer->isInstantiationDependent() ||
        !pointer->getType()->isPointerType() || !pointer->isPRValue())
      return false;
    QualType pointee = pointer->getType()->getPointeeType();
    return isDevice(pointee) && isCoherent(pointee, context) && done.insert(access).second;
  }

  static bool isDevice(QualType pointee) {
    return !pointee.isNull() && pointee.getAddressSpace() == LangAS::opencl_global &&
           !pointee->isFunctionType();
  }

  /// `r` -> `*__tm_coherent(&r)` for a reference, or null if `name` is not one.
  Expr *markedReference(const Expr *access, Expr *name) {
    if (access->isInstantiationDependent() || name->isInstantiationDependent() || !name->isLValue())
      return nullptr;
    auto *reference = dyn_cast<DeclRefExpr>(name->IgnoreParens());
    if (!reference || !reference->getDecl()->getType()->isReferenceType())
      return nullptr;
    QualType referred = reference->getDecl()->getType()->getPointeeType();
    if (!isDevice(referred) || !isCoherent(referred, context) || !done.insert(access).second)
      return nullptr;
    QualType pointer = context.getPointerType(name->getType());
    SourceLocation place = name->getExprLoc();
    auto *address = UnaryOperator::Create(context, name, UO_AddrOf, pointer, VK_PRValue,
                                          OK_Ordinary, place, false, FPOptionsOverride());
    auto *access2 =
        UnaryOperator::Create(context, mark(address), UO_Deref, name->getType(), VK_LValue,
                              OK_Ordinary, place, false, FPOptionsOverride());
    done.insert(access2);
    return access2;
  }

  /// `p` -> `(T *)__tm_coherent(p)`.
  Expr *mark(Expr *pointer) {
    SourceLocation place = pointer->getExprLoc();
    QualType type = pointer->getType();
    auto cast = [&](Expr *value, QualType to) {
      return ImplicitCastExpr::Create(context, to, CK_BitCast, value, nullptr, VK_PRValue,
                                      FPOptionsOverride());
    };
    Expr *argument = cast(pointer, marker->getParamDecl(0)->getType());
    return cast(makeCall(context, marker, argument, place), type);
  }
};

} // namespace

void CoherentPointers::run(ASTContext &context, Decl *declaration) {
  if (context.getSourceManager().isInSystemHeader(declaration->getLocation()))
    return;
  if (!marker)
    marker = functionNamed(context, "__tm_coherent");
  if (marker)
    Visitor(context, done, marker).TraverseDecl(declaration);
}

} // namespace triton_metal
