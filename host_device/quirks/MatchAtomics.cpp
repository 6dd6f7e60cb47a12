// Rows 14, 21 and 22: atomic operations.
#include "host_device/quirks/Matchers.h"
#include "clang/AST/DeclTemplate.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

/// T of `atomic<T>`.
static QualType atomicValue(QualType type) {
  if (Values::templateName(type) != "atomic" && Values::templateName(type) != "_atomic")
    return {};
  const auto *special = cast<ClassTemplateSpecializationDecl>(type->getAsCXXRecordDecl());
  return special->getTemplateArgs()[0].getAsType();
}

/// The variable of a word, and the constant part of the offset in it.
static std::pair<const ValueDecl *, __int128> wordOf(const Scan &scan, const Pointer &pointer) {
  __int128 offset = 0;
  for (const Pointer::Step &step : pointer.steps)
    if (std::optional<int64_t> number = scan.values.constant(step.index))
      offset += __int128(*number) * step.elementBytes * (step.isNegative ? -1 : 1);
  return {pointer.root, offset};
}

static bool isOnlyVariable(const Scan &scan, const Pointer &pointer) {
  return llvm::any_of(pointer.steps,
                      [&](const Pointer::Step &step) { return !scan.values.constant(step.index); });
}

void matchAtomics(const Scan &scan) {
  const ASTContext &ast = scan.values.ast;
  for (const Call &call : scan.walk.calls) {
    if (!call.name.starts_with("atomic_") || call.call->getNumArgs() == 0)
      continue;
    QualType pointee = call.call->getArg(0)->getType()->getPointeeType();
    QualType value = pointee.isNull() ? QualType() : atomicValue(pointee);
    if (value.isNull())
      continue;
    bool isExchange = call.name.starts_with("atomic_compare_exchange");
    if (isExchange && value->isRealFloatingType())
      scan.report(14, QuirkClass::Defect, call.location,
                  "a compare-exchange on a float never succeeds for a NaN; use the number's bits");
    if (Values::spaceOf(pointee) != Space::Threadgroup)
      continue;
    Pointer pointer = scan.values.pointer({call.call->getArg(0), call.frame});
    for (QualType from : pointer.casts) {
      QualType source = atomicValue(from);
      if (source.isNull())
        source = from;
      source = ast.getBaseElementType(source);
      if (source->isIntegerType() == value->isIntegerType() && !source->isIncompleteType() &&
          ast.getTypeSize(source) == ast.getTypeSize(value))
        continue;
      scan.report(21, QuirkClass::Defect, call.location,
                  "an atomic operation on threadgroup memory that is declared as '" +
                      source.getUnqualifiedType().getAsString(ast.getPrintingPolicy()) +
                      "'; declare an array of atomics");
      break;
    }
    if (!isExchange || !pointer.root)
      continue;
    auto word = wordOf(scan, pointer);
    bool isRunning = isOnlyVariable(scan, pointer);
    for (const Access &access : scan.walk.accesses) {
      if (Scan::spaceOf(access) != Space::Threadgroup || !access.lvalue ||
          !atomicValue(access.type).isNull())
        continue;
      Pointer other = scan.pointerOf(access);
      if (other.root != pointer.root)
        continue;
      bool bothConstant = !isRunning && !isOnlyVariable(scan, other);
      if ((bothConstant && wordOf(scan, other) != word) ||
          (!bothConstant && isa<VarDecl>(pointer.root) && !pointer.casts.empty() &&
           pointer.casts.size() != other.casts.size() && wordOf(scan, other).second != word.second))
        continue;
      scan.report(22, QuirkClass::Defect, call.location,
                  llvm::Twine("'") + pointer.root->getNameAsString() +
                      "' is compared and exchanged here, and accessed without an atomic in line " +
                      llvm::Twine(scan.lineOf(access.location)));
      break;
    }
  }
}

} // namespace triton_metal::quirks
