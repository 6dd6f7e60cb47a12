// Rows 24 and 25: arrays of simdgroup matrices.
#include "host_device/quirks/Matchers.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"

using namespace clang;

namespace triton_metal::quirks {

/// Whether objects of a type contain an array of simdgroup matrices.
static bool hasMatrixArray(QualType type, const ASTContext &ast, unsigned depth = 0) {
  if (depth > 6 || type.isNull())
    return false;
  type = type.getNonReferenceType();
  if (type->isArrayType())
    return Values::isSimdgroupMatrix(ast.getBaseElementType(type)) ||
           hasMatrixArray(ast.getBaseElementType(type), ast, depth + 1);
  if (Values::templateName(type) == "array" || Values::vectorOf(type) ||
      Values::isSimdgroupMatrix(type)) {
    if (Values::templateName(type) != "array")
      return false;
  }
  const auto *record = type->getAsCXXRecordDecl();
  if (!record || !record->hasDefinition())
    return false;
  for (const FieldDecl *field : record->fields())
    if (hasMatrixArray(field->getType(), ast, depth + 1))
      return true;
  return false;
}

void matchMatrices(const Scan &scan) {
  const ASTContext &ast = scan.values.ast;
  for (const Call &call : scan.walk.calls) {
    const FunctionDecl *definition = nullptr;
    if (!call.name.empty() || scan.values.inLibrary(call.callee) ||
        !call.callee->hasBody(definition) || definition->hasAttr<AlwaysInlineAttr>() ||
        call.callee->hasAttr<AlwaysInlineAttr>())
      continue;
    bool passes = false;
    for (const ParmVarDecl *parameter : definition->parameters()) {
      QualType type = parameter->getType();
      if (type->isPointerType())
        passes |= Values::isSimdgroupMatrix(ast.getBaseElementType(type->getPointeeType())) ||
                  hasMatrixArray(type->getPointeeType(), ast);
      else
        passes |= hasMatrixArray(type, ast);
    }
    if (const auto *method = dyn_cast<CXXMethodDecl>(definition); method && !method->isStatic())
      passes |= hasMatrixArray(ast.getCanonicalTagType(method->getParent()), ast);
    if (passes)
      scan.report(24, QuirkClass::Defect, call.location,
                  "an array of simdgroup matrices is passed to '" + definition->getNameAsString() +
                      "', which is not always inlined; mark it "
                      "__attribute__((always_inline))");
  }
  for (const Access &access : scan.walk.accesses) {
    if (!access.lvalue || !Values::isSimdgroupMatrix(access.type))
      continue;
    const auto *subscript = dyn_cast<ArraySubscriptExpr>(plain(access.lvalue));
    if (!subscript || scan.isStatic({subscript->getIdx(), access.frame}, access.scope))
      continue;
    scan.report(25, QuirkClass::Costly, access.location,
                "simdgroup matrices are indexed at run time, which moves them to memory; unroll "
                "the loop fully");
  }
}

} // namespace triton_metal::quirks
