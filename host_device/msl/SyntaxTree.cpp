#include "host_device/msl/SyntaxTree.h"
#include "clang/AST/Decl.h"

using namespace clang;

namespace triton_metal {

FunctionDecl *functionNamed(const ASTContext &context, llvm::StringRef name) {
  FunctionDecl *function = nullptr;
  for (NamedDecl *found :
       context.getTranslationUnitDecl()->lookup(DeclarationName(&context.Idents.get(name))))
    function = dyn_cast<FunctionDecl>(found);
  return function;
}

CallExpr *makeCall(ASTContext &context, FunctionDecl *function, llvm::ArrayRef<Expr *> arguments,
                   SourceLocation place) {
  auto *name = DeclRefExpr::Create(context, NestedNameSpecifierLoc(), SourceLocation(), function,
                                   /*RefersToEnclosingVariableOrCapture=*/false, place,
                                   function->getType(), VK_LValue);
  auto *callee = ImplicitCastExpr::Create(context, context.getPointerType(function->getType()),
                                          CK_FunctionToPointerDecay, name, nullptr, VK_PRValue,
                                          FPOptionsOverride());
  return CallExpr::Create(context, callee, arguments, function->getReturnType(), VK_PRValue, place,
                          FPOptionsOverride());
}

} // namespace triton_metal
