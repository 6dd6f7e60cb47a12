#include "host_device/msl/MetalRules.h"
#include "host_device/msl/MetalAttributes.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/DenseSet.h"

using namespace clang;

namespace triton_metal {

namespace {

class RuleChecker : public RecursiveASTVisitor<RuleChecker> {
public:
  RuleChecker(ASTContext &context, DiagnosticCollector &diagnostics)
      : context(context), diagnostics(diagnostics) {}

  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return false; }

  /// In `p->method()`, only the object matters, and its method may be called.
  bool VisitMemberExpr(MemberExpr *member) {
    if (member->isArrow())
      objects.insert(member->getBase());
    return true;
  }

  /// For an object in thread memory, overload resolution also accepts methods for other address
  /// spaces.
  bool VisitCXXMemberCallExpr(CXXMemberCallExpr *call) {
    checkObject(call->getImplicitObjectArgument(), call->getMethodDecl());
    return true;
  }
  bool VisitCXXOperatorCallExpr(CXXOperatorCallExpr *call) {
    if (call->getNumArgs())
      checkObject(call->getArg(0), dyn_cast_or_null<CXXMethodDecl>(call->getCalleeDecl()));
    return true;
  }

  /// As in Metal, of the floating-point types only bfloat itself becomes a bfloat without a cast.
  bool VisitImplicitCastExpr(ImplicitCastExpr *cast) {
    if (cast->getCastKind() != CK_FloatingCast || cast->isPartOfExplicitCast() ||
        !isBfloat(cast->getType()) || isBfloat(cast->getSubExpr()->getType()))
      return true;
    // The functions of SIMD-groups make a float of a bfloat, which becomes one again.
    const SourceManager &sources = context.getSourceManager();
    if (auto *call = dyn_cast<CallExpr>(cast->getSubExpr()->IgnoreParenImpCasts()))
      if (const FunctionDecl *callee = call->getDirectCallee();
          callee && call->getNumArgs() > 0 && callee->getIdentifier() &&
          (callee->getName().starts_with("simd_") || callee->getName().starts_with("quad_")) &&
          isBfloat(call->getArg(0)->getType()) &&
          sources.isInSystemHeader(sources.getExpansionLoc(callee->getLocation())))
        return true;
    report(cast->getExprLoc(), "a '" + spelling(cast->getSubExpr()->getType()) +
                                   "' becomes a 'bfloat' only by an explicit conversion");
    return true;
  }

  bool VisitCastExpr(CastExpr *cast) {
    if (cast->getCastKind() != CK_AddressSpaceConversion || cast->isGLValue() ||
        objects.contains(cast))
      return true;
    report(cast->getExprLoc(), "a pointer '" + spelling(cast->getSubExpr()->getType()) +
                                   "' cannot become '" + spelling(cast->getType()) +
                                   "', which points to another address space");
    return true;
  }

  /// A variable that lives as long as the program is constant. One of threadgroup memory has an
  /// address space, too.
  bool VisitVarDecl(VarDecl *variable) {
    QualType type = context.getBaseElementType(variable->getType());
    if (variable->hasGlobalStorage() && !type->isDependentType() && !type->isReferenceType() &&
        !type.isConstQualified() && !type.hasAddressSpace())
      report(variable->getLocation(), "variable '" + variable->getNameAsString() +
                                          "' lives as long as the program, so it must be in the "
                                          "constant address space");
    return true;
  }

  bool VisitGotoStmt(GotoStmt *jump) {
    report(jump->getGotoLoc(), "'goto' is not supported in Metal");
    return true;
  }

  bool VisitDeclRefExpr(DeclRefExpr *name) {
    if (auto *function = dyn_cast<FunctionDecl>(name->getDecl());
        function && metalAttribute(function, "kernel"))
      report(name->getLocation(), "kernel '" + function->getNameAsString() +
                                      "' can only be launched; Metal functions cannot call it");
    return true;
  }

private:
  void report(SourceLocation location, const std::string &message) {
    const SourceManager &sources = context.getSourceManager();
    if (!sources.isInSystemHeader(sources.getExpansionLoc(location)) &&
        seen.insert(location).second)
      diagnostics.error(sources, location, message);
  }

  void checkObject(const Expr *object, const CXXMethodDecl *method) {
    if (!object || !method || method->isStatic() ||
        !method->getMethodQualifiers().hasAddressSpace())
      return;
    QualType type = object->IgnoreParenImpCasts()->getType();
    if (type->isPointerType())
      type = type->getPointeeType();
    if (!type->isRecordType() ||
        type.getAddressSpace() == method->getMethodQualifiers().getAddressSpace())
      return;
    diagnostics.error(context.getSourceManager(), object->getExprLoc(),
                      "the method '" + method->getNameAsString() +
                          "' is for objects in another address space than this '" + spelling(type) +
                          "'");
  }

  static bool isBfloat(QualType type) { return type->isSpecificBuiltinType(BuiltinType::Float); }

  std::string spelling(QualType type) const {
    std::string text = typeInMetal(type.getAsString(context.getPrintingPolicy()));
    bool isThread = type->isPointerType() && !type->getPointeeType().hasAddressSpace();
    return isThread ? "thread " + text : text;
  }

  ASTContext &context;
  DiagnosticCollector &diagnostics;
  llvm::DenseSet<const Expr *> objects;
  llvm::DenseSet<SourceLocation> seen;
};

} // namespace

void checkMetalRules(ASTContext &context, llvm::ArrayRef<Decl *> declarations,
                     DiagnosticCollector &diagnostics) {
  RuleChecker checker(context, diagnostics);
  for (Decl *declaration : declarations)
    if (!context.getSourceManager().isInSystemHeader(declaration->getLocation()))
      checker.TraverseDecl(declaration);
}

} // namespace triton_metal
