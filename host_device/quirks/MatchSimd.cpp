// Row 27, and what is not promised of the functions of a SIMD-group.
#include "host_device/quirks/Matchers.h"

using namespace clang;
using llvm::StringRef;

namespace triton_metal::quirks {

static bool isSimdFunction(StringRef name) {
  return name.starts_with("simd_") || name.starts_with("quad_");
}

/// Functions whose result depends on which threads are active.
static bool dependsOnActive(StringRef name) {
  return isSimdFunction(name) && !name.starts_with("simd_shuffle") &&
         !name.starts_with("quad_shuffle") && name != "simd_broadcast" && name != "quad_broadcast";
}

static bool calls(const Scan &scan, Value value, StringRef name) {
  bool found = false;
  scan.values.visitSources(value, [&](Value source) {
    if (const auto *call = dyn_cast<CallExpr>(source.expr))
      found |= scan.values.libraryName(call) == name;
  });
  return found;
}

static void matchFirst(const Scan &scan) {
  for (const Branch &branch : scan.walk.branches) {
    Value condition = scan.values.resolve({branch.condition, branch.frame});
    if (!condition || !calls(scan, condition, "simd_is_first") ||
        calls(scan, condition, "simd_ballot"))
      continue;
    const auto *unary = dyn_cast<UnaryOperator>(condition.expr);
    bool isNegated = unary && unary->getOpcode() == UO_LNot;
    const Scope *first = isNegated ? branch.elseScope : branch.thenScope;
    const Scope *others = isNegated ? branch.thenScope : branch.elseScope;
    // Threads that leave in the first branch make the rest of the code another branch.
    bool leaves = false;
    for (const Jump &jump : scan.walk.jumps)
      leaves |= first && jump.scope == first && jump.frame == branch.frame;
    for (const Call &call : scan.walk.calls) {
      bool isElse = others && isInside(call.scope, others);
      bool isRest = leaves && call.order > branch.end && isInside(call.scope, branch.scope);
      if ((isElse || isRest) && dependsOnActive(call.name))
        scan.report(27, QuirkClass::Defect, call.location,
                    "'" + call.name +
                        "' where simd_is_first() is false may see the first thread too; write "
                        "simd_is_first() && (ulong)simd_ballot(true)");
    }
  }
}

void matchSimdFunctions(const Scan &scan) {
  matchFirst(scan);
  const ASTContext &ast = scan.values.ast;
  for (const Call &call : scan.walk.calls) {
    if (!isSimdFunction(call.name) || call.call->getNumArgs() == 0 ||
        call.name.ends_with("_ballot") || call.name.ends_with("_all") ||
        call.name.ends_with("_any") || call.name.ends_with("_barrier"))
      continue;
    QualType type = call.call->getArg(0)->getType().getNonReferenceType().getUnqualifiedType();
    auto vector = Values::vectorOf(type);
    QualType element = vector ? vector->first : type;
    if (element->isIncompleteType())
      continue;
    uint64_t bits = ast.getTypeSize(element);
    bool isBfloat = element->isSpecificBuiltinType(BuiltinType::Float); // see enableKeywords
    std::string name = type.getAsString(ast.getPrintingPolicy());
    if (bits == 64 || isBfloat) {
      scan.report(101, QuirkClass::Defect, call.location,
                  "'" + call.name + "' of " + (isBfloat ? "a bfloat" : "a 64-bit number") +
                      " is not promised");
      continue;
    }
    bool moves = call.name.contains("shuffle") || call.name.contains("broadcast");
    bool isPair = vector && vector->second == 2 && bits == 32;
    if (moves && ((vector && !isPair) || bits == 8))
      scan.report(102, QuirkClass::Unproven, call.location,
                  "'" + call.name + "' of " + (vector ? "this vector type" : "an 8-bit number") +
                      " is not known to work");
    if ((call.name == "simd_max" || call.name == "simd_min") && Values::isFloat(type)) {
      bool tests = false;
      for (const Call &other : scan.walk.calls)
        tests |= other.name == "isnan";
      for (const Operator &event : scan.walk.operators) {
        auto operation = scan.values.operation(event.expr, event.frame);
        tests |= operation && (operation->code == BO_NE || operation->code == BO_EQ) &&
                 Values::isFloat(operation->left.expr->getType()) &&
                 scan.values.key(operation->left) == scan.values.key(operation->right);
      }
      if (!tests)
        scan.report(103, QuirkClass::Advice, call.location,
                    "what '" + call.name + "' makes of a NaN is not promised; test for it first");
    }
  }
}

} // namespace triton_metal::quirks
